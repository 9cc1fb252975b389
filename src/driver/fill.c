/* Fills (cuMemset*): rows of 1-, 2- or 4-byte elements. Asynchronous to the host like the real
 * ones, except that host memory is filled before the synchronous form returns. */
#include "driver/priv.h"

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

enum { SOON_MAX = 1 << 20 };

cu_result mg_fill_make(struct mg_work *op, uint64_t dst, size_t pitch, uint32_t value, uint32_t element, size_t width,
                       size_t height)
{
    CHECK(element == 1 || element == 2 || element == 4);
    *op = (struct mg_work){.kind = MG_OPK_FILL,
                           .u.fill = {(uint8_t *)(uintptr_t)dst, pitch, value, element, width, height}};
    if (!width || !height) return CUE_SUCCESS;
    CHECK(dst % element == 0 && (height == 1 || pitch >= width * element));
    CHECK(mg_ptr_on_device(dst, (height - 1) * pitch + width * element));
    return CUE_SUCCESS;
}

static cu_result fill(uint64_t dst, size_t pitch, uint32_t value, uint32_t element, size_t width, size_t height,
                      bool sync, cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    struct mg_work op;
    r = mg_fill_make(&op, dst, pitch, value, element, width, height);
    if (r || !width || !height) return r;
    bool wait = sync && !mg_ptr_is_device_only(dst);
    return mg_stream_do(s, &op, wait ? MG_SYNC : width * height * element <= SOON_MAX ? MG_SOON : MG_ASYNC);
}

MG_BOTH(cuMemsetD8_v2, ptds, (cu_ptr d, unsigned char v, size_t n), fill(d, n, v, 1, n, 1, true, NULL, PT))
MG_BOTH(cuMemsetD16_v2, ptds, (cu_ptr d, unsigned short v, size_t n), fill(d, n * 2, v, 2, n, 1, true, NULL, PT))
MG_BOTH(cuMemsetD32_v2, ptds, (cu_ptr d, unsigned v, size_t n), fill(d, n * 4, v, 4, n, 1, true, NULL, PT))
MG_BOTH(cuMemsetD2D8_v2, ptds, (cu_ptr d, size_t p, unsigned char v, size_t w, size_t h),
        fill(d, p, v, 1, w, h, true, NULL, PT))
MG_BOTH(cuMemsetD2D16_v2, ptds, (cu_ptr d, size_t p, unsigned short v, size_t w, size_t h),
        fill(d, p, v, 2, w, h, true, NULL, PT))
MG_BOTH(cuMemsetD2D32_v2, ptds, (cu_ptr d, size_t p, unsigned v, size_t w, size_t h),
        fill(d, p, v, 4, w, h, true, NULL, PT))
MG_BOTH(cuMemsetD8Async, ptsz, (cu_ptr d, unsigned char v, size_t n, cu_stream s), fill(d, n, v, 1, n, 1, false, s, PT))
MG_BOTH(cuMemsetD16Async, ptsz, (cu_ptr d, unsigned short v, size_t n, cu_stream s),
        fill(d, n * 2, v, 2, n, 1, false, s, PT))
MG_BOTH(cuMemsetD32Async, ptsz, (cu_ptr d, unsigned v, size_t n, cu_stream s), fill(d, n * 4, v, 4, n, 1, false, s, PT))
MG_BOTH(cuMemsetD2D8Async, ptsz, (cu_ptr d, size_t p, unsigned char v, size_t w, size_t h, cu_stream s),
        fill(d, p, v, 1, w, h, false, s, PT))
MG_BOTH(cuMemsetD2D16Async, ptsz, (cu_ptr d, size_t p, unsigned short v, size_t w, size_t h, cu_stream s),
        fill(d, p, v, 2, w, h, false, s, PT))
MG_BOTH(cuMemsetD2D32Async, ptsz, (cu_ptr d, size_t p, unsigned v, size_t w, size_t h, cu_stream s),
        fill(d, p, v, 4, w, h, false, s, PT))

const struct mg_entry mg_entries_fill[] = {
    MG_ENTRY2(cuMemsetD8_v2, ptds),
    MG_ENTRY2(cuMemsetD16_v2, ptds),
    MG_ENTRY2(cuMemsetD32_v2, ptds),
    MG_ENTRY2(cuMemsetD2D8_v2, ptds),
    MG_ENTRY2(cuMemsetD2D16_v2, ptds),
    MG_ENTRY2(cuMemsetD2D32_v2, ptds),
    MG_ENTRY2(cuMemsetD8Async, ptsz),
    MG_ENTRY2(cuMemsetD16Async, ptsz),
    MG_ENTRY2(cuMemsetD32Async, ptsz),
    MG_ENTRY2(cuMemsetD2D8Async, ptsz),
    MG_ENTRY2(cuMemsetD2D16Async, ptsz),
    MG_ENTRY2(cuMemsetD2D32Async, ptsz),
    {0},
};
