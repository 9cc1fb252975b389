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

#define ENTER(...)                                                                                                     \
    fake_note(__VA_ARGS__);                                                                                            \
    if (fake_result(__func__)) return fake_result(__func__)

static _Thread_local cu_ctx current;
static int retains;

cu_result cuDriverGetVersion(int *version)
{
    return *version = 13000, 0;
}
cu_result cuDeviceGetCount(int *count)
{
    return *count = getenv("FAKE_DEVICES") ? atoi(getenv("FAKE_DEVICES")) : 1, 0;
}
cu_result cuDeviceGet(cu_device *device, int ordinal)
{
    return *device = ordinal, 0;
}
cu_result cuDeviceGetName(char *name, int bytes, cu_device device)
{
    return snprintf(name, (size_t)bytes, "fake %d", device), 0;
}
cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device device)
{
    return (void)device, *bytes = (size_t)5 << 30, 0;
}
/* Each attribute is its own number plus 1000, so that a field taken from a wrong one shows. */
cu_result cuDeviceGetAttribute(int *value, int attribute, cu_device device)
{
    return (void)device, *value = attribute + 1000, 0;
}
cu_result cuDevicePrimaryCtxRetain(cu_ctx *ctx, cu_device device)
{
    ENTER("cuDevicePrimaryCtxRetain %d", device);
    retains++;
    *ctx = (cu_ctx)(uintptr_t)(0x1000 + device);
    return 0;
}
cu_result cuCtxGetCurrent(cu_ctx *ctx)
{
    return *ctx = current, 0;
}
cu_result cuCtxSetCurrent(cu_ctx ctx)
{
    return current = ctx, 0;
}
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

cu_result cuLibraryLoadData(cu_library *lib, const void *code, int *jit, void **jit_values, unsigned n_jit,
                            int *options, void **values, unsigned n)
{
    (void)jit, (void)jit_values;
    ENTER("cuLibraryLoadData %s jit %u option %d=%ld", *(const unsigned *)code == 0x466243b1 ? "wrapper" : "other",
          n_jit, n ? options[0] : -1, n ? (long)(uintptr_t)values[0] : -1);
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
cu_result cuFuncGetAttribute(int *value, int attribute, cu_function f)
{
    return (void)f, *value = attribute + 100, 0;
}
cu_result cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared, cu_stream stream, void **params, void **extra)
{
    ENTER("cuLaunchKernel %s %u,%u,%u %u,%u,%u %u %lu first %d extra %d", (const char *)f, gx, gy, gz, bx, by, bz,
          shared, (unsigned long)(uintptr_t)stream, params ? *(int *)params[0] : 0, !!extra);
    return 0;
}
cu_result cuLaunchCooperativeKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                    unsigned bz, unsigned shared, cu_stream stream, void **params)
{
    ENTER("cuLaunchCooperativeKernel");
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}
cu_result cuLaunchKernelEx(const struct cu_launch_config *c, cu_function f, void **params, void **extra)
{
    ENTER("cuLaunchKernelEx attrs %u id %d", c->n_attrs, c->n_attrs ? c->attrs[0].id : -1);
    return cuLaunchKernel(f, c->grid_x, c->grid_y, c->grid_z, c->block_x, c->block_y, c->block_z, c->shared_bytes,
                          c->stream, params, extra);
}

/* ---- memory ---- */

static void *at(cu_ptr p)
{
    return (void *)(uintptr_t)p;
}

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
cu_result cuMemFree_v2(cu_ptr p)
{
    return free(at(p)), fake_note("cuMemFree_v2"), 0;
}
cu_result cuMemFreeHost(void *p)
{
    return free(p), fake_note("cuMemFreeHost"), 0;
}
cu_result cuPointerGetAttribute(void *value, int attribute, cu_ptr p)
{
    return (void)value, (void)attribute, (void)p, CUE_INVALID_VALUE;
}

