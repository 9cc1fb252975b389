/* Loops whose accesses are recorded once, where the loop is left: rounds, and of each access first address and stride.
 *
 *   which loops     all that is recorded in them is executed once in each round, by the lanes that came into the loop,
 *                   together (analysis/uniform.h), and its address grows by a stride (tool/trace/strides.h)
 *   entered         0 rounds
 *   each round      counts, and each access keeps its address
 *   left            the last addresses tell the first ones, where the arithmetic that made them is known to be exact.
 * An index of 32 bits may have wrapped: then each round is written on its own
 *
 * Where that is not known, addresses are compared in each round: in front of its last access, with what one stride
 * makes of the round before. If any lane's is another, what was gathered is written, and this round is the first one of
 * the next record. The second round says what the strides are, if they are equal in all lanes.
 *
 * Rounds are whole ones: a loop that can be left between two of its accesses is recorded access by access, as is one
 * that calls, or holds what a lane may do alone. */
#include "tool/trace/loops.h"

#include <string.h>

#include "analysis/dom.h"
#include "analysis/indvar.h"
#include "analysis/loop.h"

enum {
    MOST_ACCESSES = 12, /* of a loop: each takes up to three registers, */
    MOST_COMPARED = 6,  /* up to six where rounds are compared */
    MOST_OUT = 2,       /* ways out: each has the code that writes */
    MOST_ROUNDS = 1 << 24
};

/* ---- which loops ------------------------------------------------------------------------------------------ */

struct finder {
    struct mg_stride_of of;
    const struct mg_cfg *c;
    const struct mg_module *m;
    const struct mg_dom *dom;
    const struct mg_loops *loops;
    const struct mg_uniform *u;
    struct mg_trace_item *items;
    uint32_t n_items, loop;
};

/* How the item's address goes: as far as it can be told, by a stride? */
static bool is_regular(const struct finder *f, struct mg_trace_item *i)
{
    i->how = mg_stride_of(&f->of, i->inst->node, &f->m->opnds.at[f->m->nodes.at[i->inst->node].opnd + i->a.addr]);
    return i->how.how != MG_STRIDE_NONE;
}

/* Do the addresses of all rounds follow from the last one's? What was widened for it is known where it is, too. */
static bool tells_rounds(const struct finder *f, const struct mg_trace_item *i)
{
    return i->how.how == MG_STRIDE_WHOLE ||
           (i->how.how == MG_STRIDE_WIDENED && mg_cfg_block_of(f->c, i->how.widens) == i->inst->block);
}

static bool has_block(const struct finder *f, uint32_t b)
{
    return mg_loops_contains(f->loops, f->loop, b);
}

static enum mg_op last_op(const struct finder *f, uint32_t b)
{
    return mg_node_form(f->m, &f->m->nodes.at[f->c->blocks[b].last])->op;
}

/* Do the same lanes run all of the loop, as one, and leave it by few ways on which code can stand? */
static bool goes_together(const struct finder *f)
{
    const struct mg_loop *l = &f->loops->loops[f->loop];
    const uint32_t cohort = f->u->cohort[l->header];
    uint32_t out = 0;
    if (l->n_headers != 1 || cohort >= f->c->n_blocks || has_block(f, cohort)) return false;
    for (uint32_t b = 0; b < f->c->n_blocks; b++) {
        const struct mg_block *k = &f->c->blocks[b];
        const bool in = has_block(f, b);
        enum mg_op op = last_op(f, b);
        if (in && (f->u->cohort[b] != cohort || f->u->at_end[b] != cohort || k->leaves || op == MG_OP_call ||
                   op == MG_OP_brx))
            return false;
        for (uint32_t i = 0; i < k->n_succs; i++) {
            uint32_t to = f->c->edges[k->succ_at + i];
            if (in && !has_block(f, to)) out++;
            if (!in && to == l->header && op == MG_OP_brx) return false;
        }
    }
    return out && out <= MOST_OUT;
}

