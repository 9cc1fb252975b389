/* Warps of a loop of one block, counted behind it. Lanes that enter such a loop together stay together until they leave
 * it, each after rounds of its own, so that the warp enters the block as often as the lane with the most rounds:
 *
 *     on the way in      activemask m
 *     on the way out     n = redux.max of the lanes' rounds, over m;  the lowest lane of m adds n
 *
 * Lanes wait for each other on the way out, as they do behind the loop anyhow where paths join. So that no lane waits
 * for one that needs it, the loop may do nothing but compute: how long a lane stays in it must not depend on others.
 *
 * Rounds of this lane are what the counter of its threads has counted: of a loop that runs once in an activation. */
#include "count/storage/storage.h"

#include <stdlib.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

struct rounds {                 /* of one loop */
    uint32_t in_block, in, out; /* edges (out: from the block itself), and where the first comes from */
    uint32_t counter;           /* of the lane's rounds */
    bool less_one;              /* it has one less than there are */
};

/* Nothing in it that others can see or change, nor is done by lanes together. */
static bool only_computes(const struct mg_rfunc *f, uint32_t b)
{
    const struct mg_module *m = f->x.c->m;
    const struct mg_block *k = &f->x.c->blocks[b];
    for (mg_id id = k->first;; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_inst && !(n->flags & MG_NF_META)) {
            const struct mg_form *form = mg_node_form(m, n);
            bool own = form->op == MG_OP_ld && (form->space == MG_SPACE_param || form->space == MG_SPACE_const);
            if (form->unknown || form->op_flags & (MG_OPF_ATOMIC | MG_OPF_CONVERGENT | MG_OPF_BARRIER | MG_OPF_WRITES))
                return false;
            if (form->op_flags & MG_OPF_READS && !own) return false;
        }
        if (id == k->last) return true;
    }
}

/* Entered by one edge, and left by one, to what comes later: lanes of one run are in no other meanwhile. */
static bool find_edges(const struct mg_rfunc *f, uint32_t b, struct rounds *r)
{
    const struct mg_cfg *c = f->x.c;
    const struct mg_block *k = &c->blocks[b];
    const struct mg_node *end = &c->m->nodes.at[k->last];
    uint32_t n_in = 0;
    if (k->n_succs != 2 || k->leaves || !end->guard || mg_node_form(c->m, end)->op != MG_OP_bra) return false;
    r->out = k->succ_at + (c->edges[k->succ_at] == b);
    for (uint32_t i = 0; i < k->n_preds; i++) {
        uint32_t from = c->preds[k->pred_at + i];
        for (uint32_t s = 0; s < c->blocks[from].n_succs && from != b && c->reachable[from]; s++)
            if (c->edges[c->blocks[from].succ_at + s] == b)
                r->in_block = from, r->in = c->blocks[from].succ_at + s, n_in++;
    }
    uint32_t to = c->edges[r->out];
    return b && n_in == 1 && to != b && c->rank[to] > c->rank[b] && c->rank[r->in_block] < c->rank[b] &&
           mg_edge_place(c, f->plan->freq, b, r->out) != MG_PLACE_GUARD &&
           mg_edge_place(c, f->plan->freq, r->in_block, r->in) != MG_PLACE_GUARD;
}

/* The counter that tells how often this lane went around. */
static bool find_counter(const struct mg_rfunc *f, uint32_t b, uint32_t loop, struct rounds *r)
{
    for (uint32_t i = 0; i < f->n_measured; i++) {
        const struct mg_count *k = &f->plan->list[i];
        enum mg_rc_kind kind = f->counters[i].kind;
        if (kind != MG_RC_32 && kind != MG_RC_64) continue;
        bool here = k->kind == MG_COUNT_BLOCK && k->block == b,
             again = k->kind == MG_COUNT_EDGE && k->block == b && f->x.c->edges[k->edge] == b,
             iv = k->kind == MG_COUNT_IV && f->plan->ivs->list[k->iv].loop == loop && k->one_run && !k->n_ifs;
        if (!here && !again && !iv) continue;
        if (f->counters[i].guarded) return false; /* may have been taken to memory since */
        r->counter = i;
        r->less_one = again || (iv && k->less_one && !k->restores);
        return true;
    }
    return false;
}

