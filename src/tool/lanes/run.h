/* Shared by the files that put the code of lanes into one kernel: lanes.c, and sides.c, which counts both ways of a
 * branch in front of it. */
#ifndef MG_TOOL_LANES_RUN_H
#define MG_TOOL_LANES_RUN_H

#include "tool/lanes/lanes.h"
#include "tool/lanes/plan.h"

struct mg_lanes_ranks {
    mg_id who, rank; /* registers: the lanes of a mask; how many of them are up to this one, itself included */
};
/* Of a ranked branch: how often as many lanes went one way as this one's rank. */
struct mg_lanes_went {
    mg_id reg;   /* 0: it is none */
    bool packed; /* in 8 bits of it, from `shift` on */
    uint8_t shift;
};
struct mg_lanes_run { /* of one kernel */
    struct mg_patch *p;
    const struct mg_sites *s;
    uint32_t *preds;
    struct mg_lanes_plan **plans; /* by func_ix */
    mg_id *masks;  /* by dense id: register with the lanes that entered the block last; 0: none needs it */
    mg_id *rounds; /* by dense id, of loops that count runs: how often these lanes did so in a row, less what is counted
                      (a double); 0: none */
    uint32_t *cells;              /* by dense id, of blocks that a branch in front of them counts */
    struct mg_lanes_went *went;   /* by dense id */
    struct mg_lanes_ranks *ranks; /* by dense id, of blocks whose lanes have ranks; who 0: none */
    bool calls;                   /* functions for when lanes have changed: */
    struct mg_code_at *difference, *runs;
    mg_id here, partial; /* at the kernel's entry: its lanes; predicate: its warp had not all. 0: not asked */
    mg_id ragged;        /* predicate: CTAs have a warp that is not full. 0: not asked */
};

static inline const struct mg_lanes_block *mg_lanes_plan_of(const struct mg_lanes_run *r, uint32_t id)
{
    const struct mg_site_block *b = &r->s->blocks[id];
    return &r->plans[b->func_ix]->blocks[b->block_ix];
}
mg_id mg_lanes_at_entry(struct mg_lanes_run *r);
/* For later, in a register of the block's own (0: nobody asks). What activemask told must not be kept, nor counted by:
 * what is made of it ptxas takes for equal in all lanes that run together, also where groups have met since, and then
 * adds up one lane's for all. */
void mg_lanes_keep(struct mg_code_at *at, mg_id own, struct mg_opnd lanes);
void mg_lanes_jump(struct mg_code_at *at, mg_id p, bool negated, mg_id to);

/* Other lanes than there: those here are counted in cells from `cell` on, those there are taken off. */
mg_id mg_lanes_difference(struct mg_lanes_run *r, struct mg_code_at *at, uint32_t cell, mg_id there);
/* In front of the branch at the block's end: who goes where. */
void mg_lanes_count_sides(struct mg_lanes_run *r, uint32_t id);
/* Ranked branches: registers for them, before any code is made; what they have counted goes to cells where their lanes'
 * ranks change or lanes leave. */
void mg_lanes_ranks_begin(struct mg_lanes_run *r);
void mg_lanes_ranks_set(struct mg_lanes_run *r, struct mg_code_at *at, uint32_t id, mg_id who);
void mg_lanes_ranks_add(struct mg_lanes_run *r, struct mg_code_at *at, uint32_t id);

#endif
