/* Decoding of asynchronous copies, mbarriers, tensor copies and cluster operations (async.h). */
#include "device/emu/async.h"
#include "device/emu/check.h"
#include "device/emu/decode.h"

#include <string.h>

/* State spaces of a form in text order: destination, source. */
struct spaces {
    uint8_t n, at[4], cluster[4];
};

static struct spaces spaces_of(const struct mg_form *f)
{
    struct spaces s = {0};
    for (unsigned i = 0; i < f->n_mods && s.n < 4; i++) {
        unsigned m = f->mods[i];
        if (mg_mod_class((enum mg_mod)m) != MG_MC_SPACE) continue;
        s.cluster[s.n] = m == MG_MOD_shared__cluster;
        s.at[s.n++] = m == MG_MOD_global                                                             ? MG_SPACE_global
                      : m == MG_MOD_shared || m == MG_MOD_shared__cta || m == MG_MOD_shared__cluster ? MG_SPACE_shared
                      : m == MG_MOD_param                                                            ? MG_SPACE_param
                                                                                                     : MG_SPACE_generic;
    }
    return s;
}

static struct emu_op place(struct decoder *d, const struct mg_opnd *o, unsigned space, bool cluster, unsigned flags)
{
    struct emu_op p = {0};
    dec_address(d, &p, o, (enum mg_space)space);
    p.flags = (uint8_t)(p.flags | flags | (cluster ? EMU_OF_CLUSTER : 0));
    p.node = d->node;
    p.site = dec_check_site(d);
    return p;
}

static struct emu_copy *new_copy(struct decoder *d)
{
    return mg_arena_new(&d->code->arena, struct emu_copy);
}

static uint32_t word(struct decoder *d, const struct mg_opnd *o)
{
    return dec_src(d, o, EMU_W, MG_TYPE_u32);
}

static void emit(struct decoder *d, enum emu_opcode opcode, const void *ext)
{
    struct emu_op *op = dec_emit_inst(d, opcode, EMU_CTL_NONE);
    op->ext = ext;
}

static bool is_pred(struct decoder *d, const struct mg_opnd *o)
{
    return o->kind == MG_OPND_not || (o->kind == MG_OPND_reg && dec_reg_class(d, o) == EMU_P);
}

/* ---- copies ------------------------------------------------------------------------------------ */

static void copy_small(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    struct emu_copy *c = new_copy(d);
    uint32_t last = n - (mg_form_has(f, MG_MOD_L2__cache_hint) ? 1u : 0u); /* the policy changes nothing */
    if (last < 3 || o[2].kind != MG_OPND_imm) dec_refuse(d, "too few operands");
    c->dst = place(d, &o[0], MG_SPACE_shared, false, EMU_OF_WRITES);
    c->dst.mode = EMU_CK_COPY;
    c->src = place(d, &o[1], MG_SPACE_global, false, EMU_OF_READS);
    c->bytes = (uint32_t)o[2].val;
    if (c->bytes != 4 && c->bytes != 8 && c->bytes != 16) dec_refuse(d, "copy of %u bytes", c->bytes);
    if (last > 3 && is_pred(d, &o[3])) {
        c->skips = 1;
        c->skip_flip = o[3].kind == MG_OPND_not ? UINT32_MAX : 0;
        c->skip = dec_reg(d, &o[3]);
    } else if (last > 3)
        c->src_size = word(d, &o[3]);
    emit(d, EMU_OP_copy_small, c);
}

static struct emu_op barrier_place(struct decoder *d, const struct mg_opnd *o, unsigned space, bool cluster,
                                   unsigned flags)
{
    struct emu_op p = place(d, o, space, cluster, flags);
    p.mode = EMU_CK_ATOMIC;
    return p;
}

/* --check: what went before is ordered before what follows the end of the barrier's phase. */
static void check_arrival(struct decoder *d, struct emu_op bar)
{
    if (!dec_checks(d) || !bar.node) return;
    struct emu_mbar *b = mg_arena_new(&d->code->arena, struct emu_mbar);
    b->at = bar;
    dec_check_after(d, EMU_OP_check_mbar, &(struct emu_op){.ext = b});
}

