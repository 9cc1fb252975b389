/* Which counts of a function determine the counts of all its blocks, at least cost.
 *
 * Entries of blocks and edges obey conservation: what enters a block leaves it. In the graph below
 * (Knuth 1973, Ball and Larus 1994) every edge outside a spanning tree is measured and every edge
 * inside it follows. A block is an edge too, so counting at a block's head, on an edge of the CFG
 * and by an induction variable are three ways to measure an edge of one graph, and a spanning tree
 * of greatest cost leaves the cheapest set that suffices.
 *
 *     END ──entry──► in(0)      in(b) ──block b──► out(b)      out(a) ──edge──► in(b)
 *     out(b) ──leave──► END     by ret, exit, or in a function called
 */
#ifndef MG_COUNT_PLAN_H
#define MG_COUNT_PLAN_H

#include "analysis/freq.h"
#include "analysis/indvar.h"

/* ---- solving: outlives the module ---------------------------------------------------------------- */

#define MG_FLOW_OPEN    UINT32_MAX       /* follows from the others */
#define MG_FLOW_ENTRIES (UINT32_MAX - 1) /* known from outside: how often the function was entered */
#define MG_FLOW_ZERO    (UINT32_MAX - 2) /* a trap: its launch has no counts */
#define MG_FLOW_LOOP    (UINT32_MAX - 3) /* the latch of one of `loops` */

struct mg_flow_edge {
    uint32_t a, b, from;
}; /* from: index of what was measured, or MG_FLOW_* */
/* A loop of a known number of rounds: its latch's edge is taken `times` for each time it is entered. */
struct mg_flow_loop {
    uint32_t latch, entry_at, n_entries, depth;
    uint64_t times;
};
struct mg_flow_step {
    uint32_t edge, node;
};               /* all edges of the node but this one are known by now */
struct mg_flow { /* owner: malloc */
    uint32_t n_blocks, n_nodes, n_edges, n_steps;
    struct mg_flow_edge *edges; /* the first n_blocks are the blocks; unreachable ones: a == b, count 0 */
    struct mg_flow_step *steps;
    struct mg_flow_loop *loops;
    uint32_t n_loops;  /* outer ones first */
    uint32_t *entries; /* edges by which they are entered */
};
/* blocks: n_blocks counts. Arithmetic is modulo 2^64. False: some edge would be taken fewer than 0 times, as no lanes
 * go. */
bool mg_flow_solve(const struct mg_flow *f, uint64_t entries, const uint64_t *measured, uint64_t *blocks);
void mg_flow_release(struct mg_flow *f);

/* ---- planning ------------------------------------------------------------------------------------ */

enum mg_count_kind {
    MG_COUNT_ENTRY, /* the function is entered */
    MG_COUNT_BLOCK, /* block is entered */
    MG_COUNT_EDGE,  /* the edge is taken */
    MG_COUNT_LEAVE, /* block's end leaves the function */
    MG_COUNT_IV,    /* an induction variable moved between the entry of its loop and the exits */
};
#define MG_COUNT_IFS 4
#define MG_COUNT_FEW 3
enum mg_count_width {
    MG_WIDTH_BIT, /* at most once in an activation of the function */
    MG_WIDTH_32,  /* fewer than 2^32 times */
    MG_WIDTH_64,
};
struct mg_count {
    enum mg_count_kind kind;
    enum mg_count_width width;
    uint32_t block, edge; /* edge: in cfg->edges */
    uint32_t iv;          /* MG_COUNT_IV: in plan->ivs */
    bool less_one;        /* MG_COUNT_IV: rounds less one for each run, which count the edge of the loop's latch */
    bool restores;        /* and that one is added again, in 64 bits */
    bool carries;         /* MG_COUNT_IV: of a loop that may run on; the step's carries are counted beside it */
    bool few;             /* at most MG_COUNT_FEW times in an activation */
    bool one_run;         /* MG_COUNT_IV: its loop runs at most once in an activation */
    struct mg_count_if {
        mg_id pred;
        bool is_not;
    } ifs[MG_COUNT_IFS];
    uint32_t n_ifs; /* MG_COUNT_IV: only in lanes for which all these hold, which no round changes */
    double events;  /* expected */
};
struct mg_count_plan {
    struct mg_count *list;
    uint32_t n; /* measured[i] of the flow */
    bool fails; /* some edge that no code can stand on would have to be measured */
    struct mg_flow flow;
    struct mg_ivs *ivs;
    struct mg_loops *loops;
    struct mg_dom *dom;
    struct mg_freq *freq;
};
struct mg_count_opts {
    bool wide_is_one;       /* an event costs one instruction even when it is counted in 64 bits */
    bool no_ifs;            /* no counter asks behind a loop what held in it */
    bool entries_known;     /* somebody else counts how often the function is entered */
    const bool *may_leave;  /* block -> its call may end the lane; may be NULL */
    const bool *calls_back; /* block -> its call may enter the function again: no induction variable is used around it;
                               may be NULL */
    const uint64_t *measured; /* block -> count of an earlier run, or NULL */
};
struct mg_count_plan *mg_count_plan_new(const struct mg_cfg *c, const struct mg_count_opts *o);
/* Of a counter of this block's entries. */
enum mg_count_width mg_count_block_width(const struct mg_count_plan *p, uint32_t block);
void mg_count_plan_free(struct mg_count_plan *p);

#endif
