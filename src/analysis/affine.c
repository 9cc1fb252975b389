/* The lattice of steps; see affine.h. */
#include "analysis/affine.h"

struct mg_affine mg_affine_step(int64_t step)
{
    if (step > INT32_MAX || step < INT32_MIN) return mg_affine_varies();
    return (struct mg_affine){MG_AFFINE_STEP, step};
}

struct mg_affine mg_affine_join(struct mg_affine a, struct mg_affine b)
{
    if (a.is == MG_AFFINE_NONE) return b;
    if (b.is == MG_AFFINE_NONE) return a;
    if (a.is == MG_AFFINE_VARIES || b.is == MG_AFFINE_VARIES || a.step != b.step) return mg_affine_varies();
    return a;
}

static struct mg_affine sum(struct mg_affine a, struct mg_affine b, int sign)
{
    return mg_affine_step(a.step + sign * b.step);
}

static struct mg_affine scaled(struct mg_affine a, int64_t by)
{
    int64_t step;
    return __builtin_mul_overflow(a.step, by, &step) ? mg_affine_varies() : mg_affine_step(step);
}

/* A product by a constant. An unsigned one of twice the width by a negative one is by a large number in truth. */
static struct mg_affine product(enum mg_affine_part part, const struct mg_affine s[2], const int64_t *const constant[2])
{
    if (!s[0].step && !s[1].step) return mg_affine_step(0);
    if (part == MG_AFFINE_HIGH) return mg_affine_varies();
    for (int k = 1; k >= 0; k--)
        if (constant[k] && part == MG_AFFINE_WIDE_UNSIGNED && *constant[k] < 0) return mg_affine_varies();
    if (constant[1]) return scaled(s[0], *constant[1]);
    if (constant[0]) return scaled(s[1], *constant[0]);
    return mg_affine_varies();
}

struct mg_affine mg_affine_of(enum mg_op op, enum mg_affine_part part, const struct mg_affine s[3],
                              const int64_t *const constant[3])
{
    bool uniform = true;
    for (int k = 0; k < 3; k++)
        if (s[k].is == MG_AFFINE_NONE) return s[k];
    for (int k = 0; k < 3; k++) {
        if (s[k].is == MG_AFFINE_VARIES) return s[k];
        uniform &= !s[k].step;
    }
    if (uniform) return mg_affine_step(0);
    switch (op) {
    case MG_OP_mov:
    case MG_OP_cvt:
        return s[0];
    case MG_OP_add:
        return sum(s[0], s[1], 1);
    case MG_OP_sub:
        return sum(s[0], s[1], -1);
    case MG_OP_neg:
        return mg_affine_step(-s[0].step);
    case MG_OP_mul:
        return product(part, s, constant);
    case MG_OP_mad: {
        struct mg_affine p = product(part, s, constant);
        return p.is == MG_AFFINE_STEP ? sum(p, s[2], 1) : p;
    }
    case MG_OP_shl:
        if (!constant[1] || *constant[1] < 0 || *constant[1] > 30) return mg_affine_varies();
        return scaled(s[0], (int64_t)1 << *constant[1]);
    default:
        return mg_affine_varies();
    }
}
