/* Decoding of texture and surface instructions, and the operations that run them: lanes are grouped
 * by handle (one group, nearly always) and each group is one call of tex.h. */
#include "device/emu/decode.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "device/emu/tex.h"

enum what { WHAT_FETCH, WHAT_QUERY, WHAT_SURFACE };

struct emu_tex { /* emu_op.ext: register offsets, 0: none */
    union {
        struct mg_tex_inst fetch;
        struct mg_surf_inst surf;
        enum mg_tex_query query;
    } in;
    uint32_t handle, coord[3], layer, extra[6], offset[3], value[4], resident, level;
};

/* ---- running --------------------------------------------------------------------------------------- */

static const uint32_t *lanes(const char *regs, uint32_t at)
{
    return at ? (const uint32_t *)(regs + at) : NULL;
}

static struct mg_texture *object(struct emu_frame *f, const struct emu_op *op, uint32_t lane, uint64_t handle)
{
    struct mg_texture *t = mg_texture_find(handle);
    if (t && t->surface == (op->sub == WHAT_SURFACE)) return t;
    if (t && op->sub == WHAT_QUERY) return t;
    const char *kind = op->sub == WHAT_SURFACE ? "surface" : "texture";
    if (!t && mg_texture_object(handle))
        emu_fault(f, op, MG_FAULT_ADDRESS, (int)lane, handle, 0, "memory of %s object 0x%" PRIx64 " was freed", kind,
                  handle);
    emu_fault(f, op, MG_FAULT_ADDRESS, (int)lane, handle, 0,
              handle ? "no live %s object 0x%" PRIx64 : "%s object %" PRIu64 ": nothing was bound", kind, handle);
}

/* Texels of device memory that are a word each, for compiled code: where they begin, the object and how many there are.
 */
static void keep_texels(struct emu_frame *f, const struct emu_op *op, const struct mg_texture *t, uint64_t handle)
{
    if (t->shape != MG_TEX_LINEAR || t->srgb || t->channels != 1 || mg_texel_kind_bytes(t->kind) != 4) return;
    uint64_t n = MG_MIN(atomic_load_explicit(&t->reach, memory_order_relaxed) / 4, (uint64_t)t->level[0].width);
    f->wk->ranges[op->cache] =
        (struct emu_range){(uint64_t)t->level[0].at, EMU_TEXELS(handle, MG_MIN(n, (uint64_t)INT32_MAX))};
}

static void run_fetch(struct emu_frame *f, const struct emu_op *op, const struct mg_texture *t, char *regs,
                      uint32_t mask)
{
    const struct emu_tex *x = op->ext;
    struct mg_tex_lanes l;
    for (int k = 0; k < 3; k++) l.coord[k] = lanes(regs, x->coord[k]), l.offset[k] = lanes(regs, x->offset[k]);
    for (int k = 0; k < 6; k++) l.extra[k] = lanes(regs, x->extra[k]);
    for (int k = 0; k < 4; k++) l.out[k] = x->value[k] ? (uint32_t *)(regs + x->value[k]) : NULL;
    l.layer = lanes(regs, x->layer);
    int bad = mg_tex_fetch(&x->in.fetch, t, &l, mask);
    if (bad >= 0) {
        int32_t i = (int32_t)l.coord[0][bad];
        uint32_t bytes = mg_texel_kind_bytes(t->kind) * t->channels;
        uint64_t at = (uint64_t)t->level[0].at + (uint64_t)i * bytes;
        emu_fault(f, op, MG_FAULT_ADDRESS, bad, at, bytes,
                  "texel %d, at 0x%" PRIx64 ", is behind the end of the allocation that the texture object names", i,
                  at);
    }
    if (x->resident) *(uint32_t *)(regs + x->resident) |= mask;
}

static void run_query(const struct emu_op *op, const struct mg_texture *t, char *regs, uint32_t mask)
{
    const struct emu_tex *x = op->ext;
    const uint32_t *level = lanes(regs, x->level);
    EMU_FOR_LANES(i, mask)((uint32_t *)(regs + x->value[0]))[i] = mg_tex_query(t, x->in.query, level ? level[i] : 0);
}

