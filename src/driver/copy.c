/* Copies: every form comes down to one op of slices, rows and bytes between two addresses.
 *
 * Pageable host memory follows the rules of the real driver: a small source is read before an
 * asynchronous call returns, a large one or a pageable destination makes the call synchronous.
 * Only pinned memory is copied behind the caller's back.
 */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

enum { STAGED_MAX = 64 << 10, SOON_MAX = 1 << 20 };

static bool host_side(uint64_t p)
{
    return mg_ptr_pageable(p);
}

/* How a copy between these addresses is queued; may replace a pageable source by a snapshot. */
static cu_result queue(struct CUstream_st *s, struct mg_work *op, bool sync)
{
    struct mg_copy_op *c = &op->u.copy;
    size_t bytes = c->width * c->height * c->depth;
    if (!bytes) return CUE_SUCCESS;
    bool from_host = host_side((uintptr_t)c->src), to_host = host_side((uintptr_t)c->dst);
    if (s->capture && !sync) return mg_stream_do(s, op, MG_ASYNC);
    enum mg_how how = bytes <= SOON_MAX ? MG_SOON : MG_ASYNC;
    if (sync && !(mg_ptr_is_device_only((uintptr_t)c->src) && mg_ptr_is_device_only((uintptr_t)c->dst))) how = MG_SYNC;
    if (!sync && to_host) how = MG_SYNC;
    if (!sync && from_host && !to_host) {
        if (bytes <= STAGED_MAX && (c->staged = malloc(bytes))) {
            struct mg_copy_op snap = *c;
            snap.dst = c->staged;
            snap.dst_pitch = c->width;
            snap.dst_slice = c->width * c->height;
            mg_copy_run(&snap);
            c->src = c->staged;
            c->src_pitch = snap.dst_pitch;
            c->src_slice = snap.dst_slice;
        } else {
            how = MG_SYNC;
        }
    }
    return mg_stream_do(s, op, how);
}

/* ---- one dimension --------------------------------------------------------------------------------- */

enum { SRC_DEVICE = 1, DST_DEVICE = 2, SYNC = 4, SRC_ARRAY = 8, DST_ARRAY = 16, WAIT = 32 };

/* A pointer of either kind: inside an allocation it must stay there. */
static bool any_ok(uint64_t p, size_t n)
{
    return p && (host_side(p) || mg_ptr_on_device(p, n));
}

static cu_result copy1(uint64_t dst, uint64_t src, size_t n, unsigned how, cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) {
        mg_print_flush();
        return r;
    }
    if (!n) return CUE_SUCCESS;
    CHECK(how & DST_DEVICE ? mg_ptr_on_device(dst, n) : any_ok(dst, n));
    CHECK(how & SRC_DEVICE ? mg_ptr_on_device(src, n) : any_ok(src, n));
    struct mg_work op = {.kind = MG_OPK_COPY};
    op.u.copy = (struct mg_copy_op){
        .dst = (uint8_t *)(uintptr_t)dst,
        .src = (const uint8_t *)(uintptr_t)src,
        .width = n,
        .height = 1,
        .depth = 1,
        .dst_pitch = n,
        .src_pitch = n,
        .dst_slice = n,
        .src_slice = n,
    };
    struct cu_memcpy3d *raw = &op.u.copy.raw;
    op.u.copy.from_array = how & SRC_ARRAY;
    op.u.copy.to_array = how & DST_ARRAY;
    raw->src_type = how & SRC_DEVICE || !host_side(src) ? CUMEM_DEVICE : CUMEM_HOST;
    raw->dst_type = how & DST_DEVICE || !host_side(dst) ? CUMEM_DEVICE : CUMEM_HOST;
    raw->src_host = raw->src_type == CUMEM_HOST ? (const void *)(uintptr_t)src : NULL;
    raw->dst_host = raw->dst_type == CUMEM_HOST ? (void *)(uintptr_t)dst : NULL;
    raw->src_device = raw->src_type == CUMEM_DEVICE ? src : 0;
    raw->dst_device = raw->dst_type == CUMEM_DEVICE ? dst : 0;
    raw->width = raw->src_pitch = raw->dst_pitch = n;
    raw->height = raw->depth = raw->src_height = raw->dst_height = 1;
    if (how & WAIT) return mg_stream_do(s, &op, MG_SYNC);
    return queue(s, &op, how & SYNC);
}

