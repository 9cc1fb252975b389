/* Analyses over the IR: separate results indexed by IR ids, computed per function, immutable.
 * A basic block is a maximal straight line of instructions as loaded; only
 * labels that a branch or a branch table can reach begin one; a branch, ret, exit or trap (guarded
 * or not) and every call ends one; barriers, debug labels and .loc do not. Block ids are in text
 * order, from 0. An empty label at the end of a body (no instruction follows) makes no block. */
#ifndef MG_ANALYSIS_ANALYSIS_H
#define MG_ANALYSIS_ANALYSIS_H

#include "analysis/graph.h"
#include "ir/ir.h"

#define MG_NO_BLOCK UINT32_MAX

struct mg_block {
    mg_id label;               /* 0: none */
    mg_id first, last;         /* first and last instruction node (meta nodes inside are not counted) */
    uint32_t n_insts;          /* application instructions */
    uint32_t succ_at, n_succs; /* run in cfg->edges: fall-through first when there is one, then targets */
    uint32_t pred_at, n_preds; /* run in cfg->preds */
    mg_id loc;                 /* .loc in force at its first instruction, 0 = none */
    bool leaves;               /* a lane may leave the function at its end: ret, exit, trap, or running off the body */
};
struct mg_cfg {
    struct mg_arena arena;
    const struct mg_module *m;
    mg_id func;
    struct mg_block *blocks;
    uint32_t n_blocks;
    uint32_t *edges;
    const uint32_t *preds;
    struct mg_graph succ, pred; /* the same edges as graphs: succ.to is edges, pred.to is preds */
    uint32_t *rpo;              /* blocks in reverse postorder (reachable ones first, rest in id order), n_blocks */
    uint32_t *rpo_ix;           /* block -> position in rpo */
    bool *reachable;
    uint32_t *rank;     /* block -> thread-frontier rank, docs/schedule.md: reverse postorder of the
                         * depth-first search that visits loop exits before loop bodies and otherwise
                         * higher block ids first */
    uint32_t *block_of; /* node id -> block, MG_NO_BLOCK for nodes outside; sparse over [node_lo, node_hi) */
    mg_id node_lo, node_hi;
};
/* Meta instructions (MG_NF_META) never begin or end a block and are not counted. */
struct mg_cfg *mg_cfg_new(const struct mg_module *m, mg_id func);
void mg_cfg_free(struct mg_cfg *c);
/* Sets `reach` to the blocks from whose head a lane can come to the end of block `to` (to itself included). */
void mg_cfg_find_reaching(const struct mg_cfg *c, uint32_t to, uint64_t *reach);
static inline uint32_t mg_cfg_block_of(const struct mg_cfg *c, mg_id node)
{
    return node >= c->node_lo && node < c->node_hi ? c->block_of[node - c->node_lo] : MG_NO_BLOCK;
}

/* The other analyses (dom.h loop.h ssa.h live.h space.h callgraph.h) each have their own header. */
struct mg_callgraph { /* functions reachable from an entry, in text order, the entry first */
    mg_id *funcs;
    uint32_t n_funcs;
    bool has_indirect; /* some reachable function makes an indirect call: every address-taken function is in funcs */
    bool has_recursion;
    mg_id *taken;
    uint32_t n_taken; /* functions whose address is taken anywhere in the module */
};
struct mg_callgraph *mg_callgraph_new(const struct mg_module *m, mg_id entry);
void mg_callgraph_free(struct mg_callgraph *g);

#endif