static void run_surface(struct emu_frame *f, const struct emu_op *op, const struct mg_texture *t, char *regs,
                        uint32_t mask)
{
    const struct emu_tex *x = op->ext;
    struct mg_surf_lanes l;
    bool misaligned = false;
    for (int k = 0; k < 3; k++) l.coord[k] = lanes(regs, x->coord[k]);
    for (int k = 0; k < 4; k++) l.value[k] = x->value[k] ? regs + x->value[k] : NULL;
    l.layer = lanes(regs, x->layer);
    int bad = mg_surf_access(&x->in.surf, t, &l, mask, &misaligned);
    if (bad < 0) return;
    int32_t at[4] = {0};
    for (int k = 0; k < 3; k++) at[k] = l.coord[k] ? (int32_t)l.coord[k][bad] : 0;
    if (l.layer) at[3] = (int32_t)l.layer[bad];
    emu_fault(f, op, misaligned ? MG_FAULT_MISALIGNED : MG_FAULT_ADDRESS, bad, 0, 0,
              "surface access %s at x %d, y %d, z %d, layer %d of %ux%ux%u", misaligned ? "misaligned" : "outside",
              at[0], at[1], at[2], at[3], t->level[0].width, t->level[0].height, t->level[0].depth);
}

void emu_texture(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    const struct emu_tex *x = op->ext;
    const uint64_t *handle = (const uint64_t *)(regs + x->handle);
    while (mask) {
        uint32_t first = (uint32_t)emu_first(mask), same = 0;
        uint64_t differ = 0;
        for (uint32_t i = 0; i < 32; i++) differ |= handle[i] ^ handle[first]; /* of lanes that are not active, too */
        if (!differ)
            same = mask;
        else
            EMU_FOR_LANES(i, mask) same |= (uint32_t)(handle[i] == handle[first]) << i;
        const struct mg_texture *t = object(EMU_FRAME(regs), op, first, handle[first]);
        if (op->flags & EMU_OF_WORDS) keep_texels(EMU_FRAME(regs), op, t, handle[first]);
        if (op->sub == WHAT_FETCH)
            run_fetch(EMU_FRAME(regs), op, t, regs, same);
        else if (op->sub == WHAT_QUERY)
            run_query(op, t, regs, same);
        else
            run_surface(EMU_FRAME(regs), op, t, regs, same);
        mask &= ~same;
    }
}

/* The handle that a reference of the module is bound to: its variable holds it. */
void emu_texture_handle(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = (const struct emu_op *)(const void *)o;
    uint64_t handle = *(const volatile uint64_t *)(uintptr_t)op->off;
    EMU_FOR_LANES(i, mask)((uint64_t *)(regs + o->d))[i] = handle;
}

/* ---- operands ---------------------------------------------------------------------------------------- */

bool dec_is_reference(const struct mg_var *v)
{
    return mg_type_kind((enum mg_type)v->type) == MG_TK_OPAQUE || v->space == MG_SPACE_tex;
}

uint32_t dec_reference(struct decoder *d, mg_id var)
{
    const struct mg_var *v = &d->m->vars.at[var];
    if (v->is_param || v->is_ret)
        dec_refuse(d, "%s: texture, sampler and surface references as parameters are not supported",
                   mg_name(d->m, v->name));
    if (v->type == MG_TYPE_samplerref)
        dec_refuse(d, "%s: samplers of their own (.texmode_independent) are not supported", mg_name(d->m, v->name));
    if (!d->mod->globals[var].address)
        dec_refuse(d, "%s is declared extern and defined nowhere", mg_name(d->m, v->name));
    uint32_t at = dec_slot(d, EMU_D);
    struct emu_op *op = dec_emit(d, EMU_OP_texture_handle);
    op->a.d = at;
    op->off = (int64_t)d->mod->globals[var].address;
    return at;
}

static const struct mg_opnd *elements(struct decoder *d, const struct mg_opnd *o, uint32_t *n)
{
    *n = o->kind == MG_OPND_vec ? o->n : 1;
    return o->kind == MG_OPND_vec ? &d->m->opnds.at[o->id] : o;
}

