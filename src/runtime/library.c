/* Code that a program loads itself: the cudaLibrary calls, which are the driver's. The numbers of
 * JIT and library options are the same in both interfaces. */
#include "runtime/priv.h"

RT_API(cudaLibraryLoadData, (cudaLibrary_t * lib, const void *code, int *jit, void **jit_values, unsigned n_jit,
                             int *options, void **values, unsigned n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuLibraryLoadData(lib, code, jit, jit_values, n_jit, options, values, n));
}

RT_API(cudaLibraryLoadFromFile, (cudaLibrary_t * lib, const char *path, int *jit, void **jit_values, unsigned n_jit,
                                 int *options, void **values, unsigned n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuLibraryLoadFromFile(lib, path, jit, jit_values, n_jit, options, values, n));
}

RT_API(cudaLibraryUnload, (cudaLibrary_t lib))
{
    RT_ENTER();
    return mg_rt_done(cu.cuLibraryUnload(lib));
}

RT_API(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t lib, const char *name))
{
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuLibraryGetKernel(kernel, lib, name));
    if (!e) mg_rt_kernel_note(*kernel);
    return e;
}

RT_API(cudaLibraryGetKernelCount, (unsigned *count, cudaLibrary_t lib))
{
    RT_ENTER();
    return mg_rt_done(cu.cuLibraryGetKernelCount(count, lib));
}

RT_API(cudaLibraryEnumerateKernels, (cudaKernel_t * kernels, unsigned n, cudaLibrary_t lib))
{
    unsigned count = 0;
    RT_ENTER();
    cu_result r = cu.cuLibraryEnumerateKernels(kernels, n, lib);
    if (!r) r = cu.cuLibraryGetKernelCount(&count, lib);
    for (unsigned i = 0; !r && i < n && i < count; i++) mg_rt_kernel_note(kernels[i]);
    return mg_rt_done(r);
}

static cudaError_t global_address(void **address, size_t *bytes, cudaLibrary_t lib, const char *name, bool managed)
{
    cu_ptr a = 0;
    RT_ENTER();
    cu_result r = managed ? cu.cuLibraryGetManaged(&a, bytes, lib, name) : cu.cuLibraryGetGlobal(&a, bytes, lib, name);
    if (!r && address) *address = (void *)(uintptr_t)a;
    return mg_rt_done(r);
}

RT_API(cudaLibraryGetGlobal, (void **address, size_t *bytes, cudaLibrary_t lib, const char *name))
{
    return global_address(address, bytes, lib, name, false);
}

RT_API(cudaLibraryGetManaged, (void **address, size_t *bytes, cudaLibrary_t lib, const char *name))
{
    return global_address(address, bytes, lib, name, true);
}

RT_API(cudaLibraryGetUnifiedFunction, (void **fn, cudaLibrary_t lib, const char *name))
{
    RT_ENTER();
    return mg_rt_done(cu.cuLibraryGetUnifiedFunction(fn, lib, name));
}
