#!/bin/sh
# Code that the driver links before it runs: cuLink of PTX (launched the way of CUDA 3), and relocatable
# device code of two files with functions, variables and equal private names between them. Every launch
# is instrumented, counts are those of the geometry and of the witness; the same in front of a GPU's
# driver (a stand-in over the emulator), where Margay links the relocatable PTX itself.
set -u
failed=0
try() { # WHAT "launches" "entries of all blocks, sorted" PROGRAM [OPTIONS]
    rm -rf profile
    if "$MARGAY" run -q --strict $5 -o profile -- "$4" > out 2> err && grep -q '^ok$' out && [ ! -s err ] &&
        "$MARGAY" report profile --json > out.json && python3 - "$2" "$3" >> err 2>&1 <<'P' && { [ "$5" ] || "$ROOT/tests/witness" -- "$4" >> err 2>&1; }; then
import json, sys
r = json.load(open('out.json'))
c = r['coverage']
assert c['launches'] == c['instrumented'] == len(r['launches']) == int(sys.argv[1]), c
assert all(l['block'] == [64, 1, 1] for l in r['launches']), r['launches']
have = ' '.join(str(n) for n in sorted(b['thread_entries'] for k in r['kernels'] for b in k['blocks']))
assert have == sys.argv[2], have
P
        echo "ok   $1"
    else
        echo "FAIL $1"
        cat out err
        failed=1
    fi
}
gcc -O1 -o legacy "$ROOT/tests/inject/legacy.c" -L"$B/lib/margay/driver" -lcuda -Wl,--allow-shlib-undefined || exit 1
# entries of fill: all 576 threads, 464 that pass the guard call, 464 return from the call, 576 end; value: 464
try "cuLink, cuLaunchGrid" 3 "464 464 464 576 576" ./legacy ""
gpu() { LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart XDG_CACHE_HOME=$PWD/cache try "$@" "--device nvidia"; }
gpu "cuLink, cuLaunchGrid, in front of a driver" 3 "464 464 464 576 576" ./legacy
[ -n "$NVCC" ] || exit $failed
cat > a.cu <<'C'
#include <cstdio>
extern __device__ int twice(int);
extern __device__ int offset;
static __device__ __noinline__ int same(int x) { return x + 1; }
__global__ void first(int *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = twice(i) + same(i) + offset;
}
__global__ void second(int *p, int n);
int main()
{
    int *p, h[200], bad = 0;
    cudaMalloc(&p, sizeof h);
    first<<<4, 64>>>(p, 200);
    second<<<4, 64>>>(p, 200);
    cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 200; i++)
        bad += h[i] != (2 * i + (i + 1) + 5) * 3 + 100;
    cudaError_t e = cudaGetLastError();
    puts(e ? cudaGetErrorString(e) : bad ? "bad" : "ok");
    return bad || e;
}
C
cat > b.cu <<'C'
__device__ int offset = 5;
static __device__ __noinline__ int same(int x) { return x + 100; }
__device__ int twice(int x) { return 2 * x; }
__global__ void second(int *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = same(p[i] * 3);
}
C
"$NVCC" -cudart shared -rdc=true -arch=sm_90 -o linked a.cu b.cu || exit 1
# 256 threads enter and leave both kernels; 200 call: 3 blocks in first, 2 in second, 3 functions
try "-rdc=true" 2 "200 200 200 200 200 200 200 200 256 256 256 256" ./linked ""
gpu "-rdc=true, in front of a driver" 2 "200 200 200 200 200 200 200 200 256 256 256 256" ./linked
exit $failed
