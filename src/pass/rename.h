/* Shared by the passes that give registers new names (ssa.c, regs.c). Not for others. */
#ifndef MG_PASS_RENAME_H
#define MG_PASS_RENAME_H

#include "analysis/live.h"
#include "pass/pass.h"

/* Registers of the function that keep their names, by register - l->reg_lo: vectors, parameters, those that
 * do not fit one move, and all that instructions touch which read what they write, or write it later than
 * where they stand. To be freed. */
bool *mg_regs_pinned(const struct mg_module *m, mg_id func, const struct mg_live *l);
/* "mov.b32" and the like. */
const char *mg_mov_form(enum mg_type type);
/* Takes declarations out of the body whose registers nothing names any more. */
void mg_regs_undeclare(struct mg_module *m, mg_id func);

#endif
