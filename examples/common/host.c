/* host.h over the CUDA driver API, with our own declarations: links against any libcuda.so.1. */
#include "host.h"

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(int *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(void **ctx, int device);
CUresult cuCtxSetCurrent(void *ctx);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoadData(void **module, const void *image);
CUresult cuModuleGetFunction(void **function, void *module, const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr p);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t bytes);
CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, void *stream, void **params, void **extra);
CUresult cuGetErrorString(CUresult r, const char **text);

extern const char example_ptx[]; /* ptx.S */

static void ok(CUresult r, const char *what)
{
    const char *text = "unknown error";
    if (!r) return;
    cuGetErrorString(r, &text);
    fprintf(stderr, "%s: error %d: %s\n", what, r, text);
    exit(1);
}

/* Opens device, context and module on first use. */
static void *the_module(void)
{
    static void *module;
    if (!module) {
        void *ctx = NULL;
        int device = 0;
        ok(cuInit(0), "cuInit");
        ok(cuDeviceGet(&device, 0), "cuDeviceGet");
        ok(cuDevicePrimaryCtxRetain(&ctx, device), "cuDevicePrimaryCtxRetain");
        ok(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
        ok(cuModuleLoadData(&module, example_ptx), "cuModuleLoadData");
    }
    return module;
}

kernel_t host_kernel(const char *name)
{
    void *function = NULL;
    ok(cuModuleGetFunction(&function, the_module(), name), name);
    return function;
}

void *dev_alloc(size_t bytes)
{
    CUdeviceptr p = 0;
    the_module();
    ok(cuMemAlloc_v2(&p, bytes), "cuMemAlloc");
    return (void *)(uintptr_t)p;
}

void dev_free(void *p)
{
    ok(cuMemFree_v2((CUdeviceptr)(uintptr_t)p), "cuMemFree");
}

void dev_put(void *dev, const void *host, size_t bytes)
{
    ok(cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)dev, host, bytes), "cuMemcpyHtoD");
}

void dev_get(void *host, const void *dev, size_t bytes)
{
    ok(cuMemcpyDtoH_v2(host, (CUdeviceptr)(uintptr_t)dev, bytes), "cuMemcpyDtoH");
}

void dev_zero(void *dev, size_t bytes)
{
    ok(cuMemsetD8_v2((CUdeviceptr)(uintptr_t)dev, 0, bytes), "cuMemsetD8");
}

void dev_launch(kernel_t k, struct shape grid, struct shape block, unsigned shared_bytes, void **args)
{
    ok(cuLaunchKernel(k, grid.x, grid.y, 1, block.x, block.y, 1, shared_bytes, NULL, args, NULL), "cuLaunchKernel");
    ok(cuCtxSynchronize(), "cuCtxSynchronize");
}
