#!/bin/sh
# Lanes anywhere, by indices of 32 bits to one base: signed ones below 0, unsigned ones above 2^31, masked ones, some lanes
# only, elements of 4, 8 and twice 4 bytes, loads and stores, places in another allocation, at its last byte and behind it,
# a base that is no multiple of an element. The CPU device's results and counts are the emulator's with each vector ISA, and
# a lane that does go outside is told of as there. That such accesses are gathers by index is looked at.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > index.cu <<'C'
#include <cstdio>
#include <cstdlib>
enum { N = 1000 };
template <typename T> __device__ float sum(T v) { return (float)v; }
template <> __device__ float sum(float2 v) { return v.x + 3 * v.y; }
template <typename T> __device__ T make(int k) { return (T)k; }
template <> __device__ float2 make(int k) { return make_float2(k, -k); }
template <typename T> __global__ void reads(int n, const T *middle, const T *far, const int *ix, float *out, long other)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = sum(middle[ix[i]]);                               /* signed, about the middle */
    v = v * 3 + sum(far[(unsigned)ix[i] + 0x80000000u]);        /* unsigned, from 2^31 - N / 2 on */
    v = v * 3 + sum(middle[ix[i] & 127]);
    if (i % 3 == 1) v = v * 3 + sum(middle[-ix[n - 1 - i] / 2]); /* some lanes */
    if (i % 7 == 1) v = v * 3 + sum(middle[i % 2 ? ix[i] : ix[i] + (int)other]); /* some in another allocation */
    out[i] = v;
}
template <typename T> __global__ void writes(int n, T *middle, const int *ix, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    middle[ix[i]] = make<T>(i);
    if (i % 5 < 3) middle[ix[i]] = make<T>(3 * i + 1);
    if (i % 32 == 9) middle[ix[n - 1 - i]] = make<T>(7 * i);
    out[i] = sum(middle[ix[i]]);
}
__global__ void crooked(const char *x, const int *ix, float *out) { out[threadIdx.x] = ((const float *)(x + 2))[ix[threadIdx.x] & 15]; }
static unsigned hash = 1;
template <typename T> void run()
{
    static T host[2 * N];
    static int ix[N];
    static float got[N];
    T *x, *y;
    int *d_ix;
    float *out;
    for (int i = 0; i < N; i++) ix[i] = i * 387 % N - N / 2; /* each place once */
    for (int i = 0; i < 4 * N * (int)sizeof(T) / 8; i++) ((float *)host)[i] = i * 5 % 127;
    cudaMalloc(&x, N * sizeof(T)), cudaMalloc(&y, N * sizeof(T)), cudaMalloc(&d_ix, sizeof ix), cudaMalloc(&out, sizeof got);
    cudaMemcpy(d_ix, ix, sizeof ix, cudaMemcpyHostToDevice);
    const int blocks[] = {128, 48, 16};
    for (int b : blocks)
        for (int kind = 0; kind < 2; kind++) {
            cudaMemcpy(x, host, N * sizeof(T), cudaMemcpyHostToDevice), cudaMemcpy(y, host + N, N * sizeof(T), cudaMemcpyHostToDevice);
            if (!kind) reads<T><<<(N + b - 1) / b, b>>>(N, x + N / 2, x + N / 2 - (1ll << 31), d_ix, out, y - x);
            if (kind) writes<T><<<(N + b - 1) / b, b>>>(N, x + N / 2, d_ix, out);
            if (cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost)) exit(9);
            for (int i = 0; i < N; i++) hash = hash * 31 + (unsigned)(int)got[i];
            printf("%d bytes, block %d: %u\n", (int)sizeof(T), b, hash);
        }
    cudaFree(x), cudaFree(y), cudaFree(d_ix), cudaFree(out);
}
int main(int n, char **)
{
    if (n > 1) { /* an index behind the last, 2: no multiple of an element */
        float *x, *out;
        int *d_ix, ix[32];
        for (int i = 0; i < 32; i++) ix[i] = i == 17 ? 32 : (i * 5) % 32;
        cudaMalloc(&x, 128), cudaMalloc(&out, 128), cudaMalloc(&d_ix, 128);
        cudaMemset(x, 0, 128), cudaMemcpy(d_ix, ix, 128, cudaMemcpyHostToDevice);
        if (n == 2) writes<float><<<1, 32>>>(32, x, d_ix, out);
        if (n == 3) crooked<<<1, 32>>>((const char *)x, d_ix, out);
        printf("%d\n", cudaDeviceSynchronize());
        return 0;
    }
    run<int>(), run<long long>(), run<float2>();
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared index.cu -o index || { echo "FAIL nvcc"; exit 1; }
export MARGAY_CPU_STORE=off
. "$ROOT/tests/cpu/counted.inc"
run() { # NAME OPTION...: and what happens outside
    n=$1
    shift
    counted "$n" index "$@"
    for far in "far" "far crooked"; do "$MARGAY" run -q --workers 1 -t none -o "$n.far" "$@" -- ./index $far 2>&1 | grep -v profile; done > "$n.far.out"
}
run emu --device emu
mkdir avx512 avx2 base
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_CPU_DUMP=$isa MARGAY_CPU_TIER=sync MARGAY_ISA=$isa run cpu.$isa --device cpu
    as_emulator cpu.$isa out counts far.out
done
[ "$(grep -c block emu.out)" = 18 ] && grep -q '[1-9]' emu.counts && grep -q 700 emu.far.out && grep -q 716 emu.far.out || { echo "FAIL nothing was compared"; cat emu.out emu.far.out; exit 1; }
grep -q avx512f /proc/cpuinfo && ls avx512/*.ll > ll 2>&1 || exit 0
grep -q 'mask.gather.dpi' avx512/*reads*w0.ll && grep -q 'mask.scatter.dpi' avx512/*writes*w0.ll && grep -q 'mask.gather.dpq' avx512/*reads*w0.ll || { echo "FAIL: no gathers by index"; exit 1; }