static uint32_t handle_of(struct decoder *d, const struct mg_opnd *o)
{
    enum mg_opnd_kind kind = o->kind == MG_OPND_addr ? (enum mg_opnd_kind)o->sub : (enum mg_opnd_kind)o->kind;
    if (kind == MG_OPND_var && dec_is_reference(&d->m->vars.at[dec_var(d, o->id)]))
        return dec_reference(d, dec_var(d, o->id));
    if (kind != MG_OPND_reg || (o->kind == MG_OPND_addr && o->val))
        dec_refuse(d, "unsupported operand for a texture or surface");
    struct mg_opnd r = mg_o_reg(o->id);
    if (dec_reg_class(d, &r) != EMU_D) dec_refuse(d, "texture or surface handle of another size than 64 bits");
    return dec_reg(d, &r);
}

static int geometry(struct decoder *d, const struct mg_form *f)
{
    static const struct {
        enum mg_mod mod;
        enum mg_tex_geom geom;
    } geoms[] = {
        {MG_MOD_n1d, MG_GEOM_1D},      {MG_MOD_n2d, MG_GEOM_2D},  {MG_MOD_n3d, MG_GEOM_3D},
        {MG_MOD_a1d, MG_GEOM_A1D},     {MG_MOD_a2d, MG_GEOM_A2D}, {MG_MOD_cube, MG_GEOM_CUBE},
        {MG_MOD_acube, MG_GEOM_ACUBE},
    };
    for (uint32_t i = 0; i < MG_COUNT_OF(geoms); i++)
        if (mg_form_has(f, geoms[i].mod)) return (int)geoms[i].geom;
    dec_refuse(d, "unsupported geometry");
}

static uint32_t geometry_dims(int g)
{
    return g == MG_GEOM_1D || g == MG_GEOM_A1D ? 1 : g == MG_GEOM_2D || g == MG_GEOM_A2D ? 2 : 3;
}
static bool geometry_layered(int g)
{
    return g == MG_GEOM_A1D || g == MG_GEOM_A2D || g == MG_GEOM_ACUBE;
}

/* [handle, {coordinates}] */
static void place(struct decoder *d, struct emu_tex *x, const struct mg_opnd *o, int geom, enum mg_type t)
{
    if (o->kind != MG_OPND_tensor) dec_refuse(d, "unsupported operand for a texture or surface");
    if (o->n != 2) dec_refuse(d, "samplers of their own (.texmode_independent) are not supported");
    const struct mg_opnd *e = &d->m->opnds.at[o->id];
    uint32_t n, at = 0, dims = geometry_dims(geom);
    const struct mg_opnd *c = elements(d, &e[1], &n);
    if (n < dims + geometry_layered(geom)) dec_refuse(d, "too few coordinates");
    if (geometry_layered(geom)) x->layer = dec_src(d, &c[at++], EMU_W, MG_TYPE_u32);
    for (uint32_t k = 0; k < dims; k++) x->coord[k] = dec_src(d, &c[at++], EMU_W, t);
    x->handle = handle_of(d, &e[0]);
}

static void vector(struct decoder *d, const struct mg_opnd *o, uint32_t dims, enum mg_type t, uint32_t *out)
{
    uint32_t n;
    const struct mg_opnd *e = elements(d, o, &n);
    if (n < dims) dec_refuse(d, "too few elements");
    for (uint32_t k = 0; k < dims; k++) out[k] = dec_src(d, &e[k], EMU_W, t);
}

/* A fetch of 32-bit values by a texel's number: compiled code has it where texels are words of device memory. What
 * indirect calls bring in may share its range with other operations. */
static void by_number(struct decoder *d, const struct emu_tex *x, struct emu_op *op)
{
    const struct mg_tex_inst *in = &x->in.fetch;
    if (in->geom != MG_GEOM_1D || in->op != MG_TEXOP_TEX || in->out != MG_TEXOUT_32 || !in->int_coords ||
        in->has_offset || x->resident || d->code->next_cache)
        return;
    op->flags = EMU_OF_WORDS;
    op->cache = dec_cache(d);
    op->a.s[0] = x->coord[0];
    op->a.s[1] = x->handle;
    op->slots = mg_arena_copy(&d->code->arena, x->value, sizeof x->value);
    op->vec = MG_COUNT_OF(x->value);
}

static struct emu_op *emit(struct decoder *d, const struct emu_tex *x, enum what what)
{
    struct emu_op *op = dec_emit_inst(d, EMU_OP_texture, EMU_CTL_NONE);
    op->ext = mg_arena_copy(&d->code->arena, x, sizeof *x);
    op->sub = (uint8_t)what;
    return op;
}

