#!/bin/sh
# margay diff of a grid with one CTA more than multiprocessors, of work that fills the device and of work that waits: the interval's ends are
# what formulas allow, and an interval that holds 0 is neither a verdict nor fails a gate. Sizes are drawn by SEED.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
echo "SEED=$seed"
cat > more.cu <<'C'
#include <cstdio>
#include <cstdlib>
__global__ void turn(float *out, int rounds)
{
    float s = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) s = s * 1.01f + .5f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
int main(int argc, char **argv)
{
    int ctas = atoi(argv[1]), threads = atoi(argv[2]);
    float *out;
    cudaMalloc(&out, 4ul * ctas * threads);
    turn<<<ctas, threads>>>(out, atoi(argv[3]));
    return cudaDeviceSynchronize() != cudaSuccess;
}
C
"$NVCC" -cudart shared -O2 -gencode arch=compute_90,code=compute_90 -o more more.cu
run() { "$MARGAY" run -q --device cpu -t advise -o "$@"; }
rounds=$((500 + seed % 500)) warps=$((4 + seed % 4)) sms=132 # as the software devices answer
run even -- ./more $sms $((32 * warps)) $rounds
run odd -- ./more $((sms + 1)) $((32 * warps)) $rounds
run full -- ./more $((2 * sms)) 1024 $rounds
run over -- ./more $((2 * sms + 1)) 1024 $rounds
"$MARGAY" diff --fail-on work+0% even odd > out # it fits beside another one, and none of them fills a multiprocessor
grep -q '^verdict: unclear: ' out && grep -q ' unclear  *work$' out || { cat out; exit 1; }
"$MARGAY" diff --fail-on work+0% odd even > out # nor the other way round
rc=0
"$MARGAY" diff --fail-on work+0% full over > out 2> err || rc=$?
[ $rc = 1 ] && grep -q '^verdict: worse: ' out || { echo "a third CTA of 1,024 threads: $rc"; cat out err; exit 1; }
"$MARGAY" diff --json even odd > odd.json
"$MARGAY" diff --json full over > over.json
python3 - <<'P'
import json
odd, over = (json.load(open(f + '.json'))['verdict'] for f in ('odd', 'over'))
low, high = odd['interval_pct']
# one multiprocessor has two CTAs: not longer if they only wait, twice as long if they fill it
assert abs(low) < .05 and 0 <= high <= 100.001 and abs(odd['full_device_pct'] - 100) < .05, odd
low, high = over['interval_pct']
assert 49.9 < low <= high <= 100.001, over # three CTAs where others have two: 3 / 2, or two turns in place of one
P
