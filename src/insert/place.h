/* Places for inserted code in the body of a twin: on an edge of the CFG, at a block's end, at the
 * function's entry. Code for cold edges goes into blocks of its own behind the body. The CFG is the
 * application's, made before anything was inserted. */
#ifndef MG_INSERT_PLACE_H
#define MG_INSERT_PLACE_H

#include "analysis/freq.h"

/* What one event on an edge costs, relative to one instruction at the edge's own frequency. */
enum mg_edge_place {
    MG_PLACE_HEAD,  /* at the head of its target, which nothing else enters */
    MG_PLACE_END,   /* at the end of its source, which goes nowhere else */
    MG_PLACE_FALL,  /* behind the branch */
    MG_PLACE_GUARD, /* in front of the branch, with its guard */
    MG_PLACE_AWAY,  /* in a block of its own */
};
enum mg_edge_place mg_edge_place(const struct mg_cfg *c, const struct mg_freq *f, uint32_t block, uint32_t edge);
/* Does the branch at the end of the block jump over few instructions? Such code stays in line. */
bool mg_edge_jumps_over_little(const struct mg_cfg *c, uint32_t block, uint32_t to);

struct mg_spot {
    mg_id at; /* code goes in front of this node; 0: at the end of the body */
    mg_id guard;
    bool guard_not; /* what the code has to be guarded by; 0: nothing */
};
struct mg_placer {
    struct mg_module *m;
    mg_id func;
    const struct mg_cfg *c;
    const struct mg_freq *f;
    struct mg_map away; /* edge -> node at the end of its block of its own */
    bool scanned;
    struct mg_map scoped; /* labels declared inside a scope { }: not to be seen from outside */
};
/* The body must not be left by running off its end: close it by a `ret` first. */
struct mg_spot mg_place_edge(struct mg_placer *p, uint32_t block, uint32_t edge);
/* Where a block's lanes leave the function by its last instruction. */
struct mg_spot mg_place_leave(struct mg_placer *p, uint32_t block);
void mg_placer_release(struct mg_placer *p);

#endif
