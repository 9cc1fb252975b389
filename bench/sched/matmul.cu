/* matmul N [KEY=VALUE...]: multiplies N x N matrices again and again and says how often. The last product is checked.
 *   seconds=S   for so long (1)                launches=K   so often in place of that
 *   sync=1      waits after each product, as the paper's programs do, else after 64
 *   at=T        one product to warm up, then begins at T seconds of CLOCK_MONOTONIC
 *   spans=FILE  writes there for how many ns of each tenth of a second of %globaltimer some CTA ran: "TENTH NS" lines */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda_runtime.h>
#include <unistd.h>

__device__ unsigned long long globaltimer()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__global__ void matmul(int n, const float *a, const float *b, float *c, unsigned long long *first, unsigned long long *last)
{
    if (first && threadIdx.x + threadIdx.y == 0)
        atomicMin(first, globaltimer());
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
    if (last) {
        __syncthreads();
        if (threadIdx.x + threadIdx.y == 0)
            atomicMax(last, globaltimer());
    }
}

enum { MOST_SPANS = 1 << 24 };
static const unsigned long long TENTH = 100000000;
struct spans {
    unsigned long long *first, *last; /* of each launch's CTAs */
};

/* The launches of one stream follow one another. */
static bool write_spans(const char *path, const spans &s, long n)
{
    unsigned long long *first = (unsigned long long *)malloc(8 * (size_t)n), *last = (unsigned long long *)malloc(8 * (size_t)n);
    cudaMemcpy(first, s.first, 8 * (size_t)n, cudaMemcpyDeviceToHost);
    cudaMemcpy(last, s.last, 8 * (size_t)n, cudaMemcpyDeviceToHost);
    FILE *f = fopen(path, "w");
    unsigned long long until = 0, tenth = 0, sum = 0;
    for (long i = 0; f && i < n; i++)
        for (unsigned long long at = first[i] > until ? first[i] : until; at < last[i]; at = until) {
            if (at / TENTH != tenth && sum)
                fprintf(f, "%llu %llu\n", tenth, sum), sum = 0;
            tenth = at / TENTH;
            until = last[i] < (tenth + 1) * TENTH ? last[i] : (tenth + 1) * TENTH;
            sum += until - at;
        }
    if (f)
        fprintf(f, "%llu %llu\n", tenth, sum);
    free(first), free(last);
    return f && !fclose(f);
}

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *option(int argc, char **argv, const char *key, const char *otherwise)
{
    for (int i = 2; i < argc; i++)
        if (!strncmp(argv[i], key, strlen(key)) && argv[i][strlen(key)] == '=')
            return argv[i] + strlen(key) + 1;
    return otherwise;
}

static void wait_until(double at)
{
    while (now() < at)
        usleep(at - now() > 2e-3 ? 1000 : 50);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) / 16 * 16 : 128;
    bool sync = atoi(option(argc, argv, "sync", "0"));
    const char *path = option(argc, argv, "spans", NULL);
    long launches = atol(option(argc, argv, "launches", "0"));
    double seconds = launches ? 1e9 : atof(option(argc, argv, "seconds", "1")), at = atof(option(argc, argv, "at", "0"));
    if (!launches)
        launches = path ? MOST_SPANS : 1L << 60;
    size_t bytes = (size_t)n * n * sizeof(float);
    float *host = (float *)malloc(bytes), *a, *b, *c;
    for (int i = 0; i < n * n; i++)
        host[i] = (float)(i % 7);
    cudaMalloc(&a, bytes), cudaMalloc(&b, bytes), cudaMalloc(&c, bytes);
    cudaMemcpy(a, host, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(b, host, bytes, cudaMemcpyHostToDevice);
    spans spans = {NULL, NULL};
    if (path) {
        cudaMalloc(&spans.first, 8 * (size_t)MOST_SPANS), cudaMalloc(&spans.last, 8 * (size_t)MOST_SPANS);
        cudaMemset(spans.first, 0xff, 8 * (size_t)MOST_SPANS), cudaMemset(spans.last, 0, 8 * (size_t)MOST_SPANS);
    }
    dim3 grid(n / 16, n / 16), threads(16, 16);
    if (at > 0) {
        matmul<<<grid, threads>>>(n, a, b, c, NULL, NULL);
        cudaDeviceSynchronize();
        wait_until(at);
    }
    cudaDeviceSynchronize();
    double begin = now();
    long done = 0;
    for (; done < launches && (done % 8 || now() - begin < seconds); done++) {
        bool seen = path && done < MOST_SPANS;
        matmul<<<grid, threads>>>(n, a, b, c, seen ? spans.first + done : NULL, seen ? spans.last + done : NULL);
        if (sync || done % 64 == 63)
            cudaDeviceSynchronize();
    }
    cudaMemcpy(host, c, bytes, cudaMemcpyDeviceToHost);
    double took = now() - begin;
    bool ok = cudaGetLastError() == cudaSuccess && (!path || write_spans(path, spans, done));
    for (int j = 0; j < n && ok; j++) { /* one row; small integers: exact */
        float want = 0;
        for (int k = 0; k < n; k++)
            want += (float)((n + k) % 7) * (float)((k * n + j) % 7);
        ok = host[n + j] == want;
    }
    printf("matmul %d: %ld launches in %.3f s, %s\n", n, done, took, ok ? "PASSED" : "FAILED");
    return !ok;
}
