#!/bin/sh
# Two matrix multiplications of unequal sizes on a GPU, half of it each: witness is the union of each process' CTA spans by
# %globaltimer, which the programs record themselves. Then every kind of launch, and a scheduler that is killed.
set -u
[ -n "$NVCC" ] || { echo "no nvcc"; exit 77; }
failed=0
fail() { echo "FAIL $*"; failed=1; tail -n 5 out err 2> /dev/null; }
"$ROOT/bench/sched/run" --margay "$MARGAY" --device nvidia --seconds 6 --out exp figures three gate > exp.txt 2>&1 || fail "bench/sched: some second is off by more than its bound"
cat exp.txt
python3 - <<'P' || fail "shares"
import json
for name, want in ('figure-8b', (50, 50)), ('three', (50, 30, 20)):
    r = json.load(open(f'exp/{name}.json'))
    got = [p['device_share_pct'] for p in r['programs']]
    assert all(abs(g - w) < 3 for g, w in zip(got, want)), (name, got)
    assert all(p['launches'] > 100 and p['exit'] == 0 for p in r['programs']), r['programs']
P
gcc -O1 -g -Wall -o worker "$ROOT/tests/sched/worker.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
for mode in sync streams threads graph coop copies capture beside exec spin; do
    rm -rf dir; timeout 60 "$MARGAY" sched -q --device nvidia -o dir --json out.json -- A: ./worker 20000 0.5 $mode -- B: ./worker 200000 0.5 > out 2> err || fail "$mode: $?"
    [ "$(grep -c ', ok$' out)" = 2 ] || fail "$mode: not every program ended well"
    python3 -c 'import json; print(*((p["name"], p["device_share_pct"], p["launches"], "longest", p["longest_ns"] / 1e6, "forced", p["forced"]) for p in json.load(open("out.json"))["programs"]))'
done
rm -rf dir; timeout 60 "$MARGAY" sched -q --device nvidia -o dir --json out.json -- A: ./worker 20000 x2000 threads -- B: ./worker 200000 x2000 streams > out 2> err || fail "streams: $?"
python3 "$ROOT/tests/sched/union.py" "$MARGAY" dir out.json || fail "kernels that run at once are not charged once"
rm -rf dir; "$MARGAY" sched -q --device nvidia -o dir -- A: ./worker 20000 2 -- B: ./worker 200000 2 > out 2> err & s=$!
sleep 2; kill -9 $s; wait $s 2> /dev/null
for i in $(seq 40); do [ "$(grep -c ', ok$' out)" = 2 ] && break; sleep 0.5; done
[ "$(grep -c ', ok$' out)" = 2 ] || fail "the scheduler is killed"
exit $failed
