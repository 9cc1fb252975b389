/* A driver-API program that reaches the driver in one of the ways programs do, launches one kernel
 * and checks what it wrote.  usage: client WAY [LIBRARY]
 *   linked             (built with -DLINKED) the entries of a DT_NEEDED libcuda.so.1
 *   dlopen LIB         dlopen + dlsym       deepbind LIB   the same with RTLD_DEEPBIND
 *   dlmopen LIB        in a namespace of its own
 *   procaddress LIB    only cuGetProcAddress is looked up by name; legacy1 LIB: its first version
 *   ptsz LIB           cuGetProcAddress with the per-thread flag
 *   plugin LIB         by a plugin (plugin.c) that was opened with RTLD_DEEPBIND
 *   child WAY LIB      fork, exec of itself      forked WAY LIB   fork alone, the child uses CUDA
 * 200 of 256 threads store their number: blocks are entered 256, 200 and 256 times. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry fill(.param .u64 p, .param .u32 n)\n{\n"
                          ".reg .pred %p<2>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<5>;\n"
                          "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n"
                          "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
                          "mad.lo.s32 %r5, %r2, %r3, %r4;\nsetp.ge.s32 %p1, %r5, %r1;\n@%p1 bra DONE;\n"
                          "cvta.to.global.u64 %rd2, %rd1;\nmul.wide.s32 %rd3, %r5, 4;\nadd.s64 %rd4, %rd2, %rd3;\n"
                          "st.global.u32 [%rd4], %r5;\nDONE: ret;\n}\n";

#define ENTRIES(E)                                                                                                     \
    E(cuInit, 2000, (unsigned))                                                                                        \
    E(cuDeviceGet, 2000, (int *, int))                                                                                 \
    E(cuDevicePrimaryCtxRetain, 7000, (void **, int))                                                                  \
    E(cuCtxSetCurrent, 4000, (void *))                                                                                 \
    E(cuModuleLoadData, 2000, (void **, const void *))                                                                 \
    E(cuModuleGetFunction, 2000, (void **, void *, const char *))                                                      \
    E(cuMemAlloc_v2, 3020, (uint64_t *, size_t))                                                                       \
    E(cuMemcpyDtoH_v2, 3020, (void *, uint64_t, size_t))                                                               \
    E(cuLaunchKernel, 4000,                                                                                            \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))

#define E(name, since, args) static int(*p_##name) args;
ENTRIES(E)
#undef E
#ifdef LINKED
#define E(name, since, args) extern int name args;
ENTRIES(E)
#undef E
#endif

static int work(void)
{
    void *ctx, *module, *f;
    uint64_t p;
    unsigned n = 200;
    uint32_t out[200];
    int device, rc;
    if ((rc = p_cuInit(0)) || (rc = p_cuDeviceGet(&device, 0)) || (rc = p_cuDevicePrimaryCtxRetain(&ctx, device)) ||
        (rc = p_cuCtxSetCurrent(ctx)) || (rc = p_cuModuleLoadData(&module, ptx)) ||
        (rc = p_cuModuleGetFunction(&f, module, "fill")) || (rc = p_cuMemAlloc_v2(&p, sizeof out)))
        return fprintf(stderr, "client: error %d\n", rc), 1;
    void *params[] = {&p, &n};
    if ((rc = p_cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL)) ||
        (rc = p_cuMemcpyDtoH_v2(out, p, sizeof out)))
        return fprintf(stderr, "client: launch: error %d\n", rc), 1;
    for (unsigned i = 0; i < n; i++)
        if (out[i] != i) return fprintf(stderr, "client: out[%u] = %u\n", i, out[i]), 1;
    puts("client: ok");
    return 0;
}

static int by_name(void *lib)
{
#define E(name, since, args)                                                                                           \
    if (!(p_##name = (int(*) args)dlsym(lib, #name))) return fprintf(stderr, "client: no %s\n", #name), 1;
    ENTRIES(E)
#undef E
    return work();
}

static int by_address(void *lib, int legacy, unsigned long flags)
{
    typedef int (*ask_v2)(const char *, void **, int, unsigned long, int *);
    typedef int (*ask_v1)(const char *, void **, int, unsigned long);
    void *ask = dlsym(lib, legacy ? "cuGetProcAddress" : "cuGetProcAddress_v2");
    char base[64];
    int status, rc;
    if (!ask) return fprintf(stderr, "client: no cuGetProcAddress\n"), 1;
#define E(name, since, args)                                                                                           \
    snprintf(base, sizeof base, "%s", #name);                                                                          \
    if (strstr(base, "_v2")) *strstr(base, "_v2") = 0;                                                                 \
    rc = legacy ? ((ask_v1)ask)(base, (void **)&p_##name, 11030, flags)                                                \
                : ((ask_v2)ask)(base, (void **)&p_##name, 13000, flags, &status);                                      \
    if (rc || !p_##name) return fprintf(stderr, "client: cuGetProcAddress(%s): error %d\n", base, rc), 1;
    ENTRIES(E)
#undef E
    return work();
}

static int by_plugin(const char *lib)
{
    void *plugin = dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void *(*open_it)(const char *) = plugin ? (void *(*)(const char *))dlsym(plugin, "plugin_open") : NULL;
    void *(*find_it)(void *, const char *) =
        plugin ? (void *(*)(void *, const char *))dlsym(plugin, "plugin_find") : NULL;
    void *h = open_it ? open_it(lib) : NULL;
    if (!h) return fprintf(stderr, "client: plugin: %s\n", dlerror()), 1;
#define E(name, since, args) p_##name = (int(*) args)find_it(h, #name);
    ENTRIES(E)
#undef E
    return work();
}

static int in_child(char **argv, int exec_it);

static int go(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "", *name = argc > 2 ? argv[2] : "libcuda.so.1";
    void *lib = NULL;
    if (!strcmp(way, "linked")) {
#ifdef LINKED
#define E(name, since, args) p_##name = name;
        ENTRIES(E)
#undef E
        return work();
#endif
    }
    if (!strcmp(way, "child") || !strcmp(way, "forked")) return in_child(argv, way[0] == 'c');
    if (!strcmp(way, "plugin")) return by_plugin(name);
    if (!strcmp(way, "dlmopen"))
        lib = dlmopen(LM_ID_NEWLM, name, RTLD_NOW);
    else
        lib = dlopen(name, RTLD_NOW | (strcmp(way, "deepbind") ? 0 : RTLD_DEEPBIND));
    if (!lib) return fprintf(stderr, "client: %s\n", dlerror()), 1;
    if (!strcmp(way, "procaddress") || !strcmp(way, "legacy1") || !strcmp(way, "ptsz"))
        return by_address(lib, !strcmp(way, "legacy1"), strcmp(way, "ptsz") ? 0 : 2);
    return by_name(lib);
}

static int in_child(char **argv, int exec_it)
{
    int status, argc = 1;
    pid_t pid = fork();
    if (pid == 0) {
        argv[1] = argv[0];
        if (exec_it) execv(argv[0], argv + 1);
        while (argv[argc + 1]) argc++;
        argc = go(argc, argv + 1);
        fflush(NULL);
        _exit(argc);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    return go(argc, argv);
}