static uint8_t reduction(struct decoder *d, const struct mg_form *f)
{
    static const struct {
        enum mg_mod mod;
        enum emu_atom op;
    } ops[] = {{MG_MOD_add, EMU_ATOM_ADD}, {MG_MOD_min, EMU_ATOM_MIN}, {MG_MOD_max, EMU_ATOM_MAX},
               {MG_MOD_inc, EMU_ATOM_INC}, {MG_MOD_dec, EMU_ATOM_DEC}, {MG_MOD_and, EMU_ATOM_AND},
               {MG_MOD_or, EMU_ATOM_OR},   {MG_MOD_xor, EMU_ATOM_XOR}};
    for (unsigned i = 0; i < MG_COUNT_OF(ops); i++)
        if (mg_form_has(f, ops[i].mod)) return (uint8_t)(ops[i].op + 1);
    dec_refuse(d, "unsupported reduction");
}

static void copy_bulk(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    struct emu_copy *c = new_copy(d);
    struct spaces s = spaces_of(f);
    uint32_t last = n - (mg_form_has(f, MG_MOD_L2__cache_hint) ? 1u : 0u), next = 3;
    if (s.n < 2 || last < 3) dec_refuse(d, "unsupported instruction");
    c->dst = place(d, &o[0], s.at[0], s.cluster[0], EMU_OF_WRITES);
    c->src = place(d, &o[1], s.at[1], false, EMU_OF_READS);
    c->to_global = s.at[0] == MG_SPACE_global;
    if (o[2].kind == MG_OPND_imm)
        c->bytes = (uint32_t)o[2].val;
    else
        c->size = word(d, &o[2]);
    if (mg_form_has(f, MG_MOD_mbarrier__complete_tx__bytes)) {
        if (last < 4) dec_refuse(d, "too few operands");
        c->bar = barrier_place(d, &o[next++], MG_SPACE_shared, s.cluster[0], EMU_OF_READS | EMU_OF_WRITES);
    }
    if (mg_form_has(f, MG_MOD_multicast__cluster) && next < last) c->ctas = word(d, &o[next++]);
    if (mg_form_has(f, MG_MOD_cp_mask) && next < last) c->byte_mask = word(d, &o[next++]);
    if (mg_form_has(f, MG_MOD_ignore_oob)) dec_refuse(d, "unsupported instruction");
    if (mg_form_has(f, MG_MOD_reduce)) {
        c->reduce = reduction(d, f);
        if (!f->n_types) dec_refuse(d, "unsupported instruction");
        c->type = f->types[0];
    }
    emit(d, EMU_OP_copy_bulk, c);
    check_arrival(d, c->bar);
}

/* [tensorMap, {x, y}] */
static void tensor_operand(struct decoder *d, struct emu_copy *c, const struct mg_opnd *o)
{
    const struct mg_opnd *e = &d->m->opnds.at[o->id];
    if (o->kind != MG_OPND_tensor || o->n != 2 || e[1].kind != MG_OPND_vec || e[1].n > EMU_MAX_DIMS)
        dec_refuse(d, "unsupported tensor operand");
    struct mg_opnd at = {.kind = MG_OPND_addr, .sub = e[0].kind, .id = e[0].id, .val = e[0].val};
    if (e[0].kind == MG_OPND_addr) at = e[0];
    c->map = place(d, &at, MG_SPACE_generic, false, EMU_OF_READS);
    c->n_dims = (uint8_t)e[1].n;
    for (unsigned k = 0; k < e[1].n; k++) c->coords[k] = word(d, &d->m->opnds.at[e[1].id + k]);
}

static void copy_tensor(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    static const enum mg_mod refused[] = {MG_MOD_im2col,         MG_MOD_im2col__w,     MG_MOD_im2col__w__128,
                                          MG_MOD_im2col_no_offs, MG_MOD_tile__gather4, MG_MOD_tile__scatter4,
                                          MG_MOD_cta_group__1,   MG_MOD_cta_group__2};
    for (unsigned i = 0; i < MG_COUNT_OF(refused); i++)
        if (mg_form_has(f, refused[i]))
            dec_refuse(d, "tensor copies other than tiles (.%s) are not supported by this device",
                       mg_mod_text(refused[i]));
    struct emu_copy *c = new_copy(d);
    struct spaces s = spaces_of(f);
    if (s.n < 2 || n < 2) dec_refuse(d, "unsupported instruction");
    c->to_global = s.at[0] == MG_SPACE_global;
    tensor_operand(d, c, c->to_global ? &o[0] : &o[1]);
    if (c->to_global)
        c->src = place(d, &o[1], MG_SPACE_shared, false, EMU_OF_READS);
    else {
        if (n < 3) dec_refuse(d, "too few operands");
        c->dst = place(d, &o[0], MG_SPACE_shared, s.cluster[0], EMU_OF_WRITES);
        c->bar = barrier_place(d, &o[2], MG_SPACE_shared, s.cluster[0], EMU_OF_READS | EMU_OF_WRITES);
        if (mg_form_has(f, MG_MOD_multicast__cluster)) {
            if (n < 4) dec_refuse(d, "too few operands");
            c->ctas = word(d, &o[3]);
        }
    }
    if (mg_form_has(f, MG_MOD_reduce)) c->reduce = reduction(d, f);
    emit(d, EMU_OP_copy_tensor, c);
    check_arrival(d, c->bar);
}

