/* A driver-API program over the emulator that finds Margay's memory (it knows from EMU_GPU_MAPS where it is mapped)
 * and writes there from a kernel, as a stray store would:
 *   apart work       three launches, nothing else       apart far        what of the program's lies near it?
 *   apart front      a word in front of each slot's counters (its header)
 *   apart behind     the word behind each slot's counters
 *   apart counters   the counters themselves
 *   apart piece      check words in front of the first piece of each mapping
 *   apart shared     a word in front of an array in shared memory, where words of Margay's may lie, stored by a
 *                    function
 *   apart near N     two words N bytes behind where one begins, stored by the kernel itself (generic N: by a generic
 *                    address)
 *   apart calls N    a word N bytes behind where one begins, in a kernel that calls a recursive function
 *   apart contexts N launches in N contexts, one after the other
 * "work" is launched before and after: 256 threads go 3 times round a loop at first, later once. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuModuleLoadData(void **, const void *);
extern int cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t),
    cuCtxSynchronize(void), cuMemcpyDtoH_v2(void *, uint64_t, size_t);
extern int cuMemAllocHost_v2(void **, size_t), cuMemAllocManaged(uint64_t *, size_t, unsigned),
    cuMemAllocAsync(uint64_t *, size_t, void *);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
extern int cuCtxCreate_v2(void **, unsigned, int), cuCtxDestroy_v2(void *), cuModuleUnload(void *);
#define OK(e)                                                                                                          \
    do {                                                                                                               \
        int rc_ = (e);                                                                                                 \
        if (rc_) {                                                                                                     \
            printf("%s: %d\n", #e, rc_);                                                                               \
            exit(4);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Thread 7 stores `off` bytes behind where an array begins; a loop of n rounds. Six branches that part lanes, so that
 * `lanes` has words in shared memory. */
#define PART(bit)                                                                                                      \
    "and.b32 %r4, %r2, " #bit ";\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra PART" #bit ";\nadd.u32 %r5, %r5, 0;\nPART" #bit   \
    ":\n"
#define SHARE(name, store)                                                                                             \
    ".visible .entry " name                                                                                            \
    "(.param .u64 off, .param .u32 n)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<2>;\n"                    \
    ".shared .align 16 .b8 s[1024];\nld.param.u32 %r1, [off];\nld.param.u32 %r5, [n];\nmov.u32 %r2, %tid.x;\n"         \
    "mov.u32 %r3, s;\n" PART(1) PART(2) PART(4) PART(8) PART(16)                                                       \
        PART(32) "mov.u32 %r4, 0;\nsetp.ne.u32 %p1, %r2, 7;\n@%p1 bra ROUND;\nadd.u32 %r1, %r1, %r3;\n" store          \
                 "ROUND: add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r5;\n@%p2 bra ROUND;\nbar.sync 0;\nret;\n}\n"
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry work(.param .u64 p)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\nmov.u32 %r2, 0;\n"
    "LOOP: ld.global.u32 %r3, [%rd3];\nadd.u32 %r3, %r3, 1;\nst.global.u32 [%rd3], %r3;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r3;\n@%p1 bra DONE;\nsetp.lt.u32 %p1, %r2, 3;\n@%p1 bra LOOP;\nDONE: ret;\n}\n"
    ".visible .entry stray(.param .u64 p, .param .u64 v)\n{\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [v];\nst.global.u64 [%rd1], %rd2;\nret;\n}\n"
    ".func poke(.param .u32 at, .param .u32 v)\n{\n.local .align 4 .b8 own[8];\n.reg .b32 %r<4>;\nld.param.u32 %r1, [at];\nld.param.u32 %r2, [v];\n"
    "st.local.u32 [own], %r2;\nld.local.u32 %r3, [own];\nst.shared.u32 [%r1], %r3;\nret;\n}\n" SHARE(
        "share",
        "{\n.param .u32 at;\n.param .u32 v;\nst.param.u32 [at], %r1;\nst.param.u32 [v], %r2;\ncall.uni poke, (at, v);\n}\n")
        SHARE(
            "near",
            "setp.gt.u32 %p2, %r2, 999;\n@%p2 st.shared.u32 [%r1+-4], %r2;\nst.shared.u32 [%r1], %r2;\nst.shared.u32 [%r1+4], %r2;\n")
            SHARE(
                "generic",
                "cvt.u64.u32 %rd1, %r1;\ncvta.shared.u64 %rd1, %rd1;\nst.u32 [%rd1], %r2;\nst.u32 [%rd1+4], %r2;\n") ".func (.param .u32 sum) down(.param .u32 n)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<5>;\nld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\n"
                                                                                                                     "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra END;\nsub.u32 %r3, %r1, 1;\n"
                                                                                                                     "{\n.param .u32 a;\n.param .u32 b;\nst.param.u32 [a], %r3;\ncall.uni (b), down, (a);\nld.param.u32 %r2, [b];\n}\nadd.u32 %r2, %r2, 1;\n"
                                                                                                                     "END: st.param.u32 [sum], %r2;\nret;\n}\n"
                                                                                                                     ".visible .entry calls(.param .u64 off, .param .u32 n)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<6>;\n.shared .align 16 .b8 s[1024];\n"
                                                                                                                     "ld.param.u32 %r1, [off];\nld.param.u32 %r5, [n];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, s;\nbar.sync 0;\nsetp.ne.u32 %p1, %r2, 7;\n@%p1 bra CALL;\n"
                                                                                                                     "add.u32 %r1, %r1, %r3;\nst.shared.u32 [%r1], %r2;\nCALL: bar.sync 0;\n"
                                                                                                                     "{\n.param .u32 a;\n.param .u32 b;\nst.param.u32 [a], %r5;\ncall.uni (b), down, (a);\nld.param.u32 %r4, [b];\n}\nst.shared.u32 [s], %r4;\nret;\n}\n";