/* Is what stands in block a (of the loop) executed in each round, and before what is in block b? */
static bool is_before(const struct finder *f, const struct mg_trace_item *a, const struct mg_trace_item *b)
{
    return a->inst->block == b->inst->block ? a < b : mg_dom_over(f->dom, a->inst->block, b->inst->block);
}

/* Gathers the loop's items in the order of a round: each one's block is passed in every round. */
static bool gather(const struct finder *f, struct mg_trace_loop *l)
{
    const uint32_t header = f->loops->loops[f->loop].header;
    const struct mg_block *h = &f->c->blocks[header];
    uint32_t accesses = 0;
    l->n = 0;
    l->compares = false;
    for (uint32_t i = 0; i < f->n_items; i++) {
        struct mg_trace_item *x = &f->items[i];
        if (x->inst->func_ix || !has_block(f, x->inst->block)) continue;
        bool fits = l->n < MG_CHANNEL_MOST_GROUP && f->loops->loop_of[x->inst->block] == f->loop && !x->one_by_one &&
                    (!x->access || is_regular(f, x));
        if (!fits || (accesses += x->access) > MOST_ACCESSES) return false;
        for (uint32_t k = 0; k < h->n_preds; k++) {
            uint32_t latch = f->c->preds[h->pred_at + k];
            if (has_block(f, latch) && !mg_dom_over(f->dom, x->inst->block, latch)) return false;
        }
        l->compares |= x->access && !tells_rounds(f, x);
        uint32_t at = l->n++;
        for (; at && is_before(f, x, &f->items[l->items[at - 1]]); at--) l->items[at] = l->items[at - 1];
        l->items[at] = i;
    }
    l->look = l->n ? l->n - 1 : 0;
    while (accesses && !f->items[l->items[l->look]].access) l->look--;
    l->accesses = accesses;
    return l->n != 0;
}

/* Is the loop left between rounds alone? */
static bool leaves_whole(const struct finder *f, const struct mg_trace_loop *l)
{
    for (uint32_t b = 0; b < f->c->n_blocks; b++) {
        const struct mg_block *k = &f->c->blocks[b];
        bool out = false;
        uint32_t done = 0;
        for (uint32_t i = 0; i < k->n_succs; i++) out |= !has_block(f, f->c->edges[k->succ_at + i]);
        if (!out || !has_block(f, b)) continue;
        for (uint32_t i = 0; i < l->n; i++) done += mg_dom_over(f->dom, f->items[l->items[i]].inst->block, b);
        if (done && done != l->n) return false;
    }
    return true;
}

struct mg_trace_loops mg_trace_find_loops(struct mg_patch *p, struct mg_trace_item *items, uint32_t n)
{
    struct finder f = {.c = mg_patch_cfg(p, 0),
                       .dom = mg_patch_dom(p, 0),
                       .loops = mg_patch_loops(p, 0),
                       .items = items,
                       .n_items = n};
    struct mg_trace_loops found = {0};
    for (uint32_t i = 0; i < n; i++) items[i].loop = UINT32_MAX;
    if (!f.loops->n_loops || !mg_channel_is_whole(p)) return found;
    f.m = f.c->m;
    f.u = mg_patch_uniform(p, 0);
    f.of = (struct mg_stride_of){f.c, f.m, f.loops, mg_patch_ssa(p, 0), f.u, 0};
    struct mg_ivs *ivs = mg_ivs_new(f.c, f.dom, f.loops);
    found.at = mg_arena_array(mg_patch_scratch(p), struct mg_trace_loop, f.loops->n_loops);
    for (f.loop = 0; f.loop < f.loops->n_loops; f.loop++) {
        struct mg_trace_loop *l = &found.at[found.n];
        l->in_func = f.of.loop = f.loop;
        if (!gather(&f, l) || !goes_together(&f) || !leaves_whole(&f, l)) continue;
        l->is_long = !l->compares && ivs->trips[f.loop] == MG_TRIPS_ANY;
        if (l->compares && l->accesses > MOST_COMPARED) continue;
        for (uint32_t i = 0; i < l->n; i++) items[l->items[i]].loop = found.n;
        found.n++;
    }
    mg_ivs_free(ivs);
    found.quiet = found.n != 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_trace_item *x = &items[i];
        bool once = !x->inst->func_ix && f.loops->loop_of[x->inst->block] == MG_NO_LOOP;
        found.quiet &= once || (x->loop != UINT32_MAX && !found.at[x->loop].compares);
    }
    return found;
}

