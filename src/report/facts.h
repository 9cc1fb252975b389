/* What the tools of a profile say, as values in memory: each tool's `profile` writes its JSON once, and findings,
 * annotate and diff read that. So all of them see what `margay report --json` prints, out-of-tree tools included. */
#ifndef MG_REPORT_FACTS_H
#define MG_REPORT_FACTS_H

#include "base/json_read.h"
#include "report/report.h"

struct mg_facts {
    const struct mg_recording *p;
    const struct mg_report_opts *o;
    struct mg_arena arena;
    const struct mg_jval **of_use; /* value of tools.<tool> by number of the profile's use; NULL: not asked for yet */
};
/* o may be NULL. Release with mg_facts_release. */
void mg_facts_init(struct mg_facts *f, const struct mg_recording *p, const struct mg_report_opts *o);
void mg_facts_release(struct mg_facts *f);
const struct mg_jval *mg_facts_use(struct mg_facts *f,
                                   uint32_t use); /* never NULL: an empty object where a tool said nothing */
/* The first use of that name; NULL: the run had none. */
const struct mg_jval *mg_facts_tool(struct mg_facts *f, const char *tool);

/* ---- rows: whatever a tool counted at a place of the code ----------------------------------------------- */
struct mg_fact {
    const char *tool, *list; /* tools.<tool>.<list>, or of a list inside it ("branches") */
    const struct mg_pkernel *kernel;
    const char *function, *file, *op, *inlined; /* function: never NULL; the others NULL where unknown */
    uint32_t line, ptx_line, block;             /* 0, 0, UINT32_MAX: unknown */
    const struct mg_jval *values;               /* the object: its numbers are the metrics */
};
typedef void (*mg_fact_fn)(const struct mg_fact *f, void *user);
/* Every object with a kernel and a place, of every tool. */
void mg_facts_each(struct mg_facts *f, mg_fact_fn fn, void *user);
/* Is a member of such an object a number that says what was counted, and not where? */
bool mg_fact_is_metric(const struct mg_jval *member);

#endif
