/* Shared by the files of the patch layer (patch*.c, instrument.c). Not for tools.
 *
 * Code is collected beside the module, spot by spot, and put into it when the tool has done its work
 * (patch/link.c): a tool that fails half way leaves nothing behind, and what depends on how many cells
 * there are is written when that is known. */
#ifndef MG_PATCH_PRIV_H
#define MG_PATCH_PRIV_H

#include "analysis/dom.h"
#include "analysis/freq.h"
#include "analysis/indvar.h"
#include "analysis/live.h"
#include "analysis/loop.h"
#include "analysis/space.h"
#include "analysis/ssa.h"
#include "analysis/uniform.h"
#include "insert/place.h"
#include "insert/emit.h"
#include "patch/layout.h"

enum { MG_TEMP_PRED, MG_TEMP_16, MG_TEMP_32, MG_TEMP_64, MG_TEMP_KINDS };

struct mg_patch_func { /* what tools share of one function */
    struct mg_dom *dom;
    struct mg_loops *loops;
    struct mg_ivs *ivs;
    struct mg_live *live;
    struct mg_ssa *ssa;
    struct mg_uniform *uniform;
    struct mg_freq *freq;
    struct mg_placer placer;
    bool has_placer;
    MG_VEC(mg_id) temps[MG_TEMP_KINDS]; /* registers that hold nothing between spots */
    mg_id closing;                      /* ret behind a body that would run off its end */
    bool closed;                        /* looked at */
};
struct mg_patches { /* one twin under instrumentation by several tools */
    const struct mg_sites *sites;
    const struct mg_module *app;
    struct mg_twin *twin;
    struct mg_module *m; /* of the twin */
    const struct mg_tools_opts *o;
    struct mg_layout *layout;
    struct mg_patch_func *funcs; /* by func_ix */
    struct mg_spaces *spaces;
    struct mg_patch_inst *insts;
    uint32_t n_insts;
    bool *may_exit;
    struct mg_map behind;        /* node -> last node that tools put behind it */
    bool ballot, can_ask, asked; /* how lanes are asked for */
    uint32_t n_launch_words;
};

enum mg_spot_kind {
    MG_AT_PROLOGUE,
    MG_AT_ENTRY,
    MG_AT_BEFORE,
    MG_AT_AFTER,
    MG_AT_EDGE,
    MG_AT_EXIT,
    MG_AT_KINDS,
    MG_AT_CALLED
};
enum mg_value_kind {
    MG_V_ACTIVE,
    MG_V_OWN,
    MG_V_LEADER,
    MG_V_N_ACTIVE,
    MG_V_ALL,
    MG_V_LANE,
    MG_V_LT,
    MG_V_EQ,
    MG_V_WARP,
    MG_V_TID,
    MG_V_CTA,
    MG_V_SM,
    MG_V_STRIP,
    MG_V_WORD,
    MG_V_ADDRESS,
    MG_V_PARAM,
    MG_V_TRUE,
};
struct mg_known {
    enum mg_value_kind kind;
    uint32_t arg;
    mg_id guard;
    bool guard_not;
    mg_id reg;
};
struct mg_code_item { /* a node, or (node 0) an addition to a sum */
    mg_id node, guard;
    bool guard_not;
    uint32_t sum;
    struct mg_opnd v; /* b64 */
    uint64_t most;    /* that it adds in an activation; UINT64_MAX: not known */
};
struct mg_code_guard {
    mg_id pred;
    bool is_not;
};
enum { MG_MAX_GUARDS = 16 };
struct mg_code_at {
    struct mg_patch *p;
    enum mg_spot_kind kind;
    uint32_t func_ix;
    mg_id node; /* code goes in front of it, or behind it (AFTER); 0: at the end */
    struct mg_code_guard guards[MG_MAX_GUARDS];
    uint32_t depth;           /* [0]: of the spot itself */
    bool flows;               /* it branches */
    bool first;               /* an edge's: in front of what stands at its end */
    mg_id called;             /* CALLED: the function (patch/called.c); begin: what it computes once, first */
    struct mg_code_at *begin; /* NULL: this is it, or no such spot */
    MG_VEC(mg_id) params;     /* registers */
    mg_id base;               /* CALLED: of them, where the cells begin that it counts in; 0: it is not told */
    uint32_t n_temps[MG_TEMP_KINDS];
    MG_VEC(struct mg_known) known;
    MG_VEC(struct mg_code_item) items;
};
struct mg_patch_sum_use {
    uint32_t sum;
    unsigned kind; /* enum mg_rc_kind */
    double weight;
    uint64_t most; /* in an activation */
};
struct mg_patch_share {
    uint32_t sum, cell, times, every;
};
struct mg_patch_strip {
    uint32_t first, n;
    bool ones;   /* one place of the code adds to it, 1 at most */
    mg_id *regs; /* by func_ix; 0: none */
};
struct mg_patch_near { /* cells in the CTA's shared memory (patch/shared.c) */
    bool wanted, tried;
    mg_id var;              /* 0: there is no room, or none asked for */
    mg_id lane;             /* register: address of the lane's word in a strip that begins with word 0 */
    struct mg_map word_of;  /* cell -> word */
    MG_VEC(uint32_t) cells; /* by word; of word 0 none */
    mg_id base;             /* register: address of word 0; 0: not used */
};
struct mg_patch_skips {
    mg_id node, pred;
};
struct mg_patch {
    struct mg_patches *all;
    const struct mg_tool *tool;
    const void *conf;
    struct mg_region *region;
    enum mg_err err; /* sticky; text in d */
    struct mg_diag d;
    bool in_analyze, wants_blocks, one_copy;
    struct mg_arena scratch;
    MG_VEC(uint8_t) rules; /* by cell */
    MG_VEC(struct mg_layout_site) sites;
    MG_VEC(mg_id) site_nodes;
    MG_VEC(struct mg_layout_table) tables;
    MG_VEC(uint32_t) sums; /* their cells; UINT32_MAX: shares */
    MG_VEC(struct mg_patch_share) shares;
    MG_VEC(struct mg_patch_strip) strips;
    MG_VEC(struct mg_patch_skips) skips;
    struct mg_patch_near near;
    MG_VEC(struct mg_code_at *) spots;                  /* in order of the first asking */
    MG_VEC(struct mg_code_at *) called;                 /* functions of ours */
    struct mg_map spot_of;                              /* kind and place -> index in spots */
    struct mg_channel_func *channel;                    /* by func_ix; NULL: no channel */
    uint32_t channel_places;                            /* that write, once a warp; 0: more often */
    MG_VEC(uint8_t) widths;                             /* of the accesses it records, by its sites */
    MG_VEC(const struct mg_record_type *) record_types; /* of what it records, by its sites (record/record.h) */
    struct mg_frame_code *frame;     /* of records in bounded memory (record/record.h); NULL: none written yet */
    uint32_t frame_records;          /* 0: they go through a channel */
    struct mg_patch_own {            /* by func_ix */
        struct mg_code_at *prologue; /* values that do not change */
        mg_id base;                  /* address of the cells, of this multiprocessor's copy; 0: not needed */
        mg_id list;                  /* address of the list; 0: not needed */
        mg_id *tables;
        uint32_t n_tables; /* addresses of tables, as far as they are needed here */
        struct mg_patch_sum_use *sums;
        uint32_t n_sums, first_sum; /* that its code adds to, in order of their slots; the first one */
        uint32_t n_strip_regs;
    } * own;
};

