/* What a profile says, for people and for programs. Input: a joined profile (store/). Output: text
 * into a buffer; nothing here prints, opens devices or changes a profile.
 *
 *   profile ──► figures (coverage, opcodes per kernel, hottest blocks) ──► text | summary | json | csv
 *
 * Every output is deterministic: orders are by id, by name or by count with the id as tie-break.
 */
#ifndef MG_REPORT_REPORT_H
#define MG_REPORT_REPORT_H

#include "base/buf.h"
#include "store/store.h"

enum mg_report_sort { MG_SORT_DEFAULT, MG_SORT_TIME, MG_SORT_INSTRUCTIONS, MG_SORT_LAUNCHES, MG_SORT_NAME };
struct mg_report_opts {
    size_t size;
    const char *kernel_glob; /* matches the name or the demangled name; NULL: all */
    const char *tool;        /* only this tool's result, "advise": only findings; NULL: all */
    uint32_t top;            /* text: kernels and blocks shown; 0: 10 */
    const char *table; /* csv: "kernels", "blocks", "opcodes", "launches", "findings" or one of a tool; NULL: the tool's
                          first, blocks, or launches with per_launch */
    bool per_launch;   /* json, csv: counts and arguments of every launch */
    uint32_t columns;  /* text: width of the terminal; 0: 100 */
    enum mg_report_sort
        sort;          /* text: order of kernels; DEFAULT: by time where a GPU measured it, else by instructions */
    bool color, ascii; /* text: escape sequences; no UTF-8 bars */
    bool one_kernel, short_names;    /* text: tables have no column of kernels; name them without parameters */
    const char *const *kernel_names; /* by kernel id, in tables; NULL: demangled names, which two kernels may share */
};

void mg_report_text(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out);
/* Launches in groups; RANGE needs a time line. d may say why not. */
enum mg_report_by { MG_BY_FAMILY, MG_BY_CAUSE, MG_BY_RANGE, MG_BY_DEVICE };
enum mg_report_form { MG_FORM_TEXT, MG_FORM_JSON, MG_FORM_CSV };
enum mg_err mg_report_groups(const struct mg_recording *p, const struct mg_report_opts *o, enum mg_report_by by,
                             enum mg_report_form form, struct mg_buf *out, struct mg_diag *d) MG_MUST_CHECK;
/* At most one screen, ends with the coverage line: what `margay run` says on stderr. */
void mg_report_summary(const struct mg_recording *p, struct mg_buf *out);
/* What --check found that is an error (notes are none); findings that gain something (report/advice). */
uint32_t mg_report_check_errors(const struct mg_recording *p);
uint32_t mg_report_findings(const struct mg_recording *p);
void mg_report_json(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out);
void mg_report_csv(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out);
void mg_report_html(const struct mg_recording *p, const struct mg_report_opts *o,
                    struct mg_buf *out); /* one self-contained page */
/* The pictures of the tools that are shown, one by one: name without extension, an <svg> element, of graphs Graphviz's
 * text (else NULL). */
typedef void (*mg_report_chart_fn)(const char *name, const char *svg, const char *dot, void *user);
void mg_report_charts(const struct mg_recording *p, const struct mg_report_opts *o, mg_report_chart_fn fn, void *user);

/* ---- figures ------------------------------------------------------------------------------------ */

struct mg_coverage_row {
    const char *kernel, *reason;
    uint64_t launches;
    enum mg_ran ran;
};
struct mg_coverage {
    uint64_t launches, instrumented, failed, unknown;
    uint64_t repeats;     /* launches that --repeat made; in none of the others */
    uint64_t not_written; /* of the launches: recording had stopped, nothing else is known of them */
    uint32_t open;   /* processes that recorded no end of their own: they run still, were killed, or could not write */
    uint32_t empty;  /* processes that could record nothing at all */
    uint64_t no_end; /* of the launches: instrumented ones whose end was never told, and so not in the counts */
    uint64_t incomplete;        /* of the launches: instrumented ones that a fault or a limit ended: in no counts */
    uint64_t spoilt;            /* of the instrumented: the program wrote into their counts, so they have none */
    uint64_t device_launches;   /* made by kernels; in none of the above */
    bool timed;                 /* any launch was */
    double time_pct, timed_pct; /* of measured kernel time, of launches; meaningful when timed */
    struct mg_coverage_row *rows;
    uint32_t n_rows; /* every kernel and reason not instrumented, in order of kernel, ran, reason */
};
void mg_coverage_init(struct mg_coverage *c, const struct mg_recording *p);
void mg_coverage_release(struct mg_coverage *c);

/* Two profiles side by side: kernels paired by (module, name), else by name alone. The result is the
 * largest difference in per cent of thread instructions over the kernels shown (infinite when a
 * kernel is in one profile only); blocks whose counts may depend on timing are told apart and do not count. */
double mg_report_diff(const struct mg_recording *a, const struct mg_recording *b, const struct mg_report_opts *o,
                      struct mg_buf *out);
/* The same as JSON. fail_over: the difference that fails, < 0: none does. */
double mg_report_diff_json(const struct mg_recording *a, const struct mg_recording *b, const struct mg_report_opts *o,
                           double fail_over, struct mg_buf *out);
void mg_report_diff_html(const struct mg_recording *a, const struct mg_recording *b, const struct mg_report_opts *o,
                         struct mg_buf *out); /* a page without script */

struct mg_opcount {
    const char *op;
    uint64_t threads, warps;
    bool has_warps, guarded; /* some counted instruction carries a guard */
};
struct mg_kernel_sums {
    bool measured, has_warps; /* thread and warp counts exist */
    uint64_t thread_insts, warp_insts, thread_entries, warp_entries;
    struct mg_opcount *ops;
    uint32_t n_ops; /* sorted by op */
};
void mg_kernel_sums_init(struct mg_kernel_sums *s, const struct mg_pkernel *k);
/* The same of one launch, as measured (not scaled). */
void mg_launch_sums_init(struct mg_kernel_sums *s, const struct mg_pkernel *k, const struct mg_plaunch *l);
void mg_kernel_sums_release(struct mg_kernel_sums *s);

/* Blocks of the kernel whose counts may depend on timing. */
uint32_t mg_timing_blocks(const struct mg_pkernel *k);
/* Blocks in front of which a GPU's lanes may or may not have met; those that ran on one, where the profile tells what
 * warps or lanes did there. */
uint32_t mg_apart_blocks(const struct mg_pkernel *k);
uint32_t mg_told_apart(const struct mg_recording *p, const struct mg_pkernel *k);
bool mg_report_shows(const struct mg_report_opts *o, const struct mg_pkernel *k);
/* What --csv would print is there (o->tool, o->table). */
bool mg_report_has_table(const struct mg_recording *p, const struct mg_report_opts *o);
/* The run named this tool, or it left a result; "advise": the findings, which any profile may have. */
/* The tool that has a table of that name; NULL: none of the profile. */
const char *mg_report_tool_of_table(const struct mg_recording *p, const struct mg_report_opts *o, const char *table);
bool mg_report_has_tool(const struct mg_recording *p, const char *name);
const char *mg_ran_text(enum mg_ran r); /* "instrumented" "native" "failed" "unknown" */
/* The command a profile is of: the launcher's record, else the first process. exit -1: unknown. */
void mg_report_command(const struct mg_recording *p, const char *const **argv, uint32_t *argc, int *exit_code);

#endif
