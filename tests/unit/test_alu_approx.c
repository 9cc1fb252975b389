/* The approx family: the bits of an H200 on 131,072 floats of every exponent and on 16 million in a row,
 * the bounds of the PTX ISA, special values by the manual's tables, and the same bits on every vector ISA.
 * tests/exec/alu/h200.txt has one-instruction kernels of the family beside this. */
#include "alu_run.h"
#include "approx_h200.h"
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
static long double rcp_l(long double x)
{
    return 1 / x;
}
static long double rsqrt_l(long double x)
{
    return 1 / sqrtl(x);
}

struct approx {
    const char *form;
    float (*scalar)(float);
    long double (*exact)(long double);
    float low, high; /* where the bound is stated, of |x| */
    double relative, absolute;
};
static const struct approx approxes[] = {
    /* bounds of the PTX ISA 9.0 manual: the larger of the two applies */
    {"ex2.approx.f32", mg_ex2_approx_f32, exp2l, 0, 128, 0x1p-22, 0x1p-148},
    {"lg2.approx.f32", mg_lg2_approx_f32, log2l, 0x1p-149f, 0x1.fffffep127f, 0x1p-22, 0x1p-22},
    {"sin.approx.f32", mg_sin_approx_f32, sinl, 0, 6.2831853f, 0, 0x1p-20},
    {"cos.approx.f32", mg_cos_approx_f32, cosl, 0, 6.2831853f, 0, 0x1p-20},
    {"rcp.approx.f32", mg_rcp_approx_f32, rcp_l, 0x1p-126f, 0x1p126f, 0x1p-23, 0},
    {"rsqrt.approx.f32", mg_rsqrt_approx_f32, rsqrt_l, 0x1p-149f, 0x1.fffffep127f, 0x1.122p-23, 0},
    {"sqrt.approx.f32", mg_sqrt_approx_f32, sqrtl, 0x1p-149f, 0x1.fffffep127f, 0x1p-23, 0},
    {"tanh.approx.f32", mg_tanh_approx_f32, tanhl, 0, 0x1.fffffep127f, 0x1p-11, 0},
};
MG_TEST(approx_stays_within_the_bounds_of_ptx)
{
    for (unsigned k = 0; k < MG_COUNT_OF(approxes); k++) {
        const struct approx *a = &approxes[k];
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
        }
    }
}

