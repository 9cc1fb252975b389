#include "replay/replay.h"

#include <string.h>

struct mg_array *mg_replay_array_of(struct mg_replay *r, uint64_t number)
{
    for (uint32_t k = r->arrays.n; k-- > 0;)
        if (r->arrays.at[k].number == number) return &r->arrays.at[k];
    return NULL;
}

static int unknown(struct mg_replay *r, uint64_t number)
{
    return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it names an array that it lacks: %llu", r->path,
                          (unsigned long long)number);
}

static int make_array(struct mg_replay *r, const uint64_t *w)
{
    struct mg_array a = {.number = w[0],
                         .context = r->context,
                         .levels = (unsigned)w[7],
                         .mipmap = w[7] != 0,
                         .desc = {w[1], w[2], w[3], (int)w[4], (unsigned)w[5], (unsigned)w[6]}};
    cu_result rc = a.mipmap ? mg_cu.cuMipmappedArrayCreate((cu_mipmap *)&a.handle, &a.desc, a.levels)
                            : mg_cu.cuArray3DCreate_v2((cu_array *)&a.handle, &a.desc);
    int status = mg_replay_call(r, rc, "making an array");
    if (!status) *mg_vec_push(&r->arrays) = a;
    return status;
}

static int free_array(struct mg_replay *r, uint64_t number)
{
    struct mg_array *a = mg_replay_array_of(r, number);
    if (!a || a->level) return unknown(r, number);
    int status = mg_replay_settle(r);
    if (!status)
        status =
            mg_replay_call(r, a->mipmap ? mg_cu.cuMipmappedArrayDestroy(a->handle) : mg_cu.cuArrayDestroy(a->handle),
                           "freeing an array");
    for (uint32_t k = r->arrays.n; k-- > 0;) /* and its levels */
        if (r->arrays.at[k].number == number || (r->arrays.at[k].level && r->arrays.at[k].mipmap_number == number))
            r->arrays.at[k] = r->arrays.at[--r->arrays.n];
    return status;
}

static int find_level(struct mg_replay *r, const uint64_t *w)
{
    struct mg_array *m = mg_replay_array_of(r, w[1]), a = {.number = w[0], .mipmap_number = w[1], .level = true};
    if (!m || !m->mipmap) return unknown(r, w[1]);
    int status = mg_replay_call(r, mg_cu.cuMipmappedArrayGetLevel((cu_array *)&a.handle, m->handle, (unsigned)w[2]),
                                "finding the level of an array");
    if (!status) *mg_vec_push(&r->arrays) = a;
    return status;
}

int mg_replay_array(struct mg_replay *r, const struct mg_cap_op *op)
{
    return op->kind == MG_CAP_array   ? make_array(r, op->words)
           : op->kind == MG_CAP_level ? find_level(r, op->words)
                                      : free_array(r, op->words[0]);
}

/* ---- textures and surfaces ----------------------------------------------------------------------------- */

/* What the driver gives as a handle depends on the handles in use. One that the capture has no object for any more
 * (launches taken out) is kept until the recorded one comes. */
static cu_result with_handle(uint64_t want, bool surface, const struct cu_resource_desc *d,
                             const struct cu_texture_desc *t, const struct cu_view_desc *v, uint64_t *handle)
{
    enum { MOST = 1024 };
    uint64_t other[MOST];
    uint32_t n = 0;
    cu_result rc;
    do {
        rc = surface ? mg_cu.cuSurfObjectCreate(handle, d) : mg_cu.cuTexObjectCreate(handle, d, t, v);
    } while (rc == CUE_SUCCESS && *handle != want && n + 1 < MOST && (other[n++] = *handle));
    while (n) surface ? mg_cu.cuSurfObjectDestroy(other[--n]) : mg_cu.cuTexObjectDestroy(other[--n]);
    return rc;
}

