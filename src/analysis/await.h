/* May a thread of a kernel wait for what a thread of another CTA does?
 *
 * That takes a loop that goes on until memory holds what another CTA puts there: whether it is left, or how often,
 * depends on what is read from memory inside it. A kernel without such a loop ends in whatever order its CTAs run, one
 * after the other, too. Barriers of clusters and of cooperative grids are not looked at: their launches say what they
 * are. */
#ifndef MG_ANALYSIS_AWAIT_H
#define MG_ANALYSIS_AWAIT_H

#include "analysis/analysis.h"

/* In any function that the kernel reaches; true, too, where recursion, calls through pointers or of unknown functions
 * make loops that nobody sees. */
bool mg_kernel_may_await(const struct mg_module *m, mg_id kernel);

#endif
