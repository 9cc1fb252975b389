/* driver: virtual memory management, arrays, textures, managed memory, linking of PTX. */
#include "test.h"

#include <pthread.h>
#include <stdlib.h>

#include "driver_calls.h"

MG_TEST(driver_maps_physical_memory)
{
    start_driver();
    enum { N = 2 << 20 };
    struct cu_alloc_prop prop = {.type = 1, .location = {CULOC_DEVICE, 0}};
    struct cu_access rw = {{CULOC_DEVICE, 0}, CUACCESS_READWRITE};
    size_t grain = 0;
    cu_ptr p = 0, q = 0;
    cu_mem_handle a, b;
    MG_CHECK_EQ(CALL(cuMemGetAllocationGranularity)(&grain, &prop, 0), 0);
    MG_CHECK_EQ(grain, N);
    MG_CHECK_EQ(CALL(cuMemAddressReserve)(&p, (size_t)(4 * N), (size_t)0, (cu_ptr)0, 0ull), 0);
    MG_CHECK_EQ(p % N, 0);
    MG_CHECK_EQ(CALL(cuMemCreate)(&a, (size_t)N, &prop, 0ull), 0);
    MG_CHECK_EQ(CALL(cuMemCreate)(&b, (size_t)N, &prop, 0ull), 0);
    MG_CHECK_EQ(CALL(cuMemMap)(p, (size_t)N, (size_t)0, a, 0ull), 0);
    MG_CHECK_EQ(CALL(cuMemMap)(p, (size_t)N, (size_t)0, b, 0ull), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemMap)(p + N, (size_t)N, (size_t)0, b, 0ull), 0);
    MG_CHECK_EQ(CALL(cuMemsetD8_v2)(p, 1, (size_t)1), CUE_INVALID_VALUE); /* no access yet */
    MG_CHECK_EQ(CALL(cuMemSetAccess)(p, (size_t)(2 * N), &rw, (size_t)1), 0);
    MG_CHECK_EQ(CALL(cuMemsetD32_v2)(p + N - 8, 77u, (size_t)4), 0); /* across both */
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0);
    /* the same physical memory at a second address */
    MG_CHECK_EQ(CALL(cuMemAddressReserve)(&q, (size_t)N, (size_t)0, (cu_ptr)0, 0ull), 0);
    MG_CHECK_EQ(CALL(cuMemMap)(q, (size_t)N, (size_t)0, b, 0ull), 0);
    MG_CHECK_EQ(CALL(cuMemSetAccess)(q, (size_t)N, &rw, (size_t)1), 0);
    uint32_t v = 0;
    MG_CHECK_EQ(CALL(cuMemcpyDtoH_v2)(&v, q + 4, (size_t)4), 0);
    MG_CHECK_EQ(v, 77);
    unsigned type = 0;
    MG_CHECK_EQ(CALL(cuPointerGetAttribute)((void *)&type, (int)CUPTR_MEMORY_TYPE, q), 0);
    MG_CHECK_EQ(type, CUMEM_DEVICE);
    MG_CHECK_EQ(CALL(cuMemAddressFree)(p, (size_t)(4 * N)), CUE_INVALID_VALUE); /* still mapped */
    MG_CHECK_EQ(CALL(cuMemUnmap)(p, (size_t)(2 * N)), 0);
    MG_CHECK_EQ(CALL(cuMemcpyDtoH_v2)(&v, p, (size_t)4), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemUnmap)(q, (size_t)N), 0);
    MG_CHECK_EQ(CALL(cuMemRelease)(a), 0);
    MG_CHECK_EQ(CALL(cuMemRelease)(b), 0);
    MG_CHECK_EQ(CALL(cuMemRelease)(b), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemAddressFree)(p, (size_t)(4 * N)), 0);
    MG_CHECK_EQ(CALL(cuMemAddressFree)(q, (size_t)N), 0);
}

