/* A libcuda.so.1 for testing the runtime alone: memory is host memory, a kernel launch is a line in
 * the log, any other entry is a line with its name. FAKE_LOG names the log file, FAKE_FAIL=NAME:NUMBER
 * makes one entry fail. It runs no kernel. */
#include "tests/runtime/fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CU(name, params) cu_result name params;
#include "runtime/driver.def"
#undef CU

void fake_note(const char *format, ...)
{
    const char *path = getenv("FAKE_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    va_list ap;
    if (!f) return;
    va_start(ap, format);
    vfprintf(f, format, ap);
    va_end(ap);
    fputc('\n', f);
    fclose(f);
}

cu_result fake_result(const char *name)
{
    const char *fail = getenv("FAKE_FAIL");
    size_t n = strlen(name);
    return fail && !strncmp(fail, name, n) && fail[n] == ':' ? atoi(fail + n + 1) : 0;
}

#define ENTER(...)                             \
    fake_note(__VA_ARGS__);                    \
    if (fake_result(__func__)) return fake_result(__func__)

static _Thread_local cu_ctx current;
static int retains;

cu_result cuDriverGetVersion(int *version) { return *version = 13000, 0; }
cu_result cuDeviceGetCount(int *count) { return *count = getenv("FAKE_DEVICES") ? atoi(getenv("FAKE_DEVICES")) : 1, 0; }
cu_result cuDeviceGet(cu_device *device, int ordinal) { return *device = ordinal, 0; }
cu_result cuDeviceGetName(char *name, int bytes, cu_device device) { return snprintf(name, (size_t)bytes, "fake %d", device), 0; }
cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device device) { return (void)device, *bytes = (size_t)5 << 30, 0; }
/* Each attribute is its own number plus 1000, so that a field taken from a wrong one shows. */
cu_result cuDeviceGetAttribute(int *value, int attribute, cu_device device) { return (void)device, *value = attribute + 1000, 0; }
cu_result cuDevicePrimaryCtxRetain(cu_ctx *ctx, cu_device device)
{
    ENTER("cuDevicePrimaryCtxRetain %d", device);
    retains++;
    *ctx = (cu_ctx)(uintptr_t)(0x1000 + device);
    return 0;
}
cu_result cuCtxGetCurrent(cu_ctx *ctx) { return *ctx = current, 0; }
cu_result cuCtxSetCurrent(cu_ctx ctx) { return current = ctx, 0; }
cu_result cuCtxGetDevice(cu_device *device)
{
    if (!current) return CUE_INVALID_CONTEXT;
    return *device = (int)((uintptr_t)current - 0x1000), 0;
}

/* ---- code: a kernel is its name, a variable 64 bytes under its name ---- */

static struct {
    const char *name;
    _Alignas(16) char data[64];
} variables[8];

cu_result cuLibraryLoadData(cu_library *lib, const void *code, int *jit, void **jit_values, unsigned n_jit, int *options, void **values, unsigned n)
{
    (void)jit, (void)jit_values;
    ENTER("cuLibraryLoadData %s jit %u option %d=%ld", *(const unsigned *)code == 0x466243b1 ? "wrapper" : "other", n_jit, n ? options[0] : -1, n ? (long)(uintptr_t)values[0] : -1);
    *lib = (cu_library)code;
    return 0;
}
cu_result cuLibraryGetKernel(cu_kernel *kernel, cu_library lib, const char *name)
{
    (void)lib;
    ENTER("cuLibraryGetKernel %s", name);
    *kernel = (cu_kernel)strdup(name);
    return 0;
}
cu_result cuLibraryGetGlobal(cu_ptr *address, size_t *bytes, cu_library lib, const char *name)
{
    (void)lib;
    ENTER("cuLibraryGetGlobal %s", name);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (!variables[i].name) variables[i].name = strdup(name);
        if (strcmp(variables[i].name, name)) continue;
        *address = (cu_ptr)(uintptr_t)variables[i].data;
        if (bytes) *bytes = sizeof variables[i].data;
        return 0;
    }
    return CUE_NOT_FOUND;
}
cu_result cuLibraryGetManaged(cu_ptr *address, size_t *bytes, cu_library lib, const char *name)
{
    return cuLibraryGetGlobal(address, bytes, lib, name);
}
cu_result cuFuncGetAttribute(int *value, int attribute, cu_function f) { return (void)f, *value = attribute + 100, 0; }
cu_result cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, cu_stream stream, void **params, void **extra)
{
    ENTER("cuLaunchKernel %s %u,%u,%u %u,%u,%u %u %lu first %d extra %d", (const char *)f, gx, gy, gz, bx, by, bz, shared,
          (unsigned long)(uintptr_t)stream, params ? *(int *)params[0] : 0, !!extra);
    return 0;
}
cu_result cuLaunchCooperativeKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, cu_stream stream, void **params)
{
    ENTER("cuLaunchCooperativeKernel");
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}
cu_result cuLaunchKernelEx(const struct cu_launch_config *c, cu_function f, void **params, void **extra)
{
    ENTER("cuLaunchKernelEx attrs %u id %d", c->n_attrs, c->n_attrs ? c->attrs[0].id : -1);
    return cuLaunchKernel(f, c->grid_x, c->grid_y, c->grid_z, c->block_x, c->block_y, c->block_z, c->shared_bytes, c->stream, params, extra);
}

