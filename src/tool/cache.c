/* cache: what caches of any size would hold: the model of `margay study cache` (docs/studies/cache.md) without a trace
 * that stays. See of_trace.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/of_trace.h"
#include "tool/tool.h"
#include "view/kit.h"

static const struct mg_tool_opt cache_opts[] = {
    {"l1", "256k", "bytes of an L1, with what is shared memory"},
    {"l2", "60m", "bytes of the L2"},
    {"interleavings", "2", "orders of a multiprocessor's warps at random"},
    {"seed", "1", "of the first of them"},
    {0},
};

static enum mg_err cache_configure(const char *args, void **conf, struct mg_diag *d)
{
    static const struct mg_field fields[] = {
        {"l1", MG_FIELD_SIZE, offsetof(struct mg_cache_conf, l1_bytes), 4096, 1 << 26, NULL},
        {"l2", MG_FIELD_SIZE, offsetof(struct mg_cache_conf, l2_bytes), 4096, (uint64_t)1 << 33, NULL},
        {"interleavings", MG_FIELD_NUMBER, offsetof(struct mg_cache_conf, interleavings), 0, 64, NULL},
        {"seed", MG_FIELD_NUMBER, offsetof(struct mg_cache_conf, seed), 0, UINT32_MAX, NULL},
        {0},
    };
    const struct mg_cache_conf defaults = {.l1_bytes = 256 << 10, .l2_bytes = 60 << 20, .interleavings = 2, .seed = 1};
    return mg_fields_parse("cache", fields, &defaults, sizeof defaults, args, conf, d);
}

/* Columns of what an access or a buffer has; add_part fills them. */
static void add_part_columns(struct mg_table *t)
{
    MG_TABLE_COLUMNS(t, {"sectors", MG_COL_COUNT}, {"L1 hits, least", MG_COL_PERCENT}, {"most", MG_COL_PERCENT},
                     {"L1 capacity misses, least", MG_COL_COUNT, .detail = true},
                     {"at most", MG_COL_COUNT, .detail = true}, {"L2 sectors", MG_COL_COUNT, .detail = true},
                     {"L2 first", MG_COL_COUNT, .detail = true}, {"L2 hits, least", MG_COL_PERCENT},
                     {"L2 hits, guess", MG_COL_PERCENT}, {"L2 hits, most", MG_COL_PERCENT});
}

/* The least or the most of [least, most], as a share of `of`. */
static void add_end(struct mg_table *t, const struct mg_jval *span, bool most, uint64_t of)
{
    const struct mg_jval *v = mg_jval_first(span);
    if (v && most) v = v->next;
    if (v && of)
        mg_table_f64(t, 100 * mg_jval_number(v) / (double)of);
    else
        mg_table_null(t);
}

static void add_part(struct mg_table *t, const struct mg_jval *v, uint64_t sectors, uint64_t loads)
{
    const struct mg_jval *hits = mg_jval_get(v, "l1_hit_range"), *l2 = mg_jval_get(v, "l2_hits"),
                         *capacity = mg_jval_first(mg_jval_get(v, "l1_capacity"));
    uint64_t l2_sectors = mg_jval_u64(v, "l2_sectors");
    mg_table_u64(t, sectors);
    add_end(t, hits, false, loads);
    add_end(t, hits, true, loads);
    mg_table_u64(t, capacity ? (uint64_t)mg_jval_number(capacity) : 0);
    mg_table_u64(t, capacity ? (uint64_t)mg_jval_number(capacity->next) : 0);
    mg_table_u64(t, l2_sectors);
    mg_table_u64(t, mg_jval_u64(v, "l2_first"));
    add_end(t, l2, false, l2_sectors);
    if (l2_sectors)
        mg_table_f64(t, 100 * (double)mg_jval_u64(v, "l2_hits_guess") / (double)l2_sectors);
    else
        mg_table_null(t);
    add_end(t, l2, true, l2_sectors);
}

static void add_buffers(struct mg_table *t, const struct mg_jval *buffers)
{
    for (const struct mg_jval *b = mg_jval_first(buffers); b; b = b->next) {
        uint64_t loads = mg_jval_u64(b, "load_sectors");
        const char *name = mg_jval_text(b, "name");
        mg_table_row(t);
        if (mg_jval_is_number(mg_jval_get(b, "allocation")))
            mg_table_u64(t, mg_jval_u64(b, "allocation"));
        else
            mg_table_null(t);
        if (name)
            mg_table_text(t, name);
        else
            mg_table_null(t);
        add_part(t, b, loads + mg_jval_u64(b, "store_sectors") + mg_jval_u64(b, "atomic_sectors"), loads);
    }
}

static void add_sites(struct mg_table *t, const struct mg_jval *sites)
{
    for (const struct mg_jval *s = mg_jval_first(sites); s; s = s->next) {
        uint64_t sectors = mg_jval_u64(s, "sectors");
        const char *buffer = mg_jval_text(s, "buffer"), *file = mg_jval_text(s, "file"),
                   *kind = mg_jval_text(s, "kind");
        struct mg_result_site place = {.ptx_line = (uint32_t)mg_jval_u64(s, "ptx_line"),
                                       .line = (uint32_t)mg_jval_u64(s, "line"),
                                       .block = UINT32_MAX};
        if (place.line) place.file = file;
        mg_table_row(t);
        mg_kit_demangled(t, mg_jval_text(s, "kernel"));
        mg_table_place(t, &place);
        mg_table_text(t, mg_jval_text(s, "op"));
        if (buffer)
            mg_table_text(t, buffer);
        else
            mg_table_null(t);
        add_part(t, s, sectors, kind && !strcmp(kind, "load") ? sectors : 0);
    }
}

