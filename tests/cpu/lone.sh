#!/bin/sh
# What one lane alone comes to, long enough to be scalar code: arithmetic of all kinds, arrays of the thread's own, shared
# and global memory to the last byte, loops that end and one that outlasts a turn, in several warps of a block, with some
# lanes that left before, and calls of functions that are put in place of the call. The CPU device's results and counts
# are the emulator's, with each vector ISA, and an access that goes outside is told of as there.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > lone.cu <<'C'
#include <cstdio>
#include <cstdlib>
#include <cmath>
enum { N = 192, GRID = 5 };
__noinline__ __device__ float small(float a, float b) { return a > b ? a * b - 1.25f : fmaf(a, 3.5f, b / (a + 2)); }
/* contracted on either side of the call, never across it */
__noinline__ __device__ float sums(float a, float b) { float p = a * b; return b > 2 ? p + a : p; }
static __device__ double many(double x, int n)
{
    double v = x;
#pragma unroll
    for (int k = 0; k < 4; k++) v = sqrt(fabs(v) + 0.3 * k) / (1.5 + v * v) - exp(-fabs(v)) + log(2 + fabs(v)) + (k + 3 == n ? nan("77") : 0);
    return v;
}
template <typename T> __global__ void lone(const T *x, T *out, int n, int who)
{
    __shared__ T all[N];
    int i = blockIdx.x * N + threadIdx.x;
    all[threadIdx.x] = i < n ? x[i] : T(0);
    __syncthreads();
    if (threadIdx.x == 5 && (blockIdx.x & 1)) return;
    if (threadIdx.x == 40) {
        T own[24], v = all[3];
        for (int k = 0; k < 24; k++) own[(k * 7 + blockIdx.x) % 24] = (T)many(v + k, who) + all[k * 3];
        for (int k = 0; k < n % 11; k++) v += own[(k * 5) % 24] * (T)small((float)v, (float)k) + (T)sums((float)k, (float)v) * 2 + v;
        out[N * GRID + blockIdx.x] = v + (T)pow(fabs((double)v), 0.7); /* a call */
        atomicAdd(&all[0], (T)1);
    }
    __syncthreads();
    if (i < n) out[i] = all[threadIdx.x] + (T)sums((float)i, 0.5f) * (T)small((float)i, 2);
}
__global__ void turns(unsigned *out, unsigned rounds, double x)
{
    unsigned v = threadIdx.x;
    if (threadIdx.x == 0) {
        double d = cos(x) * 0.9;
        for (unsigned k = 0; k < rounds; k++) v = v * 5 + (k ^ v >> 3);
        d = many(d, 9);
        v += (unsigned)(int)(d * 1000);
    }
    out[threadIdx.x] = v;
}
template <typename T> static void run(const char *name)
{
    static T host[N * GRID], got[N * GRID + GRID];
    T *x, *out;
    for (int i = 0; i < N * GRID; i++) host[i] = (T)(i * 37 % 101) / 16 - 2;
    cudaMalloc(&x, sizeof host), cudaMalloc(&out, sizeof got);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    for (int who = 3; who < 8; who += 4) {
        cudaMemset(out, 0, sizeof got);
        for (int n = N * GRID - 60; n <= N * GRID; n += 60) lone<T><<<GRID, N>>>(x, out, n, who);
        if (cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost)) exit(9);
        unsigned sum = 0;
        for (unsigned i = 0; i < sizeof got / 4; i++) sum = sum * 31 + ((unsigned *)got)[i];
        printf("%s, %d: %u, the last %.9g\n", name, who, sum, (double)got[N * GRID + 2]);
    }
    cudaFree(x), cudaFree(out);
}
__global__ void outside(double *x) { if (threadIdx.x == 1) x[4] = many(x[0], 9), x[1 << 20] = many(x[4], 9); }
int main(int n, char **)
{
    unsigned *out, got[64];
    if (n > 1) {
        double *x;
        cudaMalloc(&x, 64);
        outside<<<1, 32>>>(x);
        printf("%d\n", cudaDeviceSynchronize());
        return 0;
    }
    run<float>("float");
    cudaMalloc(&out, sizeof got);
    turns<<<1, 64>>>(out, 300000, 0.4);
    cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
    printf("turns: %u %u\n", got[0], got[63]);
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared lone.cu -o lone || { echo "FAIL nvcc"; exit 1; }
. "$ROOT/tests/cpu/counted.inc"
run() { # NAME OPTION...: and what happens outside
    n=$1
    shift
    counted "$n" lone "$@"
    "$MARGAY" run -q --workers 1 -t none -o "$n.far" "$@" -- ./lone far 2>&1 | grep -v profile > "$n.far.out"
    "$MARGAY" run -q --workers 1 -t none -o "$n.none" "$@" -- ./lone > "$n.none.out" 2>&1 # calls are put in place
}
run emu --device emu
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_CPU_STORE=off MARGAY_CPU_VERBOSE=1 MARGAY_CPU_TIER=sync MARGAY_ISA=$isa run cpu.$isa --device cpu
    grep -h 'margay cpu' cpu.$isa.out cpu.$isa.none.out > cpu.$isa.told
    sed -i '/margay cpu/d' cpu.$isa.out cpu.$isa.none.out cpu.$isa.far.out
    as_emulator cpu.$isa out counts far.out none.out
done
grep -q 'operations, [1-9][0-9]* loops lane by lane' "cpu.$isa.told" || { echo "FAIL no lane ran alone: $isa"; cat "cpu.$isa.told"; exit 1; }
[ "$(grep -c ", the last" emu.out)" = 2 ] && grep -q '[1-9]' emu.counts && [ -s emu.far.out ] || { echo "FAIL nothing was compared"; cat emu.out; exit 1; }