/* st.async and red.async: [a], value, [mbarrier] in the shared memory of the cluster */
static void copy_value(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n, bool red)
{
    struct emu_copy *c = new_copy(d);
    if (n < 3 || !f->n_types || !mg_form_has(f, MG_MOD_shared__cluster)) dec_refuse(d, "unsupported instruction");
    c->dst = place(d, &o[0], MG_SPACE_shared, true, EMU_OF_WRITES);
    c->bar = barrier_place(d, &o[2], MG_SPACE_shared, true, EMU_OF_READS | EMU_OF_WRITES);
    c->type = f->types[0];
    c->values_wide = mg_type_bits(c->type) == 64;
    const struct mg_opnd *e = o[1].kind == MG_OPND_vec ? &d->m->opnds.at[o[1].id] : &o[1];
    c->vec = o[1].kind == MG_OPND_vec ? (uint8_t)o[1].n : 1;
    if (c->vec > 4 || mg_type_bits(c->type) < 32 || mg_type_bits(c->type) > 64)
        dec_refuse(d, "unsupported instruction");
    for (unsigned k = 0; k < c->vec; k++) c->values[k] = dec_src(d, &e[k], c->values_wide ? EMU_D : EMU_W, c->type);
    if (red) c->reduce = reduction(d, f);
    emit(d, EMU_OP_copy_value, c);
    check_arrival(d, c->bar);
}

/* ---- mbarriers --------------------------------------------------------------------------------- */

static void mbarrier(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    if (mg_form_has(f, MG_MOD_pending_count)) {
        if (n != 2) dec_refuse(d, "too few operands");
        uint32_t s = dec_src(d, &o[1], EMU_D, MG_TYPE_b64), to = dec_reg(d, &o[0]);
        struct emu_op *op = dec_emit_inst(d, EMU_OP_mbar_pending, EMU_CTL_NONE);
        op->a.d = to;
        op->a.s[0] = s;
        return;
    }
    struct emu_mbar *b = mg_arena_new(&d->code->arena, struct emu_mbar);
    struct spaces s = spaces_of(f);
    unsigned space = s.n ? s.at[0] : MG_SPACE_generic, at = 0;
    bool drop = mg_form_has(f, MG_MOD_arrive_drop), arrive = drop || mg_form_has(f, MG_MOD_arrive);
    bool tries = mg_form_has(f, MG_MOD_try_wait), tests = tries || mg_form_has(f, MG_MOD_test_wait),
         tx = mg_form_has(f, MG_MOD_expect_tx);
    if (mg_form_has(f, MG_MOD_init))
        b->kind = EMU_MBAR_INIT;
    else if (mg_form_has(f, MG_MOD_inval))
        b->kind = EMU_MBAR_INVAL;
    else if (tests)
        b->kind = EMU_MBAR_TEST;
    else if (arrive)
        b->kind = drop ? EMU_MBAR_DROP : EMU_MBAR_ARRIVE;
    else if (tx)
        b->kind = EMU_MBAR_EXPECT;
    else if (mg_form_has(f, MG_MOD_complete_tx))
        b->kind = EMU_MBAR_COMPLETE;
    else
        dec_refuse(d, "unsupported instruction");
    uint32_t dst = 0;
    if (n && o[0].kind != MG_OPND_addr) {
        at = 1;
        if (o[0].kind == MG_OPND_reg)
            dst = dec_reg(d, &o[0]);
        else if (tests)
            dst = dec_slot(d, EMU_P);
    }
    if (n < at + 1 || (tests && (n < 3 || !dst))) dec_refuse(d, "too few operands");
    b->at = barrier_place(d, &o[at], space, s.n && s.cluster[0],
                          b->kind == EMU_MBAR_TEST   ? EMU_OF_READS
                          : b->kind == EMU_MBAR_INIT ? EMU_OF_WRITES
                                                     : EMU_OF_READS | EMU_OF_WRITES);
    b->parity = mg_form_has(f, MG_MOD_parity);
    if (tests)
        b->token = b->parity ? word(d, &o[2]) : dec_src(d, &o[2], EMU_D, MG_TYPE_b64);
    else if (n > at + 1)
        *(tx || b->kind == EMU_MBAR_COMPLETE ? &b->bytes : &b->count) = word(d, &o[at + 1]);
    struct emu_op *op = dec_emit_inst(d, EMU_OP_mbar_run, tries ? EMU_CTL_SYNC : EMU_CTL_NONE);
    op->sub = tries ? EMU_SYNC_MBAR : 0;
    op->ext = b;
    op->a.d = dst;
    if (tests)
        dec_check_after(d, EMU_OP_check_mbar, &(struct emu_op){.ext = b, .a.d = dst});
    else if (b->kind != EMU_MBAR_INIT && b->kind != EMU_MBAR_INVAL)
        check_arrival(d, b->at);
}

