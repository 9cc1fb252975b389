/* What the host does beside the device's work: functions in streams that fill pinned memory for a later copy, stores to
 * managed memory behind the last launch, memory freed in stream order; a host function in a graph, which no capture can
 * hold; textures that outlive their memory; eight threads; the address of a device function, read and handed back.
 * Values that streams write, and copies in batches; a thread that stores to managed memory while kernels run.
 * late add.ptx
 * fill|stores|beside|freed|graph|textures|threads|big|mapped|function|values|streams|variable|unmapped|gone */
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adder.h"

D(cuMemcpy2DAsync_v2, const struct cu_memcpy2d *, cu_stream)
D(cuMemsetD32Async, cu_ptr, unsigned, size_t, cu_stream)
D(cuLaunchHostFunc, cu_stream, cu_host_fn, void *)
D(cuStreamAddCallback, cu_stream, cu_stream_fn, void *, unsigned)
D(cuTexObjectCreate, cu_tex *, const struct cu_resource_desc *, const struct cu_texture_desc *,
  const struct cu_view_desc *)
D(cuTexObjectDestroy, cu_tex)
D(cuCtxGetCurrent, cu_ctx *)
D(cuDevicePrimaryCtxRelease_v2, cu_device)
D(cuMemHostRegister_v2, void *, size_t, unsigned)
D(cuMemHostGetDevicePointer_v2, cu_ptr *, void *, unsigned)
D(cuCtxSynchronize, void)
D(cuFuncSetAttribute, cu_function, int, int)
D(cuEventCreate, cu_event *, unsigned)
D(cuEventRecord, cu_event, cu_stream)
D(cuStreamWaitEvent, cu_stream, cu_event, unsigned)
D(cuModuleGetGlobal_v2, cu_ptr *, size_t *, cu_module, const char *)
D(cuStreamWriteValue32_v2, cu_stream, cu_ptr, uint32_t, unsigned)
D(cuStreamWriteValue64_v2, cu_stream, cu_ptr, uint64_t, unsigned)
D(cuStreamBatchMemOp_v2, cu_stream, unsigned, union cu_memop_params *, unsigned)
D(cuMemcpyBatchAsync_v2, cu_ptr *, cu_ptr *, size_t *, size_t, struct cu_copy_attributes *, size_t *, size_t, cu_stream)
D(cuMemcpyBatchAsync, cu_ptr *, cu_ptr *, size_t *, size_t, struct cu_copy_attributes *, size_t *, size_t, size_t *,
  cu_stream)
D(cuMemAddressReserve, cu_ptr *, size_t, size_t, cu_ptr, unsigned long long)
D(cuMemCreate, cu_mem_handle *, size_t, const struct cu_alloc_prop *, unsigned long long)
D(cuMemMap, cu_ptr, size_t, size_t, cu_mem_handle, unsigned long long)
D(cuMemSetAccess, cu_ptr, size_t, const struct cu_access *, size_t)

static cu_stream s;
static cu_ctx context;
static cu_module module;

static void say(const char *name, const unsigned *p, unsigned want)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < N; i++) wrong += p[i] != want;
    printf("%s: %s\n", name, wrong ? "WRONG" : "ok");
}

static void fill(void *p)
{
    unsigned *words = p;
    usleep(100000); /* whoever reads at the call reads what was there before */
    for (int i = 0; i < N; i++) words[i] = words[i] + 40;
}
static void call_back(cu_stream stream, cu_result rc, void *p)
{
    (void)stream, (void)rc;
    fill(p);
}

/* Behind a host function, a callback and a copy from the device; in one dimension and in two. */
static void late_fills(void)
{
    unsigned *pinned, back[N];
    cu_ptr p;
    OK(cuMemHostAlloc((void **)&pinned, sizeof back, 0));
    OK(cuMemAlloc_v2(&p, sizeof back));
    for (int i = 0; i < N; i++) pinned[i] = 2;
    OK(cuLaunchHostFunc(s, fill, pinned));
    OK(cuMemcpyHtoDAsync_v2(p, pinned, sizeof back, s));
    run_add(p, 1, s); /* 43 */
    OK(cuMemcpyDtoHAsync_v2(pinned, p, sizeof back, s));
    OK(cuMemsetD32Async(p, 0, N, s));
    OK(cuMemcpyHtoDAsync_v2(p, pinned, sizeof back, s));
    run_add(p, 1, s); /* 44 */
    OK(cuMemcpyDtoHAsync_v2(pinned, p, sizeof back, s));
    OK(cuStreamAddCallback(s, call_back, pinned, 0));
    struct cu_memcpy2d box = {.src_type = CUMEM_HOST,
                              .src_host = pinned,
                              .src_pitch = 400,
                              .dst_type = CUMEM_DEVICE,
                              .dst_device = p,
                              .dst_pitch = 400,
                              .width = 400,
                              .height = 10};
    OK(cuMemcpy2DAsync_v2(&box, s));
    run_add(p, 1, s);                      /* 85 */
    OK(cuLaunchHostFunc(s, fill, pinned)); /* behind the copy: the copy does not see it */
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    say("late fills", back, 85);
    OK(cuMemFree_v2(p));
    OK(cuMemFreeHost(pinned));
}