static bool may_count(const struct mg_rfunc *f, uint32_t b, struct rounds *r)
{
    uint32_t loop = f->plan->loops->loop_of[b];
    if (!f->redux || f->warps.ballot || f->calls.carried || f->calls.adds || f->o->scope != MG_COUNT_FULL ||
        loop == MG_NO_LOOP)
        return false;
    const struct mg_loop *l = &f->plan->loops->loops[loop];
    return l->parent == MG_NO_LOOP && l->n_blocks == 1 && !mg_storage_of(&f->counters[f->warps.counter[b]])->packed &&
           mg_storage_of(&f->counters[f->warps.counter[b]])->add &&
           f->counters[f->warps.counter[b]].kind != MG_RC_CARRY && find_edges(f, b, r) && find_counter(f, b, loop, r) &&
           only_computes(f, b);
}

/* most = the most of all lanes of the mask, of 64 bits. */
static void find_most(struct mg_rfunc *f, const struct mg_rc *c, mg_id mask, mg_id most)
{
    struct mg_emit *x = &f->x;
    mg_id low = mg_rc_t32(f, 5), high = mg_rc_t32(f, 6), top = mg_rc_t32(f, 7), p = mg_rc_tp(f, 1),
          wide = mg_rc_t64(f, 2);
    EMIT("sub.s64", most, c->reg, mg_o_imm(mg_rc_zero(c)));
    EMIT("cvt.u32.u64", low, most);
    EMIT("shr.u64", most, most, 32);
    EMIT("cvt.u32.u64", high, most);
    EMIT("redux.sync.max.u32", top, high, mask);
    EMIT("setp.eq.u32", p, high, top);
    EMIT("selp.b32", low, low, 0, p);
    EMIT("redux.sync.max.u32", low, low, mask);
    EMIT("cvt.u64.u32", most, top);
    EMIT("shl.b64", most, most, 32);
    EMIT("cvt.u64.u32", wide, low);
    EMIT("or.b64", most, most, wide);
}

bool mg_rounds_emit(struct mg_rfunc *f, uint32_t b)
{
    struct mg_emit *x = &f->x;
    struct rounds r = {0};
    if (!may_count(f, b, &r)) return false;
    const struct mg_rc *c = &f->counters[r.counter], *w = &f->counters[f->warps.counter[b]];
    bool is_wide = mg_storage_of(w)->wide || mg_rc_in_memory(w); /* else it has fewer than 2^32 */
    mg_id mask = mg_emit_reg(x, "__mg_in", MG_TYPE_b32), t = mg_rc_t32(f, 5), most = mg_rc_t32(f, 6),
          all = mg_rc_t64(f, 1);
    struct mg_spot in = mg_place_edge(&f->place, r.in_block, r.in), out = mg_place_edge(&f->place, b, r.out);
    mg_assert(!in.guard && !out.guard);
    x->at = in.at;
    EMIT("activemask.b32", mask);
    mg_rc_own(f, mask, mask, t);
    x->at = out.at;
    if (mg_storage_of(c)->wide)
        find_most(f, c, mask, all);
    else
        EMIT("redux.sync.max.u32", most, c->reg, mask);
    if (mg_storage_of(c)->wide && !is_wide) EMIT("cvt.u32.u64", most, all);
    if (!mg_storage_of(c)->wide && is_wide) EMIT("cvt.u64.u32", all, most);
    if (r.less_one) EMIT(is_wide ? "add.u64" : "add.u32", is_wide ? all : most, is_wide ? all : most, 1);
    EMIT("and.b32", t, mask, f->warps.lt);
    EMIT("setp.eq.u32", f->warps.low, t, 0);
    out.guard = f->warps.low;
    mg_emit_guard(x, out.guard, false);
    mg_storage_of(w)->add(f, f->warps.counter[b], is_wide ? all : most, is_wide, out);
    mg_emit_guard(x, 0, false);
    return true;
}
