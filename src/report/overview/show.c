/* The tables as text, CSV and JSON; their pictures. */
#include <string.h>

#include "report/overview/priv.h"

static bool is_shown(const struct mg_one_table *t, const char *table)
{
    return !table || !strcmp(t->name, table);
}

bool mg_overview_has_table(const struct mg_overview *o, const char *table)
{
    struct mg_table t = {0};
    bool found = false;
    overview_tables(o, &t);
    for (uint32_t i = 0; i < t.tables.n; i++) found |= !strcmp(t.tables.at[i].name, table);
    mg_table_release(&t);
    return found;
}

void mg_overview_text(const struct mg_overview *o, const char *table, uint32_t columns, bool color, struct mg_buf *out)
{
    struct mg_report_opts opts = {.size = sizeof opts, .columns = columns, .color = color};
    struct mg_table t = {0};
    overview_tables(o, &t);
    for (uint32_t i = 0; i < t.tables.n; i++) {
        if (!is_shown(&t.tables.at[i], table)) continue;
        if (out->n) mg_buf_addc(out, '\n');
        mg_add_table(&t.tables.at[i], &opts, 0, out);
    }
    mg_table_release(&t);
}

void mg_overview_csv(const struct mg_overview *o, const char *table, struct mg_buf *out)
{
    struct mg_table t = {0};
    overview_tables(o, &t);
    for (uint32_t i = 0; i < t.tables.n; i++)
        if (is_shown(&t.tables.at[i], table)) mg_add_table_csv(NULL, &t.tables.at[i], out);
    mg_table_release(&t);
}

void mg_overview_json(const struct mg_overview *o, const char *table, struct mg_buf *out)
{
    struct mg_table t = {0};
    struct mg_json j;
    overview_tables(o, &t);
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key(&j, "tables");
    mg_json_obj(&j);
    for (uint32_t i = 0; i < t.tables.n; i++)
        if (is_shown(&t.tables.at[i], table)) mg_write_table(&j, &t.tables.at[i]);
    mg_json_end(&j, '}');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
    mg_table_release(&t);
}

void mg_overview_charts(const struct mg_overview *o, const char *table, mg_report_chart_fn fn, void *user)
{
    struct mg_table t = {0};
    overview_tables(o, &t);
    for (uint32_t i = 0; i < t.tables.n; i++)
        for (uint32_t c = 0; c < t.tables.at[i].charts.n; c++)
            if (is_shown(&t.tables.at[i], table))
                fn(t.tables.at[i].charts.at[c].name, t.tables.at[i].charts.at[c].svg, NULL, user);
    mg_table_release(&t);
}