/* ---- code --------------------------------------------------------------------------------------------------- */

struct work {
    struct mg_patch *p;
    struct mg_trace_loop *l;
    struct mg_trace_item *items;
    mg_trace_write_fn *write;
    void *user;
};

static struct mg_trace_item *item(const struct work *w, uint32_t i)
{
    return &w->items[w->l->items[i]];
}

static mg_id wide(struct mg_code_at *at)
{
    return mg_code_temp(at, MG_TYPE_b64);
}
static mg_id narrow(struct mg_code_at *at)
{
    return mg_code_temp(at, MG_TYPE_b32);
}

static void begin_rounds(const struct work *w, struct mg_code_at *at)
{
    MG_CODE(at, w->l->is_long ? "mov.u64" : "mov.u32", w->l->rounds, 0);
    for (uint32_t i = 0; w->l->compares && i < w->l->n; i++)
        if (item(w, i)->access) MG_CODE(at, "mov.u64", item(w, i)->stride, 0);
}

/* What was gathered is written, if there is anything. */
static void write_rounds(const struct work *w, struct mg_code_at *at)
{
    struct mg_trace_rounds r = {.rounds = w->l->rounds};
    mg_id some = mg_code_temp(at, MG_TYPE_pred), n = wide(at);
    MG_CODE(at, "setp.ne.u32", some, w->l->rounds, 0);
    MG_CODE(at, "cvt.u64.u32", n, w->l->rounds);
    for (uint32_t i = 0; i < w->l->n; i++) {
        if (!item(w, i)->access) continue;
        r.first[i] = wide(at);
        r.stride[i] = item(w, i)->stride;
        MG_CODE(at, "mul.lo.u64", r.first[i], item(w, i)->stride, n);
        MG_CODE(at, "sub.u64", r.first[i], item(w, i)->next, r.first[i]);
    }
    mg_code_push_guard(at, some, false);
    w->write(w->user, at, w->l, &r);
    mg_code_pop_guard(at);
}

static void jump(struct mg_code_at *at, mg_id p, bool negated, mg_id to)
{
    mg_code_push_guard(at, p, negated);
    MG_CODE(at, "bra", mg_o_label(to));
    mg_code_pop_guard(at);
}

/* Predicate: the value is that of the lowest lane, and the predicate was true. */
static void and_uniform(struct mg_code_at *at, mg_id p, mg_id value, mg_id mask, mg_id leader)
{
    mg_id high = mg_code_temp(at, MG_TYPE_b64), part = mg_code_temp(at, MG_TYPE_b32),
          lead = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "shr.u64", high, value, 32);
    for (int k = 0; k < 2; k++) {
        MG_CODE(at, "cvt.u32.u64", part, k ? high : value);
        MG_CODE(at, "shfl.sync.idx.b32", lead, part, leader, 31, mask);
        MG_CODE(at, "setp.eq.and.u32", p, part, lead, p);
    }
}

