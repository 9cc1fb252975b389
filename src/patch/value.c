/* Values that code at a spot may use. What does not change in a function is computed at its entry;
 * the rest once at each spot, until code there branches. */
#include "patch/priv.h"

static bool ask(struct mg_patches *s)
{
    if (!s->asked) s->can_ask = mg_choose_mask(s->m, &s->ballot);
    s->asked = true;
    return s->can_ask;
}

static mg_id known(const struct mg_code_at *at, enum mg_value_kind kind, uint32_t arg, const struct mg_code_guard *g)
{
    for (uint32_t i = 0; i < at->known.n; i++) {
        const struct mg_known *k = &at->known.at[i];
        if (k->kind == kind && k->arg == arg && k->guard == (g ? g->pred : 0) && k->guard_not == (g && g->is_not))
            return k->reg;
    }
    return 0;
}

static mg_id note(struct mg_code_at *at, enum mg_value_kind kind, uint32_t arg, const struct mg_code_guard *g,
                  mg_id reg)
{
    *mg_vec_push(&at->known) =
        (struct mg_known){.kind = kind, .arg = arg, .guard = g ? g->pred : 0, .guard_not = g && g->is_not, .reg = reg};
    return reg;
}

/* ---- of the function ------------------------------------------------------------------------------------- */

static mg_id sreg32(struct mg_code_at *pro, enum mg_sreg s, uint8_t part)
{
    mg_id r = mg_code_reg(pro, MG_TYPE_b32);
    MG_PURE(pro, "mov.u32", r, mg_o_sreg(s, part));
    return r;
}

static mg_id linear_tid(struct mg_code_at *pro)
{
    mg_id t = sreg32(pro, MG_SREG_tid, 3), n = sreg32(pro, MG_SREG_ntid, 2), y = sreg32(pro, MG_SREG_tid, 2);
    mg_id nx = sreg32(pro, MG_SREG_ntid, 1), x = sreg32(pro, MG_SREG_tid, 1);
    MG_PURE(pro, "mad.lo.u32", t, t, n, y);
    MG_PURE(pro, "mad.lo.u32", t, t, nx, x);
    return t;
}

static mg_id linear_cta(struct mg_code_at *pro)
{
    mg_id z = sreg32(pro, MG_SREG_ctaid, 3), ny = sreg32(pro, MG_SREG_nctaid, 2), y = sreg32(pro, MG_SREG_ctaid, 2);
    mg_id nx = sreg32(pro, MG_SREG_nctaid, 1), x = sreg32(pro, MG_SREG_ctaid, 1), l = mg_code_reg(pro, MG_TYPE_b64),
          w = mg_code_reg(pro, MG_TYPE_b64);
    MG_PURE(pro, "mad.lo.u32", z, z, ny, y); /* grids are at most 65535 high and deep */
    MG_PURE(pro, "mul.wide.u32", l, z, nx);
    MG_PURE(pro, "cvt.u64.u32", w, x);
    MG_PURE(pro, "add.u64", l, l, w);
    return l;
}

static mg_id always(struct mg_code_at *pro)
{
    mg_id p = mg_code_reg(pro, MG_TYPE_pred), t = mg_code_reg(pro, MG_TYPE_b32);
    MG_PURE(pro, "mov.u32", t, 0);
    MG_PURE(pro, "setp.eq.u32", p, t, 0);
    return p;
}

static mg_id load_word(struct mg_code_at *pro, uint32_t word)
{
    mg_id r = mg_code_reg(pro, MG_TYPE_b64), ctx = pro->p->all->twin->ctx_reg[pro->func_ix];
    if (word >= pro->p->region->n_launch_words)
        mg_patch_refuse(pro->p, MG_ERR_STATE, "word %u was not reserved", (unsigned)word);
    MG_PURE(pro, "ld.global.u64", r,
            mg_o_addr_reg(ctx, MG_CTX_WORDS + 8 * (int64_t)(pro->p->region->first_word + word)));
    return r;
}

