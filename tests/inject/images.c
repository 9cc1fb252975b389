/* A program for export.sh: a kernel paints an array through a surface, two read it and the second level of a mipmap
 * through textures. The first texture that it makes goes at once, so that handles are not given in order. */
#include "adder.h"

D(cuArray3DCreate_v2, cu_array *, const struct cu_array3d_desc *)
D(cuMipmappedArrayCreate, cu_mipmap *, const struct cu_array3d_desc *, unsigned)
D(cuMipmappedArrayGetLevel, cu_array *, cu_mipmap, unsigned)
D(cuMemcpy3D_v2, const struct cu_memcpy3d *)
D(cuTexObjectCreate, cu_tex *, const struct cu_resource_desc *, const struct cu_texture_desc *,
  const struct cu_view_desc *)
D(cuTexObjectDestroy, cu_tex)
D(cuSurfObjectCreate, cu_surf *, const struct cu_resource_desc *)
D(cuCtxSynchronize, void)

enum { SIDE = 16, HALF = SIDE / 2, SURFACE = 2 };
static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry paint(.param .u64 surface)\n{\n"
                           "    .reg .b32 %r<5>;\n    .reg .b64 %d;\n"
                           "    ld.param.u64 %d, [surface];\n    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, %tid.y;\n"
                           "    mad.lo.u32 %r3, %r2, 100, %r1;\n    shl.b32 %r1, %r1, 2;\n"
                           "    sust.b.2d.b32.trap [%d, {%r1, %r2}], %r3;\n    ret;\n}\n"
                           ".visible .entry look(.param .u64 out, .param .u64 texture, .param .f32 level)\n{\n"
                           "    .reg .b32 %r<9>;\n    .reg .f32 %f<4>;\n    .reg .b64 %d<4>;\n"
                           "    ld.param.u64 %d1, [out];\n    ld.param.u64 %d2, [texture];\n"
                           "    ld.param.f32 %f1, [level];\n"
                           "    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, %tid.y;\n    mov.u32 %r3, %ntid.x;\n"
                           "    cvt.rn.f32.u32 %f2, %r1;\n    cvt.rn.f32.u32 %f3, %r2;\n"
                           "    tex.level.2d.v4.u32.f32 {%r4, %r5, %r6, %r7}, [%d2, {%f2, %f3}], %f1;\n"
                           "    mad.lo.u32 %r8, %r2, %r3, %r1;\n    mul.wide.u32 %d3, %r8, 4;\n"
                           "    add.s64 %d1, %d1, %d3;\n    st.global.u32 [%d1], %r4;\n    ret;\n}\n";

static unsigned wrong(cu_ptr p, unsigned side, unsigned step)
{
    unsigned back[SIDE * SIDE], n = 0;
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(back, p, side * side * 4));
    for (unsigned k = 0; k < side * side; k++) n += back[k] != k / side * step + k % side;
    return n;
}

int main(int argc, char **argv)
{
    static unsigned half[HALF * HALF];
    cu_device device;
    cu_ctx context;
    cu_module module;
    cu_function paint, look;
    cu_array array, level;
    cu_mipmap mipmap;
    cu_tex texture, small, first;
    cu_surf surface;
    cu_ptr out;
    float zero = 0, one = 1;
    int flat = argc > 1 && argv;
    for (unsigned k = 0; k < HALF * HALF; k++) half[k] = k / HALF * 1000 + k % HALF;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, text));
    OK(cuModuleGetFunction(&paint, module, "paint"));
    OK(cuModuleGetFunction(&look, module, "look"));
    OK(cuMemAlloc_v2(&out, SIDE * SIDE * 4));
    OK(cuArray3DCreate_v2(&array, &(struct cu_array3d_desc){SIDE, SIDE, 0, CUAD_UINT32, 1, SURFACE}));
    struct cu_texture_desc plain = {
        .address = {CUADDR_CLAMP, CUADDR_CLAMP, CUADDR_CLAMP}, .flags = CUTEX_READ_AS_INTEGER, .max_clamp = 1};
    struct cu_resource_desc of = {.type = CURES_ARRAY, .res.array.array = array};
    OK(cuTexObjectCreate(&first, &of, &plain, NULL));
    OK(cuTexObjectCreate(&texture, &of, &plain, NULL));
    OK(cuTexObjectDestroy(first));
    OK(cuSurfObjectCreate(&surface, &of));
    OK(cuLaunchKernel(paint, 1, 1, 1, SIDE, SIDE, 1, 0, NULL, (void *[]){&surface}, NULL));
    OK(cuLaunchKernel(look, 1, 1, 1, SIDE, SIDE, 1, 0, NULL, (void *[]){&out, &texture, &zero}, NULL));
    unsigned n = wrong(out, SIDE, 100);
    if (flat) return printf("%u wrong\n", n), n != 0; /* launches cannot be taken out beside a mipmap */
    OK(cuMipmappedArrayCreate(&mipmap, &(struct cu_array3d_desc){SIDE, SIDE, 0, CUAD_UINT32, 1, 0}, 2));
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 1));
    OK(cuMemcpy3D_v2(&(struct cu_memcpy3d){.src_type = CUMEM_HOST,
                                           .src_host = half,
                                           .src_pitch = 4 * HALF,
                                           .src_height = HALF,
                                           .dst_type = CUMEM_ARRAY,
                                           .dst_array = level,
                                           .width = 4 * HALF,
                                           .height = HALF,
                                           .depth = 1}));
    OK(cuTexObjectCreate(&small, &(struct cu_resource_desc){.type = CURES_MIPMAP, .res.mipmap.mipmap = mipmap}, &plain,
                         NULL));
    OK(cuLaunchKernel(look, 1, 1, 1, HALF, HALF, 1, 0, NULL, (void *[]){&out, &small, &one}, NULL));
    n += wrong(out, HALF, 1000);
    printf("%u wrong\n", n);
    return n != 0;
}
