/* Basic blocks and the control-flow graph of one function.
 *
 *   body (linked list of nodes) ── cut ──► blocks ── connect ──► edges, preds ── order ──► rpo, rank
 *
 * Blocks follow the definition in analysis.h to the letter, because block ids and counts leave the
 * process: the profile, the emulator's schedule and every device agree on them. Nothing here looks
 * at what instructions compute. Loops (loop.c) are asked for only to rank blocks.
 */
#include "analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/loop.h"

struct builder {
    struct mg_cfg *c;
    const struct mg_module *m;
    const struct mg_func *f;
    mg_id label_lo, label_hi; /* [lo, hi) of the labels placed in this body */
    bool *targeted;           /* by label - label_lo */
    uint32_t *block_of_label; /* the same */
    MG_VEC(mg_id) enders;     /* instructions that end a block, and branch tables */
    uint32_t n_labels;
};

static bool ends_block(const struct mg_module *m, const struct mg_node *n)
{
    return n->kind == MG_NODE_inst && !(n->flags & MG_NF_META) && (m->forms.at[n->ref].op_flags & MG_OPF_ENDS_BLOCK);
}

/* First walk: extents of ids, and every node that can name a label. */
static void survey(struct builder *b)
{
    const struct mg_module *m = b->m;
    mg_id node_lo = UINT32_MAX, node_hi = 0;
    b->label_lo = UINT32_MAX;
    MG_EACH_NODE(m, b->f, id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        node_lo = MG_MIN(node_lo, id);
        node_hi = MG_MAX(node_hi, id);
        if (n->kind == MG_NODE_label) {
            b->label_lo = MG_MIN(b->label_lo, n->ref);
            b->label_hi = MG_MAX(b->label_hi, n->ref + 1);
            b->n_labels++;
        } else if (ends_block(m, n) || n->kind == MG_NODE_target) {
            *mg_vec_push(&b->enders) = id;
        }
    }
    b->c->node_lo = node_lo == UINT32_MAX ? 0 : node_lo;
    b->c->node_hi = node_lo == UINT32_MAX ? 0 : node_hi + 1;
    if (b->label_lo == UINT32_MAX) b->label_lo = b->label_hi = 0;
}

static void mark_label(struct builder *b, mg_id label)
{
    if (label >= b->label_lo && label < b->label_hi) b->targeted[label - b->label_lo] = true;
}

static void mark_table(struct builder *b, mg_id target)
{
    const struct mg_target *t = &b->m->targets.at[target];
    if (t->kind != MG_TARGET_branch) return;
    for (uint32_t i = 0; i < t->n_opnds; i++)
        if (b->m->opnds.at[t->first_opnd + i].kind == MG_OPND_label)
            mark_label(b, b->m->opnds.at[t->first_opnd + i].id);
}

/* Which labels a branch or a branch table can reach. */
static void mark_targets(struct builder *b)
{
    for (uint32_t i = 0; i < b->enders.n; i++) {
        const struct mg_node *n = &b->m->nodes.at[b->enders.at[i]];
        if (n->kind == MG_NODE_target) {
            mark_table(b, n->ref);
            continue;
        }
        for (uint32_t k = 0; k < n->n_opnds; k++) {
            const struct mg_opnd *o = &b->m->opnds.at[n->opnd + k];
            if (o->kind == MG_OPND_label) mark_label(b, o->id);
        }
    }
}

