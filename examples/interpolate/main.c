/* Host and GPU in the scenarios of "Performance Measurement of Applications with GPU Acceleration using CUDA": one or
 * two streams, waiting at once or working meanwhile (its figure 1), and the measurements of its tables 2 to 6, by
 * TAUcuda.
 *
 *   interpolate sync1 | sync2 | async1 | async2 [TURNS]    figure 1: top row left and right, bottom row left and
 *     right
 *   interpolate measure CPU_MS LOAD [LOAD2]                table 2 with one stream, 3 with two: one block each
 *   interpolate devices CPU_MS CPU2_MS LOAD LOAD2          table 4: a thread for each of two devices
 *   interpolate nested LOAD                                table 5: two host contexts, 10 blocks of A and B inside
 *     one
 *
 * A load is the rounds of the kernel's loop. Figure 1's programs do not call TAUcuda; the async ones work until the
 * stream is done, so that no wait is left. Prints PASSED when the results are right. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <margay/tau_cuda.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDeviceGetCount(int *), cuDevicePrimaryCtxRetain(void **, int),
    cuCtxSetCurrent(void *), cuModuleLoadData(void **, const void *),
    cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t),
    cuMemcpyHtoD_v2(uint64_t, const void *, size_t), cuMemcpyDtoH_v2(void *, uint64_t, size_t),
    cuMemsetD32_v2(uint64_t, unsigned, size_t), cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *),
    cuStreamQuery(void *), cuCtxSynchronize(void),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);
extern const char example_ptx[];

enum { N = 4096, NOT_READY = 600 };
struct gpu {
    int device;
    void *ctx, *kernel, *streams[2];
    uint64_t table, out[2];
};
static float points[257];

#define CHECK(call) check(#call, call)
static void check(const char *what, int rc)
{
    if (!rc) return;
    fprintf(stderr, "%s: error %d\n", what, rc);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* One stream is the default one, two are of their own. */
static void open_gpu(struct gpu *g, int device, int streams)
{
    void *module;
    *g = (struct gpu){.device = device};
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&g->device, device));
    CHECK(cuDevicePrimaryCtxRetain(&g->ctx, g->device));
    CHECK(cuCtxSetCurrent(g->ctx));
    CHECK(cuModuleLoadData(&module, example_ptx));
    CHECK(cuModuleGetFunction(&g->kernel, module, "interpolate"));
    CHECK(cuMemAlloc_v2(&g->table, sizeof points));
    for (int i = 0; i < 257; i++) points[i] = (float)(i * i % 97);
    CHECK(cuMemcpyHtoD_v2(g->table, points, sizeof points));
    for (int s = 0; s < 2; s++) {
        CHECK(cuMemAlloc_v2(&g->out[s], N * sizeof(float)));
        if (streams > 1) CHECK(cuStreamCreate(&g->streams[s], 1)); /* does not wait for the default stream */
    }
}

static void launch(struct gpu *g, int s, int rounds)
{
    int n = N;
    void *args[] = {&n, &rounds, &g->table, &g->out[s]};
    CHECK(cuLaunchKernel(g->kernel, N / 128, 1, 1, 128, 1, 1, 0, g->streams[s], args, NULL));
}

/* The host computes the same in the same order, in float. */
static int is_right(struct gpu *g, int s, int rounds)
{
    static float got[N];
    CHECK(cuMemsetD32_v2(g->out[s], 0, N));
    CHECK(cuCtxSynchronize());
    launch(g, s, rounds);
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(got, g->out[s], sizeof got));
    for (int i = 0; i < N; i += 97) {
        double x = 0;
        for (int r = 0; r < rounds; r++) {
            int k = (i + r) & 255;
            x += 0.5 * (points[k] + (points[k + 1] - points[k]) * 0.25 - x);
        }
        if (got[i] - x > 1e-3 || x - got[i] > 1e-3) return 0;
    }
    return 1;
}

static volatile unsigned sink;
static void work_once(void)
{
    for (unsigned i = 0; i < 20000; i++) sink += i * i;
}

static void work_ms(double ms)
{
    for (double until = now_ms() + ms; now_ms() < until;) work_once();
}

/* ---- figure 1 -------------------------------------------------------------------------------------------- */

static void work_until_done(struct gpu *g, int s)
{
    for (int rc; (rc = cuStreamQuery(g->streams[s])) == NOT_READY;) work_once();
}

