/* Copies and memsets. What the host brings is content, what it takes is a check; everything else is between addresses
 * and arrays that the capture knows. The source is read after the driver has taken the call: the program cannot have
 * changed it yet. Where work in streams may still fill it (host.c), it is read after that. */
#include "inject/capture/capture.h"

#include <stdlib.h>
#include <string.h>

#include "inject/session.h"
#include "inject/streams.h"

/* ---- one dimension --------------------------------------------------------------------------------------- */

void mg_cap_copy_linear(uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream, bool waited)
{
    enum mg_cap_place at = mg_cap_place_of(to), of = mg_cap_place_of(from);
    if (!bytes) return;
    if (at == MG_PLACE_HOST) {
        if (of != MG_PLACE_HOST && waited) mg_check_bytes(from, (const void *)(uintptr_t)to, bytes);
        if (!waited) mg_host_fills((const void *)(uintptr_t)to);
        return;
    }
    if (of == MG_PLACE_HOST) {
        if (!mg_host_reads((const void *)(uintptr_t)from, waited)) return;
        PUT_CONTENT(MG_CAP_write, (const void *)(uintptr_t)from, bytes, to, bytes);
        return;
    }
    if (of == MG_PLACE_SHARED || at == MG_PLACE_SHARED) mg_shared_before();
    PUT(MG_CAP_copy, to, from, bytes, stream);
}

struct linear {
    uint64_t to, from, bytes;
    cu_stream stream;
    bool per_thread, waits;
};

static bool begin(const struct linear *l)
{
    if (!mg_capture_looks() || mg_cap_is_capturing(l->stream, l->per_thread)) return false;
    if (!l->waits)
        mg_capture_lock(), mg_check_stream(STREAM_OF(l->stream, l->per_thread)),
            mg_inside--; /* calls in one stream are in the capture in the order in which the driver took them */
    return true;
}
static cu_result end(const struct linear *l, cu_result rc)
{
    if (l->waits)
        mg_capture_lock();
    else
        mg_inside++;
    if (rc == CUE_SUCCESS) mg_cap_copy_linear(l->to, l->from, l->bytes, mg_stream_number(l->stream), l->waits);
    mg_capture_unlock();
    return rc;
}
#define WAITS(name, pt, TO, FROM)                                                                                      \
    MG_CAPTURE(name, TO to, FROM from, size_t bytes)                                                                   \
    {                                                                                                                  \
        struct linear l = {(uintptr_t)to, (uintptr_t)from, bytes, NULL, pt, true};                                     \
        return begin(&l) ? end(&l, NEXT(name)(to, from, bytes)) : NEXT(name)(to, from, bytes);                         \
    }
#define QUEUES(name, pt, TO, FROM)                                                                                     \
    MG_CAPTURE(name, TO to, FROM from, size_t bytes, cu_stream s)                                                      \
    {                                                                                                                  \
        struct linear l = {(uintptr_t)to, (uintptr_t)from, bytes, s, pt, false};                                       \
        return begin(&l) ? end(&l, NEXT(name)(to, from, bytes, s)) : NEXT(name)(to, from, bytes, s);                   \
    }
WAITS(cuMemcpy, false, cu_ptr, cu_ptr)
WAITS(cuMemcpy_ptds, true, cu_ptr, cu_ptr)
WAITS(cuMemcpyHtoD_v2, false, cu_ptr, const void *)
WAITS(cuMemcpyHtoD_v2_ptds, true, cu_ptr, const void *)
WAITS(cuMemcpyDtoH_v2, false, void *, cu_ptr)
WAITS(cuMemcpyDtoH_v2_ptds, true, void *, cu_ptr)
WAITS(cuMemcpyDtoD_v2, false, cu_ptr, cu_ptr)
WAITS(cuMemcpyDtoD_v2_ptds, true, cu_ptr, cu_ptr)
QUEUES(cuMemcpyAsync, false, cu_ptr, cu_ptr)
QUEUES(cuMemcpyAsync_ptsz, true, cu_ptr, cu_ptr)
QUEUES(cuMemcpyHtoDAsync_v2, false, cu_ptr, const void *)
QUEUES(cuMemcpyHtoDAsync_v2_ptsz, true, cu_ptr, const void *)
QUEUES(cuMemcpyDtoHAsync_v2, false, void *, cu_ptr)
QUEUES(cuMemcpyDtoHAsync_v2_ptsz, true, void *, cu_ptr)
QUEUES(cuMemcpyDtoDAsync_v2, false, cu_ptr, cu_ptr)
QUEUES(cuMemcpyDtoDAsync_v2_ptsz, true, cu_ptr, cu_ptr)
#define PEER(name, pt)                                                                                                 \
    MG_CAPTURE(name, cu_ptr to, cu_ctx c1, cu_ptr from, cu_ctx c2, size_t bytes)                                       \
    {                                                                                                                  \
        struct linear l = {to, from, bytes, NULL, pt, true};                                                           \
        return begin(&l) ? end(&l, NEXT(name)(to, c1, from, c2, bytes)) : NEXT(name)(to, c1, from, c2, bytes);         \
    }
