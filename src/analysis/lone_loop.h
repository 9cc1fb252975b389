/* Loops of one block that only compute, entered by one edge and left by one. Lanes that enter such a loop together are
 * together in it, and with no others, until they leave it, each after rounds of its own. How long a lane stays does not
 * depend on what others do, so lanes that have left may wait for those that have not: none waits for one that needs it.
 */
#ifndef MG_ANALYSIS_LONE_LOOP_H
#define MG_ANALYSIS_LONE_LOOP_H

#include "analysis/loop.h"

struct mg_lone_loop {
    uint32_t from;    /* block in front of it */
    uint32_t in, out; /* in cfg->edges: from there, and out of the loop. Code on either is run by all lanes that take it
                         and by no others, without a guard */
};
bool mg_lone_loop_of(const struct mg_cfg *c, const struct mg_loops *l, uint32_t block, struct mg_lone_loop *out);

#endif
