/* What the application sets on a kernel is set on its twins as well; queries and occupancy answer for
 * the kernel itself, since a program sizes its grid by them. A twin made later takes over what was
 * set before (twin.c). */
#include "inject/hooks.h"

#include "inject/kernels.h"
#include "inject/session.h"

struct setting {
    int what, value;
};

static void set_attribute(void *twin, void *user)
{
    const struct setting *s = user;
    MG_REAL_AS(cuFuncSetAttribute, cu_function, int, int)(twin, s->what, s->value);
}
static void set_cache(void *twin, void *user)
{
    MG_REAL_AS(cuFuncSetCacheConfig, cu_function, int)(twin, ((const struct setting *)user)->value);
}
static void set_banks(void *twin, void *user)
{
    MG_REAL_AS(cuFuncSetSharedMemConfig, cu_function, int)(twin, ((const struct setting *)user)->value);
}

static cu_result mirror(cu_result rc, void *handle, void (*fn)(void *, void *), int what, int value)
{
    if (rc == CUE_SUCCESS && mg_session.active && !mg_inside) {
        mg_inside++;
        mg_kernel_each_twin(handle, fn, &(struct setting){what, value});
        mg_inside--;
    }
    return rc;
}

MG_HOOK(cuFuncSetAttribute, cu_function f, int what, int value)
{
    return mirror(MG_REAL(cuFuncSetAttribute)(f, what, value), f, set_attribute, what, value);
}
MG_HOOK(cuKernelSetAttribute, int what, int value, cu_kernel k, cu_device d)
{
    return mirror(MG_REAL(cuKernelSetAttribute)(what, value, k, d), k, set_attribute, what, value);
}
MG_HOOK(cuFuncSetCacheConfig, cu_function f, int config)
{
    return mirror(MG_REAL(cuFuncSetCacheConfig)(f, config), f, set_cache, 0, config);
}
MG_HOOK(cuKernelSetCacheConfig, cu_kernel k, int config, cu_device d)
{
    return mirror(MG_REAL(cuKernelSetCacheConfig)(k, config, d), k, set_cache, 0, config);
}
MG_HOOK(cuFuncSetSharedMemConfig, cu_function f, int config)
{
    return mirror(MG_REAL(cuFuncSetSharedMemConfig)(f, config), f, set_banks, 0, config);
}