MG_BOTH(cuMemcpy, ptds, (cu_ptr d, cu_ptr s, size_t n), copy1(d, s, n, SYNC, NULL, PT))
MG_BOTH(cuMemcpyAsync, ptsz, (cu_ptr d, cu_ptr s, size_t n, cu_stream h), copy1(d, s, n, 0, h, PT))
MG_BOTH(cuMemcpyHtoD_v2, ptds, (cu_ptr d, const void *s, size_t n),
        copy1(d, (uintptr_t)s, n, DST_DEVICE | SYNC, NULL, PT))
MG_BOTH(cuMemcpyDtoH_v2, ptds, (void *d, cu_ptr s, size_t n), copy1((uintptr_t)d, s, n, SRC_DEVICE | SYNC, NULL, PT))
MG_BOTH(cuMemcpyDtoD_v2, ptds, (cu_ptr d, cu_ptr s, size_t n), copy1(d, s, n, SRC_DEVICE | DST_DEVICE | SYNC, NULL, PT))
MG_BOTH(cuMemcpyHtoDAsync_v2, ptsz, (cu_ptr d, const void *s, size_t n, cu_stream h),
        copy1(d, (uintptr_t)s, n, DST_DEVICE, h, PT))
MG_BOTH(cuMemcpyDtoHAsync_v2, ptsz, (void *d, cu_ptr s, size_t n, cu_stream h),
        copy1((uintptr_t)d, s, n, SRC_DEVICE, h, PT))
MG_BOTH(cuMemcpyDtoDAsync_v2, ptsz, (cu_ptr d, cu_ptr s, size_t n, cu_stream h),
        copy1(d, s, n, SRC_DEVICE | DST_DEVICE, h, PT))

/* ---- arrays by byte offset ---------------------------------------------------------------------- */

static cu_result array_row(cu_array a, size_t offset, size_t n, uint64_t *p)
{
    if (!mg_obj_is(a, MG_OBJ_ARRAY)) return CUE_INVALID_HANDLE;
    CHECK(offset <= a->bytes && n <= a->bytes - offset);
    *p = (uintptr_t)a->data + offset;
    return CUE_SUCCESS;
}

static cu_result copy_array(cu_array da, uint64_t d, size_t doff, cu_array sa, uint64_t s, size_t soff, size_t n,
                            unsigned how, cu_stream h, int pt)
{
    cu_result r = CUE_SUCCESS;
    if (da) r = array_row(da, doff, n, &d);
    if (!r && sa) r = array_row(sa, soff, n, &s);
    return r ? r : copy1(d, s, n, how | (da ? DST_ARRAY : 0) | (sa ? SRC_ARRAY : 0), h, pt);
}
MG_BOTH(cuMemcpyDtoA_v2, ptds, (cu_array d, size_t off, cu_ptr s, size_t n),
        copy_array(d, 0, off, NULL, s, 0, n, SRC_DEVICE | SYNC, NULL, PT))
MG_BOTH(cuMemcpyAtoD_v2, ptds, (cu_ptr d, cu_array s, size_t off, size_t n),
        copy_array(NULL, d, 0, s, 0, off, n, DST_DEVICE | SYNC, NULL, PT))
MG_BOTH(cuMemcpyHtoA_v2, ptds, (cu_array d, size_t off, const void *s, size_t n),
        copy_array(d, 0, off, NULL, (uintptr_t)s, 0, n, SYNC, NULL, PT))