PEER(cuMemcpyPeer, false)
PEER(cuMemcpyPeer_ptds, true)
#define PEER_ASYNC(name, pt)                                                                                           \
    MG_CAPTURE(name, cu_ptr to, cu_ctx c1, cu_ptr from, cu_ctx c2, size_t bytes, cu_stream s)                          \
    {                                                                                                                  \
        struct linear l = {to, from, bytes, s, pt, false};                                                             \
        return begin(&l) ? end(&l, NEXT(name)(to, c1, from, c2, bytes, s)) : NEXT(name)(to, c1, from, c2, bytes, s);   \
    }
PEER_ASYNC(cuMemcpyPeerAsync, false)
PEER_ASYNC(cuMemcpyPeerAsync_ptsz, true)

/* Each of a batch is a copy of its own: their order is left to the driver, and they do not overlap. */
static cu_result end_batch(cu_result rc, const cu_ptr *to, const cu_ptr *from, const size_t *bytes, size_t n,
                           cu_stream s)
{
    mg_inside++;
    for (size_t k = 0; rc == CUE_SUCCESS && k < n; k++)
        mg_cap_copy_linear(to[k], from[k], bytes[k], mg_stream_number(s), false);
    if (rc != CUE_SUCCESS) mg_capture_miss("a batch of copies that failed is not captured", true);
    mg_capture_unlock();
    return rc;
}
#define BATCH(name, pt, MORE, more)                                                                                    \
    MG_CAPTURE(name, cu_ptr *to, cu_ptr *from, size_t *bytes, size_t n, struct cu_copy_attributes *attrs, size_t *ixs, \
               size_t n_attrs MORE, cu_stream s)                                                                       \
    {                                                                                                                  \
        struct linear l = {.stream = s, .per_thread = pt};                                                             \
        bool looks = begin(&l);                                                                                        \
        cu_result rc = NEXT(name)(to, from, bytes, n, attrs, ixs, n_attrs more, s);                                    \
        return looks ? end_batch(rc, to, from, bytes, n, s) : rc;                                                      \
    }
#define NO_MORE
#define FAILED_ONE , size_t *fail
#define FAIL       , fail
BATCH(cuMemcpyBatchAsync, false, FAILED_ONE, FAIL)
BATCH(cuMemcpyBatchAsync_ptsz, true, FAILED_ONE, FAIL)
BATCH(cuMemcpyBatchAsync_v2, false, NO_MORE, NO_MORE)
BATCH(cuMemcpyBatchAsync_v2_ptsz, true, NO_MORE, NO_MORE)

/* ---- memsets ---------------------------------------------------------------------------------------------------- */

void mg_cap_set(uint64_t at, uint64_t pitch, uint64_t width, uint64_t height, uint64_t element, uint64_t value,
                uint64_t stream)
{
    if (!width || !height) return;
    if (mg_cap_place_of(at) == MG_PLACE_HOST) {
        struct mg_cap_area *a = mg_cap_area_find(at);
        if (a) mg_cap_area_tell(a); /* pinned memory, written by the device */
    }
    if (mg_cap_place_of(at) == MG_PLACE_SHARED) mg_shared_before();
    PUT(MG_CAP_set, at, pitch, width, height, element, value, stream);
}

