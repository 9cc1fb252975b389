/* A program whose calls and device work are known in closed form. usage: timeline fill.ptx MODE
 *   plain N          N rounds: copy to the device (4 KiB + round bytes), memset, launch, copy back; one failing
 *                    call a round
 *   threads T L      T threads, each on a stream of its own: L launches and one asynchronous copy of 256 bytes
 *   graph K R        a graph of K kernel nodes in a chain, a copy node of 128 bytes and a memset node, launched R
 *                    times
 *   captured K R     the same kernels by capture
 *   own T L          T threads, each on its per-thread default stream: L launches by cuLaunchKernelEx in the context
 * that all share, a wait; then the same in a context of its own loop             launches for ever, each followed by a
 * wait ends N                    the process ends while N threads make calls arguments        a float, twelve
 * arguments: results are checked memory N    N allocations and more of every kind, freed in another order: prints "use BYTES" after each
 * Prints "ok", or what is wrong and exits with 1. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int cuInit(unsigned), cuCtxGetCurrent(void **), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int),
    cuCtxSetCurrent(void *), cuCtxSynchronize(void), cuModuleLoadData(void **, const void *),
    cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t),
    cuMemHostAlloc(void **, size_t, unsigned), cuMemcpyDtoH_v2(void *, uint64_t, size_t),
    cuMemcpyHtoD_v2(uint64_t, const void *, size_t), cuMemcpyHtoDAsync_v2(uint64_t, const void *, size_t, void *),
    cuMemsetD32_v2(uint64_t, unsigned, size_t), cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **),
    cuCtxCreate_v2(void **, unsigned, int), cuLaunchKernelEx(const void *, void *, void **, void **),
    cuGraphCreate(void **, unsigned), cuGraphInstantiateWithFlags(void **, void *, unsigned long long),
    cuGraphLaunch(void *, void *), cuGraphAddMemsetNode(void **, void *, void **, size_t, const void *, void *),
    cuStreamBeginCapture_v2(void *, int), cuStreamEndCapture(void *, void **),
    cuGraphAddKernelNode(void **, void *, void **, size_t, const void *),
    cuGraphAddMemcpyNode(void **, void *, void **, size_t, const void *, void *),
    cuFuncSetBlockShape(void *, int, int, int), cuParamSetv(void *, int, void *, unsigned),
    cuParamSetf(void *, int, float), cuParamSetSize(void *, unsigned), cuLaunch(void *),
    cuTensorMapEncodeTiled(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *,
                           const unsigned *, int, int, int, int),
    cuMemAllocPitch_v2(uint64_t *, size_t *, size_t, size_t, unsigned), cuMemAllocManaged(uint64_t *, size_t, unsigned),
    cuMemAllocAsync(uint64_t *, size_t, void *), cuMemFreeAsync(uint64_t, void *), cuMemFree_v2(uint64_t),
    cuMemCreate(uint64_t *, size_t, const void *, unsigned long long), cuMemRelease(uint64_t),
    cuEventCreate(void **, unsigned), cuEventRecord(void *, void *), cuEventSynchronize(void *),
    cuEventElapsedTime(float *, void *, void *);

static void *ctx, *module, *kernel;
static uint64_t cells;

#define CHECK(call) check(#call, call)
static void check(const char *what, int rc)
{
    if (!rc) return;
    printf("%s: %d\n", what, rc);
    exit(1);
}

static void launch(void *stream, unsigned n)
{
    void *params[] = {&cells, &n};
    CHECK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

static char text[1 << 16];
static void start(const char *ptx)
{
    FILE *f = fopen(ptx, "r");
    if (!f || !fread(text, 1, sizeof text - 1, f)) exit(1);
    fclose(f);
    int device;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&ctx, device));
    CHECK(cuCtxSetCurrent(ctx));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&kernel, module, "fill"));
    CHECK(cuMemAlloc_v2(&cells, 1 << 16));
}

static void plain(unsigned n)
{
    static char host[1 << 16];
    for (unsigned i = 0; i < n; i++) {
        CHECK(cuMemcpyHtoD_v2(cells, host, 4096 + i));
        CHECK(cuMemsetD32_v2(cells, i, 64));
        launch(NULL, 32);
        CHECK(cuMemcpyDtoH_v2(host, cells, 128));
        if (((uint32_t *)host)[31] != 31) check("the kernel's result", 1);
        if (cuMemcpyDtoH_v2(host, 0, 16) == 0) check("a copy from 0", 1);
    }
}

static unsigned n_launches;
static pthread_barrier_t together;
static void *run_thread(void *arg)
{
    void *stream;
    CHECK(cuCtxSetCurrent(ctx));
    CHECK(cuStreamCreate(&stream, 1));
    pthread_barrier_wait(&together);
    CHECK(cuMemcpyHtoDAsync_v2(cells + 4096, arg, 256, stream));
    for (unsigned i = 0; i < n_launches; i++) launch(stream, 32);
    CHECK(cuStreamSynchronize(stream));
    return NULL;
}

struct config {
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned n_attributes;
};
static void launch_own(void *function, uint64_t memory)
{
    unsigned n = 32;
    void *params[] = {&memory, &n};
    struct config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .stream = (void *)2};
    for (unsigned i = 0; i < n_launches; i++) CHECK(cuLaunchKernelEx(&c, function, params, NULL));
    CHECK(cuStreamSynchronize((void *)2));
}

static void *run_own(void *arg)
{
    void *mine, *loaded, *function;
    uint64_t memory;
    CHECK(cuCtxSetCurrent(ctx));
    pthread_barrier_wait(&together);
    launch_own(kernel, cells);
    CHECK(cuCtxCreate_v2(&mine, 0, 0));
    CHECK(cuModuleLoadData(&loaded, arg));
    CHECK(cuModuleGetFunction(&function, loaded, "fill"));
    CHECK(cuMemAlloc_v2(&memory, 256));
    launch_own(function, memory);
    return NULL;
}

static void threads(unsigned n, unsigned launches, void *(*run)(void *), void *arg)
{
    pthread_t t[256];
    n_launches = launches;
    pthread_barrier_init(&together, NULL, n);
    for (unsigned i = 0; i < n; i++) pthread_create(&t[i], NULL, run, arg);
    for (unsigned i = 0; i < n; i++) pthread_join(t[i], NULL);
}

static void start_threads(unsigned n, unsigned launches)
{
    void *pinned;
    CHECK(cuMemHostAlloc(&pinned, 4096, 0));
    threads(n, launches, run_thread, pinned);
}

struct kernel_node {
    void *func;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
};
struct copy3d {
    size_t src[4];
    int src_type;
    const void *src_host;
    uint64_t src_device;
    void *src_array, *src_ctx;
    size_t src_pitch, src_height;
    size_t dst[4];
    int dst_type;
    void *dst_host;
    uint64_t dst_device;
    void *dst_array, *dst_ctx;
    size_t dst_pitch, dst_height, width, height, depth;
};
struct memset_node {
    uint64_t dst;
    size_t pitch;
    unsigned value, bytes;
    size_t width, height;
};

static void graph(unsigned k, unsigned replays, int captured)
{
    static char host[128];
    void *g, *x, *stream, *last = NULL;
    unsigned n = 32;
    void *params[] = {&cells, &n};
    CHECK(cuStreamCreate(&stream, 1));
    if (captured) {
        CHECK(cuStreamBeginCapture_v2(stream, 0));
        for (unsigned i = 0; i < k; i++) launch(stream, 32);
        CHECK(cuStreamEndCapture(stream, &g));
    } else {
        struct kernel_node p = {kernel, {1, 1, 1}, {32, 1, 1}, 0, params, NULL};
        CHECK(cuGraphCreate(&g, 0));
        for (unsigned i = 0; i < k; i++) CHECK(cuGraphAddKernelNode(&last, g, last ? &last : NULL, last != NULL, &p));
        struct copy3d c = {.src_type = 2,
                           .src_device = cells,
                           .dst_type = 1,
                           .dst_host = host,
                           .src_pitch = 128,
                           .dst_pitch = 128,
                           .src_height = 1,
                           .dst_height = 1,
                           .width = 128,
                           .height = 1,
                           .depth = 1};
        CHECK(cuGraphAddMemcpyNode(&last, g, &last, 1, &c, ctx));
        struct memset_node m = {cells + 8192, 0, 7, 4, 16, 1};
        CHECK(cuGraphAddMemsetNode(&last, g, &last, 1, &m, ctx));
    }
    CHECK(cuGraphInstantiateWithFlags(&x, g, 0));
    for (unsigned i = 0; i < replays; i++) CHECK(cuGraphLaunch(x, stream));
    CHECK(cuStreamSynchronize(stream));
}

static void loop(void)
{
    for (unsigned i = 0;; i++) {
        launch(NULL, 32);
        CHECK(cuCtxSynchronize());
        if (i % 64 == 0) printf("%u\n", i), fflush(stdout);
    }
}

static void *call_for_ever(void *arg)
{
    (void)arg;
    for (void *c;;) cuCtxGetCurrent(&c);
    return NULL;
}

static void arguments(void)
{
    static uint32_t host[32];
    uint32_t lanes = 32;
    float n;
    memcpy(&n, &lanes, 4); /* the kernel's second parameter is a number of lanes, given as a float's bits */
    CHECK(cuMemsetD32_v2(cells, 0, 32));
    CHECK(cuFuncSetBlockShape(kernel, 32, 1, 1));
    CHECK(cuParamSetv(kernel, 0, &cells, 8));
    CHECK(cuParamSetf(kernel, 8, n));
    CHECK(cuParamSetSize(kernel, 12));
    CHECK(cuLaunch(kernel));
    CHECK(cuMemcpyDtoH_v2(host, cells, sizeof host));
    if (host[31] != 31) check("a float argument", 1);
    static _Alignas(64) unsigned char map[128];
    uint64_t dims[2] = {64, 64}, strides[1] = {256};
    unsigned box[2] = {16, 16}, steps[2] = {1, 1};
    CHECK(cuTensorMapEncodeTiled(map, 7, 2, (void *)(uintptr_t)cells, dims, strides, box, steps, 0, 0, 0, 0));
    if (cuTensorMapEncodeTiled(map, 7, 2, (void *)(uintptr_t)cells, dims, strides, box, steps, 0, 0, 0, 99) == 0)
        check("the twelfth argument", 1);
    void *a, *b;
    float ms = -1;
    CHECK(cuEventCreate(&a, 0));
    CHECK(cuEventCreate(&b, 0));
    CHECK(cuEventRecord(a, NULL));
    launch(NULL, 32);
    CHECK(cuEventRecord(b, NULL));
    CHECK(cuEventSynchronize(b));
    CHECK(cuEventElapsedTime(&ms, a, b));
    if (!(ms >= 0)) check("a time", 1);
}