/* cp.async.mbarrier.arrive: earlier copies are complete, so without .noinc the arrival that it adds
 * to the phase is made at once. */
static void copy_arrives(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    if (n != 1) dec_refuse(d, "too few operands");
    dec_check_after(d, EMU_OP_check_wait, &(struct emu_op){.off = -1});
    if (!mg_form_has(f, MG_MOD_noinc)) {
        if (dec_checks(d)) check_arrival(d, barrier_place(d, &o[0], f->space, false, EMU_OF_READS | EMU_OF_WRITES));
        dec_emit_inst(d, EMU_OP_nop, EMU_CTL_NONE);
        return;
    }
    struct emu_mbar *b = mg_arena_new(&d->code->arena, struct emu_mbar);
    b->kind = EMU_MBAR_NOINC;
    b->at = barrier_place(d, &o[0], f->space, false, EMU_OF_READS | EMU_OF_WRITES);
    emit(d, EMU_OP_mbar_run, b);
    check_arrival(d, b->at);
}

static void copy(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    bool group =
        mg_form_has(f, MG_MOD_commit_group) || mg_form_has(f, MG_MOD_wait_group) || mg_form_has(f, MG_MOD_wait_all);
    if (group && !mg_form_has(f, MG_MOD_bulk)) {
        bool commits = mg_form_has(f, MG_MOD_commit_group),
             some = mg_form_has(f, MG_MOD_wait_group) && n && o[0].kind == MG_OPND_imm;
        dec_check_after(d, commits ? EMU_OP_check_commit : EMU_OP_check_wait,
                        &(struct emu_op){.off = some ? (int64_t)o[0].val : -1});
    }
    if (group || mg_form_has(f, MG_MOD_prefetch))
        dec_emit_inst(d, EMU_OP_nop, EMU_CTL_NONE);
    else if (mg_form_has(f, MG_MOD_mbarrier))
        copy_arrives(d, f, o, n);
    else if (mg_form_has(f, MG_MOD_tensor))
        copy_tensor(d, f, o, n);
    else if (mg_form_has(f, MG_MOD_bulk))
        copy_bulk(d, f, o, n);
    else if (mg_form_has(f, MG_MOD_async))
        copy_small(d, f, o, n);
    else
        dec_refuse(d, "unsupported instruction");
}

/* ---- tensor maps, clusters ----------------------------------------------------------------------- */

