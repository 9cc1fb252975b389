/* Edges. See place.h for the kinds of places. */
#include "insert/place.h"

#include <stdio.h>

#include "insert/emit.h"

enum { MOST_JUMPED = 16 /* instructions */ };

/* Does the branch jump over a few instructions that can be predicated? Then the assembler may do without a branch, and
 * have what is inside overlap, as long as nothing stands on the way around it. */
bool mg_edge_jumps_over_little(const struct mg_cfg *c, uint32_t block, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t b = block + 1; b < to; b++) {
        const struct mg_block *k = &c->blocks[b];
        n += k->n_insts;
        if (n > MOST_JUMPED || k->leaves) return false;
        for (mg_id id = k->first;; id = c->m->nodes.at[id].next) {
            const struct mg_node *x = &c->m->nodes.at[id];
            unsigned op = x->kind == MG_NODE_inst ? mg_node_form(c->m, x)->op : MG_OP_mov;
            if (op == MG_OP_call || op == MG_OP_brx || op == MG_OP_bar || op == MG_OP_barrier) return false;
            if (id == k->last) break;
        }
        for (uint32_t s = 0; s < k->n_succs; s++)
            if (c->edges[k->succ_at + s] <= b || c->edges[k->succ_at + s] > to) return false;
    }
    return to > block;
}

enum mg_edge_place mg_edge_place(const struct mg_cfg *c, const struct mg_freq *f, uint32_t block, uint32_t edge)
{
    const struct mg_block *k = &c->blocks[block];
    uint32_t to = c->edges[edge];
    const struct mg_node *end = &c->m->nodes.at[k->last];
    bool ends = mg_node_form(c->m, end)->op_flags & MG_OPF_ENDS_BLOCK;
    unsigned op = mg_node_form(c->m, end)->op;
    if (c->blocks[to].n_preds == 1 && to != 0) return MG_PLACE_HEAD;
    if (!ends || op == MG_OP_call) return MG_PLACE_FALL;
    if (k->n_succs == 1 && !k->leaves) return MG_PLACE_END;
    bool fall = op != MG_OP_brx && (end->guard || op == MG_OP_call) && edge == k->succ_at;
    if (fall) return MG_PLACE_FALL;
    if (op == MG_OP_brx) return MG_PLACE_AWAY;
    bool leaves = f->trivial[to]; /* an exit with a guard natively, whatever it jumps over */
    return f->share[edge] < 0.3 && (leaves || !mg_edge_jumps_over_little(c, block, to)) ? MG_PLACE_AWAY
                                                                                        : MG_PLACE_GUARD;
}

/* Behind a block's last instruction and what was inserted behind it, in front of labels. */
static mg_id behind(const struct mg_module *m, const struct mg_cfg *c, uint32_t block)
{
    mg_id last = c->blocks[block].last;
    if (block + 1 < c->n_blocks) { /* calls may have been doubled: the last instruction before the next block's */
        mg_id id = m->nodes.at[c->blocks[block + 1].first].prev;
        mg_id at = c->blocks[block + 1].first;
        bool label = false; /* what was inserted at the next block's head stands behind its labels */
        for (; id && id != last; id = m->nodes.at[id].prev) {
            const struct mg_node *n = &m->nodes.at[id];
            bool ours = n->flags & MG_NF_META; /* labels inside of inserted code */
            if (n->kind == MG_NODE_label && !ours && m->labels.at[n->ref].targeted)
                label = true, at = id;
            else if (label && (n->kind == MG_NODE_inst || (n->kind == MG_NODE_label && ours)))
                return n->next;
            else if (!label)
                at = id;
        }
        return label ? m->nodes.at[last].next : at;
    }
    return m->nodes.at[last].next;
}