/* An address is another than the strides say, or it is the second round: in all lanes at once. */
static void take_strides_or_write(const struct work *w, struct mg_code_at *at, mg_id done)
{
    mg_id mask = mg_value_own(at), leader = mg_code_temp(at, MG_TYPE_b32), second = mg_code_temp(at, MG_TYPE_pred),
          take = mg_code_label(at), by[MG_CHANNEL_MOST_GROUP];
    MG_CODE(at, "brev.b32", leader, mask);
    MG_CODE(at, "clz.b32", leader, leader);
    MG_CODE(at, "setp.eq.u32", second, w->l->rounds, 1);
    for (uint32_t i = 0; i < w->l->n; i++) {
        if (!item(w, i)->access) continue;
        by[i] = mg_code_temp(at, MG_TYPE_b64);
        MG_CODE(at, "sub.u64", by[i], item(w, i)->now, item(w, i)->next);
        and_uniform(at, second, by[i], mask, leader);
    }
    MG_CODE(at, "vote.sync.all.pred", second, second, mask);
    jump(at, second, false, take);
    write_rounds(w, at);
    begin_rounds(w, at);
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_place(at, take);
    for (uint32_t i = 0; i < w->l->n; i++)
        if (item(w, i)->access) MG_CODE(at, "mov.u64", item(w, i)->stride, by[i]);
}

/* In front of the round's last access: all addresses are known. */
static void look(const struct work *w, struct mg_code_at *at)
{
    mg_id other = mg_code_temp(at, MG_TYPE_pred), as_expected = mg_code_label(at);
    MG_CODE(at, "setp.ge.u32", other, w->l->rounds, MOST_ROUNDS);
    for (uint32_t i = 0; i < w->l->n; i++)
        if (item(w, i)->access) MG_CODE(at, "setp.ne.or.u64", other, item(w, i)->now, item(w, i)->next, other);
    MG_CODE(at, "vote.sync.any.pred", other, other, mg_value_active(at));
    jump(at, other, true, as_expected);
    take_strides_or_write(w, at, as_expected);
    mg_code_place(at, as_expected);
    for (uint32_t i = 0; i < w->l->n; i++)
        if (item(w, i)->access) MG_CODE(at, "add.u64", item(w, i)->next, item(w, i)->now, item(w, i)->stride);
    MG_CODE(at, "add.u32", w->l->rounds, w->l->rounds, 1);
}

/* ---- the last addresses tell the others ---- */

struct from_last { /* of an item */
    mg_id step;    /* LOW, WIDENED: b32, WHOLE: b64: what its value grows by */
    mg_id begun;   /* WIDENED, b32: its value in the first round */
};

static mg_id step_of(struct mg_code_at *at, const struct mg_stride *how)
{
    const bool whole = how->how == MG_STRIDE_WHOLE;
    mg_id step = whole ? wide(at) : narrow(at);
    if (!how->step_reg)
        MG_CODE(at, whole ? "mov.u64" : "mov.u32", step, mg_o_imm(whole ? how->step : (int64_t)(uint32_t)how->step));
    else
        MG_CODE(at, whole ? "mul.lo.u64" : "mul.lo.u32", step, how->step_reg,
                mg_o_imm(whole ? how->step : (int64_t)(uint32_t)how->step));
    return step;
}

static void widen(struct mg_code_at *at, const struct mg_stride *how, mg_id to, mg_id from)
{
    MG_CODE(at, how->is_signed ? "cvt.s64.s32" : "cvt.u64.u32", to, from);
}

/* behind: how many rounds before the last one, b64. Predicate: what is widened grows by its step as a whole number,
 * too: it did not wrap, since each time takes 2^32 from what the steps add up to. (In 2^32 rounds it may so often that
 * nothing is missing.) */
static void follow_back(struct mg_code_at *at, const struct mg_trace_item *x, mg_id behind, struct from_last *l,
                        mg_id *stride, mg_id fits)
{
    mg_id far = wide(at), n = wide(at), begun = wide(at), few = mg_code_temp(at, MG_TYPE_pred);
    l->step = step_of(at, &x->how);
    *stride = wide(at);
    if (x->how.how == MG_STRIDE_WHOLE) {
        MG_CODE(at, "mov.u64", *stride, l->step);
        return;
    }
    l->begun = narrow(at);
    MG_CODE(at, "cvt.u32.u64", l->begun, behind);
    MG_CODE(at, "mul.lo.u32", l->begun, l->begun, l->step);
    MG_CODE(at, "sub.u32", l->begun, x->low, l->begun);
    MG_CODE(at, "cvt.s64.s32", *stride, l->step);
    MG_CODE(at, "mul.lo.u64", n, behind, *stride);
    widen(at, &x->how, far, x->low);
    widen(at, &x->how, begun, l->begun);
    MG_CODE(at, "sub.u64", far, far, begun);
    MG_CODE(at, "setp.eq.and.u64", fits, far, n, fits);
    MG_CODE(at, "setp.eq.u64", few, *stride, 0);
    MG_CODE(at, "setp.le.or.u64", few, behind, mg_o_imm(UINT32_MAX), few);
    MG_CODE(at, "and.pred", fits, fits, few);
    MG_CODE(at, "mul.lo.u64", *stride, *stride, mg_o_imm(x->how.scale));
}

