/* Kernels of known lengths, each timed by CUPTI in the same run in which Margay's time line times them with events. Own
 * declarations of the few of CUPTI's that are used; its library is opened here. usage: cupti OUT SECONDS
 * Writes to OUT a line for each kernel: CUPTI's start and end, in ns of CLOCK_MONOTONIC. Exit 77: no CUPTI here.
 * After SECONDS of rest the kernels run once more, so that a clock that drifts is seen. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *),
    cuStreamCreate(void **, unsigned),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry spin(.param .u64 ns)\n{\n.reg .b64 %d<5>;\n.reg .pred %p;\n"
    "ld.param.u64 %d1, [ns];\nmov.u64 %d2, %globaltimer;\nagain:\nmov.u64 %d3, %globaltimer;\nsub.s64 %d4, %d3, %d2;\n"
    "setp.lt.u64 %p, %d4, %d1;\n@%p bra again;\nret;\n}\n";

enum { CONCURRENT_KERNEL = 10, START = 16, END = 24 /* in the record of a kernel, every version so far */ };
static int (*enable)(int),
    (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t)),
    (*next_record)(uint8_t *, size_t, void **), (*flush_all)(uint32_t), (*timestamps)(uint64_t (*)(void));
static FILE *out;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static void request(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *bytes = 1 << 20;
    *buffer = aligned_alloc(8, *bytes);
    *most = 0;
}
static void complete(void *ctx, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    void *record = NULL;
    (void)ctx, (void)stream, (void)bytes;
    while (valid && !next_record(buffer, valid, &record)) {
        uint32_t kind;
        uint64_t start, end;
        memcpy(&kind, record, 4);
        memcpy(&start, (char *)record + START, 8);
        memcpy(&end, (char *)record + END, 8);
        if (kind == CONCURRENT_KERNEL) fprintf(out, "%llu %llu\n", (unsigned long long)start, (unsigned long long)end);
    }
    free(buffer);
}
static void check(const char *what, int rc)
{
    if (rc) printf("%s: %d\n", what, rc), exit(1);
}
static void *open_cupti(void)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                                        "/usr/local/cuda/targets/x86_64-linux/lib/libcupti.so"};
    const char *given = getenv("CUPTI");
    void *l = given ? dlopen(given, RTLD_NOW) : NULL;
    for (unsigned i = 0; i < sizeof names / sizeof *names && !l; i++) l = dlopen(names[i], RTLD_NOW);
    return l;
}

int main(int argc, char **argv)
{
    static const struct {
        uint64_t ns;
        int times;
    } kernels[] = {{2000, 200},   {5000, 200},   {10000, 200},   {20000, 200},
                   {100000, 100}, {1000000, 50}, {12000000, 20}, {60000000, 5}};
    void *l = open_cupti(), *ctx, *module, *spin, *stream;
    int device;
    if (argc < 3) return 2;
    if (!l) return puts("no libcupti was found (CUPTI=PATH names it)"), 77;
    *(void **)&enable = dlsym(l, "cuptiActivityEnable");
    *(void **)&callbacks = dlsym(l, "cuptiActivityRegisterCallbacks");
    *(void **)&next_record = dlsym(l, "cuptiActivityGetNextRecord");
    *(void **)&flush_all = dlsym(l, "cuptiActivityFlushAll");
    *(void **)&timestamps = dlsym(l, "cuptiActivityRegisterTimestampCallback");
    if (!enable || !callbacks || !next_record || !flush_all || !timestamps)
        return puts("this CUPTI lacks a function"), 77;
    if (!(out = fopen(argv[1], "w"))) return 2;
    check("cuptiActivityRegisterTimestampCallback", timestamps(now));
    check("cuptiActivityRegisterCallbacks", callbacks(request, complete));
    check("cuptiActivityEnable", enable(CONCURRENT_KERNEL));
    check("cuInit", cuInit(0));
    check("cuDeviceGet", cuDeviceGet(&device, 0));
    check("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&ctx, device));
    check("cuCtxSetCurrent", cuCtxSetCurrent(ctx));
    check("cuModuleLoadData", cuModuleLoadData(&module, ptx));
    check("cuModuleGetFunction", cuModuleGetFunction(&spin, module, "spin"));
    check("cuStreamCreate", cuStreamCreate(&stream, 1));
    for (int round = 0; round < 2; round++) {
        for (unsigned k = 0; k < sizeof kernels / sizeof *kernels; k++)
            for (int i = 0; i < kernels[k].times; i++) {
                uint64_t ns = kernels[k].ns;
                void *params[] = {&ns};
                check("cuLaunchKernel", cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
                if (i % 4 == 3) check("cuCtxSynchronize", cuCtxSynchronize());
            }
        check("cuCtxSynchronize", cuCtxSynchronize());
        if (!round) sleep((unsigned)atoi(argv[2]));
    }
    check("cuptiActivityFlushAll", flush_all(1));
    fclose(out);
    puts("ok");
    return 0;
}
