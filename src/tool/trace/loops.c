/* Loops whose accesses are recorded once, where the loop is left: rounds, and of each access first address and stride.
 *
 *   which loops     all that is recorded in them is executed once in each round, by the lanes that came into the loop,
 *                   together (analysis/uniform.h), and looks as if its address grew by one stride
 *   entered         0 rounds
 *   each round      each access keeps its address. In front of the last one they are compared with what one stride
 *                   makes of the round before: if any lane's is another, what was gathered is written, and this round
 *                   is the first one of the next record. So nothing rests on arithmetic that was guessed right: an
 * index of 32 bits may wrap second round    says what the strides are, if they are equal in all lanes left what was
 * gathered is written
 *
 * Rounds are whole ones: a loop that can be left between two of its accesses is recorded access by access, as is one
 * that calls, or holds what a lane may do alone. */
#include "tool/trace/loops.h"

#include <string.h>

#include "analysis/dom.h"
#include "analysis/loop.h"
#include "analysis/ssa.h"
#include "analysis/uniform.h"

enum {
    MOST_ACCESSES = 6, /* of a loop: each takes up to six registers */
    MOST_OUT = 2,      /* ways out: each has the code that writes */
    MOST_DEPTH = 24,   /* of an address' arithmetic */
    MOST_ROUNDS = 1 << 24
};
#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)

/* ---- which loops ------------------------------------------------------------------------------------------ */

struct finder {
    struct mg_patch *p;
    const struct mg_cfg *c;
    const struct mg_module *m;
    const struct mg_dom *dom;
    const struct mg_loops *loops;
    const struct mg_ssa *ssa;
    const struct mg_uniform *u;
    struct mg_trace_item *items;
    uint32_t n_items, loop;
};
enum form { OTHER, SAME /* in all rounds */, LINEAR /* grows by one stride, unless arithmetic wraps */ };

static enum form form_of(const struct finder *f, uint32_t value, uint32_t depth);

static enum form operand_form(const struct finder *f, mg_id node, const struct mg_opnd *o, uint32_t depth)
{
    switch (o->kind) {
    case MG_OPND_imm:
    case MG_OPND_var:
    case MG_OPND_sreg:
        return SAME;
    case MG_OPND_reg:
        return o->sub ? OTHER : form_of(f, mg_ssa_read(f->ssa, node, o->id), depth);
    default:
        return OTHER;
    }
}

static bool is_uniform(const struct finder *f, const struct mg_opnd *o)
{
    if (o->kind == MG_OPND_imm) return true;
    return o->kind == MG_OPND_reg && o->id >= f->u->reg_lo && o->id < f->u->reg_hi &&
           !f->u->varying[o->id - f->u->reg_lo];
}

/* Is the value the loop's phi, or that with something added that is the same in all rounds and lanes? */
static bool is_stepped(const struct finder *f, uint32_t value, uint32_t phi, uint32_t depth)
{
    const struct mg_ssa_value *v = &f->ssa->values[value];
    if (value == phi) return true;
    if (!depth || v->kind != MG_SSA_def || v->prev) return false;
    const struct mg_node *n = &f->m->nodes.at[v->node];
    const struct mg_opnd *o = &f->m->opnds.at[n->opnd];
    enum mg_op op = mg_node_form(f->m, n)->op;
    if (op == MG_OP_mov && n->n_opnds == 2 && o[1].kind == MG_OPND_reg && !o[1].sub)
        return is_stepped(f, mg_ssa_read(f->ssa, v->node, o[1].id), phi, depth - 1);
    if ((op != MG_OP_add && op != MG_OP_sub) || n->n_opnds != 3) return false;
    for (int k = 1; k <= (op == MG_OP_add ? 2 : 1); k++) {
        const struct mg_opnd *by = &o[3 - k];
        if (o[k].kind == MG_OPND_reg && !o[k].sub && is_uniform(f, by) &&
            operand_form(f, v->node, by, depth - 1) == SAME &&
            is_stepped(f, mg_ssa_read(f->ssa, v->node, o[k].id), phi, depth - 1))
            return true;
    }
    return false;
}

