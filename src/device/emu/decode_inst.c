/* Decoding of single instructions: arithmetic through alu.h, moves, warp operations, barriers,
 * branches, calls. Memory is in decode_mem.c. */
#include "device/emu/check.h"
#include "device/emu/race.h"
#include "device/emu/decode.h"
#include "device/emu/defined.h"

#include <string.h>

static const struct mg_opnd *list_at(struct decoder *d, const struct mg_opnd *o)
{
    return &d->m->opnds.at[o->id];
}

/* Destination register as class c; when the register is wider, a scratch one that widen() copies
 * from afterwards. */
struct dest {
    uint32_t at, reg;
    enum emu_class have;
    bool widen;
};

static struct dest dest_of(struct decoder *d, const struct mg_opnd *o, enum emu_class c)
{
    if (o->kind == MG_OPND_sink) return (struct dest){.at = c == EMU_P ? dec_slot(d, EMU_P) : d->trash};
    if (o->kind != MG_OPND_reg) dec_refuse(d, "unsupported destination");
    enum emu_class have = dec_reg_class(d, o);
    uint32_t at = dec_reg(d, o);
    if (have == c) return (struct dest){.at = at};
    if (c == EMU_W && have == EMU_D) return (struct dest){.at = dec_slot(d, c), .reg = at, .have = have, .widen = true};
    dec_refuse(d, "destination register of another size");
}

/* Result of type t in a register that is wider than its class or than the type (cvt, ld). */
static void widen(struct decoder *d, const struct dest *to, enum emu_opcode opcode)
{
    struct emu_op *op = dec_emit_inst(d, opcode, EMU_CTL_NONE);
    op->node = 0;
    op->a.d = to->widen ? to->reg : to->at;
    op->a.s[0] = to->at;
}

static void arithmetic(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n)
{
    struct emu_alu_desc a = {0};
    if (!emu_alu_find(form, n, d->m->sm, d->m->sm < 20 && d->m->version_major < 3, d->isa, &a))
        dec_refuse(d, "unsupported instruction");
    if (n < 1u + a.n_src) dec_refuse(d, "too few operands");
    const struct mg_opnd *d1 = &o[0], *d2 = NULL;
    if (o[0].kind == MG_OPND_pair) {
        d1 = list_at(d, &o[0]);
        d2 = d1 + 1;
    }
    uint32_t s[4] = {0}, imm = a.imm;
    struct mg_opnd whole = *d1;
    if (d1->kind == MG_OPND_sel) { /* vadd d.b0, ...: the rest of d comes from the last source */
        imm |= emu_video_selector(0, d1->sub, false);
        whole = mg_o_reg(d1->id);
        d1 = &whole;
    }
    for (unsigned i = 0; i < a.n_src; i++) {
        if (o[1 + i].kind == MG_OPND_sel || o[1 + i].kind == MG_OPND_neg)
            imm |= emu_video_selector(i + 1, o[1 + i].sub, o[1 + i].kind == MG_OPND_neg);
        s[i] = dec_src(d, &o[1 + i], a.src[i], a.src_type[i]);
    }
    if (a.sets_imm) {
        const struct mg_opnd *last = &o[1 + a.n_src];
        if (1u + a.n_src >= n || last->kind != MG_OPND_imm) dec_refuse(d, "the last operand must be an immediate");
        imm |= (uint32_t)last->val;
    }
    struct dest to = dest_of(d, d1, a.d), to2 = {0};
    if (d2 && a.d2) to2 = dest_of(d, d2, a.d2);
    struct emu_op *op = dec_emit_inst(d, a.opcode, EMU_CTL_NONE);
    op->a.d = to.at;
    op->a.d2 = to2.at;
    memcpy(op->a.s, s, sizeof s);
    op->a.imm = imm;
    op->a.cc = d->fn->cc;
    if (d1->kind != MG_OPND_reg || !form->n_types) return;
    /* results narrower than the register are extended by their type */
    enum mg_type t = form->types[0];
    unsigned reg_bits = mg_type_bits(d->m->regs.at[d1->id].type), bits = mg_type_bits(t);
    bool is_signed = mg_type_kind(t) == MG_TK_SINT;
    if (to.widen) {
        if (is_signed && bits < 32) {
            struct dest same = {.at = to.at};
            widen(d, &same, bits == 8 ? EMU_OP_sext8_w : EMU_OP_sext16_w);
        }
        widen(d, &to, is_signed ? EMU_OP_sext_wd : EMU_OP_zext_wd);
    } else if (form->op == MG_OP_cvt && is_signed && bits < reg_bits && a.d == EMU_W)
        widen(d, &to, bits == 8 ? reg_bits == 16 ? EMU_OP_sext8_h : EMU_OP_sext8_w : EMU_OP_sext16_w);
}

