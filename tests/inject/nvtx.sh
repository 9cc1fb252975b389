#!/bin/sh
# Ranges of NVTX on the time line, launches inside them, and --range: what is looked at is what lies inside. A tool that was
# named for NVTX before Margay still gets every call, and the program sees that tool's depths.
set -u
failed=0
gcc -O1 -Wall -o client "$ROOT/tests/inject/nvtx.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread -ldl &&
    gcc -O1 -Wall -shared -fPIC -o other.so "$ROOT/tests/inject/nvtx_other.c" || exit 1
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH="$B/test/driver"
export XDG_CACHE_HOME=$PWD/cache
unset NVTX_INJECTION64_PATH
say() { [ "$1" = 0 ] && echo "ok   $2" || { echo "FAIL $2"; tail -n 5 out err; failed=1; }; }
run() { rm -rf profile; "$MARGAY" run -q "$@" -o profile -- ./client "$ROOT/tests/inject/fill.ptx" 7 > out 2> err && grep -qx ok out && "$MARGAY" report profile --json > out.json; }

for device in ${REAL_GPU:+nvidia} $([ -n "${REAL_GPU:-}" ] || echo emu nvidia); do
    run -t timeline --device $device && grep -qx 'nvtx 1' out && grep -qx 'depths 0 0 0 0' out && "$MARGAY" trace print --json --by-time profile > records && python3 - <<'P' 2>> err
import json
records = [json.loads(l) for l in open('records')]
marks = {r['fields']['correlation']: r['fields'] for r in records if r['kind'] == 'mark'}
work = [r['fields'] for r in records if r['kind'] == 'work' and r['fields']['work'] == 'kernel']
names = [m['name'] for m in marks.values()]
assert {n: names.count(n) for n in ('outer', 'inner', 'step done')} == {'outer': 7, 'inner': 7, 'step done': 7}, names
assert sorted(n for n in names if n.startswith('profiled')) == ['profiled %d' % i for i in range(7)], names
assert names.count('early range') == 1 and names.count('early moment') == 2, names
early = next(m for m in marks.values() if m['name'] == 'early range')
first = min(r['fields']['begin'] for r in records if r['kind'] == 'call')
assert early['begin'] <= min(m['begin'] for m in marks.values() if m['name'] == 'early moment') <= early['end'] < first, (early, first)
inner = [m for m in marks.values() if m['name'] == 'inner']
assert sorted(m['payload'] for m in inner) == list(range(7)) and all(m['domain'] == 'app' and marks[m['outer']]['name'] == 'outer' for m in inner), inner
assert all(m['kind'] == 'started' and m['end_thread'] for m in marks.values() if m['name'].startswith('profiled'))
of = [marks[w['mark']]['name'] if w['mark'] else None for w in work]
assert {n: of.count(n) for n in (None, 'outer', 'inner')} == {None: 14, 'outer': 7, 'inner': 14}, of
for w in work:
    call = next(r['fields'] for r in records if r['kind'] == 'call' and r['fields']['correlation'] == w['correlation'])
    if w['mark']:
        m = marks[w['mark']]
        assert m['begin'] <= call['begin'] and call['end'] <= m['end'], (m, call)
assert [r['fields']['name'] for r in records if r['kind'] == 'thread'] == ['main loop']
t = json.load(open('out.json'))['tools']['timeline']
r = {x['name']: (x['count'], x['launches'], x['own_launches']) for x in t['ranges']}
assert r['outer'] == (7, 21, 7) and r['inner'] == (7, 14, 14) and r['profiled 3'] == (1, 0, 0), r
assert next(x for x in t['ranges'] if x['name'] == 'outer')['device_ns'] >= next(x for x in t['ranges'] if x['name'] == 'inner')['device_ns'] > 0
P
    say $? "$device, ranges"
    NVTX_INJECTION64_PATH=$PWD/other.so run -t timeline --device $device && grep -qx 'depths 40 0 0 41' out && grep -q 'other tool: 7 pushes, 7 pops' err &&
        python3 -c "import json; t = json.load(open('out.json'))['tools']['timeline']; assert {x['name']: x['count'] for x in t['ranges']}['outer'] == 7"
    say $? "$device, beside another tool"
    # ranges by name, the profiler's, by time: launches instrumented, and on the time line
    for case in "nvtx:outer 21" "nvtx:inn* 14" "nvtx:nothing 0" "profiler 7" "duration=1000 35" "delay=1000 0" "delay=0,duration=900 35"; do
        set -- $case
        run --range "$1" -t blocks -t timeline --device $device && python3 - "$2" <<'P' 2>> err
import json, sys
n = int(sys.argv[1])
r = json.load(open('out.json'))
c, t = r['coverage'], r['tools']['timeline']
assert (c['launches'], c['instrumented'], c['failed']) == (35, n, 0), c
assert all(x['reason'] == 'outside of --range' for x in c['native']), c
assert t['totals']['launches'] == n and sum(x['count'] for x in t['calls'] if x['name'] == 'cuLaunchKernel') == n, t['totals']
P
        say $? "$device, --range $1"
    done
done
for bad in profile nvtx: nvtx delay= delay=x delay=1,delay=2 duration=0 delay=-1 'delay=1,' 'duration=1,what=2'; do
    "$MARGAY" run --range "$bad" --device emu -o bad -- ./client > out 2> err
    [ $? = 120 ] && grep -q -e --range err
    say $? "--range $bad is refused"
done
exit $failed