static int make_object(struct mg_replay *r, const struct mg_cap_op *op)
{
    const uint64_t *w = op->words;
    struct {
        struct cu_texture_desc texture;
        struct cu_view_desc view;
    } more = {0};
    struct cu_resource_desc d = {.type = (int)w[2]};
    struct mg_array *a = w[3] ? mg_replay_array_of(r, w[3]) : NULL;
    uint64_t handle = 0;
    if ((d.type == CURES_ARRAY || d.type == CURES_MIPMAP) && (!a || a->mipmap != (d.type == CURES_MIPMAP)))
        return unknown(r, w[3]);
    if (op->payload_bytes != sizeof more && op->payload_bytes != sizeof more.texture)
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: a texture is malformed", r->path);
    memcpy(&more, op->payload, op->payload_bytes);
    switch (d.type) {
    case CURES_ARRAY:
        d.res.array.array = a->handle;
        break;
    case CURES_MIPMAP:
        d.res.mipmap.mipmap = a->handle;
        break;
    case CURES_LINEAR:
        d.res.linear.ptr = mg_replay_here(r, w[4]), d.res.linear.format = (int)w[5],
        d.res.linear.channels = (unsigned)w[6], d.res.linear.bytes = w[7];
        break;
    default:
        d.res.pitch2d.ptr = mg_replay_here(r, w[4]), d.res.pitch2d.format = (int)w[5],
        d.res.pitch2d.channels = (unsigned)w[6];
        d.res.pitch2d.width = w[7], d.res.pitch2d.height = w[8], d.res.pitch2d.pitch = w[9];
    }
    cu_result rc =
        with_handle(w[0], w[1] != 0, &d, &more.texture, op->payload_bytes == sizeof more ? &more.view : NULL, &handle);
    int status = mg_replay_call(r, rc, w[1] ? "making a surface" : "making a texture");
    if (!status && handle != w[0]) /* kernels got it as a number */
        status = mg_replay_fail(r, MG_REPLAY_DEVICE, "a %s has the handle 0x%llx here and 0x%llx in the capture",
                                w[1] ? "surface" : "texture", (unsigned long long)handle, (unsigned long long)w[0]);
    struct mg_object o = {.serial = ++r->n_objects,
                          .handle = handle,
                          .context = r->context,
                          .surface = w[1] != 0,
                          .payload_bytes = op->payload_bytes};
    const struct mg_live *l = a ? NULL : mg_replay_live_at(r, w[4]);
    if (l) o.at = l->at, o.bytes = l->bytes;
    memcpy(o.op, w, sizeof o.op);
    memcpy(o.payload, op->payload, op->payload_bytes);
    if (!status) *mg_vec_push(&r->objects) = o;
    return status;
}

static int free_object(struct mg_replay *r, const uint64_t *w)
{
    uint32_t k = 0;
    while (k < r->objects.n && (r->objects.at[k].handle != w[0] || r->objects.at[k].surface != (w[1] != 0))) k++;
    if (k == r->objects.n) return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it frees a texture that it lacks", r->path);
    int status = mg_replay_settle(r);
    r->objects.at[k] = r->objects.at[--r->objects.n];
    return status ? status
                  : mg_replay_call(r, w[1] ? mg_cu.cuSurfObjectDestroy(w[0]) : mg_cu.cuTexObjectDestroy(w[0]),
                                   "freeing a texture");
}

int mg_replay_object(struct mg_replay *r, const struct mg_cap_op *op)
{
    return op->kind == MG_CAP_object ? make_object(r, op) : free_object(r, op->words);
}

/* ---- copies in two and three dimensions ------------------------------------------------------------------ */

static int set_side(struct mg_replay *r, const uint64_t *w, int *type, cu_ptr *device, cu_array *array)
{
    struct mg_array *a = w[MG_CAP_C_SIDE] == MG_CAP_IN_ARRAY ? mg_replay_array_of(r, w[MG_CAP_C_WHERE]) : NULL;
    if (w[MG_CAP_C_SIDE] == MG_CAP_IN_ARRAY && (!a || a->mipmap)) return unknown(r, w[MG_CAP_C_WHERE]);
    *type = a ? CUMEM_ARRAY : w[MG_CAP_C_SIDE] == MG_CAP_AT_ADDRESS ? CUMEM_DEVICE : CUMEM_HOST;
    *device = a ? 0 : mg_replay_here(r, w[MG_CAP_C_WHERE]);
    *array = a ? a->handle : NULL;
    return 0;
}

int mg_replay_copy3d(struct mg_replay *r, const struct mg_cap_op *op)
{
    const uint64_t *s = op->words, *t = s + MG_CAP_C_SIDE_WORDS, *e = s + MG_CAP_C_EXTENT;
    uint64_t bytes = s[MG_CAP_C_HOST_BYTES];
    const char *why = "";
    struct cu_memcpy3d c = {.src_x = s[MG_CAP_C_X],
                            .src_y = s[MG_CAP_C_Y],
                            .src_z = s[MG_CAP_C_Z],
                            .src_pitch = s[MG_CAP_C_PITCH],
                            .src_height = s[MG_CAP_C_HEIGHT],
                            .dst_x = t[MG_CAP_C_X],
                            .dst_y = t[MG_CAP_C_Y],
                            .dst_z = t[MG_CAP_C_Z],
                            .dst_pitch = t[MG_CAP_C_PITCH],
                            .dst_height = t[MG_CAP_C_HEIGHT],
                            .width = e[0],
                            .height = e[1],
                            .depth = e[2]};
    if (set_side(r, s, &c.src_type, &c.src_device, &c.src_array) ||
        set_side(r, t, &c.dst_type, &c.dst_device, &c.dst_array))
        return r->status;
    if (c.src_type == CUMEM_HOST) {
        char *room = mg_replay_room(r, bytes);
        if (!room || !mg_cap_content(r->reader, op, room, &why))
            return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: %s", r->path, why);
        c.src_host = room;
    }
    int status = mg_replay_settle(r);
    return status ? status : mg_replay_call(r, mg_cu.cuMemcpy3D_v2(&c), "a copy in three dimensions");
}
