/* Counting in scheme register, and adding what one lane has counted to memory. */
#include "count/regs.h"

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)
#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)
#define ONE 0x3ff0000000000000  /* doubles: 1 and 2^52 */
#define BIAS 0x4330000000000000
#define MOST_UNROLLED 48 /* words of local memory that are zeroed one by one */

mg_id mg_rc_temp(struct mg_rfunc *f, mg_id *at, const char *name, enum mg_type type)
{
    if (!*at) *at = mg_emit_reg(&f->x, name, type);
    return *at;
}

mg_id mg_rc_t32(struct mg_rfunc *f, unsigned i) { return mg_rc_temp(f, &f->t.b32[i], "__mg_t", MG_TYPE_b32); }
mg_id mg_rc_t64(struct mg_rfunc *f, unsigned i) { return mg_rc_temp(f, &f->t.b64[i], "__mg_d", MG_TYPE_b64); }
mg_id mg_rc_temp64(struct mg_rfunc *f) { return mg_rc_t64(f, 0); }
mg_id mg_rc_tp(struct mg_rfunc *f, unsigned i) { return mg_rc_temp(f, &f->t.p[i], "__mg_p", MG_TYPE_pred); }

mg_id mg_rc_label(struct mg_rfunc *f)
{
    mg_id label = mg_module_add_label(f->x.m, f->x.func, "$__mg_flush");
    f->x.m->labels.at[label].targeted = 1;
    return label;
}

void mg_rc_put_label(struct mg_rfunc *f, mg_id label)
{
    mg_node_insert_before(f->x.m, f->x.func, f->x.at, mg_node_new_kind(f->x.m, MG_NODE_label, label));
}

void mg_rc_branch(struct mg_rfunc *f, mg_id p, bool not_p, mg_id label)
{
    struct mg_emit *x = &f->x;
    mg_emit_guard(x, p, not_p);
    EMIT("bra", mg_o_label(label));
    mg_emit_guard(x, 0, false);
}

void mg_rc_one(struct mg_rfunc *f, mg_id d)
{
    struct mg_emit *x = &f->x;
    EMIT("mov.u32", R(d), mg_o_sreg(MG_SREG_ntid, 1));
    EMIT("min.u32", R(d), R(d), I(1));
}

mg_id mg_rc_local(struct mg_rfunc *f, const struct mg_rc *c, int64_t *off)
{
    uint32_t at = c->slot - f->n_bits - f->n_words;
    *off = c->kind == MG_RC_LOCAL ? 8 * (int64_t)at : 7 * (int64_t)f->n_locals + at;
    return f->local_reg;
}

int64_t mg_rc_zero(const struct mg_rc *c) { return c->real ? BIAS : 0; }

void mg_rc_unreal(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->counters[i].real) EMIT("sub.s64", R(f->counters[i].reg), R(f->counters[i].reg), I(BIAS));
}

/* ---- counting --------------------------------------------------------------------------------------- */

void mg_rc_add_carry(struct mg_rfunc *f, uint32_t counter, struct mg_opnd n)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    mg_id p = mg_rc_tp(f, 0), big = mg_rc_t64(f, 0), guard = x->guard;
    bool one = n.kind == MG_OPND_imm, not_guard = x->guard_not;
    EMIT("add.u32", R(c->reg), R(c->reg), n);
    mg_emit_guard(x, 0, false);
    if (!guard) EMIT(one ? "setp.eq.u32" : "setp.lt.u32", R(p), R(c->reg), one ? I(0) : n);
    else EMIT(one ? "setp.eq.and.u32" : "setp.lt.and.u32", R(p), R(c->reg), one ? I(0) : n, not_guard ? mg_o_not(guard) : R(guard));
    EMIT("mov.u64", R(big), I((int64_t)1 << 32));
    mg_emit_guard(x, p, false);
    EMIT("red.global.add.u64", mg_o_addr_reg(x->ctx, MG_CTX_BYTES + 8 * ((int64_t)f->at + c->slot)), R(big));
    mg_emit_guard(x, guard, not_guard);
}

