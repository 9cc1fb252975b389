/* What if these lanes did not store? Shows how a probe changes a program, and how often it did. */
#include <margay/probe.h>

MG_MAP(skipped, "[kernel] = count()");
MG_MAP(lost, "[kernel] = sum()");

MG_PROBE(odd_lanes, "before st.global /lane % 2 == 1/")
{
    mg_update(skipped, 1);
    mg_update(lost, mg_value());
    mg_skip();
}
