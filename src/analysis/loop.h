/* Loops: the nest of strongly connected regions of a CFG.
 * A loop is a maximal strongly connected set of blocks (reachable ones only); its headers are the
 * blocks entered from outside; inside, with the edges to its headers taken away, the same again.
 * In a reducible graph these are the natural loops, one for each header; a loop with several
 * headers is irreducible. */
#ifndef MG_ANALYSIS_LOOP_H
#define MG_ANALYSIS_LOOP_H

#include "analysis/analysis.h"

#define MG_NO_LOOP UINT32_MAX

struct mg_loop {
    uint32_t header;    /* the header of lowest id */
    uint32_t parent;    /* loop around it, MG_NO_LOOP at top level */
    uint32_t depth;     /* 1: outermost */
    uint32_t n_headers; /* > 1: irreducible */
    uint32_t n_blocks;  /* those of inner loops included */
};
struct mg_loops {
    struct mg_arena arena;
    struct mg_loop *loops;
    uint32_t n_loops;  /* outer loops before inner ones */
    uint32_t *loop_of; /* block -> innermost loop, MG_NO_LOOP: none */
    uint32_t n_blocks;
};
struct mg_loops *mg_loops_new(const struct mg_cfg *c);
/* Of any graph; pred: its edges reversed; node 0 is entered from outside; nodes that are not reachable are in no loop.
 */
struct mg_loops *mg_loops_of(const struct mg_graph *succ, const struct mg_graph *pred, const bool *reachable);
void mg_loops_free(struct mg_loops *l);
/* 0: in no loop. */
static inline uint32_t mg_loops_depth(const struct mg_loops *l, uint32_t block)
{
    return l->loop_of[block] == MG_NO_LOOP ? 0 : l->loops[l->loop_of[block]].depth;
}
bool mg_loops_contains(const struct mg_loops *l, uint32_t loop, uint32_t block);
/* How many loops hold both blocks. */
uint32_t mg_loops_common_depth(const struct mg_loops *l, uint32_t a, uint32_t b);

#endif
