#!/bin/sh
# The scenarios of the TAUcuda paper's figure 1 on the time line: what comes after what is known, whatever the device's speed.
#   sync    the host waits at once: a turn's kernels end before its waits do, and the next turn is launched after them
#   async   the host works until the stream is done: every kernel ends before the wait begins, no wait is left
#   two streams: both kernels of a turn are launched before the first wait
# Then what TAUcuda writes in the paper's tables 2 to 5: events, calls, contexts, devices; exclusive and wait within inclusive.
set -u
[ -x "$EX/interpolate" ] || { echo 'the example interpolate is not built here (clang)'; exit 77; }
failed=0
export XDG_CACHE_HOME=$PWD/cache
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH="$B/test/driver"
say() { [ "$1" = 0 ] && echo "ok   $2" || { echo "FAIL $2"; tail -n 6 out err; failed=1; }; }
cat > order.py <<'P'
import csv, json, sys
name, turns = sys.argv[1], int(sys.argv[2])
streams = int(name[-1])
rows = [dict(r, begin=int(r['start_ns']), end=int(r['end_ns'])) for r in csv.DictReader(open('spans.csv'))]
calls = {int(r['correlation']): r for r in rows if r['kind'] == 'api'}
slack = lambda k: int(k['uncertainty_ns'] or 0)
launches = [c for c in calls.values() if c['name'] == 'cuLaunchKernel'][:turns * streams] # the last one checks the results
waits = [c for c in calls.values() if c['name'] == 'cuStreamSynchronize']
kernels = {int(r['correlation']): r for r in rows if r['kind'] == 'kernel'}
assert len(launches) == len(waits) == turns * streams and len(kernels) == turns * streams + 1, (len(launches), len(waits), len(kernels))
of_stream = {}
for t in range(turns):
    l, w = launches[t * streams:(t + 1) * streams], waits[t * streams:(t + 1) * streams]
    k = [kernels[int(x['correlation'])] for x in l]
    assert len({x['stream'] for x in k}) == streams, k
    assert max(x['end'] for x in l) <= min(x['begin'] for x in w), 'launched before the first wait'
    for launch, kernel, wait in zip(l, k, w):
        assert kernel['begin'] >= launch['begin'] and kernel['end'] <= wait['end'] + slack(kernel), (kernel, wait)
        assert not name.startswith('async') or kernel['end'] <= wait['begin'] + slack(kernel), (kernel, wait)
        last = of_stream.get(kernel['stream'])
        assert last is None or kernel['begin'] >= last['end'] - slack(kernel), 'streams in order'
        of_stream[kernel['stream']] = kernel
    if t + 1 < turns:
        n = launches[(t + 1) * streams]
        assert n['begin'] >= max(x['end'] for x in w) and n['begin'] >= max(x['end'] - slack(x) for x in k), 'the next turn'
queries = [c for c in calls.values() if c['name'] == 'cuStreamQuery']
assert bool(queries) == name.startswith('async'), len(queries)
tau = [r for r in json.load(open('out.json'))['tools']['timeline']['tau'] if r['name'] == 'interpolate']
assert sum(r['calls'] for r in tau) == turns * streams + 1 and all(r['inclusive_us'] == r['exclusive_us'] > 0 for r in tau), tau
P
devices="emu nvidia"
[ -e "$B/lib/margay/libmargay-cpu.so" ] && devices="emu cpu nvidia"
[ -n "${REAL_GPU:-}" ] && devices=nvidia
for device in $devices; do
    for scenario in sync1 sync2 async1 async2; do
        rm -rf profile
        "$MARGAY" run -q -t timeline,tau=on --device $device -o profile -- "$EX/interpolate" $scenario 4 > out 2> err && grep -qx PASSED out &&
            "$MARGAY" export csv profile -o spans.csv && "$MARGAY" report profile --json > out.json && python3 order.py $scenario 4 2>> err
        say $? "$device, $scenario"
    done
done
cat > tables.py <<'P'
import json, sys
rows = json.load(open('out.json'))['tools']['timeline']['tau']
got = {r['event']: r for r in rows}
want = dict(a.rsplit('=', 1) for a in sys.argv[1:])
assert set(got) == set(want), (set(got), set(want))
for event, calls in want.items():
    r = got[event]
    assert r['from'] == 'tau_cuda' and r['calls'] == int(calls), r
    assert 0 < r['exclusive_us'] <= r['inclusive_us'] and 0 <= r['wait_us'] <= r['finalize_us'], r
for context in ('FirstWrapper', 'SecondWrapper'):
    inside = [r for r in rows if r['context'] == context]
    if inside:
        all_ = next(r for r in inside if r['name'] == 'All-Interpolate')
        blocks = sum(r['inclusive_us'] for r in inside if r is not all_)
        assert abs(all_['inclusive_us'] - all_['exclusive_us'] - blocks) <= .001 * blocks + 5, (all_, blocks)
P
one=emu
[ -n "${REAL_GPU:-}" ] && one=nvidia
tables() { # NAME ARGUMENTS... -- EVENT=CALLS...
    name=$1
    shift
    args=
    while [ "$1" != -- ]; do args="$args $1"; shift; done
    shift
    rm -rf profile
    # shellcheck disable=SC2086
    TAU_CUDA_TABLE=0 "$MARGAY" run -q -t none --device $one -o profile -- "$EX/interpolate" $args > out 2> err && grep -qx PASSED out &&
        "$MARGAY" report profile --json > out.json && python3 tables.py "$@" 2>> err
    say $? "$name"
}
tables "table 2" measure 1 3000 -- 'Interpolate (C-[main]#D-0#S-0)=1'
tables "table 3" measure 0 2000 4000 -- 'Interpolate (C-[main]#D-0#S-1)=1' 'Interpolate (C-[main]#D-0#S-2)=1'
tables "table 5" nested 200 -- 'All-Interpolate (C-[FirstWrapper]#D-0#S-0)=1' 'InterpolateA (C-[FirstWrapper]#D-0#S-0)=10' 'InterpolateB (C-[FirstWrapper]#D-0#S-0)=10' \
    'All-Interpolate (C-[SecondWrapper]#D-0#S-0)=1' 'InterpolateA (C-[SecondWrapper]#D-0#S-0)=10' 'InterpolateB (C-[SecondWrapper]#D-0#S-0)=10'
# two devices: software has one, which the program says
"$MARGAY" run -q -t none --device $one -o two -- "$EX/interpolate" devices 0 1 2000 3000 > out 2> err
if [ $? = 77 ]; then
    grep -q 'needs two devices' err
    say $? "table 4 needs two devices"
else
    "$MARGAY" report two --json > out.json && python3 tables.py 'Interpolate (C-[main]#D-0#S-0)=1' 'Interpolate (C-[main]#D-1#S-0)=1' 2>> err
    say $? "table 4"
fi
exit $failed
