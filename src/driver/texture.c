/* Texture and surface objects and, for old programs, references: the host side. An object's handle
 * is an entry of the devices' table (device/texture.h) that says all a fetch needs. A reference is a
 * variable of its module that holds the handle of what is bound to it. */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>

#include "device/texture.h"
#include "ir/ir.h"

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

struct object {
    struct cu_resource_desc resource;
    struct cu_texture_desc texture;
    struct cu_view_desc view;
    bool has_view;
};
struct CUtexref_st {
    struct CUmod_st *module; /* NULL: made by cuTexRefCreate, bound to nothing */
    char *name;
    struct object what;
    bool bound;
    uint64_t handle; /* of the devices' table, 0: none */
    int format;
    unsigned channels;
};
struct CUsurfref_st {
    struct CUmod_st *module;
    char *name;
    cu_array array;
    uint64_t handle;
};

/* ---- what devices see --------------------------------------------------------------------------------- */

static uint8_t texel_kind(int format)
{
    switch (format) {
    case CUAD_UINT8:
        return MG_TEXEL_U8;
    case CUAD_SINT8:
        return MG_TEXEL_S8;
    case CUAD_UINT16:
        return MG_TEXEL_U16;
    case CUAD_SINT16:
        return MG_TEXEL_S16;
    case CUAD_UINT32:
        return MG_TEXEL_U32;
    case CUAD_SINT32:
        return MG_TEXEL_S32;
    case CUAD_HALF:
        return MG_TEXEL_F16;
    default:
        return MG_TEXEL_F32;
    }
}

/* Formats of resource views: 0x01 .. 0x18 are plain ones, kind after kind in ones, twos and fours;
 * the block-compressed ones behind them are not supported. */
static bool view_format(int view, uint8_t *kind, uint8_t *channels)
{
    static const uint8_t kinds[] = {MG_TEXEL_U8,  MG_TEXEL_S8,  MG_TEXEL_U16, MG_TEXEL_S16,
                                    MG_TEXEL_U32, MG_TEXEL_S32, MG_TEXEL_F16, MG_TEXEL_F32};
    if (view < 1 || view > 0x18) return false;
    *kind = kinds[(view - 1) / 3];
    *channels = (uint8_t)(1u << (view - 1) % 3);
    return true;
}

static void describe_array(struct mg_texture *t, const struct CUarray_st *a, uint32_t level)
{
    const struct cu_array3d_desc *d = &a->desc;
    t->layered = d->flags & CUARRAY_LAYERED;
    t->cube = d->flags & CUARRAY_CUBEMAP;
    t->dims = d->depth && !t->layered && !t->cube ? 3 : d->height ? 2 : 1;
    t->kind = texel_kind(d->format);
    t->channels = (uint8_t)d->channels;
    t->level[level] = (struct mg_tex_level){
        .at = a->data,
        .texels = a->texels,
        .width = (uint32_t)d->width,
        .height = (uint32_t)MG_MAX(d->height, 1),
        .depth = (uint32_t)MG_MAX(d->depth, 1),
        .row = a->pitch,
        .slice = a->pitch * MG_MAX(d->height, 1),
    };
    t->n_levels = level + 1;
}

static cu_result describe_view(struct mg_texture *t, const struct cu_view_desc *v, bool mipmap)
{
    uint8_t kind, channels;
    uint32_t bytes = mg_texel_kind_bytes(t->kind) * t->channels;
    if (v->format) {
        if (!view_format(v->format, &kind, &channels)) {
            mg_say("resource view format %#x is not supported", (unsigned)v->format);
            return CUE_NOT_SUPPORTED;
        }
        CHECK(mg_texel_kind_bytes(kind) * channels == bytes);
        t->kind = kind;
        t->channels = channels;
    }
    if (mipmap && (v->first_level || v->last_level)) {
        CHECK(v->first_level <= v->last_level && v->last_level < t->n_levels);
        t->n_levels = v->last_level - v->first_level + 1;
        memmove(t->level, t->level + v->first_level, t->n_levels * sizeof *t->level);
    }
    if ((t->layered || t->cube) && (v->first_layer || v->last_layer)) {
        CHECK(v->first_layer <= v->last_layer && v->last_layer < t->level[0].depth);
        for (uint32_t i = 0; i < t->n_levels; i++) {
            t->level[i].at += v->first_layer * t->level[i].slice;
            t->level[i].depth = v->last_layer - v->first_layer + 1;
        }
    }
    return CUE_SUCCESS;
}

