/* A store, a load or an atomic at a distance from a buffer of each kind, many in one process; prints what the driver
 * answers to each, and whether the place lay in an allocation: "<kind> <access> <distance>: <error> <in|out>".
 *   distances SEED [all]    50 distances from the seed besides +-{1, 4, 8, 2^k, 2^k +- 4} up to 64 MiB; of most kinds
 * one in five, or all */
#include <string.h>

#include "abi/cu.h"
#include "by_name.h"

#define ENTRY(name, access)                                                                                                                 \
    ".visible .entry " name                                                                                                                 \
    "(.param .u64 buffer, .param .u64 distance)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n"                                \
    "ld.param.u64 %d1, [buffer];\nld.param.u64 %d2, [distance];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d3, %r1, 4;\nadd.u64 %d4, %d1, %d3;\n" \
    "st.global.u32 [%d4], %r1;\nsetp.ne.u32 %p1, %r1, 5;\n@%p1 bra END;\nadd.u64 %d5, %d1, %d2;\n" access                                   \
    "\nEND: ret;\n}\n"
#define SHARED(name, access)                                                                                                                               \
    ".visible .entry " name                                                                                                                                \
    "(.param .u64 buffer, .param .u64 distance)\n{\n.shared .align 4 .b8 tile[512];\n.reg .pred %p<3>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n"              \
    "ld.param.u64 %d1, [buffer];\nld.param.u32 %r2, [distance];\nmov.u32 %r1, %tid.x;\nmov.u32 %r3, tile;\nshl.b32 %r4, %r1, 2;\nadd.u32 %r4, %r3, %r4;\n" \
    "st.shared.u32 [%r4], %r1;\nsetp.ne.u32 %p1, %r1, 5;\n@%p1 bra END;\nadd.u32 %r5, %r3, %r2;\n" access                                                  \
    "\nEND: ret;\n}\n"
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.global .align 8 .b8 variable[1024];\n" ENTRY(
    "w1", "st.global.u8 [%d5], %r1;") ENTRY("w4", "st.global.u32 [%d5], %r1;")
    ENTRY("r1", "ld.global.u8 %r6, [%d5];\nst.global.u32 [%d4], %r6;")
        ENTRY("r4", "ld.global.u32 %r6, [%d5];\nst.global.u32 [%d4], %r6;")
            ENTRY("a4", "atom.global.add.u32 %r6, [%d5], 0;") ENTRY("g4", "st.u32 [%d5], %r1;")
                SHARED("s1", "st.shared.u8 [%r5], %r1;") SHARED("s4", "st.shared.u32 [%r5], %r1;")
                    SHARED("t4", "ld.shared.u32 %r6, [%r5];\nst.global.u32 [%d1], %r6;");

