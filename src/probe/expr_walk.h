/* One walk of a one-liner over a kernel: shared by expr_place.c and probe_place.c alone. */
#ifndef MG_TOOL_EXPR_WALK_H
#define MG_TOOL_EXPR_WALK_H

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "probe/expr_place.h"
#include "record/channel.h"
#include "record/event.h"

struct mg_expr_entry {
    uint32_t cell;
    uint32_t sums[2];
}; /* cells of one update and its site keys */
struct mg_expr_placer {
    const struct mg_expr_conf *conf;
    const struct mg_expr *e;
    struct mg_patch *p;
    bool dry; /* analyze */
    bool wants_blocks;
    uint32_t n_sums;
    struct mg_map tables;                 /* update << 8 | its site keys -> table */
    struct mg_intern tuples;              /* "update|keys": entry, name or derived record, one space for all */
    MG_VEC(struct mg_expr_entry) entries; /* by tuple */
    mg_id **vars;                         /* by func_ix */
    bool has_events, emits;               /* seen by analyze */
    uint32_t ranges_at;
    struct mg_events *events;
};
struct mg_expr_walk { /* of one spot */
    struct mg_expr_placer *pl;
    const struct mg_expr_spot *spot;
    struct mg_expr_here here;
    struct mg_code_at *exit_at;      /* where the thread leaves, at such sites */
    bool begun, ok;                  /* `here` is made: something is emitted; there is something to look at */
    mg_id skip;                      /* pred: lanes that leave the instruction out */
    bool counted;                    /* by the block counter */
    bool always;                     /* no condition so far */
    const struct mg_expr_val *given; /* the value of an update, from a probe in C */
};
/* Makes `here` when the first code at the spot is wanted; false: there is nothing to look at. */
bool mg_expr_begin(struct mg_expr_walk *w);
void mg_expr_update(struct mg_expr_walk *w, const struct mg_expr_update *up);
void mg_expr_skip(struct mg_expr_walk *w);
void mg_expr_event(struct mg_expr_walk *w, const char *name, bool end);
void mg_expr_emit(struct mg_expr_walk *w, uint32_t emit, const struct mg_expr_val *values, uint32_t n);
/* A probe in C at the spot. */
void mg_probe_place(struct mg_expr_walk *w, const struct mg_probe_fn *fn);

#endif