/* After the last launch, before the memory goes away: not the launch's. */
static void late_stores(void)
{
    cu_ptr p, left;
    OK(cuMemAllocManaged(&p, N * 4, CUATTACH_GLOBAL));
    OK(cuMemAllocManaged(&left, N * 4, CUATTACH_GLOBAL));
    unsigned *m = (unsigned *)(uintptr_t)p, *l = (unsigned *)(uintptr_t)left;
    for (int i = 0; i < N; i++) m[i] = l[i] = 10;
    run_add(p, 1, s);
    run_add(left, 2, s);
    OK(cuStreamSynchronize(s));
    for (int i = 0; i < N; i++) m[i]++, l[i]++;
    OK(cuStreamSynchronize(s)); /* again: nothing has run since */
    say("late stores", m, 12);
    say("late stores, never freed", l, 13);
    for (int i = 0; i < N; i++) m[i]++, l[i]++;
    OK(cuMemFree_v2(p));
}

static void freed(void)
{
    unsigned back[N];
    cu_ptr p;
    OK(cuMemAllocAsync(&p, sizeof back, s));
    OK(cuMemsetD32Async(p, 7, N, s));
    run_add(p, 1, s);
    OK(cuMemcpyDtoHAsync_v2(back, p, sizeof back, s));
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamSynchronize(s));
    say("freed in order", back, 8);
}

static void in_graph(void)
{
    cu_graph g;
    cu_graph_exec x;
    cu_ptr p;
    OK(cuMemAllocManaged(&p, N * 4, CUATTACH_GLOBAL));
    unsigned *m = (unsigned *)(uintptr_t)p;
    for (int i = 0; i < N; i++) m[i] = 1;
    OK(cuStreamBeginCapture_v2(s, CUCAPTURE_THREAD_LOCAL));
    OK(cuLaunchHostFunc(s, fill, m));
    run_add(p, 1, s);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    say("in a graph", m, 42);
}

static const char fetch_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                ".visible .entry fetch(.param .u64 out, .param .u64 tex)\n{\n"
                                "    .reg .b32 %r<6>;\n    .reg .b64 %d<4>;\n"
                                "    ld.param.u64 %d1, [out];\n    ld.param.u64 %d2, [tex];\n"
                                "    mov.u32 %r1, %tid.x;\n"
                                "    tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%d2, {%r1}];\n"
                                "    mul.wide.u32 %d3, %r1, 4;\n    add.s64 %d1, %d1, %d3;\n"
                                "    st.global.u32 [%d1], %r2;\n    ret;\n}\n";

static cu_tex texture_of(cu_ptr over, size_t bytes)
{
    cu_tex t;
    struct cu_resource_desc of = {.type = CURES_LINEAR,
                                  .res.linear = {.ptr = over, .format = CUAD_UINT32, .channels = 1, .bytes = bytes}};
    OK(cuTexObjectCreate(&t, &of, &(struct cu_texture_desc){.flags = CUTEX_READ_AS_INTEGER}, NULL));
    return t;
}
static void run_fetch(cu_function f, cu_ptr to, cu_tex t, unsigned want)
{
    unsigned back[N];
    OK(cuMemsetD32Async(to, want, N, s)); /* for what lies behind the block of threads */
    OK(cuLaunchKernel(f, 1, 1, 1, 512, 1, 1, 0, s, (void *[]){&to, &t}, NULL));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, to, sizeof back));
    say("a texture", back, want);
}

/* Launches that are taken out, beside textures that have outlived memory which no other memory shares a page with. One
 * says that it has more than there is, up to memory that stays. The first one is gone, and its handle is given again.
 */
