#!/bin/sh
# Tool timeline: every call and every piece of device work of a program whose numbers are known in closed form, on the
# emulator, the CPU device, and through NVIDIA's code path over the emulator. The program's own results are those
# without Margay. What is read is checked twice: the report's sums, and the records one by one.
# clock
set -u
failed=0
gcc -O1 -Wall -o client "$ROOT/tests/inject/timeline.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
export XDG_CACHE_HOME=$PWD/cache
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH="$B/test/driver"
cat > check.py <<'P'
import json, sys, collections
device, mode, a, b = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
t = json.load(open('out.json'))['tools']['timeline']
records = [r for r in map(json.loads, open('records')) if r['kind'] != 'memory']
gpu = device == 'nvidia'
calls = {c['name']: (c['count'], c['failed']) for c in t['calls']}
work = collections.Counter()
size = collections.Counter()
for d in t['device']:
    work[d['kind'], d['name'], d['stream']] += d['count']
    size[d['kind'], d['name']] += d['bytes'] or 0
    assert d['untimed'] == 0 or (gpu and mode in ('graph', 'captured')), d
start = {'cuInit': 1, 'cuDeviceGet': 1, 'cuDevicePrimaryCtxRetain': 1, 'cuCtxSetCurrent': 1, 'cuModuleLoadData': 1, 'cuModuleGetFunction': 1, 'cuMemAlloc_v2': 1}
if mode == 'plain':
    want = dict(start, cuMemcpyHtoD_v2=a, cuMemsetD32_v2=a, cuLaunchKernel=a, cuMemcpyDtoH_v2=2 * a)
    assert calls['cuMemcpyDtoH_v2'][1] == a and sum(f for _, f in calls.values()) == a, calls
    assert work == {('kernel', 'fill', 0): a, ('copy', 'HtoD', 0): a, ('copy', 'DtoH', 0): a, ('memset', 'memset', 0): a}, work
    assert size == {('kernel', 'fill'): 0, ('copy', 'HtoD'): sum(4096 + i for i in range(a)), ('copy', 'DtoH'): 128 * a, ('memset', 'memset'): 256 * a}, size
    all_calls = sum(want.values())
    p = t['call_percent']
    assert abs(p['kernel'] - 100 * a / all_calls) < 1e-9 and abs(p['synchronisation'] - 200 * a / all_calls) < 1e-9, p
elif mode == 'threads':
    want = dict(start, cuCtxSetCurrent=1 + a, cuStreamCreate=a, cuMemcpyHtoDAsync_v2=a, cuLaunchKernel=a * b, cuStreamSynchronize=a, cuMemHostAlloc=1)
    assert len(work) == 2 * a and all(n == (b if k[0] == 'kernel' else 1) for k, n in work.items()), work
    assert sorted(k[2] for k in work if k[0] == 'kernel') == list(range(1, a + 1)), work
    assert t['totals']['threads'] == a + 1, t['totals']
    assert size['copy', 'HtoD'] == 256 * a, size
else:
    want = dict(start, cuStreamCreate=1, cuGraphInstantiateWithFlags=1, cuGraphLaunch=b, cuStreamSynchronize=1)
    if mode == 'graph':
        want.update(cuGraphCreate=1, cuGraphAddKernelNode=a, cuGraphAddMemcpyNode=1, cuGraphAddMemsetNode=1)
    else:
        want.update(cuStreamBeginCapture_v2=1, cuStreamEndCapture=1, cuLaunchKernel=a)
    kernels = sum(n for k, n in work.items() if k[:2] == ('kernel', 'fill'))
    assert kernels == a * b, work
    if gpu:
        assert sum(n for k, n in work.items() if k[0] == 'graph') == b, work
    elif mode == 'graph':
        assert work['copy', 'DtoH', 1] == b and work['memset', 'memset', 1] == b and size['copy', 'DtoH'] == 128 * b and size['memset', 'memset'] == 64 * b, work
    else:
        assert sum(work.values()) == a * b, work
