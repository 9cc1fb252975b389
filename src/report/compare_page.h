/* A comparison as one page without script (compare_page.c): margay diff --html. */
#ifndef MG_REPORT_COMPARE_PAGE_H
#define MG_REPORT_COMPARE_PAGE_H

#include "report/compare.h"

struct mg_compare_kernel {
    const char *name;
    uint64_t launches[2], insts[2]; /* before, after */
    bool has[2], measured[2];       /* the kernel is there; it was counted */
    double pct;                     /* of instructions; INFINITY: in one profile only */
    bool timing;                    /* differs only in blocks whose counts may depend on timing */
};
void mg_add_comparison_page(const struct mg_comparison *c, const struct mg_recording *before,
                            const struct mg_recording *after, const struct mg_compare_kernel *kernels, uint32_t n,
                            struct mg_buf *out);

#endif