static void textures(void)
{
    enum { PAGES = 8 << 20 };
    cu_ptr a, b, c, to;
    cu_module m;
    cu_function fetch;
    OK(cuModuleLoadData(&m, fetch_ptx));
    OK(cuModuleGetFunction(&fetch, m, "fetch"));
    OK(cuMemAlloc_v2(&a, PAGES));
    OK(cuMemAlloc_v2(&b, PAGES));
    OK(cuMemAlloc_v2(&c, PAGES));
    OK(cuMemAlloc_v2(&to, PAGES));
    cu_tex first = texture_of(c, PAGES);
    texture_of(a, PAGES);
    texture_of(b, 3 * PAGES);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
    OK(cuTexObjectDestroy(first));
    OK(cuMemsetD32Async(c, 7, N, s));
    first = texture_of(c, PAGES);
    run_fetch(fetch, to, first, 7); /* launch 0 */
    OK(cuTexObjectDestroy(first));
    OK(cuMemsetD32Async(c + PAGES / 2, 8, N, s));
    cu_tex again = texture_of(c + PAGES / 2, PAGES / 2);
    printf("handle given again: %s\n", again == first ? "yes" : "no");
    run_fetch(fetch, to, again, 8); /* launch 1 */
}

/* Threads that allocate, copy, launch and free beside each other, four of them in one stream. */
static void *thread(void *arg)
{
    unsigned *me = arg, data[N], back[N], k = *me + 1, n = N;
    cu_stream stream = s;
    cu_ptr p;
    OK(cuCtxSetCurrent(context));
    if (*me >= 4) OK(cuStreamCreate(&stream, 1));
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < N; i++) data[i] = round * i;
        OK(cuMemAllocAsync(&p, sizeof data, stream));
        OK(cuMemcpyHtoDAsync_v2(p, data, sizeof data, stream));
        OK(cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, stream, (void *[]){&p, &k, &n}, NULL));
        OK(cuMemcpyDtoHAsync_v2(back, p, sizeof back, stream));
        OK(cuMemFreeAsync(p, stream));
        OK(cuStreamSynchronize(stream));
        for (unsigned i = 0; i < N; i++)
            if (back[i] != round * i + k) *me = 100;
    }
    return NULL;
}
static void threads(void)
{
    pthread_t of[8];
    unsigned number[8];
    OK(cuCtxGetCurrent(&context));
    for (unsigned i = 0; i < 8; i++) number[i] = i, pthread_create(&of[i], NULL, thread, &number[i]);
    for (unsigned i = 0; i < 8; i++) {
        pthread_join(of[i], NULL);
        printf("thread %u: %s\n", i, number[i] == 100 ? "WRONG" : "ok");
    }
}

/* Words behind those that kernels write, of the same memory, until they are told to stop. */
static unsigned *theirs;
static _Atomic bool stop;
static void *store(void *arg)
{
    (void)arg;
    for (unsigned value = 1; !stop; value++)
        for (unsigned i = 0; i < N; i++) theirs[i] = value;
    return NULL;
}
static void beside(void)
{
    cu_ptr p;
    pthread_t t;
    OK(cuMemAllocManaged(&p, 2 * N * 4, CUATTACH_GLOBAL));
    unsigned *m = (unsigned *)(uintptr_t)p;
    theirs = m + N;
    for (int i = 0; i < 2 * N; i++) m[i] = 1;
    pthread_create(&t, NULL, store, NULL);
    for (unsigned k = 0; k < 20; k++) run_add(p, 1, s);
    OK(cuStreamSynchronize(s));
    stop = true;
    pthread_join(t, NULL);
    say("beside a thread", m, 21);
    unsigned last = theirs[0] + 1;
    run_add(p + N * 4, 1, s); /* what the thread has stored is read */
    OK(cuStreamSynchronize(s));
    say("what it stored", theirs, last);
    OK(cuMemFree_v2(p));
}

/* A megabyte that cannot be packed. */
static void big(void)
{
    enum { WORDS = 1 << 18 };
    static unsigned data[WORDS];
    unsigned back[N], state = 1;
    cu_ptr p;
    for (int i = 0; i < WORDS; i++) {
        state = state * 1664525 + 1013904223;
        data[i] = state ^ state >> 16;
    }
    for (int i = 0; i < N; i++) data[i] = 1;
    OK(cuMemAlloc_v2(&p, sizeof data));
    OK(cuMemcpyHtoDAsync_v2(p, data, sizeof data, s));
    run_add(p, 1, s);
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    say("a megabyte", back, 2);
}

