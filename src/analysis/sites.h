/* Sites: the blocks of every function that a kernel reaches, as the profile and every report name them. */
#ifndef MG_ANALYSIS_SITES_H
#define MG_ANALYSIS_SITES_H

#include "analysis/analysis.h"

/* What is known of a kernel without running it: blocks of every function reachable from it, in
 * text order, entry first. Stored once per kernel (store/). Owner: its own arena. */
struct mg_site_op {
    const char *op;
    uint32_t n;
    uint32_t n_guarded;
}; /* dotted text; n_guarded: of those, how many carry a guard */
struct mg_site_block {
    uint32_t id;                  /* dense over all functions of the kernel */
    const char *function, *label; /* label "" when none */
    uint32_t func_ix, block_ix;   /* function in mg_sites.funcs, block in its CFG */
    uint32_t ptx_line;            /* of the first instruction */
    const char *file;
    uint32_t line; /* source; file NULL when unknown */
    uint32_t n_insts;
    const uint32_t *succs;
    uint32_t n_succs; /* dense ids */
    const struct mg_site_op *ops;
    uint32_t n_ops;     /* sorted by op */
    const char *timing; /* does its count depend on timing: analysis/timing.h, mg_timing_text */
    bool apart;         /* is it open whether lanes have met in front of it: analysis/meet.h */
};
struct mg_sites {
    struct mg_arena arena;
    const char *kernel;
    mg_id *funcs;
    uint32_t n_funcs;      /* in the original module; entry first, then text order */
    uint32_t *first_block; /* func_ix -> first dense block id */
    struct mg_cfg **cfgs;
    struct mg_site_block *blocks;
    uint32_t n_blocks;
};
struct mg_sites *mg_sites_new(const struct mg_module *m, mg_id kernel);
void mg_sites_free(struct mg_sites *s);

#endif