void mg_rc_event(struct mg_rfunc *f, uint32_t counter, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    int64_t off;
    x->at = s.at;
    mg_emit_guard(x, s.guard, s.guard_not);
    switch (c->kind) {
    case MG_RC_BIT: EMIT("or.b32", R(c->reg), R(c->reg), I((int64_t)1 << c->bit)); break;
    case MG_RC_FEW: case MG_RC_FIELD: EMIT("add.u32", R(c->reg), R(c->reg), I((int64_t)1 << c->bit)); break;
    case MG_RC_32: EMIT("add.u32", R(c->reg), R(c->reg), I(1)); break;
    case MG_RC_CARRY: mg_rc_add_carry(f, counter, I(1)); break;
    case MG_RC_64:
        if (c->real) EMIT("add.f64", R(c->reg), R(c->reg), (struct mg_opnd){.kind = MG_OPND_f64, .val = ONE});
        else EMIT("add.u64", R(c->reg), R(c->reg), I(1));
        break;
    case MG_RC_LOCAL: {
        mg_id base = mg_rc_local(f, c, &off), v = mg_rc_t64(f, 0);
        EMIT("ld.local.u64", R(v), mg_o_addr_reg(base, off));
        EMIT("add.u64", R(v), R(v), I(1));
        EMIT("st.local.u64", mg_o_addr_reg(base, off), R(v));
        break;
    }
    case MG_RC_FLAG: {
        mg_id base = mg_rc_local(f, c, &off);
        EMIT("st.local.u8", mg_o_addr_reg(base, off), I(1));
        EMIT("mov.u32", R(f->flagged), I(1));
        break;
    }
    case MG_RC_SHARED: mg_shared_event(f, c); break;
    case MG_RC_ALONE: mg_alone_event(f, c); break;
    }
    mg_emit_guard(x, 0, false);
}

/* A loop over the local array: i from 0, address in mg_rc_t64(1). */
mg_id mg_rc_begin_locals(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    mg_id again = mg_rc_label(f);
    EMIT("mov.u64", R(mg_rc_t64(f, 1)), I(0));
    mg_rc_put_label(f, again);
    EMIT("add.u64", R(mg_rc_t64(f, 2)), R(f->local_reg), R(mg_rc_t64(f, 1)));
    return again;
}

void mg_rc_end_locals(struct mg_rfunc *f, mg_id again, uint32_t n_words)
{
    struct mg_emit *x = &f->x;
    EMIT("add.u64", R(mg_rc_t64(f, 1)), R(mg_rc_t64(f, 1)), I(8));
    EMIT("setp.lt.u64", R(mg_rc_tp(f, 0)), R(mg_rc_t64(f, 1)), I(8 * (int64_t)n_words));
    mg_rc_branch(f, mg_rc_tp(f, 0), false, again);
}