static cu_result copy(const char *name, void *dst, const void *src, size_t bytes, cu_stream stream)
{
    fake_note("%s %zu stream %lu", name, bytes, (unsigned long)(uintptr_t)stream);
    memmove(dst, src, bytes);
    return fake_result(name);
}
cu_result cuMemcpy(cu_ptr dst, cu_ptr src, size_t bytes)
{
    return copy(__func__, at(dst), at(src), bytes, NULL);
}
cu_result cuMemcpyHtoD_v2(cu_ptr dst, const void *src, size_t bytes)
{
    return copy(__func__, at(dst), src, bytes, NULL);
}
cu_result cuMemcpyDtoH_v2(void *dst, cu_ptr src, size_t bytes)
{
    return copy(__func__, dst, at(src), bytes, NULL);
}
cu_result cuMemcpyDtoD_v2(cu_ptr dst, cu_ptr src, size_t bytes)
{
    return copy(__func__, at(dst), at(src), bytes, NULL);
}
cu_result cuMemcpyAsync(cu_ptr dst, cu_ptr src, size_t bytes, cu_stream s)
{
    return copy(__func__, at(dst), at(src), bytes, s);
}
cu_result cuMemcpyHtoDAsync_v2(cu_ptr dst, const void *src, size_t bytes, cu_stream s)
{
    return copy(__func__, at(dst), src, bytes, s);
}
cu_result cuMemcpyDtoHAsync_v2(void *dst, cu_ptr src, size_t bytes, cu_stream s)
{
    return copy(__func__, dst, at(src), bytes, s);
}
cu_result cuMemcpyDtoDAsync_v2(cu_ptr dst, cu_ptr src, size_t bytes, cu_stream s)
{
    return copy(__func__, at(dst), at(src), bytes, s);
}
cu_result cuMemsetD8_v2(cu_ptr p, unsigned char value, size_t count)
{
    return memset(at(p), value, count), 0;
}
cu_result cuMemsetD8Async(cu_ptr p, unsigned char value, size_t count, cu_stream s)
{
    return (void)s, memset(at(p), value, count), 0;
}
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
cu_result cuStreamQuery(cu_stream stream)
{
    return (void)stream, fake_result("cuStreamQuery");
}
cu_result cuStreamAddCallback(cu_stream stream, cu_stream_fn fn, void *user, unsigned flags)
{
    ENTER("cuStreamAddCallback %u", flags);
    fn(stream, 0, user);
    return 0;
}

/* ---- arrays: rows of elements, slices one after another ---- */

struct array {
    struct cu_array3d_desc desc;
    size_t element;
    char data[];
};

cu_result cuArray3DCreate_v2(cu_array *array, const struct cu_array3d_desc *d)
{
    ENTER("cuArray3DCreate_v2 %zu %zu %zu format %d channels %u flags %u", d->width, d->height, d->depth, d->format,
          d->channels, d->flags);
    size_t element = (d->format == CUAD_FLOAT || d->format == CUAD_SINT32 || d->format == CUAD_UINT32 ? 4u
                      : d->format == CUAD_UINT8                                                       ? 1u
                                                                                                      : 2u) *
                     d->channels;
    size_t bytes = element * d->width * (d->height ? d->height : 1) * (d->depth ? d->depth : 1);
    struct array *a = calloc(1, sizeof *a + bytes);
    a->desc = *d;
    a->element = element;
    *array = (cu_array)(void *)a;
    return 0;
}
cu_result cuArrayDestroy(cu_array array)
{
    return free(array), 0;
}
cu_result cuArray3DGetDescriptor_v2(struct cu_array3d_desc *d, cu_array array)
{
    return *d = ((struct array *)(void *)array)->desc, 0;
}