static void add_kernels(struct mg_table *t, const struct mg_jval *kernels)
{
    for (const struct mg_jval *k = mg_jval_first(kernels); k; k = k->next) {
        uint64_t loads = mg_jval_u64(k, "load_sectors");
        mg_table_row(t);
        mg_kit_demangled(t, mg_jval_text(k, "kernel"));
        mg_table_u64(t, mg_jval_u64(k, "launches"));
        mg_table_u64(t, loads);
        mg_table_u64(t, mg_jval_u64(k, "store_sectors"));
        mg_table_u64(t, mg_jval_u64(k, "atomic_sectors"));
        mg_table_u64(t, mg_jval_u64(k, "first_sectors"));
        add_end(t, mg_jval_get(k, "l1_hits"), false, loads);
        add_end(t, mg_jval_get(k, "l1_hits"), true, loads);
    }
}

static void add_sizes(struct mg_table *t, const struct mg_jval *l2)
{
    uint64_t sectors = mg_jval_u64(l2, "sectors");
    for (const struct mg_jval *s = mg_jval_first(mg_jval_get(l2, "sizes")); s; s = s->next) {
        mg_table_row(t);
        mg_table_u64(t, mg_jval_u64(s, "bytes"));
        add_end(t, mg_jval_get(s, "hits"), false, sectors);
        add_end(t, mg_jval_get(s, "hits"), true, sectors);
    }
}

static void note_l2(struct mg_table *t, const struct mg_jval *l2, const struct mg_jval *untraced,
                    const struct mg_jval *partial)
{
    const struct mg_jval *least = mg_jval_first(mg_jval_get(l2, "hits"));
    double sectors = (double)mg_jval_u64(l2, "sectors");
    if (least && least->next && sectors > 0)
        mg_table_note(t, "L2: %.0f sectors, hits %.1f to %.1f %%, at a guess %.1f %%", sectors,
                      100 * mg_jval_number(least) / sectors, 100 * mg_jval_number(least->next) / sectors,
                      100 * (double)mg_jval_u64(l2, "hits_guess") / sectors);
    if (mg_jval_number(untraced) > 0)
        mg_table_note(t, "%.0f launches ran native and are not in the model", mg_jval_number(untraced));
    if (partial && partial->kind == MG_JVAL_BOOL && partial->yes)
        mg_table_note(t, "some accesses were dropped or not selected");
}

static void cache_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    const struct mg_jval *v;
    struct mg_arena arena = MG_ARENA_INIT;
    (void)conf, (void)j;
    mg_table_begin(t, "cache", "sectors and what an L1 would hold, a model (assumptions: report --json)");
    MG_TABLE_COLUMNS(t, {"kernel", MG_COL_TEXT}, {"launches", MG_COL_COUNT}, {"load sectors", MG_COL_COUNT},
                     {"store sectors", MG_COL_COUNT}, {"atomic sectors", MG_COL_COUNT}, {"first touched", MG_COL_COUNT},
                     {"L1 hits, least", MG_COL_PERCENT}, {"most", MG_COL_PERCENT});
    mg_table_empty(t, "nothing was analysed: no access was recorded, or the program has not ended");
    for (uint32_t i = 0; (v = mg_left_value(r, &arena, "kernels", i)); i++) {
        add_kernels(t, v);
        note_l2(t, mg_left_value(r, &arena, "l2", i), mg_left_value(r, &arena, "untraced", i),
                mg_left_value(r, &arena, "partial", i));
    }
    mg_table_sort(t, 2);
    mg_table_begin(t, "cache_buffers", "what each buffer has of it");
    MG_TABLE_COLUMNS(t, {"allocation", MG_COL_COUNT}, {"buffer", MG_COL_TEXT});
    add_part_columns(t);
    mg_table_empty(t, "nothing was analysed");
    for (uint32_t i = 0; (v = mg_left_value(r, &arena, "buffers", i)); i++) add_buffers(t, v);
    mg_table_sort(t, 2);
    mg_table_begin(t, "cache_sites", "what each access has of it");
    MG_TABLE_COLUMNS(t, {"kernel", MG_COL_TEXT}, {"place", MG_COL_PLACE}, {"access", MG_COL_TEXT},
                     {"buffer", MG_COL_TEXT});
    add_part_columns(t);
    mg_table_empty(t, "nothing was analysed");
    for (uint32_t i = 0; (v = mg_left_value(r, &arena, "sites", i)); i++) add_sites(t, v);
    mg_table_sort(t, 4);
    mg_table_begin(t, "l2_sizes", "hits of an L2 of each size");
    MG_TABLE_COLUMNS(t, {"bytes", MG_COL_COUNT}, {"hits, least", MG_COL_PERCENT}, {"most", MG_COL_PERCENT});
    mg_table_empty(t, "nothing was analysed");
    for (uint32_t i = 0; (v = mg_left_value(r, &arena, "l2", i)); i++) add_sizes(t, v);
    mg_arena_release(&arena);
}

extern const struct mg_tool mg_tool_cache;
const struct mg_tool mg_tool_cache = {
    .name = "cache",
    .summary = "what L1 and L2 of any size would hold, by kernel: a model",
    .opts = cache_opts,
    .configure = cache_configure,
    .release = free,
    .profile = cache_profile,
    .flags = MG_TOOL_NATIVE | MG_TOOL_BESIDE | MG_TOOL_NO_LOADS | MG_TOOL_OF_TRACE,
};