static enum form phi_form(const struct finder *f, uint32_t value)
{
    const struct mg_ssa_value *v = &f->ssa->values[value];
    const struct mg_block *b = &f->c->blocks[v->block];
    if (v->block != f->loops->loops[f->loop].header) return OTHER;
    for (uint32_t i = 0; i < v->n_args && i < b->n_preds; i++)
        if (mg_loops_contains(f->loops, f->loop, f->c->preds[b->pred_at + i]) &&
            !is_stepped(f, f->ssa->args[v->args_at + i], value, MOST_DEPTH))
            return OTHER;
    return LINEAR;
}

static enum form product(const struct finder *f, const struct mg_opnd *o, const enum form *k)
{
    if (k[0] == LINEAR) return k[1] == SAME && is_uniform(f, &o[1]) ? LINEAR : OTHER;
    return k[1] == LINEAR && is_uniform(f, &o[0]) ? LINEAR : OTHER;
}

static enum form def_form(const struct finder *f, mg_id node, uint32_t depth)
{
    const struct mg_node *n = &f->m->nodes.at[node];
    const struct mg_form *form = mg_node_form(f->m, n);
    const struct mg_opnd *o = &f->m->opnds.at[n->opnd] + 1;
    enum form k[3] = {SAME, SAME, SAME};
    bool same = true;
    if (n->guard || form->unknown || n->n_opnds < 2 || n->n_opnds > 4) return OTHER;
    if (form->op == MG_OP_ld) return form->space == MG_SPACE_param ? SAME : OTHER;
    if (form->op_flags &
        (MG_OPF_READS | MG_OPF_WRITES | MG_OPF_ATOMIC | MG_OPF_CONVERGENT | MG_OPF_HIDDEN | MG_OPF_NO_DST))
        return OTHER;
    for (uint32_t i = 0; i + 1 < n->n_opnds; i++) {
        k[i] = operand_form(f, node, &o[i], depth);
        if (k[i] == OTHER) return OTHER;
        same &= k[i] == SAME;
    }
    if (same) return SAME;
    switch (form->op) {
    case MG_OP_mov:
    case MG_OP_cvt:
    case MG_OP_cvta:
    case MG_OP_neg:
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_or: /* of bits that are 0 */
        return LINEAR;
    case MG_OP_shl:
        return k[1] == SAME && is_uniform(f, &o[1]) ? LINEAR : OTHER;
    case MG_OP_mul:
        return product(f, o, k);
    case MG_OP_mad:
        return k[0] == SAME && k[1] == SAME ? LINEAR : product(f, o, k);
    default:
        return OTHER;
    }
}

static enum form form_of(const struct finder *f, uint32_t value, uint32_t depth)
{
    const struct mg_ssa_value *v = &f->ssa->values[value];
    if (!value || !depth) return OTHER;
    if (v->kind == MG_SSA_entry || !mg_loops_contains(f->loops, f->loop, v->block)) return SAME;
    if (v->kind == MG_SSA_phi) return phi_form(f, value);
    return v->kind == MG_SSA_def && !v->prev ? def_form(f, v->node, depth - 1) : OTHER;
}