/* ---- memory ---- */

static void *at(cu_ptr p) { return (void *)(uintptr_t)p; }

cu_result cuMemAlloc_v2(cu_ptr *p, size_t bytes)
{
    ENTER("cuMemAlloc_v2 %zu", bytes);
    return *p = (cu_ptr)(uintptr_t)calloc(1, bytes), 0;
}
cu_result cuMemAllocPitch_v2(cu_ptr *p, size_t *pitch, size_t width, size_t height, unsigned element)
{
    ENTER("cuMemAllocPitch_v2 %zu %zu %u", width, height, element);
    *pitch = (width + 511) / 512 * 512;
    return *p = (cu_ptr)(uintptr_t)calloc(height, *pitch), 0;
}
cu_result cuMemAllocManaged(cu_ptr *p, size_t bytes, unsigned flags)
{
    ENTER("cuMemAllocManaged %zu %u", bytes, flags);
    return *p = (cu_ptr)(uintptr_t)calloc(1, bytes), 0;
}
cu_result cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    ENTER("cuMemHostAlloc %zu %u", bytes, flags);
    return *p = calloc(1, bytes), 0;
}
cu_result cuMemFree_v2(cu_ptr p) { return free(at(p)), fake_note("cuMemFree_v2"), 0; }
cu_result cuMemFreeHost(void *p) { return free(p), fake_note("cuMemFreeHost"), 0; }
cu_result cuPointerGetAttribute(void *value, int attribute, cu_ptr p) { return (void)value, (void)attribute, (void)p, CUE_INVALID_VALUE; }

static cu_result copy(const char *name, void *dst, const void *src, size_t bytes, cu_stream stream)
{
    fake_note("%s %zu stream %lu", name, bytes, (unsigned long)(uintptr_t)stream);
    memmove(dst, src, bytes);
    return fake_result(name);
}
cu_result cuMemcpy(cu_ptr dst, cu_ptr src, size_t bytes) { return copy(__func__, at(dst), at(src), bytes, NULL); }
cu_result cuMemcpyHtoD_v2(cu_ptr dst, const void *src, size_t bytes) { return copy(__func__, at(dst), src, bytes, NULL); }
cu_result cuMemcpyDtoH_v2(void *dst, cu_ptr src, size_t bytes) { return copy(__func__, dst, at(src), bytes, NULL); }
cu_result cuMemcpyDtoD_v2(cu_ptr dst, cu_ptr src, size_t bytes) { return copy(__func__, at(dst), at(src), bytes, NULL); }
cu_result cuMemcpyAsync(cu_ptr dst, cu_ptr src, size_t bytes, cu_stream s) { return copy(__func__, at(dst), at(src), bytes, s); }
cu_result cuMemcpyHtoDAsync_v2(cu_ptr dst, const void *src, size_t bytes, cu_stream s) { return copy(__func__, at(dst), src, bytes, s); }
cu_result cuMemcpyDtoHAsync_v2(void *dst, cu_ptr src, size_t bytes, cu_stream s) { return copy(__func__, dst, at(src), bytes, s); }
cu_result cuMemcpyDtoDAsync_v2(cu_ptr dst, cu_ptr src, size_t bytes, cu_stream s) { return copy(__func__, at(dst), at(src), bytes, s); }
cu_result cuMemsetD8_v2(cu_ptr p, unsigned char value, size_t count) { return memset(at(p), value, count), 0; }
cu_result cuMemsetD8Async(cu_ptr p, unsigned char value, size_t count, cu_stream s) { return (void)s, memset(at(p), value, count), 0; }
cu_result cuMemsetD2D8_v2(cu_ptr p, size_t pitch, unsigned char value, size_t width, size_t height)
{
    for (size_t y = 0; y < height; y++) memset((char *)at(p) + y * pitch, value, width);
    return 0;
}

/* ---- streams ---- */

cu_result cuStreamCreate(cu_stream *stream, unsigned flags)
{
    static uintptr_t next = 0x100;
    ENTER("cuStreamCreate %u", flags);
    return *stream = (cu_stream)next++, 0;
}
cu_result cuStreamQuery(cu_stream stream) { return (void)stream, fake_result("cuStreamQuery"); }
cu_result cuStreamAddCallback(cu_stream stream, cu_stream_fn fn, void *user, unsigned flags)
{
    ENTER("cuStreamAddCallback %u", flags);
    fn(stream, 0, user);
    return 0;
}