static bool is_scoped(struct mg_placer *p, mg_id label)
{
    if (!p->scanned) {
        uint32_t depth = 0;
        MG_EACH_NODE(p->m, &p->m->funcs.at[p->func], id)
        {
            const struct mg_node *n = &p->m->nodes.at[id];
            depth += n->kind == MG_NODE_open;
            depth -= n->kind == MG_NODE_close && depth;
            if (n->kind == MG_NODE_label && depth) mg_map_set(&p->scoped, n->ref, 1);
        }
        p->scanned = true;
    }
    return mg_map_get(&p->scoped, label, NULL);
}

/* Does this label stand in front of the block, no instruction of the application between? */
static bool leads_to(const struct mg_placer *p, mg_id label, uint32_t block)
{
    mg_id id = p->m->labels.at[label].node;
    for (; id; id = p->m->nodes.at[id].next) {
        const struct mg_node *n = &p->m->nodes.at[id];
        if (n->kind == MG_NODE_inst && !(n->flags & MG_NF_META)) return mg_cfg_block_of(p->c, id) == block;
    }
    return false;
}

/* The branch's own copy of its table, in which the way to `block` goes to `label`. */
static void retarget(struct mg_placer *p, mg_id branch, uint32_t block, mg_id label)
{
    struct mg_module *m = p->m;
    struct mg_node n = m->nodes.at[branch];
    for (uint32_t i = 0; i < n.n_opnds; i++) {
        struct mg_opnd o = m->opnds.at[n.opnd + i];
        if (o.kind == MG_OPND_label && leads_to(p, o.id, block)) {
            m->opnds.at[n.opnd + i].id = label;
        } else if (o.kind == MG_OPND_target && m->targets.at[o.id].kind == MG_TARGET_branch) {
            struct mg_target t = m->targets.at[o.id];
            mg_id first = mg_opnd_alloc(m, t.n_opnds);
            for (uint32_t k = 0; k < t.n_opnds; k++) {
                m->opnds.at[first + k] = m->opnds.at[t.first_opnd + k];
                struct mg_opnd *to = &m->opnds.at[first + k];
                if (to->kind == MG_OPND_label && leads_to(p, to->id, block)) to->id = label;
            }
            char name[32];
            mg_id id = m->targets.n, at = 0;
            snprintf(name, sizeof name, "__mg_table%u", (unsigned)id);
            t.name = mg_intern_adds(&m->names, name);
            t.first_opnd = first;
            *mg_vec_push(&m->targets) = t;
            m->opnds.at[n.opnd + i].id = id;
            MG_EACH_NODE(m, &m->funcs.at[p->func], x)
            if (m->nodes.at[x].kind == MG_NODE_target && m->nodes.at[x].ref == o.id) at = x;
            mg_node_insert_after(m, p->func, at, mg_node_new_kind(m, MG_NODE_target, id));
        }
    }
}

/* Where the way from this label to the block passes code of ours, that of another placer's edge: the branch it ends
 * with. 0: there is none. */
static mg_id end_of_others(const struct mg_placer *p, mg_id label, uint32_t block)
{
    const struct mg_module *m = p->m;
    mg_id id = m->labels.at[label].node;
    if (!(m->nodes.at[id].flags & MG_NF_META)) return 0;
    for (id = m->nodes.at[id].next; id; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_inst) continue;
        if (!(n->flags & MG_NF_META)) return 0;
        if (mg_node_form(m, n)->op != MG_OP_bra || n->guard) continue;
        mg_id to = m->opnds.at[n->opnd].id;
        if (!(m->nodes.at[m->labels.at[to].node].flags & MG_NF_META)) return leads_to(p, to, block) ? id : 0;
    }
    return 0;
}

/* The same of the way that a branch has to the block. */
static mg_id taken_by_others(const struct mg_placer *p, mg_id branch, uint32_t block)
{
    const struct mg_module *m = p->m;
    const struct mg_node *n = &m->nodes.at[branch];
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
        const struct mg_target *t =
            o->kind == MG_OPND_target && m->targets.at[o->id].kind == MG_TARGET_branch ? &m->targets.at[o->id] : NULL;
        mg_id end = o->kind == MG_OPND_label ? end_of_others(p, o->id, block) : 0;
        for (uint32_t k = 0; t && k < t->n_opnds && !end; k++)
            if (m->opnds.at[t->first_opnd + k].kind == MG_OPND_label)
                end = end_of_others(p, m->opnds.at[t->first_opnd + k].id, block);
        if (end) return end;
    }
    return 0;
}

