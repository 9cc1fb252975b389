#!/bin/sh
# Loads and stores of some lanes, in a row or two, in shared and global memory, of all sizes, on every vector ISA: results are what the host computes.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > parts.cu <<'C'
#include <cstdio>
#include <cstring>
enum { W = 64, H = 32 };

/* Blocks of 16 x 16: a warp is two rows of a tile. */
template <class T> __global__ void rows(const int *x, T *out)
{
    __shared__ T s[18][18];
    int lx = threadIdx.x, ly = threadIdx.y, at = (blockIdx.y * 16 + ly) * W + blockIdx.x * 16 + lx, v = x[at];
    s[ly + 1][lx + 1] = (T)1;
    if (lx == 5) s[ly + 1][0] = (T)(v + 1);
    if (lx == 9 && v % 4 == 1) s[ly + 1][17] = (T)(v + 2);
    if (ly == 0) s[0][lx + 1] = (T)(v + 4);
    if (ly == 15 && v % 3) s[17][lx + 1] = (T)(v + 5);
    if (v & 4) s[ly + 1][lx + 1] = (T)(v * 7);
    __syncthreads();
    T sum = s[ly + 1][lx + 1];
    if (ly == 15 && v % 3) sum += s[17][lx + 1];
    if (ly == 0) sum += s[0][lx + 1];
    if (lx == 5) sum += s[ly + 1][0];
    if (lx == 9 && v % 4 == 1) sum += s[ly + 1][17];
    if (v % 5) out[at] = sum;
}

/* Blocks of 64: a warp is one row, that others' lanes lie beside. */
template <class T> __global__ void line(int n, const int *x, T *out)
{
    __shared__ T s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t, v = x[i];
    s[t] = (T)v;
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        T u = t >= d ? s[t - d] : (T)0;
        __syncthreads();
        if (v & d || t >= d) s[t] += u;
        __syncthreads();
    }
    if (t % 3 && i < n) out[i] = s[t];
    if (t > 40) out[W * H + i - 41] = s[t - 41];
}

static int host_x[W * H], *x;
template <class T> static int check(const char *name)
{
    static T got[3 * W * H], want[3 * W * H];
    T *out;
    int bad = 0, n = W * H - 77;
    cudaMalloc(&out, sizeof got);
    for (int kind = 0; kind < 2; kind++) {
        cudaMemset(out, 0, sizeof got);
        memset(want, 0, sizeof want);
        if (kind) line<T><<<W * H / 64, 64>>>(n, x, out);
        else rows<T><<<dim3(W / 16, H / 16), dim3(16, 16)>>>(x, out);
        cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
        for (int i = 0; !kind && i < W * H; i++) {
            int lx = i % 16, ly = i / W % 16, v = host_x[i];
            T sum = v & 4 ? (T)(v * 7) : (T)1;
            if (ly == 15 && v % 3) sum += (T)(v + 5);
            if (ly == 0) sum += (T)(v + 4);
            if (lx == 5) sum += (T)(v + 1);
            if (lx == 9 && v % 4 == 1) sum += (T)(v + 2);
            if (v % 5) want[i] = sum;
        }
        for (int b = 0; kind && b < W * H; b += 64) {
            T s[64], u[64];
            for (int t = 0; t < 64; t++) s[t] = (T)host_x[b + t];
            for (int d = 1; d < 64; d *= 2) {
                for (int t = 0; t < 64; t++) u[t] = t >= d ? s[t - d] : (T)0;
                for (int t = 0; t < 64; t++)
                    if (host_x[b + t] & d || t >= d) s[t] += u[t];
            }
            for (int t = 0; t < 64; t++) {
                if (t % 3 && b + t < n) want[b + t] = s[t];
                if (t > 40) want[W * H + b + t - 41] = s[t - 41];
            }
        }
        for (int i = 0; i < 3 * W * H; i++) bad += got[i] != want[i];
    }
    cudaFree(out);
    printf("%s: %d differ\n", name, bad);
    return bad;
}

int main()
{
    for (int i = 0; i < W * H; i++) host_x[i] = (int)((unsigned)i * 2654435761u >> 20);
    cudaMalloc(&x, sizeof host_x);
    cudaMemcpy(x, host_x, sizeof host_x, cudaMemcpyHostToDevice);
    return !!(check<unsigned char>("8 bits") | check<short>("16") | check<float>("32") | check<long long>("64"));
}
C
"$NVCC" -cudart shared -arch=sm_90 -o parts parts.cu || { echo "FAIL nvcc"; exit 1; }
for how in "base on" "avx2 on" "avx2 off" "avx512 on"; do
    set -- $how
    MARGAY_ISA=$1 MARGAY_CPU_WHOLE=$2 MARGAY_CPU_TIER=sync MARGAY_CPU_VERIFY=1 MARGAY_CPU_STORE=off "$MARGAY" run -q --device cpu -- ./parts || { echo "FAIL $1, whole CTAs $2"; exit 1; }
done
