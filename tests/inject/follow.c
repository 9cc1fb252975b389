/* Launches until half of its trace has left the disk, then ends, dies, or fills the disk of DIR and ends; or so often:
 *   follow DIR sync|async|graph end|kill|full|LAUNCHES
 * In each launch a CTA reads what the next one wrote in the launch before. Prints how many launches there were. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *),
    cuMemAlloc_v2(uint64_t *, size_t), cuMemsetD8_v2(uint64_t, unsigned char, size_t),
    cuStreamCreate(void **, unsigned), cuStreamBeginCapture_v2(void *, int), cuStreamEndCapture(void *, void **),
    cuGraphInstantiateWithFlags(void **, void *, unsigned long long), cuGraphLaunch(void *, void *),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

enum { CTAS = 64, THREADS = 128, BYTES = CTAS * THREADS * 4, TRACE = 1 << 16, SECONDS = 200, AHEAD = 50 };
static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry next(.param .u64 in, .param .u64 out)\n{\n"
    ".reg .b32 %r<8>;\n.reg .b64 %d<6>;\n"
    "ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\nmov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %tid.x;\n"
    "mad.lo.u32 %r2, %r0, 128, %r1;\nmul.wide.u32 %d2, %r2, 4;\nadd.u64 %d3, %d1, %d2;\n"
    "add.u32 %r3, %r2, 128;\nand.b32 %r3, %r3, 8191;\nmul.wide.u32 %d4, %r3, 4;\nadd.u64 %d5, %d0, %d4;\n"
    "ld.global.u32 %r4, [%d5];\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%d3], %r4;\nret;\n}\n";

static int half_is_gone(const char *dir)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/trace/%d.mgt", dir, (int)getpid());
    return !stat(path, &st) && st.st_size > TRACE && st.st_blocks * 512 < st.st_size / 2;
}

static void fill(const char *dir)
{
    static char zeros[1 << 16];
    char path[4096];
    snprintf(path, sizeof path, "%s/../full", dir);
    FILE *f = fopen(path, "w");
    if (!f) exit(2);
    setvbuf(f, NULL, _IONBF, 0);
    for (size_t n = sizeof zeros; n; n /= 2)
        while (fwrite(zeros, 1, n, f) == n) {
        }
    fclose(f);
}

static void *kernel, *stream, *graph;
static uint64_t memory[2];

static int launch(int n)
{
    void *args[] = {&memory[n % 2], &memory[!(n % 2)]};
    return cuLaunchKernel(kernel, CTAS, 1, 1, THREADS, 1, 1, 0, stream, args, NULL);
}

static int capture(void)
{
    void *g;
    return cuStreamBeginCapture_v2(stream, 0) || launch(0) || launch(1) || cuStreamEndCapture(stream, &g) ||
           cuGraphInstantiateWithFlags(&graph, g, 0);
}

int main(int argc, char **argv)
{
    int device, n = 0, most = argc == 4 ? atoi(argv[3]) : 0;
    void *ctx, *module;
    if (argc != 4 || cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) ||
        cuCtxSetCurrent(ctx) || cuModuleLoadData(&module, text) || cuModuleGetFunction(&kernel, module, "next") ||
        cuMemAlloc_v2(&memory[0], BYTES) || cuMemAlloc_v2(&memory[1], BYTES) || cuMemsetD8_v2(memory[0], 0, BYTES) ||
        cuStreamCreate(&stream, 1) || cuCtxSynchronize() || (!strcmp(argv[2], "graph") && capture()))
        return 1;
    for (time_t until = time(NULL) + SECONDS; most ? n < most : !half_is_gone(argv[1]);) {
        if (!strcmp(argv[3], "full") && n > 2000) break; /* there was no room to set aside: the trace stays */
        if (!most && n > 1000) usleep((unsigned)n * 5);  /* until the analysis keeps up */
        if (time(NULL) > until) return fprintf(stderr, "nothing was freed in %d launches\n", n), 3;
        for (int k = 0; k < (*argv[2] == 's' ? 1 : AHEAD / 2); k++, n += graph ? 2 : 1)
            if (graph ? cuGraphLaunch(graph, stream) : launch(n)) return 1;
        if (n % AHEAD == 0 || *argv[2] == 's')
            if (cuCtxSynchronize()) return 1;
    }
    if (cuCtxSynchronize()) return 1;
    if (!strcmp(argv[3], "full")) fill(argv[1]);
    printf("%d\n", n);
    fflush(stdout);
    if (!strcmp(argv[3], "kill"))
        syscall(SYS_kill, getpid(), SIGKILL); /* as from outside: kill() itself writes first */
    return 0;
}