assert {k: n for k, (n, _) in calls.items()} == want, calls
assert t['totals']['driver_calls'] == sum(want.values()) and t['dropped'] == 0, t['totals']
# the records themselves
call = {r['fields']['correlation']: r for r in records if r['kind'] == 'call'}
assert len(call) == sum(want.values()), 'a correlation twice'
streams, replays = {}, collections.Counter()
for r in records:
    f = r['fields']
    assert f['end'] >= f['begin'] > 0, r
    if r['kind'] != 'work':
        continue
    if f['source'] == 'none':
        continue
    assert f['end'] > f['begin'] and f['source'] == ('events' if gpu else 'device'), r
    c = call[f['correlation']]['fields']
    kind = {'kernel': 'graph' if mode in ('graph', 'captured') else 'kernel', 'graph': 'graph'}.get(f['work'])
    if mode in ('plain', 'threads'):
        assert c['class'] == f['work'], (r, c)
    else:
        assert c['name'] == 'cuGraphLaunch', (r, c)
        replays[f['replay']] += 1
    assert f['begin'] >= c['begin'], (r, c)
    last = streams.get((f['context'], f['stream']), 0)
    if f['work'] != 'graph' or not gpu:
        assert f['begin'] >= last - f['uncertainty_ns'], ('streams in order', r, last)
        streams[f['context'], f['stream']] = max(last, f['end'])
    if c['name'] in ('cuMemcpyDtoH_v2', 'cuCtxSynchronize') and not gpu:
        assert f['end'] <= c['end'], (r, c)
if mode in ('graph', 'captured') and not gpu:
    assert sorted(replays) == list(range(b)) and len(set(replays.values())) == 1, replays
if mode == 'plain':
    sizes = [r['fields']['arguments'][2] for r in records if r['kind'] == 'call' and r['fields']['name'] == 'cuMemcpyHtoD_v2']
    assert [int(str(s), 0) for s in sizes] == [4096 + i for i in range(a)], sizes[:4]
u = t['utilisation']
assert len(u) == 1 and 0 < u[0]['busy_ns'] <= u[0]['span_ns'] and u[0]['overlap_ns'] <= u[0]['busy_ns'], u
assert u[0]['busy_ns'] + u[0]['overlap_ns'] <= sum(d['time_ns'] or 0 for d in t['device']) + 1, u
P
try() { # DEVICE MODE A B
    rm -rf profile
    if "$MARGAY" run -q -t timeline --device "$1" -o profile -- ./client "$ROOT/tests/inject/fill.ptx" "$2" "$3" "$4" > out 2> err && grep -qx ok out && [ ! -s err ] &&
        "$MARGAY" report profile --json > out.json && "$MARGAY" trace print --json --by-time profile > records && python3 check.py "$@" 2>> err; then
        echo "ok   $*"
    else
        echo "FAIL $*"
        tail -n 8 out err
        failed=1
    fi
}
devices="emu nvidia"
[ -e "$B/lib/margay/libmargay-cpu.so" ] && devices="emu cpu nvidia" || echo "left out cpu: the CPU device is not built here (llvm-19-dev)"
[ -n "${REAL_GPU:-}" ] && devices=nvidia
for device in $devices; do
    try $device plain 50 0
    try $device threads 64 20
    try $device graph 5 30
    try $device captured 4 25
    "$MARGAY" run -q -t timeline --device $device -o profile -- ./client "$ROOT/tests/inject/fill.ptx" arguments x > out 2> err && grep -qx ok out &&
        echo "ok   $device, arguments arrive as they were" || { echo "FAIL $device arguments"; cat out err; failed=1; }
done

# beside a tool that instruments: the same counts, and the kernel's twin is named as the kernel
rm -rf profile
"$MARGAY" run -q -t timeline -t blocks --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" plain 10 > out 2> err &&
    "$MARGAY" report profile --json > out.json && "$MARGAY" trace print --json --by-time profile > records && python3 check.py emu plain 10 0 2>> err && python3 - <<'P' && echo "ok   with blocks" || { echo "FAIL with blocks"; cat out err; failed=1; }
import json
r = json.load(open('out.json'))
assert r['coverage']['instrumented'] == 10 and r['kernels'][0]['blocks'][0]['thread_entries'] == 320, r['coverage']
P

# tau=on: an event for every kernel, stream and thread; its times are the kernels', and what the program waits for is delivered
rm -rf profile
"$MARGAY" run -q -t timeline,tau=on --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" threads 5 7 > out 2> err && "$MARGAY" report profile --json > out.json &&
    "$MARGAY" trace print --json --by-time profile > records && python3 - <<'P' && echo "ok   tau=on" || { echo "FAIL tau=on"; cat out err; failed=1; }