MG_TEST(driver_arrays_hold_rows)
{
    start_driver();
    cu_array a = NULL;
    struct cu_array_desc d = {3, 2, CUAD_FLOAT, 2};
    MG_CHECK_EQ(CALL(cuArrayCreate_v2)(&a, &d), 0);
    char in[48], out[48] = {0};
    for (int i = 0; i < 48; i++) in[i] = (char)i;
    struct cu_memcpy2d c = {.src_type = CUMEM_HOST,
                            .src_host = in,
                            .src_pitch = 24,
                            .dst_type = CUMEM_ARRAY,
                            .dst_array = a,
                            .width = 24,
                            .height = 2};
    MG_CHECK_EQ(CALL(cuMemcpy2D_v2)(&c), 0);
    c.width = 25;
    MG_CHECK_EQ(CALL(cuMemcpy2D_v2)(&c), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemcpyAtoH_v2)(out, a, (size_t)8, (size_t)40), 0);
    MG_CHECK(!memcmp(out, in + 8, 40));
    MG_CHECK_EQ(CALL(cuMemcpyAtoH_v2)(out, a, (size_t)8, (size_t)41), CUE_INVALID_VALUE);
    struct cu_resource_desc r = {.type = CURES_ARRAY, .res.array = {a}}, got;
    struct cu_texture_desc t = {.filter = CUFILTER_POINT};
    cu_tex tex = 0;
    MG_CHECK_EQ(CALL(cuTexObjectCreate)(&tex, &r, &t, (struct cu_view_desc *)NULL), 0);
    MG_CHECK_EQ(CALL(cuTexObjectGetResourceDesc)(&got, tex), 0);
    MG_CHECK(got.res.array.array == a);
    MG_CHECK_EQ(CALL(cuTexObjectDestroy)(tex), 0);
    MG_CHECK_EQ(CALL(cuTexObjectDestroy)(tex), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuArrayDestroy)(a), 0);
    MG_CHECK_EQ(CALL(cuArrayDestroy)(a), CUE_INVALID_HANDLE);
    cu_mipmap m = NULL;
    struct cu_array3d_desc d3 = {16, 4, 0, CUAD_UINT8, 1, 0};
    MG_CHECK_EQ(CALL(cuMipmappedArrayCreate)(&m, &d3, 10u), 0);
    MG_CHECK_EQ(CALL(cuMipmappedArrayGetLevel)(&a, m, 3u), 0);
    MG_CHECK_EQ(CALL(cuArray3DGetDescriptor_v2)(&d3, a), 0);
    MG_CHECK(d3.width == 2 && d3.height == 1);
    MG_CHECK_EQ(CALL(cuMipmappedArrayGetLevel)(&a, m, 5u), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMipmappedArrayDestroy)(m), 0);
}

/* Descriptions without sense: an error, whatever they multiply to. */
MG_TEST(driver_refuses_textures_without_sense)
{
    start_driver();
    cu_ptr base = 0, p;
    cu_tex tex = 0;
    struct cu_texture_desc t = {.filter = CUFILTER_POINT};
    MG_CHECK_EQ(CALL(cuMemAlloc_v2)(&base, (size_t)65536), 0);
    p = (base + 511) & ~(cu_ptr)511;
    for (unsigned channels = 0; channels < 6; channels++) {
        struct cu_resource_desc of = {
            .type = CURES_LINEAR, .res.linear = {.ptr = p, .format = CUAD_FLOAT, .channels = channels, .bytes = 256}};
        bool right = channels == 1 || channels == 2 || channels == 4;
        MG_CHECK_EQ(CALL(cuTexObjectCreate)(&tex, &of, &t, (struct cu_view_desc *)NULL), right ? 0 : CUE_INVALID_VALUE);
        if (right) MG_CHECK_EQ(CALL(cuTexObjectDestroy)(tex), 0);
    }
    struct cu_resource_desc of = {
        .type = CURES_PITCH2D,
        .res.pitch2d = {.ptr = p, .format = CUAD_FLOAT, .channels = 1, .width = 16, .height = 4, .pitch = 512}};
    MG_CHECK_EQ(CALL(cuTexObjectCreate)(&tex, &of, &t, (struct cu_view_desc *)NULL), 0);
    MG_CHECK_EQ(CALL(cuTexObjectDestroy)(tex), 0);
    of.res.pitch2d.channels = 0;
    MG_CHECK_EQ(CALL(cuTexObjectCreate)(&tex, &of, &t, (struct cu_view_desc *)NULL), CUE_INVALID_VALUE);
    of.res.pitch2d.channels = 1, of.res.pitch2d.height = (size_t)1 << 55 | 1; /* times the pitch: 0 */
    MG_CHECK_EQ(CALL(cuTexObjectCreate)(&tex, &of, &t, (struct cu_view_desc *)NULL), CUE_INVALID_VALUE);
    of.res.pitch2d.height = 4, of.res.pitch2d.width = (size_t)1 << 62 | 16;
    MG_CHECK_EQ(CALL(cuTexObjectCreate)(&tex, &of, &t, (struct cu_view_desc *)NULL), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(base), 0);
}