static void destinations(struct decoder *d, struct emu_tex *x, const struct mg_opnd *o)
{
    uint32_t n;
    const struct mg_opnd *e = o;
    if (o->kind == MG_OPND_pair) {
        e = &d->m->opnds.at[o->id];
        if (e[1].kind == MG_OPND_reg) x->resident = dec_reg(d, &e[1]);
    }
    struct mg_opnd comps[4];
    if (e->kind == MG_OPND_reg && d->m->regs.at[e->id].vec && !e->sub) { /* a vector register */
        for (n = 0; n < d->m->regs.at[e->id].vec && n < 4; n++) comps[n] = *e, comps[n].sub = (uint8_t)(n + 1);
        e = comps;
    } else
        e = elements(d, e, &n);
    for (uint32_t k = 0; k < n && k < 4; k++) {
        if (e[k].kind == MG_OPND_sink) continue;
        if (e[k].kind != MG_OPND_reg || dec_reg_class(d, &e[k]) != EMU_W) dec_refuse(d, "unsupported destination");
        x->value[k] = dec_reg(d, &e[k]);
    }
}

/* ---- instructions -------------------------------------------------------------------------------------- */

static void fetch(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    static const enum mg_mod comps[] = {MG_MOD_r, MG_MOD_g, MG_MOD_b, MG_MOD_a};
    struct emu_tex x = {0};
    int g = geometry(d, f);
    uint32_t dims = geometry_dims(g), at = 2;
    if (n < 2 || f->n_types < 2) dec_refuse(d, "unsupported instruction");
    struct mg_tex_inst *in = &x.in.fetch;
    in->geom = (uint8_t)g;
    in->op = f->op == MG_OP_tld4            ? MG_TEXOP_GATHER
             : mg_form_has(f, MG_MOD_level) ? MG_TEXOP_LEVEL
             : mg_form_has(f, MG_MOD_grad)  ? MG_TEXOP_GRAD
                                            : MG_TEXOP_TEX;
    in->out = f->types[0] == MG_TYPE_f16x2 ? MG_TEXOUT_F16X2
              : f->types[0] == MG_TYPE_f16 ? MG_TEXOUT_F16
                                           : MG_TEXOUT_32;
    in->int_coords = f->types[1] == MG_TYPE_s32;
    enum mg_type ct = in->int_coords ? MG_TYPE_s32 : MG_TYPE_f32;
    for (uint8_t k = 0; k < 4; k++)
        if (in->op == MG_TEXOP_GATHER && mg_form_has(f, comps[k])) in->component = k;
    place(d, &x, &o[1], g, ct);
    if (in->op == MG_TEXOP_LEVEL) {
        if (n <= at) dec_refuse(d, "too few operands");
        x.extra[0] = dec_src(d, &o[at++], EMU_W, ct);
    } else if (in->op == MG_TEXOP_GRAD) {
        if (n <= at + 1) dec_refuse(d, "too few operands");
        vector(d, &o[at++], dims, MG_TYPE_f32, &x.extra[0]);
        vector(d, &o[at++], dims, MG_TYPE_f32, &x.extra[3]);
    }
    if (n > at && o[at].kind == MG_OPND_vec) {
        if (g == MG_GEOM_CUBE || g == MG_GEOM_ACUBE) dec_refuse(d, "unsupported operands");
        in->has_offset = true;
        vector(d, &o[at++], dims, MG_TYPE_s32, x.offset);
    }
    if (n > at) dec_refuse(d, "depth comparison is not supported");
    destinations(d, &x, &o[0]);
    by_number(d, &x, emit(d, &x, WHAT_FETCH));
}