import json, collections
rows = json.load(open('out.json'))['tools']['timeline']['tau']
records = [json.loads(l) for l in open('records')]
begin = {r['fields']['correlation']: (r['fields']['begin'], r['tid']) for r in records if r['kind'] == 'call'}
times, launches, tids = collections.Counter(), collections.defaultdict(list), {}
waits = {r['tid']: r['fields'] for r in records if r['kind'] == 'call' and r['fields']['name'] == 'cuStreamSynchronize'}
for r in records:
    f = r['fields']
    if r['kind'] == 'work' and f['work'] == 'kernel':
        times[f['stream']] += f['end'] - f['begin']
        launches[f['stream']].append((begin[f['correlation']][0], f['end']))
        tids[f['stream']] = begin[f['correlation']][1]
assert len(rows) == 5 and all(r['name'] == 'fill' and r['context'] == '.TAU application' and r['calls'] == 7 for r in rows), rows
assert len({r['thread'] for r in rows}) == 5 and {r['stream'] for r in rows} == set(times), rows
for r in rows:
    w = waits[tids[r['stream']]]
    wait = sum(w['end'] - w['begin'] for _, end in launches[r['stream']] if end > w['begin'])
    final = sum(w['end'] - b for b, _ in launches[r['stream']])
    assert abs(r['inclusive_us'] * 1e3 - times[r['stream']]) < 1 and r['exclusive_us'] == r['inclusive_us'], r
    assert abs(r['wait_us'] * 1e3 - wait) < 1 and abs(r['finalize_us'] * 1e3 - final) < 1, (r, wait, final)
P

# the same where all threads' streams have one handle, launches hide theirs in a structure, and there is a context a thread:
# 5 threads have 5 streams in the shared context and 1 in each of theirs
for device in emu nvidia; do
    rm -rf profile
    "$MARGAY" run -q -t timeline,tau=on --device $device -o profile -- ./client "$ROOT/tests/inject/fill.ptx" own 5 7 > out 2> err && grep -qx ok out &&
        "$MARGAY" report profile --json > out.json && "$MARGAY" trace print --json --by-time profile > records && python3 - <<'P' 2>> err && echo "ok   $device, tau=on, per-thread streams" || { echo "FAIL $device, per-thread streams"; cat out err; failed=1; }
import json, collections
rows = json.load(open('out.json'))['tools']['timeline']['tau']
records = [json.loads(l) for l in open('records')]
call = {r['fields']['correlation']: (r['tid'], r['fields']) for r in records if r['kind'] == 'call'}
waits = collections.defaultdict(list)
for tid, c in sorted(call.values(), key=lambda x: x[1]['begin']):
    if c['name'] == 'cuStreamSynchronize': waits[tid].append(c)
launches = collections.defaultdict(list)
for r in records:
    f = r['fields']
    if r['kind'] == 'work': launches[f['stream']].append((call[f['correlation']], f))
assert len(rows) == 10 and len(launches) == 10 and all(r['calls'] == 7 and r['stream'] for r in rows), rows
assert len(waits) == 5 and all(len(w) == 2 for w in waits.values()), waits
shared = collections.Counter(f['context'] for l in launches.values() for _, f in l)
assert sorted(shared.values()) == [7] * 5 + [35], shared
for r in rows:
    work = launches[r['stream']]
    (tid,) = {tid for (tid, _), _ in work}
    w = next(w for w in waits[tid] if w['begin'] > work[-1][0][1]['begin'])
    assert w['stream'] == r['stream'] and w['context'] == work[0][1]['context'], (w, r)
    wait = sum(w['end'] - w['begin'] for _, f in work if f['end'] > w['begin'])
    final = sum(w['end'] - c['begin'] for (_, c), _ in work)
    if all(f['end'] <= w['end'] for _, f in work): # device times of a GPU have an uncertainty
        assert abs(r['wait_us'] * 1e3 - wait) < 1 and abs(r['finalize_us'] * 1e3 - final) < 1, (r, wait, final)
P
done

# times=twin: instrumented kernels read %globaltimer, which without a GPU is the host's clock: within the driver's own times
# of the same launch, as the profile has them. Over the emulator through NVIDIA's code path the clocks' distance, which is 0, is
# found within what is printed.
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia; do
    rm -rf profile
    "$MARGAY" run -q -t timeline,times=twin --device $device -o profile -- ./client "$ROOT/tests/inject/fill.ptx" threads 6 8 > out 2> err && grep -qx ok out &&
        "$MARGAY" report profile --json > out.json && "$MARGAY" trace print --json --by-time profile > records && python3 - $device <<'P' 2>> err && echo "ok   $device, times=twin" || { echo "FAIL $device, times=twin"; cat out err; failed=1; }
