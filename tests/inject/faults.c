/* A driver-API program that launches a good kernel and then does one thing wrong, the way programs
 * do; prints the driver's answer as "<what>: <number>".  usage: faults WHAT
 *   oob trap misaligned spin deadlock    kernels that fail
 *   near                                 a read just before an allocation
 *   truncated garbage fatbin huge        loads and allocations that fail
 *   forever                              launches the good kernel until it is killed
 *   _exit quick_exit abort assert raise kill signal execl execvp    ends without exit()
 *   fork                                 a child that launches too (and is refused), and one more launch of its own
 *   execfails                            an exec that does not work, then one more launch and abort
 *   clearenv                             (also) clears its environment before cuInit
 *   unsynced                             ends while a launch may still run */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <signal.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define ENTRY(name)                                                                                                    \
    ".visible .entry " name                                                                                            \
    "(.param .u64 p)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\n"
static const char ptx[] = HEAD
    ENTRY("good") "st.global.u32 [%rd1], 7;\nret;\n}\n" ENTRY("oob") "st.global.u32 [%rd1+1048576], 7;\nret;\n}\n" ENTRY("near") "ld.global.u32 %r1, [%rd1+-4];\nst.global.u32 [%rd1], %r1;\nret;\n}\n" ENTRY(
        "misaligned") "st.global.u32 [%rd1+2], 7;\nret;\n}\n" ENTRY("trap") "trap;\nret;\n}\n" ENTRY("spin") "L: ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 12345;\n@%p1 bra D;\nbra L;\nD: ret;\n}\n" ENTRY("deadlock") "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nbra D;\nA: bar.sync 2, 64;\nD: ret;\n}\n";

#define F(name, args) static int(*name) args;
#define LIST                                                                                                           \
    F(cuInit, (unsigned))                                                                                              \
    F(cuDeviceGet, (int *, int))                                                                                       \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                                                        \
    F(cuCtxSetCurrent, (void *))                                                                                       \
    F(cuModuleLoadData, (void **, const void *))                                                                       \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuModuleGetFunction, (void **, void *, const char *))                                                            \
    F(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    F(cuLaunchKernel,                                                                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
LIST
#undef F

    static void *module;
static uint64_t p;

static int launch(const char *name)
{
    void *f, *params[] = {&p};
    int rc = cuModuleGetFunction(&f, module, name);
    return rc ? rc : cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
}
static int say(const char *what, int rc)
{
    printf("%s: %d\n", what, rc);
    fflush(stdout);
    return rc;
}

static int load_wrong(const char *what)
{
    void *m;
    char text[2 * sizeof ptx];
    memset(text, 0, sizeof text);
    if (!strcmp(what, "truncated"))
        memcpy(text, ptx, sizeof ptx - 60);
    else if (!strcmp(what, "fatbin")) /* a header whose only entry claims more than there is */
        memcpy(
            text,
            "\x50\xed\x55\xba\x01\x00\x10\x00\x40\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\x01\x40\x00\x00\x00\x00\x00\x00\x7f",
            28);
    else
        memcpy(text, "this is no image of any kind", 28);
    return say(what, cuModuleLoadData(&m, text));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx;
    int device;
    if (!lib) return fprintf(stderr, "faults: %s\n", dlerror()), 1;
#define F(name, args)                                                                                                  \
    if (!(name = (int(*) args)dlsym(lib, #name))) return 1;
    LIST
#undef F
        if (!strcmp(what, "clearenv")) clearenv();
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx) ||
        cuModuleLoadData(&module, ptx) || cuMemAlloc_v2(&p, 256) || launch("good") || cuCtxSynchronize())
        return say("start", 1);
    if (!strcmp(what, "truncated") || !strcmp(what, "garbage") || !strcmp(what, "fatbin"))
        return load_wrong(what) ? 3 : 0;
    if (!strcmp(what, "huge")) {
        uint64_t q;
        return say(what, cuMemAlloc_v2(&q, (size_t)1 << 60)) ? 3 : 0;
    }
    if (!strcmp(what, "_exit")) _exit(5);
    if (!strcmp(what, "quick_exit")) quick_exit(6);
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "assert")) assert(!what);
    if (!strcmp(what, "raise")) raise(SIGSEGV);
    if (!strcmp(what, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(what, "execl")) execl("/bin/sh", "sh", "-c", "exit $0", "7", (char *)NULL);
    if (!strcmp(what, "execvp")) execvp("sh", (char *[]){"sh", "-c", "exit 8", NULL});
    if (!strcmp(what, "fork")) {
        int status = 0;
        pid_t pid = fork();
        if (!pid) exit(launch("good") ? 9 : 0);
        waitpid(pid, &status, 0);
        say("child", WEXITSTATUS(status));
        return launch("good") || cuCtxSynchronize() ? 1 : 0;
    }
    if (!strcmp(what, "execfails")) {
        execl("/nonexistent/program", "program", (char *)NULL);
        return launch("good") || cuCtxSynchronize() ? 1 : (abort(), 0);
    }
    if (!strcmp(what, "clearenv")) return 0;
    if (!strcmp(what, "trap"))
        usleep(100000); /* on a GPU counts that are not collected yet are lost with the context */
    if (!strcmp(what, "signal")) usleep(300000), syscall(SYS_kill, getpid(), SIGTERM);
    if (!strcmp(what, "unsynced")) return say(what, launch("good"));
    if (!strcmp(what, "forever"))
        for (unsigned i = 0;; i++) {
            if (launch("good") || cuCtxSynchronize()) return 1;
            if (i == 10) say("running", 0);
            usleep(1000);
        }
    if (say(what, launch(what))) return 3;
    return say("sync", cuCtxSynchronize()) ? 4 : 0;
}