MG_TEST(driver_tells_advice_back)
{
    start_driver();
    cu_ptr p = 0;
    int v = 0, by[3];
    struct cu_location dev = {CULOC_DEVICE, 0}, host = {CULOC_HOST, 0};
    MG_CHECK_EQ(CALL(cuMemAllocManaged)(&p, (size_t)100, 1u), 0);
    MG_CHECK_EQ(CALL(cuMemAdvise_v2)(p, (size_t)100, (int)CUADVISE_SET_READ_MOSTLY, dev), 0);
    MG_CHECK_EQ(CALL(cuMemAdvise_v2)(p, (size_t)100, (int)CUADVISE_SET_ACCESSED_BY, host), 0);
    MG_CHECK_EQ(CALL(cuMemPrefetchAsync)(p, (size_t)100, 0, (cu_stream)NULL), 0);
    MG_CHECK_EQ(CALL(cuMemRangeGetAttribute)(&v, (size_t)4, (int)CURANGE_READ_MOSTLY, p, (size_t)100), 0);
    MG_CHECK_EQ(v, 1);
    MG_CHECK_EQ(CALL(cuMemRangeGetAttribute)(by, sizeof by, (int)CURANGE_ACCESSED_BY, p, (size_t)100), 0);
    MG_CHECK(by[0] == CUDEVICE_CPU && by[1] == CUDEVICE_INVALID);
    MG_CHECK_EQ(CALL(cuMemRangeGetAttribute)(&v, (size_t)4, (int)CURANGE_LAST_PREFETCH_LOCATION, p, (size_t)100), 0);
    MG_CHECK_EQ(v, 0);
    MG_CHECK_EQ(CALL(cuMemRangeGetAttribute)(&v, (size_t)4, (int)CURANGE_PREFERRED_LOCATION, p, (size_t)100), 0);
    MG_CHECK_EQ(v, CUDEVICE_INVALID);
    MG_CHECK_EQ(CALL(cuMemAdvise_v2)(p, (size_t)101, (int)CUADVISE_SET_READ_MOSTLY, dev), CUE_INVALID_VALUE);
    CALL(cuMemFree_v2)(p);
}

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

MG_TEST(driver_links_ptx)
{
    start_driver();
    /* externs of each defined in the other, a private name in both, a weak function in both */
    static const char a[] = HEAD
        ".extern .func (.param .b32 r) f(.param .b32 x);\n.visible .global .align 4 .u32 here = 3;\n"
        ".global .align 4 .u32 own = 1;\n.weak .func w()\n{\n ret;\n}\n.extern .shared .align 16 .b8 sm[];\n"
        ".visible .entry k1(.param .u64 p)\n{\n .reg .b64 %rd<2>;\n mov.u64 %rd1, own;\n call.uni w, ();\n ret;\n}\n";
    static const char b[] = HEAD
        ".extern .global .align 4 .u32 here;\n.extern .shared .align 16 .b8 sm[];\n.global .align 4 .u32 own = 2;\n.weak .func w()\n{\n ret;\n}\n"
        ".visible .func (.param .b32 r) f(.param .b32 x)\n{\n .reg .b64 %rd<3>;\n mov.u64 %rd1, here;\n mov.u64 %rd2, own;\n ret;\n}\n"
        ".visible .entry k2()\n{\n ret;\n}\n";
    cu_link s;
    void *image = NULL;
    size_t bytes = 0;
    MG_CHECK_EQ(CALL(cuLinkCreate_v2)(0u, (int *)NULL, (void **)NULL, &s), 0);
    MG_CHECK_EQ(CALL(cuLinkAddData_v2)(s, (int)CUJITIN_PTX, a, sizeof a, "a", 0u, (int *)NULL, (void **)NULL), 0);
    MG_CHECK_EQ(CALL(cuLinkAddData_v2)(s, (int)CUJITIN_PTX, b, sizeof b, "b", 0u, (int *)NULL, (void **)NULL), 0);
    MG_CHECK_EQ(CALL(cuLinkComplete)(s, &image, &bytes), 0);
    const char *text = image;
    MG_CHECK(text && bytes == strlen(text) + 1);
    if (text) {
        MG_CHECK(strstr(text, "own$1") != NULL);
        const char *w = strstr(text, ".weak .func");
        MG_CHECK(w && !strstr(w + 1, ".weak .func"));
        const char *h = strstr(text, "u32 here");
        MG_CHECK(h && !strstr(h + 1, "u32 here"));
        cu_module m = NULL;
        unsigned n = 0;
        MG_CHECK_EQ(CALL(cuModuleLoadData)(&m, image), 0);
        MG_CHECK_EQ(CALL(cuModuleGetFunctionCount)(&n, m), 0);
        MG_CHECK_EQ(n, 2);
        CALL(cuModuleUnload)(m);
    }
    MG_CHECK_EQ(CALL(cuLinkDestroy)(s), 0);
    MG_CHECK_EQ(CALL(cuLinkDestroy)(s), CUE_INVALID_HANDLE);
    /* twice the same strong name */
    MG_CHECK_EQ(CALL(cuLinkCreate_v2)(0u, (int *)NULL, (void **)NULL, &s), 0);
    MG_CHECK_EQ(CALL(cuLinkAddData_v2)(s, (int)CUJITIN_PTX, b, sizeof b, "b", 0u, (int *)NULL, (void **)NULL), 0);
    MG_CHECK_EQ(CALL(cuLinkAddData_v2)(s, (int)CUJITIN_PTX, b, sizeof b, "b2", 0u, (int *)NULL, (void **)NULL), 0);
    MG_CHECK_EQ(CALL(cuLinkComplete)(s, &image, &bytes), CUE_INVALID_PTX);
    MG_CHECK_EQ(CALL(cuLinkAddData_v2)(s, (int)CUJITIN_PTX, "garbage", (size_t)7, "c", 0u, (int *)NULL, (void **)NULL),
                CUE_INVALID_PTX);
    CALL(cuLinkDestroy)(s);
}