static void run_turn(struct gpu *g, int streams, int async, int rounds)
{
    for (int s = 0; s < streams; s++) launch(g, s, rounds);
    for (int s = 0; async && s < streams; s++) work_until_done(g, s);
    for (int s = 0; s < streams; s++) CHECK(cuStreamSynchronize(g->streams[s]));
    if (!async) work_once();
}

static int run_scenario(const char *name, int turns)
{
    struct gpu g;
    int streams = strchr(name, '2') ? 2 : 1, async = name[0] == 'a';
    open_gpu(&g, 0, streams);
    for (int t = 0; t < turns; t++) run_turn(&g, streams, async, 200 + 100 * t);
    return is_right(&g, 0, 300);
}

/* ---- tables ------------------------------------------------------------------------------------------------ */

/* A block in each stream whose load is above 0, then the host's work, then the question whether they are done. */
static void measure(struct gpu *g, double cpu_ms, const int *loads, int streams)
{
    void *blocks[2];
    tau_cuda_context_push("main");
    for (int s = 0; s < streams; s++) {
        blocks[s] = tau_cuda_stream_begin("Interpolate", g->streams[s]);
        launch(g, s, loads[s]);
        tau_cuda_stream_end(blocks[s]);
    }
    if (cpu_ms > 0) work_ms(cpu_ms);
    struct tau_cuda_event done[2];
    tau_cuda_update_all(done, 2); /* asks for both streams before it waits for one */
    tau_cuda_finalize_all(done, 2);
    tau_cuda_context_pop();
}

struct part {
    int device;
    double cpu_ms;
    int load, right;
};
static pthread_barrier_t together;
static void *run_device(void *arg)
{
    struct part *p = arg;
    struct gpu g;
    open_gpu(&g, p->device, 1);
    tau_cuda_init(0, NULL);
    pthread_barrier_wait(&together);
    measure(&g, p->cpu_ms, &p->load, 1);
    tau_cuda_exit();
    p->right = is_right(&g, 0, 300);
    return NULL;
}

static int run_devices(char **argv)
{
    int n = 0;
    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&n));
    if (n < 2) {
        fprintf(stderr, "needs two devices, there is %d\n", n);
        exit(77);
    }
    struct part parts[2] = {{0, atof(argv[0]), atoi(argv[2]), 0}, {1, atof(argv[1]), atoi(argv[3]), 0}};
    pthread_t threads[2];
    pthread_barrier_init(&together, NULL, 2);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run_device, &parts[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return parts[0].right && parts[1].right;
}

static void nested(struct gpu *g, const char *context, int load)
{
    void *stream = g->streams[0];
    tau_cuda_context_push(context);
    void *all = tau_cuda_stream_begin("All-Interpolate", stream);
    for (int i = 0; i < 20; i++) {
        void *block = tau_cuda_stream_begin(i % 2 ? "InterpolateB" : "InterpolateA", stream);
        launch(g, 0, load);
        tau_cuda_stream_end(block);
    }
    tau_cuda_stream_end(all);
    tau_cuda_finalize_stream(stream);
    tau_cuda_context_pop();
}

static int run_measured(int argc, char **argv)
{
    struct gpu g;
    int loads[2] = {0, 0};
    open_gpu(&g, 0, argc - 3);
    tau_cuda_init(argc, argv);
    if (!strcmp(argv[1], "nested")) {
        nested(&g, "FirstWrapper", atoi(argv[2]));
        nested(&g, "SecondWrapper", atoi(argv[2]));
    } else {
        for (int s = 0; s < argc - 3; s++) loads[s] = atoi(argv[3 + s]);
        measure(&g, atof(argv[2]), loads, argc - 3);
    }
    tau_cuda_exit();
    return is_right(&g, 0, 300);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int right = 0;
    if (!strcmp(what, "sync1") || !strcmp(what, "sync2") || !strcmp(what, "async1") || !strcmp(what, "async2")) {
        right = run_scenario(what, argc > 2 ? atoi(argv[2]) : 5);
    } else if ((!strcmp(what, "measure") && (argc == 4 || argc == 5)) || (!strcmp(what, "nested") && argc == 3)) {
        right = run_measured(argc, argv);
    } else if (!strcmp(what, "devices") && argc == 6) {
        right = run_devices(argv + 2);
    } else {
        fprintf(stderr, "usage: interpolate sync1|sync2|async1|async2 [TURNS] | measure CPU_MS LOAD [LOAD2] |\n"
                        "       devices CPU_MS CPU2_MS LOAD LOAD2 | nested LOAD\n");
        return 2;
    }
    puts(right ? "PASSED" : "FAILED");
    return !right;
}