import json, sys
r = json.load(open('out.json'))
assert r['coverage']['instrumented'] == 48 and r['coverage']['failed'] == 0, r['coverage']
records = [json.loads(l) for l in open('records')]
call = {x['fields']['correlation']: x['fields'] for x in records if x['kind'] == 'call'}
kernels = [x['fields'] for x in records if x['kind'] == 'work' and x['fields']['work'] == 'kernel']
assert len(kernels) == 48 and all(k['source'] == 'twin' for k in kernels), kernels
launches = {l['id']: l for l in r['launches']}
start = min(p['start_ns'] for p in r['tools']['timeline']['processes'])
ends = {}
for k in sorted(kernels, key=lambda k: k['launch']):
    assert k['end'] > k['begin'] >= call[k['correlation']]['begin'], k
    if sys.argv[1] == 'nvidia':
        assert k['uncertainty_ns'] > 0, k
        continue
    assert k['uncertainty_ns'] == 0 and k['begin'] >= ends.get(k['stream'], 0), (k, ends)
    ends[k['stream']] = k['end']
    assert k['end'] - k['begin'] <= launches[k['launch']]['time_ns'], (k, launches[k['launch']])
syncs = [c for c in call.values() if c['name'] == 'cuStreamSynchronize']
slack = max(k['uncertainty_ns'] for k in kernels)
assert max(k['end'] for k in kernels) <= max(c['end'] for c in syncs) + slack, slack
P
done

# filters: what is left out costs nothing and is not there; device work stays
rm -rf profile
"$MARGAY" run -q -t 'timeline,class=copy+memset,name=cuMem*' --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" plain 4 > out 2> err && "$MARGAY" report profile --json > out.json && python3 - <<'P' && echo "ok   filters" || { echo "FAIL filters"; cat out err; failed=1; }
import json
t = json.load(open('out.json'))['tools']['timeline']
assert {c['name']: c['count'] for c in t['calls']} == {'cuMemcpyHtoD_v2': 4, 'cuMemcpyDtoH_v2': 8, 'cuMemsetD32_v2': 4}, t['calls']
assert t['totals']['launches'] == 4, t['totals']
P
for bad in class=copies times=never memory=0 name; do
    "$MARGAY" run -t timeline,$bad --device emu -o bad -- ./client > out 2> err
    [ $? = 120 ] && [ "$(wc -l < err)" -le 3 ] && grep -q timeline err && echo "ok   $bad is refused" || { echo "FAIL $bad"; cat err; failed=1; }
done

# the runtime's calls, each with those of the driver that it makes; the driver's alone without them
for how in auto on off; do
    rm -rf profile
    env -u LD_LIBRARY_PATH "$MARGAY" run -q -t timeline,runtime=$how --device emu -o profile -- "$EX/saxpy-rt" > out 2> err && grep -q PASSED out &&
        "$MARGAY" trace print --json --by-time profile > records && python3 - $how <<'P' && echo "ok   runtime=$how" || { echo "FAIL runtime=$how"; cat out err; failed=1; }
import json, sys, collections
calls = {r['fields']['correlation']: r['fields'] for r in map(json.loads, open('records')) if r['kind'] == 'call'}
n = collections.Counter(c['name'] for c in calls.values() if c['layer'] == 'runtime')
driver = collections.Counter(c['name'] for c in calls.values() if c['layer'] == 'driver')
assert driver['cuMemcpyHtoD_v2'] == 2 and driver['cuMemcpyDtoH_v2'] == 1 and driver['cuLaunchKernel'] == 1 and not driver['cuGetExportTable'], driver
if sys.argv[1] == 'off':
    assert not n, n
else:
    assert {k: n[k] for k in ('cudaMalloc', 'cudaMemcpy', 'cudaLaunchKernel', 'cudaDeviceSynchronize', 'cudaFree')} == {'cudaMalloc': 2, 'cudaMemcpy': 3, 'cudaLaunchKernel': 1, 'cudaDeviceSynchronize': 1, 'cudaFree': 2}, n
    inside = {'cuMemcpyHtoD_v2': 'cudaMemcpy', 'cuMemcpyDtoH_v2': 'cudaMemcpy', 'cuLaunchKernel': 'cudaLaunchKernel', 'cuMemAlloc_v2': 'cudaMalloc', 'cuMemFree_v2': 'cudaFree', 'cuCtxSynchronize': 'cudaDeviceSynchronize'}
    for c in calls.values():
        if c['name'] in inside:
            o = calls[c['outer']]
            assert o['name'] == inside[c['name']] and o['begin'] <= c['begin'] and c['end'] <= o['end'] and o['class'] == c['class'], (c, o)
