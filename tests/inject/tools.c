/* A driver-API program whose launches tools look at: tools KERNEL.ptx MODE [TOOL].
 *   plain    ten launches of `fill`, one CTA of 256 threads
 *   graph    one node of it, replayed ten times
 *   toggle   a thousand launches; tool `blocks` is on for every launch whose number has bit 0 set, TOOL for those
 *            with bit 1; resident memory must not grow over the last 800
 *   add      five launches, then TOOL is added, five more
 *   die      five launches, a pause of one second, kill -9
 * Every launch must store its 200 numbers. */
#include <margay/control.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *handle;
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(handle *, int), cuCtxSetCurrent(handle),
    cuCtxSynchronize(void);
int cuModuleLoadData(handle *, const void *), cuModuleGetFunction(handle *, handle, const char *);
int cuMemAlloc_v2(uint64_t *, size_t), cuMemcpyDtoH_v2(void *, uint64_t, size_t),
    cuMemsetD8_v2(uint64_t, unsigned char, size_t);
int cuLaunchKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **,
                   void **);
int cuStreamCreate(handle *, unsigned), cuStreamSynchronize(handle), cuStreamBeginCapture_v2(handle, int),
    cuStreamEndCapture(handle, handle *);
int cuArrayCreate_v2(handle *, const void *), cuArrayDestroy(handle),
    cuTexObjectCreate(unsigned long long *, const void *, const void *, const void *),
    cuTexObjectDestroy(unsigned long long);
int cuGraphInstantiateWithFlags(handle *, handle, unsigned long long), cuGraphLaunch(handle, handle);

static uint64_t d;
static uint32_t n = 200, got[256];
static handle f;

static int launch(handle stream)
{
    void *args[] = {&d, &n};
    return cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, stream, args, NULL);
}

static int check(void)
{
    if (cuMemcpyDtoH_v2(got, d, sizeof got)) return 1;
    for (uint32_t i = 0; i < n; i++)
        if (got[i] != i) return 1;
    return cuMemsetD8_v2(d, 0xff, sizeof got);
}

static long resident_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &kb);
    if (status) fclose(status);
    return kb;
}

static int toggle(const char *tool)
{
    long before = 0;
    for (int i = 0; i < 1000; i++) {
        if (mg_control_tool("blocks", i & 1) || mg_control_tool(tool, i >> 1 & 1)) return 3;
        if (i == 200) before = resident_kb();
        if (launch(NULL) || check()) return 4;
        usleep(300); /* else what grows is what waits to be written */
    }
    long grown = resident_kb() - before;
    printf("grown by %ld KB\n", grown > 2048 ? grown : 0);
    return 0;
}

/* Two arrays and a texture, of which one array stays. */
static int make_objects(void)
{
    struct {
        size_t width, height;
        int format;
        unsigned channels;
    } d = {16, 8, 32, 1};
    struct {
        int type, pad;
        handle array;
        char rest[120];
        unsigned flags;
    } res = {0};
    char how[104] = {0};
    handle a, b;
    unsigned long long t, u;
    if (cuArrayCreate_v2(&a, &d) || cuArrayCreate_v2(&b, &d)) return 1;
    res.array = a;
    return cuTexObjectCreate(&t, &res, how, NULL) || cuTexObjectCreate(&u, &res, how, NULL) || cuTexObjectDestroy(u) ||
           cuArrayDestroy(b);
}

static int replay(void)
{
    handle s, g, x;
    if (cuStreamCreate(&s, 1) || cuStreamBeginCapture_v2(s, 2) || launch(s) || cuStreamEndCapture(s, &g) ||
        cuGraphInstantiateWithFlags(&x, g, 0))
        return 5;
    for (int i = 0; i < 10; i++)
        if (cuGraphLaunch(x, s) || cuStreamSynchronize(s) || check()) return 6;
    return 0;
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    handle ctx, module;
    int dev, rc = 0;
    FILE *file = argc >= 3 ? fopen(argv[1], "rb") : NULL;
    if (!file || !fread(text, 1, sizeof text - 1, file)) return 2;
    if (cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&ctx, dev) || cuCtxSetCurrent(ctx) ||
        cuModuleLoadData(&module, text) || cuModuleGetFunction(&f, module, "fill") || cuMemAlloc_v2(&d, sizeof got))
        return 2;
    if (make_objects()) return 8;
    if (!strcmp(argv[2], "toggle"))
        rc = toggle(argv[3]);
    else if (!strcmp(argv[2], "graph"))
        rc = replay();
    else
        for (int i = 0; i < 10 && !rc; i++) {
            if (i == 5 && !strcmp(argv[2], "add")) rc = mg_control_tool(argv[3], 1);
            if (i == 5 && !strcmp(argv[2], "die")) sleep(1), kill(getpid(), SIGKILL);
            if (launch(NULL) || check()) rc = 7;
        }
    cuCtxSynchronize();
    if (!rc) puts("ok");
    return rc;
}
