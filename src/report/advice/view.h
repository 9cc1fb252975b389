/* A function of a module as rules look at it (view.c). */
#ifndef MG_REPORT_ADVICE_VIEW_H
#define MG_REPORT_ADVICE_VIEW_H

#include "analysis/ssa.h"
#include "ir/ir.h"

struct view {
    const struct mg_module *m;
    mg_id func;
    struct mg_cfg *cfg; /* NULL: of no function yet */
    struct mg_loops *loops;
    struct mg_dom *dom; /* with what follows NULL until somebody asks for values */
    struct mg_live *live;
    struct mg_ssa *ssa;
};
/* Turns to the function: its first node; 0: it is not there, and the view is as before. */
mg_id view_function(struct view *v, const struct mg_module *m, const char *function);
const struct mg_ssa *ssa_of(struct view *v);
/* The innermost loop around an instruction, or MG_NO_LOOP. */
uint32_t loop_at(const struct view *v, mg_id node);
/* The first instruction of that line, from `first` on; 0: none. */
mg_id node_at(const struct mg_module *m, mg_id first, uint32_t ptx_line);
void view_release(struct view *v);

#endif