static cu_result describe(struct mg_texture *t, const struct cu_resource_desc *r, const struct cu_texture_desc *d,
                          const struct cu_view_desc *v)
{
    *t = (struct mg_texture){.n_levels = 1};
    switch (r->type) {
    case CURES_ARRAY:
        describe_array(t, r->res.array.array, 0);
        break;
    case CURES_MIPMAP:
        for (uint32_t i = 0; i < r->res.mipmap.mipmap->n_levels && i < MG_TEX_MAX_LEVELS; i++)
            describe_array(t, r->res.mipmap.mipmap->levels[i], i);
        break;
    case CURES_LINEAR: {
        uint32_t bytes = mg_format_bytes(r->res.linear.format) * r->res.linear.channels;
        t->shape = MG_TEX_LINEAR;
        t->dims = 1;
        t->kind = texel_kind(r->res.linear.format);
        t->channels = (uint8_t)r->res.linear.channels;
        CHECK(bytes && r->res.linear.bytes >= bytes);
        t->level[0] = (struct mg_tex_level){.at = (uint8_t *)(uintptr_t)r->res.linear.ptr,
                                            .width = (uint32_t)(r->res.linear.bytes / bytes),
                                            .height = 1,
                                            .depth = 1};
        break;
    }
    default:
        t->shape = MG_TEX_PITCH;
        t->dims = 2;
        t->kind = texel_kind(r->res.pitch2d.format);
        t->channels = (uint8_t)r->res.pitch2d.channels;
        t->level[0] = (struct mg_tex_level){.at = (uint8_t *)(uintptr_t)r->res.pitch2d.ptr,
                                            .width = (uint32_t)r->res.pitch2d.width,
                                            .height = (uint32_t)r->res.pitch2d.height,
                                            .depth = 1,
                                            .row = r->res.pitch2d.pitch};
    }
    if (d) {
        for (int i = 0; i < 3; i++) t->address[i] = (uint8_t)d->address[i];
        t->linear = d->filter == CUFILTER_LINEAR;
        t->mip_linear = d->mipmap_filter == CUFILTER_LINEAR;
        t->normalised = d->flags & CUTEX_NORMALIZED;
        t->as_float = !(d->flags & CUTEX_READ_AS_INTEGER);
        t->srgb = d->flags & CUTEX_SRGB;
        t->seamless = d->flags & CUTEX_SEAMLESS_CUBEMAP;
        memcpy(t->border, d->border, sizeof t->border);
        t->bias = d->mipmap_bias;
        t->min_lod = d->min_clamp;
        t->max_lod = d->max_clamp;
    }
    return v ? describe_view(t, v, r->type == CURES_MIPMAP) : CUE_SUCCESS;
}

/* ---- objects ------------------------------------------------------------------------------------------ */

static bool are_channels(unsigned n)
{
    return n == 1 || n == 2 || n == 4;
}