/* Second walk: cuts the body into blocks. */
static void cut(struct builder *b)
{
    const struct mg_module *m = b->m;
    struct mg_cfg *c = b->c;
    c->blocks = mg_arena_array(&c->arena, struct mg_block, b->enders.n + b->n_labels + 1);
    c->block_of = mg_arena_alloc(&c->arena, sizeof(uint32_t) * (c->node_hi - c->node_lo + 1));
    memset(c->block_of, 0xff, sizeof(uint32_t) * (c->node_hi - c->node_lo + 1));
    struct mg_block *cur = NULL; /* the open block */
    mg_id loc = 0, label = 0;    /* in force; first targeted label since the last instruction */
    uint32_t label_waits = 0;    /* targeted labels seen since the last instruction */
    mg_id first_waiting = 0;     /* first node after the last block's end */
    MG_EACH_NODE(m, b->f, id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_loc) {
            loc = n->ref;
        } else if (n->kind == MG_NODE_label) {
            uint32_t ix = n->ref - b->label_lo;
            if (!b->targeted[ix]) continue;
            if (!label_waits++) label = n->ref;
            if (cur || !first_waiting) first_waiting = id;
            cur = NULL;
            b->block_of_label[ix] = c->n_blocks; /* provisional: the block that comes next, if any */
        } else if (n->kind == MG_NODE_inst) {
            if (n->flags & MG_NF_META) {
                if (cur)
                    c->block_of[id - c->node_lo] = c->n_blocks - 1;
                else if (!first_waiting)
                    first_waiting = id;
                continue;
            }
            if (!cur) {
                cur = &c->blocks[c->n_blocks++];
                *cur = (struct mg_block){.label = label, .first = id, .loc = loc};
                for (mg_id w = first_waiting; w && w != id; w = m->nodes.at[w].next)
                    if (m->nodes.at[w].kind == MG_NODE_label || m->nodes.at[w].kind == MG_NODE_inst)
                        c->block_of[w - c->node_lo] = c->n_blocks - 1;
                label = label_waits = 0;
                first_waiting = 0;
            }
            cur->last = id;
            cur->n_insts++;
            c->block_of[id - c->node_lo] = c->n_blocks - 1;
            if (m->forms.at[n->ref].op_flags & MG_OPF_ENDS_BLOCK) cur = NULL;
        }
    }
}

static void add_edge(struct mg_cfg *c, struct mg_block *k, uint32_t *n_edges, uint32_t to)
{
    if (to >= c->n_blocks) { /* behind the last instruction */
        k->leaves = true;
        return;
    }
    for (uint32_t i = 0; i < k->n_succs; i++)
        if (c->edges[k->succ_at + i] == to) return;
    c->edges[(*n_edges)++] = to;
    k->n_succs++;
}

static bool falls_through(const struct mg_module *m, const struct mg_node *n)
{
    if (!ends_block(m, n) || n->guard) return true;
    return m->forms.at[n->ref].op == MG_OP_call;
}

static uint32_t count_targets(const struct mg_module *m, const struct mg_node *n)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < n->n_opnds; k++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + k];
        if (o->kind == MG_OPND_label)
            sum++;
        else if (o->kind == MG_OPND_target)
            sum += m->targets.at[o->id].n_opnds;
    }
    return sum;
}

static void add_label_edge(struct builder *b, struct mg_block *k, uint32_t *n_edges, mg_id label)
{
    if (label >= b->label_lo && label < b->label_hi) add_edge(b->c, k, n_edges, b->block_of_label[label - b->label_lo]);
}

/* The edges as graphs, and each block's run of predecessors. */
static void link_graphs(struct mg_cfg *c, uint32_t n_edges)
{
    uint32_t *at = mg_arena_array(&c->arena, uint32_t, c->n_blocks + 1);
    for (uint32_t i = 0; i < c->n_blocks; i++) at[i] = c->blocks[i].succ_at;
    at[c->n_blocks] = n_edges;
    c->succ = (struct mg_graph){c->n_blocks, at, c->edges};
    c->pred = mg_graph_reversed(&c->arena, &c->succ);
    c->preds = c->pred.to;
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        c->blocks[i].pred_at = c->pred.at[i];
        c->blocks[i].n_preds = mg_graph_degree(&c->pred, i);
    }
}

static void connect(struct builder *b)
{
    const struct mg_module *m = b->m;
    struct mg_cfg *c = b->c;
    uint32_t cap = 0, n_edges = 0;
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        const struct mg_node *n = &m->nodes.at[c->blocks[i].last];
        cap += 1 + (ends_block(m, n) ? count_targets(m, n) : 0);
    }
    c->edges = mg_arena_array(&c->arena, uint32_t, cap + 1);
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        struct mg_block *k = &c->blocks[i];
        const struct mg_node *n = &m->nodes.at[k->last];
        k->succ_at = n_edges;
        if (falls_through(m, n)) add_edge(c, k, &n_edges, i + 1);
        if (!ends_block(m, n)) continue;
        unsigned op = m->forms.at[n->ref].op;
        k->leaves |= op == MG_OP_ret || op == MG_OP_exit || op == MG_OP_trap;
        for (uint32_t j = 0; j < n->n_opnds; j++) {
            const struct mg_opnd *o = &m->opnds.at[n->opnd + j];
            if (o->kind == MG_OPND_label) add_label_edge(b, k, &n_edges, o->id);
            if (o->kind != MG_OPND_target || m->targets.at[o->id].kind != MG_TARGET_branch) continue;
            const struct mg_target *t = &m->targets.at[o->id];
            for (uint32_t q = 0; q < t->n_opnds; q++) add_label_edge(b, k, &n_edges, m->opnds.at[t->first_opnd + q].id);
        }
    }
    link_graphs(c, n_edges);
}

