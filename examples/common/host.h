/* Host side of the examples: one small interface over two CUDA APIs.
 *
 *   built by gcc (EXAMPLE_DRIVER_API): the driver API with our own declarations, kernels from PTX
 *                                      embedded in the program (host.c); no CUDA toolkit needed
 *   built by nvcc -x cu:               the runtime API, kernels linked by nvcc
 */
#ifndef EXAMPLES_HOST_H
#define EXAMPLES_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __CUDACC__
#define KERNEL_OF(name) ((const void *)name)
typedef const void *kernel_t;
#else
#define KERNEL_OF(name) host_kernel(#name)
typedef void *kernel_t;
kernel_t host_kernel(const char *name);
#endif

struct shape {
    unsigned x, y;
};
static inline struct shape shape1(unsigned x)
{
    struct shape s = {x, 1};
    return s;
}
static inline struct shape shape2(unsigned x, unsigned y)
{
    struct shape s = {x, y};
    return s;
}

void *dev_alloc(size_t bytes);
void dev_free(void *p);
void dev_put(void *dev, const void *host, size_t bytes);
void dev_get(void *host, const void *dev, size_t bytes);
void dev_zero(void *dev, size_t bytes);
/* args: addresses of the arguments, in order. */
void dev_launch(kernel_t k, struct shape grid, struct shape block, unsigned shared_bytes, void **args);

/* Deterministic input: 0 <= value < limit. */
static inline uint32_t pick(uint32_t *state, uint32_t limit)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(*state >> 4) * limit) >> 28);
}

/* First argument as a number, or what to use when there is none. */
static inline int arg_or(int argc, char **argv, int ix, int fallback)
{
    return argc > ix ? (int)strtol(argv[ix], NULL, 10) : fallback;
}

/* Prints the verdict; its value is the program's exit status. */
static inline int verdict(const char *name, long long wrong)
{
    if (wrong) printf("%s: FAILED, %lld wrong values\n", name, wrong);
    else printf("%s: PASSED\n", name);
    return wrong != 0;
}

#endif