static cu_result check_resource(const struct cu_resource_desc *d)
{
    CHECK(d);
    switch (d->type) {
    case CURES_ARRAY:
        return mg_obj_is(d->res.array.array, MG_OBJ_ARRAY) ? CUE_SUCCESS : CUE_INVALID_HANDLE;
    case CURES_MIPMAP:
        return mg_obj_is(d->res.mipmap.mipmap, MG_OBJ_MIPMAP) ? CUE_SUCCESS : CUE_INVALID_HANDLE;
    case CURES_LINEAR:
        CHECK(mg_format_bytes(d->res.linear.format) && are_channels(d->res.linear.channels) && d->res.linear.bytes &&
              mg_ptr_on_device(d->res.linear.ptr, 1)); /* may claim more than there is */
        return CUE_SUCCESS;
    case CURES_PITCH2D: {
        size_t row, rows;
        CHECK(are_channels(d->res.pitch2d.channels) && d->res.pitch2d.height);
        CHECK(!__builtin_mul_overflow(d->res.pitch2d.width,
                                      mg_format_bytes(d->res.pitch2d.format) * d->res.pitch2d.channels, &row) &&
              !__builtin_mul_overflow(d->res.pitch2d.height - 1, d->res.pitch2d.pitch, &rows) &&
              !__builtin_add_overflow(rows, row, &rows));
        CHECK(row && d->res.pitch2d.pitch >= row);
        CHECK(d->res.pitch2d.ptr % (unsigned)mg_drv.attrs[CUDEV_TEXTURE_ALIGNMENT] == 0 &&
              d->res.pitch2d.pitch % (unsigned)mg_drv.attrs[CUDEV_TEXTURE_PITCH_ALIGNMENT] == 0);
        CHECK(mg_ptr_on_device(d->res.pitch2d.ptr, rows));
        return CUE_SUCCESS;
    }
    default:
        return CUE_INVALID_VALUE;
    }
}

static cu_result new_object(uint64_t *out, enum mg_obj_kind kind, const struct cu_resource_desc *r,
                            const struct cu_texture_desc *t, const struct cu_view_desc *v)
{
    struct mg_texture seen;
    cu_result e = describe(&seen, r, t, v);
    if (e) return e;
    struct object *o = calloc(1, sizeof *o);
    if (!o) return CUE_OUT_OF_MEMORY;
    o->resource = *r;
    if (t) o->texture = *t;
    if (v) o->view = *v;
    o->has_view = v != NULL;
    seen.owner = o;
    seen.surface = kind == MG_OBJ_SURF;
    uint64_t handle = mg_texture_add(&seen);
    if (!handle) {
        free(o);
        return CUE_OUT_OF_MEMORY;
    }
    *out = handle;
    return CUE_SUCCESS;
}

static struct object *object_of(uint64_t handle, enum mg_obj_kind kind)
{
    struct mg_texture *t = mg_texture_object(handle);
    return t && t->owner && t->surface == (kind == MG_OBJ_SURF) ? t->owner : NULL;
}

/* Kernels that read through it have ended before it goes. */
static cu_result destroy(uint64_t handle, enum mg_obj_kind kind)
{
    struct CUctx_st *ctx = NULL;
    cu_result r = mg_enter(&ctx);
    if (r == CUE_NOT_INITIALIZED) return r;
    struct object *o = object_of(handle, kind);
    CHECK(o);
    if (!r) mg_ctx_sync(ctx);
    CHECK(mg_texture_remove(handle));
    free(o);
    return r;
}

static cu_result cuTexObjectCreate(cu_tex *out, const struct cu_resource_desc *d, const struct cu_texture_desc *t,
                                   const struct cu_view_desc *v)
{
    cu_result r = mg_enter(NULL);
    if (!r) r = check_resource(d);
    if (r) return r;
    CHECK(out && t && t->filter >= CUFILTER_POINT && t->filter <= CUFILTER_LINEAR);
    for (int i = 0; i < 3; i++) CHECK(t->address[i] >= CUADDR_WRAP && t->address[i] <= CUADDR_BORDER);
    return new_object(out, MG_OBJ_TEX, d, t, v);
}
static cu_result cuTexObjectDestroy(cu_tex t)
{
    return destroy(t, MG_OBJ_TEX);
}

static cu_result cuTexObjectGetResourceDesc(struct cu_resource_desc *out, cu_tex t)
{
    struct object *o = object_of(t, MG_OBJ_TEX);
    CHECK(out && o);
    *out = o->resource;
    return CUE_SUCCESS;
}
static cu_result cuTexObjectGetTextureDesc(struct cu_texture_desc *out, cu_tex t)
{
    struct object *o = object_of(t, MG_OBJ_TEX);
    CHECK(out && o);
    *out = o->texture;
    return CUE_SUCCESS;
}
static cu_result cuTexObjectGetResourceViewDesc(struct cu_view_desc *out, cu_tex t)
{
    struct object *o = object_of(t, MG_OBJ_TEX);
    CHECK(out && o && o->has_view);
    *out = o->view;
    return CUE_SUCCESS;
}

