/* The binary exponents of the single-precision numbers that a kernel stores: is half precision enough? */
#include <margay/probe.h>

MG_MAP(exponent, "[kernel, $0] = count()");
MG_MAP(too_small, "[kernel] = count()");

static inline mg_int exponent_of(mg_int bits)
{
    return (bits >> 23 & 255) - 127;
}

MG_PROBE(store, "st.global type=f32")
{
    mg_int e = exponent_of(mg_bits());
    mg_update1(exponent, 1, e);
    if (e < -14 && (mg_bits() & 0x7fffffff)) mg_update(too_small, 1);
}
