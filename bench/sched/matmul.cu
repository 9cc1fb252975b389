/* matmul N [SECONDS | xLAUNCHES] [SYNC [SPANS]]: multiplies N x N matrices again and again, for so long, or so often, and says how often.
 * SYNC 1: waits after each product, as the paper's programs do. The last product is checked. SPANS: a file for
 * the first and last %globaltimer of each launch's CTAs, a line a launch. */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cuda_runtime.h>

__device__ unsigned long long globaltimer()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__global__ void matmul(int n, const float *a, const float *b, float *c, unsigned long long *span)
{
    if (span && threadIdx.x + threadIdx.y == 0)
        atomicMin(&span[0], globaltimer());
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
    if (span) {
        __syncthreads();
        if (threadIdx.x + threadIdx.y == 0)
            atomicMax(&span[1], globaltimer());
    }
}

enum { MOST_SPANS = 1 << 20 };

static void write_spans(const char *path, const unsigned long long *device, long n)
{
    unsigned long long *s = (unsigned long long *)malloc(16 * (size_t)n);
    cudaMemcpy(s, device, 16 * (size_t)n, cudaMemcpyDeviceToHost);
    FILE *f = fopen(path, "w");
    for (long i = 0; f && i < n; i++)
        fprintf(f, "%llu %llu\n", s[2 * i], s[2 * i + 1]);
    if (f)
        fclose(f);
    free(s);
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
    unsigned long long *spans = NULL;
    if (argc > 4) {
        cudaMalloc(&spans, 16 * (size_t)MOST_SPANS);
        unsigned long long *s = (unsigned long long *)malloc(16 * (size_t)MOST_SPANS);
        for (long i = 0; i < MOST_SPANS; i++)
            s[2 * i] = ~0ull, s[2 * i + 1] = 0;
        cudaMemcpy(spans, s, 16 * (size_t)MOST_SPANS, cudaMemcpyHostToDevice);
        free(s);
    }
    double begin = now();
    long done = 0;
    for (; done < launches && (done % 8 || now() - begin < seconds); done++) {
        matmul<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(n, a, b, c, spans && done < MOST_SPANS ? spans + 2 * done : NULL);
        if (sync || done % 64 == 63)
            cudaDeviceSynchronize();
    }
    cudaMemcpy(host, c, bytes, cudaMemcpyDeviceToHost);
    double took = now() - begin;
    bool ok = cudaGetLastError() == cudaSuccess;
    if (spans)
        write_spans(argv[4], spans, done < MOST_SPANS ? done : MOST_SPANS);
    for (int j = 0; j < n && ok; j++) { /* one row; small integers: exact */
        float want = 0;
        for (int k = 0; k < n; k++)
            want += (float)((n + k) % 7) * (float)((k * n + j) % 7);
        ok = host[n + j] == want;
    }
    printf("matmul %d: %ld launches in %.3f s, %s\n", n, done, took, ok ? "PASSED" : "FAILED");
    return !ok;
}