static cu_result cuSurfObjectCreate(cu_surf *out, const struct cu_resource_desc *d)
{
    cu_result r = mg_enter(NULL);
    if (!r) r = check_resource(d);
    if (r) return r;
    CHECK(out && d->type == CURES_ARRAY);
    return new_object(out, MG_OBJ_SURF, d, NULL, NULL);
}
static cu_result cuSurfObjectDestroy(cu_surf s)
{
    return destroy(s, MG_OBJ_SURF);
}
static cu_result cuSurfObjectGetResourceDesc(struct cu_resource_desc *out, cu_surf s)
{
    struct object *o = object_of(s, MG_OBJ_SURF);
    CHECK(out && o);
    *out = o->resource;
    return CUE_SUCCESS;
}

/* ---- references ---------------------------------------------------------------------------------------- */

static struct CUtexref_st *new_texref(struct CUmod_st *m, const char *name)
{
    struct CUtexref_st *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->module = m;
    t->name = name ? strdup(name) : NULL;
    t->format = CUAD_FLOAT;
    t->channels = 1;
    for (int i = 0; i < 3; i++) t->what.texture.address[i] = CUADDR_CLAMP;
    mg_obj_add(t, MG_OBJ_TEXREF);
    return t;
}

/* The handle of a reference's present binding goes into the module's variable; what runs still sees
 * the old one. */
static cu_result bind(struct CUmod_st *m, const char *name, uint64_t *handle, const struct mg_texture *seen)
{
    uint64_t at, bytes, made = seen ? mg_texture_add(seen) : 0;
    if (seen && !made) return CUE_OUT_OF_MEMORY;
    mg_ctx_sync(m->ctx);
    if (!mg_drv.ops->global(m->dmod, name, &at, &bytes) && bytes == sizeof made)
        memcpy((void *)(uintptr_t)at, &made, sizeof made);
    if (*handle) mg_texture_remove(*handle);
    *handle = made;
    return CUE_SUCCESS;
}

static cu_result rebind(struct CUtexref_st *t)
{
    struct mg_texture seen;
    if (!t->module || !t->bound) return CUE_SUCCESS;
    if (t->what.resource.type == CURES_LINEAR) {
        t->what.resource.res.linear.format = t->format;
        t->what.resource.res.linear.channels = t->channels;
    }
    cu_result r = describe(&seen, &t->what.resource, &t->what.texture, NULL);
    return r ? r : bind(t->module, t->name, &t->handle, &seen);
}

static void free_texref(struct CUtexref_st *t)
{
    if (t->handle) mg_texture_remove(t->handle);
    mg_obj_del(t, MG_OBJ_TEXREF);
    free(t->name);
    free(t);
}

void mg_module_refs_free(struct CUmod_st *m)
{
    for (uint32_t i = 0; i < m->texrefs.n; i++) free_texref(m->texrefs.at[i]);
    for (uint32_t i = 0; i < m->surfrefs.n; i++) {
        if (m->surfrefs.at[i]->handle) mg_texture_remove(m->surfrefs.at[i]->handle);
        mg_obj_del(m->surfrefs.at[i], MG_OBJ_SURFREF);
        free(m->surfrefs.at[i]->name);
        free(m->surfrefs.at[i]);
    }
    mg_vec_release(&m->texrefs);
    mg_vec_release(&m->surfrefs);
}

static bool declares(const struct CUmod_st *m, const char *name, enum mg_type a, enum mg_type b)
{
    mg_id v = mg_module_find_var(m->ir, name);
    return v && (m->ir->vars.at[v].type == a || m->ir->vars.at[v].type == b || m->ir->vars.at[v].space == MG_SPACE_tex);
}

