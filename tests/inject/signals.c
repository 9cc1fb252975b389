/* A driver-API program with signal handlers of its own, for SIGSEGV, SIGBUS, SIGFPE and SIGILL: what it faults itself
 * comes to it, on whatever thread, and what a kernel does wrong does not. Prints "<what>: <driver's answer>, <times the
 * handler ran>". usage: signals [default]: default ends by a fault that nobody handles. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ENTRY(name, body)                                                                                              \
    ".visible .entry " name "(.param .u64 p)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\n" body  \
    "ret;\n}\n"
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n" ENTRY("good", "st.global.u32 [%rd1], 7;\n") ENTRY(
        "divide",
        "mov.u32 %r1, %tid.x;\nand.b32 %r1, %r1, 1;\nneg.s32 %r1, %r1;\nmov.u32 %r2, 0x80000000;\ndiv.s32 %r3, %r2, %r1;\nrem.s32 %r4, %r2, %r1;\nst.global.v2.u32 [%rd1], {%r3, %r4};\n")
        ENTRY("page", "ld.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%rd1+4], %r1;\n")
            ENTRY("null", "st.global.u32 [16], 7;\n");

static int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*set)(void *),
    (*load)(void **, const void *), (*find)(void **, void *, const char *), (*alloc)(uint64_t *, size_t),
    (*pin)(void *, size_t, unsigned), (*call)(void *, void (*)(void *), void *), (*finish)(void),
    (*start)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static const struct {
    const char *name;
    void *fn;
} entries[] = {{"cuInit", &init},
               {"cuDeviceGet", &get},
               {"cuDevicePrimaryCtxRetain", &retain},
               {"cuCtxSetCurrent", &set},
               {"cuModuleLoadData", &load},
               {"cuModuleGetFunction", &find},
               {"cuMemAlloc_v2", &alloc},
               {"cuMemHostRegister_v2", &pin},
               {"cuLaunchHostFunc", &call},
               {"cuCtxSynchronize", &finish},
               {"cuLaunchKernel", &start}};

static volatile sig_atomic_t times;
static sigjmp_buf back;
static char *page; /* the handler makes it accessible and goes on */

static void on_fault(int sig, siginfo_t *info, void *context)
{
    char *at = info->si_addr;
    (void)context;
    times = times + 1;
    if (sig == SIGSEGV && page && at >= page && at < page + 4096 && !mprotect(page, 4096, PROT_READ | PROT_WRITE))
        return;
    siglongjmp(back, sig);
}

static void *module;
static int run(const char *name, void *p)
{
    void *f, *params[] = {&p};
    int rc = find(&f, module, name);
    return rc ? rc : (rc = start(f, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL)) ? rc : finish();
}
static void say(const char *what, int rc)
{
    printf("%s: %d, %d\n", what, rc, (int)times);
    fflush(stdout);
    times = 0;
}
static void read_null(void)
{
    volatile const char *volatile null = NULL;
    int sig = sigsetjmp(back, 1);
    if (!sig) (void)*null;
    say("own fault", sig);
}
static void read_page(void *p)
{
    *(volatile char *)p = 5;
}

int main(int argc, char **argv)
{
    static const int which[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *p;
    int device;
    struct sigaction mine = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, now;
    for (unsigned i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *sym = lib ? dlsym(lib, entries[i].name) : NULL;
        if (!sym) return 1;
        memcpy(entries[i].fn, &sym, sizeof sym);
    }
    for (unsigned i = 0; i < 4; i++) sigaction(which[i], &mine, NULL);
    if (init(0) || get(&device, 0) || retain(&ctx, device) || set(ctx) || load(&module, ptx) ||
        alloc((uint64_t *)&p, 256))
        return 1;
    say("good", run("good", p));
    if (argc > 1) { /* default */
        signal(SIGSEGV, SIG_DFL);
        usleep(1500000); /* what has ended is on disk within a second */
        read_page(NULL);
    }
    say("division by zero", run("divide", p));
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(uint32_t *)pages = 41;
    if (pages == MAP_FAILED || pin(pages, 4096, 2)) return 1;
    page = pages;
    mprotect(page, 4096, PROT_NONE);
    int rc = run("page", page);
    int seen = *(uint32_t *)(pages + 4) == 42, more = times > 0;
    times = seen && more; /* several workers may meet it at once */
    say("a kernel on a page of its own", rc);
    page = pages + 4096;
    mprotect(page, 4096, PROT_NONE);
    rc = call(NULL, read_page, page);
    rc = rc ? rc : finish();
    say("a callback", rc || page[0] != 5);
    page = NULL;
    read_null();
    say("a kernel at address 16", run("null", p));
    read_null();
    for (unsigned i = 0; i < 4; i++)
        if (sigaction(which[i], NULL, &now) || now.sa_sigaction != on_fault) return 5;
    return 0;
}
