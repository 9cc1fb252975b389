/* How far apart the addresses of consecutive accesses of a thread lie, site by site: 0 the same place,
 * else the power of two of the distance; negative steps are counted apart. */
#include <margay/probe.h>

MG_MAP(steps, "[line, op] = hist()");
MG_MAP(back, "[line, op] = count()");

enum { LAST, SEEN };

MG_PROBE(access, "ld.shared, st.shared, atom.shared")
{
    mg_int step = mg_addr() - mg_var(LAST);
    if (mg_var(SEEN)) {
        if (step < 0) mg_update(back, 1);
        mg_update(steps, step < 0 ? -step : step);
    }
    mg_set_var(LAST, mg_addr());
    mg_set_var(SEEN, 1);
}
