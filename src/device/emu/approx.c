/* Scalar entry points of the approx family; alu_approx.h defines them. */
#include "device/emu/alu_approx.h"

#define BOTH(name)                                                                                                     \
    float mg_##name##_approx_f32(float x)                                                                              \
    {                                                                                                                  \
        return name##_n(x);                                                                                            \
    }                                                                                                                  \
    float mg_##name##_approx_ftz_f32(float x)                                                                          \
    {                                                                                                                  \
        return flush32(name##_z(flush32(x)));                                                                          \
    }
BOTH(ex2)
BOTH(lg2)
BOTH(sin)
BOTH(cos)
BOTH(rcp)
BOTH(rsqrt)
BOTH(sqrt)
float mg_tanh_approx_f32(float x)
{
    return tanh_n(x);
}
float mg_div_approx_f32(float x, float y)
{
    return div_approx_n(x, y);
}
float mg_div_approx_ftz_f32(float x, float y)
{
    return flush32(div_approx_z(flush32(x), flush32(y)));
}
float mg_div_full_f32(float x, float y)
{
    return div_full_n(x, y);
}
float mg_div_full_ftz_f32(float x, float y)
{
    return flush32(div_full_z(flush32(x), flush32(y)));
}
double mg_rcp_approx_f64(double x)
{
    return rcp_gross(x);
}
double mg_rsqrt_approx_f64(double x)
{
    return rsqrt_gross(x);
}