/* ---- moves -------------------------------------------------------------------------------------- */

static void move(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n)
{
    if (n != 2) dec_refuse(d, "mov needs two operands");
    enum mg_type t = form->n_types ? form->types[0] : MG_TYPE_b32;
    bool pack = o[1].kind == MG_OPND_vec, unpack = o[0].kind == MG_OPND_vec;
    if (pack && unpack) { /* element by element */
        const struct mg_opnd *from = list_at(d, &o[1]), *to = list_at(d, &o[0]);
        enum emu_class c = dec_class(t);
        uint32_t src[8];
        for (unsigned k = 0; k < o[0].n && k < 8; k++) src[k] = dec_src(d, &from[k], c, t);
        for (unsigned k = 0; k < o[0].n && k < 8; k++) {
            struct dest dst = dest_of(d, &to[k], c);
            struct emu_op *op = dec_emit_inst(d, c == EMU_D ? EMU_OP_mov_d : EMU_OP_mov_w, EMU_CTL_NONE);
            if (k) op->node = 0;
            op->a.d = dst.at;
            op->a.s[0] = src[k];
        }
        return;
    }
    if (pack || unpack) {
        const struct mg_opnd *v = pack ? &o[1] : &o[0], *whole = pack ? &o[0] : &o[1], *e = list_at(d, v);
        enum emu_class c = dec_class(t);
        unsigned elem = mg_type_bits(t) / 8 / (v->n ? v->n : 1);
        if (!elem || v->n > 8) dec_refuse(d, "mov of this vector");
        uint32_t *slots = mg_arena_array(&d->code->arena, uint32_t, v->n);
        enum mg_type et = elem == 1 ? MG_TYPE_b8 : elem == 2 ? MG_TYPE_b16 : elem == 4 ? MG_TYPE_b32 : MG_TYPE_b64;
        enum emu_class ec = dec_class(et);
        for (unsigned k = 0; k < v->n; k++) {
            if (pack)
                slots[k] = dec_src(d, &e[k], ec, et);
            else
                slots[k] = e[k].kind == MG_OPND_sink ? 0 : dest_of(d, &e[k], ec).at;
        }
        uint32_t at = pack ? dest_of(d, whole, c).at : dec_src(d, whole, c, t);
        struct emu_op *op = dec_emit_inst(d, pack ? EMU_OP_pack : EMU_OP_unpack, EMU_CTL_NONE);
        op->slots = slots;
        op->vec = (uint8_t)v->n;
        op->bytes = (uint8_t)elem;
        op->a.imm = c;
        if (pack)
            op->a.d = at;
        else
            op->a.s[0] = at;
        return;
    }
    if (o[0].kind == MG_OPND_sink) {
        dec_emit_inst(d, EMU_OP_nop, EMU_CTL_NONE);
        return;
    }
    if (o[0].kind != MG_OPND_reg) dec_refuse(d, "unsupported destination");
    if (d->m->regs.at[o[0].id].vec && !o[0].sub) { /* mov.v4.u32 v, %tid or another vector register */
        enum emu_class c = dec_reg_class(d, &o[0]);
        for (unsigned k = 0; k < d->m->regs.at[o[0].id].vec; k++) {
            struct mg_opnd dst = o[0], src = o[1];
            dst.sub = src.sub = (uint8_t)(k + 1);
            uint32_t from = dec_src(d, &src, c, t), to = dec_reg(d, &dst);
            struct emu_op *op = dec_emit_inst(d, c == EMU_D ? EMU_OP_mov_d : EMU_OP_mov_w, EMU_CTL_NONE);
            if (k) op->node = 0;
            op->a.d = to;
            op->a.s[0] = from;
        }
        return;
    }
    enum emu_class c = dec_reg_class(d, &o[0]);
    uint32_t s = dec_src(d, &o[1], c, t);
    struct emu_op *op = dec_emit_inst(d,
                                      c == EMU_P   ? EMU_OP_mov_p
                                      : c == EMU_W ? EMU_OP_mov_w
                                      : c == EMU_D ? EMU_OP_mov_d
                                                   : EMU_OP_mov_q,
                                      EMU_CTL_NONE);
    op->a.d = dec_reg(d, &o[0]);
    op->a.s[0] = s;
}

