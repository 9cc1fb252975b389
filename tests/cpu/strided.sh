#!/bin/sh
# Lanes at one distance from each other, forth and back: accesses of all lanes and of some, to global and to shared memory,
# near each other (all between them is loaded, nothing behind the last) and far, to the last byte of an allocation, while
# idle lanes lie outside of it. The CPU device's results and counts are the emulator's, with each vector ISA, and a lane
# that does go outside is told of as there.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > strided.cu <<'C'
#include <cstdio>
#include <cstdlib>
enum { N = 2048 };
template <typename T, int S> __global__ void reads(int n, const T *x, T *out) /* of n * S - (S - 1) elements */
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, last = n - 1 - i;
    T v = x[0];
    if (i < n) v = v + x[i * S];
    if (last >= 0) v = v * 3 + x[last * S];
    if (i % 3 == 1 && i < n) v = v * 3 + x[i * S];
    if (i < n) out[i] = v;
}
template <typename T, int S> __global__ void writes(int n, T *x, T *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, last = n - 1 - i;
    if (i < n) x[i * S] = i + 1;
    if (last >= 0 && i % 5 == 2) x[last * S] = 7 * i;
    if (last >= 0 && i % 7 != 2) x[last * S] = x[last * S] * 5 + i;
    if (i < n) out[i] = x[i * S];
}
template <typename T, int S> __global__ void shared(int n, const T *x, T *out)
{
    __shared__ T s[64 * S];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, b = blockDim.x;
    for (int k = t; k < 64 * S; k += b) s[k] = k;
    __syncthreads();
    if (i < n) s[t * S] = x[i];
    __syncthreads();
    T v = s[(b - 1 - t) * S];
    for (int d = 1; d < b; d *= 2) {
        if (t < d) v = v * 3 + s[t * S + S - 1] + s[(d - t - 1) * S];
        __syncthreads();
        if (t % d == 0) s[t * S + S - 1] = v;
        __syncthreads();
    }
    if (i < n) out[i] = v;
}
static unsigned sum = 1;
template <typename T, int S> void run()
{
    static T host[N * 9];
    T *x, *out;
    for (int i = 0; i < N * 9; i++) host[i] = i * 5 % 127;
    const int blocks[] = {49, 16};
    for (int b : blocks) {
        int n = 7 * b - 4, grid = 8;
        cudaMalloc(&x, (size_t)(n * S - (S - 1)) * sizeof(T)), cudaMalloc(&out, n * sizeof(T)); /* to the last byte */
        for (int kind = 0; kind < 3; kind++) {
            cudaMemcpy(x, host, (size_t)(n * S - (S - 1)) * sizeof(T), cudaMemcpyHostToDevice);
            if (kind == 0) reads<T, S><<<grid, b>>>(n, x, out);
            if (kind == 1) writes<T, S><<<grid, b>>>(n, x, out);
            if (kind == 2) shared<T, S><<<grid, b>>>(n, x, out);
            static T got[N];
            if (cudaMemcpy(got, out, n * sizeof(T), cudaMemcpyDeviceToHost)) exit(9);
            for (int i = 0; i < n; i++) sum = sum * 31 + (unsigned)got[i];
        }
        printf("%d bytes, stride %d, block %d: %u\n", (int)sizeof(T), S, b, sum);
        cudaFree(x), cudaFree(out);
    }
}
__global__ void outside(const int *x, int *out) { out[threadIdx.x] = x[threadIdx.x * 3]; }
int main(int n, char **)
{
    if (n > 1) { /* lane 31 lies outside, in the red zone */
        int *x, *out;
        cudaMalloc(&x, 31 * 12), cudaMalloc(&out, 128);
        cudaMemset(x, 0, 31 * 12);
        outside<<<1, 32>>>(x - 2000, out);
        printf("%d\n", cudaDeviceSynchronize());
        return 0;
    }
    run<int, 2>(), run<int, 9>(), run<long long, 3>(), run<float, 8>();
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared strided.cu -o strided || { echo "FAIL nvcc"; exit 1; }
. "$ROOT/tests/cpu/counted.inc"
run() { # NAME OPTION...: and what happens outside
    n=$1
    shift
    counted "$n" strided "$@"
    "$MARGAY" run -q --workers 1 -t none -o "$n.far" "$@" -- ./strided far 2>&1 | grep -v profile > "$n.far.out"
}
run emu --device emu
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_CPU_TIER=sync MARGAY_ISA=$isa run cpu.$isa --device cpu
    as_emulator cpu.$isa out counts far.out
done
[ "$(grep -c stride emu.out)" = 8 ] && grep -q '[1-9]' emu.counts && [ -s emu.far.out ] || { echo "FAIL nothing was compared"; cat emu.out; exit 1; }