/* Reverse postorder from the entry; blocks that it does not reach follow in id order. */
static void order_blocks(const struct mg_graph *g, uint32_t *order, bool *reached)
{
    uint64_t *seen = mg_xcalloc(mg_bits_words(g->n) + 1, sizeof *seen);
    uint32_t n = g->n ? mg_graph_order(g, 0, seen, order) : 0;
    for (uint32_t i = 0; i < g->n; i++) {
        reached[i] = mg_has(seen, i);
        if (!reached[i]) order[n++] = i;
    }
    free(seen);
}

/* The order in which the ranking search visits successors: those that leave more loops of `from`
 * first, then higher ids. */
static void sort_for_rank(const struct mg_loops *l, uint32_t from, uint32_t *e, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = i; j > 0; j--) {
            uint32_t da = mg_loops_common_depth(l, from, e[j - 1]), db = mg_loops_common_depth(l, from, e[j]);
            if (da < db || (da == db && e[j - 1] >= e[j])) break;
            uint32_t t = e[j];
            e[j] = e[j - 1];
            e[j - 1] = t;
        }
}

static void rank_blocks(struct mg_cfg *c)
{
    uint32_t n_edges = c->succ.at[c->n_blocks], *edges = mg_xmalloc(sizeof *edges * (n_edges + 1));
    memcpy(edges, c->edges, sizeof *edges * n_edges);
    struct mg_loops *l = mg_loops_new(c);
    for (uint32_t i = 0; i < c->n_blocks; i++) sort_for_rank(l, i, edges + c->blocks[i].succ_at, c->blocks[i].n_succs);
    mg_loops_free(l);
    uint32_t *order = mg_xmalloc(sizeof *order * (c->n_blocks + 1));
    bool *reached = mg_xcalloc(c->n_blocks + 1, sizeof *reached);
    order_blocks(&(struct mg_graph){c->n_blocks, c->succ.at, edges}, order, reached);
    for (uint32_t i = 0; i < c->n_blocks; i++) c->rank[order[i]] = i;
    free(reached);
    free(order);
    free(edges);
}

struct mg_cfg *mg_cfg_new(const struct mg_module *m, mg_id func)
{
    struct mg_cfg *c = mg_xcalloc(1, sizeof *c);
    c->m = m;
    c->func = func;
    struct builder b = {.c = c, .m = m, .f = &m->funcs.at[func]};
    survey(&b);
    uint32_t n_labels = b.label_hi - b.label_lo;
    b.targeted = mg_xcalloc(n_labels + 1, sizeof *b.targeted);
    b.block_of_label = mg_xmalloc(sizeof *b.block_of_label * (n_labels + 1));
    memset(b.block_of_label, 0xff, sizeof *b.block_of_label * (n_labels + 1));
    mark_targets(&b);
    cut(&b);
    connect(&b);
    c->rpo = mg_arena_array(&c->arena, uint32_t, c->n_blocks + 1);
    c->rpo_ix = mg_arena_array(&c->arena, uint32_t, c->n_blocks + 1);
    c->rank = mg_arena_array(&c->arena, uint32_t, c->n_blocks + 1);
    c->reachable = mg_arena_array(&c->arena, bool, c->n_blocks + 1);
    order_blocks(&c->succ, c->rpo, c->reachable);
    for (uint32_t i = 0; i < c->n_blocks; i++) c->rpo_ix[c->rpo[i]] = i;
    rank_blocks(c);
    free(b.targeted);
    free(b.block_of_label);
    mg_vec_release(&b.enders);
    return c;
}

void mg_cfg_free(struct mg_cfg *c)
{
    if (!c) return;
    mg_arena_release(&c->arena);
    free(c);
}

void mg_cfg_find_reaching(const struct mg_cfg *c, uint32_t to, uint64_t *reach)
{
    memset(reach, 0, sizeof *reach * mg_bits_words(c->n_blocks));
    mg_put(reach, to);
    mg_graph_close(&c->pred, reach, NULL);
}