static void cvta(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o)
{
    bool to = mg_form_has(form, MG_MOD_to);
    uint32_t s = dec_src(d, &o[1], EMU_D, MG_TYPE_u64);
    struct dest dst = dest_of(d, &o[0], EMU_D);
    bool same = form->space != MG_SPACE_shared && form->space != MG_SPACE_local;
    struct emu_op *op = dec_emit_inst(d, same ? EMU_OP_mov_d : EMU_OP_cvta, EMU_CTL_NONE);
    op->a.d = dst.at;
    op->a.s[0] = s;
    op->space = form->space;
    op->mode = to;
}

static void isspacep(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o)
{
    uint32_t s = dec_src(d, &o[1], EMU_D, MG_TYPE_u64);
    struct dest dst = dest_of(d, &o[0], EMU_P);
    struct emu_op *op = dec_emit_inst(d, EMU_OP_isspacep, EMU_CTL_NONE);
    op->a.d = dst.at;
    op->a.s[0] = s;
    op->space = form->space;
    op->flags = mg_form_has(form, MG_MOD_shared__cluster) ? EMU_OF_CLUSTER : 0;
}

/* ---- warp operations and barriers ---------------------------------------------------------------- */

static uint32_t pred_src(struct decoder *d, const struct mg_opnd *o, uint32_t *flip)
{
    *flip = 0;
    if (o->kind == MG_OPND_not) {
        *flip = UINT32_MAX;
        return dec_reg(d, o);
    }
    return dec_src(d, o, EMU_P, MG_TYPE_pred);
}

static void warp_operation(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n)
{
    struct emu_op info = {0};
    enum emu_opcode opcode = emu_warpop_find(form, &info);
    if (!opcode && !info.ctl) dec_refuse(d, "unsupported instruction");
    bool sync = info.ctl == EMU_CTL_SYNC, has_dst = form->op != MG_OP_bar;
    if (n < (has_dst ? 1u : 0u) + sync) dec_refuse(d, "too few operands");
    enum emu_class dc = EMU_W, sc = EMU_W;
    uint32_t s[3] = {0}, flip = 0, members = 0, n_src = n - has_dst - sync;
    enum mg_type st = MG_TYPE_u32;
    if (form->op == MG_OP_vote) {
        if (!mg_form_has(form, MG_MOD_ballot)) dc = EMU_P;
        s[0] = pred_src(d, &o[1], &flip);
        n_src = 0;
    }
    if (form->op == MG_OP_match && info.type == MG_TYPE_b64) sc = EMU_D, st = MG_TYPE_u64;
    if (n_src > 3) dec_refuse(d, "too many operands");
    for (unsigned i = 0; i < n_src; i++) s[i] = dec_src(d, &o[has_dst + i], i ? EMU_W : sc, i ? MG_TYPE_u32 : st);
    if (sync) members = dec_src(d, &o[n - 1], EMU_W, MG_TYPE_b32);
    uint32_t d1 = 0, d2 = 0;
    if (has_dst) {
        const struct mg_opnd *a = &o[0], *b = NULL;
        if (o[0].kind == MG_OPND_pair) a = list_at(d, &o[0]), b = a + 1;
        d1 = dest_of(d, a, dc).at;
        if (b && b->kind != MG_OPND_sink) d2 = dest_of(d, b, EMU_P).at;
    }
    const struct emu_def *defined = dec_defined_warp(d, form, o, n);
    if (sync) dec_check_after(d, EMU_OP_check_members, &(struct emu_op){.a.cc = members}); /* in front of it */
    struct emu_op *op = dec_emit_inst(d, opcode, sync ? EMU_CTL_SYNC : EMU_CTL_NONE);
    op->ext = defined;
    op->sub = info.sub;
    op->mode = info.mode;
    op->type = info.type;
    op->a.d = d1;
    op->a.d2 = d2;
    memcpy(op->a.s, s, sizeof s);
    op->a.imm = flip;
    if (form->op == MG_OP_redux)
        op->a.imm = (mg_form_has(form, MG_MOD_abs) ? 1 : 0) | (mg_form_has(form, MG_MOD_nan) ? 2 : 0);
    op->a.cc = members;
    if (sync) dec_check_after(d, EMU_OP_check_synced, &(struct emu_op){0});
}

