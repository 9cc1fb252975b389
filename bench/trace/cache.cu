/* cache [KERNEL]: 20 kernels, or one of them, each launched once, whose L1 and L2 hits range from none to nearly all: for bench/trace/ncu, which
 * compares the cache model with Nsight Compute. Prints one sum a kernel. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { N = 1 << 20, BLOCK = 256, SIDE = 1024, SMALL = 1 << 12, TILE = 16 };
#define I ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define K extern "C" __global__ void
#define ARGS (const float *__restrict__ a, const int *__restrict__ ix, float *out)

K copy ARGS { out[I] = a[I]; }
K stride_2 ARGS { out[I] = a[2 * I % N]; }
K stride_8 ARGS { out[I] = a[8 * I % N]; }
K stride_33 ARGS { out[I] = a[(int)(33u * (unsigned)I % N)]; }
K reverse ARGS { out[I] = a[N - 1 - I]; }
K stencil_3 ARGS { out[I] = a[I > 0 ? I - 1 : 0] + a[I] + a[I + 1 < N ? I + 1 : I]; }
K stencil_5 ARGS
{
    int x = I % SIDE, y = I / SIDE;
    float s = a[I];
    if (x > 0) s += a[I - 1];
    if (x + 1 < SIDE) s += a[I + 1];
    if (y > 0) s += a[I - SIDE];
    if (y + 1 < SIDE) s += a[I + SIDE];
    out[I] = s;
}
K transpose_in ARGS { out[I] = a[I % SIDE * SIDE + I / SIDE]; }
K rows ARGS /* a thread a row: each line is read by 32 loads */
{
    float s = 0;
    if (I >= SIDE) return;
    for (int k = 0; k < SIDE; k++) s += a[I * SIDE + k];
    out[I] = s;
}
K columns ARGS
{
    float s = 0;
    if (I >= SIDE) return;
    for (int k = 0; k < SIDE; k++) s += a[k * SIDE + I];
    out[I] = s;
}
K broadcast ARGS
{
    float s = 0;
    for (int k = 0; k < 64; k++) s += a[k * 32];
    out[I] = s;
}
K again_4k ARGS /* each CTA reads 4 KiB eight times */
{
    float s = 0;
    for (int k = 0; k < 32; k++) s += a[(blockIdx.x * 1024 + k % 4 * BLOCK + threadIdx.x) % N];
    out[I] = s;
}
K again_64k ARGS
{
    float s = 0;
    for (int k = 0; k < 128; k++) s += a[(blockIdx.x * 16384 + k % 64 * BLOCK + threadIdx.x) % N];
    out[I] = s;
}
K again_512k ARGS
{
    float s = 0;
    for (int k = 0; k < 1024; k++) s += a[(k % 512 * BLOCK + threadIdx.x) % N];
    out[I] = s;
}
K gather ARGS { out[I] = a[ix[I]]; }
K gather_near ARGS { out[I] = a[(I + ix[I] % 64) % N]; }
K gather_small ARGS { out[I] = a[ix[I] % SMALL]; }
K pairs ARGS
{
    float s = 0;
    for (int k = 0; k < 16; k++) s += a[ix[(I + k) % N] % (1 << 16)];
    out[I] = s;
}
K matmul_naive ARGS
{
    int row = I / 256, col = I % 256;
    float s = 0;
    if (row >= 256) return;
    for (int k = 0; k < 256; k++) s += a[row * 256 + k] * a[k * 256 + col];
    out[I] = s;
}
K matmul_tiled ARGS
{
    __shared__ float s[TILE][TILE], t[TILE][TILE];
    int x = threadIdx.x % TILE, y = threadIdx.x / TILE, row = blockIdx.x / 16 * TILE + y, col = blockIdx.x % 16 * TILE + x;
    float sum = 0;
    for (int k = 0; k < 256; k += TILE) {
        s[y][x] = a[row * 256 + k + x];
        t[y][x] = a[(k + y) * 256 + col];
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += s[y][i] * t[i][x];
        __syncthreads();
    }
    out[row * 256 + col] = sum;
}

int main(int argc, char **argv)
{
    typedef void kernel(const float *, const int *, float *);
    const struct {
        const char *name;
        kernel *run;
        int threads;
    } kernels[] = {{"copy", copy, N}, {"stride_2", stride_2, N}, {"stride_8", stride_8, N}, {"stride_33", stride_33, N},
                   {"reverse", reverse, N}, {"stencil_3", stencil_3, N}, {"stencil_5", stencil_5, N}, {"transpose_in", transpose_in, N},
                   {"rows", rows, SIDE}, {"columns", columns, SIDE}, {"broadcast", broadcast, N / 8}, {"again_4k", again_4k, N / 8},
                   {"again_64k", again_64k, N / 8}, {"again_512k", again_512k, 1 << 14}, {"gather", gather, N}, {"gather_near", gather_near, N},
                   {"gather_small", gather_small, N}, {"pairs", pairs, N / 8}, {"matmul_naive", matmul_naive, 1 << 16}, {"matmul_tiled", matmul_tiled, 1 << 16}};
    float *a = (float *)malloc(N * sizeof *a), *got = (float *)malloc(N * sizeof *got), *da, *out;
    int *ix = (int *)malloc(N * sizeof *ix), *dix;
    unsigned seed = 7;
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        a[i] = (float)(i % 5);
        ix[i] = (int)(seed >> 12);
    }
    cudaMalloc(&da, N * sizeof *a);
    cudaMalloc(&out, N * sizeof *out);
    cudaMalloc(&dix, N * sizeof *ix);
    cudaMemcpy(da, a, N * sizeof *a, cudaMemcpyHostToDevice);
    cudaMemcpy(dix, ix, N * sizeof *ix, cudaMemcpyHostToDevice);
    for (const auto &k : kernels) {
        double sum = 0;
        if (argc > 1 && strcmp(argv[1], k.name)) continue;
        cudaMemset(out, 0, N * sizeof *out);
        k.run<<<k.threads / BLOCK, BLOCK>>>(da, dix, out);
        cudaError_t e = cudaMemcpy(got, out, N * sizeof *got, cudaMemcpyDeviceToHost);
        if (e != cudaSuccess) {
            fprintf(stderr, "%s: %s\n", k.name, cudaGetErrorString(e));
            return 1;
        }
        for (int i = 0; i < N; i++) sum += got[i];
        printf("%s %.0f\n", k.name, sum);
    }
    return 0;
}
