/* Records what a GPU's approximate functions give: DIR/NAME-START.bin, the results (32 bits each) of
 * consecutive floats from START on, for fit.c; DIR/sums, per form and 2^24 operands the sum of hashes
 * that tests/unit/approx_h200.h has. The files take 700 MB; differences of neighbours compress well.
 * usage: record DIR        build: nvcc -O2 -arch=sm_90 record.cu */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

#define FORM(name, text)                                                                   \
    struct name {                                                                          \
        static __device__ uint32_t of(uint32_t x)                                          \
        {                                                                                  \
            float r;                                                                       \
            asm volatile(text " %0, %1;" : "=f"(r) : "f"(__uint_as_float(x)));             \
            return __float_as_uint(r);                                                     \
        }                                                                                  \
    };
#define UPPER(name, text)                                                                  \
    struct name {                                                                          \
        static __device__ uint32_t of(uint32_t x)                                          \
        {                                                                                  \
            double r;                                                                      \
            asm volatile(text " %0, %1;" : "=d"(r) : "d"(__hiloint2double(x, 0)));         \
            return __double2hiint(r);                                                      \
        }                                                                                  \
    };
#define PACKED(name, text)                                                                 \
    struct name {                                                                          \
        static __device__ uint32_t of(uint32_t x)                                          \
        {                                                                                  \
            uint32_t r;                                                                    \
            asm volatile(text " %0, %1;" : "=r"(r) : "r"(x));                              \
            return r;                                                                      \
        }                                                                                  \
    };
#define FORMS(F, U, P)                                                                     \
    F(ex2, "ex2.approx.f32") F(ex2z, "ex2.approx.ftz.f32") F(lg2, "lg2.approx.f32") F(lg2z, "lg2.approx.ftz.f32") \
    F(sin_, "sin.approx.f32") F(sinz, "sin.approx.ftz.f32") F(cos_, "cos.approx.f32") F(cosz, "cos.approx.ftz.f32") \
    F(rcp, "rcp.approx.f32") F(rcpz, "rcp.approx.ftz.f32") F(rsq, "rsqrt.approx.f32") F(rsqz, "rsqrt.approx.ftz.f32") \
    F(sqrt_, "sqrt.approx.f32") F(sqrtz, "sqrt.approx.ftz.f32") F(tanh_, "tanh.approx.f32") \
    U(rcp64, "rcp.approx.ftz.f64") U(rsq64, "rsqrt.approx.ftz.f64")                        \
    P(ex2h, "ex2.approx.f16x2") P(ex2b, "ex2.approx.ftz.bf16x2") P(tanhh, "tanh.approx.f16x2") P(tanhb, "tanh.approx.bf16x2")
FORMS(FORM, UPPER, PACKED)

template <class F> __global__ void results(uint32_t *out, uint32_t start, uint32_t n)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = F::of(start + i);
}
template <class F> __global__ void hashes(unsigned long long *sum, uint32_t start)
{
    unsigned long long s = 0;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < 1u << 24; i += gridDim.x * blockDim.x) {
        uint64_t v = (uint64_t)(start + i) << 32 | F::of(start + i);
        v ^= v >> 33;
        v *= 0xff51afd7ed558ccdull;
        s += v ^ v >> 33;
    }
    atomicAdd(sum, s);
}

static const char *dir;
static void *device;

template <class F> static void record(const char *name, uint32_t start, uint32_t octaves)
{
    char path[500];
    uint32_t n = octaves << 23;
    std::vector<uint32_t> host(n);
    results<F><<<1024, 256>>>((uint32_t *)device, start, n);
    check(cudaMemcpy(host.data(), device, n * 4ull, cudaMemcpyDeviceToHost), name);
    snprintf(path, sizeof path, "%s/%s-%08x.bin", dir, name, start);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(host.data(), 4, n, f) != n || fclose(f)) check(cudaErrorUnknown, path);
}
template <class F> static void sum_up(FILE *f, const char *form)
{
    unsigned long long host[256];
    check(cudaMemset(device, 0, sizeof host), form);
    for (uint32_t b = 0; b < 256; b++) hashes<F><<<1024, 256>>>((unsigned long long *)device + b, b << 24);
    check(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), form);
    for (uint32_t b = 0; b < 256; b++) fprintf(f, "%s %02x000000 %016llx\n", form, b, host[b]);
}

int main(int argc, char **argv)
{
    char path[500];
    if (argc < 2) return 2;
    dir = argv[1];
    check(cudaMalloc(&device, 11ull << 25), "cudaMalloc");
    record<rcpz>("rcp", 0x3f800000, 1);
    record<rsqz>("rsq", 0x3f800000, 2);
    record<sqrtz>("sqrt", 0x3f800000, 2);
    record<ex2z>("ex2", 0x3f800000, 1);
    record<lg2z>("lg2", 0x3f800000, 1);
    record<sinz>("sin", 0x3f000000, 2);
    record<cosz>("cos", 0x3f000000, 2);
    record<tanh_>("tanh", 0x3b800000, 11);
    snprintf(path, sizeof path, "%s/sums", dir);
    FILE *f = fopen(path, "w");
    if (!f) check(cudaErrorUnknown, path);
#define SUM(name, text) sum_up<name>(f, text);
    FORMS(SUM, SUM, SUM)
    return fclose(f);
}