static cu_result cuModuleGetTexRef(cu_texref *out, cu_module m, const char *name)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (!mg_obj_is(m, MG_OBJ_MODULE)) return CUE_INVALID_HANDLE;
    CHECK(out && name);
    for (uint32_t i = 0; i < m->texrefs.n; i++)
        if (!strcmp(m->texrefs.at[i]->name, name)) {
            *out = m->texrefs.at[i];
            return CUE_SUCCESS;
        }
    if (!declares(m, name, MG_TYPE_texref, MG_TYPE_texref)) return CUE_NOT_FOUND;
    struct CUtexref_st *t = new_texref(m, name);
    if (!t) return CUE_OUT_OF_MEMORY;
    *mg_vec_push(&m->texrefs) = t;
    *out = t;
    return CUE_SUCCESS;
}

static cu_result cuModuleGetSurfRef(cu_surfref *out, cu_module m, const char *name)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (!mg_obj_is(m, MG_OBJ_MODULE)) return CUE_INVALID_HANDLE;
    CHECK(out && name);
    for (uint32_t i = 0; i < m->surfrefs.n; i++)
        if (!strcmp(m->surfrefs.at[i]->name, name)) {
            *out = m->surfrefs.at[i];
            return CUE_SUCCESS;
        }
    if (!declares(m, name, MG_TYPE_surfref, MG_TYPE_texref)) return CUE_NOT_FOUND;
    struct CUsurfref_st *s = calloc(1, sizeof *s);
    if (!s) return CUE_OUT_OF_MEMORY;
    s->module = m;
    s->name = strdup(name);
    mg_obj_add(s, MG_OBJ_SURFREF);
    *mg_vec_push(&m->surfrefs) = s;
    *out = s;
    return CUE_SUCCESS;
}

#define CHECK_TEXREF(t)                                                                                                \
    do {                                                                                                               \
        cu_result r_ = mg_enter(NULL);                                                                                 \
        if (r_) return r_;                                                                                             \
        if (!mg_obj_is(t, MG_OBJ_TEXREF)) return CUE_INVALID_HANDLE;                                                   \
    } while (0)

static cu_result cuTexRefCreate(cu_texref *out)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    CHECK(out);
    *out = new_texref(NULL, NULL);
    return *out ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}