/* Is the address one that grows by a stride, as far as its arithmetic tells? */
static bool is_regular(const struct finder *f, const struct mg_trace_item *i)
{
    const struct mg_opnd *o = &f->m->opnds.at[f->m->nodes.at[i->inst->node].opnd + i->a.addr];
    if (o->kind != MG_OPND_addr || o->n & 7) return false;
    return o->sub == MG_OPND_var || (o->sub == MG_OPND_reg && o->id < f->m->regs.n &&
                                     form_of(f, mg_ssa_read(f->ssa, i->inst->node, o->id), MOST_DEPTH) != OTHER);
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
    for (uint32_t i = 0; i < f->n_items; i++) {
        const struct mg_trace_item *x = &f->items[i];
        if (x->inst->func_ix || !has_block(f, x->inst->block)) continue;
        bool fits = l->n < MG_CHANNEL_MOST_GROUP && f->loops->loop_of[x->inst->block] == f->loop && !x->one_by_one &&
                    (!x->access || is_regular(f, x));
        if (!fits || (accesses += x->access) > MOST_ACCESSES) return false;
        for (uint32_t k = 0; k < h->n_preds; k++) {
            uint32_t latch = f->c->preds[h->pred_at + k];
            if (has_block(f, latch) && !mg_dom_over(f->dom, x->inst->block, latch)) return false;
        }
        uint32_t at = l->n++;
        for (; at && is_before(f, x, &f->items[l->items[at - 1]]); at--) l->items[at] = l->items[at - 1];
        l->items[at] = i;
    }
    l->look = l->n ? l->n - 1 : 0;
    while (accesses && !f->items[l->items[l->look]].access) l->look--;
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
    struct finder f = {.p = p,
                       .c = mg_patch_cfg(p, 0),
                       .dom = mg_patch_dom(p, 0),
                       .loops = mg_patch_loops(p, 0),
                       .items = items,
                       .n_items = n};
    struct mg_trace_loops found = {0};
    for (uint32_t i = 0; i < n; i++) items[i].loop = UINT32_MAX;
    if (!f.loops->n_loops || !mg_channel_is_whole(p)) return found;
    f.m = f.c->m;
    f.ssa = mg_patch_ssa(p, 0);
    f.u = mg_patch_uniform(p, 0);
    found.at = mg_arena_array(mg_patch_scratch(p), struct mg_trace_loop, f.loops->n_loops);
    for (f.loop = 0; f.loop < f.loops->n_loops; f.loop++) {
        struct mg_trace_loop *l = &found.at[found.n];
        l->in_func = f.loop;
        if (!gather(&f, l) || !goes_together(&f) || !leaves_whole(&f, l)) continue;
        for (uint32_t i = 0; i < l->n; i++) items[l->items[i]].loop = found.n;
        found.n++;
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

static void begin_rounds(const struct work *w, struct mg_code_at *at)
{
    MG_CODE(at, "mov.u32", R(w->l->rounds), I(0));
    for (uint32_t i = 0; i < w->l->n; i++)
        if (item(w, i)->access) MG_CODE(at, "mov.u64", R(item(w, i)->stride), I(0));
}

/* What was gathered is written, if there is anything. */
static void write_rounds(const struct work *w, struct mg_code_at *at)
{
    mg_id first[MG_CHANNEL_MOST_GROUP] = {0}, some = mg_code_temp(at, MG_TYPE_pred), n = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "setp.ne.u32", R(some), R(w->l->rounds), I(0));
    MG_CODE(at, "cvt.u64.u32", R(n), R(w->l->rounds));
    for (uint32_t i = 0; i < w->l->n; i++) {
        if (!item(w, i)->access) continue;
        first[i] = mg_code_temp(at, MG_TYPE_b64);
        MG_CODE(at, "mul.lo.u64", R(first[i]), R(item(w, i)->stride), R(n));
        MG_CODE(at, "sub.u64", R(first[i]), R(item(w, i)->next), R(first[i]));
    }
    mg_code_push_guard(at, some, false);
    w->write(w->user, at, w->l, first);
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
    MG_CODE(at, "shr.u64", R(high), R(value), I(32));
    for (int k = 0; k < 2; k++) {
        MG_CODE(at, "cvt.u32.u64", R(part), R(k ? high : value));
        MG_CODE(at, "shfl.sync.idx.b32", R(lead), R(part), R(leader), I(31), R(mask));
        MG_CODE(at, "setp.eq.and.u32", R(p), R(part), R(lead), R(p));
    }
}

/* An address is another than the strides say, or it is the second round: in all lanes at once. */
static void take_strides_or_write(const struct work *w, struct mg_code_at *at, mg_id done)
{
    mg_id mask = mg_value_own(at), leader = mg_code_temp(at, MG_TYPE_b32), second = mg_code_temp(at, MG_TYPE_pred),
          take = mg_code_label(at), by[MG_CHANNEL_MOST_GROUP];
    MG_CODE(at, "brev.b32", R(leader), R(mask));
    MG_CODE(at, "clz.b32", R(leader), R(leader));
    MG_CODE(at, "setp.eq.u32", R(second), R(w->l->rounds), I(1));
    for (uint32_t i = 0; i < w->l->n; i++) {
        if (!item(w, i)->access) continue;
        by[i] = mg_code_temp(at, MG_TYPE_b64);
        MG_CODE(at, "sub.u64", R(by[i]), R(item(w, i)->now), R(item(w, i)->next));
        and_uniform(at, second, by[i], mask, leader);
    }
    MG_CODE(at, "vote.sync.all.pred", R(second), R(second), R(mask));
    jump(at, second, false, take);
    write_rounds(w, at);
    begin_rounds(w, at);
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_place(at, take);
    for (uint32_t i = 0; i < w->l->n; i++)
        if (item(w, i)->access) MG_CODE(at, "mov.u64", R(item(w, i)->stride), R(by[i]));
}

/* In front of the round's last access: all addresses are known. */
static void look(const struct work *w, struct mg_code_at *at)
{
    mg_id other = mg_code_temp(at, MG_TYPE_pred), as_expected = mg_code_label(at);
    MG_CODE(at, "setp.ge.u32", R(other), R(w->l->rounds), I(MOST_ROUNDS));
    for (uint32_t i = 0; i < w->l->n; i++)
        if (item(w, i)->access)
            MG_CODE(at, "setp.ne.or.u64", R(other), R(item(w, i)->now), R(item(w, i)->next), R(other));
    MG_CODE(at, "vote.sync.any.pred", R(other), R(other), R(mg_value_active(at)));
    jump(at, other, true, as_expected);
    take_strides_or_write(w, at, as_expected);
    mg_code_place(at, as_expected);
    for (uint32_t i = 0; i < w->l->n; i++)
        if (item(w, i)->access) MG_CODE(at, "add.u64", R(item(w, i)->next), R(item(w, i)->now), R(item(w, i)->stride));
    MG_CODE(at, "add.u32", R(w->l->rounds), R(w->l->rounds), I(1));
}

void mg_trace_put_loop(struct mg_patch *p, struct mg_trace_loop *l, struct mg_trace_item *items,
                       mg_trace_write_fn *write, void *user)
{
    const struct mg_cfg *c = mg_patch_cfg(p, 0);
    const struct mg_loops *loops = mg_patch_loops(p, 0);
    const uint32_t header = loops->loops[l->in_func].header, first_id = mg_patch_sites(p)->first_block[0];
    const struct work w = {p, l, items, write, user};
    struct mg_code_at *entry = mg_at_entry(p, 0);
    l->rounds = mg_code_reg(entry, MG_TYPE_b32);
    for (uint32_t i = 0; i < l->n; i++) {
        struct mg_trace_item *x = &items[l->items[i]];
        if (!x->access) continue;
        x->now = mg_code_reg(entry, MG_TYPE_b64);
        x->next = mg_code_reg(entry, MG_TYPE_b64);
        x->stride = mg_code_reg(entry, MG_TYPE_b64);
        struct mg_code_at *at = mg_at_before(p, x->inst->node);
        MG_CODE(at, "mov.u64", R(x->now), R(mg_value_address(at, x->inst->node)));
    }
    look(&w, mg_at_before(p, items[l->items[l->look]].inst->node));
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
            write_rounds(&w, out);
        }
    }
}