static void barrier(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n)
{
    bool red = mg_form_has(form, MG_MOD_red), arrive = mg_form_has(form, MG_MOD_arrive);
    uint32_t at = red ? 1 : 0, flip = 0, s0, s1 = 0, s2 = 0, dst = 0;
    if (n < at + 1 + red) dec_refuse(d, "too few operands");
    s0 = dec_src(d, &o[at], EMU_W, MG_TYPE_u32);
    if (n > at + 1 + red) s1 = dec_src(d, &o[at + 1], EMU_W, MG_TYPE_u32);
    bool popc = mg_form_has(form, MG_MOD_popc);
    if (red) {
        s2 = pred_src(d, &o[n - 1], &flip);
        dst = dest_of(d, &o[0], popc ? EMU_W : EMU_P).at;
    }
    struct emu_op *op = dec_emit_inst(d, EMU_OP_none, EMU_CTL_BAR);
    op->sub = red ? EMU_BAR_RED : arrive ? EMU_BAR_ARRIVE : EMU_BAR_SYNC;
    op->type = red && !popc ? MG_TYPE_pred : MG_TYPE_u32;
    op->mode = mg_form_has(form, MG_MOD_and) ? 1 : 0;
    op->a.s[0] = s0;
    op->a.s[1] = s1;
    op->a.s[2] = s2;
    op->a.d = dst;
    op->a.imm = flip;
    op->site = dec_check_site(d);
}

/* ---- control -------------------------------------------------------------------------------------- */

static void branch(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n)
{
    if (form->op == MG_OP_brx) {
        if (n != 2 || o[1].kind != MG_OPND_target) dec_refuse(d, "unsupported branch table");
        const struct mg_target *t = &d->m->targets.at[o[1].id];
        uint32_t s = dec_src(d, &o[0], EMU_W, MG_TYPE_u32);
        const struct emu_op **table = mg_arena_array(&d->code->arena, const struct emu_op *, t->n_opnds + 1);
        for (uint32_t k = 0; k < t->n_opnds; k++)
            table[k] = DEC_BLOCK(dec_label_block(d, d->m->opnds.at[t->first_opnd + k].id));
        struct emu_op *op = dec_emit_inst(d, EMU_OP_none, EMU_CTL_BRX);
        op->a.s[0] = s;
        op->a.imm = t->n_opnds;
        op->ext = table;
        op->fall = op->target = DEC_BLOCK(dec_next_block(d));
        return;
    }
    if (n != 1 || o[0].kind != MG_OPND_label) dec_refuse(d, "unsupported branch");
    uint32_t to = dec_label_block(d, o[0].id);
    struct emu_op *op = dec_emit_inst(d, EMU_OP_none, EMU_CTL_BRA);
    op->fall = DEC_BLOCK(dec_next_block(d));
    op->sub = dec_is_probe(d, d->m->labels.at[o[0].id].node); /* costs no turns: docs/schedule.md */
    bool enters = to < d->cfg->n_blocks && d->cfg->rank[to] > d->cfg->rank[d->block] && dec_falls_in(d, o[0].id);
    op->target = enters ? DEC_IN_FRONT(to) : DEC_BLOCK(to);
}

static void leave(struct decoder *d, enum emu_ctl ctl)
{
    struct emu_op *op = dec_emit_inst(d, EMU_OP_none, ctl);
    op->fall = op->target = DEC_BLOCK(dec_next_block(d));
}

