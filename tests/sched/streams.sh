#!/bin/sh
# Kernels that run at once on a GPU are charged for the time in which the device worked for their program: that is the union of
# its launches' times, as its profile has them. Over the stand-in for a GPU, whose streams run beside one another.
set -u
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
gcc -O1 -g -Wall -o worker "$ROOT/tests/sched/worker.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
timeout 100 "$MARGAY" sched -q --device nvidia -o dir --json out.json -- A: ./worker 3000 x64 threads -- B: ./worker 3000 x256 streams > out 2> err || { cat out err; exit 1; }
for n in A B; do "$MARGAY" report --json --per-launch dir/$n > $n.json || exit 1; done
python3 - <<'P'
import json
for p in json.load(open('out.json'))['programs']:
    launches = json.load(open(p['name'] + '.json'))['launches']
    spans = sorted((l['start_ns'], l['start_ns'] + l['time_ns']) for l in launches if l['time_ns'])
    union = until = 0
    for begin, end in spans:
        union += max(0, end - max(begin, until))
        until = max(until, end)
    print(p['name'], 'sum', sum(e - b for b, e in spans), 'union', union, 'charged', p['device_ns'])
    assert len(spans) == len(launches) == 256, len(spans)
    assert abs(p['device_ns'] - union) < 0.03 * union, p['name']
P