MG_BOTH(cuMemcpyAtoH_v2, ptds, (void *d, cu_array s, size_t off, size_t n),
        copy_array(NULL, (uintptr_t)d, 0, s, 0, off, n, SYNC, NULL, PT))
MG_BOTH(cuMemcpyAtoA_v2, ptds, (cu_array d, size_t doff, cu_array s, size_t soff, size_t n),
        copy_array(d, 0, doff, s, 0, soff, n, SYNC, NULL, PT))
MG_BOTH(cuMemcpyHtoAAsync_v2, ptsz, (cu_array d, size_t off, const void *s, size_t n, cu_stream h),
        copy_array(d, 0, off, NULL, (uintptr_t)s, 0, n, 0, h, PT))
MG_BOTH(cuMemcpyAtoHAsync_v2, ptsz, (void *d, cu_array s, size_t off, size_t n, cu_stream h),
        copy_array(NULL, (uintptr_t)d, 0, s, 0, off, n, 0, h, PT))

/* ---- between contexts ------------------------------------------------------------------------------ */

/* A synchronous peer copy comes after all that either context was given before it. */
static cu_result peers(cu_ctx d, cu_ctx s, bool sync)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    if ((d && !mg_obj_is(d, MG_OBJ_CTX)) || (s && !mg_obj_is(s, MG_OBJ_CTX))) return CUE_INVALID_CONTEXT;
    cu_result r = sync && d ? mg_ctx_sync(d) : CUE_SUCCESS;
    return !r && sync && s && s != d ? mg_ctx_sync(s) : r;
}

static cu_result copy_peer(cu_ptr d, cu_ctx dc, cu_ptr s, cu_ctx sc, size_t n, unsigned how, cu_stream h, int pt)
{
    cu_result r = peers(dc, sc, how & SYNC);
    return r ? r : copy1(d, s, n, how, h, pt);
}
MG_BOTH(cuMemcpyPeer, ptds, (cu_ptr d, cu_ctx dc, cu_ptr s, cu_ctx sc, size_t n),
        copy_peer(d, dc, s, sc, n, SYNC | WAIT, NULL, PT))
MG_BOTH(cuMemcpyPeerAsync, ptsz, (cu_ptr d, cu_ctx dc, cu_ptr s, cu_ctx sc, size_t n, cu_stream h),
        copy_peer(d, dc, s, sc, n, 0, h, PT))

/* ---- two and three dimensions --------------------------------------------------------------------- */

struct side {
    uint8_t *p;
    size_t pitch, slice;
};

/* From the base to behind the box: 0 where that is more than memory can be. What does not count (the rows of a slice
 * where there is one slice) may be anything. */
static size_t end_of(size_t x, size_t y, size_t z, size_t rows, const struct cu_memcpy3d *c, struct side *s)
{
    size_t last_x, last_y, last_z, up = 0, deep = 0, end;
    bool over = __builtin_add_overflow(x, c->width, &last_x) || __builtin_add_overflow(y, c->height - 1, &last_y) ||
                __builtin_add_overflow(z, c->depth - 1, &last_z);
    if (!over && last_y) over = __builtin_mul_overflow(last_y, s->pitch, &up);
    if (!over && last_z)
        over = __builtin_mul_overflow(s->pitch, rows, &s->slice) || __builtin_mul_overflow(last_z, s->slice, &deep);
    over = over || __builtin_add_overflow(up, last_x, &end) || __builtin_add_overflow(end, deep, &end);
    return over || end > (size_t)1 << 47 ? 0 : end;
}

