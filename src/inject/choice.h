/* Which launches are instrumented: the SPEC of `--launches`, read by the launcher (to refuse a bad
 * one) and by the library inside the application (to follow it).
 *
 *   N  A-B  A-  %K          launch numbers of the process, from 0; every K-th
 *   first=N                 the first N of every kernel and shape
 *   random=F[:SEED]         each with probability F, decided by the launch number and the seed alone
 *   budget=P%               a limit: while instrumented kernels took at most P per cent of the run time
 *   steady[=N]              a limit: until N launches of a kernel and shape in a row had equal counts (3)
 *
 * Parts are joined by commas. A launch is taken when one of the first four fits (or none is given) and
 * no limit forbids it. */
#ifndef MG_INJECT_CHOICE_H
#define MG_INJECT_CHOICE_H

#include "base/diag.h"
#include "store/reason.h"

enum { MG_CHOICE_MAX = 32 };
struct mg_choice {
    struct mg_choice_part {
        enum mg_choice_kind { MG_CHOICE_RANGE, MG_CHOICE_STEP, MG_CHOICE_FIRST, MG_CHOICE_RANDOM } kind;
        uint64_t a, b; /* first and last; step; number; seed */
        double fraction;
    } parts[MG_CHOICE_MAX];
    uint32_t n_parts;
    double budget;   /* per cent; < 0: none */
    uint64_t steady; /* 0: none */
    bool by_kernel;  /* first= or steady: kernels and shapes are told apart */
};
/* NULL: every launch. */
enum mg_err mg_choice_parse(const char *spec, struct mg_choice *out, struct mg_diag *d) MG_MUST_CHECK;

struct mg_choice_facts {
    uint64_t number;  /* of the launch in its process */
    uint64_t earlier; /* launches of this kernel and shape before */
    uint64_t equal;   /* of them, the last ones that had equal counts */
    uint64_t instrumented_ns, elapsed_ns;
};
/* none: instrument it; else the reason for the profile. */
enum mg_reason mg_choice_why_not(const struct mg_choice *c, const struct mg_choice_facts *f);

#endif
