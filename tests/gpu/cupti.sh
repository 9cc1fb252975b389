#!/bin/sh
# The time line's kernels against CUPTI's, in the same run: lengths of kernels over 10 ms within 0.03 %, at least 95 % of all
# starts and ends within the printed uncertainty, order alike, alignment of the second half within 2 us of the first's. Prints bias and scatter by length. SECONDS_APART=480: the
# second half of the kernels that much later. TIMES=twin: kernels timed by their own clock, 95 % of the lengths within 1 us of CUPTI's.
# CUPTI=PATH names the library.
set -u
gcc -O1 -Wall -o cupti "$ROOT/tests/gpu/cupti.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -ldl || exit 1
export TIMES="${TIMES:-events}"
"$MARGAY" run -q -t timeline,times=$TIMES --device nvidia -o profile -- ./cupti cupti.txt "${SECONDS_APART:-10}" > out 2> err
rc=$?
[ $rc = 77 ] && { cat out; exit 77; }
[ $rc = 0 ] && grep -qx ok out || { cat out err; exit 1; }
"$MARGAY" trace print --json --by-time profile > records && python3 - <<'P'
import json, os, sys
twin = os.environ['TIMES'] == 'twin'
theirs = sorted(tuple(map(int, l.split())) for l in open('cupti.txt'))
ours = sorted((r['fields']['begin'], r['fields']['end'], r['fields']['uncertainty_ns'], r['fields']['source'])
              for r in map(json.loads, open('records')) if r['kind'] == 'work' and r['fields']['work'] == 'kernel')
assert len(ours) == len(theirs), (len(ours), len(theirs))
untimed = sum(o[3] == 'none' for o in ours)
print('kernels', len(ours), 'untimed', untimed)
rows, inside, worst = {}, 0, 0
for o, t in zip(ours, theirs):
    if o[3] == 'none':
        continue
    length = t[1] - t[0]
    key = min((2000, 5000, 10000, 20000, 100000, 1000000, 12000000, 60000000), key=lambda k: abs(k - length))
    rows.setdefault(key, []).append((o[0] - t[0], o[1] - t[1], (o[1] - o[0]) - length, length, o[2]))
    ok = abs(o[0] - t[0]) <= o[2] and abs(o[1] - t[1]) <= o[2]
    inside += ok
q = lambda v, p: sorted(v)[min(len(v) - 1, int(p * len(v)))]
print('length_ns      n  start: median  p95|.|   end: median  p95|.|   length: median  p95|.|  uncertainty: median')
bad = 0
for key in sorted(rows):
    v = rows[key]
    med = lambda i: q([x[i] for x in v], 0.5)
    p95 = lambda i: q([abs(x[i]) for x in v], 0.95)
    print('%9d %6d  %13d %7d   %11d %7d   %14d %7d  %12d' % (key, len(v), med(0), p95(0), med(1), p95(1), med(2), p95(2), q([x[4] for x in v], 0.5)))
    bad += twin and p95(2) > 1000
    if key >= 10000000:
        total = sum(x[3] for x in v)
        share = 100 * abs(sum(x[2] for x in v)) / total
        print('          inclusive differs by %.4f %%' % share)
        bad += share > 0.03
n = sum(map(len, rows.values()))
print('within the printed uncertainty: %.1f %%' % (100 * inside / n))
starts = [o[0] - t[0] for o, t in zip(ours, theirs) if o[3] != 'none']
half = len(starts) // 2
print('start, median: first half %d ns, second half %d ns' % (q(starts[:half], 0.5), q(starts[half:], 0.5)))
bad += abs(q(starts[half:], 0.5) - q(starts[:half], 0.5)) > 2000
bad += inside < 0.95 * n
sys.exit(bad != 0)
P
