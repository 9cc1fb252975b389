/* Loops that another CTA may end (await.h). In each outermost loop what is read from memory is followed:
 *
 *   read in the loop, or made from such   the register is dark
 *   a branch on a dark register           blocks up to where its ways meet (its postdominator) are under it: what they
 *                                         write is dark
 *
 * The kernel may wait where a dark branch, or one under it, leaves the loop, and where a dark branch leads back to
 * itself before its ways meet, by blocks that read. Else the blocks that are under no dark branch run in an order, and
 * as often, as no other CTA can change: from each dark branch a thread comes to where its ways meet by what it holds
 * already. Memory is one place: what is read from shared or local memory may be what another warp has read elsewhere.
 * So is what threads hand each other in registers (votes, shuffles, barriers that reduce): they may meet at different
 * instructions, so once a dark value, or whether it is one, goes into any, what comes out of each may be new.
 * The order of instructions is not asked for, so a register is dark in all of the loop or nowhere. */
#include "analysis/await.h"

#include <stdlib.h>

#include "analysis/callgraph.h"
#include "analysis/dom.h"
#include "analysis/loop.h"

enum { MOST_IDS = 300 };

struct look {
    const struct mg_cfg *c;
    const struct mg_module *m;
    const struct mg_loops *l;
    const struct mg_dom *post;
    mg_id lo, hi;     /* registers */
    uint64_t *dark;   /* register - lo */
    uint64_t *in;     /* blocks of the loop that is looked at */
    uint64_t *under;  /* those of them that a dark branch leads to */
    uint64_t *reads;  /* those that read anew */
    uint64_t *spread; /* those whose branch is dark, and was followed */
    uint64_t *region; /* scratch: blocks, twice */
    bool told;        /* something dark is handed to other threads */
    bool changed, may;
};

/* What works on memory of its own, by descriptors: not looked into. */
static bool is_beyond(unsigned op)
{
    return op == MG_OP_tcgen05 || op == MG_OP_wgmma || op == MG_OP_wmma || op == MG_OP_clusterlaunchcontrol;
}

/* Hands values of registers from thread to thread. */
static bool exchanges(const struct mg_form *f)
{
    switch ((enum mg_op)f->op) {
    case MG_OP_shfl:
    case MG_OP_vote:
    case MG_OP_match:
    case MG_OP_redux:
        return true;
    case MG_OP_bar:
    case MG_OP_barrier:
        return mg_form_has(f, MG_MOD_red);
    default:
        return false;
    }
}

/* Its value may be another one each time, whatever its operands are. */
static bool reads_anew(const struct look *x, const struct mg_node *n)
{
    const struct mg_form *f = mg_node_form(x->m, n);
    if (f->op == MG_OP_call || f->op == MG_OP_activemask || f->op == MG_OP_elect || f->op_flags & MG_OPF_HIDDEN)
        return true;
    if (f->unknown || (x->told && exchanges(f))) return true;
    if (!(f->op_flags & (MG_OPF_READS | MG_OPF_ATOMIC))) return false;
    if (f->space == MG_SPACE_const) return false;
    if (f->space != MG_SPACE_param || x->m->funcs.at[x->c->func].kind != MG_FUNC_entry) return true;
    for (uint32_t k = 0; k < n->n_opnds; k++) { /* a kernel's own parameters stay as they are; results do not */
        const struct mg_opnd *o = &x->m->opnds.at[n->opnd + k];
        if (o->kind == MG_OPND_addr) return o->sub != MG_OPND_var || !x->m->vars.at[o->id].is_param;
    }
    return true;
}

static bool uses_dark(const struct look *x, mg_id node)
{
    mg_id ids[MOST_IDS];
    uint32_t n = mg_node_uses(x->m, node, ids, MOST_IDS);
    if (n > MOST_IDS) return true;
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] < x->lo || ids[i] >= x->hi || mg_has(x->dark, ids[i] - x->lo)) return true;
    return false;
}

static void darken(struct look *x, mg_id node)
{
    mg_id ids[MOST_IDS];
    uint32_t n = mg_node_defs(x->m, node, ids, MOST_IDS);
    x->may |= n > MOST_IDS;
    for (uint32_t i = 0; i < n && i < MOST_IDS; i++) {
        if (ids[i] < x->lo || ids[i] >= x->hi || mg_has(x->dark, ids[i] - x->lo)) continue;
        mg_put(x->dark, ids[i] - x->lo);
        x->changed = true;
    }
}

static bool leaves_loop(const struct look *x, uint32_t block)
{
    const struct mg_block *b = &x->c->blocks[block];
    bool out = b->leaves;
    for (uint32_t e = 0; e < b->n_succs; e++) out |= !mg_has(x->in, x->c->edges[b->succ_at + e]);
    return out;
}

/* All that a thread may run between a dark branch and where its ways meet. */
static void spread(struct look *x, uint32_t block)
{
    uint32_t words = mg_bits_words(x->c->n_blocks), meet = x->post->idom[block];
    uint64_t *wall = x->region + words;
    bool reads = false;
    mg_put(x->spread, block);
    for (uint32_t w = 0; w < words; w++) wall[w] = ~x->in[w];
    if (meet < x->c->n_blocks) mg_put(wall, meet);
    mg_graph_after(&x->c->succ, block, x->region, wall);
    for (uint32_t w = 0; w < words; w++) reads |= (x->region[w] & x->reads[w]) != 0;
    x->may |= reads && mg_has(x->region, block);
    x->changed |= mg_bits_join(x->under, x->region, words);
}