struct set {
    uint64_t at, pitch, width, height, element, value;
    cu_stream stream;
    bool per_thread;
};
static bool begin_set(const struct set *s)
{
    if (!mg_capture_looks() || mg_cap_is_capturing(s->stream, s->per_thread)) return false;
    mg_capture_lock();
    mg_check_stream(STREAM_OF(s->stream, s->per_thread));
    mg_inside--;
    return true;
}
static cu_result end_set(const struct set *s, cu_result rc)
{
    mg_inside++;
    if (rc == CUE_SUCCESS)
        mg_cap_set(s->at, s->pitch, s->width, s->height, s->element, s->value, mg_stream_number(s->stream));
    mg_capture_unlock();
    return rc;
}
#define SET(name, pt, T)                                                                                               \
    MG_CAPTURE(name, cu_ptr p, T v, size_t n)                                                                          \
    {                                                                                                                  \
        struct set s = {p, 0, n, 1, sizeof(T), v, NULL, pt};                                                           \
        return begin_set(&s) ? end_set(&s, NEXT(name)(p, v, n)) : NEXT(name)(p, v, n);                                 \
    }
#define SET_ASYNC(name, pt, T)                                                                                         \
    MG_CAPTURE(name, cu_ptr p, T v, size_t n, cu_stream st)                                                            \
    {                                                                                                                  \
        struct set s = {p, 0, n, 1, sizeof(T), v, st, pt};                                                             \
        return begin_set(&s) ? end_set(&s, NEXT(name)(p, v, n, st)) : NEXT(name)(p, v, n, st);                         \
    }
#define SET2(name, pt, T)                                                                                              \
    MG_CAPTURE(name, cu_ptr p, size_t pitch, T v, size_t w, size_t h)                                                  \
    {                                                                                                                  \
        struct set s = {p, pitch, w, h, sizeof(T), v, NULL, pt};                                                       \
        return begin_set(&s) ? end_set(&s, NEXT(name)(p, pitch, v, w, h)) : NEXT(name)(p, pitch, v, w, h);             \
    }
#define SET2_ASYNC(name, pt, T)                                                                                        \
    MG_CAPTURE(name, cu_ptr p, size_t pitch, T v, size_t w, size_t h, cu_stream st)                                    \
    {                                                                                                                  \
        struct set s = {p, pitch, w, h, sizeof(T), v, st, pt};                                                         \
        return begin_set(&s) ? end_set(&s, NEXT(name)(p, pitch, v, w, h, st)) : NEXT(name)(p, pitch, v, w, h, st);     \
    }