/* Arguments or results as written at the call. */
static struct emu_arg *actuals(struct decoder *d, const struct mg_opnd *list, const struct mg_func *formal, bool rets,
                               uint32_t *n)
{
    *n = list ? list->n : 0;
    struct emu_arg *out = mg_arena_array(&d->code->arena, struct emu_arg, *n + 1);
    for (uint32_t k = 0; k < *n; k++) {
        struct mg_opnd e = d->m->opnds.at[list->id + k];
        struct emu_arg *a = &out[k];
        if (e.kind == MG_OPND_var && d->m->vars.at[e.id].space == MG_SPACE_param) {
            a->bytes = (uint32_t)mg_var_bytes(&d->m->vars.at[e.id]);
            a->from = a->to = dec_local(d, e.id);
            continue;
        }
        if (e.kind == MG_OPND_sink) {
            a->from_reg = a->to_reg = 1;
            a->from_class = a->to_class = EMU_W;
            a->from = a->to = d->trash;
            a->bytes = 4;
            continue;
        }
        enum mg_type t = MG_TYPE_u32;
        if (formal && k < (rets ? formal->n_rets : formal->n_params))
            t = d->m->vars.at[(rets ? formal->first_ret : formal->first_param) + k].type;
        if (e.kind == MG_OPND_reg) t = d->m->regs.at[e.id].type;
        enum emu_class c = dec_class(t);
        a->from_reg = a->to_reg = 1;
        a->from_class = a->to_class = (uint8_t)c;
        a->from = a->to = rets ? dec_reg(d, &e) : dec_src(d, &e, c, t);
        a->bytes = c == EMU_P ? 1 : MG_MAX(mg_type_bits(t) / 8, 1);
    }
    return out;
}

void dec_call(struct decoder *d, const struct mg_opnd *o, uint32_t n)
{
    const struct mg_opnd *rets = NULL, *args = NULL, *callee = NULL, *proto = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (o[i].kind == MG_OPND_list)
            *(callee ? &args : &rets) = &o[i];
        else if (o[i].kind == MG_OPND_target)
            proto = &o[i];
        else if (!callee)
            callee = &o[i];
    }
    if (!callee) dec_refuse(d, "call of nothing");
    const struct mg_func *formal = NULL;
    enum emu_ctl ctl = EMU_CTL_CALLI;
    struct emu_call *call = mg_arena_new(&d->code->arena, struct emu_call);
    enum emu_builtin builtin = EMU_BUILTIN_NONE;
    if (callee->kind == MG_OPND_func) {
        mg_id f = d->m->funcs.at[callee->id].def ? d->m->funcs.at[callee->id].def : callee->id;
        formal = &d->m->funcs.at[f];
        if (formal->defined) {
            ctl = EMU_CTL_CALL;
            call->callee = dec_callee(d, f);
        } else {
            builtin = emu_builtin_find(mg_name(d->m, formal->name));
            if (!builtin) dec_refuse(d, "call of %s, which is defined nowhere", mg_name(d->m, formal->name));
            ctl = EMU_CTL_BUILTIN;
        }
    } else if (callee->kind == MG_OPND_reg) {
        if (proto && d->m->targets.at[proto->id].kind == MG_TARGET_proto)
            formal = &d->m->funcs.at[d->m->targets.at[proto->id].proto];
        call->target = dec_src(d, callee, EMU_D, MG_TYPE_u64);
    } else
        dec_refuse(d, "unsupported call");
    call->actual_in = actuals(d, args, formal, false, &call->n_in);
    call->actual_out = actuals(d, rets, formal, true, &call->n_out);
    if (builtin) dec_defined_results(d, call);
    struct emu_op *op = dec_emit_inst(d, EMU_OP_none, ctl);
    op->sub = builtin;
    op->ext = call;
    op->fall = op->target = DEC_BLOCK(dec_next_block(d));
}

/* alloca d, size{, align}; stacksave d; stackrestore a: sizes and addresses are of one type */
static void stack(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n)
{
    enum mg_type t = form->n_types ? form->types[0] : MG_TYPE_u64;
    enum emu_class c = dec_class(t);
    bool restores = form->op == MG_OP_stackrestore, allocates = form->op == MG_OP_alloca;
    uint64_t align = allocates && n > 2 ? dec_imm(d, &o[2], MG_TYPE_u64) : 8;
    if (n < (allocates ? 2u : 1u)) dec_refuse(d, "too few operands");
    if (!align || align & (align - 1) || align > 4096) dec_refuse(d, "unsupported alignment");
    uint32_t s = restores ? dec_src(d, &o[0], c, t) : allocates ? dec_src(d, &o[1], c, t) : 0;
    struct dest to = {0};
    if (!restores) to = dest_of(d, &o[0], c);
    if (to.widen) dec_refuse(d, "destination register of another size");
    struct emu_op *op = dec_emit_inst(d,
                                      restores    ? EMU_OP_stack_restore
                                      : allocates ? EMU_OP_alloca
                                                  : EMU_OP_stack_save,
                                      EMU_CTL_NONE);
    op->a.d = to.at;
    op->a.s[0] = s;
    op->a.imm = (uint32_t)align;
    if (c == EMU_D) op->flags |= EMU_OF_WIDE;
    d->code->allocates = true;
    if (!d->fn->stack_slot) d->fn->stack_slot = dec_slot(d, EMU_W);
}

