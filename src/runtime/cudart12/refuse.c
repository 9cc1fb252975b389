/* libcudart.so.12 without a GPU: the refusal, by name. Several structures and calls of CUDA 12 differ
 * from 13's under the same name, and no CUDA 12 toolkit was at hand to test against, so a program on
 * that runtime is not half served: the library loads, says one line, and every call fails with
 * cudaErrorNotSupported, which the program's own checks report. */
#include <stdio.h>

enum { NOT_SUPPORTED = 801 };

static int refuse(void)
{
    static int said;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        fputs(
            "margay: this program uses the CUDA 12 runtime (libcudart.so.12); without a GPU Margay serves that of CUDA 13 alone: "
            "build it with CUDA 13 (nvcc -cudart shared)\n",
            stderr);
    return NOT_SUPPORTED;
}

#define VISIBLE __attribute__((visibility("default")))
#define RT_EXPORT(name)                                                                                                \
    __attribute__((weak)) VISIBLE int name(void);                                                                      \
    __attribute__((weak)) VISIBLE int name(void)                                                                       \
    {                                                                                                                  \
        return refuse();                                                                                               \
    }
#define cudaGetErrorString      unused_string
#define cudaGetErrorName        unused_name
#define __cudaRegisterFatBinary unused_register
#include "runtime/exports.def"
#include "runtime/cudart12/exports.def"
#undef cudaGetErrorString
#undef cudaGetErrorName
#undef __cudaRegisterFatBinary

VISIBLE const char *cudaGetErrorString(int e);
VISIBLE const char *cudaGetErrorString(int e)
{
    return e == NOT_SUPPORTED ? "operation not supported" : e ? "unrecognized error code" : "no error";
}
VISIBLE const char *cudaGetErrorName(int e);
VISIBLE const char *cudaGetErrorName(int e)
{
    return e == NOT_SUPPORTED ? "cudaErrorNotSupported" : e ? "unrecognized error code" : "cudaSuccess";
}
VISIBLE void **__cudaRegisterFatBinary(void *wrapper);
VISIBLE void **__cudaRegisterFatBinary(void *wrapper)
{
    static void *handle;
    (void)wrapper;
    refuse();
    return &handle;
}
