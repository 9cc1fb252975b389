/* The part of OpenCL that bench-cpu needs, opened at run time: neither headers nor a library are needed to build it.
 * Buffers are the benchmark's own arrays, which an implementation for the CPU uses where they lie. */
#include "opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The numbers of OpenCL's own header. */
enum { DEVICE_CPU = 2, PLATFORM_VERSION = 0x0901, USE_HOST_PTR = 8 | 1, BUILD_LOG = 0x1183 };

typedef void *cl;
#define LIST                                                                                                           \
    F(int, clGetPlatformIDs, (uint32_t, cl *, uint32_t *))                                                             \
    F(int, clGetPlatformInfo, (cl, uint32_t, size_t, void *, size_t *))                                                \
    F(int, clGetDeviceIDs, (cl, uint64_t, uint32_t, cl *, uint32_t *))                                                 \
    F(cl, clCreateContext, (const intptr_t *, uint32_t, const cl *, void *, void *, int *))                            \
    F(cl, clCreateCommandQueue, (cl, cl, uint64_t, int *))                                                             \
    F(cl, clCreateProgramWithSource, (cl, uint32_t, const char **, const size_t *, int *))                             \
    F(int, clBuildProgram, (cl, uint32_t, const cl *, const char *, void *, void *))                                   \
    F(int, clGetProgramBuildInfo, (cl, cl, uint32_t, size_t, void *, size_t *))                                        \
    F(cl, clCreateKernel, (cl, const char *, int *))                                                                   \
    F(cl, clCreateBuffer, (cl, uint64_t, size_t, void *, int *))                                                       \
    F(int, clSetKernelArg, (cl, uint32_t, size_t, const void *))                                                       \
    F(int, clEnqueueNDRangeKernel,                                                                                     \
      (cl, cl, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const cl *, cl *))                  \
    F(int, clFinish, (cl))
#define F(type, name, args) static type(*name) args;
LIST
#undef F

    static cl context,
    queue, program;
static struct {
    char *base;
    size_t bytes;
} shared[32];
static struct {
    const void *at;
    cl buffer;
} buffers[64];
static struct {
    const char *name;
    cl kernel;
} kernels[32];

static void need(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "OpenCL: %s\n", what);
    exit(1);
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    static char text[1 << 16];
    need(f && fread(text, 1, sizeof text - 1, f) > 0, path);
    fclose(f);
    return text;
}

bool opencl_open(const char *file, int threads, char *what, size_t bytes, double *build_ms)
{
    char count[16];
    snprintf(count, sizeof count, "%d", threads);
    setenv("POCL_MAX_PTHREAD_COUNT", count, 1);
    setenv("POCL_KERNEL_CACHE", "0", 0); /* builds are cold ones */
    void *lib = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    snprintf(what, bytes, "no libOpenCL.so.1 (Debian: ocl-icd-libopencl1, pocl-opencl-icd)");
    if (!lib) return false;
#define F(type, name, args)                                                                                            \
    {                                                                                                                  \
        void *sym = dlsym(lib, #name);                                                                                 \
        need(sym, #name);                                                                                              \
        memcpy(&name, &sym, sizeof name);                                                                              \
    }
    LIST
#undef F
        cl platforms[8],
        device = NULL;
    uint32_t n = 0;
    snprintf(what, bytes, "no OpenCL implementation for this CPU (Debian: pocl-opencl-icd)");
    if (clGetPlatformIDs(8, platforms, &n)) return false;
    for (uint32_t i = 0; i < n && i < 8 && !device; i++)
        if (!clGetDeviceIDs(platforms[i], DEVICE_CPU, 1, &device, NULL))
            clGetPlatformInfo(platforms[i], PLATFORM_VERSION, bytes, what, NULL);
    if (!device) return false;
    struct timespec a, b;
    const char *text = read_file(file);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    need(context, "no context");
    queue = clCreateCommandQueue(context, device, 0, NULL);
    program = clCreateProgramWithSource(context, 1, &text, NULL, NULL);
    need(queue && program, "no queue or program");
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (clBuildProgram(program, 1, &device, "", NULL, NULL)) {
        static char log[4096];
        clGetProgramBuildInfo(program, device, BUILD_LOG, sizeof log, log, NULL);
        need(false, log);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    *build_ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6;
    return true;
}

void opencl_share(void *base, size_t bytes)
{
    unsigned i = 0;
    while (shared[i].base) i++;
    shared[i].base = base;
    shared[i].bytes = bytes;
}

/* From the address to the end of the array that it lies in. */
static cl buffer_at(char *at)
{
    unsigned i = 0, k = 0;
    for (; buffers[i].at; i++)
        if (buffers[i].at == at) return buffers[i].buffer;
    while (shared[k].base && (at < shared[k].base || at >= shared[k].base + shared[k].bytes)) k++;
    need(shared[k].base, "a parameter points nowhere");
    buffers[i].buffer =
        clCreateBuffer(context, USE_HOST_PTR, (size_t)(shared[k].base + shared[k].bytes - at), at, NULL);
    need(buffers[i].buffer, "no buffer");
    buffers[i].at = at;
    return buffers[i].buffer;
}

static cl kernel_named(const char *name)
{
    unsigned i = 0;
    for (; kernels[i].name; i++)
        if (!strcmp(kernels[i].name, name)) return kernels[i].kernel;
    kernels[i].kernel = clCreateKernel(program, name, NULL);
    need(kernels[i].kernel, name);
    kernels[i].name = name;
    return kernels[i].kernel;
}

void opencl_launch(const char *name, const uint32_t grid[2], const uint32_t block[2], const struct args *a)
{
    cl k = kernel_named(name);
    size_t all[2] = {(size_t)grid[0] * block[0], (size_t)grid[1] * block[1]}, group[2] = {block[0], block[1]};
    for (uint32_t i = 0; i < a->count; i++) {
        const void *value = a->at + a->from[i];
        char *p;
        cl buffer;
        if (a->pointer[i]) {
            memcpy(&p, value, sizeof p);
            buffer = buffer_at(p);
            value = &buffer;
        }
        need(!clSetKernelArg(k, i, a->bytes[i], value), name);
    }
    need(!clEnqueueNDRangeKernel(queue, k, grid[1] * block[1] > 1 ? 2 : 1, NULL, all, group, 0, NULL, NULL) &&
             !clFinish(queue),
         name);
}