static char *spot(int type, const void *host, cu_ptr device, cu_array array, size_t pitch, size_t height, size_t x,
                  size_t y, size_t z)
{
    struct array *a = (struct array *)(void *)array;
    if (type == CUMEM_ARRAY)
        return a->data + x + (y + z * (a->desc.height ? a->desc.height : 1)) * a->desc.width * a->element;
    char *base = type == CUMEM_HOST ? (char *)(uintptr_t)host : (char *)at(device);
    return base + x + (y + z * height) * pitch;
}
cu_result cuMemcpy3D_v2(const struct cu_memcpy3d *c)
{
    ENTER("cuMemcpy3D_v2 types %d %d size %zu %zu %zu", c->src_type, c->dst_type, c->width, c->height, c->depth);
    for (size_t z = 0; z < c->depth; z++) {
        for (size_t y = 0; y < c->height; y++) {
            memcpy(spot(c->dst_type, c->dst_host, c->dst_device, c->dst_array, c->dst_pitch, c->dst_height, c->dst_x,
                        c->dst_y + y, c->dst_z + z),
                   spot(c->src_type, c->src_host, c->src_device, c->src_array, c->src_pitch, c->src_height, c->src_x,
                        c->src_y + y, c->src_z + z),
                   c->width);
        }
    }
    return 0;
}
cu_result cuMemcpy2DUnaligned_v2(const struct cu_memcpy2d *c)
{
    ENTER("cuMemcpy2DUnaligned_v2 types %d %d", c->src_type, c->dst_type);
    struct cu_memcpy3d v = {
        .src_x = c->src_x,
        .src_y = c->src_y,
        .src_type = c->src_type,
        .src_host = c->src_host,
        .src_device = c->src_device,
        .src_array = c->src_array,
        .src_pitch = c->src_pitch,
        .dst_x = c->dst_x,
        .dst_y = c->dst_y,
        .dst_type = c->dst_type,
        .dst_host = c->dst_host,
        .dst_device = c->dst_device,
        .dst_array = c->dst_array,
        .dst_pitch = c->dst_pitch,
        .width = c->width,
        .height = c->height,
        .depth = 1,
    };
    return cuMemcpy3D_v2(&v);
}

/* ---- one copy node, one kernel node, one texture: what was set is what is read ---- */

static struct cu_memcpy3d copy_node;
static struct cu_kernel_node kernel_node;
static struct cu_resource_desc texture_resource;
static struct cu_texture_desc texture;

cu_result cuKernelGetFunction(cu_function *f, cu_kernel kernel)
{
    return *f = (cu_function)((char *)kernel + 1), 0;
}
cu_result cuGraphAddMemcpyNode(cu_node *node, cu_graph graph, const cu_node *deps, size_t n,
                               const struct cu_memcpy3d *c, cu_ctx ctx)
{
    (void)node, (void)graph, (void)deps, (void)n;
    copy_node = *c;
    return ctx == current ? 0 : CUE_INVALID_CONTEXT;
}
cu_result cuGraphMemcpyNodeGetParams(cu_node node, struct cu_memcpy3d *c)
{
    return (void)node, *c = copy_node, 0;
}
cu_result cuGraphAddKernelNode_v2(cu_node *node, cu_graph graph, const cu_node *deps, size_t n,
                                  const struct cu_kernel_node *p)
{
    (void)node, (void)graph, (void)deps, (void)n;
    ENTER("cuGraphAddKernelNode_v2 %s %u,%u,%u", (const char *)p->func - 1, p->grid_x, p->grid_y, p->grid_z);
    kernel_node = *p;
    return 0;
}
cu_result cuGraphKernelNodeGetParams_v2(cu_node node, struct cu_kernel_node *p)
{
    return (void)node, *p = kernel_node, 0;
}
cu_result cuTexObjectCreate(cu_tex *object, const struct cu_resource_desc *r, const struct cu_texture_desc *t,
                            const struct cu_view_desc *view)
{
    (void)view;
    ENTER("cuTexObjectCreate type %d flags %u filter %d", r->type, t->flags, t->filter);
    texture_resource = *r;
    texture = *t;
    return *object = 77, 0;
}
cu_result cuTexObjectGetResourceDesc(struct cu_resource_desc *r, cu_tex object)
{
    return (void)object, *r = texture_resource, 0;
}
cu_result cuTexObjectGetTextureDesc(struct cu_texture_desc *t, cu_tex object)
{
    return (void)object, *t = texture, 0;
}
