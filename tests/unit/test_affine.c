/* Steps from lane to lane, held to 32 lanes computed one by one. */
#include "analysis/affine.h"
#include "test.h"

#define LANES 32

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 24;
}

static uint64_t lane(enum mg_op op, enum mg_affine_part part, uint64_t a, uint64_t b, uint64_t c)
{
    bool wide = part == MG_AFFINE_WIDE_SIGNED || part == MG_AFFINE_WIDE_UNSIGNED;
    uint64_t x = !wide ? (uint32_t)a : part == MG_AFFINE_WIDE_SIGNED ? (uint64_t)(int64_t)(int32_t)a : (uint32_t)a;
    uint64_t y = !wide ? (uint32_t)b : part == MG_AFFINE_WIDE_SIGNED ? (uint64_t)(int64_t)(int32_t)b : (uint32_t)b;
    uint64_t p = part == MG_AFFINE_HIGH ? (uint64_t)(uint32_t)a * (uint32_t)b >> 32 : x * y;
    switch (op) {
    case MG_OP_mov:
    case MG_OP_cvt:
        return (uint32_t)a;
    case MG_OP_add:
        return (uint32_t)(a + b);
    case MG_OP_sub:
        return (uint32_t)(a - b);
    case MG_OP_neg:
        return (uint32_t)-a;
    case MG_OP_mul:
        return wide ? p : (uint32_t)p;
    case MG_OP_mad:
        return wide ? p + c : (uint32_t)(p + c);
    case MG_OP_shl:
        return (uint32_t)b < 32 ? (uint32_t)(a << (b & 31)) : 0;
    default:
        return (uint32_t)(a ^ b);
    }
}

/* Wide products extend their sources: they must not wrap between the lanes, which is for others to see to. */
static bool wraps(enum mg_affine_part part, uint32_t base, int64_t step)
{
    int64_t first = part == MG_AFFINE_WIDE_SIGNED ? (int32_t)base : (int64_t)base, last = first + step * (LANES - 1);
    if (part == MG_AFFINE_WIDE_SIGNED) return last < INT32_MIN || last > INT32_MAX;
    return part == MG_AFFINE_WIDE_UNSIGNED && (last < 0 || last > UINT32_MAX);
}

MG_TEST(affine_steps_are_those_of_lanes)
{
    static const enum mg_op ops[] = {MG_OP_mov, MG_OP_cvt, MG_OP_add, MG_OP_sub, MG_OP_neg,
                                     MG_OP_mul, MG_OP_mad, MG_OP_shl, MG_OP_xor};
    uint64_t state = 5;
    unsigned steps[MG_COUNT_OF(ops)] = {0};
    for (int round = 0; round < 200000; round++) {
        unsigned k = (unsigned)(draw(&state) % MG_COUNT_OF(ops));
        enum mg_affine_part part =
            ops[k] == MG_OP_mul || ops[k] == MG_OP_mad ? (enum mg_affine_part)(draw(&state) % 4) : MG_AFFINE_LOW;
        struct mg_affine s[3];
        int64_t value[3];
        const int64_t *constant[3] = {NULL, NULL, NULL};
        bool skip = false;
        for (int i = 0; i < 3; i++) {
            static const int64_t some[] = {0, 1, 2, 4, -1, -4, 64, 4096};
            s[i] = mg_affine_step(some[draw(&state) % MG_COUNT_OF(some)]);
            value[i] = (int64_t)(int32_t)(uint32_t)draw(&state);
            if (ops[k] == MG_OP_shl && i == 1) value[i] = (int64_t)(draw(&state) % 40);
            if (draw(&state) % 2) {
                s[i] = mg_affine_step(0);
                constant[i] = &value[i];
            }
            skip |= i < 2 && wraps(part, (uint32_t)value[i], s[i].step);
        }
        if (skip) continue;
        struct mg_affine got = mg_affine_of(ops[k], part, s, constant);
        MG_CHECK(got.is != MG_AFFINE_NONE);
        if (got.is != MG_AFFINE_STEP) continue;
        steps[k] += got.step != 0;
        bool wide = part == MG_AFFINE_WIDE_SIGNED || part == MG_AFFINE_WIDE_UNSIGNED;
        uint64_t v[LANES];
        for (int64_t i = 0; i < LANES; i++)
            v[i] = lane(ops[k], part, (uint64_t)(value[0] + s[0].step * i), (uint64_t)(value[1] + s[1].step * i),
                        (uint64_t)(value[2] + s[2].step * i));
        for (int64_t i = 0; i < LANES; i++) {
            uint64_t want = v[0] + (uint64_t)(got.step * i);
            if (v[i] == (wide ? want : (uint32_t)want)) continue;
            mg_test_fail(__FILE__, __LINE__, "%s, part %d, lane %d: step %lld is not what the lanes have",
                         mg_op_name(ops[k]), (int)part, (int)i, (long long)got.step);
            return;
        }
    }
    for (unsigned k = 0; k < MG_COUNT_OF(ops); k++) MG_CHECK_EQ(steps[k] != 0, ops[k] != MG_OP_xor);
}

MG_TEST(affine_lattice)
{
    const struct mg_affine none = {MG_AFFINE_NONE, 0}, two = mg_affine_step(2), three = mg_affine_step(3),
                           any = mg_affine_varies();
    const struct mg_affine all[] = {none, two, three, any};
    for (unsigned a = 0; a < 4; a++)
        for (unsigned b = 0; b < 4; b++) { /* by the drawing: none above 2 and 3, both above any */
            struct mg_affine j = mg_affine_join(all[a], all[b]), want = a == 0             ? all[b]
                                                                        : b == 0 || a == b ? all[a]
                                                                                           : any;
            MG_CHECK(j.is == want.is && j.step == want.step);
        }
    MG_CHECK(mg_affine_step(1ll << 31).is == MG_AFFINE_VARIES && mg_affine_step(-(1ll << 31)).is == MG_AFFINE_STEP);
    MG_CHECK(mg_affine_is_uniform(mg_affine_step(0)) && !mg_affine_is_uniform(two) && !mg_affine_is_uniform(any) &&
             !mg_affine_is_uniform(none));
    const struct mg_affine s[3] = {two, none, any};
    MG_CHECK(mg_affine_of(MG_OP_add, MG_AFFINE_LOW, s, (const int64_t *const[3]){NULL, NULL, NULL}).is ==
             MG_AFFINE_NONE);
}