struct hammer {
    cu_ctx ctx;
    cu_module m;
    uint32_t result, want;
};

static void *hammer(void *arg)
{
    struct hammer *h = arg;
    CALL(cuCtxSetCurrent)(h->ctx);
    cu_ptr p = 0;
    CALL(cuMemAlloc_v2)(&p, (size_t)4);
    CALL(cuMemsetD32Async_ptsz)(p, 0u, (size_t)1, (cu_stream)NULL);
    cu_function add = func(h->m, "add"), mul = func(h->m, "mul");
    for (uint32_t i = 0; i < 50; i++) {
        uint32_t one = 1;
        void *params[] = {&p, &one, &i};
        CALL(cuLaunchKernel_ptsz)
        (i % 2 ? add : mul, 1u, 1u, 1u, 1u, 1u, 1u, 0u, (cu_stream)NULL, params, (void **)NULL);
        h->want = i % 2 ? h->want + i : h->want * i;
        if (i % 10 == 0) {
            cu_ptr q = 0;
            cu_stream s = NULL;
            cu_event e = NULL;
            CALL(cuMemAllocAsync_ptsz)(&q, (size_t)256, (cu_stream)NULL);
            CALL(cuMemFreeAsync_ptsz)(q, (cu_stream)NULL);
            CALL(cuStreamCreate)(&s, 0u);
            CALL(cuEventCreate)(&e, 2u);
            CALL(cuEventRecord_ptsz)(e, (cu_stream)NULL);
            CALL(cuStreamWaitEvent)(s, e, 0u);
            CALL(cuEventDestroy_v2)(e);
            CALL(cuStreamDestroy_v2)(s);
        }
    }
    CALL(cuStreamSynchronize_ptsz)((cu_stream)NULL);
    CALL(cuMemcpyDtoH_v2_ptds)(&h->result, p, (size_t)4);
    CALL(cuMemFree_v2)(p);
    return NULL;
}

MG_TEST(driver_threads_have_streams_of_their_own)
{
    start_driver();
    enum { N = 6 };
    struct hammer h[N];
    pthread_t id[N];
    cu_module m = load_fake();
    for (int i = 0; i < N; i++) {
        h[i] = (struct hammer){current(), m, 0, 0};
        MG_CHECK_EQ(pthread_create(&id[i], NULL, hammer, &h[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(id[i], NULL);
        MG_CHECK_EQ(h[i].result, h[i].want);
    }
    CALL(cuModuleUnload)(m);
}