#define LIST                                                                                                           \
    F(cuInit, (unsigned))                                                                                              \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                                                        \
    F(cuDevicePrimaryCtxReset_v2, (int))                                                                               \
    F(cuCtxSetCurrent, (void *))                                                                                       \
    F(cuModuleLoadData, (void **, const void *))                                                                       \
    F(cuModuleGetFunction, (void **, void *, const char *))                                                            \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuModuleGetGlobal_v2, (uint64_t *, size_t *, void *, const char *))                                              \
    F(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    F(cuMemAllocAsync, (uint64_t *, size_t, void *))                                                                   \
    F(cuMemAllocManaged, (uint64_t *, size_t, unsigned))                                                               \
    F(cuMemHostAlloc, (void **, size_t, unsigned))                                                                     \
    F(cuArrayCreate_v2, (void **, const struct cu_array_desc *))                                                       \
    F(cuDeviceGetDefaultMemPool, (void **, int))                                                                       \
    F(cuMemAllocFromPoolAsync, (uint64_t *, size_t, void *, void *))                                                   \
    F(cuMemGetAddressRange_v2, (uint64_t *, size_t *, uint64_t))                                                       \
    F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    F(cuLaunchKernel,                                                                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
#define F(name, args) static int(*name) args;
LIST
#undef F

    enum kind {
        MALLOC,
        ASYNC,
        POOL,
        MANAGED,
        PINNED,
        VARIABLE,
        BESIDE_ARRAY,
        SHARED_ARRAY,
        KINDS
    };
static const char *const names[KINDS] = {"malloc", "async", "pool", "managed", "pinned", "variable", "array", "shared"};
enum { BYTES = 1024, TILE = 512 };
static uint64_t buffer[KINDS];
static void *module;

static void set_up(void)
{
    void *ctx, *pool, *host, *array;
    struct cu_array_desc a = {64, 16, 0x20 /* float */, 1};
    size_t n;
    DO(cuDevicePrimaryCtxRetain(&ctx, 0));
    DO(cuCtxSetCurrent(ctx));
    DO(cuModuleLoadData(&module, ptx));
    DO(cuMemAlloc_v2(&buffer[MALLOC], BYTES));
    DO(cuMemAllocAsync(&buffer[ASYNC], BYTES, NULL));
    DO(cuDeviceGetDefaultMemPool(&pool, 0));
    DO(cuMemAllocFromPoolAsync(&buffer[POOL], BYTES, pool, NULL));
    DO(cuMemAllocManaged(&buffer[MANAGED], BYTES, 1));
    DO(cuMemHostAlloc(&host, BYTES, 0));
    buffer[PINNED] = (uintptr_t)host;
    DO(cuModuleGetGlobal_v2(&buffer[VARIABLE], &n, module, "variable"));
    DO(cuMemAlloc_v2(&buffer[BESIDE_ARRAY], BYTES));
    DO(cuArrayCreate_v2(&array, &a));
    buffer[SHARED_ARRAY] = buffer[MALLOC];
    DO(cuCtxSynchronize());
}

/* In the buffer's units: from its start, of a place whose first byte is so far before the start, or whose last so far
 * behind the end. */
static void try(enum kind k, char access, int64_t distance)
{
    unsigned bytes = distance % 4 ? 1 : 4;
    int64_t size = k == SHARED_ARRAY ? TILE : BYTES, at = distance < 0 ? distance : size + distance - bytes;
    char name[3] = {access, (char)('0' + bytes), 0};
    void *f, *params[] = {&buffer[k], &at};
    uint64_t base;
    size_t n;
    int in = k == SHARED_ARRAY ? at >= 0 && at + bytes <= TILE
                               : !cuMemGetAddressRange_v2(&base, &n, buffer[k] + (uint64_t)at);
    DO(cuModuleGetFunction(&f, module, name));
    int r = cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
    if (!r) r = cuCtxSynchronize();
    printf("%s %s %+lld: %d %s\n", names[k], name, (long long)distance, r, in ? "in" : "out");
    if (!r) return;
    cuDevicePrimaryCtxReset_v2(0);
    set_up();
}

static void try_all(enum kind k, int64_t d)
{
    static unsigned turn;
    int whole = d % 4 == 0;
    if (k == SHARED_ARRAY) {
        try(k, 's', d);
        if (whole) try(k, 't', d);
        return;
    }
    const char how = "wag"[turn++ % 3];
    try(k, whole ? how : 'w', d);
    try(k, 'r', d);
}

int main(int argc, char **argv)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    uint32_t seed = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
    if (!lib) return puts("no libcuda.so.1"), 2;
#define F(name, args) *(void **)&name = dlsym(lib, #name);
    LIST
#undef F
        DO(cuInit(0));
    set_up();
    for (enum kind k = 0; k < KINDS; k++) {
        unsigned step = argc > 2 || k == MALLOC || k == SHARED_ARRAY ? 1 : 5;
        for (unsigned bit = 0; bit <= 26; bit++) {
            int64_t d = 1ll << bit;
            if (bit > 3 && step > 1 && (bit + k) % step) continue;
            for (int sign = -1; sign <= 1; sign += 2) {
                try_all(k, sign * d);
                if (bit > 2) try_all(k, sign * (d - 4)), try_all(k, sign * (d + 4));
            }
        }
        for (unsigned i = 0; i < 50 / step; i++) {
            seed = seed * 1664525u + 1013904223u;
            int64_t d = (int64_t)(seed >> 6) >> (seed % 23);
            try_all(k, i & 1 ? d + 1 : -d - 1);
        }
    }
    return 0;
}
