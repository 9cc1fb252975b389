/* Loops that the GPU's assembler may take for ones that wait for other threads.
 *
 * In a loop whose end it does not see, ptxas puts YIELD where an atomic stands on shared memory, or one whose result is
 * used. With YIELD lanes that branches parted no longer meet (seen on an H200: BSYNC lets them go on piece by piece),
 * so code that is added must have no such atomic there: it would change which lanes run together, which is what several
 * tools measure. It sees the end of loops that count upwards to a bound, in functions without subroutines: calls, and
 * divisions and roots, most of which become calls. */
#ifndef MG_ANALYSIS_SPIN_H
#define MG_ANALYSIS_SPIN_H

#include "analysis/indvar.h"

/* By loop; to be freed. */
bool *mg_loops_may_spin(const struct mg_cfg *c, const struct mg_loops *l, const struct mg_ivs *v);

#endif
