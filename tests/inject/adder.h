/* What capture.c, contexts.c and late.c share: the driver's interface as far as both use it, its errors, and a module's
 * kernel `add`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cu.h"

#define D(name, ...) extern cu_result name(__VA_ARGS__);
D(cuInit, unsigned)
D(cuDeviceGet, cu_device *, int)
D(cuDevicePrimaryCtxRetain, cu_ctx *, cu_device)
D(cuCtxSetCurrent, cu_ctx)
D(cuModuleLoadData, cu_module *, const void *)
D(cuModuleGetFunction, cu_function *, cu_module, const char *)
D(cuMemAlloc_v2, cu_ptr *, size_t)
D(cuMemFree_v2, cu_ptr)
D(cuMemAllocManaged, cu_ptr *, size_t, unsigned)
D(cuMemHostAlloc, void **, size_t, unsigned)
D(cuMemFreeHost, void *)
D(cuMemAllocAsync, cu_ptr *, size_t, cu_stream)
D(cuMemFreeAsync, cu_ptr, cu_stream)
D(cuMemcpyDtoH_v2, void *, cu_ptr, size_t)
D(cuMemcpyHtoDAsync_v2, cu_ptr, const void *, size_t, cu_stream)
D(cuMemcpyDtoHAsync_v2, void *, cu_ptr, size_t, cu_stream)
D(cuLaunchKernel, cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_stream, void **,
  void **)
D(cuStreamCreate, cu_stream *, unsigned)
D(cuStreamSynchronize, cu_stream)
D(cuStreamBeginCapture_v2, cu_stream, int)
D(cuStreamEndCapture, cu_stream, cu_graph *)
D(cuGraphInstantiateWithFlags, cu_graph_exec *, cu_graph, unsigned long long)
D(cuGraphLaunch, cu_graph_exec, cu_stream)

enum { N = 1000 };
static cu_function add;

static void check(cu_result rc, int line)
{
    if (!rc) return;
    printf("line %d: error %d\n", line, rc);
    exit(1);
}
#define OK(call) check(call, __LINE__)

/* p[i] += k, for N words. */
static inline void run_add(cu_ptr p, unsigned k, cu_stream s)
{
    unsigned n = N;
    OK(cuLaunchKernel(add, (N + 127) / 128, 1, 1, 128, 1, 1, 0, s, (void *[]){&p, &k, &n}, NULL));
}

/* The module of that file, in the current context. */
static inline cu_module load_here(const char *path)
{
    static char ptx[65536];
    cu_module module;
    FILE *f = fopen(path, "re");
    if (!f || !fread(ptx, 1, sizeof ptx - 1, f)) exit(2);
    fclose(f);
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&add, module, "add"));
    return module;
}

/* In the first device's primary context. */
static inline cu_module load(const char *path)
{
    cu_device d;
    cu_ctx c;
    OK(cuInit(0));
    OK(cuDeviceGet(&d, 0));
    OK(cuDevicePrimaryCtxRetain(&c, d));
    OK(cuCtxSetCurrent(c));
    return load_here(path);
}
