#!/bin/sh
# source=cupti over a libcupti of ours that hands over what the program says: every kernel, copy and memset has exactly
# those times, at its own call; what CUPTI loses has none; where CUPTI cannot be had the run goes on with events.
set -u
failed=0
ptx=$ROOT/tests/inject/fill.ptx
gcc -O1 -Wall -o client "$ROOT/tests/inject/cupti.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread -ldl || exit 1
mkdir -p fake && gcc -O1 -Wall -fPIC -shared -I"$ROOT/src" -o fake/libcupti.so.13 "$ROOT/tests/inject/fake_cupti.c" -lpthread || exit 1
export LD_LIBRARY_PATH="$PWD/fake:$B/test/driver" XDG_CACHE_HOME=$PWD/cache
say() { [ "$1" = 0 ] && echo "ok   $2" || { echo "FAIL $2"; tail -n 5 out err; failed=1; }; }
run() { # TOOL DEVICE THREADS ROUNDS [OPTION...]
    tool=$1 device=$2 threads=$3 rounds=$4
    shift 4
    rm -rf profile
    timeout 300 "$MARGAY" run "$@" -t "$tool" --device "$device" -o profile -- ./client "$ptx" "$threads" "$rounds" told > out 2> all.err && grep -qx ok out && { grep source=cupti all.err > err; true; } &&
        "$MARGAY" trace print --json --by-time profile > records 2>> err && "$MARGAY" report profile --json > out.json 2>> err
}
cat > check.py <<'P'
import bisect, collections, json, sys
mode = sys.argv[1]
kinds = {'10': 'kernel', '1': 'copy', '2': 'memset'}
told = collections.Counter((kinds[k], int(b), int(e)) for k, b, e in (l.split() for l in open('told')))
records = [json.loads(l) for l in open('records')]
work = [r['fields'] for r in records if r['kind'] == 'work']
calls = {r['fields']['correlation']: (r['tid'], r['fields']['begin'], r['fields']['end'], r['fields']['class']) for r in records if r['kind'] == 'call'}
begins = collections.defaultdict(list)
for tid, b, _, _ in calls.values():
    begins[tid].append(b)
for b in begins.values():
    b.sort()
got = collections.Counter((w['work'], w['begin'], w['end']) for w in work if w['source'] == 'cupti')
assert sum(told.values()) == len(work), (sum(told.values()), len(work))
assert not got - told, list(got - told)[:3]
untimed = [w for w in work if w['source'] != 'cupti']
if mode == 'all':
    assert got == told and not untimed, (len(got), len(told), untimed[:2])
elif mode == 'lossy':
    assert 0 < len(untimed) < len(work) and all(w['source'] == 'none' or w['work'] == 'kernel' for w in untimed), len(untimed)
else:
    assert not got and len(untimed) == len(work)
for w in work: # between its call and the thread's next one
    tid, begin, end, class_ = calls[w['correlation']]
    assert class_ == w['work'], (class_, w)
    if w['source'] == 'cupti':
        after = begins[tid]
        i = bisect.bisect_right(after, begin)
        assert end <= w['begin'] and (i == len(after) or w['end'] <= after[i]), (w, begin, end)
t = json.load(open('out.json'))['tools']['timeline']
assert t['totals']['untimed'] == len([w for w in work if w['source'] == 'none']), t['totals']
if mode == 'all':
    assert all(d['uncertainty_ns'] is None and d['untimed'] == 0 for d in t['device']), t['device']
P
run timeline,source=cupti nvidia 1 40 && [ ! -s err ] && python3 check.py all 2>> err
say $? "one thread"
run timeline,source=cupti nvidia 48 25 && [ ! -s err ] && python3 check.py all 2>> err
say $? "48 threads"
FAKE_CUPTI=late run timeline,source=cupti,stacks=on nvidia 8 25 && [ ! -s err ] && python3 check.py all 2>> err
say $? "work that comes late and out of order, beside stacks"
FAKE_CUPTI=late run timeline,source=cupti nvidia 4 10 -t blocks && [ ! -s err ] && python3 check.py all 2>> err && "$MARGAY" report profile --json | grep -q '"instrumented": *40'
say $? "beside a tool that instruments"
"$MARGAY" export features profile -o features.csv 2>> err && python3 - 2>> err <<'P'
import collections, csv
told = collections.Counter(int(e) - int(b) for k, b, e in (l.split() for l in open('told')) if k == '10')
got = collections.Counter(int(float(r['time_ns'])) for r in csv.DictReader(open('features.csv')))
assert got == told, (got - told, told - got)
P
say $? "studies take its times"
FAKE_CUPTI=lossy run timeline,source=cupti nvidia 4 30 && python3 check.py lossy 2>> err && grep -q 'CUPTI dropped [0-9]* records, and 0 had times that cannot be' err
say $? "what CUPTI loses has no time"
FAKE_CUPTI=odd run timeline,source=cupti nvidia 2 10 && python3 check.py none 2>> err && grep -q 'CUPTI dropped 0 records, and 80 had times' err
say $? "nor has what CUPTI places before its call"
for mode in subscribed old; do
    FAKE_CUPTI=$mode run timeline,source=cupti nvidia 2 10 && grep -q "^margay: source=cupti: .*: device work is timed by events$" err && [ "$(wc -l < err)" = 1 ] &&
        python3 check.py none 2>> err && grep -q '"source":"events"' records
    say $? "events where CUPTI is $mode: $(head -n 1 err)"
done
LD_LIBRARY_PATH="$B/test/driver" run timeline,source=cupti nvidia 2 10 && python3 check.py none 2>> err
say $? "without CUPTI: $(head -n 1 err)"
run timeline,source=cupti emu 2 10 && grep -q 'this device is no GPU: its own times are exact' err && grep -q '"source":"device"' records
say $? "no GPU"
run timeline,times=off nvidia 2 10 && python3 check.py none 2>> err && ! grep -q '"work":"\(copy\|memset\)".*"source":"events"' records
say $? "times=off counts copies and memsets, too"
for bad in times=twin calls=off class=kernel name=cuMem*; do
    "$MARGAY" run -t "timeline,source=cupti,$bad" -- true 2> err
    [ $? != 0 ] && grep -q 'source=cupti goes with times=events and all calls' err
    say $? "not with $bad"
done
exit $failed
