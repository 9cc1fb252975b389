/* Kernels on an OpenCL implementation for this CPU, where one is installed. */
#ifndef BENCH_CPU_OPENCL_H
#define BENCH_CPU_OPENCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a kernel is given: the parameters packed as CUDA packs them, and where each lies. */
enum { MAX_ARGS = 8 };
struct args { char at[128]; uint32_t n, count, from[MAX_ARGS], bytes[MAX_ARGS]; bool pointer[MAX_ARGS]; };

/* Opens the first platform that has a CPU and builds the file of kernels; `what` says what it is, or why there is none. */
bool opencl_open(const char *file, int threads, char *what, size_t bytes, double *build_ms);
/* Memory that kernels may be given addresses in. */
void opencl_share(void *base, size_t bytes);
/* Waits until it is done. Ends the process on an error. */
void opencl_launch(const char *name, const uint32_t grid[2], const uint32_t block[2], const struct args *a);

#endif