static mg_id load_param(struct mg_code_at *pro, uint32_t ix)
{
    struct mg_module *m = mg_at_module(pro);
    const struct mg_twin *t = pro->p->all->twin;
    const struct mg_func *f = &m->funcs.at[t->kernel];
    mg_id r = mg_code_reg(pro, MG_TYPE_b64);
    const struct mg_var *v = ix + 1 < f->n_params ? &m->vars.at[f->first_param + ix] : NULL; /* the last is ours */
    unsigned bits = v ? mg_type_bits((enum mg_type)v->type) : 0;
    if (pro->func_ix || !v || v->n_dims || v->vec || (bits != 8 && bits != 16 && bits != 32 && bits != 64)) {
        MG_PURE(pro, "mov.u64", r, 0);
        return r;
    }
    struct mg_opnd from = mg_o_addr_var(f->first_param + ix, 0);
    if (bits == 64) {
        MG_PURE(pro, "ld.param.u64", r, from);
        return r;
    }
    mg_id narrow = mg_code_reg(pro, bits == 32 ? MG_TYPE_b32 : MG_TYPE_b16);
    MG_PURE(pro, bits == 32 ? "ld.param.u32" : bits == 16 ? "ld.param.u16" : "ld.param.u8", narrow, from);
    MG_PURE(pro, bits == 32 ? "cvt.u64.u32" : "cvt.u64.u16", r, narrow);
    return r;
}

static mg_id of_function(struct mg_code_at *at, enum mg_value_kind kind, uint32_t arg)
{
    struct mg_code_at *pro = !at->called ? mg_at_prologue(at->p, at->func_ix) : at->begin ? at->begin : at;
    mg_id r = known(pro, kind, arg, NULL);
    if (r) return r;
    switch (kind) {
    case MG_V_LANE:
        r = sreg32(pro, MG_SREG_laneid, 0);
        break;
    case MG_V_LT:
        r = sreg32(pro, MG_SREG_lanemask_lt, 0);
        break;
    case MG_V_EQ:
        r = sreg32(pro, MG_SREG_lanemask_eq, 0);
        break;
    case MG_V_SM:
        r = sreg32(pro, MG_SREG_smid, 0);
        break;
    case MG_V_TID:
        r = linear_tid(pro);
        break;
    case MG_V_WARP: {
        mg_id tid = of_function(at, MG_V_TID, 0);
        r = mg_code_reg(pro, MG_TYPE_b32);
        MG_PURE(pro, "shr.u32", r, tid, 5);
        break;
    }
    case MG_V_CTA:
        r = linear_cta(pro);
        break;
    case MG_V_STRIP: {
        mg_id lane = of_function(at, MG_V_LANE, 0), base = mg_value_base(at);
        r = mg_code_reg(pro, MG_TYPE_b64);
        MG_PURE(pro, "mad.wide.u32", r, lane, 8, base);
        break;
    }
    case MG_V_TRUE:
        r = always(pro);
        break;
    case MG_V_WORD:
        r = load_word(pro, arg);
        break;
    case MG_V_PARAM:
        r = load_param(pro, arg);
        break;
    default:
        mg_unreachable();
    }
    return note(pro, kind, arg, NULL, r);
}

mg_id mg_value_lt(struct mg_code_at *at)
{
    return of_function(at, MG_V_LT, 0);
}
/* Registers that live as long as a function that is called are saved there, so that it has no second one. */
mg_id mg_value_bit(struct mg_code_at *at)
{
    if (!at->func_ix && !at->called) return of_function(at, MG_V_EQ, 0);
    mg_id r = mg_code_temp(at, MG_TYPE_b32);
    MG_PURE(at, "add.u32", r, mg_value_lt(at), 1);
    return r;
}
mg_id mg_value_strip(struct mg_code_at *at)
{
    return of_function(at, MG_V_STRIP, 0);
}
mg_id mg_value_lane(struct mg_code_at *at)
{
    return of_function(at, MG_V_LANE, 0);
}
mg_id mg_value_sm(struct mg_code_at *at)
{
    return of_function(at, MG_V_SM, 0);
}
mg_id mg_value_tid(struct mg_code_at *at)
{
    return of_function(at, MG_V_TID, 0);
}
mg_id mg_value_warp(struct mg_code_at *at)
{
    return of_function(at, MG_V_WARP, 0);
}
mg_id mg_value_cta(struct mg_code_at *at)
{
    return of_function(at, MG_V_CTA, 0);
}
mg_id mg_value_word(struct mg_code_at *at, uint32_t word)
{
    return of_function(at, MG_V_WORD, word);
}
mg_id mg_value_param(struct mg_code_at *at, uint32_t ix)
{
    return of_function(at, MG_V_PARAM, ix);
}

