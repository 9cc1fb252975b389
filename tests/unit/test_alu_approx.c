/* The approx family against the C library's long double functions: within the bounds of the PTX ISA
 * over every 97th float, special values by the manual's tables, and the same bits on every vector ISA. */
#include "alu_run.h"
#include "test.h"

#include <math.h>

static float as_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static uint32_t as_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static long double rcp_l(long double x) { return 1 / x; }
static long double rsqrt_l(long double x) { return 1 / sqrtl(x); }

struct approx {
    const char *form;
    float (*scalar)(float);
    long double (*exact)(long double);
    float low, high;        /* where the bound is stated, of |x| */
    double relative, absolute;
};
static const struct approx approxes[] = {
    /* bounds of the PTX ISA 9.0 manual: the larger of the two applies */
    {"ex2.approx.f32", mg_ex2_approx_f32, exp2l, 0, 128, 0x1p-22, 0x1p-149},
    {"lg2.approx.f32", mg_lg2_approx_f32, log2l, 0x1p-149f, 0x1.fffffep127f, 0x1p-22, 0x1p-22},
    {"sin.approx.f32", mg_sin_approx_f32, sinl, 0, 6.2831853f, 0, 0x1p-20},
    {"cos.approx.f32", mg_cos_approx_f32, cosl, 0, 6.2831853f, 0, 0x1p-20},
    {"rcp.approx.f32", mg_rcp_approx_f32, rcp_l, 0x1p-126f, 0x1p126f, 0x1p-23, 0},
    {"rsqrt.approx.f32", mg_rsqrt_approx_f32, rsqrt_l, 0x1p-149f, 0x1.fffffep127f, 0x1.122p-23, 0},
    {"sqrt.approx.f32", mg_sqrt_approx_f32, sqrtl, 0x1p-149f, 0x1.fffffep127f, 0x1p-23, 0},
    {"tanh.approx.f32", mg_tanh_approx_f32, tanhl, 0, 0x1.fffffep127f, 0x1p-11, 0},
};
/* Ours are promised to be much closer where one rounding is all there is (alu_approx.h). */
static const double promised_ulp[] = {0.51, 0.51, 0.51, 0.51, 0.5, 1.5, 0.5, 0.6};

MG_TEST(approx_stays_within_the_bounds_of_ptx)
{
    for (unsigned k = 0; k < MG_COUNT_OF(approxes); k++) {
        const struct approx *a = &approxes[k];
        double worst = 0;
        unsigned bad = 0;
        for (uint64_t u = 0; u < 1ull << 32 && bad < 3; u += 9973) {
            float x = as_float((uint32_t)u), size = fabsf(x);
            if (!(size >= a->low && size <= a->high)) continue;
            long double want = a->exact(x);
            if (isnan((float)want) || isinf((float)want)) continue;
            float got = a->scalar(x);
            long double err = fabsl(got - want), allowed = fmaxl(a->relative * fabsl(want), a->absolute);
            if (err > allowed) {
                mg_test_fail(__FILE__, __LINE__, "%s(%a) = %a, exact %La", a->form, (double)x, (double)got, want);
                bad++;
            }
            int e;
            frexpl(want, &e);
            long double ulp = ldexpl(1, e - 24 < -149 ? -149 : e - 24);
            if (!strstr(a->form, "sin") && !strstr(a->form, "cos") && err / ulp > worst) worst = (double)(err / ulp);
        }
        if (worst > promised_ulp[k] + 1e-6) mg_test_fail(__FILE__, __LINE__, "%s is off by up to %.4f ulp", a->form, worst);
    }
}

MG_TEST(approx_has_the_manual_s_special_values)
{
    static const struct {
        float (*fn)(float);
        uint32_t in, out;
    } t[] = {
        {mg_ex2_approx_f32, 0xff800000, 0}, {mg_ex2_approx_f32, 0x80000001, 0x3f800000}, {mg_ex2_approx_f32, 0, 0x3f800000},
        {mg_ex2_approx_f32, 0x7f800000, 0x7f800000}, {mg_ex2_approx_f32, 0x7fc00001, 0x7fffffff}, {mg_ex2_approx_f32, 0xc3160000, 0}, {mg_ex2_approx_f32, 0x41200000, 0x44800000},
        {mg_lg2_approx_f32, 0, 0xff800000}, {mg_lg2_approx_f32, 0x80000000, 0xff800000}, {mg_lg2_approx_f32, 0xbf800000, 0x7fffffff},
        {mg_lg2_approx_f32, 0x7f800000, 0x7f800000}, {mg_lg2_approx_f32, 0xff800000, 0x7fffffff}, {mg_lg2_approx_f32, 0x3f800000, 0}, {mg_lg2_approx_f32, 1, 0xc3150000},
        {mg_sin_approx_f32, 0x80000000, 0x80000000}, {mg_sin_approx_f32, 0, 0}, {mg_sin_approx_f32, 0x7f800000, 0x7fffffff}, {mg_sin_approx_f32, 1, 1},
        {mg_cos_approx_f32, 0, 0x3f800000}, {mg_cos_approx_f32, 0xff800000, 0x7fffffff}, {mg_cos_approx_f32, 0x80000001, 0x3f800000},
        {mg_rcp_approx_f32, 0, 0x7f800000}, {mg_rcp_approx_f32, 0x80000000, 0xff800000}, {mg_rcp_approx_f32, 0xff800000, 0x80000000}, {mg_rcp_approx_f32, 0x7f800001, 0x7fffffff},
        {mg_rsqrt_approx_f32, 0, 0x7f800000}, {mg_rsqrt_approx_f32, 0x80000000, 0xff800000}, {mg_rsqrt_approx_f32, 0x7f800000, 0}, {mg_rsqrt_approx_f32, 0xbf800000, 0x7fffffff},
        {mg_sqrt_approx_f32, 0x80000000, 0x80000000}, {mg_sqrt_approx_f32, 0xbf800000, 0x7fffffff}, {mg_sqrt_approx_f32, 0x7f800000, 0x7f800000},
        {mg_tanh_approx_f32, 0x7f800000, 0x3f800000}, {mg_tanh_approx_f32, 0xff800000, 0xbf800000}, {mg_tanh_approx_f32, 0x80000000, 0x80000000}, {mg_tanh_approx_f32, 0x7f800001, 0x7fffffff},
    };
    for (unsigned i = 0; i < MG_COUNT_OF(t); i++)
        if (as_bits(t[i].fn(as_float(t[i].in))) != t[i].out)
            mg_test_fail(__FILE__, __LINE__, "row %u: %08x gives %08x, want %08x", i, t[i].in, as_bits(t[i].fn(as_float(t[i].in))), t[i].out);
}