static cu_result cuTexRefDestroy(cu_texref t)
{
    CHECK_TEXREF(t);
    CHECK(!t->module);
    free_texref(t);
    return CUE_SUCCESS;
}
static cu_result cuTexRefSetArray(cu_texref t, cu_array a, unsigned flags)
{
    CHECK_TEXREF(t);
    CHECK(flags == 1);
    if (!mg_obj_is(a, MG_OBJ_ARRAY)) return CUE_INVALID_HANDLE;
    t->what.resource = (struct cu_resource_desc){.type = CURES_ARRAY, .res.array = {a}};
    t->format = a->desc.format;
    t->channels = a->desc.channels;
    t->bound = true;
    return rebind(t);
}
static cu_result cuTexRefSetMipmappedArray(cu_texref t, cu_mipmap m, unsigned flags)
{
    CHECK_TEXREF(t);
    CHECK(flags == 1);
    if (!mg_obj_is(m, MG_OBJ_MIPMAP)) return CUE_INVALID_HANDLE;
    t->what.resource = (struct cu_resource_desc){.type = CURES_MIPMAP, .res.mipmap = {m}};
    t->bound = true;
    return rebind(t);
}
static cu_result cuTexRefSetAddress_v2(size_t *offset, cu_texref t, cu_ptr p, size_t bytes)
{
    CHECK_TEXREF(t);
    CHECK(!p || mg_ptr_on_device(p, 1));
    size_t off = p % (unsigned)mg_drv.attrs[CUDEV_TEXTURE_ALIGNMENT];
    CHECK(!off || offset);
    t->what.resource =
        (struct cu_resource_desc){.type = CURES_LINEAR, .res.linear = {p - off, t->format, t->channels, bytes + off}};
    if (offset) *offset = off;
    t->bound = p != 0;
    if (!p) return t->module ? bind(t->module, t->name, &t->handle, NULL) : CUE_SUCCESS;
    return rebind(t);
}
static cu_result cuTexRefSetAddress2D_v3(cu_texref t, const struct cu_array_desc *d, cu_ptr p, size_t pitch)
{
    CHECK_TEXREF(t);
    CHECK(d && mg_format_bytes(d->format));
    struct cu_resource_desc r = {.type = CURES_PITCH2D,
                                 .res.pitch2d = {p, d->format, d->channels, d->width, d->height, pitch}};
    cu_result e = check_resource(&r);
    if (e) return e;
    t->what.resource = r;
    t->format = d->format;
    t->channels = d->channels;
    t->bound = true;
    return rebind(t);
}
static cu_result cuTexRefSetFormat(cu_texref t, int format, int channels)
{
    CHECK_TEXREF(t);
    CHECK(mg_format_bytes(format) && (channels == 1 || channels == 2 || channels == 4));
    t->format = format;
    t->channels = (unsigned)channels;
    return rebind(t);
}
static cu_result cuTexRefSetAddressMode(cu_texref t, int dim, int mode)
{
    CHECK_TEXREF(t);
    CHECK(dim >= 0 && dim < 3 && mode >= CUADDR_WRAP && mode <= CUADDR_BORDER);
    t->what.texture.address[dim] = mode;
    return rebind(t);
}
static cu_result cuTexRefSetFilterMode(cu_texref t, int mode)
{
    CHECK_TEXREF(t);
    CHECK(mode == CUFILTER_POINT || mode == CUFILTER_LINEAR);
    t->what.texture.filter = mode;
    return rebind(t);
}
static cu_result cuTexRefSetMipmapFilterMode(cu_texref t, int mode)
{
    CHECK_TEXREF(t);
    CHECK(mode == CUFILTER_POINT || mode == CUFILTER_LINEAR);
    t->what.texture.mipmap_filter = mode;
    return rebind(t);
}
static cu_result cuTexRefSetMipmapLevelBias(cu_texref t, float bias)
{
    CHECK_TEXREF(t);
    t->what.texture.mipmap_bias = bias;
    return rebind(t);
}
static cu_result cuTexRefSetMipmapLevelClamp(cu_texref t, float lo, float hi)
{
    CHECK_TEXREF(t);
    t->what.texture.min_clamp = lo;
    t->what.texture.max_clamp = hi;
    return rebind(t);
}
static cu_result cuTexRefSetMaxAnisotropy(cu_texref t, unsigned n)
{
    CHECK_TEXREF(t);
    t->what.texture.max_anisotropy = n;
    return CUE_SUCCESS;
}
static cu_result cuTexRefSetBorderColor(cu_texref t, float *color)
{
    CHECK_TEXREF(t);
    CHECK(color);
    memcpy(t->what.texture.border, color, sizeof t->what.texture.border);
    return rebind(t);
}
static cu_result cuTexRefSetFlags(cu_texref t, unsigned flags)
{
    CHECK_TEXREF(t);
    t->what.texture.flags = flags;
    return rebind(t);
}
static cu_result cuTexRefGetAddress_v2(cu_ptr *out, cu_texref t)
{
    CHECK_TEXREF(t);
    const struct cu_resource_desc *r = &t->what.resource;
    CHECK(out && (r->type == CURES_LINEAR || r->type == CURES_PITCH2D));
    *out = r->type == CURES_LINEAR ? r->res.linear.ptr : r->res.pitch2d.ptr;
    return CUE_SUCCESS;
}
static cu_result cuTexRefGetArray(cu_array *out, cu_texref t)
{
    CHECK_TEXREF(t);
    CHECK(out && t->what.resource.type == CURES_ARRAY);
    *out = t->what.resource.res.array.array;
    return CUE_SUCCESS;
}
static cu_result cuTexRefGetAddressMode(int *out, cu_texref t, int dim)
{
    CHECK_TEXREF(t);
    CHECK(out && dim >= 0 && dim < 3);
    *out = t->what.texture.address[dim];
    return CUE_SUCCESS;
}
static cu_result cuTexRefGetFilterMode(int *out, cu_texref t)
{
    CHECK_TEXREF(t);
    CHECK(out);
    *out = t->what.texture.filter;
    return CUE_SUCCESS;
}
static cu_result cuTexRefGetFormat(int *format, int *channels, cu_texref t)
{
    CHECK_TEXREF(t);
    if (format) *format = t->format;
    if (channels) *channels = (int)t->channels;
    return CUE_SUCCESS;
}
static cu_result cuTexRefGetFlags(unsigned *out, cu_texref t)
{
    CHECK_TEXREF(t);
    CHECK(out);
    *out = t->what.texture.flags;
    return CUE_SUCCESS;
}
static cu_result cuParamSetTexRef(cu_function f, int unit, cu_texref t)
{
    (void)f, (void)unit;
    CHECK_TEXREF(t);
    return CUE_SUCCESS; /* no effect since CUDA 3.2 */
}

