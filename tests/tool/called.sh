#!/bin/sh
# Kernels with many accesses call functions for requests that are no whole warp in order (a driver over the emulator): their
# counts are those of the emulator, which has no such code. All spaces, widths, orders; some lanes and all; in functions, with
# dynamic shared memory, where nothing lies near the threads. Kernels with few accesses have no calls. SEED=S repeats a run.
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
seed=${SEED:-$(date +%s)}
echo "SEED=$seed"
cat > called.cu <<'C'
#include <cstdio>
#include <cstdlib>
__constant__ int table[256];
template <class T> __device__ void some(T *to, const T *from, const int *any, int t, int step, int off, unsigned mask)
{
    to[t * step + off] = from[t * step];
    to[t] = from[t + off];
    if (mask >> (t % 32) & 1) to[any[t] + 1] = from[any[t + 1]];
    if (t > off) to[t + 64] = from[off];
    if (t % 3) {
        to[t / 3] = from[t + 32];
        to[512 + 2 * t] = from[512 - t];
    }
    for (int k = t; k < 3 * off; k += 17) to[k] = from[any[k]]; // lanes leave one after another
}
template <class T> __device__ __noinline__ void apart(T *to, const T *from, const int *any, int t, int step, int off, unsigned mask)
{
    some(to, from, any, t, step, off, mask);
    some(to, from, any, t, 1, off + 1, ~mask);
}
template <class T> __global__ void many(T *to, const T *from, const int *any, int *n, int step, int off, unsigned mask)
{
    __shared__ T s[1280];
    int t = threadIdx.x + blockDim.x * threadIdx.y, size = blockDim.x * blockDim.y, own[16];
    for (int i = t; i < 1280; i += size) s[i] = from[i];
    for (int i = 0; i < 16; i++) own[any[i] % 16] = t + i;
    __syncthreads();
    some(to + 8192 * blockIdx.x, from, any, t, step, off, mask);
    some(s, from, any, t, step & 3, off, mask);
    __syncthreads();
    some(to + 8192 * blockIdx.x, s, any, t, step & 3, off, mask);
    atomicAdd(&n[any[t] % 7], table[any[t] % 256] + own[any[t] % 16]);
    if (mask >> (t % 32) & 1) atomicMax(&n[t % 7 + 8], table[t % 4]);
    T *either = mask & 1 ? s : to + 8192 * blockIdx.x; // nobody knows where
    either[t] = from[t];
    either[any[t] % 256] = from[threadIdx.y * 32 + threadIdx.x];
}
extern __shared__ double moving[]; // its words would move: none of ours lie there
template <class T> __global__ void far(T *to, const T *from, const int *any, int step, int off, unsigned mask)
{
    int t = threadIdx.x + blockDim.x * threadIdx.y;
    T *s = (T *)moving;
    for (int i = t; i < 1280; i += blockDim.x * blockDim.y) s[i] = from[i];
    __syncthreads();
    some(s, from, any, t, step & 3, off, mask);
    some(to + 8192 * blockIdx.x, s, any, t, step & 3, off, mask);
    apart(to + 8192 * blockIdx.x, from, any, t, step, off, mask);
}
__global__ void peers(unsigned *to, const unsigned *from)
{
    unsigned t = threadIdx.x;
#pragma unroll
    for (int k = 0; k < 24; k++) {
        unsigned v = from[64 * k + t], all = ~0u;
        if (t % 32 != v % 32) to[64 * k + t] = from[t + k];
#pragma unroll
        for (int bit = 0; bit < 8; bit++) {
            unsigned b;
            asm("{ .reg .pred p; and.b32 %0, %1, %2; setp.ne.u32 p, %0, 0; vote.ballot.sync.b32 %0, p, 0xffffffff; @!p not.b32 %0, %0; }"
                : "=r"(b) : "r"(v), "r"(1 << bit));
            all &= b;
        }
        to[2048 + 64 * k + t] = __popc(all);
    }
}
template <class T> __global__ void few(T *to, const T *from)
{
    to[threadIdx.x * 3] = from[threadIdx.x];
}
template <class T> void run()
{
    static const dim3 blocks[] = {dim3(64), dim3(48), dim3(8, 8), dim3(7, 9), dim3(128)};
    size_t bytes = sizeof(T) * 65536;
    unsigned char *host = (unsigned char *)malloc(bytes);
    int any[4096], *at, *n;
    T *a, *b;
    for (size_t i = 0; i < bytes; i++) host[i] = (unsigned char)rand();
    int spread = 1 << rand() % 9;
    for (int i = 0; i < 4096; i++) any[i] = i < 40 ? 3 * i : rand() % spread + (i % 7 ? i % 512 : 3);
    cudaMalloc(&a, bytes), cudaMalloc(&b, bytes), cudaMalloc(&at, sizeof any), cudaMalloc(&n, 64);
    cudaMemset(n, 0, 64);
    cudaMemcpy(b, host, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(at, any, sizeof any, cudaMemcpyHostToDevice);
    for (int i = 0; i < 3; i++) {
        unsigned mask = i ? (unsigned)rand() * 3u : ~0u;
        int step = rand() % 9, off = rand() % 20;
        dim3 block = blocks[rand() % 5];
        many<<<2, block>>>(a, b, at, n, step, off, mask);
        far<<<2, block, 1280 * sizeof(T)>>>(a, b, at, step, off, mask);
        few<<<1, 64>>>(a, b);
        peers<<<1, 64>>>((unsigned *)a, (const unsigned *)b);
    }
}
int main(int argc, char **argv)
{
    srand(atoi(argv[1]));
    run<unsigned char>(), run<short>(), run<float>(), run<double>(), run<int4>();
    return cudaDeviceSynchronize();
}
C
"$NVCC" -lineinfo -cudart shared -gencode arch=compute_80,code=compute_80 -o called called.cu || exit 1
cat > told.py <<'P'
import json, sys
r = json.load(sys.stdin)
assert r['coverage']['instrumented'] == r['coverage']['launches'] == 60, r['coverage']
for s in r['tools']['memory']['sites']:
    print(json.dumps(s, sort_keys=True))
P
failed=0
look() { # NAME DEVICE OPTION...
    name=$1 device=$2
    shift 2
    rm -rf p
    "$MARGAY" run -q --device "$device" -t memory "$@" -o p -- ./called "$seed" > out 2>&1 && "$MARGAY" report p --json | python3 told.py > "$name" || { echo "FAIL $name"; cat out; failed=1; }
}
look nvidia nvidia --keep-ptx
for f in p/*.ptx; do
    calls=$(grep -c 'call.uni .*__mg_called' "$f")
    case $f in
    *few*) [ "$calls" = 0 ] || { echo "FAIL $f: $calls calls"; failed=1; } ;;
    *) [ "$calls" -gt 24 ] || { echo "FAIL $f: $calls calls"; failed=1; } ;;
    esac
done
# The assembler takes them, also where votes follow in which it tests bits by seven.
ptxas=$(dirname "$NVCC")/ptxas
[ -x "$ptxas" ] && for f in p/*many*4*.ptx p/*peers*.ptx; do "$ptxas" -arch=sm_90 "$f" -o twin.cubin || { echo "FAIL $f"; failed=1; }; done
# Who waits for the assembler is told, once in so short a time; not where nothing takes long, nor with -q.
for ms in 0 1300; do
    rm -rf p
    EMU_GPU_ASSEMBLES=$ms XDG_CACHE_HOME=$PWD/cache$ms "$MARGAY" run --device nvidia --kernel '*manyIh*' -t memory -o p -- ./called "$seed" > out 2> err$ms || { echo "FAIL $ms"; cat err$ms; failed=1; }
done
[ "$(grep -c 'assembles the instrumented code of 1 kernel, 1 s so far' err1300)" = 1 ] && ! grep -q assembles err0 || { echo 'FAIL: told who waits'; cat err0 err1300; failed=1; }
EMU_GPU_ASSEMBLES=1300 XDG_CACHE_HOME=$PWD/cacheq "$MARGAY" run -q --device nvidia --kernel '*manyIh*' -t memory -o q -- ./called "$seed" > out 2>&1
! grep -q assembles out || { echo 'FAIL: told with -q'; failed=1; }
look emu emu
cmp -s nvidia emu || { echo "FAIL: the emulator counts otherwise"; diff nvidia emu | head -4; failed=1; }
[ "$(wc -l < nvidia)" -gt 200 ] && grep -q '"irregular": [1-9]' nvidia && grep -q '"bank_conflicts": [1-9]' nvidia || { echo "FAIL: nothing was counted"; failed=1; }
exit $failed