static cu_result one_side(int type, const void *host, cu_ptr dev, cu_array array, size_t x, size_t y, size_t z,
                          size_t pitch, size_t rows, const struct cu_memcpy3d *c, struct side *out)
{
    uint64_t base;
    if (type == CUMEM_ARRAY) {
        if (!mg_obj_is(array, MG_OBJ_ARRAY)) return CUE_INVALID_HANDLE;
        size_t h = MG_MAX(array->desc.height, 1), d = MG_MAX(array->desc.depth, 1);
        CHECK(x <= array->pitch && c->width <= array->pitch - x && y <= h && c->height <= h - y && z <= d &&
              c->depth <= d - z);
        pitch = array->pitch;
        rows = h;
        base = (uintptr_t)array->data;
    } else {
        CHECK(type == CUMEM_HOST || type == CUMEM_DEVICE || type == CUMEM_UNIFIED);
        base = type == CUMEM_HOST ? (uintptr_t)host : dev;
        CHECK(base);
        if (!pitch) pitch = x + c->width;
        if (!rows) rows = y + c->height;
        if (c->height > 1 || c->depth > 1) CHECK(pitch >= c->width && pitch - c->width >= x);
        if (c->depth > 1) CHECK(rows >= c->height && rows - c->height >= y);
    }
    *out = (struct side){.pitch = pitch};
    size_t end = end_of(x, y, z, rows, c, out), begin = z * out->slice + y * pitch + x;
    CHECK(end && base <= UINT64_MAX - end);
    out->p = (uint8_t *)(uintptr_t)base + begin;
    if (type == CUMEM_DEVICE || (type != CUMEM_ARRAY && !host_side((uintptr_t)out->p)))
        CHECK(mg_ptr_on_device((uintptr_t)out->p, end - begin));
    return CUE_SUCCESS;
}

cu_result mg_copy_make(struct mg_work *op, const struct cu_memcpy3d *c)
{
    struct side d, s;
    *op = (struct mg_work){.kind = MG_OPK_COPY};
    op->u.copy.raw = *c;
    if (!c->width || !c->height || !c->depth) return CUE_SUCCESS;
    CHECK(!c->src_lod && !c->dst_lod);
    cu_result r = one_side(c->src_type, c->src_host, c->src_device, c->src_array, c->src_x, c->src_y, c->src_z,
                           c->src_pitch, c->src_height, c, &s);
    if (!r)
        r = one_side(c->dst_type, c->dst_host, c->dst_device, c->dst_array, c->dst_x, c->dst_y, c->dst_z, c->dst_pitch,
                     c->dst_height, c, &d);
    if (r) return r;
    struct mg_copy_op *o = &op->u.copy;
    o->dst = d.p, o->dst_pitch = d.pitch, o->dst_slice = d.slice;
    o->src = s.p, o->src_pitch = s.pitch, o->src_slice = s.slice;
    o->width = c->width, o->height = c->height, o->depth = c->depth;
    return CUE_SUCCESS;
}

static cu_result copy3(const struct cu_memcpy3d *c, bool sync, cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) {
        mg_print_flush();
        return r;
    }
    CHECK(c);
    struct mg_work op;
    r = mg_copy_make(&op, c);
    return r ? r : queue(s, &op, sync);
}

static cu_result copy2(const struct cu_memcpy2d *c, bool sync, cu_stream h, int pt)
{
    CHECK(c);
    struct cu_memcpy3d o = mg_cu_copy_of_2d(c);
    return copy3(&o, sync, h, pt);
}

MG_BOTH(cuMemcpy2D_v2, ptds, (const struct cu_memcpy2d *c), copy2(c, true, NULL, PT))
MG_BOTH(cuMemcpy2DUnaligned_v2, ptds, (const struct cu_memcpy2d *c), copy2(c, true, NULL, PT))
MG_BOTH(cuMemcpy2DAsync_v2, ptsz, (const struct cu_memcpy2d *c, cu_stream h), copy2(c, false, h, PT))
MG_BOTH(cuMemcpy3D_v2, ptds, (const struct cu_memcpy3d *c), copy3(c, true, NULL, PT))
MG_BOTH(cuMemcpy3DAsync_v2, ptsz, (const struct cu_memcpy3d *c, cu_stream h), copy3(c, false, h, PT))
static cu_result copy3_peer(const struct cu_memcpy3d *c, bool sync, cu_stream h, int pt)
{
    CHECK(c);
    cu_result r = peers(c->dst_ctx, c->src_ctx, sync);
    return r ? r : copy3(c, sync, h, pt);
}
MG_BOTH(cuMemcpy3DPeer, ptds, (const struct cu_memcpy3d *c), copy3_peer(c, true, NULL, PT))
MG_BOTH(cuMemcpy3DPeerAsync, ptsz, (const struct cu_memcpy3d *c, cu_stream h), copy3_peer(c, false, h, PT))

