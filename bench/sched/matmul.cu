/* matmul N [SECONDS | xLAUNCHES] [SYNC]: multiplies N x N matrices again and again, for so long, or so often, and says how often.
 * SYNC 1: waits after each product, as the paper's programs do. The last product is checked. */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cuda_runtime.h>

__global__ void matmul(int n, const float *a, const float *b, float *c)
{
    __shared__ float as[16][16], bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int tile = 0; tile < n / 16; tile++) {
        as[ty][tx] = a[row * n + tile * 16 + tx];
        bs[ty][tx] = b[(tile * 16 + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) / 16 * 16 : 128;
    bool sync = argc > 3 && atoi(argv[3]);
    const char *how_long = argc > 2 ? argv[2] : "1";
    double seconds = *how_long == 'x' ? 1e9 : atof(how_long);
    long launches = *how_long == 'x' ? atol(how_long + 1) : 1L << 60;
    size_t bytes = (size_t)n * n * sizeof(float);
    float *host = (float *)malloc(bytes), *a, *b, *c;
    for (int i = 0; i < n * n; i++)
        host[i] = (float)(i % 7);
    cudaMalloc(&a, bytes), cudaMalloc(&b, bytes), cudaMalloc(&c, bytes);
    cudaMemcpy(a, host, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(b, host, bytes, cudaMemcpyHostToDevice);
    double begin = now();
    long done = 0;
    for (; done < launches && (done % 8 || now() - begin < seconds); done++) {
        matmul<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(n, a, b, c);
        if (sync || done % 64 == 63)
            cudaDeviceSynchronize();
    }
    cudaMemcpy(host, c, bytes, cudaMemcpyDeviceToHost);
    double took = now() - begin;
    bool ok = cudaGetLastError() == cudaSuccess;
    for (int j = 0; j < n && ok; j++) { /* one row; small integers: exact */
        float want = 0;
        for (int k = 0; k < n; k++)
            want += (float)((n + k) % 7) * (float)((k * n + j) % 7);
        ok = host[n + j] == want;
    }
    printf("matmul %d: %ld launches in %.3f s, %s\n", n, done, took, ok ? "PASSED" : "FAILED");
    return !ok;
}
