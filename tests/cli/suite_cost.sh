#!/bin/sh
# scripts/suite-cost: what it says of times that are known beforehand, and that it runs a program.
mkdir bin fake
printf '#!/bin/sh\nexit 0\n' > bin/app
cat > fake/margay <<'P'
#!/bin/sh
[ "$1" = run ] || cat "$(dirname "$0")/report"
P
chmod +x bin/app fake/margay
python3 - > fake/report <<'P'
import json
launches = []
def runs(kernel, how, times):
    launches.extend({'kernel': kernel, 'grid': [1, 1, 1], 'block': [32, 1, 1], 'time_ns': t, 'complete': True, 'ran': how,
                     'reason': 'native, for its time' if how == 'native' else None} for t in times)
for turn in range(8):                       # the first of a turn is left out; slow: 3 us more in every turn
    runs(0, 'native', [90000] + [5000 + turn] * 3)
    runs(0, 'instrumented', [90000] + [8000 + turn] * 3)
for turn in range(8):                       # noisy: 2.5 us more in the median, 1 or 4 in some turns
    runs(1, 'native', [90000] + [6000] * 3)
    runs(1, 'instrumented', [90000] + [6000 + (1000, 1000, 2500, 2500, 2500, 2500, 4000, 4000)[turn]] * 3)
for turn in range(3):                       # long, too few turns for an interval
    runs(2, 'native', [90000] + [40000] * 3)
    runs(2, 'instrumented', [90000] + [50000] * 3)
print(json.dumps({'kernels': [{'id': k, 'name': n} for k, n in enumerate(('slow', 'noisy', 'long'))], 'launches': launches}))
P
"$ROOT/scripts/suite-cost" --bin bin --margay fake/margay --json out.json > out || exit 1
cut -f2,5- out > rows
cat > wanted <<'P'
long	40.00	50.00	9/9	1.250	10.00	-	-
noisy	6.00	8.50	24/24	1.417	2.50	1.00	4.00
slow	5.00	8.00	24/24	1.600	3.00	3.00	3.00
P
grep -v '^#' rows | cmp - wanted || { echo "FAIL rows"; cat out; exit 1; }
grep -q '^# 1 kernels of 20 us or more: geomean 1.250, worst 1.250' out &&
    grep -q '^# 2 shorter ones: .* 2 over 2 us; of 2 with an interval 1 surely, 2 perhaps; native against native 0 over 2 us' out || { echo "FAIL sums"; cat out; exit 1; }
rm bin/app && cp "$EX/histogram" bin/ && "$ROOT/scripts/suite-cost" --bin bin --margay "$MARGAY" --device emu --repeat 4 > out || { echo "FAIL emu"; cat out; exit 1; }
grep -q '^histogram	histogram	.*	3/4	' out || { echo "FAIL emu: $(cat out)"; exit 1; }