MG_TEST(approx_has_the_manual_s_special_values)
{
    static const struct {
        float (*fn)(float);
        uint32_t in, out;
    } t[] = {
        {mg_ex2_approx_f32, 0xff800000, 0},           {mg_ex2_approx_f32, 0x80000001, 0x3f800000},
        {mg_ex2_approx_f32, 0, 0x3f800000},           {mg_ex2_approx_f32, 0x7f800000, 0x7f800000},
        {mg_ex2_approx_f32, 0x7fc00001, 0x7fffffff},  {mg_ex2_approx_f32, 0xc3160000, 0},
        {mg_ex2_approx_f32, 0x41200000, 0x44800000},  {mg_lg2_approx_f32, 0, 0xff800000},
        {mg_lg2_approx_f32, 0x80000000, 0xff800000},  {mg_lg2_approx_f32, 0xbf800000, 0x7fffffff},
        {mg_lg2_approx_f32, 0x7f800000, 0x7f800000},  {mg_lg2_approx_f32, 0xff800000, 0x7fffffff},
        {mg_lg2_approx_f32, 0x3f800000, 0},           {mg_lg2_approx_f32, 1, 0xc3150000},
        {mg_sin_approx_f32, 0x80000000, 0x80000000},  {mg_sin_approx_f32, 0, 0},
        {mg_sin_approx_f32, 0x7f800000, 0x7fffffff},  {mg_sin_approx_f32, 1, 0},
        {mg_sin_approx_f32, 0x80000001, 0x80000000},  {mg_cos_approx_f32, 0, 0x3f800000},
        {mg_cos_approx_f32, 0xff800000, 0x7fffffff},  {mg_cos_approx_f32, 0x80000001, 0x3f800000},
        {mg_rcp_approx_f32, 0, 0x7f800000},           {mg_rcp_approx_f32, 0x80000000, 0xff800000},
        {mg_rcp_approx_f32, 0xff800000, 0x80000000},  {mg_rcp_approx_f32, 0x7f800001, 0x7fffffff},
        {mg_rsqrt_approx_f32, 0, 0x7f800000},         {mg_rsqrt_approx_f32, 0x80000000, 0xff800000},
        {mg_rsqrt_approx_f32, 0x7f800000, 0},         {mg_rsqrt_approx_f32, 0xbf800000, 0x7fffffff},
        {mg_sqrt_approx_f32, 0x80000000, 0x80000000}, {mg_sqrt_approx_f32, 0xbf800000, 0x7fffffff},
        {mg_sqrt_approx_f32, 0x7f800000, 0x7f800000}, {mg_tanh_approx_f32, 0x7f800000, 0x3f800000},
        {mg_tanh_approx_f32, 0xff800000, 0xbf800000}, {mg_tanh_approx_f32, 0x80000000, 0x80000000},
        {mg_tanh_approx_f32, 0x7f800001, 0x7fffffff},
    };
    for (unsigned i = 0; i < MG_COUNT_OF(t); i++)
        if (as_bits(t[i].fn(as_float(t[i].in))) != t[i].out)
            mg_test_fail(__FILE__, __LINE__, "row %u: %08x gives %08x, want %08x", i, t[i].in,
                         as_bits(t[i].fn(as_float(t[i].in))), t[i].out);
}

/* What the recorder hashed: pairs of operand and result, in any order */
static uint64_t hashed(uint32_t in, uint32_t out)
{
    uint64_t v = (uint64_t)in << 32 | out;
    v ^= v >> 33;
    v *= 0xff51afd7ed558ccdull;
    return v ^ v >> 33;
}
/* The recorder's operands: per sign and exponent 256 significands, ends and single bits among them */
static uint32_t sample(uint32_t i, uint64_t *random)
{
    uint32_t k = i & 255, m = k < 8 ? k : k < 16 ? 0x7fffff - (k - 8) : k < 39 ? 1u << (k - 16) : 0;
    if (k >= 39) {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        m = (uint32_t)(*random >> 16) & 0x7fffff;
    }
    return i >> 8 << 23 | m;
}
static bool find(const char *text, unsigned n_opnds, enum emu_isa isa, struct emu_alu *op)
{
    struct mg_form f = {0};
    struct emu_alu_desc d;
    mg_form_parse(&f, text, strlen(text));
    if (!emu_alu_find(&f, n_opnds, 90, false, isa, &d)) return false;
    *op = (struct emu_alu){
        .fn = emu_function(d.opcode, isa, 0, false), .d = ALU_AT_D, .s = {ALU_AT_S, ALU_AT_S + 512}, .imm = d.imm};
    return true;
}
static uint64_t hash_of_32(struct emu_alu *op, const uint32_t *in, bool upper_words)
{
    static struct alu_machine m;
    uint64_t sum = 0;
    for (unsigned i = 0; i < 32; i++)
        if (upper_words)
            ((uint64_t *)(m.regs + ALU_AT_S))[i] = (uint64_t)in[i] << 32 | (in[i] * 2654435761u);
        else
            ((uint32_t *)(m.regs + ALU_AT_S))[i] = in[i];
    op->fn(op, m.regs, 0xffffffff);
    for (unsigned i = 0; i < 32; i++)
        sum += hashed(in[i], upper_words ? (uint32_t)(((uint64_t *)(m.regs + ALU_AT_D))[i] >> 32)
                                         : ((uint32_t *)(m.regs + ALU_AT_D))[i]);
    return sum;
}
MG_TEST(approx_has_the_bits_of_an_h200)
{
    for (unsigned k = 0; k < MG_COUNT_OF(approx_h200); k++)
        for (enum emu_isa isa = EMU_ISA_BASE; isa <= emu_isa_best(); isa++) {
            const struct approx_h200 *a = &approx_h200[k];
            bool upper = strstr(a->form, "f64");
            struct emu_alu op;
            uint32_t in[32];
            uint64_t sum = 0, random = 88172645463325252ull;
            MG_CHECK(find(a->form, 2, isa, &op));
            for (uint32_t i = 0; i < 131072; i += 32) {
                for (uint32_t j = 0; j < 32; j++) in[j] = sample(i + j, &random);
                sum += hash_of_32(&op, in, upper);
            }
            if (sum != a->samples)
                mg_test_fail(__FILE__, __LINE__, "%s, isa %d: the samples differ", a->form, (int)isa);
            if (isa != emu_isa_best() || MG_TEST_PART > 1) continue;
            sum = 0;
            for (uint32_t i = 0; i < 1u << 24; i += 32) {
                for (uint32_t j = 0; j < 32; j++) in[j] = a->block + i + j;
                sum += hash_of_32(&op, in, upper);
            }
            if (sum != a->sum)
                mg_test_fail(__FILE__, __LINE__, "%s: %08x to %08x differ", a->form, a->block, a->block + 0xffffff);
        }
}

