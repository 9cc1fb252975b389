/* Values that are equal in all of something (the lanes of a warp, the warps of a CTA), or grow by a constant from one
 * to the next: value(i) = value(0) + step * i. A step of 0 is a uniform value. The lattice is
 *
 *     NONE (nothing seen so far)  >  STEP (one step)  >  VARIES
 *
 * and what is here knows neither lanes nor warps nor instructions' operands: whoever asks says of its registers what
 * they hold. Arithmetic wraps: steps are those of the low bits, as PTX's integers have them. */
#ifndef MG_ANALYSIS_AFFINE_H
#define MG_ANALYSIS_AFFINE_H

#include "isa/isa.h"

enum mg_affine_state { MG_AFFINE_NONE, MG_AFFINE_STEP, MG_AFFINE_VARIES };
struct mg_affine {
    enum mg_affine_state is;
    int64_t step;
}; /* step: 0 unless MG_AFFINE_STEP; it fits 32 bits */

static inline struct mg_affine mg_affine_varies(void)
{
    return (struct mg_affine){.is = MG_AFFINE_VARIES};
}
struct mg_affine mg_affine_step(int64_t step); /* VARIES where it does not fit */
static inline bool mg_affine_is_uniform(struct mg_affine a)
{
    return a.is == MG_AFFINE_STEP && !a.step;
}

/* A register that holds either. */
struct mg_affine mg_affine_join(struct mg_affine a, struct mg_affine b);

/* What integer arithmetic makes of three sources (those that an operation lacks: uniform); constant[k]: source k is
 * that constant in all. part: of mul and mad. Operations that are not known here give VARIES unless every source is
 * uniform. */
enum mg_affine_part { MG_AFFINE_LOW, MG_AFFINE_HIGH, MG_AFFINE_WIDE_SIGNED, MG_AFFINE_WIDE_UNSIGNED };
struct mg_affine mg_affine_of(enum mg_op op, enum mg_affine_part part, const struct mg_affine s[3],
                              const int64_t *const constant[3]);

#endif
