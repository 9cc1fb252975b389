/* Textures and surfaces through the driver API: references and objects, arrays written by one kernel
 * and filtered by the next. Every value is compared with a closed form. usage: textures KERNELS.ptx */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cu.h"

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(cu_ctx *, int), cuCtxSetCurrent(cu_ctx),
    cuCtxSynchronize(void);
int cuModuleLoadData(cu_module *, const void *), cuModuleGetFunction(cu_function *, cu_module, const char *);
int cuMemAlloc_v2(cu_ptr *, size_t), cuMemcpyDtoH_v2(void *, cu_ptr, size_t),
    cuMemcpyHtoD_v2(cu_ptr, const void *, size_t), cuMemFree_v2(cu_ptr);
int cuLaunchKernel(cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_stream,
                   void **, void **);
int cuModuleGetTexRef(cu_texref *, cu_module, const char *), cuModuleGetSurfRef(cu_surfref *, cu_module, const char *);
int cuTexRefSetAddress_v2(size_t *, cu_texref, cu_ptr, size_t), cuTexRefSetFormat(cu_texref, int, int),
    cuTexRefSetFlags(cu_texref, unsigned);
int cuTexRefSetArray(cu_texref, cu_array, unsigned), cuTexRefSetFilterMode(cu_texref, int),
    cuSurfRefSetArray(cu_surfref, cu_array, unsigned);
int cuArray3DCreate_v2(cu_array *, const struct cu_array3d_desc *), cuArrayDestroy(cu_array);
int cuTexObjectCreate(cu_tex *, const struct cu_resource_desc *, const struct cu_texture_desc *,
                      const struct cu_view_desc *),
    cuTexObjectDestroy(cu_tex);
int cuSurfObjectCreate(cu_surf *, const struct cu_resource_desc *), cuSurfObjectDestroy(cu_surf);

#define DO(call)                                                                                                       \
    do {                                                                                                               \
        int r_ = (call);                                                                                               \
        if (r_) {                                                                                                      \
            printf("line %d: %s gave %d\n", __LINE__, #call, r_);                                                      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
static cu_module module;

static void launch(const char *kernel, void **args)
{
    cu_function f;
    DO(cuModuleGetFunction(&f, module, kernel));
    DO(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
    DO(cuCtxSynchronize());
}

static void want(const char *what, const float *got, int i, float x)
{
    if (got[i] == x) return;
    printf("%s: element %d is %g, not %g\n", what, i, (double)got[i], (double)x);
    exit(1);
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    static float host[64], got[64];
    cu_ptr in, other, out;
    cu_ctx ctx;
    int dev;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file || !fread(text, 1, sizeof text - 1, file)) return 2;
    DO(cuInit(0));
    DO(cuDeviceGet(&dev, 0));
    DO(cuDevicePrimaryCtxRetain(&ctx, dev));
    DO(cuCtxSetCurrent(ctx));
    DO(cuModuleLoadData(&module, text));
    DO(cuMemAlloc_v2(&in, sizeof host));
    DO(cuMemAlloc_v2(&other, sizeof host));
    DO(cuMemAlloc_v2(&out, sizeof got));

    /* a reference bound to device memory, then to other memory */
    cu_texref ref;
    void *args[] = {&out};
    DO(cuModuleGetTexRef(&ref, module, "ref"));
    DO(cuTexRefSetFormat(ref, CUAD_FLOAT, 1));
    DO(cuTexRefSetFlags(ref, CUTEX_READ_AS_INTEGER));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 64; i++) host[i] = (float)(i * i + 1000 * round);
        DO(cuMemcpyHtoD_v2(round ? other : in, host, sizeof host));
        DO(cuTexRefSetAddress_v2(NULL, ref, round ? other : in, 60 * 4));
        launch("by_reference", args);
        DO(cuMemcpyDtoH_v2(got, out, sizeof got));
        for (int i = 0; i < 64; i++) want("reference", got, i, i < 60 ? host[i] : 0);
    }

    /* a surface reference and a surface object fill an array of 8 x 8, a texture filters it */
    struct cu_array3d_desc d = {.width = 8, .height = 8, .format = CUAD_FLOAT, .channels = 1, .flags = CUARRAY_SURFACE};
    struct cu_resource_desc r = {.type = CURES_ARRAY};
    struct cu_texture_desc t = {.address = {CUADDR_CLAMP, CUADDR_CLAMP, CUADDR_CLAMP},
                                .filter = CUFILTER_LINEAR,
                                .flags = CUTEX_READ_AS_INTEGER};
    for (int round = 0; round < 2; round++) {
        cu_surfref sref;
        cu_surf surf = 0;
        cu_tex tex;
        DO(cuArray3DCreate_v2(&r.res.array.array, &d));
        if (round) {
            void *with[] = {&surf};
            DO(cuSurfObjectCreate(&surf, &r));
            launch("fill_object", with);
            DO(cuSurfObjectDestroy(surf));
        } else {
            DO(cuModuleGetSurfRef(&sref, module, "surf"));
            DO(cuSurfRefSetArray(sref, r.res.array.array, 0));
            launch("fill_reference", NULL);
        }
        DO(cuTexObjectCreate(&tex, &r, &t, NULL));
        DO(cuArrayDestroy(r.res.array.array)); /* the object keeps the texels */
        void *with[] = {&tex, &out};
        launch("filter", with);
        DO(cuMemcpyDtoH_v2(got, out, sizeof got));
        /* texel (x, y) is x + 10 y; read at (x + 0.75, y + 1): a quarter to the right, half a row down */
        for (int i = 0; i < 64; i++) {
            int x = i % 8, y = i / 8;
            want("filter", got, i, (float)x + (x < 7 ? 0.25f : 0) + 10 * (y < 7 ? (float)y + 0.5f : 7));
        }
        DO(cuTexObjectDestroy(tex));
    }

    /* a reference with normalised coordinates on an array */
    DO(cuArray3DCreate_v2(&r.res.array.array, &d));
    DO(cuModuleGetTexRef(&ref, module, "square"));
    DO(cuTexRefSetArray(ref, r.res.array.array, 1));
    DO(cuTexRefSetFlags(ref, CUTEX_NORMALIZED | CUTEX_READ_AS_INTEGER));
    cu_surf surf;
    DO(cuSurfObjectCreate(&surf, &r));
    void *with[] = {&surf};
    launch("fill_object", with);
    launch("normalised", args);
    DO(cuMemcpyDtoH_v2(got, out, sizeof got));
    for (int i = 0; i < 64; i++) want("normalised", got, i, (float)(i % 8) + 10.0f * (float)(i / 8));
    puts("ok");
    return 0;
}