/* The item's address in round `done`, b64. */
static mg_id address_in(struct mg_code_at *at, const struct mg_trace_item *x, const struct from_last *l, mg_id behind,
                        mg_id done)
{
    mg_id first = wide(at), off = wide(at), low = narrow(at), last = wide(at);
    if (x->how.how == MG_STRIDE_WHOLE) {
        MG_CODE(at, "sub.u64", off, behind, done);
        MG_CODE(at, "mul.lo.u64", off, off, l->step);
    } else {
        MG_CODE(at, "cvt.u32.u64", low, done);
        MG_CODE(at, "mad.lo.u32", low, low, l->step, l->begun);
        widen(at, &x->how, off, low);
        widen(at, &x->how, last, x->low);
        MG_CODE(at, "sub.u64", off, last, off);
        MG_CODE(at, "mul.lo.u64", off, off, mg_o_imm(x->how.scale));
    }
    MG_CODE(at, "sub.u64", first, x->now, off);
    if (x->off) MG_CODE(at, "add.u64", first, first, mg_o_imm(x->off));
    return first;
}

/* The loop is left: all rounds in one record, or, where an index wrapped in a lane, each one in its own. */
static void write_from_last(const struct work *w, struct mg_code_at *at)
{
    struct mg_trace_rounds r = {.rounds = narrow(at)};
    struct from_last from[MG_CHANNEL_MOST_GROUP];
    mg_id behind = wide(at), done = mg_code_reg(at, MG_TYPE_b64), all = wide(at), part = wide(at),
          fits = mg_code_temp(at, MG_TYPE_pred), some = mg_code_temp(at, MG_TYPE_pred), again = mg_code_label(at);
    MG_CODE(at, w->l->is_long ? "mov.u64" : "cvt.u64.u32", all, w->l->rounds);
    MG_CODE(at, "setp.ne.u64", some, all, 0);
    MG_CODE(at, "setp.eq.u64", fits, all, all);
    MG_CODE(at, "sub.u64", behind, all, 1);
    for (uint32_t i = 0; i < w->l->n; i++)
        if (item(w, i)->access) follow_back(at, item(w, i), behind, &from[i], &r.stride[i], fits);
    MG_CODE(at, "vote.sync.all.pred", fits, fits, mg_value_active(at));
    MG_CODE(at, "mov.u64", done, 0);
    mg_code_rolled(at);
    mg_code_place(at, again);
    MG_CODE(at, "sub.u64", part, all, done);
    MG_CODE(at, "min.u64", part, part, MOST_ROUNDS);
    MG_CODE(at, "cvt.u32.u64", r.rounds, part);
    MG_CODE(at, "selp.b32", r.rounds, r.rounds, 1, fits);
    for (uint32_t i = 0; i < w->l->n; i++)
        if (item(w, i)->access) r.first[i] = address_in(at, item(w, i), &from[i], behind, done);
    mg_code_push_guard(at, some, false);
    w->write(w->user, at, w->l, &r);
    mg_code_pop_guard(at);
    MG_CODE(at, "cvt.u64.u32", part, r.rounds);
    MG_CODE(at, "add.u64", done, done, part);
    mg_id more = mg_code_temp(at, MG_TYPE_pred);
    MG_CODE(at, "setp.lt.u64", more, done, all);
    jump(at, more, false, again);
}

/* ---- */

