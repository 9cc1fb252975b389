/* Findings: what the counts of a profile say about the program, in words, each with what mending it could gain.
 *
 *   facts (what the tools say) ─► cost of each kernel (cost.c) ─► rules (rules.def) ─► ranked list ─► text, JSON
 * (show.c)
 *
 * docs/findings.md says how each rule decides and how its gain is computed. Nothing here measures anything. */
#ifndef MG_REPORT_ADVICE_ADVICE_H
#define MG_REPORT_ADVICE_ADVICE_H

#include "base/json.h"
#include "report/facts.h"

struct mg_rule; /* priv.h */
struct mg_finding {
    const struct mg_rule *rule;
    const struct mg_pkernel *kernel;
    const char *function, *file; /* file NULL: unknown */
    uint32_t line, ptx_line;     /* 0: unknown */
    const char *header;          /* of the toolkit, that the line calls; NULL: none */
    uint32_t header_line;
    const char *buffer; /* NULL: none, or not known */
    double measure;
    const char *unit;
    double share_pct; /* of the kernel, in the program */
    double gain_pct;  /* of the program; 0: a verdict */
    bool exact;       /* rests on counts alone; else on a model of the device */
    unsigned class;   /* how it is ranked: lower ones first, then by gain */
    const char *text;
    const char *limit; /* what limits the gain, a sentence; NULL: nothing does */
};
enum mg_work_part {
    MG_WORK_ISSUE,
    MG_WORK_SHARED,
    MG_WORK_GLOBAL,
    MG_WORK_ATOMIC,
    MG_WORK_IMBALANCE,
    MG_WORK_LAUNCHING,
    MG_WORK_PARTS
};
struct mg_kernel_work {
    double parts[MG_WORK_IMBALANCE];     /* cycles of one multiprocessor */
    uint32_t warps_resident, warps_most; /* of its largest launch on one; 0: not launched */
    struct mg_part {
        double all, lost;     /* all 0: not counted */
    } sectors, passes, slots; /* of sectors those beyond what bytes fill, conflicts, idle lane slots */
};
struct mg_unjudged { /* a kernel that neither bytes nor instructions clearly hold up */
    const struct mg_pkernel *kernel;
    const char *why;
};
struct mg_findings {
    struct mg_arena arena;
    struct mg_finding *at;
    uint32_t n; /* ranked */
    struct mg_unjudged *unjudged;
    uint32_t n_unjudged;
    struct mg_kernel_work *work; /* by kernel id; owner: the arena */
    bool complete;               /* every rule's tools ran */
    bool without_memory;         /* tool memory did not: the cost model knows instructions alone */
    bool timed;                  /* shares are of measured time; else of the cost model */
};
/* f: with every tool of the profile, kernels as its options show them. Release with mg_findings_release. */
void mg_findings_init(struct mg_findings *list, struct mg_facts *f);
void mg_findings_release(struct mg_findings *list);
const char *mg_finding_rule(const struct mg_finding *f); /* its name */

#define MG_ADVICE "advise" /* stands for the tools that the rules read; --tool of reports: the findings alone */
/* The list as text, each finding with its line of the source where that can be read: most 0 all of it. Where there is
 * none it says so, if every rule's tools ran. */
void mg_add_findings(const struct mg_findings *list, const struct mg_recording *p, uint32_t columns, uint32_t most,
                     struct mg_buf *out);
/* "54 %", of a model "~3 %", "<1 %". */
void mg_add_gain(struct mg_buf *out, const struct mg_finding *f);
/* One row each, the first line names the columns. */
void mg_add_findings_csv(const struct mg_findings *list, struct mg_buf *out);
/* "findings": [...], "findings_in": of what gains are, "findings_complete", "no_verdict": [...] */
void mg_write_findings(const struct mg_findings *list, struct mg_json *j);
/* How long all kernels shown take, in cycles from begin to end (work.c), those of imbalanced CTAs in proportion longer.
 */
enum {
    MG_WORK_NO_MEMORY = 1,
    MG_WORK_NO_LANES = 2,
    MG_WORK_NO_CTAS = 4,
    MG_WORK_NO_VALUES = 8
}; /* tools to leave out, since another profile lacks them */
enum { MG_WORK_SETTINGS = 512 };
struct mg_work {
    double all, parts[MG_WORK_PARTS];
    double ctas;                  /* that were launched */
    double launches, counted;     /* all, and those with counts: the others are taken to be like them */
    double by_timing;             /* of all: in kernels whose counts may depend on timing */
    double full;                  /* if launches filled the device: nothing waits */
    double set[MG_WORK_SETTINGS]; /* by what the model does not know, each way: work.c */
};
void mg_work_init(struct mg_work *w, struct mg_facts *f, unsigned without);

/* What a rule looks for, or with MG_ADVICE each of them; false: no rule has that name. */
bool mg_advice_help(const char *name, struct mg_buf *out);
void mg_advice_rules(struct mg_json *j); /* {"uncoalesced": what it looks for, ...} */

/* What `-t advise` stands for: the tools that the rules read, each as -t takes it. Returns how many. */
enum { MG_ADVICE_MOST_TOOLS = 8 };
uint32_t mg_advice_tools(const char *specs[MG_ADVICE_MOST_TOOLS]);

#endif