static void query(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    static const struct {
        enum mg_mod mod;
        enum mg_tex_query q;
    } queries[] = {
        {MG_MOD_width, MG_TEXQ_WIDTH},
        {MG_MOD_height, MG_TEXQ_HEIGHT},
        {MG_MOD_depth, MG_TEXQ_DEPTH},
        {MG_MOD_channel_data_type, MG_TEXQ_CHANNEL_TYPE},
        {MG_MOD_channel_order, MG_TEXQ_CHANNEL_ORDER},
        {MG_MOD_normalized_coords, MG_TEXQ_NORMALISED},
        {MG_MOD_array_size, MG_TEXQ_ARRAY_SIZE},
        {MG_MOD_num_mipmap_levels, MG_TEXQ_LEVELS},
        {MG_MOD_num_samples, MG_TEXQ_SAMPLES},
        {MG_MOD_memory_layout, MG_TEXQ_LAYOUT},
    };
    struct emu_tex x = {0};
    uint32_t k = 0;
    while (k < MG_COUNT_OF(queries) && !mg_form_has(f, queries[k].mod)) k++;
    if (k == MG_COUNT_OF(queries) || n < 2) dec_refuse(d, "unsupported query");
    x.in.query = queries[k].q;
    x.handle = handle_of(d, o[1].kind == MG_OPND_tensor ? &d->m->opnds.at[o[1].id] : &o[1]);
    if (n > 2) x.level = dec_src(d, &o[2], EMU_W, MG_TYPE_u32);
    if (o[0].kind != MG_OPND_reg || dec_reg_class(d, &o[0]) != EMU_W) dec_refuse(d, "unsupported destination");
    x.value[0] = dec_reg(d, &o[0]);
    emit(d, &x, WHAT_QUERY);
}

static void surface(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    static const struct {
        enum mg_mod mod;
        enum mg_surf_red red;
    } reds[] = {
        {MG_MOD_add, MG_SURFRED_ADD}, {MG_MOD_min, MG_SURFRED_MIN}, {MG_MOD_max, MG_SURFRED_MAX},
        {MG_MOD_and, MG_SURFRED_AND}, {MG_MOD_or, MG_SURFRED_OR},
    };
    struct emu_tex x = {0};
    struct mg_surf_inst *in = &x.in.surf;
    int g = geometry(d, f);
    if (n < 2 || !f->n_types || g > MG_GEOM_A2D) dec_refuse(d, "unsupported instruction");
    bool load = f->op == MG_OP_suld;
    enum mg_type t = f->types[0];
    in->geom = (uint8_t)g;
    in->formatted = mg_form_has(f, MG_MOD_p);
    in->op = load                   ? MG_SURFOP_LOAD
             : f->op == MG_OP_sured ? MG_SURFOP_REDUCE
             : in->formatted        ? MG_SURFOP_STORE_FORMAT
                                    : MG_SURFOP_STORE;
    in->outside = mg_form_has(f, MG_MOD_clamp)  ? MG_SURF_CLAMP
                  : mg_form_has(f, MG_MOD_zero) ? MG_SURF_ZERO
                                                : MG_SURF_TRAP;
    if (load && in->formatted) dec_refuse(d, "unsupported instruction");
    for (uint32_t k = 0; k < MG_COUNT_OF(reds); k++)
        if (in->op == MG_SURFOP_REDUCE && mg_form_has(f, reds[k].mod)) in->red = reds[k].red;
    in->red_signed = mg_type_kind(t) == MG_TK_SINT;
    in->bytes = (uint8_t)(mg_type_bits(t) / 8);
    enum emu_class c = dec_class(t);
    uint32_t count;
    const struct mg_opnd *e = elements(d, load ? &o[0] : &o[1], &count);
    if (count > 4 || (c != EMU_W && c != EMU_D)) dec_refuse(d, "unsupported instruction");
    in->vec = (uint8_t)count;
    for (uint32_t k = 0; k < count; k++) {
        if (!load)
            x.value[k] = dec_src(d, &e[k], c, t);
        else if (e[k].kind == MG_OPND_sink)
            continue;
        else if (e[k].kind != MG_OPND_reg || dec_reg_class(d, &e[k]) != c)
            dec_refuse(d, "unsupported destination");
        else
            x.value[k] = dec_reg(d, &e[k]);
    }
    place(d, &x, load ? &o[1] : &o[0], g, MG_TYPE_s32);
    struct emu_op *op = emit(d, &x, WHAT_SURFACE);
    op->flags = load ? EMU_OF_READS : EMU_OF_WRITES;
}

void dec_texture(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    switch ((enum mg_op)f->op) {
    case MG_OP_tex:
    case MG_OP_tld4:
        fetch(d, f, o, n);
        break;
    case MG_OP_txq:
    case MG_OP_suq:
        query(d, f, o, n);
        break;
    default:
        surface(d, f, o, n);
        break;
    }
}
