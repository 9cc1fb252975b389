#!/bin/sh
# Tool span: every launch has its time by the device's clock. Kernels that turn until so many ns of %globaltimer are over take no
# less, all of them together no more than the program's streams had; without the tool few are timed on a GPU. Over the emulator in
# NVIDIA's place; REAL_GPU=1: on a GPU.
# clock
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH="$B/test/driver:$B/lib/margay/cudart"
cat > turn.cu <<'C'
#include <cstdio>
#include <cstdlib>
#include <ctime>
__device__ unsigned long long now() { unsigned long long t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t; }
__global__ void turn(unsigned long long ns) { for (unsigned long long t = now(); now() < t + ns;); }
int main(int argc, char **argv)
{
    int n = atoi(argv[1]), streams = atoi(argv[2]);
    cudaStream_t s[4];
    for (int i = 0; i < streams; i++) cudaStreamCreate(&s[i]);
    cudaFree(0);
    for (int i = 0; i < n; i++) turn<<<2, 32, 0, s[i % streams]>>>(20000 + 10000 * (i % 3));
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    puts("done");
}
C
"$NVCC" -O1 -cudart shared -gencode arch=compute_90,code=compute_90 -o turn turn.cu || exit 1
check() { # DIR LAUNCHES EVENTS-ALONE
    "$MARGAY" report "$1" --json > r.json && python3 - "$2" "$3" <<'P'
import json, sys
r, n, alone = json.load(open('r.json')), int(sys.argv[1]), int(sys.argv[2])
l = r['launches']
assert len(l) == n and all(x['ran'] == 'instrumented' for x in l), len(l)
times = [x['time_ns'] for x in l]
if alone:
    assert sum(t is not None for t in times) < n, 'events alone timed every launch'
    sys.exit()
assert None not in times, [x for x in l if x['time_ns'] is None][:2]
short = [(i, t) for i, t in enumerate(times) if t < 20000 + 10000 * (i % 3)]
assert not short, short[:4]
P
}
failed=0
for streams in 1 3; do
    for tools in '-t span' '-t blocks -t span' '-t lanes -t span'; do
        # shellcheck disable=SC2086
        { rm -rf d && "$MARGAY" run -q --device nvidia $tools -o d -- ./turn 300 $streams > out && grep -q done out && check d 300 0; } ||
            { echo "FAIL $tools, $streams streams"; failed=1; }
    done
done
rm -rf d && "$MARGAY" run -q --device nvidia -o d -- ./turn 300 1 > out && check d 300 1 || { echo 'FAIL blocks alone'; failed=1; }
# behind a scheduler's gate it is added, once, and what is charged is the time by that clock
for tools in '' '-t span -t blocks'; do
    # shellcheck disable=SC2086
    rm -rf s && "$MARGAY" sched -q --device nvidia $tools -o s --json s.json -- A: ./turn 200 1 > out && "$MARGAY" report s/A --json > a.json && python3 - <<'P' || { echo "FAIL behind the gate: $tools"; failed=1; }
import json
a, s = json.load(open('a.json')), json.load(open('s.json'))['programs'][0]
assert set(a['tools']) >= {'blocks', 'span'}, a['tools'].keys()
times = [l['time_ns'] for l in a['launches']]
assert None not in times and sum(times) == s['device_ns'], (sum(times), s['device_ns'])
P
done
# corrections of what was charged come at any time, also between two turns: nobody is left waiting
for round in 1 2; do
    rm -rf s && timeout 300 "$MARGAY" sched -q --device nvidia --share A=40,B=30,C=20,D=10 -o s -- A: ./turn 4000 1 -- B: ./turn 2000 1 -- C: ./turn 1000 3 -- D: ./turn 500 1 > out &&
        [ "$(grep -c done out)" = 4 ] || { echo "FAIL four programs, round $round"; failed=1; }
done
exit $failed
