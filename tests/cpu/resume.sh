#!/bin/sh
# Warps of a CTA that come to different stops (some skip a loop, or go round another one) and meet again behind a barrier:
# code for whole CTAs goes on there. Results and counts are the emulator's, where warps have ended, too. That whole-CTA code
# is made that can be gone on with is looked at.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > resume.cu <<'C'
#include <cstdio>
#include <cstdlib>
enum { T = 256, LIST = 8192 };
__global__ void bins(int n, const int *x, int *out) /* fewer bins than threads: most warps skip the loops over them */
{
    __shared__ int s[96];
    for (int k = threadIdx.x; k < 96; k += T) s[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * T + threadIdx.x; i < n; i += gridDim.x * T) atomicAdd(&s[x[i] % 96], 1);
    __syncthreads();
    for (int k = threadIdx.x; k < 96; k += T) out[blockIdx.x * 96 + k] = s[k];
}
__global__ void rows(int n, const int *x, int *out) /* a row that is no multiple of the block */
{
    __shared__ int s[T];
    const int *row = x + blockIdx.x * n;
    int t = threadIdx.x, sum = 0;
    for (int i = t; i < n; i += T) sum += row[i] ^ t;
    s[t] = sum;
    __syncthreads();
    for (int d = T / 2; d > 0; d >>= 1) {
        if (t < d) s[t] = s[t] * 3 + s[t + d];
        __syncthreads();
    }
    for (int i = t; i < n; i += T) out[blockIdx.x * n + i] = row[i] + s[0];
}
__global__ void ends(int n, const int *x, int *out) /* some warps end before the others meet */
{
    __shared__ int s[T];
    int t = threadIdx.x, v = 0;
    for (int k = t; k < 100; k += T) v += x[k];
    __syncthreads();
    if (t >= n) return;
    for (int k = 0; k < t / 64; k++) v += x[k] * t;
    s[t] = v;
    __syncthreads();
    out[blockIdx.x * T + t] = s[(t * 7 + 32) % n] + v;
}
static int *x, *out, *host;
static void tell(const char *what, int n)
{
    unsigned sum = 1;
    if (cudaMemcpy(host, out, n * sizeof *host, cudaMemcpyDeviceToHost)) exit(9);
    for (int i = 0; i < n; i++) sum = sum * 31 + (unsigned)host[i];
    printf("%s %u\n", what, sum);
    cudaMemset(out, 0, 4 * LIST * sizeof *out);
}
int main(void)
{
    host = (int *)malloc(4 * LIST * sizeof *host);
    cudaMalloc(&x, 4 * LIST * sizeof *x), cudaMalloc(&out, 4 * LIST * sizeof *out);
    for (int i = 0; i < 4 * LIST; i++) host[i] = i * 1237 % 251;
    cudaMemcpy(x, host, 4 * LIST * sizeof *x, cudaMemcpyHostToDevice), cudaMemset(out, 0, 4 * LIST * sizeof *out);
    bins<<<7, T>>>(LIST, x, out), tell("bins", 7 * 96);
    rows<<<9, T>>>(1000, x, out), tell("rows 1000", 9000);
    rows<<<9, T>>>(520, x, out), tell("rows 520", 9 * 520);
    ends<<<5, T>>>(T, x, out), tell("all go on", 5 * T);
    ends<<<5, T>>>(160, x, out), tell("three warps end", 5 * T);
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared resume.cu -o resume || { echo "FAIL nvcc"; exit 1; }
. "$ROOT/tests/cpu/counted.inc"
export MARGAY_CPU_STORE=off
counted emu resume --device emu
mkdir dump
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_CPU_DUMP=dump MARGAY_CPU_TIER=sync MARGAY_ISA=$isa counted cpu.$isa resume --device cpu
    as_emulator cpu.$isa out counts
done
[ "$(grep -c . emu.out)" = 5 ] && grep -q '[1-9]' emu.counts || { echo "FAIL nothing was compared"; cat emu.out; exit 1; }
for k in bins rows ends; do grep -q '^resume' dump/*$k*w0.ll || { echo "FAIL: $k is not gone on with"; exit 1; }; done