static cu_result cuSurfRefSetArray(cu_surfref s, cu_array a, unsigned flags)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (!mg_obj_is(s, MG_OBJ_SURFREF) || !mg_obj_is(a, MG_OBJ_ARRAY)) return CUE_INVALID_HANDLE;
    CHECK(!flags);
    s->array = a;
    struct mg_texture seen;
    struct cu_resource_desc d = {.type = CURES_ARRAY, .res.array = {a}};
    r = describe(&seen, &d, NULL, NULL);
    seen.surface = true;
    return r ? r : bind(s->module, s->name, &s->handle, &seen);
}
static cu_result cuSurfRefGetArray(cu_array *out, cu_surfref s)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (!mg_obj_is(s, MG_OBJ_SURFREF)) return CUE_INVALID_HANDLE;
    CHECK(out && s->array);
    *out = s->array;
    return CUE_SUCCESS;
}

const struct mg_entry mg_entries_texture[] = {
    MG_ENTRY(cuTexObjectCreate),
    MG_ENTRY(cuTexObjectDestroy),
    MG_ENTRY(cuTexObjectGetResourceDesc),
    MG_ENTRY(cuTexObjectGetTextureDesc),
    MG_ENTRY(cuTexObjectGetResourceViewDesc),
    MG_ENTRY(cuSurfObjectCreate),
    MG_ENTRY(cuSurfObjectDestroy),
    MG_ENTRY(cuSurfObjectGetResourceDesc),
    MG_ENTRY(cuModuleGetTexRef),
    MG_ENTRY(cuModuleGetSurfRef),
    MG_ENTRY(cuTexRefCreate),
    MG_ENTRY(cuTexRefDestroy),
    MG_ENTRY(cuTexRefSetArray),
    MG_ENTRY(cuTexRefSetMipmappedArray),
    MG_ENTRY(cuTexRefSetAddress_v2),
    MG_ENTRY(cuTexRefSetAddress2D_v3),
    MG_ENTRY(cuTexRefSetFormat),
    MG_ENTRY(cuTexRefSetAddressMode),
    MG_ENTRY(cuTexRefSetFilterMode),
    MG_ENTRY(cuTexRefSetMipmapFilterMode),
    MG_ENTRY(cuTexRefSetMipmapLevelBias),
    MG_ENTRY(cuTexRefSetMipmapLevelClamp),
    MG_ENTRY(cuTexRefSetMaxAnisotropy),
    MG_ENTRY(cuTexRefSetBorderColor),
    MG_ENTRY(cuTexRefSetFlags),
    MG_ENTRY(cuTexRefGetAddress_v2),
    MG_ENTRY(cuTexRefGetArray),
    MG_ENTRY(cuTexRefGetAddressMode),
    MG_ENTRY(cuTexRefGetFilterMode),
    MG_ENTRY(cuTexRefGetFormat),
    MG_ENTRY(cuTexRefGetFlags),
    MG_ENTRY(cuParamSetTexRef),
    MG_ENTRY(cuSurfRefSetArray),
    MG_ENTRY(cuSurfRefGetArray),
    {0},
};