static size_t in_use = 1 << 16; /* start() */
static void use(size_t more, size_t less)
{
    in_use += more;
    in_use -= less;
    printf("use %zu\n", in_use);
}

static void memory(unsigned n)
{
    uint64_t at[256], pitched, managed, later, created;
    size_t pitch;
    unsigned properties[8] = {1, 0, 1, 0};
    for (unsigned i = 0; i < n; i++) {
        CHECK(cuMemAlloc_v2(&at[i], 1000 * (i + 1)));
        use(1000 * (i + 1), 0);
    }
    for (unsigned i = 0; i < n; i += 2) {
        CHECK(cuMemFree_v2(at[i]));
        use(0, 1000 * (i + 1));
    }
    CHECK(cuMemAllocPitch_v2(&pitched, &pitch, 100, 7, 4));
    use(7 * pitch, 0);
    CHECK(cuMemAllocManaged(&managed, 4096, 1));
    use(4096, 0);
    CHECK(cuMemAllocAsync(&later, 5000, NULL));
    use(5000, 0);
    CHECK(cuMemCreate(&created, 2 << 20, properties, 0));
    use(2 << 20, 0);
    if (!cuMemAlloc_v2(&at[0], (size_t)1 << 60)) check("room for 2^60 bytes", 1);
    CHECK(cuMemRelease(created));
    use(0, 2 << 20);
    CHECK(cuMemFreeAsync(later, NULL));
    use(0, 5000);
    CHECK(cuMemFree_v2(pitched));
    use(0, 7 * pitch);
    for (unsigned i = n - n % 2; i-- > 0;) {
        if (i % 2 == 0) continue;
        CHECK(cuMemFree_v2(at[i]));
        use(0, 1000 * (i + 1));
    }
}

int main(int argc, char **argv)
{
    unsigned a = argc > 3 ? (unsigned)atoi(argv[3]) : 0, b = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
    if (argc < 3) return 2;
    start(argv[1]);
    if (!strcmp(argv[2], "plain"))
        plain(a);
    else if (!strcmp(argv[2], "threads"))
        start_threads(a, b);
    else if (!strcmp(argv[2], "own"))
        threads(a, b, run_own, text);
    else if (!strcmp(argv[2], "graph"))
        graph(a, b, 0);
    else if (!strcmp(argv[2], "captured"))
        graph(a, b, 1);
    else if (!strcmp(argv[2], "memory"))
        memory(a);
    else if (!strcmp(argv[2], "loop"))
        loop();
    else if (!strcmp(argv[2], "ends")) {
        pthread_t t;
        for (unsigned i = 0; i < a; i++) pthread_create(&t, NULL, call_for_ever, NULL);
        nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    } else if (!strcmp(argv[2], "arguments"))
        arguments();
    else
        return 2;
    puts("ok");
    return 0;
}