/* Memory that it maps itself, twice, where the driver likes. */
static void mapped(void)
{
    enum { BYTES = 2 << 20 };
    struct cu_alloc_prop prop = {.type = 1, .location = {CULOC_DEVICE, 0}};
    struct cu_access access = {prop.location, CUACCESS_READWRITE};
    for (int round = 0; round < 2; round++) {
        unsigned back[N];
        cu_ptr p;
        cu_mem_handle h;
        OK(cuMemAddressReserve(&p, BYTES, 0, 0, 0));
        OK(cuMemCreate(&h, BYTES, &prop, 0));
        OK(cuMemMap(p, BYTES, 0, h, 0));
        OK(cuMemSetAccess(p, BYTES, &access, 1));
        OK(cuMemsetD32Async(p, 1, N, s));
        run_add(p, 6, s);
        OK(cuStreamSynchronize(s));
        OK(cuMemcpyDtoH_v2(back, p, sizeof back));
        say("mapped", back, 7);
    }
}

static const char call_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".func (.param .b32 out) thrice(.param .b32 in)\n{\n    .reg .b32 %r<3>;\n"
                               "    ld.param.u32 %r1, [in];\n    mul.lo.u32 %r2, %r1, 3;\n"
                               "    st.param.b32 [out], %r2;\n    ret;\n}\n"
                               ".visible .global .align 8 .u64 where = thrice;\n"
                               ".visible .entry apply(.param .u64 f, .param .u64 p)\n{\n"
                               "    .reg .b32 %r<4>;\n    .reg .b64 %d<5>;\n"
                               "    ld.param.u64 %d1, [f];\n    ld.param.u64 %d2, [p];\n    mov.u32 %r1, %tid.x;\n"
                               "    mul.wide.u32 %d3, %r1, 4;\n    add.s64 %d4, %d2, %d3;\n"
                               "    ld.global.u32 %r2, [%d4];\n    {\n    .param .b32 a;\n    .param .b32 b;\n"
                               "    st.param.b32 [a], %r2;\n"
                               "    form: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                               "    call (b), %d1, (a), form;\n    ld.param.b32 %r3, [b];\n    }\n"
                               "    st.global.u32 [%d4], %r3;\n    ret;\n}\n";

static void function(void)
{
    unsigned back[N];
    unsigned long long address;
    size_t bytes;
    cu_ptr where, p;
    cu_module m;
    cu_function apply;
    OK(cuModuleLoadData(&m, call_ptx));
    OK(cuModuleGetFunction(&apply, m, "apply"));
    OK(cuModuleGetGlobal_v2(&where, &bytes, m, "where"));
    OK(cuMemcpyDtoH_v2(&address, where, sizeof address));
    OK(cuMemAlloc_v2(&p, sizeof back));
    OK(cuMemsetD32Async(p, 7, N, s));
    OK(cuLaunchKernel(apply, 1, 1, 1, N, 1, 1, 0, s, (void *[]){&address, &p}, NULL));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    say("a function by its address", back, 21);
}

/* The first words one by one, the rest by copies: from the host, from what was written, and over again. */
static void values(void)
{
    enum { ONES = 6, HALF = N / 2 };
    static unsigned host[N], back[N];
    cu_ptr p, q;
    OK(cuMemAlloc_v2(&p, sizeof host));
    OK(cuMemAlloc_v2(&q, sizeof host));
    for (int i = 0; i < N; i++) host[i] = 5;
    struct cu_copy_attributes attrs = {.src_order = 1}; /* sources are read in the stream's order */
    size_t ix = 0, fail;
    cu_ptr to[] = {p + ONES * 4, p + HALF * 4}, from[] = {(uintptr_t)host, (uintptr_t)host};
    size_t bytes[] = {(HALF - ONES) * 4, (N - HALF) * 4};
    OK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &attrs, &ix, 1, s));
    OK(cuStreamWriteValue32_v2(s, p, 5, 0));
    OK(cuStreamWriteValue64_v2(s, p + 8, 5ull << 32 | 5, 0));
    union cu_memop_params ops[] = {{.value = {CUMEMOP_WRITE32, p + 4, {.v32 = 5}, 0, 0}},
                                   {.value = {CUMEMOP_WAIT32, p, {.v32 = 5}, 0, 0}},
                                   {.value = {CUMEMOP_WRITE64, p + 16, {.v64 = 5ull << 32 | 5}, 0, 0}}};
    OK(cuStreamBatchMemOp_v2(s, 3, ops, 0));
    run_add(p, 1, s);
    cu_ptr to2[] = {q, q + HALF * 4}, from2[] = {p + HALF * 4, p};
    size_t bytes2[] = {HALF * 4, HALF * 4};
    OK(cuMemcpyBatchAsync(to2, from2, bytes2, 2, &attrs, &ix, 1, &fail, s));
    run_add(q, 3, s);
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, q, sizeof back));
    say("values and batches", back, 9);
}