static void look_at_block(struct look *x, uint32_t block)
{
    const struct mg_block *b = &x->c->blocks[block];
    bool under = mg_has(x->under, block);
    for (mg_id id = b->first; id; id = id == b->last ? 0 : x->m->nodes.at[id].next) {
        const struct mg_node *n = &x->m->nodes.at[id];
        if (n->kind != MG_NODE_inst) continue;
        if (!under && !reads_anew(x, n) && !uses_dark(x, id)) continue;
        darken(x, id);
        x->told |= exchanges(mg_node_form(x->m, n));
    }
    bool is_dark = uses_dark(x, b->last);
    if (leaves_loop(x, block) && (under || is_dark)) x->may = true;
    if (is_dark && b->n_succs > 1 && !mg_has(x->spread, block)) spread(x, block);
}

static void find_reads(struct look *x, uint32_t block)
{
    const struct mg_block *b = &x->c->blocks[block];
    mg_put(x->in, block);
    for (mg_id id = b->first; id; id = id == b->last ? 0 : x->m->nodes.at[id].next) {
        const struct mg_node *n = &x->m->nodes.at[id];
        if (n->kind != MG_NODE_inst) continue;
        if (reads_anew(x, n)) mg_put(x->reads, block);
        x->may |= is_beyond(mg_node_form(x->m, n)->op);
    }
}

/* A loop that reads and has no way out: what a function that it calls reads may end all threads by a trap. */
static bool is_endless(const struct look *x)
{
    bool reads = false;
    for (uint32_t b = 0; b < x->c->n_blocks; b++) {
        if (mg_has(x->in, b) && leaves_loop(x, b)) return false;
        reads |= mg_has(x->reads, b);
    }
    return reads;
}

static void look_at_loop(struct look *x, uint32_t loop)
{
    uint32_t n = x->c->n_blocks, words = mg_bits_words(n);
    for (uint32_t w = 0; w < words; w++) x->in[w] = x->under[w] = x->reads[w] = x->spread[w] = 0;
    for (uint32_t w = 0; w < mg_bits_words(x->hi - x->lo); w++) x->dark[w] = 0;
    for (uint32_t b = 0; b < n; b++)
        if (mg_loops_contains(x->l, loop, b)) find_reads(x, b);
    x->may |= x->l->loops[loop].n_headers > 1 || is_endless(x);
    for (x->changed = true; x->changed && !x->may;) {
        x->changed = false;
        for (uint32_t k = 0; k < n && !x->may; k++)
            if (mg_has(x->in, x->c->rpo[k])) look_at_block(x, x->c->rpo[k]);
    }
}

/* Callees are looked at by themselves. *told: in and out. */
static bool may_await(const struct mg_cfg *c, bool *told)
{
    struct look x = {.c = c, .m = c->m, .told = *told};
    struct mg_loops *l = mg_loops_new(c);
    struct mg_dom *post = mg_postdom_new(c);
    uint32_t words = mg_bits_words(c->n_blocks);
    mg_func_regs(c->m, c->func, &x.lo, &x.hi);
    uint64_t *rows = mg_xcalloc(6 * (size_t)words + 1, sizeof *rows);
    x.l = l;
    x.post = post;
    x.in = rows;
    x.under = rows + words;
    x.reads = rows + 2 * (size_t)words;
    x.spread = rows + 3 * (size_t)words;
    x.region = rows + 4 * (size_t)words;
    x.dark = mg_xcalloc((size_t)mg_bits_words(x.hi - x.lo) + 1, sizeof *x.dark);
    for (uint32_t k = 0; k < l->n_loops && !x.may; k++)
        if (l->loops[k].parent == MG_NO_LOOP) look_at_loop(&x, k);
    *told = x.told;
    free(x.dark);
    free(rows);
    mg_dom_free(post);
    mg_loops_free(l);
    return x.may;
}

/* Does the function call one that nobody knows, or, where it is called itself, end threads from within a loop of its
 * caller's? *told: it is called itself, and hands other threads what may be read in such a loop. */
static bool is_opaque(const struct mg_module *m, mg_id func, bool *told)
{
    bool called = m->funcs.at[func].kind != MG_FUNC_entry;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_inst) continue;
        unsigned op = mg_node_form(m, n)->op;
        *told |= called && exchanges(mg_node_form(m, n));
        if (op == MG_OP_exit && called) return true;
        if (op != MG_OP_call) continue;
        struct mg_call call;
        mg_call_read(m, id, &call);
        if (call.indirect || !call.func ||
            (!mg_func_body(m, call.func) && !mg_func_is_builtin(mg_name(m, m->funcs.at[call.func].name))))
            return true;
    }
    return false;
}

bool mg_kernel_may_await(const struct mg_module *m, mg_id kernel)
{
    struct mg_callgraph *g = mg_callgraph_new(m, kernel);
    bool may = g->has_indirect || g->has_recursion, told = false, before;
    do { /* once more where other threads were told something: what was looked at before may hear it */
        before = told;
        for (uint32_t k = 0; k < g->n_funcs && !may; k++) {
            struct mg_cfg *c = NULL;
            may = is_opaque(m, g->funcs[k], &told) || !(c = mg_cfg_new(m, g->funcs[k])) || may_await(c, &told);
            mg_cfg_free(c);
        }
    } while (!may && told != before);
    mg_callgraph_free(g);
    return may;
}
