/* A driver-API program whose kernel is linked when it runs, from two PTX texts, by nvJitLink, and checked.
 * usage: nvjitlink linked            the entries of a DT_NEEDED libnvJitLink, by version as NVIDIA's header calls
 *                                    them
 *        nvjitlink dlopen LIB        dlopen (RTLD_LOCAL) + dlsym of the plain names
 *        nvjitlink file LIB          the same; one text is read from a file
 *        nvjitlink single LIB        one text alone
 *        nvjitlink machine LIB       one input is machine code: nobody knows its PTX
 * 200 of 256 threads store three times their number. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINK(E)                                                                                                        \
    E(Create, (void **, uint32_t, const char **))                                                                      \
    E(AddData, (void *, int, const void *, size_t, const char *))                                                      \
    E(AddFile, (void *, int, const char *))                                                                            \
    E(Complete, (void *))                                                                                              \
    E(GetLinkedCubinSize, (void *, size_t *))                                                                          \
    E(GetLinkedCubin, (void *, void *))                                                                                \
    E(Destroy, (void **))
#define E(name, args)                                                                                                  \
    static int(*p_##name) args;                                                                                        \
    extern int __nvJitLink##name##_13_0 args __attribute__((weak));
LINK(E)
#undef E
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t);
int cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

#define HEAD   ".version 8.0\n.target sm_90\n.address_size 64\n"
#define TIMES3 "\n.func (.param .b32 r) times3(.param .b32 a)"
#define BODY   "\n{\n.reg .b32 %r<3>;\nld.param.u32 %r1, [a];\nmul.lo.u32 %r2, %r1, 3;\nst.param.b32 [r], %r2;\nret;\n}\n"
#define KERNEL                                                                                                         \
    ".visible .entry fill(.param .u64 p, .param .u32 n)\n{\n"                                                          \
    ".reg .pred %q;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n"                                                             \
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r4, %r1, %r2, %r3;\n"            \
    "ld.param.u32 %r5, [n];\nsetp.ge.u32 %q, %r4, %r5;\n@%q bra END;\n"                                                \
    "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r4; call (r), times3, (a); ld.param.b32 %r6, [r]; }\n"         \
    "ld.param.u64 %d1, [p];\nmad.wide.u32 %d2, %r4, 4, %d1;\nst.global.u32 [%d2], %r6;\nEND: ret;\n}\n"
static const char user[] = HEAD ".extern" TIMES3 ";\n" KERNEL, helper[] = HEAD ".visible" TIMES3 BODY,
                  whole[] = HEAD ".visible" TIMES3 BODY KERNEL;

enum { CUBIN = 1, PTX = 2, ANY = 10 };

static void *link_texts(int n, const void *const *data, const int *types, const size_t *bytes, const char *file,
                        size_t *out_bytes)
{
    void *h, *cubin = NULL;
    const char *options[] = {"-arch=sm_90"};
    if (p_Create(&h, 1, options)) return NULL;
    int rc = 0;
    for (int i = 0; i < n && !rc; i++) rc = p_AddData(h, types[i], data[i], bytes[i], "input");
    if (!rc && file) rc = p_AddFile(h, PTX, file);
    if (!rc && !p_Complete(h) && !p_GetLinkedCubinSize(h, out_bytes) && (cubin = malloc(*out_bytes)) &&
        p_GetLinkedCubin(h, cubin)) {
        free(cubin);
        cubin = NULL;
    }
    p_Destroy(&h);
    return cubin;
}

static void *build(const char *way, size_t *bytes)
{
    const void *data[] = {user, helper};
    int types[] = {PTX, ANY};
    size_t sizes[] = {sizeof user, sizeof helper};
    if (!strcmp(way, "single"))
        return link_texts(1, (const void *const[]){whole}, types, (size_t[]){sizeof whole}, NULL, bytes);
    if (!strcmp(way, "file")) {
        FILE *f = fopen("helper.ptx", "w");
        if (!f || fputs(helper, f) < 0 || fclose(f)) return NULL;
        return link_texts(1, data, types, sizes, "helper.ptx", bytes);
    }
    if (!strcmp(way, "machine")) { /* the whole program as machine code goes in once more */
        void *first = link_texts(1, (const void *const[]){whole}, types, (size_t[]){sizeof whole}, NULL, bytes);
        return first ? link_texts(1, (const void *const[]){first}, (int[]){CUBIN}, bytes, NULL, bytes) : NULL;
    }
    return link_texts(2, data, types, sizes, NULL, bytes);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (argc > 2) {
        void *lib = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
#define E(name, args) *(void **)&p_##name = lib ? dlsym(lib, "nvJitLink" #name) : NULL;
        LINK(E)
#undef E
    } else {
#define E(name, args) p_##name = __nvJitLink##name##_13_0;
        LINK(E)
#undef E
    }
    size_t bytes;
    char *cubin = p_Create ? build(way, &bytes) : NULL;
    void *ctx, *module, *f;
    uint64_t p;
    unsigned n = 200;
    uint32_t out[200];
    int device, rc;
    if (!cubin) return fprintf(stderr, "nvjitlink: does not link\n"), 2;
    if ((rc = cuInit(0)) || (rc = cuDeviceGet(&device, 0)) || (rc = cuDevicePrimaryCtxRetain(&ctx, device)) ||
        (rc = cuCtxSetCurrent(ctx)))
        return fprintf(stderr, "nvjitlink: error %d\n", rc), 1;
    rc = cuModuleLoadData(&module, cubin);
    free(cubin);
    printf("load: %d\n", rc);
    fflush(stdout);
    if (rc) return 3;
    void *params[] = {&p, &n};
    if ((rc = cuModuleGetFunction(&f, module, "fill")) || (rc = cuMemAlloc_v2(&p, sizeof out)) ||
        (rc = cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL)) ||
        (rc = cuMemcpyDtoH_v2(out, p, sizeof out)))
        return fprintf(stderr, "nvjitlink: error %d\n", rc), 1;
    for (unsigned i = 0; i < n; i++)
        if (out[i] != 3 * i) return fprintf(stderr, "nvjitlink: out[%u] = %u\n", i, out[i]), 1;
    puts("ok");
    return 0;
}
