#!/bin/sh
# Sums that are NaNs in some lanes, in none and in all, stored to shared memory and read back as bits by others: the GPU's
# one NaN, 7fffffff, whatever the processor makes. A scan and a tree, as code for whole CTAs and warp by warp. Minima and maxima of NaNs and zeros.
# And f64, whose NaNs keep their payload: arithmetic of which only the last result is looked at.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > nans.cu <<'C'
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>
__global__ void scan(const float *x, unsigned *out)
{
    __shared__ float s[1024];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = x[i] - 1;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        float v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    out[i] = __float_as_uint(s[(t * 7 + 3) % blockDim.x]);
}
__global__ void tree(const float *x, unsigned *out)
{
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t] * 2;
    __syncthreads();
    for (int d = 64; d > 0; d >>= 1) {
        if (t < d) s[t] = s[t] + s[t + d];
        __syncthreads();
    }
    out[blockIdx.x * 128 + t] = __float_as_uint(s[t]);
}
/* Minima and maxima by way of shared memory, of all lanes and of some: numbers win, and of zeros the negative one is less. */
__global__ void ends(const float *x, unsigned *out)
{
    __shared__ float least[128], most[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    least[t] = most[t] = x[i];
    float beside = x[i ^ 1], a = fminf(x[i], beside), b = fmaxf(beside, x[i]);
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        if (t % (2 * d) == 0) least[t] = fminf(least[t], least[t + d]), most[t] = fmaxf(most[t + d], most[t]);
        __syncthreads();
    }
    if (i % 3) a = fminf(a * x[i], b - beside);
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(b) : "f"(b), "f"(a));
    out[i] = __float_as_uint(a) * 31 + __float_as_uint(b);
    out[i + gridDim.x * 128] = __float_as_uint(least[t]) * 31 + __float_as_uint(most[t]);
    out[i + gridDim.x * 256] = __float_as_uint(t & 1 ? least[t] + a : most[t] * b);
}
static unsigned run_ends(float *x, unsigned *out, unsigned *got, int n, float *host)
{
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        unsigned r = i * 2654435761u >> 8;
        host[i] = r % 5 ? (r % 7 ? r % 7 - 3.0f : -0.0f) : r % 3 ? 0.0f / 0.0f : 0.0f;
    }
    cudaMemcpy(x, host, n * 4, cudaMemcpyHostToDevice);
    ends<<<n / 128, 128>>>(x, out);
    if (cudaMemcpy(got, out, n * 12, cudaMemcpyDeviceToHost)) exit(9);
    for (int i = 0; i < 3 * n; i++) sum = sum * 31 + got[i];
    return sum;
}
/* Sums and products that read one another, some through f32, of all lanes and of some; `again` makes a register of an operand. */
__global__ void chains(const double *x, unsigned long long *out, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double a = x[i], b = x[i + n], c = x[i + 2 * n], d = a + b, e = d * c, f = fma(a, c, e) - b, g = f / (b + 2), again = a;
#pragma unroll 1
    for (int k = 0; k < m; k++) again = fma(again, b, c) * 0.5 + a;
    if (i % 5 < 3) d = fma(sqrt(c * c), a, d) - g, e = (double)(float)(d + a) * c;
    float h = (float)e + (float)(a * b);
    g = fma((double)h, b, g) + again;
    if (i & 8) a = d - a, a = a * a + b, a = fma(a, c, a);
    out[6 * i] = __double_as_longlong(a), out[6 * i + 1] = __double_as_longlong(d), out[6 * i + 2] = __double_as_longlong(e);
    out[6 * i + 3] = __double_as_longlong(f), out[6 * i + 4] = __double_as_longlong(g), out[6 * i + 5] = __float_as_uint(h);
}
static void run_chains(void)
{
    enum { N = 1 << 12 };
    static unsigned long long host[3 * N], got[6 * N];
    unsigned long long *x, *out, sum = 0, nans = 0, kept = 0;
    cudaMalloc(&x, sizeof host), cudaMalloc(&out, sizeof got);
    for (int seldom = 0; seldom < 2; seldom++) {
        for (int i = 0; i < 3 * N; i++) {
            double v = (i * 37 % 101 - 50) / 8.0;
            unsigned r = i * 2654435761u >> 8;
            memcpy(&host[i], &v, 8);
            if (r % (seldom ? 600 : 7) == 3) host[i] = (r & 64 ? 0xfff0000000000000 : 0x7ff0000000000000) + (r % 3 ? (unsigned long long)r << 20 : 0);
        }
        cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
        chains<<<N / 128, 128>>>((double *)x, out, N, 3);
        if (cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost)) exit(9);
        for (int i = 0; i < 6 * N; i++) {
            bool nan = i % 6 < 5 && (got[i] & INT64_MAX) > 0x7ff0000000000000;
            nans += nan, kept += nan && got[i] << 13, sum = sum * 31 + got[i];
        }
        printf("f64: %llu NaNs, %llu with a payload, all: %llx\n", nans, kept, sum);
    }
}
int main(void)
{
    enum { N = 1 << 14 };
    run_chains();
    float *x, *host = (float *)malloc(N * 4);
    unsigned *out, *got = (unsigned *)malloc(N * 4), nans = 0, crooked = 0, sum = 0;
    for (int i = 0; i < N; i++) host[i] = i % 97 == 5 ? 1.0f / 0.0f : i % 89 == 6 ? -1.0f / 0.0f : i % 1021 == 7 ? 0.0f / 0.0f : i % 13;
    for (int i = 0; i < N / 4; i++) host[i] = i % 13; /* no NaN */
    cudaMalloc(&x, N * 4), cudaMalloc(&out, N * 4);
    cudaMemcpy(x, host, N * 4, cudaMemcpyHostToDevice);
    for (int k = 0; k < 4; k++) {
        if (k < 3) scan<<<N / (64 << 2 * k), 64 << 2 * k>>>(x, out);
        if (k == 3) tree<<<N / 128, 128>>>(x, out);
        if (cudaMemcpy(got, out, N * 4, cudaMemcpyDeviceToHost)) exit(9);
        for (int i = 0; i < N; i++) {
            bool nan = (got[i] & 0x7fffffff) > 0x7f800000;
            nans += nan, crooked += nan && got[i] != 0x7fffffff, sum = sum * 31 + got[i];
        }
        printf("%u of %d are NaNs, %u are others than 7fffffff, all: %u\n", nans, N, crooked, sum);
    }
    printf("minima and maxima: %u\n", run_ends(x, out, got, N / 4, host));
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared nans.cu -o nans || { echo "FAIL nvcc"; exit 1; }
export MARGAY_CPU_STORE=off MARGAY_CPU_TIER=sync
run() # NAME OPTION...: what it printed
{
    name=$1
    shift
    "$MARGAY" run -q -t none --workers 1 -o "$name" "$@" -- ./nans > "$name.out" 2>&1 || { echo "FAIL $name"; cat "$name.out"; exit 1; }
}
run emu --device emu
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_ISA=$isa run cpu.$isa --device cpu
    cmp emu.out cpu.$isa.out || { diff emu.out cpu.$isa.out; exit 1; }
done
MARGAY_ISA=avx2 MARGAY_CPU_WHOLE=off run warps --device cpu
cmp emu.out warps.out || exit 1
[ "$(grep -c '^f64: [1-9][0-9]* NaNs, [1-9][0-9]* with a payload' emu.out)" = 2 ] || { echo "FAIL: no payloads"; cat emu.out; exit 1; }
[ "$(grep -c '^[1-9][0-9]* of .* 0 are others' emu.out)" = 4 ] || { echo "FAIL: no NaNs, or others"; cat emu.out; exit 1; }
