/* Registers that a function may read before it writes them.
 *
 * What liveness at the entry says is followed along the ways of the function: guards and branches on one
 * predicate agree until it is written again, so that a definition under @p covers a use under @p, in
 * its block and in others. A move (or selp) hands the question on to its result. What is left is read on some
 * way that these facts allow; no value is known, so the program may still never go it. */
#ifndef MG_ANALYSIS_UNWRITTEN_H
#define MG_ANALYSIS_UNWRITTEN_H

#include "analysis/analysis.h"

struct mg_unwritten {
    struct mg_unwritten_use {
        mg_id reg, node;
    } * at; /* by register; one use of each, the first in the text that was found */
    uint32_t n;
    uint32_t n_given_up; /* registers whose ways are too many to be followed; not in `at` */
};
struct mg_unwritten *mg_unwritten_new(const struct mg_cfg *c);
void mg_unwritten_free(struct mg_unwritten *u);

#endif