/* Lanes against the scalar functions, which are what the CPU device calls */
MG_TEST(approx_has_the_same_bits_on_every_isa)
{
    static struct alu_machine m;
    for (unsigned k = 0; k < MG_COUNT_OF(approxes); k++)
        for (enum emu_isa isa = EMU_ISA_BASE; isa <= emu_isa_best(); isa++) {
            struct mg_form f = {0};
            struct emu_alu_desc d;
            mg_form_parse(&f, approxes[k].form, strlen(approxes[k].form));
            MG_CHECK(emu_alu_find(&f, 2, 90, false, isa, &d));
            struct emu_alu op = {.fn = d.fn, .d = ALU_AT_D, .s = {ALU_AT_S}, .imm = d.imm};
            unsigned bad = 0;
            for (uint64_t u = 0; u < 1ull << 32 && bad < 3; u += 32 * 30011) {
                uint32_t *in = (uint32_t *)(m.regs + ALU_AT_S), *out = (uint32_t *)(m.regs + ALU_AT_D);
                for (unsigned i = 0; i < 32; i++) in[i] = (uint32_t)(u + i * 30011);
                d.fn(&op, m.regs, 0xffffffff);
                for (unsigned i = 0; i < 32; i++)
                    if (out[i] != as_bits(approxes[k].scalar(as_float(in[i]))) && bad++ < 3)
                        mg_test_fail(__FILE__, __LINE__, "%s, isa %d, %08x: %08x", approxes[k].form, (int)isa, in[i], out[i]);
            }
        }
}

static float two(const char *form, float a, float b)
{
    static struct alu_machine m;
    struct mg_form f = {0};
    struct emu_alu_desc d;
    mg_form_parse(&f, form, strlen(form));
    if (!emu_alu_find(&f, 3, 90, false, emu_isa_best(), &d)) return -1;
    struct emu_alu op = {.fn = d.fn, .d = ALU_AT_D, .s = {ALU_AT_S, ALU_AT_S + 512}, .imm = d.imm};
    for (unsigned i = 0; i < 32; i++) ((float *)(m.regs + ALU_AT_S))[i] = a, ((float *)(m.regs + ALU_AT_S + 512))[i] = b;
    d.fn(&op, m.regs, 0xffffffff);
    return *(float *)(m.regs + ALU_AT_D);
}
MG_TEST(approx_division_follows_the_manual)
{
    MG_CHECK(two("div.approx.f32", 7.0f, 2.0f) == 3.5f);
    MG_CHECK(two("div.approx.f32", 0x1p127f, 0x1p127f) == 0.0f); /* a huge divisor gives zero */
    MG_CHECK(as_bits(two("div.approx.f32", INFINITY, 0x1p127f)) == 0x7fffffff);
    MG_CHECK(two("div.full.f32", 0x1p127f, 0x1p127f) == 1.0f);
    MG_CHECK(two("div.full.f32", 1.0f, 3.0f) == 1.0f / 3.0f);
    MG_CHECK(two("div.full.ftz.f32", 0x1p-130f, 0x1p-3f) == 0.0f);
}
MG_TEST(approx_f64_gross_forms_keep_20_bits)
{
    for (double x = 1e-300; x < 1e300; x *= 1.0001e3) {
        double r = mg_rcp_approx_f64(x), s = mg_rsqrt_approx_f64(x);
        uint64_t u, v;
        memcpy(&u, &r, 8), memcpy(&v, &s, 8);
        MG_CHECK(!(uint32_t)u && !(uint32_t)v);
        MG_CHECK(fabs(r * x - 1) < 0x1p-19 && fabs(s * s * x - 1) < 0x1p-18);
    }
    MG_CHECK(isinf(mg_rcp_approx_f64(0x1p-1040)) && mg_rsqrt_approx_f64(INFINITY) == 0);
}
