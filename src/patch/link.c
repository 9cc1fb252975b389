/* Puts a tool's code into the twin: spot by spot, in the order in which they were asked for; sums and
 * skipped instructions last. What tools before it put at the same place stays in front. */
#include "insert/emit.h"
#include "patch/priv.h"

#include <stdlib.h>

/* ---- places ------------------------------------------------------------------------------------------ */

static bool is_app(const struct mg_node *n)
{
    return n->kind == MG_NODE_inst && !(n->flags & MG_NF_META);
}

/* An access to a .param variable that the body declares: an argument or a result of a call. */
static bool is_call_param(const struct mg_module *m, mg_id node, enum mg_op op)
{
    const struct mg_node *n = &m->nodes.at[node];
    if (!is_app(n) || mg_node_form(m, n)->op != op || mg_node_form(m, n)->space != MG_SPACE_param) return false;
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
        if (o->kind == MG_OPND_addr && o->sub == MG_OPND_var)
            return !m->vars.at[o->id].is_param && !m->vars.at[o->id].is_ret;
    }
    return false;
}

/* Code that branches stands neither between the arguments of a call and the call nor between it and its
 * results, as PTX asks for: in front of which node instead of at. node: that it belongs to, in its block. */
static mg_id outside_call(const struct mg_module *m, const struct mg_cfg *c, mg_id node, mg_id at)
{
    uint32_t b = mg_cfg_block_of(c, node);
    const struct mg_block *k = b == MG_NO_BLOCK ? NULL : &c->blocks[b];
    if (!k) return at;
    if (is_call_param(m, node, MG_OP_ld)) { /* behind the last result */
        mg_id last = node;
        for (mg_id id = node;; id = m->nodes.at[id].next) {
            if (is_call_param(m, id, MG_OP_ld))
                last = id;
            else if (is_app(&m->nodes.at[id]))
                break;
            if (id == k->last) break;
        }
        return m->nodes.at[last].next;
    }
    if (mg_node_form(m, &m->nodes.at[k->last])->op != MG_OP_call) return at;
    mg_id first = 0;
    for (mg_id id = node;; id = m->nodes.at[id].prev) {
        if (is_call_param(m, id, MG_OP_st)) first = id;
        if (id == k->first || !m->nodes.at[id].prev) break;
    }
    return first ? first : at;
}

/* The last node that stands behind the spot's by order of tools. */
static mg_id tail_of(const struct mg_code_at *at)
{
    uint64_t tail = at->node;
    mg_map_get(&at->p->all->behind, at->node, &tail);
    return (mg_id)tail;
}

/* In front of which node the spot's code goes now; 0: at the end of the body. */
static mg_id place(const struct mg_code_at *at)
{
    const struct mg_patches *s = at->p->all;
    const struct mg_module *m = s->m;
    mg_id to;
    switch (at->kind) {
    case MG_AT_BEFORE:
        to = at->node;
        break;
    case MG_AT_AFTER:
        to = m->nodes.at[tail_of(at)].next;
        break;
    default:
        return at->node;
    }
    if (at->flows) to = outside_call(m, s->sites->cfgs[at->func_ix], at->node, to);
    return at->kind == MG_AT_BEFORE ? mg_in_front_of(m, to) : to;
}

static void link_node(struct mg_patch *p, mg_id func, mg_id to, mg_id node)
{
    struct mg_module *m = p->all->m;
    if (m->nodes.at[node].kind == MG_NODE_inst && mg_node_form(m, &m->nodes.at[node])->op_flags & MG_OPF_OURS) {
        m->opnds.at[m->nodes.at[node].opnd].val += p->region->at;
        mg_twin_has_cells(p->all->twin);
    }
    mg_node_insert_before(m, func, to, node);
}

static void link_spot(struct mg_code_at *at, struct mg_sums *sums)
{
    struct mg_patches *s = at->p->all;
    if (!at->items.n) return;
    mg_id to = place(at), func = s->twin->funcs[at->func_ix];
    bool behind = at->kind == MG_AT_AFTER && s->m->nodes.at[tail_of(at)].next == to;
    for (uint32_t i = 0; i < at->items.n; i++) {
        const struct mg_code_item *it = &at->items.at[i];
        if (it->node)
            link_node(at->p, func, to, it->node);
        else
            mg_sums_add(sums, to, it);
    }
    if (behind) mg_map_set(&s->behind, at->node, to ? s->m->nodes.at[to].prev : s->m->funcs.at[func].last_node);
}

/* ---- the function's own --------------------------------------------------------------------------------- */

static mg_id reg(struct mg_patch *p, uint32_t ix, enum mg_type type)
{
    return mg_module_add_reg(p->all->m, p->all->twin->funcs[ix], "__mg_a", type);
}