void mg_rc_clear(struct mg_rfunc *f, const uint64_t *set)
{
    struct mg_emit *x = &f->x;
    for (uint32_t k = 0; k < f->n_banks; k++) EMIT("mov.u32", R(f->banks[k]), I(0));
    if (f->n_few) EMIT("mov.u32", R(f->few), I(0));
    for (uint32_t i = 0; i < f->n; i++) {
        const struct mg_rc *c = &f->counters[i];
        if (!mg_rc_in(set, i)) continue;
        if (c->kind == MG_RC_32 || c->kind == MG_RC_CARRY || (c->kind == MG_RC_FIELD && !c->bit)) EMIT("mov.u32", R(c->reg), I(0));
        else if (c->kind == MG_RC_64) EMIT("mov.u64", R(c->reg), I(mg_rc_zero(c)));
        else if (c->kind == MG_RC_LOCAL && set) { /* in front of a call: no branch */
            int64_t off;
            mg_id base = mg_rc_local(f, c, &off);
            EMIT("st.local.u64", mg_o_addr_reg(base, off), I(0));
        } else if (c->kind == MG_RC_FLAG && set) {
            int64_t off;
            mg_id base = mg_rc_local(f, c, &off);
            EMIT("st.local.u8", mg_o_addr_reg(base, off), I(0));
        }
    }
    if (set || !f->local) return;
    EMIT("mov.u64", R(f->local_reg), (struct mg_opnd){.kind = MG_OPND_var, .id = f->local});
    if (f->n_cuts) EMIT("mov.u32", R(f->row), I(0));
    if (f->n_flags) EMIT("mov.u32", R(f->flagged), I(0));
    const uint32_t n_words = f->n_locals + (f->n_flags + 7) / 8;
    for (uint32_t i = 0; i < n_words && n_words <= MOST_UNROLLED; i++) EMIT("st.local.u64", mg_o_addr_reg(f->local_reg, 8 * (int64_t)i), I(0));
    if (n_words <= MOST_UNROLLED) return;
    mg_id again = mg_rc_begin_locals(f);
    EMIT("st.local.u64", mg_o_addr_reg(mg_rc_t64(f, 2), 0), I(0));
    mg_rc_end_locals(f, again, n_words);
}

/* ---- lane by lane ------------------------------------------------------------------------------------ */

/* Counter c of this lane to [base + 8 * slot], for lanes with the guard. */
void mg_rc_add_lane(struct mg_rfunc *f, const struct mg_rc *c, mg_id base, mg_id guard)
{
    struct mg_emit *x = &f->x;
    mg_id p = mg_rc_tp(f, 1), wide = mg_rc_t64(f, 0), bit = mg_rc_t32(f, 7);
    struct mg_opnd to = mg_o_addr_reg(base, 8 * (int64_t)c->slot), v = R(wide);
    int64_t off;
    switch (c->kind) {
    case MG_RC_BIT:
        EMIT("and.b32", R(bit), R(c->reg), I((int64_t)1 << c->bit));
        EMIT("setp.ne.u32", R(p), R(bit), I(0));
        v = I(1);
        break;
    case MG_RC_32: case MG_RC_CARRY:
        EMIT("setp.ne.u32", R(p), R(c->reg), I(0));
        EMIT("cvt.u64.u32", R(wide), R(c->reg));
        break;
    case MG_RC_FEW: case MG_RC_FIELD:
        EMIT("bfe.u32", R(bit), R(c->reg), I(c->bit), I(c->width));
        EMIT("setp.ne.u32", R(p), R(bit), I(0));
        EMIT("cvt.u64.u32", R(wide), R(bit));
        break;
    case MG_RC_64:
        EMIT("setp.ne.u64", R(p), R(c->reg), I(0));
        v = R(c->reg);
        break;
    case MG_RC_LOCAL: {
        mg_id at = mg_rc_local(f, c, &off);
        EMIT("ld.local.u64", R(wide), mg_o_addr_reg(at, off));
        EMIT("setp.ne.u64", R(p), R(wide), I(0));
        break;
    }
    case MG_RC_FLAG: {
        mg_id at = mg_rc_local(f, c, &off);
        EMIT("ld.local.u8", R(bit), mg_o_addr_reg(at, off));
        EMIT("setp.ne.u32", R(p), R(bit), I(0));
        v = I(1);
        break;
    }
    case MG_RC_SHARED: return; /* functions with such counters add by warps */
    case MG_RC_ALONE: return;
    }
    if (guard) EMIT("and.pred", R(p), R(p), R(guard));
    mg_emit_guard(x, p, false);
    EMIT("red.global.add.u64", to, v);
    mg_emit_guard(x, 0, false);
}

static void add_lanes(struct mg_rfunc *f, const uint64_t *set, uint32_t n, uint32_t at, mg_id guard)
{
    struct mg_emit *x = &f->x;
    mg_id base = mg_rc_t64(f, 3);
    EMIT("add.u64", R(base), R(x->ctx), I(MG_CTX_BYTES + 8 * (int64_t)at));
    for (uint32_t i = 0; i < n; i++)
        if (mg_rc_in(set, i)) mg_rc_add_lane(f, &f->counters[i], base, guard);
}

