/* Probes in C, compiled to PTX (include/margay/probe.h): checked once, then put inline at their sites.
 *
 *   PTX ─ parse ─► strings: maps and sites, as text of the one-liner language (mg_probe_text)
 *                └► functions: each instruction allowed, calls known, loops proven to end
 *   at a site:     what is known there is folded, the rest is emitted (probe_place.c)
 *
 * A loop is proven to end when it has a constant number of rounds, or cannot go round unless mg_below says
 * so, which it does a bounded number of times whatever the probe does. */
#ifndef MG_TOOL_PROBE_H
#define MG_TOOL_PROBE_H

#include "analysis/analysis.h"
#include "probe/expr.h"

enum {
    MG_PROBE_ROUNDS = 4096 /* of a loop */,
    MG_PROBE_FUEL = 1 << 16 /* times that one mg_below says yes, at one firing */
};

enum mg_probe_call {
    MG_PC_none,
    MG_PC_update,
    MG_PC_value,
    MG_PC_arg,
    MG_PC_var,
    MG_PC_set_var,
    MG_PC_skip,
    MG_PC_below,
    MG_PC_begin,
    MG_PC_end,
    MG_PC_emit
};
struct mg_probe_known { /* what a register holds, as far as it is known before the kernel runs */
    enum { MG_PK_NO, MG_PK_NUM, MG_PK_MAP /* address of a string: id */ } kind;
    uint64_t num; /* of a narrower register: its bits */
    mg_id id;
};
struct mg_probe_fn {
    const char *name, *site; /* site: text of the one-liner language */
    mg_id func;
    struct mg_cfg *cfg;
    mg_id reg_lo, reg_hi; /* its registers */
    uint8_t *n_defs;      /* register - reg_lo: how many instructions write it, 2: several */
    bool uses[MG_EV_COUNT];
    bool skips, emits;
    uint32_t emit; /* its number among those of the program */
    uint64_t maps; /* a bit each: those it updates */
};
struct mg_probe {
    struct mg_arena arena;
    struct mg_module *m;
    struct mg_probe_fn *fns;
    uint32_t n_fns;
    struct mg_probe_map {
        const char *name, *decl;
        mg_id var;
        uint32_t update;
    } * maps;
    uint32_t n_maps; /* update: of the program, when resolved */
    struct mg_probe_event {
        const char *name;
        mg_id var;
    } * events;
    uint32_t n_events;
};
/* file: of the PTX, for messages that no .loc answers. */
enum mg_err mg_probe_parse(const char *ptx, size_t bytes, const char *file, struct mg_probe **out,
                           struct mg_diag *d) MG_MUST_CHECK;
void mg_probe_free(struct mg_probe *p);
/* The program that fires the probes: probe "path", its maps, a clause for each probe. */
void mg_probe_text(const struct mg_probe *p, const char *path, struct mg_buf *out);
const struct mg_probe_fn *mg_probe_find(const struct mg_probe *p, const char *name);

/* ---- folding ----------------------------------------------------------------------------------------- */
enum mg_probe_call mg_probe_call_of(const struct mg_module *m, mg_id node,
                                    enum mg_expr_value *value); /* of a call instruction; none: not one of ours */
uint32_t mg_probe_args(const struct mg_module *m, mg_id node);  /* what such a call takes */
const char *mg_probe_event(const struct mg_probe *p,
                           const struct mg_probe_known *k); /* the event that an argument names; NULL: none */
struct mg_probe_fold {
    const struct mg_probe *p;
    const struct mg_probe_fn *fn;
    struct mg_probe_known *regs;   /* register - reg_lo */
    struct mg_probe_known *params; /* variable - var_lo: what stands in a parameter of a call */
    mg_id var_lo, var_hi;
    bool *reached; /* block */
    /* What a call gives where that is known. */
    struct mg_probe_known (*result)(void *user, mg_id call);
    void *user;
};
/* Walks the function once; all: every block, reached or not. Owner of the arrays: `scratch`. */
void mg_probe_fold_run(struct mg_probe_fold *f, bool all, struct mg_arena *scratch);
struct mg_probe_known mg_probe_operand(const struct mg_probe_fold *f, const struct mg_opnd *o, unsigned bits);
/* Parameter `ix` of a call. */
struct mg_probe_known mg_probe_param(const struct mg_probe_fold *f, mg_id call, uint32_t ix);
mg_id mg_probe_param_var(const struct mg_module *m, mg_id call, uint32_t ix); /* 0: none */
/* Is the edge from a block to its n-th successor possible? */
bool mg_probe_may_go(const struct mg_probe_fold *f, uint32_t block, uint32_t n);

#endif