#define SETS(bits, T)                                                                                                  \
    SET(cuMemsetD##bits##_v2, false, T)                                                                                \
    SET(cuMemsetD##bits##_v2_ptds, true, T)                                                                            \
    SET_ASYNC(cuMemsetD##bits##Async, false, T)                                                                        \
    SET_ASYNC(cuMemsetD##bits##Async_ptsz, true, T)                                                                    \
    SET2(cuMemsetD2D##bits##_v2, false, T)                                                                             \
    SET2(cuMemsetD2D##bits##_v2_ptds, true, T)                                                                         \
    SET2_ASYNC(cuMemsetD2D##bits##Async, false, T)                                                                     \
    SET2_ASYNC(cuMemsetD2D##bits##Async_ptsz, true, T)
SETS(8, uint8_t)
SETS(16, uint16_t)
SETS(32, uint32_t)

/* ---- values that streams write: a memset of a word or two -------------------------------------------------------- */

static void put_value(uint64_t at, uint64_t value, bool wide, cu_stream s)
{
    uint64_t stream = mg_stream_number(s);
    mg_cap_set(at, 0, 1, 1, 4, (uint32_t)value, stream);
    if (wide) mg_cap_set(at + 4, 0, 1, 1, 4, value >> 32, stream);
}
static cu_result end_value(const struct set *s, cu_result rc, bool wide)
{
    mg_inside++;
    if (rc == CUE_SUCCESS) put_value(s->at, s->value, wide, s->stream);
    mg_capture_unlock();
    return rc;
}
#define VALUE(name, pt, T)                                                                                             \
    MG_CAPTURE(name, cu_stream st, cu_ptr p, T v, unsigned flags)                                                      \
    {                                                                                                                  \
        struct set s = {.at = p, .value = v, .stream = st, .per_thread = pt};                                          \
        return begin_set(&s) ? end_value(&s, NEXT(name)(st, p, v, flags), sizeof(T) == 8)                              \
                             : NEXT(name)(st, p, v, flags);                                                            \
    }
#define VALUES(bits, version)                                                                                          \
    VALUE(cuStreamWriteValue##bits##version, false, uint##bits##_t)                                                    \
    VALUE(cuStreamWriteValue##bits##version##_ptsz, true, uint##bits##_t)
VALUES(32, )
VALUES(32, _v2)
VALUES(64, )
VALUES(64, _v2)

static cu_result end_operations(cu_result rc, cu_stream s, unsigned n, const union cu_memop_params *ops)
{
    mg_inside++;
    for (unsigned k = 0; rc == CUE_SUCCESS && k < n; k++) {
        bool wide = ops[k].operation == CUMEMOP_WRITE64;
        if (wide || ops[k].operation == CUMEMOP_WRITE32)
            put_value(ops[k].value.address, wide ? ops[k].value.value.v64 : ops[k].value.value.v32, wide, s);
        mg_capture.host_works |= ops[k].operation == CUMEMOP_WAIT32 || ops[k].operation == CUMEMOP_WAIT64;
    }
    mg_capture_unlock();
    return rc;
}
#define OPERATIONS(name, pt)                                                                                           \
    MG_CAPTURE(name, cu_stream st, unsigned n, union cu_memop_params *ops, unsigned flags)                             \
    {                                                                                                                  \
        struct set s = {.stream = st, .per_thread = pt};                                                               \
        return begin_set(&s) ? end_operations(NEXT(name)(st, n, ops, flags), st, n, ops)                               \
                             : NEXT(name)(st, n, ops, flags);                                                          \
    }
OPERATIONS(cuStreamBatchMemOp, false)
OPERATIONS(cuStreamBatchMemOp_ptsz, true)
OPERATIONS(cuStreamBatchMemOp_v2, false)
OPERATIONS(cuStreamBatchMemOp_v2_ptsz, true)

/* ---- two and three dimensions ------------------------------------------------------------------------------------ */

struct side {
    enum mg_cap_side kind;
    uint64_t where;
};

/* Of a copy's side; an address of the host's may lie in memory that kernels have. */
static struct side side_of(int type, const void *host, cu_ptr device, cu_array array)
{
    uint64_t p = type == CUMEM_HOST ? (uintptr_t)host : device;
    if (type == CUMEM_ARRAY) return (struct side){MG_CAP_IN_ARRAY, mg_cap_array_of(array)};
    return (struct side){mg_cap_place_of(p) == MG_PLACE_HOST ? MG_CAP_FROM_HOST : MG_CAP_AT_ADDRESS, p};
}

/* The rows of the host's box, one behind the other. */
static char *pack_box(const struct cu_memcpy3d *c, const char *from)
{
    uint64_t pitch = c->src_pitch ? c->src_pitch : c->src_x + c->width,
             height = c->src_height ? c->src_height : c->src_y + c->height;
    char *box = malloc(c->width * c->height * c->depth + 1);
    for (uint64_t z = 0; box && z < c->depth; z++)
        for (uint64_t y = 0; y < c->height; y++)
            memcpy(box + (z * c->height + y) * c->width,
                   from + ((c->src_z + z) * height + c->src_y + y) * pitch + c->src_x, c->width);
    return box;
}

void mg_cap_copy_3d(const struct cu_memcpy3d *c, uint64_t stream, bool waited)
{
    struct side from = side_of(c->src_type, c->src_host, c->src_device, c->src_array),
                to = side_of(c->dst_type, c->dst_host, c->dst_device, c->dst_array);
    bool host = from.kind == MG_CAP_FROM_HOST;
    uint64_t bytes = host ? c->width * c->height * c->depth : 0;
    if (!c->width || !c->height || !c->depth) return;
    if (to.kind == MG_CAP_FROM_HOST) {
        if (!waited) mg_host_fills((const void *)(uintptr_t)to.where);
        return;
    }
    if (host && !mg_host_reads((const void *)(uintptr_t)from.where, waited)) return;
    if ((from.kind == MG_CAP_IN_ARRAY && !from.where) || (to.kind == MG_CAP_IN_ARRAY && !to.where)) {
        mg_capture_miss("an array that was not seen to be made is not captured", true);
        return;
    }
    uint64_t w[] = {from.kind,
                    host ? 0 : from.where,
                    host ? 0 : c->src_x,
                    host ? 0 : c->src_y,
                    host ? 0 : c->src_z,
                    0,
                    host ? c->width : c->src_pitch,
                    host ? c->height : c->src_height,
                    to.kind,
                    to.where,
                    c->dst_x,
                    c->dst_y,
                    c->dst_z,
                    0,
                    c->dst_pitch,
                    c->dst_height,
                    c->width,
                    c->height,
                    c->depth,
                    bytes,
                    stream,
                    0,
                    0};
    if (!host) {
        mg_shared_before();
        mg_capture_put_content(MG_CAP_copy3d, w, MG_COUNT_OF(w), NULL, 0);
        return;
    }
    char *box = pack_box(c, (const char *)(uintptr_t)from.where);
    if (box)
        mg_capture_put_content(MG_CAP_copy3d, w, MG_COUNT_OF(w), box, bytes);
    else
        mg_capture_miss("memory ran out while a copy was captured", true);
    free(box);
}

struct box {
    const struct cu_memcpy3d *c;
    cu_stream stream;
    bool per_thread, waits;
};
static bool begin_box(const struct box *b)
{
    if (!b->c || !mg_capture_looks() || mg_cap_is_capturing(b->stream, b->per_thread)) return false;
    if (!b->waits) mg_capture_lock(), mg_check_stream(STREAM_OF(b->stream, b->per_thread)), mg_inside--;
    return true;
}
static cu_result end_box(const struct box *b, cu_result rc)
{
    if (b->waits)
        mg_capture_lock();
    else
        mg_inside++;
    if (rc == CUE_SUCCESS) mg_cap_copy_3d(b->c, mg_stream_number(b->stream), b->waits);
    mg_capture_unlock();
    return rc;
}
#define BOX2(name, pt)                                                                                                 \
    MG_CAPTURE(name, const struct cu_memcpy2d *c)                                                                      \
    {                                                                                                                  \
        struct cu_memcpy3d whole = c ? mg_cu_copy_of_2d(c) : (struct cu_memcpy3d){0};                                  \
        struct box b = {c ? &whole : NULL, NULL, pt, true};                                                            \
        return begin_box(&b) ? end_box(&b, NEXT(name)(c)) : NEXT(name)(c);                                             \
    }
BOX2(cuMemcpy2D_v2, false)
BOX2(cuMemcpy2D_v2_ptds, true)
BOX2(cuMemcpy2DUnaligned_v2, false)
BOX2(cuMemcpy2DUnaligned_v2_ptds, true)
#define BOX2_ASYNC(name, pt)                                                                                           \
    MG_CAPTURE(name, const struct cu_memcpy2d *c, cu_stream s)                                                         \
    {                                                                                                                  \
        struct cu_memcpy3d whole = c ? mg_cu_copy_of_2d(c) : (struct cu_memcpy3d){0};                                  \
        struct box b = {c ? &whole : NULL, s, pt, false};                                                              \
        return begin_box(&b) ? end_box(&b, NEXT(name)(c, s)) : NEXT(name)(c, s);                                       \
    }
BOX2_ASYNC(cuMemcpy2DAsync_v2, false)
BOX2_ASYNC(cuMemcpy2DAsync_v2_ptsz, true)
#define BOX3(name, pt)                                                                                                 \
    MG_CAPTURE(name, const struct cu_memcpy3d *c)                                                                      \
    {                                                                                                                  \
        struct box b = {c, NULL, pt, true};                                                                            \
        return begin_box(&b) ? end_box(&b, NEXT(name)(c)) : NEXT(name)(c);                                             \
    }
BOX3(cuMemcpy3D_v2, false)
BOX3(cuMemcpy3D_v2_ptds, true)
BOX3(cuMemcpy3DPeer, false) /* its contexts lie where a plain copy has nothing */
BOX3(cuMemcpy3DPeer_ptds, true)
#define BOX3_ASYNC(name, pt)                                                                                           \
    MG_CAPTURE(name, const struct cu_memcpy3d *c, cu_stream s)                                                         \
    {                                                                                                                  \
        struct box b = {c, s, pt, false};                                                                              \
        return begin_box(&b) ? end_box(&b, NEXT(name)(c, s)) : NEXT(name)(c, s);                                       \
    }
BOX3_ASYNC(cuMemcpy3DAsync_v2, false)
BOX3_ASYNC(cuMemcpy3DAsync_v2_ptsz, true)
BOX3_ASYNC(cuMemcpy3DPeerAsync, false)
BOX3_ASYNC(cuMemcpy3DPeerAsync_ptsz, true)

/* ---- arrays of one dimension: offsets are in bytes --------------------------------------------------------------- */

static cu_result array_copy(cu_result rc, bool per_thread, struct cu_memcpy3d *c, size_t bytes)
{
    if (rc == CUE_SUCCESS && mg_capture_looks() && !mg_cap_is_capturing(NULL, per_thread)) {
        c->width = bytes;
        c->height = c->depth = 1;
        mg_capture_lock();
        mg_cap_copy_3d(c, 0, true);
        mg_capture_unlock();
    }
    return rc;
}
#define IN_ARRAY(side, a, off) .side##_type = CUMEM_ARRAY, .side##_array = a, .side##_x = off
#define ARRAY_COPIES(version, pt)                                                                                      \
    MG_CAPTURE(cuMemcpyHtoA_v2##version, cu_array a, size_t off, const void *from, size_t n)                           \
    {                                                                                                                  \
        struct cu_memcpy3d c = {IN_ARRAY(dst, a, off), .src_type = CUMEM_HOST, .src_host = from};                      \
        return array_copy(NEXT(cuMemcpyHtoA_v2##version)(a, off, from, n), pt, &c, n);                                 \
    }                                                                                                                  \
    MG_CAPTURE(cuMemcpyAtoH_v2##version, void *to, cu_array a, size_t off, size_t n)                                   \
    {                                                                                                                  \
        struct cu_memcpy3d c = {IN_ARRAY(src, a, off), .dst_type = CUMEM_HOST, .dst_host = to};                        \
        return array_copy(NEXT(cuMemcpyAtoH_v2##version)(to, a, off, n), pt, &c, n);                                   \
    }                                                                                                                  \
    MG_CAPTURE(cuMemcpyDtoA_v2##version, cu_array a, size_t off, cu_ptr from, size_t n)                                \
    {                                                                                                                  \
        struct cu_memcpy3d c = {IN_ARRAY(dst, a, off), .src_type = CUMEM_DEVICE, .src_device = from};                  \
        return array_copy(NEXT(cuMemcpyDtoA_v2##version)(a, off, from, n), pt, &c, n);                                 \
    }                                                                                                                  \
    MG_CAPTURE(cuMemcpyAtoD_v2##version, cu_ptr to, cu_array a, size_t off, size_t n)                                  \
    {                                                                                                                  \
        struct cu_memcpy3d c = {IN_ARRAY(src, a, off), .dst_type = CUMEM_DEVICE, .dst_device = to};                    \
        return array_copy(NEXT(cuMemcpyAtoD_v2##version)(to, a, off, n), pt, &c, n);                                   \
    }                                                                                                                  \
    MG_CAPTURE(cuMemcpyAtoA_v2##version, cu_array a, size_t off, cu_array b, size_t off_b, size_t n)                   \
    {                                                                                                                  \
        struct cu_memcpy3d c = {IN_ARRAY(dst, a, off), IN_ARRAY(src, b, off_b)};                                       \
        return array_copy(NEXT(cuMemcpyAtoA_v2##version)(a, off, b, off_b, n), pt, &c, n);                             \
    }
ARRAY_COPIES(, false)
ARRAY_COPIES(_ptds, true)
