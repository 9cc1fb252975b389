/* Two profiles by their metrics: in all, and by function and line (compare.c). Modules may differ: a fix of the source
 * changes them. */
#ifndef MG_REPORT_COMPARE_H
#define MG_REPORT_COMPARE_H

#include "base/json.h"
#include "base/vec.h"
#include "report/report.h"

struct mg_compared {
    bool has[2];
    double v[2]; /* before, after */
};
struct mg_metric {
    const char *name; /* "memory.sectors", "expr.@bytes", "instructions", "time" */
    int better;       /* -1: less is, 1: more is, 0: not known */
    struct mg_compared of;
};
struct mg_metric_line {
    uint32_t metric;             /* index in metrics */
    const char *function, *file; /* family of names; base name of the file, NULL: unknown */
    uint32_t line[2];            /* 0: not there */
    struct mg_compared of;
    double weight; /* its change, as part of the metric in all */
};
enum mg_judged_by { MG_JUDGED_NOT, MG_JUDGED_BY_TIME, MG_JUDGED_BY_WORK };
enum mg_verdict {
    MG_VERDICT_SAME,
    MG_VERDICT_BETTER,
    MG_VERDICT_WORSE,
    MG_VERDICT_UNCLEAR
}; /* unclear: of work, better or worse by what the model does not know */
extern const char *const mg_verdict_names[];
struct mg_comparison {
    struct mg_arena arena;
    MG_VEC(struct mg_metric) metrics;    /* by name */
    MG_VEC(struct mg_metric_line) lines; /* the largest change of its metric first */
    enum mg_judged_by by;
    double change_pct, low_pct, high_pct; /* of time: 95 %; of work: by what the model does not know */
    double full_pct;                      /* of work: if launches filled the device */
    bool has_interval;                    /* of times: launches were timed more than once */
    bool by_timing;                       /* most of the change is where counts may depend on timing */
    double launches[2], counted[2];       /* of work: launches, and those with counts */
    enum mg_verdict verdict;
    const char *hinge;        /* of what is unclear: what the model does not know that turns it most; else NULL */
    bool hinges_on_waits;     /* which launches that fill the device have not */
    const char *uncounted;    /* why their work cannot be compared; NULL: it can */
    bool uneven;              /* that is since one counted what the other did not of a kernel: no metric can */
    bool apart;               /* no kernel of one has a counterpart in the other */
    uint32_t reason, against; /* metrics whose part of the work changed most, as the work did and the other way;
                                 UINT32_MAX: none */
    const char *arguments[2]; /* of the programs, where they are not the same; else NULL */
};
void mg_comparison_init(struct mg_comparison *c, const struct mg_recording *before, const struct mg_recording *after,
                        const struct mg_report_opts *o);
void mg_comparison_release(struct mg_comparison *c);
/* Sets apart, uncounted and uneven. */
void mg_compare_counted(struct mg_comparison *c, const struct mg_recording *const p[2], const struct mg_report_opts *o);
/* NULL: neither profile has it. */
const struct mg_metric *mg_comparison_find(const struct mg_comparison *c, const char *name);
/* Per cent by which it grew; INFINITY from 0. */
double mg_compared_pct(const struct mg_compared *x);
/* "better", "worse" or ""; better: as of a metric. */
const char *mg_compared_judged(const struct mg_compared *x, int better);
/* Is it what the verdict is of: "time", or "work"? */
bool mg_comparison_is_of(const struct mg_comparison *c, const struct mg_metric *m);
/* The same of a metric in all; of the one that the verdict is of: what that says. */
const char *mg_metric_judged(const struct mg_comparison *c, const struct mg_metric *m);

/* Does the work change alike by all that the model does not know? */
static inline bool mg_is_certain(const struct mg_comparison *c)
{
    return c->by == MG_JUDGED_BY_WORK && c->has_interval && c->high_pct - c->low_pct < .005;
}
/* Why it is unclear and what can tell: the rest of a sentence. */
void mg_add_hinge(const struct mg_comparison *c, struct mg_buf *out);
void mg_add_comparison(const struct mg_comparison *c, uint32_t most, struct mg_buf *out);
/* "verdict", "metrics", "lines": members of an open object. */
void mg_write_comparison(const struct mg_comparison *c, struct mg_json *j);

#endif
