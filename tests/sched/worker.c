/* A program to be scheduled: launches one kernel again and again, and checks that every launch has run.
 * usage: worker STEPS SECONDS [MODE]
 * STEPS: additions of each thread; SECONDS: how long it launches, or xN: N launches.
 * MODE: plain (a stream), sync (waits for each), streams (64, in turns), threads (four, a stream each), graph
 * (replays of eight kernels), coop, copies (a copy behind each launch), capture (a graph captured and thrown away
 * between launches), beside (launches into a captured stream and beside it in turns, then the graph), exec (in the
 * midst of its launches, with a capture open, it becomes this program anew, plain), spin (now and then a kernel that
 * waits for a later one of another stream), fork (children that use no CUDA), leave (main ends while four threads
 * launch: exit 7), think (1 ms of host work behind each launch, which it waits for), refused (launches that the driver
 * refuses, 1 ms apart). GO=FILE in the environment: it launches once there is such a file. Prints "MODE N launches, ok", exit
 * 0; or what is wrong, exit 1. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *),
    cuMemAlloc_v2(uint64_t *, size_t), cuMemcpyDtoH_v2(void *, uint64_t, size_t),
    cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t, void *), cuMemsetD32_v2(uint64_t, unsigned, size_t),
    cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *), cuStreamBeginCapture_v2(void *, int),
    cuStreamEndCapture(void *, void **), cuGraphInstantiateWithFlags(void **, void *, unsigned long long),
    cuGraphLaunch(void *, void *), cuGraphDestroy(void *), cuGraphExecDestroy(void *),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **),
    cuLaunchCooperativeKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                              void **);

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry k(.param .u64 cell, .param .u32 steps)\n{\n.reg .b32 %r<5>;\n.reg .b64 %d<2>;\n.reg .pred %p<2>;\n"
    "ld.param.u64 %d1, [cell];\nld.param.u32 %r1, [steps];\nmov.u32 %r2, 0;\nmov.u32 %r4, %tid.x;\n"
    "loop:\nmad.lo.u32 %r4, %r4, 1664525, 1013904223;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra loop;\n"
    "and.b32 %r4, %r4, 0;\nadd.u32 %r4, %r4, 1;\nred.global.add.u32 [%d1], %r4;\nret;\n}\n"
    ".visible .entry waits(.param .u64 flag, .param .u32 want)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<2>;\n.reg .pred %p<2>;\n"
    "ld.param.u64 %d1, [flag];\nld.param.u32 %r1, [want];\n"
    "loop:\nld.volatile.global.u32 %r2, [%d1];\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra loop;\nret;\n}\n"
    ".visible .entry sets(.param .u64 flag, .param .u32 to)\n{\n.reg .b32 %r<2>;\n.reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [flag];\nld.param.u32 %r1, [to];\nst.volatile.global.u32 [%d1], %r1;\nret;\n}\n";

enum { CTAS = 16, THREADS = 64, STREAMS = 64, LAUNCHERS = 4, NODES = 8 };
static void *ctx, *kernel, *waits, *sets, *streams[STREAMS];
static uint64_t cell, flag, scratch;
static uint32_t steps;
static double seconds;
static long most;

static void check(const char *what, int rc)
{
    if (!rc) return;
    printf("%s: %d\n", what, rc);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void launch(void *stream)
{
    void *params[] = {&cell, &steps};
    check("cuLaunchKernel", cuLaunchKernel(kernel, CTAS, 1, 1, THREADS, 1, 1, 0, stream, params, NULL));
}

static void launch_on(void *f, void *stream, uint32_t value)
{
    void *params[] = {&flag, &value};
    check("cuLaunchKernel", cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void *capture(int nodes)
{
    void *graph, *exec;
    check("cuStreamBeginCapture", cuStreamBeginCapture_v2(streams[1], 1));
    for (int i = 0; i < nodes; i++) launch(streams[1]);
    check("cuStreamEndCapture", cuStreamEndCapture(streams[1], &graph));
    check("cuGraphInstantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    check("cuGraphDestroy", cuGraphDestroy(graph));
    return exec;
}

/* Every other launch into a graph, which is launched then. */
static long launch_beside(void)
{
    void *graph, *exec;
    check("cuStreamBeginCapture", cuStreamBeginCapture_v2(streams[1], 1));
    for (int i = 0; i < NODES; i++) launch(streams[1]), launch(streams[0]);
    check("cuStreamEndCapture", cuStreamEndCapture(streams[1], &graph));
    check("cuGraphInstantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    check("cuGraphLaunch", cuGraphLaunch(exec, streams[2]));
    check("cuStreamSynchronize", cuStreamSynchronize(streams[2]));
    check("cuGraphDestroy", cuGraphExecDestroy(exec) || cuGraphDestroy(graph));
    return 2 * NODES;
}

static long done_all;
static void *thread(void *stream)
{
    long done = 0;
    check("cuCtxSetCurrent", cuCtxSetCurrent(ctx));
    for (double end = now() + seconds; done < most && now() < end; done++) {
        launch(stream);
        if (done % 16 == 15) check("cuStreamSynchronize", cuStreamSynchronize(stream));
    }
    __atomic_fetch_add(&done_all, done, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Main ends while threads launch. */
static int leave(void)
{
    double for_ns = seconds * 1e9;
    seconds = 1e6;
    for (int i = 0; i < LAUNCHERS; i++) {
        pthread_t id;
        pthread_create(&id, NULL, thread, streams[i]);
        pthread_detach(id);
    }
    nanosleep(&(struct timespec){.tv_nsec = (long)for_ns}, NULL);
    return 7;
}

static void launch_refused(void)
{
    void *params[] = {&cell, &steps};
    for (long i = 0; i < most; i++) {
        check("a CTA of 2^20 threads", !cuLaunchKernel(kernel, CTAS, 1, 1, 1 << 20, 1, 1, 0, streams[0], params, NULL));
        usleep(1000);
    }
}

static long run(const char *mode)
{
    static uint32_t spun;
    void *graph = strcmp(mode, "graph") ? NULL : capture(NODES);
    void *params[] = {&cell, &steps};
    long done = 0;
    if (!strcmp(mode, "threads")) {
        pthread_t id[LAUNCHERS];
        for (int i = 0; i < LAUNCHERS; i++) pthread_create(&id[i], NULL, thread, streams[i]);
        for (int i = 0; i < LAUNCHERS; i++) pthread_join(id[i], NULL);
        return done_all;
    }
    for (double end = now() + seconds; done < most && now() < end;) {
        int by = 1;
        if (!strcmp(mode, "beside"))
            by = (int)launch_beside();
        else if (graph)
            check("cuGraphLaunch", cuGraphLaunch(graph, streams[0])), by = NODES;
        else if (!strcmp(mode, "coop"))
            check("cuLaunchCooperativeKernel",
                  cuLaunchCooperativeKernel(kernel, CTAS, 1, 1, THREADS, 1, 1, 0, streams[0], params));
        else
            launch(streams[strcmp(mode, "streams") ? 0 : done % STREAMS]);
        if (!strcmp(mode, "copies"))
            check("cuMemcpyDtoDAsync", cuMemcpyDtoDAsync_v2(scratch + 4096, scratch, 4096, streams[0]));
        if (!strcmp(mode, "capture") && done % 8 == 0) capture(2);
        if (!strcmp(mode, "spin") && done % 256 == 0) { /* the second of these is in nobody's way */
            launch_on(waits, streams[2], ++spun);
            for (int i = 0; i < 64; i++) launch(streams[0]);
            by += 64;
            launch_on(sets, streams[3], spun);
        }
        if (!strcmp(mode, "fork") && done % 64 == 0) {
            pid_t child = fork();
            if (!child) _exit(0);
            waitpid(child, NULL, 0);
        }
        done += by;
        if (!strcmp(mode, "sync") || !strcmp(mode, "think") || done % 64 < by)
            check("cuCtxSynchronize", cuCtxSynchronize());
        if (!strcmp(mode, "think"))
            for (double until = now() + 1e-3; now() < until;) {
            }
    }
    return done;
}

int main(int argc, char **argv)
{
    void *module;
    int device;
    uint32_t got = 0;
    const char *mode = argc > 3 ? argv[3] : "plain", *how_long = argc > 2 ? argv[2] : "x100";
    steps = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000;
    most = *how_long == 'x' ? atol(how_long + 1) : 1L << 40;
    seconds = *how_long == 'x' ? 1e6 : atof(how_long);
    check("cuInit", cuInit(0));
    check("cuDeviceGet", cuDeviceGet(&device, 0));
    check("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&ctx, device));
    check("cuCtxSetCurrent", cuCtxSetCurrent(ctx));
    check("cuModuleLoadData", cuModuleLoadData(&module, ptx));
    check("cuModuleGetFunction", cuModuleGetFunction(&kernel, module, "k") ||
                                     cuModuleGetFunction(&waits, module, "waits") ||
                                     cuModuleGetFunction(&sets, module, "sets"));
    check("cuMemAlloc", cuMemAlloc_v2(&cell, 4) || cuMemAlloc_v2(&flag, 4) || cuMemAlloc_v2(&scratch, 8192));
    check("cuMemsetD32", cuMemsetD32_v2(cell, 0, 1) || cuMemsetD32_v2(flag, 0, 1) || cuMemsetD32_v2(scratch, 0, 2048));
    for (int i = 0; i < STREAMS; i++) check("cuStreamCreate", cuStreamCreate(&streams[i], 1));
    for (const char *go = getenv("GO"); go && access(go, F_OK);) usleep(10000);
    if (!strcmp(mode, "leave")) return leave();
    if (!strcmp(mode, "refused")) launch_refused(), most = 1; /* then one that is not */
    long done = run(mode);
    if (!strcmp(mode, "exec")) {
        check("cuStreamBeginCapture", cuStreamBeginCapture_v2(streams[1], 1));
        launch(streams[1]), launch(streams[0]);
        execl("/proc/self/exe", argv[0], argv[1], argv[2], NULL);
        check("execl", 1);
    }
    check("cuCtxSynchronize", cuCtxSynchronize());
    check("cuMemcpyDtoH", cuMemcpyDtoH_v2(&got, cell, 4));
    if (got != (uint32_t)((unsigned long)done * CTAS * THREADS)) {
        printf("%s: %ld launches, but %u threads\n", mode, done, got);
        return 1;
    }
    printf("%s %ld launches, ok\n", mode, done);
    return 0;
}