/* The edge's block of its own: behind the body, but for labels in a scope right behind the branch,
 * where a branch that always goes elsewhere lets nobody fall into it. */
static mg_id away(struct mg_placer *p, uint32_t block, uint32_t edge)
{
    struct mg_module *m = p->m;
    uint64_t known;
    if (mg_map_get(&p->away, edge, &known)) return (mg_id)known;
    mg_id back = p->c->blocks[p->c->edges[edge]].label, branch = p->c->blocks[block].last;
    mg_assert(back);
    mg_id others = taken_by_others(p, branch, p->c->edges[edge]);
    if (others) {
        mg_map_set(&p->away, edge, others);
        return others;
    }
    mg_id label = mg_module_add_label(m, p->func, "$__mg_edge"), at = is_scoped(p, back) ? m->nodes.at[branch].next : 0;
    mg_node_insert_before(m, p->func, at, mg_node_new_kind(m, MG_NODE_label, label));
    m->labels.at[label].targeted = 1;
    retarget(p, branch, p->c->edges[edge], label);
    mg_id node = MG_INSERT(m, p->func, at, "bra", mg_o_label(back));
    mg_map_set(&p->away, edge, node);
    return node;
}

static struct mg_spot guarded(const struct mg_placer *p, uint32_t block)
{
    mg_id last = p->c->blocks[block].last;
    const struct mg_node *n = &p->m->nodes.at[last];
    return (struct mg_spot){.at = last, .guard = n->guard, .guard_not = n->guard && (n->flags & MG_NF_GUARD_NOT)};
}

struct mg_spot mg_place_edge(struct mg_placer *p, uint32_t block, uint32_t edge)
{
    uint32_t to = p->c->edges[edge];
    switch (mg_edge_place(p->c, p->f, block, edge)) {
    case MG_PLACE_HEAD:
        return (struct mg_spot){.at = mg_block_head(p->m, &p->c->blocks[to])};
    case MG_PLACE_END:
        return (struct mg_spot){.at = p->c->blocks[block].last};
    case MG_PLACE_FALL:
        return (struct mg_spot){.at = behind(p->m, p->c, block)};
    case MG_PLACE_AWAY: {
        const struct mg_node *n = &p->m->nodes.at[p->c->blocks[block].last];
        if (!n->guard || !is_scoped(p, p->c->blocks[to].label)) return (struct mg_spot){.at = away(p, block, edge)};
        return guarded(p, block);
    }
    default:
        return guarded(p, block);
    }
}

/* Does a branch to this label run off the body? */
static bool leads_out(const struct mg_placer *p, const struct mg_node *n)
{
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &p->m->opnds.at[n->opnd + i];
        if (o->kind != MG_OPND_label) continue;
        mg_id id = p->m->labels.at[o->id].node;
        while (id && (p->m->nodes.at[id].kind != MG_NODE_inst || (p->m->nodes.at[id].flags & MG_NF_META)))
            id = p->m->nodes.at[id].next;
        if (!id) return true;
    }
    return false;
}

struct mg_spot mg_place_leave(struct mg_placer *p, uint32_t block)
{
    mg_id last = p->c->blocks[block].last;
    const struct mg_node *n = &p->m->nodes.at[last];
    unsigned op = mg_node_form(p->m, n)->op;
    struct mg_spot s = guarded(p, block);
    if (op == MG_OP_ret || op == MG_OP_exit || (op == MG_OP_bra && leads_out(p, n))) {
        if (!p->c->blocks[block].n_succs) s.guard = 0; /* both ways: who stays runs off the end */
        return s;
    }
    return (struct mg_spot){.at = behind(p->m, p->c, block)};
}

void mg_placer_release(struct mg_placer *p)
{
    mg_map_release(&p->away);
    mg_map_release(&p->scoped);
}
