/* Registers as sums of products of where a thread stands, of the launch's geometry, of arguments and of
 * rounds of loops: enough to tell whose element of a buffer an address is.
 *
 * Whole numbers stand for the machine's, as in sym.h. What is no such sum is one factor, MG_POLY_ANY: it
 * may differ between threads, rounds and places that look the same. */
#ifndef MG_ANALYSIS_POLY_H
#define MG_ANALYSIS_POLY_H

#include "analysis/loop.h"
#include "analysis/ssa.h"

#define MG_POLY_FACTORS 4
#define MG_POLY_TERMS   12
enum mg_poly_factor { /* upper byte: the kind; the rest says which */
                      MG_POLY_TID = 1 << 24,
                      MG_POLY_CTAID = 2 << 24, /* axis 0..2 */
                      MG_POLY_NTID = 3 << 24,
                      MG_POLY_NCTAID = 4 << 24,
                      MG_POLY_ARG = 5 << 24,   /* bytes into the kernel's parameters */
                      MG_POLY_ROUND = 6 << 24, /* loop: rounds before this one */
                      MG_POLY_SAME = 7 << 24,  /* SSA value: the same in all threads and rounds */
                      MG_POLY_VAR = 8 << 24,   /* address of a variable */
                      MG_POLY_PHI = 9 << 24,   /* SSA value of a loop's header; never in results */
                      MG_POLY_ANY = 10 << 24,
};
#define MG_POLY_KIND(f) ((f)&0xff000000u)
struct mg_poly_term {
    int64_t k;
    uint32_t n, f[MG_POLY_FACTORS]; /* sorted */
};
struct mg_poly {
    uint32_t n;
    struct mg_poly_term t[MG_POLY_TERMS]; /* by their factors; the constant first */
};

struct mg_poly_step {
    bool asked, known;
    struct mg_poly start, step;
};
struct mg_polys {
    struct mg_arena arena;
    const struct mg_cfg *c;
    const struct mg_ssa *ssa;
    const struct mg_loops *l;
    struct mg_poly **memo;       /* by SSA value */
    struct mg_poly_step **steps; /* of phis at headers */
};
void mg_polys_init(struct mg_polys *p, const struct mg_cfg *c, const struct mg_ssa *ssa, const struct mg_loops *l);
void mg_polys_release(struct mg_polys *p);
/* The address that the operand (kind addr) names at the instruction. */
struct mg_poly mg_poly_address(struct mg_polys *p, mg_id node, const struct mg_opnd *o);

/* Whose element is it? */
struct mg_poly_owner {
    bool own; /* one thread's alone, whatever the rounds, as long as accesses agree in `key` and in `stride` bytes */
    uint64_t key;
    uint64_t stride; /* bytes from one thread's element to the next one's; UINT64_MAX: as many as the program says */
    int64_t at;      /* bytes added to it */
};
/* axes: bit a: the kernel asks for tid or ctaid along axis a. */
struct mg_poly_owner mg_poly_owner(const struct mg_poly *p, unsigned axes);

#endif