static void *work, *stray, *share, *calls, *near, *generic;
static uint64_t buffer;

static void run_work(void)
{
    void *args[] = {&buffer};
    OK(cuLaunchKernel(work, 1, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    OK(cuCtxSynchronize());
    usleep(20000); /* its end is told */
}
static void store(uint64_t at, uint64_t v)
{
    void *args[] = {&at, &v};
    OK(cuLaunchKernel(stray, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    OK(cuCtxSynchronize());
}
static void store_shared(void *kernel, int64_t off, unsigned n)
{
    void *args[] = {&off, &n};
    OK(cuLaunchKernel(kernel, 2, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
    OK(cuCtxSynchronize());
}
static void load(void)
{
    void *m;
    OK(cuModuleLoadData(&m, ptx));
    OK(cuModuleGetFunction(&work, m, "work"));
    OK(cuModuleGetFunction(&stray, m, "stray"));
    OK(cuModuleGetFunction(&share, m, "share"));
    OK(cuModuleGetFunction(&near, m, "near"));
    OK(cuModuleGetFunction(&generic, m, "generic"));
    OK(cuModuleGetFunction(&calls, m, "calls"));
    OK(cuMemAlloc_v2(&buffer, 1024));
}

/* ---- where Margay's memory is ---------------------------------------------------------------------------- */

struct region {
    uint64_t at;
    size_t bytes;
    char what[16];
};
static struct region regions[256];
static int n_regions;
static void read_maps(void)
{
    FILE *f = fopen(getenv("EMU_GPU_MAPS"), "r");
    n_regions = 0;
    while (f && n_regions < 256 &&
           fscanf(f, "%15s %llx %zu", regions[n_regions].what, (unsigned long long *)&regions[n_regions].at,
                  &regions[n_regions].bytes) == 3)
        n_regions++;
    if (f) fclose(f);
}
/* A slot begins with the address of its body, 128 bytes on. */
static int find_slots(uint64_t *slots, int most)
{
    int n = 0;
    for (int i = 0; i < n_regions; i++)
        for (uint64_t at = regions[i].at;
             !strcmp(regions[i].what, "map") && n < most && at < regions[i].at + regions[i].bytes; at += 128)
            if (*(uint64_t *)at == at + 128) slots[n++] = at;
    return n;
}
static void plant(const char *where)
{
    static uint64_t slots[4096];
    int n = find_slots(slots, 4096);
    printf("%d slots\n", n);
    if (!n) exit(5);
    uint64_t *targets = malloc(4096 * 8);
    int k = 0;
    for (int i = 0; i + 1 < n; i++) {
        uint64_t next = slots[i + 1] - slots[i] <= 4096 ? slots[i + 1] : slots[i] + (i ? slots[i] - slots[i - 1] : 256);
        if (!strcmp(where, "front")) targets[k++] = slots[i] + 120;
        if (!strcmp(where, "behind")) targets[k++] = next - 8;
        if (!strcmp(where, "counters")) targets[k++] = slots[i] + 128;
    }
    for (int i = 0; i < n_regions && !strcmp(where, "piece"); i++)
        if (!strcmp(regions[i].what, "map")) targets[k++] = regions[i].at + 120;
    for (int i = 0; i < k && i < 40; i++) store(targets[i], 0xf000000000000007u);
    free(targets);
}

static int is_near(uint64_t at)
{
    for (int i = 0; i < n_regions; i++)
        if ((!strcmp(regions[i].what, "map") || !strcmp(regions[i].what, "host")) && at + (64 << 20) > regions[i].at &&
            at < regions[i].at + regions[i].bytes + (64 << 20))
            return 1;
    return 0;
}
static void look_far(void)
{
    uint64_t at;
    void *host;
    int near = is_near(buffer), n_map = 0, n_host = 0;
    for (int i = 0; i < 40; i++) {
        OK(cuMemAlloc_v2(&at, (size_t)1000 << i % 16));
        near += is_near(at);
        OK(cuMemAllocAsync(&at, 5000 + i, NULL));
        near += is_near(at);
        OK(cuMemAllocManaged(&at, 5000 + i, 1));
        near += is_near(at);
        OK(cuMemAllocHost_v2(&host, 5000 + i));
        near += is_near((uint64_t)host);
    }
    for (int i = 0; i < n_regions; i++)
        n_map += !strcmp(regions[i].what, "map"), n_host += !strcmp(regions[i].what, "host");
    printf("near: %d of 161; mapped %d, pinned %d\n", near, n_map > 0, n_host > 0);
}

int main(int argc, char **argv)
{
    int dev;
    void *ctx;
    const char *what = argc > 1 ? argv[1] : "work";
    OK(cuInit(0));
    OK(cuDeviceGet(&dev, 0));
    for (int i = 0; !strcmp(what, "contexts") && i < atoi(argv[2]); i++) {
        OK(cuCtxCreate_v2(&ctx, 0, dev));
        load();
        run_work();
        OK(cuCtxDestroy_v2(ctx));
    }
    if (!strcmp(what, "contexts")) return 0;
    OK(cuDevicePrimaryCtxRetain(&ctx, dev));
    OK(cuCtxSetCurrent(ctx));
    load();
    run_work();
    store(buffer + 512, 0);
    usleep(20000);
    read_maps();
    if (!strcmp(what, "far"))
        look_far();
    else if (!strcmp(what, "shared"))
        store_shared(share, 0, 5), store_shared(share, -4, 5), store_shared(share, 512, 5);
    else if (!strcmp(what, "calls"))
        store_shared(calls, atoi(argv[2]), 300);
    else if (!strcmp(what, "near") || !strcmp(what, "generic"))
        store_shared(*what == 'n' ? near : generic, atoi(argv[2]), 5);
    else if (strcmp(what, "work"))
        plant(what);
    usleep(150000); /* check words between pieces are looked at now and then */
    for (int i = 0; i < 2; i++) run_work();
    uint32_t v = 0;
    OK(cuMemcpyDtoH_v2(&v, buffer, 4));
    printf("done\n");
    return 0;
}