P
done

# the end of a process whose threads go on calling: whole, but for what 16 threads made faster than it could be written, which is told
for k in 1 2 3 4 5; do
    rm -rf profile
    "$MARGAY" run -q -t timeline --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" ends 16 > out 2> err && grep -qx ok out && { "$MARGAY" trace verify profile > out 2>> err || ! grep -vE 'found no free buffer, 0 could not be written$|^margay: the time line lacks ' err; } ||
        { echo "FAIL ends $k"; cat out err; failed=1; }
done
[ $k = 5 ] && [ $failed = 0 ] && echo "ok   the process ends while threads make calls"

# from the call to the kernel's begin, by brute force
rm -rf profile
"$MARGAY" run -q -t timeline --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" plain 41 > out 2> err && "$MARGAY" report profile --json > out.json 2>> err &&
    "$MARGAY" trace print --json profile > records && python3 - 2>> err <<'P' && echo "ok   latency" || { echo "FAIL latency"; cat err; failed=1; }
import json
records = [json.loads(l) for l in open('records')]
begin = {r['fields']['correlation']: r['fields']['begin'] for r in records if r['kind'] == 'call'}
d = sorted(r['fields']['begin'] - begin[r['fields']['correlation']] for r in records if r['kind'] == 'work' and r['fields']['work'] == 'kernel')
l = json.load(open('out.json'))['tools']['timeline']['launch_latency']
assert (l['count'], l['min_ns'], l['max_ns']) == (len(d), d[0], d[-1]) == (41, d[0], d[-1]), (l, d)
for what, at in (('median_ns', 20), ('p95_ns', 38)): assert abs(l[what] - d[at]) <= d[at] / 32, (what, l, d)
P

# sampled: the first four launches of a kernel are timed, and each eighth of the others; all are there
rm -rf profile
"$MARGAY" run -q -t timeline,sample=8 --device nvidia -o profile -- ./client "$ROOT/tests/inject/fill.ptx" plain 40 > out 2> err && "$MARGAY" report profile --json > out.json 2>> err && python3 - 2>> err <<'P' && echo "ok   sampled" || { echo "FAIL sampled"; cat err; failed=1; }
import json
rows = [(d['count'], d['untimed']) for d in json.load(open('out.json'))['tools']['timeline']['device'] if d['kind'] == 'kernel']
assert rows == [(40, 40 - 4 - 5)], rows
P

# killed: all but the last second is there
rm -rf profile
"$MARGAY" run -q -t timeline --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" loop x > count 2> err &
run=$!
sleep 4
pid=$(pgrep -P $run -x client || pgrep -P "$(pgrep -P $run | head -1)" -x client)
before=$(tail -n 1 count)
sleep 1.2
kill -9 "$pid"
wait $run 2> /dev/null
"$MARGAY" report profile --json > out.json 2> err && python3 - "$before" <<'P' && echo "ok   killed" || { echo "FAIL killed ($before)"; cat err; failed=1; }
import json, sys
t = json.load(open('out.json'))['tools']['timeline']
n = int(sys.argv[1])
have = {c['name']: c['count'] for c in t['calls']}
assert n > 100 and have['cuLaunchKernel'] >= n and have['cuCtxSynchronize'] >= n and t['totals']['launches'] >= n, (n, have)
assert not t['processes'][0]['closed'], t['processes']
P

# a trace that is cut off is no silent gap of the report
rm -rf profile
"$MARGAY" run -q -t timeline --device emu -o profile -- ./client "$ROOT/tests/inject/fill.ptx" ends 16 > out 2> err
"$MARGAY" report profile > out 2> err || { echo "FAIL whole"; cat err; failed=1; }
for bytes in 0 10 200; do
    rm -rf cut; cp -r profile cut; truncate -s $bytes cut/trace/*.mgt
    "$MARGAY" report cut > out 2> err
    [ $? = 3 ] && grep -q "cut/trace/.*damaged" err || { echo "FAIL cut to $bytes bytes"; cat err; failed=1; }
done
exit $failed
