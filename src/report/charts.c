/* The pictures that tools draw, one by one: for `margay report --charts`. */
#include <string.h>

#include "report/priv.h"

void mg_report_charts(const struct mg_recording *p, const struct mg_report_opts *o, mg_report_chart_fn fn, void *user)
{
    static const struct mg_report_opts defaults = {.size = sizeof defaults};
    if (!o) o = &defaults;
    for (uint32_t u = 0; u < p->n_uses; u++) {
        struct mg_table t;
        if (!mg_tool_tables(p, u, o, &t)) continue;
        for (uint32_t i = 0; i < t.tables.n; i++)
            for (uint32_t c = 0; c < t.tables.at[i].charts.n; c++) {
                const struct mg_table_chart *x = &t.tables.at[i].charts.at[c];
                fn(x->name, x->svg, x->dot, user);
            }
        mg_table_release(&t);
    }
}
