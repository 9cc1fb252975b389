#!/bin/sh
# Code for whole CTAs leaves them in the middle, in its first region and in later ones, where one warp prints: what blocks
# counts, threads and warps, is the emulator's, exactly. rows: threads take a row's elements in steps of the block, in as
# many rounds each, known from the block's shape, or some in one fewer; the thread's number becomes a loop's variable.
# some: blocks whose last warp has not all lanes, some of which leave early; neighbours, clamped at the edges.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > leaves.cu <<'C'
#include <cstdio>
__global__ void leaves(int n, const int *x, int *out)
{
    __shared__ int s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, v = 0;
    if (i < n) v = x[i];
    if (t % 3 == 0) v += 2;
    if (blockIdx.x == 5 && t == 77) printf("early %d\n", v);
    s[t] = v;
    __syncthreads();
    for (int d = 128; d; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if ((t & 31) == 5 && blockIdx.x % 7 == 3 && t > 100) printf("%d\n", s[0]);
    for (int j = t & 7; j < 12; j++) v = v * 3 + (v & j);
    out[i] = s[0] + v;
}
__global__ void rows(const int *x, int *out)
{
    int t = threadIdx.x, i = blockIdx.x * 64 + t, v = 0;
    const int *even = x + blockIdx.x * 256, *odd = even + 3;
    for (int k = t; k < 256; k += 64) v = v * 7 + even[k];
    if (blockIdx.x == 5 && t == 37) printf("between %d\n", v);
    for (int k = t; k < 250; k += 64) v = v * 5 + odd[k];
    for (int k = t; k < 237; k += 64) out[1024 + blockIdx.x * 256 + k] = v + k;
    if (blockIdx.x == 9 && t == 3) printf("behind %d\n", v);
    for (; t < 300; t += 37) v = v * 3 + t;
    out[i] = v;
}
__global__ void some(int n, const int *x, int *out)
{
    __shared__ int s[128];
    int size = blockDim.x * blockDim.y, t = threadIdx.y * blockDim.x + threadIdx.x, i = blockIdx.x * size + t, v = x[i];
    s[t] = v;
    __syncthreads();
    for (int d = 1; d < size; d *= 2) {
        int w = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += w;
        if (blockIdx.x == 3 && d == 4 && t == size - 2) printf("scan %d\n", w);
        __syncthreads();
    }
    v += s[t ? t - 1 : 0] + x[max(i - 1, 7)];
    if (t > 0 && t < size - 1) v += s[max(t - 1, 1)] - 3 * s[min(t + 1, size - 2)];
    for (int k = t & 3; k < 9; k++) v = v * 3 + k;
    if (i >= n) return;
    out[i] = v + __shfl_xor_sync(__activemask(), v, 1);
    if (blockIdx.x == 6 && t == 1) printf("behind %d\n", v);
}
int main()
{
    int *x, *out, host[4096], sum = 0;
    for (int i = 0; i < 4096; i++) host[i] = i % 17;
    cudaMalloc(&x, sizeof host), cudaMalloc(&out, 2 * sizeof host);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    leaves<<<16, 256>>>(4000, x, out);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 4096; i++) sum = sum * 31 + host[i];
    printf("%d\n", sum);
    rows<<<15, 64>>>(x, out);
    int shapes[] = {16, 1, 33, 80, 100, 20};
    for (int b : shapes) some<<<9, b>>>(9 * b - 2, x, out + 20 * b);
    some<<<9, dim3(5, 4)>>>(9 * 5, x, out + 3000);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 4096; i++) sum = sum * 31 + host[i];
    printf("%d\n", sum);
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared leaves.cu -o leaves || { echo "FAIL nvcc"; exit 1; }
. "$ROOT/tests/cpu/counted.inc"
counted emu leaves --device emu
for how in 0 1500; do
    for isa in ${ISA:-avx512 avx2 base}; do
        MARGAY_CPU_TIER=sync MARGAY_CPU_LIVE=$how MARGAY_ISA=$isa counted cpu.$how.$isa leaves --device cpu
        as_emulator cpu.$how.$isa out counts
    done
done
grep -q '[1-9]' emu.counts && grep -q early emu.out && grep -q behind emu.out || { echo "FAIL nothing was counted"; exit 1; }