static void tensormap(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    static const enum mg_mod fields[] = {MG_MOD_global_address,   MG_MOD_rank,
                                         MG_MOD_box_dim,          MG_MOD_global_dim,
                                         MG_MOD_global_stride,    MG_MOD_element_stride, /* ORDER REPLACE */
                                         MG_MOD_elemtype,         MG_MOD_interleave_layout,
                                         MG_MOD_swizzle_mode,     MG_MOD_fill_mode,
                                         MG_MOD_swizzle_atomicity};
    struct emu_copy *c = new_copy(d);
    struct spaces s = spaces_of(f);
    if (mg_form_has(f, MG_MOD_cp_fenceproxy)) {
        if (n < 2 || s.n < 2) dec_refuse(d, "too few operands");
        c->dst = place(d, &o[0], s.at[0], false, EMU_OF_WRITES);
        c->src = place(d, &o[1], s.at[1], false, EMU_OF_READS);
        emit(d, EMU_OP_tensormap_copy, c);
        return;
    }
    while (c->field < MG_COUNT_OF(fields) && !mg_form_has(f, fields[c->field])) c->field++;
    if (c->field == MG_COUNT_OF(fields) || n < 2) dec_refuse(d, "unsupported instruction");
    c->dst = place(d, &o[0], s.n ? s.at[0] : MG_SPACE_generic, false, EMU_OF_WRITES);
    if (n > 2) c->ordinal = (uint32_t)dec_imm(d, &o[1], MG_TYPE_u32);
    c->values_wide = mg_form_has(f, MG_MOD_b64);
    c->value = dec_src(d, &o[n - 1], c->values_wide ? EMU_D : EMU_W, c->values_wide ? MG_TYPE_u64 : MG_TYPE_u32);
    emit(d, EMU_OP_tensormap_replace, c);
}

static void cluster_barrier(struct decoder *d, const struct mg_form *f)
{
    if (mg_form_has(f, MG_MOD_arrive)) {
        dec_emit_inst(d, EMU_OP_cluster_arrive, EMU_CTL_NONE);
        return;
    }
    struct emu_op *op = dec_emit_inst(d, EMU_OP_none, EMU_CTL_SYNC);
    op->sub = EMU_SYNC_CLUSTER;
    dec_check_after(d, EMU_OP_check_cluster, &(struct emu_op){0});
}

static void cluster_map(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    bool map = f->op == MG_OP_mapa, wide = f->n_types && mg_type_bits(f->types[0]) == 64;
    if (n != (map ? 3u : 2u) || o[0].kind != MG_OPND_reg) dec_refuse(d, "too few operands");
    uint32_t a = dec_src(d, &o[1], wide ? EMU_D : EMU_W, wide ? MG_TYPE_u64 : MG_TYPE_u32),
             b = map ? word(d, &o[2]) : 0, to = dec_reg(d, &o[0]);
    if (dec_reg_class(d, &o[0]) != (wide && map ? EMU_D : EMU_W)) dec_refuse(d, "register of another size");
    struct emu_op *op = dec_emit_inst(d, map ? EMU_OP_mapa : EMU_OP_getctarank, EMU_CTL_NONE);
    op->a.d = to;
    op->a.s[0] = a;
    op->a.s[1] = b;
    op->space = f->space;
    op->flags = wide ? EMU_OF_WIDE : 0;
}

void dec_cluster_address(struct decoder *d, struct emu_op *proto, const struct mg_opnd *address)
{
    struct emu_op at = {0};
    dec_address(d, &at, address, MG_SPACE_shared);
    uint32_t to = dec_slot(d, EMU_D);
    struct emu_op *op = dec_emit(d, EMU_OP_cluster_address);
    op->a.d = to;
    op->a.s[0] = at.a.s[0];
    op->off = at.off;
    op->flags = at.flags;
    op->space = at.space;
    *proto = (struct emu_op){.space = MG_SPACE_generic, .cache = at.cache};
    proto->a.s[0] = to;
}

bool dec_async(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o, uint32_t n)
{
    switch ((enum mg_op)f->op) {
    case MG_OP_cp:
        copy(d, f, o, n);
        return true;
    case MG_OP_st:
        if (!mg_form_has(f, MG_MOD_async)) return false;
        copy_value(d, f, o, n, false);
        return true;
    case MG_OP_red:
        if (!mg_form_has(f, MG_MOD_async)) return false;
        copy_value(d, f, o, n, true);
        return true;
    case MG_OP_mbarrier:
        mbarrier(d, f, o, n);
        return true;
    case MG_OP_tensormap:
        tensormap(d, f, o, n);
        return true;
    case MG_OP_mapa:
    case MG_OP_getctarank:
        cluster_map(d, f, o, n);
        return true;
    case MG_OP_barrier:
        if (!mg_form_has(f, MG_MOD_cluster)) return false;
        cluster_barrier(d, f);
        return true;
    case MG_OP_setmaxnreg:
        dec_emit_inst(d, EMU_OP_nop, EMU_CTL_NONE);
        return true;
    case MG_OP_multimem:
    case MG_OP_tcgen05:
    case MG_OP_clusterlaunchcontrol:
        dec_refuse(d, "%s is not supported by this device", mg_op_name((enum mg_op)f->op));
    default:
        return false;
    }
}
