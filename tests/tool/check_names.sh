#!/bin/sh
# What --check and faults name: kernels and variables as the source spells them, variables of the module under a tool, too, whose
# twin reaches them by address.
set -u
[ -n "$NVCC" ] || { echo "no nvcc"; exit 77; }
cat > names.cu <<'C'
#include <cstdio>
#include <cstdlib>
namespace lab {
__managed__ int shared_with_host[64];
__device__ int plain[64];
template <int N> __global__ void race(int *p)
{
    __shared__ int tile[N];
    shared_with_host[threadIdx.x % 7] = threadIdx.x;
    plain[threadIdx.x % 7] = threadIdx.x;
    p[threadIdx.x % 7] = threadIdx.x;
    tile[threadIdx.x % 7] = threadIdx.x;
    __syncthreads();
    p[threadIdx.x + 8] = tile[threadIdx.x % 7];
}
__global__ void overrun(int at) { plain[at] = 1; }
}
int main(int argc, char **argv)
{
    int *p;
    cudaMalloc(&p, 4096);
    if (argc > 1) lab::overrun<<<1, 1>>>(atoi(argv[1]));
    else lab::race<64><<<1, 32>>>(p);
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -O1 -arch=compute_90 -o names names.cu || exit 1
failed=0
for tool in none blocks; do
    "$MARGAY" run --device emu --check -t $tool -o $tool -- ./names > out 2> err && "$MARGAY" report $tool --json > $tool.json && python3 - $tool <<'P' || { cat out err; failed=1; }
import json, sys
found = json.load(open(sys.argv[1] + '.json'))['tools']['check']['findings']
assert sorted(f['allocation']['name'] for f in found) == ['lab::plain', 'lab::shared_with_host', 'the buffer of arg 0', 'tile'], found
P
    [ "$(grep -c '^margay: kernel void lab::race<64>(int\*): race: write of 4 bytes' err)" = 4 ] || { cat err; failed=1; }
    rm -rf over
    "$MARGAY" run --device emu --check -t $tool -o over -- ./names 70 > out 2> err
    grep -q 'CUDA_\{0,1\}.*Error\|cudaErrorIllegalAddress' out && grep -q 'kernel lab::overrun(int): .*; 24 bytes past the end of the variable `lab::plain`, 0x[0-9a-f]* of 256 bytes' err || { cat out err; failed=1; }
done
exit $failed