/* ---- of lanes ---------------------------------------------------------------------------------------------- */

static mg_id all_here(struct mg_code_at *at)
{
    mg_id r = known(at, MG_V_ALL, 0, NULL);
    if (r) return r;
    if (!ask(at->p->all))
        mg_patch_refuse(at->p, MG_ERR_UNSUPPORTED, "PTX for sm_%u has no way to ask for active lanes",
                        (unsigned)at->p->all->m->sm);
    mg_id always_true = at->p->all->ballot ? of_function(at, MG_V_TRUE, 0) : 0;
    r = mg_code_temp(at, MG_TYPE_b32);
    if (always_true)
        MG_PURE(at, "vote.ballot.b32", r, always_true);
    else
        MG_PURE(at, "activemask.b32", r);
    return note(at, MG_V_ALL, 0, NULL, r);
}

mg_id mg_value_active(struct mg_code_at *at)
{
    const struct mg_code_guard *g = mg_at_guard(at);
    if (!g->pred) return all_here(at);
    mg_id r = known(at, MG_V_ACTIVE, 0, g);
    if (r) return r;
    mg_id all = all_here(at);
    struct mg_opnd pred = g->is_not ? mg_o_not(g->pred) : mg_o_reg(g->pred);
    r = mg_code_temp(at, MG_TYPE_b32);
    if (at->p->all->ballot)
        MG_PURE(at, "vote.ballot.b32", r, pred);
    else
        MG_PURE(at, "vote.sync.ballot.b32", r, pred, all);
    return note(at, MG_V_ACTIVE, 0, g, r);
}

/* Each of the lanes is in its mask: this changes nothing but what ptxas knows (patch.h). */
mg_id mg_value_own(struct mg_code_at *at)
{
    const struct mg_code_guard *g = mg_at_guard(at);
    mg_id r = known(at, MG_V_OWN, 0, g);
    if (r) return r;
    mg_id bit = mg_value_bit(at), mask = mg_value_active(at);
    r = mg_code_temp(at, MG_TYPE_b32);
    if (g->pred && g->is_not)
        MG_PURE(at, "selp.b32", r, 0, bit, g->pred); /* others than these lanes are not in it */
    else if (g->pred)
        MG_PURE(at, "selp.b32", r, bit, 0, g->pred);
    MG_PURE(at, "or.b32", r, g->pred ? r : bit, mask);
    return note(at, MG_V_OWN, 0, g, r);
}

mg_id mg_value_own_of(struct mg_code_at *at, mg_id active)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b32);
    MG_PURE(at, "or.b32", r, mg_value_bit(at), active);
    return r;
}

mg_id mg_value_leader(struct mg_code_at *at)
{
    const struct mg_code_guard *g = mg_at_guard(at);
    mg_id r = known(at, MG_V_LEADER, 0, g);
    if (r) return r;
    mg_id lt = mg_value_lt(at), mask = mg_value_active(at), below = mg_code_temp(at, MG_TYPE_b32);
    r = mg_code_temp(at, MG_TYPE_pred);
    MG_PURE(at, "and.b32", below, lt, mask);
    if (g->pred)
        MG_PURE(at, "setp.eq.and.u32", r, below, 0, g->is_not ? mg_o_not(g->pred) : mg_o_reg(g->pred));
    else
        MG_PURE(at, "setp.eq.u32", r, below, 0);
    return note(at, MG_V_LEADER, 0, g, r);
}

mg_id mg_value_n_active(struct mg_code_at *at)
{
    const struct mg_code_guard *g = mg_at_guard(at);
    mg_id r = known(at, MG_V_N_ACTIVE, 0, g);
    if (r) return r;
    mg_id mask = mg_value_own(at);
    r = mg_code_temp(at, MG_TYPE_b32);
    MG_PURE(at, "popc.b32", r, mask);
    return note(at, MG_V_N_ACTIVE, 0, g, r);
}

/* ---- of the place ------------------------------------------------------------------------------------------- */

static mg_id read_time(struct mg_code_at *at, enum mg_sreg s)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    MG_PURE(at, "mov.u64", r, mg_o_sreg(s, 0));
    return r;
}

