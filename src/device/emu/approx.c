/* Scalar entry points of the approx family; alu_approx.h defines them. No .ftz: callers flush. */
#include "device/emu/alu_approx.h"

float mg_ex2_approx_f32(float x) { return ex2_approx(x); }
float mg_lg2_approx_f32(float x) { return lg2_approx(x); }
float mg_sin_approx_f32(float x) { return sin_approx(x); }
float mg_cos_approx_f32(float x) { return cos_approx(x); }
float mg_rcp_approx_f32(float x) { return rcp_approx(x); }
float mg_rsqrt_approx_f32(float x) { return rsqrt_approx(x); }
float mg_sqrt_approx_f32(float x) { return sqrt_approx(x); }
float mg_tanh_approx_f32(float x) { return tanh_approx(x); }
double mg_rcp_approx_f64(double x) { return rcp_gross(x); }
double mg_rsqrt_approx_f64(double x) { return rsqrt_gross(x); }
