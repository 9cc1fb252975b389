/* The schemes by which blocks can be counted, and what their files share. Not for other folders. */
#ifndef MG_COUNT_SCHEMES_H
#define MG_COUNT_SCHEMES_H

#include "count/counters.h"
#include "insert/emit.h"

enum mg_err mg_count_by_class(const struct mg_counter_opts *o, const struct mg_sites *s, struct mg_twin *t,
                              struct mg_counter_layout *l, struct mg_diag *d);
/* plan: prints it there; NULL: nowhere. */
enum mg_err mg_count_by_register(const struct mg_counter_opts *o, const struct mg_sites *s, struct mg_twin *t,
                                 struct mg_counter_layout *l, struct mg_buf *plan, struct mg_diag *d);
enum mg_err mg_count_by_seed(const struct mg_counter_opts *o, const struct mg_sites *s, struct mg_twin *t,
                             struct mg_counter_layout *l, struct mg_diag *d);

/* Does this thread's CTA (and warp) count? 0: every one does. */
mg_id mg_count_mine(struct mg_emit *x, const struct mg_counter_opts *o);
/* Which block has which counter, for schemes that give each one or share them (dump.c). */
void mg_count_dump_layout(const struct mg_sites *s, const struct mg_counter_layout *l, struct mg_buf *out);
/* Lanes that call a function without a clone. */
void mg_count_others(struct mg_twin *t, const struct mg_counter_layout *l);

#endif
