/* Which CTAs of one launch stand for all of it (`margay study ctas`). A profile of the tool ctas has the instructions
 * of each CTA and how often it enters each loop. CTAs take the place of launches in a selection (subset.h); counts that
 * the selection did not see take the place of times: loops' entries, another run's instructions, columns of a CSV by
 * CTA. */
#ifndef MG_STUDY_SUBSET_CTAS_H
#define MG_STUDY_SUBSET_CTAS_H

#include "study/subset.h"

struct mg_cta_count {
    const char *name;
    double *of; /* of each CTA; NAN: not known */
};
struct mg_ctas {
    struct mg_arena arena;
    const char *dir, *kernel;
    uint64_t launch, grid_ctas;
    uint32_t n, step; /* CTAs with counts: number i is CTA i * step */
    double *insts;    /* thread instructions of each */
    MG_VEC(struct mg_cta_count) held_out;
    struct mg_vectors v;
};

/* launch: its number in the profile; UINT64_MAX: the one with most instructions. */
enum mg_err mg_ctas_open(const char *dir, uint64_t launch, struct mg_ctas **out, struct mg_diag *d) MG_MUST_CHECK;
void mg_ctas_free(struct mg_ctas *c);
/* The instructions of the same launch in another profile, as a count that is held out. */
enum mg_err mg_ctas_add_run(struct mg_ctas *c, const char *dir, struct mg_diag *d) MG_MUST_CHECK;
/* Columns of a CSV that has a column cta; rows of one CTA add up, CTAs without a row have 0. With a column launch only
 * rows of this launch count; a column kernel is none. */
enum mg_err mg_ctas_add_csv(struct mg_ctas *c, const char *path, const char *text, size_t bytes,
                            struct mg_diag *d) MG_MUST_CHECK;

void mg_ctas_json(const struct mg_ctas *c, const struct mg_subset *s, struct mg_buf *out);
void mg_ctas_text(const struct mg_ctas *c, const struct mg_subset *s, struct mg_buf *out);
void mg_ctas_csv(const struct mg_ctas *c, const struct mg_subset *s, struct mg_buf *out); /* cta,times,weight */

#endif
