/* Stores that go astray, at distances from the ends of a buffer, each in a kernel of its own, and kernels whose counts are known
 * in front of and behind each: what this prints and how it ends has to be the same with Margay's counters in memory and without.
 *   apart issue|fits            24 KiB are written through a pointer to 3 KiB (fits: to 24 KiB)
 *   apart KIND up|down D...     KIND: malloc async managed module array shared; a store of a byte (odd D) or a word at each distance D behind
 *                               the end of the buffer, or in front of its beginning; each is undone by nobody
 * The context does not outlive a fault: the program ends. Else the last line says how many launches the runtime took, in order: work, then stray and work for each distance. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

enum { THREADS = 256, CTAS = 4, WORDS = 1024 };
__device__ unsigned module_words[WORDS];
static int launches;

extern "C" __global__ void work(unsigned *sums)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
    for (unsigned k = 0; k < (i & 7); k++) s += k * i;
    if (i & 1) s++;
    sums[i] = s;
}
extern "C" __global__ void stray(char *at, int bytes)
{
    if (bytes == 1) *(volatile char *)at = 0x5a;
    else *(volatile unsigned *)at = 0x5a5a5a5a;
}
extern "C" __global__ void stray_surface(cudaSurfaceObject_t s, int x) { surf1Dwrite(0x5a5a5a5au, s, x, cudaBoundaryModeZero); }
extern "C" __global__ void stray_shared(unsigned *out, long long off, int bytes)
{
    __shared__ unsigned words[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = i;
    __syncthreads();
    if (!threadIdx.x) {
        char *at = (char *)words + off;
        if (bytes == 1) *(volatile char *)at = 0x5a;
        else *(volatile unsigned *)at = 0x5a5a5a5a;
    }
    __syncthreads();
    unsigned s = 0;
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) s += words[i];
    atomicAdd(out, s);
}
extern "C" __global__ void fill(unsigned *at, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) at[i] = i;
}

static const char *take(cudaError_t e)
{
    launches += e == cudaSuccess;
    if (e == cudaSuccess) e = cudaDeviceSynchronize();
    return cudaGetErrorName(e);
}
static unsigned *sums;
static void run_work(const char *when)
{
    static unsigned host[THREADS * CTAS];
    unsigned long long sum = 0;
    work<<<CTAS, THREADS>>>(sums);
    const char *e = take(cudaGetLastError());
    cudaError_t c = cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < THREADS * CTAS; i++) sum = sum * 31 + host[i];
    printf("%s work %s %s %llx\n", when, e, cudaGetErrorName(c), c ? 0 : sum);
}

static int issue(bool fits)
{
    unsigned *p;
    if (cudaMalloc(&p, fits ? 24 << 10 : 3 << 10)) return 3;
    run_work("first");
    fill<<<24, THREADS>>>(p, 6 << 10);
    printf("fill %s\n", take(cudaGetLastError()));
    run_work("then");
    return 0;
}

static char *buffer_of(const char *kind, cudaArray_t *array)
{
    void *p = NULL;
    cudaChannelFormatDesc word = cudaCreateChannelDesc<unsigned>();
    if (!strcmp(kind, "malloc")) cudaMalloc(&p, 4 * WORDS);
    if (!strcmp(kind, "async")) cudaMallocAsync(&p, 4 * WORDS, 0), cudaStreamSynchronize(0);
    if (!strcmp(kind, "managed")) cudaMallocManaged(&p, 4 * WORDS);
    if (!strcmp(kind, "module")) cudaGetSymbolAddress(&p, module_words);
    if (!strcmp(kind, "array")) cudaMallocArray(array, &word, WORDS, 0, cudaArraySurfaceLoadStore), p = *array;
    if (!strcmp(kind, "shared")) p = (void *)64;
    return (char *)p;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2) return 2;
    if (cudaMalloc(&sums, sizeof *sums * THREADS * CTAS)) return 3;
    if (!strcmp(argv[1], "issue") || !strcmp(argv[1], "fits")) {
        int rc = issue(argv[1][0] == 'f');
        printf("launches %d\n", launches);
        return rc;
    }
    cudaArray_t array;
    cudaSurfaceObject_t surface = 0;
    char *at = buffer_of(argv[1], &array);
    if (!at || argc < 3) return 3;
    if (!strcmp(argv[1], "array")) {
        cudaResourceDesc d = {};
        d.resType = cudaResourceTypeArray;
        d.res.array.array = array;
        if (cudaCreateSurfaceObject(&surface, &d)) return 3;
    }
    run_work("first");
    for (int i = 3; i < argc; i++) {
        long long d = atoll(argv[i]), off = argv[2][0] == 'u' ? 4 * WORDS - 4 + d : -d;
        int bytes = d % 4 ? 1 : 4;
        if (surface) stray_surface<<<1, 1>>>(surface, (int)(off & ~3ll));
        else if (!strcmp(argv[1], "shared")) stray_shared<<<1, THREADS>>>(sums, off, bytes);
        else stray<<<1, 1>>>(at + off, bytes);
        const char *e = take(cudaGetLastError());
        printf("%s %s %lld: %s\n", argv[1], argv[2], d, e);
        if (strcmp(e, "cudaSuccess")) return 7;
        run_work("then");
    }
    printf("launches %d\n", launches);
    return 0;
}