mg_id mg_value_clock(struct mg_code_at *at)
{
    return read_time(at, MG_SREG_clock64);
}
mg_id mg_value_globaltimer(struct mg_code_at *at)
{
    return read_time(at, MG_SREG_globaltimer);
}

mg_id mg_value_wide(struct mg_code_at *at, struct mg_opnd v)
{
    struct mg_module *m = mg_at_module(at);
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    enum mg_type type = v.kind == MG_OPND_reg && !v.sub ? (enum mg_type)m->regs.at[v.id].type : MG_TYPE_none;
    unsigned bits = mg_type_bits(type);
    switch (v.kind) {
    case MG_OPND_imm:
    case MG_OPND_f64:
        MG_PURE(at, "mov.u64", r, (int64_t)v.val);
        return r;
    case MG_OPND_f32:
        MG_PURE(at, "mov.u64", r, mg_o_imm((int64_t)(v.val & 0xffffffff)));
        return r;
    default:
        break;
    }
    if (bits == 64 && !v.val) {
        MG_PURE(at, "mov.b64", r, v);
    } else if (bits == 1) {
        MG_PURE(at, "selp.b64", r, 1, 0, v);
    } else if (bits == 32 || bits == 16) {
        mg_id bare = mg_code_temp(at, bits == 32 ? MG_TYPE_b32 : MG_TYPE_b16); /* a float's bits */
        MG_PURE(at, bits == 32 ? "mov.b32" : "mov.b16", bare, v);
        MG_PURE(at, bits == 32 ? "cvt.u64.u32" : "cvt.u64.u16", r, bare);
    } else {
        mg_patch_refuse(at->p, MG_ERR_UNSUPPORTED, "an operand that is no scalar of at most 64 bits");
    }
    return r;
}

static struct mg_opnd address_base(struct mg_code_at *at, const struct mg_opnd *o)
{
    struct mg_module *m = mg_at_module(at);
    if (o->sub == MG_OPND_reg && mg_type_bits((enum mg_type)m->regs.at[o->id].type) == 64)
        return (struct mg_opnd){.kind = MG_OPND_reg, .id = o->id, .sub = o->n & 7};
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    if (o->sub == MG_OPND_var && m->vars.at[o->id].space != MG_SPACE_param)
        MG_PURE(at, "mov.u64", r, mg_o_var(o->id));
    else
        MG_PURE(at, "mov.u64", r, 0); /* absolute, or a place among parameters */
    return mg_o_reg(r);
}

mg_id mg_value_address(struct mg_code_at *at, mg_id node)
{
    struct mg_access a;
    struct mg_module *m = mg_at_module(at);
    mg_id r = known(at, MG_V_ADDRESS, node, NULL);
    if (r) return r;
    if (!mg_access_of(m, node, &a)) {
        mg_patch_refuse(at->p, MG_ERR_STATE, "the address of an instruction that has none");
        a.addr = 0;
    }
    const struct mg_opnd o = m->opnds.at[m->nodes.at[node].opnd + a.addr];
    if (o.kind == MG_OPND_addr && o.sub == MG_OPND_reg && !o.val && !(o.n & 7) &&
        mg_type_bits((enum mg_type)m->regs.at[o.id].type) == 64)
        return o.id;
    if (o.kind == MG_OPND_addr && o.sub == MG_OPND_reg &&
        mg_type_bits((enum mg_type)m->regs.at[o.id].type) == 32) { /* wraps around at 32 bits */
        mg_id sum = mg_code_temp(at, MG_TYPE_b32);
        r = mg_code_temp(at, MG_TYPE_b64);
        MG_PURE(at, "add.s32", sum, ((struct mg_opnd){.kind = MG_OPND_reg, .id = o.id, .sub = o.n & 7}),
                mg_o_imm((int32_t)o.val));
        MG_PURE(at, "cvt.u64.u32", r, sum);
        return note(at, MG_V_ADDRESS, node, NULL, r);
    }
    struct mg_opnd base = address_base(at, &o);
    r = mg_code_temp(at, MG_TYPE_b64);
    MG_PURE(at, "add.s64", r, base, (int64_t)o.val);
    return note(at, MG_V_ADDRESS, node, NULL, r);
}
