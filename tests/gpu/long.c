/* One thread goes ROUNDS times through a loop that the assembler cannot shorten: x = a x + c, modulo 2^32.
 * The host knows x by repeated squaring.   usage: long ROUNDS */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry far(.param .u64 out, .param .u64 rounds)\n{\n.reg .pred %p;\n.reg .b32 %x;\n.reg .b64 %i, %n, %o;\n"
    "ld.param.u64 %o, [out];\nld.param.u64 %n, [rounds];\nmov.u32 %x, 1;\nmov.u64 %i, 0;\n"
    "L: mad.lo.u32 %x, %x, 1664525, 1013904223;\nadd.u64 %i, %i, 1;\nsetp.lt.u64 %p, %i, %n;\n@%p bra L;\n"
    "st.global.u32 [%o], %x;\nret;\n}\n";

static uint32_t expected(uint64_t n)
{
    uint32_t a = 1664525, c = 1013904223, x = 1;
    for (; n; n >>= 1) {
        if (n & 1) x = a * x + c;
        c = a * c + c;
        a *= a;
    }
    return x;
}

static void *lib;
#define CALL(name, type, ...)                                                                                          \
    do {                                                                                                               \
        int rc_ = ((int(*) type)(uintptr_t)dlsym(lib, name))(__VA_ARGS__);                                             \
        if (rc_) printf("%s: error %d\n", name, rc_), exit(1);                                                         \
    } while (0)

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, out;
    void *ctx, *module, *f, *params[] = {&out, &rounds};
    uint32_t x;
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) return 1;
    CALL("cuInit", (unsigned), 0);
    CALL("cuDevicePrimaryCtxRetain", (void **, int), &ctx, 0);
    CALL("cuCtxSetCurrent", (void *), ctx);
    CALL("cuModuleLoadData", (void **, const void *), &module, text);
    CALL("cuModuleGetFunction", (void **, void *, const char *), &f, module, "far");
    CALL("cuMemAlloc_v2", (uint64_t *, size_t), &out, 4);
    CALL("cuLaunchKernel",
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), f, 1,
         1, 1, 1, 1, 1, 0, NULL, params, NULL);
    CALL("cuCtxSynchronize", (void));
    CALL("cuMemcpyDtoH_v2", (void *, uint64_t, size_t), &x, out, 4);
    printf("%llu rounds: %s\n", (unsigned long long)rounds, x == expected(rounds) ? "right" : "wrong");
    return x != expected(rounds);
}
