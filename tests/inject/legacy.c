/* A driver-API program as of CUDA 3: a kernel made of two PTX texts by cuLink, parameters and geometry
 * set on the function, three launches of it, one that the driver rejects. 200 of 256 threads store. */
#include <stdint.h>
#include <stdio.h>

static const char kernel[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b32 r) value(.param .b32 a, .param .b32 b);\n"
    ".visible .entry fill(.param .u64 p, .param .u32 n, .param .u32 add)\n{\n"
    ".reg .pred %p<2>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nld.param.u32 %r6, [add];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.s32 %r5, %r2, %r3, %r4;\nsetp.ge.s32 %p1, %r5, %r1;\n@%p1 bra DONE;\n"
    "{\n.param .b32 a;\n.param .b32 b;\n.param .b32 r;\nst.param.b32 [a], %r5;\nst.param.b32 [b], %r6;\n"
    "call (r), value, (a, b);\nld.param.b32 %r7, [r];\n}\n"
    "cvta.to.global.u64 %rd2, %rd1;\nmul.wide.s32 %rd3, %r5, 4;\nadd.s64 %rd4, %rd2, %rd3;\n"
    "st.global.u32 [%rd4], %r7;\nDONE: ret;\n}\n";
static const char function[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .func (.param .b32 r) value(.param .b32 a, .param .b32 b)\n{\n.reg .b32 %r<4>;\n"
    "ld.param.b32 %r1, [a];\nld.param.b32 %r2, [b];\nadd.s32 %r3, %r1, %r2;\nst.param.b32 [r], %r3;\nret;\n}\n";

int cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(void **, unsigned, int),
    cuModuleLoadData(void **, const void *);
int cuLinkCreate_v2(unsigned, int *, void **, void **), cuLinkComplete(void *, void **, size_t *),
    cuLinkDestroy(void *);
int cuLinkAddData_v2(void *, int, void *, size_t, const char *, unsigned, int *, void **);
int cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t);
int cuMemcpyDtoH_v2(void *, uint64_t, size_t), cuFuncSetBlockShape(void *, int, int, int),
    cuFuncSetSharedSize(void *, unsigned);
int cuParamSetSize(void *, unsigned), cuParamSetv(void *, int, void *, unsigned), cuParamSeti(void *, int, unsigned);
int cuLaunchGrid(void *, int, int), cuLaunchGridAsync(void *, int, int, void *), cuLaunch(void *);

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int rc = call;                                                                                                 \
        if (rc) return fprintf(stderr, "legacy: %s: error %d\n", #call, rc), 1;                                        \
    } while (0)

static int check(uint64_t p, uint32_t n, uint32_t add)
{
    uint32_t out[200];
    TRY(cuMemcpyDtoH_v2(out, p, sizeof out));
    for (uint32_t i = 0; i < n; i++)
        if (out[i] != i + add) return fprintf(stderr, "legacy: out[%u] = %u\n", i, out[i]), 1;
    return 0;
}

int main(void)
{
    void *ctx, *module, *f, *link, *image;
    uint64_t p;
    int device;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    TRY(cuCtxCreate_v2(&ctx, 0, device));
    TRY(cuLinkCreate_v2(0, NULL, NULL, &link));
    TRY(cuLinkAddData_v2(link, 1, (void *)kernel, sizeof kernel, "kernel", 0, NULL, NULL));
    TRY(cuLinkAddData_v2(link, 1, (void *)function, sizeof function, "function", 0, NULL, NULL));
    TRY(cuLinkComplete(link, &image, NULL));
    TRY(cuModuleLoadData(&module, image));
    TRY(cuLinkDestroy(link));
    TRY(cuModuleGetFunction(&f, module, "fill"));
    TRY(cuMemAlloc_v2(&p, 800));
    if (!cuLaunchGrid(f, 4, 1)) return fputs("legacy: a launch without a block shape is taken\n", stderr), 1;
    TRY(cuFuncSetBlockShape(f, 64, 1, 1));
    TRY(cuFuncSetSharedSize(f, 16));
    TRY(cuParamSetSize(f, 16));
    TRY(cuParamSetv(f, 0, &p, 8));
    TRY(cuParamSeti(f, 8, 200));
    TRY(cuParamSeti(f, 12, 1));
    TRY(cuLaunchGrid(f, 4, 1));
    if (check(p, 200, 1)) return 1;
    TRY(cuParamSeti(f, 12, 5));
    TRY(cuLaunchGridAsync(f, 4, 1, NULL));
    if (check(p, 200, 5)) return 1;
    TRY(cuParamSeti(f, 12, 9));
    TRY(cuLaunch(f));
    if (check(p, 64, 9)) return 1;
    puts("ok");
    return 0;
}
