/* What all storage classes need to write their code, and adding what one lane has counted to memory. */
#include "count/regs.h"

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

mg_id mg_rc_temp(struct mg_rfunc *f, mg_id *at, const char *name, enum mg_type type)
{
    if (!*at) *at = mg_emit_reg(&f->x, name, type);
    return *at;
}

mg_id mg_rc_t32(struct mg_rfunc *f, unsigned i)
{
    return mg_rc_temp(f, &f->t.b32[i], "__mg_t", MG_TYPE_b32);
}
mg_id mg_rc_t64(struct mg_rfunc *f, unsigned i)
{
    return mg_rc_temp(f, &f->t.b64[i], "__mg_d", MG_TYPE_b64);
}
mg_id mg_rc_temp64(struct mg_rfunc *f)
{
    return mg_rc_t64(f, 0);
}
mg_id mg_rc_tp(struct mg_rfunc *f, unsigned i)
{
    return mg_rc_temp(f, &f->t.p[i], "__mg_p", MG_TYPE_pred);
}

struct mg_opnd mg_rc_pair(struct mg_rfunc *f, mg_id low, mg_id high)
{
    struct mg_module *m = f->x.m;
    mg_id pair = mg_opnd_alloc(m, 2);
    m->opnds.at[pair] = mg_o_reg(low), m->opnds.at[pair + 1] = mg_o_reg(high);
    return (struct mg_opnd){.kind = MG_OPND_vec, .id = pair, .n = 2};
}

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
    EMIT("mov.u32", d, mg_o_sreg(MG_SREG_ntid, 1));
    EMIT("min.u32", d, d, 1);
}

void mg_rc_number_threads(struct mg_rfunc *f, mg_id i, mg_id n)
{
    struct mg_emit *x = &f->x;
    mg_id t = mg_rc_t32(f, 5);
    EMIT("mov.u32", i, mg_o_sreg(MG_SREG_tid, 3));
    EMIT("mov.u32", n, mg_o_sreg(MG_SREG_ntid, 3));
    for (uint8_t axis = 3; axis-- > 1;) {
        mg_id extent = mg_rc_t32(f, 6);
        EMIT("mov.u32", extent, mg_o_sreg(MG_SREG_ntid, axis));
        EMIT("mov.u32", t, mg_o_sreg(MG_SREG_tid, axis));
        EMIT("mad.lo.u32", i, i, extent, t);
        EMIT("mul.lo.u32", n, n, extent);
    }
}

/* ---- lane by lane ------------------------------------------------------------------------------------ */

static void add_each(struct mg_rfunc *f, const uint64_t *set, uint32_t n, mg_id base, mg_id guard)
{
    for (uint32_t i = 0; i < n; i++)
        if (mg_rc_in(set, i)) mg_rc_add_lane(f, &f->counters[i], base, guard);
}

static void add_lanes(struct mg_rfunc *f, const uint64_t *set, uint32_t n, uint32_t at, mg_id guard)
{
    struct mg_emit *x = &f->x;
    mg_id base = mg_rc_t64(f, 3);
    EMIT("add.u64", base, x->ctx, mg_o_imm(MG_CTX_BYTES + 8 * (int64_t)at));
    add_each(f, set, n, base, guard);
}

bool mg_rc_in_scope(const struct mg_rfunc *f, mg_id node)
{
    uint32_t depth = 0;
    MG_EACH_NODE(f->x.m, &f->x.m->funcs.at[f->x.func], id)
    {
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
    if (a.inside)
        mg_rc_put_label(f, a.back);
    else
        mg_rc_branch(f, 0, false, a.back);
    f->x.at = a.at;
}

void mg_rc_end_apart_at(struct mg_rfunc *f, struct mg_apart a, mg_id done)
{
    if (a.inside)
        mg_rc_branch(f, 0, false, done);
    else
        a.back = done;
    mg_rc_end_apart(f, a);
}

/* Sets p: the CTA's threads from this warp's first on are fewer than a warp's; returns this lane's number. */
static mg_id is_partial(struct mg_rfunc *f, mg_id p)
{
    struct mg_emit *x = &f->x;
    mg_id lane = mg_rc_t32(f, 6), i = mg_rc_t32(f, 7), n = mg_rc_t32(f, 8);
    mg_rc_number_threads(f, i, n);
    EMIT("mov.u32", lane, mg_o_sreg(MG_SREG_laneid, 0));
    EMIT("sub.u32", n, n, i);
    EMIT("add.u32", n, n, lane);
    EMIT("setp.lt.u32", p, n, 32);
    return lane;
}

/* Is this lane the cohort's first? Of the kernel's entry: of a warp that is not whole. */
mg_id mg_rc_lead(struct mg_rfunc *f, const struct mg_rcohort *q)
{
    struct mg_emit *x = &f->x;
    mg_id lead = mg_rc_tp(f, 4), t;
    if (mg_rc_is_entry(q)) {
        t = is_partial(f, lead);
        EMIT("setp.eq.and.u32", lead, t, 0, lead);
    } else {
        t = mg_rc_t32(f, 6);
        EMIT("and.b32", t, f->counters[q->flag].reg, (int64_t)1 << f->counters[q->flag].bit);
        EMIT("setp.ne.u32", lead, t, 0);
    }
    return lead;
}

void mg_rc_add_partial(struct mg_rfunc *f, const uint64_t *set, const struct mg_rcohort *q)
{
    struct mg_emit *x = &f->x;
    mg_id base = mg_rc_t64(f, 3), lead = mg_rc_tp(f, 4), out = mg_rc_label(f), lane = is_partial(f, lead);
    mg_rc_branch(f, lead, true, out);
    EMIT("setp.eq.u32", lead, lane, 0);
    mg_rc_address(f, base);
    EMIT("add.u64", base, base, mg_o_imm(8 * ((int64_t)q->at - (int64_t)f->at)));
    add_each(f, set, f->n_measured, base, lead);
    mg_rc_put_label(f, out);
}

uint32_t mg_rc_n_led(const struct mg_rfunc *f)
{
    return f->warps.n_cohorts - (f->warps.n_cohorts && mg_rc_is_entry(&f->warps.cohorts[0]));
}

/* First lanes of cohorts add once more, to counters of their own. */
static void add_cohorts(struct mg_rfunc *f, const uint64_t *set, mg_id guard)
{
    struct mg_emit *x = &f->x;
    for (uint32_t k = 0; k < f->warps.n_cohorts; k++) {
        const struct mg_rcohort *q = &f->warps.cohorts[k];
        mg_id lead = mg_rc_lead(f, q), skip = 0;
        if (guard) {
            EMIT("and.pred", lead, lead, guard);
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
    mg_rc_unreal(f, set);
    mg_id mine = mg_count_mine(x, f->o), all = mine;
    if (!mine && f->warps.n_cohorts) { /* straight code only: a guard that always holds */
        all = mg_rc_tp(f, 3);
        EMIT("setp.eq.u32", all, 0, 0);
    }
    add_cohorts(f, set, all);
    add_lanes(f, set, f->n, f->at, mine);
}
