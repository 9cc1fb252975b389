/* What everything is known of costs nothing: these maps come from block counts, no code is inserted. */
#include <margay/probe.h>

MG_MAP(bytes, "[kernel, line] = sum()");
MG_MAP(wide, "[op] = count()");

MG_PROBE(moved, "ld.global, st.global, atom.global, red.global")
{
    mg_update(bytes, mg_width());
    if (mg_width() > 4) mg_update(wide, 1);
}
