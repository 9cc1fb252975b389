/* The native twins of kernels.cu, in two builds. */
#ifndef BENCH_CPU_NATIVE_H
#define BENCH_CPU_NATIVE_H

struct body { float x, y, z, w; };
#define NATIVE_DECLARE(v)                                                                       \
    void saxpy_##v(int n, float a, const float *x, float *y);                                   \
    void matmul_##v(int n, const float *a, const float *b, float *c);                           \
    float reduce_##v(int n, const float *x);                                                    \
    void nbody_##v(int n, const struct body *p, struct body *acc);                              \
    void histogram_##v(int n, const unsigned *x, unsigned *bins);                               \
    void stencil_##v(int n, const float *in, float *out);                                       \
    void blackscholes_##v(int n, const float *price, const float *strike, const float *years, float *call, float *put); \
    void mandelbrot_##v(int n, int limit, int *out);                                            \
    void bfs_##v(int n, const int *first, const int *edges, int *depth, int level);             \
    void scan_##v(int n, const unsigned *in, unsigned *out);                                    \
    int threads_##v(int n);
NATIVE_DECLARE(strict)
NATIVE_DECLARE(fast)

/* cox.c: a block of reduce_shfl and of the operations of warps, and the variables that its runtime sets. */
struct cox_place { int size, size_x, block; };
extern _Thread_local struct cox_place cox_place;
extern _Thread_local int cox_warp[32];
typedef void cox_block_fn(int n, const float *restrict x, float *restrict out);
cox_block_fn cox_block_gcc, cox_block_clang;
typedef void cox_warp_fn(const void *restrict in, void *restrict out, void *restrict more);
cox_warp_fn cox_sum_gcc, cox_scan_gcc, cox_vote_gcc, cox_compact_gcc, cox_sum_clang, cox_scan_clang, cox_vote_clang, cox_compact_clang;

#endif
