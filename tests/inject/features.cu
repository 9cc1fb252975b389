/* One feature of the runtime per argument, each with its own check: state that the twin must share
 * with the application's image, and launch paths that must reach it.  usage: features NAME */
#include <alloca.h>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                    \
    do {                                                                                               \
        cudaError_t e_ = (call);                                                                       \
        if (e_ != cudaSuccess) {                                                                       \
            printf("%s: %s\n", #call, cudaGetErrorString(e_));                                         \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (0)

__device__ int counter;
static __device__ int hidden[4] = {1, 2, 3, 4};
__constant__ int scale = 3;
__managed__ int shared_with_host = 5;
__device__ int (*chosen)(int);

__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ int (*table[2])(int) = {twice, square};

struct shape { __device__ virtual int area() const { return 1; } int pad; };
struct box : shape { int w; __device__ box(int w_) : w(w_) {} __device__ int area() const override { return w * w; } };

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

__global__ void state(int *out)
{
    static __device__ int calls;
    atomicAdd(&counter, scale);
    atomicAdd(&calls, 1);
    hidden[threadIdx.x & 3] += 0;
    if (threadIdx.x == 0) { shared_with_host += 1; *out = calls; }
}
__global__ void indirect(int *out, int which)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    box b(i & 7);
    const shape *s = &b;
    out[i] = table[(which + i) & 1](i) + s->area() + fib(i & 3);
}
/* One kernel makes objects, another calls them: their tables of functions are read in both. */
__global__ void make_objects(shape **at)
{
    if (threadIdx.x & 1) at[threadIdx.x] = new box((int)threadIdx.x);
    else at[threadIdx.x] = new shape;
}
__global__ void call_objects(shape **at, int *out) { out[threadIdx.x] = at[threadIdx.x]->area(); }
__global__ void variable_stack(int *out, int n)
{
    int *p = (int *)alloca((n + threadIdx.x % 5) * sizeof *p), sum = 0;
    for (int i = 0; i < n + (int)threadIdx.x % 5; i++) p[i] = i;
    for (int i = n + (int)threadIdx.x % 5; i-- > 0;) sum += p[i];
    out[threadIdx.x] = sum;
}
__global__ void add(int *a, int n, int by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] += by;
}
__global__ void together(int *a, int n)
{
    cooperative_groups::grid_group g = cooperative_groups::this_grid();
    for (int step = 0; step < 3; step++) {
        for (int i = g.thread_rank(); i < n; i += g.size()) a[i] += step;
        g.sync();
    }
}
__global__ void dynamic_shared(int *out)
{
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void speak(int n) { if (threadIdx.x < n) printf("thread %d\n", threadIdx.x); }

static int fail(const char *what) { printf("%s: FAILED\n", what); return 1; }

static int run_state()
{
    int *out, got, n, h[4];
    CHECK(cudaMalloc(&out, 4));
    int seven = 7;
    CHECK(cudaMemcpyToSymbol(scale, &seven, 4));
    for (int i = 0; i < 3; i++) state<<<2, 64>>>(out);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyFromSymbol(&n, counter, 4));
    CHECK(cudaMemcpyFromSymbol(h, hidden, 16));
    CHECK(cudaMemcpy(&got, out, 4, cudaMemcpyDeviceToHost));
    return n != 3 * 128 * 7 || h[3] != 4 || shared_with_host <= 5 || got < 257 || got > 384 ? fail("state") : 0;
}
static int run_indirect()
{
    int *out;
    std::vector<int> h(256);
    CHECK(cudaMalloc(&out, 1024));
    indirect<<<4, 64>>>(out, 1);
    CHECK(cudaMemcpy(h.data(), out, 1024, cudaMemcpyDeviceToHost));
    static const int fibs[4] = {0, 1, 1, 2};
    for (int i = 0; i < 256; i++)
        if (h[i] != ((1 + i) & 1 ? i * i : 2 * i) + (i & 7) * (i & 7) + fibs[i & 3]) return fail("indirect");
    return 0;
}
static int check_all(int *d, int n, int want, const char *what)
{
    std::vector<int> h(n);
    CHECK(cudaMemcpy(h.data(), d, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (h[i] != want) return printf("[%d] = %d, not %d\n", i, h[i], want), fail(what);
    return 0;
}
static int run_objects()
{
    shape **at;
    int *out;
    CHECK(cudaMallocManaged(&at, 64 * sizeof *at));
    CHECK(cudaMallocManaged(&out, 64 * sizeof *out));
    make_objects<<<1, 64>>>(at);
    call_objects<<<1, 64>>>(at, out);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        if (out[i] != (i & 1 ? i * i : 1)) return fail("objects");
    variable_stack<<<1, 64>>>(out, 10);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        if (out[i] != (10 + i % 5) * (9 + i % 5) / 2) return fail("objects");
    return 0;
}
static int run_capture()
{
    int *d, n = 1000;
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t x;
    CHECK(cudaMalloc(&d, n * 4));
    CHECK(cudaMemset(d, 0, n * 4));
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add<<<4, 256, 0, s>>>(d, n, 1);
    add<<<4, 256, 0, s>>>(d, n, 10);
    CHECK(cudaStreamEndCapture(s, &g));
    CHECK(cudaGraphInstantiate(&x, g, 0));
    for (int i = 0; i < 5; i++) CHECK(cudaGraphLaunch(x, s));
    CHECK(cudaStreamSynchronize(s));
    return check_all(d, n, 55, "capture");
}
static int run_nodes()
{
    int *d, n = 1000, by = 1, by2 = 100;
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaGraphNode_t a, b;
    CHECK(cudaMalloc(&d, n * 4));
    CHECK(cudaMemset(d, 0, n * 4));
    CHECK(cudaGraphCreate(&g, 0));
    void *args[] = {&d, &n, &by}, *args2[] = {&d, &n, &by2};
    cudaKernelNodeParams p = {};
    p.func = (void *)add, p.gridDim = dim3(4), p.blockDim = dim3(256), p.kernelParams = args;
    CHECK(cudaGraphAddKernelNode(&a, g, NULL, 0, &p));
    CHECK(cudaGraphAddKernelNode(&b, g, &a, 1, &p));
    cudaKernelNodeParams back = {};
    CHECK(cudaGraphKernelNodeGetParams(b, &back));
    if (back.func != (void *)add || *(int *)back.kernelParams[2] != 1 || back.gridDim.x != 4) return fail("nodes: params");
    back.gridDim = dim3(8); /* what was read is given back, changed */
    CHECK(cudaGraphKernelNodeSetParams(b, &back));
    CHECK(cudaGraphInstantiate(&x, g, 0));
    CHECK(cudaGraphLaunch(x, 0));
    p.kernelParams = args2;
    CHECK(cudaGraphExecKernelNodeSetParams(x, a, &p));
    CHECK(cudaGraphLaunch(x, 0));
    CHECK(cudaDeviceSynchronize());
    return check_all(d, n, 1 + 1 + 100 + 1, "nodes");
}
static int run_cooperative()
{
    int *d, n = 1000, per_sm, sms;
    CHECK(cudaMalloc(&d, n * 4));
    CHECK(cudaMemset(d, 0, n * 4));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, together, 128, 0));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    void *args[] = {&d, &n};
    CHECK(cudaLaunchCooperativeKernel((void *)together, dim3(8), dim3(128), args, 0, 0));
    CHECK(cudaDeviceSynchronize());
    if (per_sm < 1 || per_sm * sms < 8) return fail("cooperative: occupancy");
    return check_all(d, n, 3, "cooperative");
}
static int run_shared()
{
    int *d, bytes = 96 * 1024;
    std::vector<int> h(256);
    CHECK(cudaMalloc(&d, 1024));
    cudaFuncAttributes before, after;
    CHECK(cudaFuncGetAttributes(&before, dynamic_shared));
    CHECK(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    dynamic_shared<<<1, 256, bytes>>>(d);
    CHECK(cudaMemcpy(h.data(), d, 1024, cudaMemcpyDeviceToHost));
    CHECK(cudaFuncGetAttributes(&after, dynamic_shared));
    if (before.numRegs != after.numRegs || after.maxDynamicSharedSizeBytes != bytes) return fail("shared: attributes");
    CHECK(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes / 2));
    dynamic_shared<<<1, 256, bytes>>>(d); /* above the limit again: an error with and without a twin */
    if (cudaGetLastError() != cudaErrorInvalidValue) return fail("shared: limit");
    for (int i = 0; i < 256; i++)
        if (h[i] != 255 - i) return fail("shared");
    return 0;
}
static int run_streams()
{
    int *d[4], n = 1000, wrong = 0;
    cudaStream_t s[4];
    for (int k = 0; k < 4; k++) {
        CHECK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
        CHECK(cudaMalloc(&d[k], n * 4));
        CHECK(cudaMemsetAsync(d[k], 0, n * 4, s[k]));
    }
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 4; k++) add<<<4, 256, 0, s[k]>>>(d[k], n, k + 1);
    CHECK(cudaDeviceSynchronize());
    for (int k = 0; k < 4; k++) wrong |= check_all(d[k], n, 20 * (k + 1), "streams");
    return wrong;
}
static int run_ex()
{
    int *d, n = 1000;
    CHECK(cudaMalloc(&d, n * 4));
    CHECK(cudaMemset(d, 0, n * 4));
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(4), c.blockDim = dim3(256);
    CHECK(cudaLaunchKernelEx(&c, add, d, n, 6));
    return check_all(d, n, 6, "ex");
}
static int run_printf()
{
    speak<<<1, 32>>>(2);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
static int run_reset()
{
    int *d, n = 1000;
    for (int k = 0; k < 2; k++) {
        CHECK(cudaMalloc(&d, n * 4));
        CHECK(cudaMemset(d, 0, n * 4));
        add<<<4, 256>>>(d, n, 2);
        if (check_all(d, n, 2, "reset")) return 1;
        CHECK(cudaDeviceReset());
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct { const char *name; int (*fn)(); } all[] = {
        {"state", run_state}, {"indirect", run_indirect}, {"objects", run_objects}, {"capture", run_capture}, {"nodes", run_nodes},
        {"cooperative", run_cooperative}, {"shared", run_shared}, {"streams", run_streams}, {"ex", run_ex},
        {"printf", run_printf}, {"reset", run_reset}};
    for (auto &t : all)
        if (argc > 1 && !strcmp(argv[1], t.name)) {
            int rc = t.fn();
            if (!rc) printf("%s: ok\n", t.name);
            return rc;
        }
    return 2;
}
