#!/bin/sh
# Findings of a run that counts some launches (--launches) are those of all: launches without counts cost no launching of CTAs, and their kernel's
# share is as if they were like the others. Sizes are drawn by SEED.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
echo "SEED=$seed"
cat > some.cu <<'C'
#include <cstdlib>
__global__ void strided(float *out, const float *in, int step) { out[blockIdx.x * 512 + threadIdx.x] = in[(blockIdx.x * 512 + threadIdx.x) * step]; }
__global__ void plain(float *out, int rounds)
{
    float s = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) s = s * 1.01f + .5f;
    out[blockIdx.x * 512 + threadIdx.x] = s;
}
int main(int argc, char **argv)
{
    float *out, *in;
    cudaMalloc(&out, 4 << 18), cudaMalloc(&in, 4 << 23);
    plain<<<500, 512>>>(out, atoi(argv[1]));
    for (int i = 0; i < atoi(argv[2]); i++) strided<<<500, 512>>>(out, in, 32);
    return cudaDeviceSynchronize() != cudaSuccess;
}
C
"$NVCC" -cudart shared -O2 -lineinfo -gencode arch=compute_90,code=compute_90 -o some some.cu
rounds=$((500 + seed % 500)) launches=$((20 + seed % 20))
"$MARGAY" run -q --device cpu -t advise -o all -- ./some $rounds $launches
"$MARGAY" run -q --device cpu -t advise --launches 0-1 -o first -- ./some $rounds $launches
"$MARGAY" report --json all > all.json
"$MARGAY" report --json first > first.json
python3 - <<'P'
import json
all, first = (json.load(open(f + '.json')) for f in ('all', 'first'))
assert first['coverage']['instrumented'] == 2 < all['coverage']['instrumented'], first['coverage']
pick = lambda j: [(f['rule'], f['line'], round(f['gain_pct'], 3), round(f['share_pct'], 3)) for f in j['findings']]
assert pick(all) == pick(first) and any(r == 'uncoalesced' for r, *_ in pick(all)), (pick(all), pick(first))
P