/* Addresses of cells and tables, at the function's entry. */
static void link_addresses(struct mg_patch *p, uint32_t ix)
{
    struct mg_module *m = p->all->m;
    const struct mg_twin *t = p->all->twin;
    const struct mg_region *r = p->region;
    struct mg_patch_own *own = &p->own[ix];
    mg_id func = t->funcs[ix], at = t->entry_at[ix], ctx = t->ctx_reg[ix];
    if (own->base) {
        mg_id from = ctx;
        if (r->n_copies > 1) {
            mg_id copy = reg(p, ix, MG_TYPE_b32);
            MG_INSERT(m, func, at, "mov.u32", copy, mg_o_sreg(MG_SREG_smid, 0));
            MG_INSERT(m, func, at, "and.b32", copy, copy, mg_o_imm(r->n_copies - 1));
            MG_INSERT(m, func, at, "mad.wide.u32", own->base, copy, mg_o_imm(8 * (int64_t)r->copy_words), ctx);
            from = own->base;
        }
        MG_INSERT(m, func, at, "add.u64", own->base, from, mg_o_imm(MG_CTX_BYTES + 8 * (int64_t)r->at));
    }
    if (own->list)
        MG_INSERT(m, func, at, "add.u64", own->list, ctx, mg_o_imm(MG_CTX_BYTES + 8 * (int64_t)(r->at + r->list_at)));
    for (uint32_t k = 0; k < own->n_tables && k < p->tables.n; k++)
        if (own->tables[k])
            MG_INSERT(m, func, at, "add.u64", own->tables[k], ctx,
                      mg_o_imm(MG_CTX_BYTES + 8 * (int64_t)(r->at + r->tables[k].at)));
}

static void link_func(struct mg_patch *p, uint32_t ix)
{
    struct mg_sums *sums = mg_sums_begin(p, ix);
    link_addresses(p, ix);
    for (unsigned kind = 0; kind < MG_AT_KINDS; kind++)
        for (uint32_t i = 0; i < p->spots.n; i++) {
            struct mg_code_at *at = p->spots.at[i];
            if (at->func_ix == ix && (at->first ? kind == MG_AT_ENTRY : at->kind == kind)) link_spot(at, sums);
        }
    if (sums) mg_sums_end(sums);
}

/* ---- skipping ----------------------------------------------------------------------------------------------- */

static void zero(struct mg_patch *p, mg_id func, mg_id node, struct mg_opnd d, mg_id pred)
{
    struct mg_module *m = p->all->m;
    if (d.kind != MG_OPND_reg) return;
    unsigned bits = mg_type_bits((enum mg_type)m->regs.at[d.id].type);
    const char *form = bits == 16 ? "mov.b16" : bits == 32 ? "mov.b32" : "mov.b64";
    mg_id made = MG_INSERT(m, func, mg_in_front_of(m, node), form, d, 0); /* may move the nodes */
    m->nodes.at[made].guard = pred;
}

/* Results become 0 where pred holds (and the instruction's own guard), and the instruction is left out there. */
static void link_skip(struct mg_patch *p, mg_id node, mg_id pred)
{
    struct mg_module *m = p->all->m;
    const struct mg_sites *s = p->all->sites;
    uint32_t ix = 0;
    while (ix < s->n_funcs && mg_cfg_block_of(s->cfgs[ix], node) == MG_NO_BLOCK) ix++;
    if (ix == s->n_funcs) return;
    mg_id func = p->all->twin->funcs[ix], front = mg_in_front_of(m, node), skip = pred;
    const struct mg_node n = m->nodes.at[node];
    if (n.guard) {
        struct mg_opnd own = n.flags & MG_NF_GUARD_NOT ? mg_o_not(n.guard) : mg_o_reg(n.guard);
        mg_id keep = reg(p, ix, MG_TYPE_pred);
        skip = reg(p, ix, MG_TYPE_pred);
        if (n.flags & MG_NF_GUARD_NOT) {
            mg_id plain = reg(p, ix, MG_TYPE_pred);
            MG_INSERT(m, func, front, "not.pred", plain, n.guard);
            own = mg_o_reg(plain);
        }
        MG_INSERT(m, func, front, "and.pred", skip, own, pred);
        MG_INSERT(m, func, front, "xor.pred", keep, own, skip);
        m->nodes.at[node].guard = keep;
        m->nodes.at[node].flags &= (uint8_t)~MG_NF_GUARD_NOT;
    } else {
        m->nodes.at[node].guard = pred;
        m->nodes.at[node].flags |= MG_NF_GUARD_NOT;
    }
    if (mg_node_form(m, &n)->op_flags & MG_OPF_NO_DST || !n.n_opnds) return;
    const struct mg_opnd d = m->opnds.at[n.opnd];
    if (d.kind != MG_OPND_vec) {
        zero(p, func, node, d, skip);
        return;
    }
    for (uint32_t i = 0; i < d.n; i++) zero(p, func, node, m->opnds.at[d.id + i], skip);
}

void mg_patch_link(struct mg_patch *p)
{
    for (uint32_t ix = 0; ix < p->all->sites->n_funcs; ix++)
        if (p->all->sites->cfgs[ix]->n_blocks) link_func(p, ix);
    mg_called_link(p);
    for (uint32_t i = 0; i < p->skips.n; i++) link_skip(p, p->skips.at[i].node, p->skips.at[i].pred);
}