/* An access of the same block before it whose address is the same register's value and another constant; NULL: none.
 * The constants' difference is *off. */
static const struct mg_trace_item *find_like(const struct work *w, uint32_t i, int64_t *off)
{
    const struct mg_module *m = mg_patch_module(w->p);
    const struct mg_ssa *ssa = mg_patch_ssa(w->p, 0);
    const struct mg_trace_item *x = item(w, i);
    const struct mg_opnd *o = &m->opnds.at[m->nodes.at[x->inst->node].opnd + x->a.addr];
    for (uint32_t k = 0; k < i && !w->l->compares && o->sub == MG_OPND_reg; k++) {
        const struct mg_trace_item *y = item(w, k);
        const struct mg_opnd *p = &m->opnds.at[m->nodes.at[y->inst->node].opnd + y->a.addr];
        if (!y->access || y->off || y->inst->block != x->inst->block || p->sub != MG_OPND_reg || p->id != o->id ||
            mg_ssa_read(ssa, y->inst->node, p->id) != mg_ssa_read(ssa, x->inst->node, o->id))
            continue;
        *off = (int64_t)(o->val - p->val);
        return y;
    }
    return NULL;
}

static void put_items(const struct work *w, struct mg_code_at *entry)
{
    for (uint32_t i = 0; i < w->l->n; i++) {
        struct mg_trace_item *x = item(w, i);
        int64_t off;
        if (!x->access) continue;
        const struct mg_trace_item *like = find_like(w, i, &off);
        if (like) {
            x->now = like->now;
            x->low = like->low;
            x->off = off;
            continue;
        }
        x->now = mg_code_reg(entry, MG_TYPE_b64);
        if (w->l->compares) {
            x->next = mg_code_reg(entry, MG_TYPE_b64);
            x->stride = mg_code_reg(entry, MG_TYPE_b64);
        } else if (x->how.how == MG_STRIDE_WIDENED) {
            x->low = mg_code_reg(entry, MG_TYPE_b32);
            MG_CODE(mg_at_before(w->p, x->how.widens), "mov.b32", x->low, x->how.narrow);
        }
        struct mg_code_at *at = mg_at_before(w->p, x->inst->node);
        MG_CODE(at, "mov.u64", x->now, mg_value_address(at, x->inst->node));
    }
    struct mg_code_at *at = mg_at_before(w->p, item(w, w->l->look)->inst->node);
    if (w->l->compares)
        look(w, at);
    else
        MG_CODE(at, w->l->is_long ? "add.u64" : "add.u32", w->l->rounds, w->l->rounds, 1);
}

void mg_trace_put_loop(struct mg_patch *p, struct mg_trace_loop *l, struct mg_trace_item *items,
                       mg_trace_write_fn *write, void *user)
{
    const struct mg_cfg *c = mg_patch_cfg(p, 0);
    const struct mg_loops *loops = mg_patch_loops(p, 0);
    const uint32_t header = loops->loops[l->in_func].header, first_id = mg_patch_sites(p)->first_block[0];
    const struct work w = {p, l, items, write, user};
    struct mg_code_at *entry = mg_at_entry(p, 0);
    l->rounds = mg_code_reg(entry, l->is_long ? MG_TYPE_b64 : MG_TYPE_b32);
    put_items(&w, entry);
    if (!header) begin_rounds(&w, entry);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const struct mg_block *k = &c->blocks[b];
        const bool in = mg_loops_contains(loops, l->in_func, b);
        for (uint32_t i = 0; c->reachable[b] && i < k->n_succs; i++) {
            uint32_t to = c->edges[k->succ_at + i];
            if (!in && to == header) begin_rounds(&w, mg_at_edge(p, first_id + b, i));
            if (!in || mg_loops_contains(loops, l->in_func, to)) continue;
            struct mg_code_at *out = mg_at_edge(p, first_id + b, i);
            mg_code_comes_first(out);
            if (l->compares)
                write_rounds(&w, out);
            else
                write_from_last(&w, out);
        }
    }
}