bool mg_rc_in_scope(const struct mg_rfunc *f, mg_id node)
{
    uint32_t depth = 0;
    MG_EACH_NODE(f->x.m, &f->x.m->funcs.at[f->x.func], id) {
        if (id == node) return depth != 0;
        depth += f->x.m->nodes.at[id].kind == MG_NODE_open;
        depth -= f->x.m->nodes.at[id].kind == MG_NODE_close && depth;
    }
    return false;
}

struct mg_apart mg_rc_begin_apart(struct mg_rfunc *f, mg_id p)
{
    struct mg_emit *x = &f->x;
    struct mg_apart a = {.at = x->at, .back = mg_rc_label(f), .inside = !x->at || mg_rc_in_scope(f, x->at)};
    mg_id there = a.inside ? a.back : mg_rc_label(f);
    mg_rc_branch(f, p, a.inside, there);
    if (a.inside) return a;
    mg_rc_put_label(f, a.back);
    x->at = 0;
    mg_rc_put_label(f, there);
    return a;
}

void mg_rc_end_apart(struct mg_rfunc *f, struct mg_apart a)
{
    if (a.inside) mg_rc_put_label(f, a.back);
    else mg_rc_branch(f, 0, false, a.back);
    f->x.at = a.at;
}

void mg_rc_end_apart_at(struct mg_rfunc *f, struct mg_apart a, mg_id done)
{
    if (a.inside) mg_rc_branch(f, 0, false, done);
    else a.back = done;
    mg_rc_end_apart(f, a);
}

/* Is this lane the cohort's first? */
mg_id mg_rc_lead(struct mg_rfunc *f, const struct mg_rcohort *q)
{
    struct mg_emit *x = &f->x;
    mg_id lead = mg_rc_tp(f, 4), t = mg_rc_t32(f, 6);
    if (q->flag == UINT32_MAX) {
        EMIT("mov.u32", R(t), mg_o_sreg(MG_SREG_laneid, 0));
        EMIT("setp.eq.u32", R(lead), R(t), I(0));
    } else {
        EMIT("and.b32", R(t), R(f->counters[q->flag].reg), I((int64_t)1 << f->counters[q->flag].bit));
        EMIT("setp.ne.u32", R(lead), R(t), I(0));
    }
    return lead;
}

/* First lanes of cohorts add once more, to counters of their own. */
static void add_cohorts(struct mg_rfunc *f, const uint64_t *set, mg_id guard)
{
    struct mg_emit *x = &f->x;
    for (uint32_t k = 0; k < f->n_cohorts; k++) {
        const struct mg_rcohort *q = &f->cohorts[k];
        mg_id lead = mg_rc_lead(f, q), skip = 0;
        if (guard) {
            EMIT("and.pred", R(lead), R(lead), R(guard));
        } else {
            mg_rc_branch(f, lead, true, skip = mg_rc_label(f));
            lead = 0;
        }
        add_lanes(f, set, f->n_measured, q->at, lead);
        if (skip) mg_rc_put_label(f, skip);
    }
}

void mg_rc_add_all(struct mg_rfunc *f, const uint64_t *set, mg_id guard)
{
    add_cohorts(f, set, guard);
    add_lanes(f, set, f->n, f->at, guard);
}

void mg_rc_flush_lanes(struct mg_rfunc *f, const uint64_t *set)
{
    struct mg_emit *x = &f->x;
    mg_rc_unreal(f);
    mg_id mine = mg_count_mine(x, f->o), all = mine;
    if (!mine && f->n_cohorts) { /* straight code only: a guard that always holds */
        all = mg_rc_tp(f, 3);
        EMIT("setp.eq.u32", R(all), I(0), I(0));
    }
    add_cohorts(f, set, all);
    add_lanes(f, set, f->n, f->at, mine);
}