static inline struct mg_module *mg_at_module(const struct mg_code_at *at)
{
    return at->p->all->m;
}
mg_id mg_code_emit(struct mg_code_at *at, mg_id guard, bool guard_not, const char *form, const struct mg_opnd *opnds,
                   uint32_t n);
/* Whatever the guard: for what only computes a register of ours. */
#define MG_PURE(at, ...)           mg_code_emit((at), 0, false, MG_INST(__VA_ARGS__))
#define MG_GUARDED(at, guard, ...) mg_code_emit((at), (guard), false, MG_INST(__VA_ARGS__))
static inline const struct mg_code_guard *mg_at_guard(const struct mg_code_at *at)
{
    return &at->guards[at->depth];
}
struct mg_code_at *mg_at_prologue(struct mg_patch *p, uint32_t func_ix);
struct mg_opnd mg_code_vec(struct mg_code_at *at, const mg_id *regs, uint32_t n); /* {r, r ...} */
static inline struct mg_opnd mg_code_pair(struct mg_code_at *at, mg_id lo, mg_id hi)
{
    return mg_code_vec(at, (const mg_id[]){lo, hi}, 2);
}
void mg_code_forget(struct mg_code_at *at);  /* what is known of lanes no longer holds */
mg_id mg_value_base(struct mg_code_at *at);  /* address of cell 0 */
mg_id mg_value_strip(struct mg_code_at *at); /* address of the lane's cell in a strip that begins with cell 0 */
mg_id mg_value_table(struct mg_code_at *at, uint32_t table);
struct mg_placer *mg_patch_placer(struct mg_patches *s, uint32_t func_ix);
/* The ret behind the body, made where it would run off its end; 0: it does not. */
mg_id mg_patch_close(struct mg_patches *s, uint32_t func_ix);
/* A channel's code where threads leave (channel_code.c). */
void mg_channel_end(struct mg_patch *p);
/* Puts the tool's code into the twin; the region's layout is known by then. */
void mg_patch_link(struct mg_patch *p);
/* Slots of sums, function by function, behind the cells of a copy (patch/sum.c). */
void mg_sums_place(struct mg_patch *p);
/* Adding near the threads: false where the cell has no word there, and nothing was done. */
bool mg_near_strip(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id v);
bool mg_near_strip_at(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id k, mg_id v);
bool mg_near_is(struct mg_code_at *at);
bool mg_near_tally(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix);
bool mg_near_lanes(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix);
bool mg_near_cell(struct mg_code_at *at, uint32_t cell, struct mg_opnd v, mg_id one);
void mg_near_end(struct mg_patch *p); /* its code at entry, loops and exits */
/* May a thread end in this function without passing its exits? */
bool mg_patch_ends_elsewhere(struct mg_patch *p, uint32_t func_ix);
void mg_called_link(struct mg_patch *p); /* puts the bodies of functions of ours together */
void mg_called_release(struct mg_patch *p);
/* The function in which the spot's code is. */
static inline mg_id mg_at_body(const struct mg_code_at *at)
{
    return at->called ? at->called : at->p->all->twin->funcs[at->func_ix];
}
struct mg_sums;
struct mg_sums *mg_sums_begin(struct mg_patch *p, uint32_t func_ix); /* at the function's entry; NULL: it has none */
void mg_sums_add(struct mg_sums *s, mg_id in_front, const struct mg_code_item *it);
void mg_sums_end(struct mg_sums *s); /* at its exits; frees */
/* How much an addition of v here adds in an activation at most; UINT64_MAX: that is not known. */
uint64_t mg_sum_most(const struct mg_code_at *at, struct mg_opnd v);

#endif