/* Lanes against the scalar functions, which are what the CPU device calls */
MG_TEST(approx_has_the_same_bits_on_every_isa)
{
    static struct alu_machine m;
    for (unsigned k = 0; k < MG_COUNT_OF(approxes); k++)
        for (enum emu_isa isa = EMU_ISA_BASE; isa <= emu_isa_best(); isa++) {
            struct emu_alu op;
            unsigned bad = 0;
            MG_CHECK(find(approxes[k].form, 2, isa, &op));
            for (uint64_t u = 0; u < 1ull << 32 && bad < 3; u += 32 * 30011) {
                uint32_t *in = (uint32_t *)(m.regs + ALU_AT_S), *out = (uint32_t *)(m.regs + ALU_AT_D);
                for (unsigned i = 0; i < 32; i++) in[i] = (uint32_t)(u + i * 30011);
                op.fn(&op, m.regs, 0xffffffff);
                for (unsigned i = 0; i < 32; i++)
                    if (out[i] != as_bits(approxes[k].scalar(as_float(in[i]))) && bad++ < 3)
                        mg_test_fail(__FILE__, __LINE__, "%s, isa %d, %08x: %08x", approxes[k].form, (int)isa, in[i],
                                     out[i]);
            }
        }
}

static float two(const char *form, float a, float b)
{
    static struct alu_machine m;
    struct emu_alu op;
    if (!find(form, 3, emu_isa_best(), &op)) return -1;
    for (unsigned i = 0; i < 32; i++)
        ((float *)(m.regs + ALU_AT_S))[i] = a, ((float *)(m.regs + ALU_AT_S + 512))[i] = b;
    op.fn(&op, m.regs, 0xffffffff);
    return *(float *)(m.regs + ALU_AT_D);
}
MG_TEST(approx_division_follows_the_manual)
{
    MG_CHECK(two("div.approx.f32", 7.0f, 2.0f) == 3.5f);
    MG_CHECK(two("div.approx.f32", 0x1p127f, 0x1p127f) == 0.0f); /* a huge divisor gives zero */
    MG_CHECK(as_bits(two("div.approx.f32", INFINITY, 0x1p127f)) == 0x7fffffff);
    MG_CHECK(two("div.full.f32", 0x1p127f, 0x1p127f) == 1.0f);
    MG_CHECK(two("div.full.f32", 1.0f, 3.0f) == 0x1.555556p-2f);
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
