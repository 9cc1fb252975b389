/* communication: who reads what whom wrote, launch by launch: the analysis of `margay study communication`
 * (docs/studies/communication.md) without a trace that stays. See of_trace.h. */
#include <stdlib.h>
#include <string.h>

#include "tool/of_trace.h"
#include "tool/tool.h"
#include "view/kit.h"

static const struct mg_tool_opt communication_opts[] = {
    {"entity", "cta", "what communicates: cta, warp, thread, sm, kernel"},
    {"match", "byte", "byte: a read belongs to the writers of its bytes; start: to the last write at its address"},
    {0},
};

static enum mg_err communication_configure(const char *args, void **conf, struct mg_diag *d)
{
    static const char *const entities[] = {"cta", "warp", "thread", "sm", "kernel", NULL}, /* as in study/comm.h */
        *const matches[] = {"byte", "start", NULL};
    static const struct mg_field fields[] = {
        {"entity", MG_FIELD_CHOICE, offsetof(struct mg_communication_conf, entity), .words = entities},
        {"match", MG_FIELD_CHOICE, offsetof(struct mg_communication_conf, match), .words = matches},
        {0},
    };
    const struct mg_communication_conf defaults = {0};
    return mg_fields_parse("communication", fields, &defaults, sizeof defaults, args, conf, d);
}

/* ---- report ------------------------------------------------------------------------------------------------- */

/* A kernel's bytes of one kind, over supersteps. */
static uint64_t sum_of(const struct mg_jval *kernel, const char *kind)
{
    uint64_t n = 0;
    for (const struct mg_jval *step = mg_jval_first(kernel); step; step = step->next) n += mg_jval_u64(step, kind);
    return n;
}

static void add_kernels(struct mg_table *t, const struct mg_jval *bytes)
{
    const struct mg_jval *used = mg_jval_get(bytes, "KCV");
    for (const struct mg_jval *k = mg_jval_first(mg_jval_get(bytes, "KDV")); k; k = k->next) {
        const struct mg_jval *of = mg_jval_get(used, k->key);
        uint64_t stores = sum_of(k, "store"), read = sum_of(of, "store");
        mg_table_row(t);
        mg_kit_demangled(t, k->key);
        mg_table_u64(t, k->n);
        mg_table_u64(t, sum_of(k, "load"));
        mg_table_u64(t, sum_of(of, "load"));
        mg_table_u64(t, stores);
        mg_table_u64(t, read);
        mg_table_f64(t, mg_kit_percent(read, stores));
        mg_table_u64(t, sum_of(k, "atomic"));
        mg_table_u64(t, sum_of(of, "atomic"));
    }
}

static void note_sums(struct mg_table *t, const struct mg_jval *trace, const struct mg_jval *ambiguous,
                      const struct mg_jval *transfers)
{
    static const struct {
        const char *key, *text;
    } lacks[] = {
        {"untraced", "launches ran native: what they wrote is not known"},
        {"graph_copies", "copies and memsets inside of graphs are not looked at"},
        {"array_copies", "copies of arrays are not looked at"},
        {"host_memory_bytes", "bytes of memory that the host may write unseen"},
        {"damaged", "damaged pieces of the trace are left out"},
        {"unseen", "lanes ran instructions that are not looked at"},
    };
    if (mg_jval_is_number(transfers)) mg_table_note(t, "%.0f transfers", mg_jval_number(transfers));
    if (mg_jval_u64(ambiguous, "bytes"))
        mg_table_note(t,
                      "reads of %llu bytes stand beside writes of the same launch in no known order: up to %llu "
                      "bytes more of transfers",
                      (unsigned long long)mg_jval_u64(ambiguous, "bytes"),
                      (unsigned long long)mg_jval_u64(ambiguous, "max"));
    for (size_t i = 0; i < MG_COUNT_OF(lacks); i++)
        if (mg_jval_u64(trace, lacks[i].key))
            mg_table_note(t, "%llu %s", (unsigned long long)mg_jval_u64(trace, lacks[i].key), lacks[i].text);
    if (mg_jval_yes(trace, "partial")) mg_table_note(t, "some accesses were dropped or not selected");
}

static void add_pairs(struct mg_table *t, const struct mg_jval *advice)
{
    for (const struct mg_jval *p = mg_jval_first(mg_jval_get(advice, "pairs")); p; p = p->next) {
        mg_table_row(t);
        mg_kit_demangled(t, mg_jval_text(p, "from"));
        mg_kit_demangled(t, mg_jval_text(p, "to"));
        mg_table_u64(t, mg_jval_u64(p, "launches"));
        mg_table_u64(t, mg_jval_u64(p, "read_nothing"));
        mg_table_u64(t, mg_jval_u64(p, "read_own"));
        mg_table_u64(t, mg_jval_u64(p, "bytes"));
    }
}

static void communication_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t,
                                  struct mg_json *j)
{
    const struct mg_jval *v;
    struct mg_arena arena = MG_ARENA_INIT;
    (void)conf, (void)j;
    mg_table_begin(t, "communication", "bytes that launches read of earlier ones (all figures: report --json)");
    MG_TABLE_COLUMNS(t, {"kernel", MG_COL_TEXT}, {"supersteps", MG_COL_COUNT}, {"loads", MG_COL_BYTES, "bytes"},
                     {"of earlier launches", MG_COL_BYTES, "bytes"}, {"stores", MG_COL_BYTES, "bytes"},
                     {"read later", MG_COL_BYTES, "bytes"}, {"share", MG_COL_PERCENT},
                     {"atomics", MG_COL_BYTES, "bytes"}, {"that communicate", MG_COL_BYTES, "bytes"});
    mg_table_empty(t, "nothing was analysed: no access was recorded, or the program has not ended");
    for (uint32_t i = 0; (v = mg_left_value(r, &arena, "bytes", i)); i++) {
        add_kernels(t, v);
        note_sums(t, mg_left_value(r, &arena, "trace", i), mg_left_value(r, &arena, "ambiguous", i),
                  mg_left_value(r, &arena, "transfer_count", i));
    }
    mg_table_sort(t, 3);
    mg_table_begin(t, "pairs", "kernels one behind the other in a stream: what the second needs of the first");
    MG_TABLE_COLUMNS(t, {"first", MG_COL_TEXT}, {"second", MG_COL_TEXT}, {"launches", MG_COL_COUNT},
                     {"read nothing", MG_COL_COUNT}, {"each CTA its own", MG_COL_COUNT},
                     {"bytes", MG_COL_BYTES, "bytes"});
    mg_table_empty(t, "no two launches stand one behind the other");
    for (uint32_t i = 0; (v = mg_left_value(r, &arena, "advice", i)); i++) add_pairs(t, v);
    mg_table_sort(t, 5);
    mg_arena_release(&arena);
}

extern const struct mg_tool mg_tool_communication;
const struct mg_tool mg_tool_communication = {
    .name = "communication",
    .summary = "which CTA reads what another one wrote in an earlier launch",
    .opts = communication_opts,
    .configure = communication_configure,
    .release = free,
    .profile = communication_profile,
    .flags = MG_TOOL_NATIVE | MG_TOOL_BESIDE | MG_TOOL_NO_LOADS | MG_TOOL_OF_TRACE,
};
