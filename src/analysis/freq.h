/* How often blocks and edges of a function are expected to run, relative to one entry: a guess from
 * the shape of the code and from the idioms by which compilers write guards, or block counts that
 * an earlier run measured. Decides only where counters go, never what they count. */
#ifndef MG_ANALYSIS_FREQ_H
#define MG_ANALYSIS_FREQ_H

#include "analysis/analysis.h"
#include "analysis/loop.h"

struct mg_freq {
    struct mg_arena arena;
    double *block;
    double *edge;  /* as cfg->edges */
    double *leave; /* block -> leaving at its end by ret, exit, or running off */
    bool *parts;   /* block -> its branch tests data from memory: lanes of a warp part there */
    bool *trivial; /* block -> it only leaves */
    bool *stops;   /* block -> a brkpt or trap without a guard is in it: nobody comes there while the program works */
    bool *waits;   /* loop -> lanes wait in it for an mbarrier; the hardware suspends them, so it is hardly ever gone
                      around */
    double *share; /* as cfg->edges: of the executions of the edge's source */
};
/* measured: block -> count, or NULL. With it blocks and edges are not how often threads came by, but lanes that are
 * paid for: a warp pays for all of its lanes where any is. */
struct mg_freq *mg_freq_new(const struct mg_cfg *c, const struct mg_loops *l, const uint64_t *measured);
void mg_freq_free(struct mg_freq *f);

/* The one instruction that writes each register of a function; 0: none, or several do. Index: register - lo. at is to
 * be freed. */
struct mg_defs {
    mg_id lo, hi, *at;
};
struct mg_defs mg_single_defs(const struct mg_cfg *c);
static inline mg_id mg_def_of(const struct mg_defs *d, mg_id reg)
{
    return reg >= d->lo && reg < d->hi ? d->at[reg - d->lo] : 0;
}
/* Does the branch's guard say that two integers are equal (+1) or that they are not (-1)? 0: neither. */
int mg_branch_equality(const struct mg_module *m, const struct mg_defs *d, const struct mg_node *branch);

#endif
