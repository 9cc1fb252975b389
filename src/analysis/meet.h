/* Blocks in front of which it is open whether lanes that a branch parted have met again.
 *
 * A branch parts lanes; all their ways lead to its postdominator, and there hardware lets them meet. Where ways join
 * before that the assembler lets them meet or not, as it finds better for the code as a whole: behind a loop with two
 * ways out that lead to different places, where a case of a switch falls into the next, where `goto` enters. ptxas 13.0
 * was seen to decide otherwise for a twin than for the native code. Open is also what follows up to the postdominator,
 * that itself (behind many ways it was not always kept), what follows a call of a recursive function, where lanes of
 * several depths may come out together, and whatever such blocks call. For lanes that have ended nobody waits: ways of
 * a kernel that end are none here, and neither is a block of `ret` alone.
 *
 * On the emulator and the CPU device lanes meet as docs/schedule.md says. */
#ifndef MG_ANALYSIS_MEET_H
#define MG_ANALYSIS_MEET_H

#include "analysis/analysis.h"

/* Sets open[first[f] + b] for such blocks b of functions f, those that a kernel reaches, itself the first. Any branch
 * is taken for one that parts lanes. */
void mg_meet_find(const struct mg_module *m, const mg_id *funcs, struct mg_cfg *const *cfgs, uint32_t n_funcs,
                  const uint32_t *first, bool *open);

#endif
