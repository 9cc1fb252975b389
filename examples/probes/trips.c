/* How often each thread goes round the loops of a kernel, and how much of that is above the average
 * warp's: a variable of the thread, a histogram, the most of every group of CTAs. */
#include <margay/probe.h>

MG_MAP(trips, "[kernel] = hist()");
MG_MAP(most, "[kernel, cta % 4] = max()");

enum { ROUNDS }; /* number of the variable */

MG_PROBE(begin, "kernel:entry")
{
    mg_set_var(ROUNDS, 0);
}
MG_PROBE(round_ends, "edge:back")
{
    mg_set_var(ROUNDS, mg_var(ROUNDS) + 1);
}
MG_PROBE(end, "kernel:exit")
{
    mg_update(trips, mg_var(ROUNDS));
    mg_update(most, mg_var(ROUNDS));
}