/* ---- batches -------------------------------------------------------------------------------------- */

static cu_result batch(cu_ptr *d, cu_ptr *s, size_t *n, size_t count, cu_stream h, int pt)
{
    CHECK(d && s && n && count && h && h != CU_LEGACY_STREAM);
    for (size_t i = 0; i < count; i++) {
        cu_result r = copy1(d[i], s[i], n[i], 0, h, pt);
        if (r) return r;
    }
    return CUE_SUCCESS;
}
MG_BOTH(cuMemcpyBatchAsync_v2, ptsz,
        (cu_ptr * d, cu_ptr *s, size_t *n, size_t count, struct cu_copy_attributes *attrs, size_t *ixs, size_t n_attrs,
         cu_stream h),
        ((void)attrs, (void)ixs, (void)n_attrs, batch(d, s, n, count, h, PT)))
MG_BOTH(cuMemcpyBatchAsync, ptsz,
        (cu_ptr * d, cu_ptr *s, size_t *n, size_t count, struct cu_copy_attributes *attrs, size_t *ixs, size_t n_attrs,
         size_t *fail, cu_stream h),
        ((void)attrs, (void)ixs, (void)n_attrs, (void)fail, batch(d, s, n, count, h, PT)))

const struct mg_entry mg_entries_copy[] = {
    MG_ENTRY2(cuMemcpy, ptds),
    MG_ENTRY2(cuMemcpyAsync, ptsz),
    MG_ENTRY2(cuMemcpyPeer, ptds),
    MG_ENTRY2(cuMemcpyPeerAsync, ptsz),
    MG_ENTRY2(cuMemcpyHtoD_v2, ptds),
    MG_ENTRY2(cuMemcpyDtoH_v2, ptds),
    MG_ENTRY2(cuMemcpyDtoD_v2, ptds),
    MG_ENTRY2(cuMemcpyHtoDAsync_v2, ptsz),
    MG_ENTRY2(cuMemcpyDtoHAsync_v2, ptsz),
    MG_ENTRY2(cuMemcpyDtoDAsync_v2, ptsz),
    MG_ENTRY2(cuMemcpyDtoA_v2, ptds),
    MG_ENTRY2(cuMemcpyAtoD_v2, ptds),
    MG_ENTRY2(cuMemcpyHtoA_v2, ptds),
    MG_ENTRY2(cuMemcpyAtoH_v2, ptds),
    MG_ENTRY2(cuMemcpyAtoA_v2, ptds),
    MG_ENTRY2(cuMemcpyHtoAAsync_v2, ptsz),
    MG_ENTRY2(cuMemcpyAtoHAsync_v2, ptsz),
    MG_ENTRY2(cuMemcpy2D_v2, ptds),
    MG_ENTRY2(cuMemcpy2DUnaligned_v2, ptds),
    MG_ENTRY2(cuMemcpy2DAsync_v2, ptsz),
    MG_ENTRY2(cuMemcpy3D_v2, ptds),
    MG_ENTRY2(cuMemcpy3DAsync_v2, ptsz),
    MG_ENTRY2(cuMemcpy3DPeer, ptds),
    MG_ENTRY2(cuMemcpy3DPeerAsync, ptsz),
    MG_ENTRY2(cuMemcpyBatchAsync, ptsz),
    MG_ENTRY2(cuMemcpyBatchAsync_v2, ptsz),
    {0},
};
