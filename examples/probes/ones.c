/* How many bits are set in what a kernel stores: a loop that ends early, a function, a table by lane. */
#include <margay/probe.h>

MG_MAP(ones, "[line, lane / 8] = avg()");
MG_MAP(widest, "= max()");

static inline mg_int count_ones(mg_int x)
{
    mg_int n = 0;
    MG_FOR(i, 64)
    {
        if (!x) break;
        x &= x - 1;
        n++;
    }
    return n;
}

MG_PROBE(store, "st.global")
{
    mg_int n = count_ones(mg_bits());
    mg_update(ones, n);
    mg_update(widest, n);
}