/* ---- one instruction ------------------------------------------------------------------------------ */

void dec_instruction(struct decoder *d, mg_id node)
{
    const struct mg_node *n = &d->m->nodes.at[node];
    const struct mg_form *form = mg_node_form(d->m, n);
    const struct mg_opnd *o = &d->m->opnds.at[n->opnd];
    if (dec_fused(d, node) || dec_async(d, form, o, n->n_opnds) || dec_matrix(d, form, o, n->n_opnds)) return;
    switch ((enum mg_op)form->op) {
    case MG_OP_mov:
        move(d, form, o, n->n_opnds);
        break;
    case MG_OP_ld:
    case MG_OP_ldu:
    case MG_OP_st:
    case MG_OP_atom:
    case MG_OP_red:
        dec_memory(d, form, o, n->n_opnds);
        break;
    case MG_OP_tex:
    case MG_OP_tld4:
    case MG_OP_txq:
    case MG_OP_suq:
    case MG_OP_suld:
    case MG_OP_sust:
    case MG_OP_sured:
        dec_texture(d, form, o, n->n_opnds);
        break;
    case MG_OP_cvta:
        cvta(d, form, o);
        break;
    case MG_OP_isspacep:
        isspacep(d, form, o);
        break;
    case MG_OP_bra:
    case MG_OP_brx:
        branch(d, form, o, n->n_opnds);
        break;
    case MG_OP_ret:
        leave(d, EMU_CTL_RET);
        break;
    case MG_OP_exit:
        leave(d, EMU_CTL_EXIT);
        break;
    case MG_OP_trap:
        leave(d, EMU_CTL_TRAP);
        break;
    case MG_OP_call:
        dec_call(d, o, n->n_opnds);
        break;
    case MG_OP_bar:
        if (mg_form_has(form, MG_MOD_sync) && mg_form_has(form, MG_MOD_warp))
            warp_operation(d, form, o, n->n_opnds);
        else
            barrier(d, form, o, n->n_opnds);
        break;
    case MG_OP_barrier:
        barrier(d, form, o, n->n_opnds);
        break;
    case MG_OP_activemask:
    case MG_OP_shfl:
    case MG_OP_vote:
    case MG_OP_match:
    case MG_OP_redux:
    case MG_OP_elect:
        warp_operation(d, form, o, n->n_opnds);
        break;
    case MG_OP_membar:
    case MG_OP_fence:
        dec_emit_inst(d, EMU_OP_fence, EMU_CTL_NONE);
        dec_race_fence(d, form);
        break;
    case MG_OP_griddepcontrol: /* every launch waits for the one before: nothing is left to wait for */
        dec_emit_inst(d, EMU_OP_nop, EMU_CTL_NONE);
        break;
    case MG_OP_alloca:
    case MG_OP_stacksave:
    case MG_OP_stackrestore:
        stack(d, form, o, n->n_opnds);
        break;
    case MG_OP_cells:
        dec_cells(d, o, n->n_opnds);
        break;
    case MG_OP_count_request:
        dec_request(d, o, n->n_opnds);
        break;
    case MG_OP_count_carried:
        dec_carried(d, o, n->n_opnds);
        break;
    case MG_OP_nanosleep:
        dec_emit_inst(d, EMU_OP_nanosleep, EMU_CTL_NONE);
        break;
    case MG_OP_prefetch:
    case MG_OP_prefetchu:
    case MG_OP_discard:
    case MG_OP_applypriority:
    case MG_OP_pmevent:
    case MG_OP_brkpt:
        dec_emit_inst(d, EMU_OP_nop, EMU_CTL_NONE);
        break;
    case MG_OP_createpolicy: { /* a hint that nothing here reads */
        uint32_t zero = dec_const(d, EMU_D, 0);
        struct dest to = dest_of(d, &o[0], EMU_D);
        struct emu_op *op = dec_emit_inst(d, EMU_OP_mov_d, EMU_CTL_NONE);
        op->a.d = to.at;
        op->a.s[0] = zero;
        break;
    }
    default:
        arithmetic(d, form, o, n->n_opnds);
        break;
    }
}