/* Registered memory that goes away without the driver being told; then a launch without it. */
static void unmapped(void)
{
    unsigned back[N], seen = 0;
    cu_ptr d, p;
    unsigned *own = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(cuMemHostRegister_v2(own, 1 << 20, CUREG_DEVICEMAP));
    OK(cuMemHostGetDevicePointer_v2(&d, own, 0));
    for (int i = 0; i < N; i++) own[i] = 7;
    run_add(d, 3, s);
    OK(cuStreamSynchronize(s));
    seen = own[N - 1];
    munmap(own, 1 << 20);
    OK(cuMemAlloc_v2(&p, sizeof back));
    OK(cuMemsetD32Async(p, seen, N, s));
    run_add(p, 1, s);
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    say("without registered memory", back, 11);
}

/* A launch that leaves its result in a variable of its module, and in no other memory. */
static void variable(void)
{
    unsigned back = 0;
    size_t bytes;
    cu_ptr at;
    OK(cuModuleGetGlobal_v2(&at, &bytes, module, "table"));
    OK(cuMemsetD32Async(at, 4, 1, s));
    for (int side = CUFUNC_REQUIRED_CLUSTER_WIDTH; side <= CUFUNC_REQUIRED_CLUSTER_DEPTH;
         side++) /* NVIDIA wants all three */
        OK(cuFuncSetAttribute(add, side, 1));
    OK(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, s, (void *[]){&at, &(unsigned){3}, &(unsigned){1}}, NULL));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(&back, at, sizeof back));
    printf("a variable: %s\n", back == 7 ? "ok" : "WRONG");
}

/* More streams than a replay has: 64 lanes at once, each from stream to stream. */
static void streams(void)
{
    enum { LANES = 64, STREAMS = 1100 };
    static unsigned back[N], want[LANES];
    cu_ptr p[LANES];
    cu_event behind[LANES];
    for (int k = 0; k < LANES; k++) {
        OK(cuMemAlloc_v2(&p[k], sizeof back));
        OK(cuMemsetD32Async(p[k], 0, N, NULL));
        OK(cuEventCreate(&behind[k], CUEVENT_DISABLE_TIMING));
        OK(cuEventRecord(behind[k], NULL));
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        cu_stream own;
        OK(cuStreamCreate(&own, CUSTREAM_NON_BLOCKING));
        OK(cuStreamWaitEvent(own, behind[i % LANES], 0));
        run_add(p[i % LANES], i, own);
        OK(cuEventRecord(behind[i % LANES], own));
        want[i % LANES] += i;
    }
    OK(cuCtxSynchronize());
    for (int k = 0; k < LANES; k++) {
        OK(cuMemcpyDtoH_v2(back, p[k], sizeof back));
        say("a lane", back, want[k]);
    }
}

/* The program ends with a current context that is no more: it had nothing left in it. */
static void gone(void)
{
    cu_device d = 0;
    cu_ptr p;
    unsigned back[N];
    OK(cuMemAlloc_v2(&p, sizeof back));
    run_add(p, 5, s);
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    say("before the context goes", back, 5);
    OK(cuMemFree_v2(p));
    OK(cuDeviceGet(&d, 0));
    OK(cuDevicePrimaryCtxRelease_v2(d));
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    module = load(argv[1]);
    OK(cuStreamCreate(&s, CUSTREAM_NON_BLOCKING));
    if (!strcmp(argv[2], "fill")) late_fills();
    if (!strcmp(argv[2], "stores")) late_stores();
    if (!strcmp(argv[2], "freed")) freed();
    if (!strcmp(argv[2], "graph")) in_graph();
    if (!strcmp(argv[2], "textures")) textures();
    if (!strcmp(argv[2], "threads")) threads();
    if (!strcmp(argv[2], "beside")) beside();
    if (!strcmp(argv[2], "big")) big();
    if (!strcmp(argv[2], "mapped")) mapped();
    if (!strcmp(argv[2], "function")) function();
    if (!strcmp(argv[2], "values")) values();
    if (!strcmp(argv[2], "streams")) streams();
    if (!strcmp(argv[2], "variable")) variable();
    if (!strcmp(argv[2], "unmapped")) unmapped();
    if (!strcmp(argv[2], "gone")) gone();
    return 0;
}
