/* Maps of one-liners as they are shown: gathered over kernels, sites and tables, then as tables and JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "probe/expr_place.h"
#include "record/event.h"

struct entry {                                   /* of a map */
    struct mg_expr_const keys[MG_EXPR_KEYS + 1]; /* topk: the value behind them */
    uint64_t cells[2];
    uint64_t *buckets; /* hist, lhist */
    bool any;          /* something was counted */
};
struct gathered {
    const struct mg_expr_map *m;
    uint32_t n_keys; /* the value of topk included */
    struct mg_intern ids;
    MG_VEC(struct entry) entries; /* id - 1 */
    uint64_t lost;
    bool has_site;
};
struct shower {
    const struct mg_expr *e;
    struct mg_arena arena;
    struct gathered *maps;
};

/* ---- gathering ------------------------------------------------------------------------------------- */

static struct entry *entry_of(struct shower *s, struct gathered *g, const struct mg_expr_const *keys)
{
    struct mg_buf text = MG_BUF_INIT;
    for (uint32_t i = 0; i < g->n_keys; i++) {
        if (keys[i].is_str)
            mg_buf_printf(&text, "\"%s|", keys[i].str);
        else
            mg_buf_printf(&text, "%" PRId64 "|", keys[i].num);
    }
    mg_str id = mg_intern_add(&g->ids, text.n ? text.at : "|", text.n ? text.n : 1);
    mg_buf_release(&text);
    while (g->entries.n < id) *mg_vec_push(&g->entries) = (struct entry){0};
    struct entry *e = &g->entries.at[id - 1];
    if (e->any) return e;
    memcpy(e->keys, keys, g->n_keys * sizeof *keys);
    if (!e->buckets && (g->m->agg == MG_EA_hist || g->m->agg == MG_EA_lhist))
        e->buckets = mg_arena_array(&s->arena, uint64_t, mg_expr_map_cells(g->m));
    return e;
}

/* Cells of one update: of a table's entry, or a site's run. */
static void add_cells(struct entry *e, const struct mg_expr_map *m, const uint64_t *cells)
{
    if (e->buckets) {
        for (uint32_t i = 0; i < mg_expr_map_cells(m); i++) {
            e->buckets[i] += cells[i];
            e->any |= cells[i] != 0;
        }
        return;
    }
    if (m->agg == MG_EA_min || m->agg == MG_EA_max)
        e->cells[0] = MG_MAX(e->cells[0], cells[0]);
    else
        e->cells[0] += cells[0];
    if (m->agg == MG_EA_avg) e->cells[1] += cells[1];
    e->any |= cells[0] || (m->agg == MG_EA_avg && cells[1]);
}

static uint32_t bucket_of(const struct mg_expr_map *m, int64_t v)
{
    if (m->agg == MG_EA_hist) return v < 0 ? 0 : v ? 65u - (uint32_t)__builtin_clzll((uint64_t)v) : 1;
    return v < m->lo ? 0 : v >= m->hi ? mg_expr_lhist_buckets(m) - 1 : (uint32_t)((v - m->lo) / m->step) + 1;
}

/* n times the value v, which was known beforehand. */
static void add_derived(struct entry *e, const struct mg_expr_map *m, uint64_t v, uint64_t n)
{
    uint64_t cells[2] = {n, n};
    if (!n) return;
    e->any = true;
    if (e->buckets) {
        e->buckets[bucket_of(m, (int64_t)v)] += n;
        return;
    }
    if (m->agg == MG_EA_sum || m->agg == MG_EA_avg) cells[0] = n * v;
    if (m->agg == MG_EA_max) cells[0] = (v ^ (uint64_t)1 << 63) + 1;
    if (m->agg == MG_EA_min) cells[0] = ~(v ^ (uint64_t)1 << 63) + 1;
    add_cells(e, m, cells);
    e->any = true;
}

static void fill_env(struct mg_expr_env *env, const struct mg_result_kernel *k, const struct mg_result_site *s)
{
    uint32_t to = UINT32_MAX;
    if (s->kind == MG_SITE_EDGE && k->blocks && s->block < k->n_blocks && s->succ < k->blocks[s->block].n_succs)
        to = k->blocks[s->block].succs[s->succ];
    mg_expr_env_fill(env, k->name, s->function, s->file, s->op, s->line, s->ptx_line, s->block, to);
}

static void gather_table(struct shower *s, const struct mg_result_kernel *k, const struct mg_result_table *t,
                         const struct mg_map *names)
{
    uint32_t note = k->sites[t->site].note, update = mg_expr_note_update(note), mask = mg_expr_note_payload(note);
    if (update >= s->e->n_updates || mg_expr_note_kind(note) != MG_EN_TABLE) return;
    const struct mg_expr_update *up = s->e->updates[update];
    struct gathered *g = &s->maps[up->map];
    bool bucket = g->m->agg == MG_EA_hist || g->m->agg == MG_EA_lhist, top = g->m->agg == MG_EA_topk;
    uint32_t want = up->n_keys - (uint32_t)__builtin_popcount(mask) + (mask != 0) + (bucket || top);
    g->lost += t->lost;
    if (t->n_keys != want) return;
    for (uint64_t i = 0; i < t->n; i++) {
        const uint64_t *word = t->entries[i].keys;
        struct mg_expr_const keys[MG_EXPR_KEYS + 1];
        struct mg_expr_env env = {0};
        uint64_t site;
        if (mask) {
            if (!mg_map_get(names, *word++, &site)) continue;
            fill_env(&env, k, &k->sites[site]);
        }
        for (uint32_t j = 0; j < up->n_keys; j++)
            keys[j] = mask >> j & 1 ? mg_expr_eval(up->keys[j], &env)
                                    : (struct mg_expr_const){.known = true, .num = (int64_t)*word++};
        if (top) keys[up->n_keys] = (struct mg_expr_const){.known = true, .num = (int64_t)*word};
        struct entry *e = entry_of(s, g, keys);
        if (!bucket) {
            add_cells(e, g->m, t->entries[i].cells);
        } else if (*word < mg_expr_map_cells(g->m)) {
            e->buckets[*word] += t->entries[i].cells[0];
            e->any = true;
        }
    }
}

static void gather_site(struct shower *s, const struct mg_result_kernel *k, const struct mg_result_site *site)
{
    uint32_t update = mg_expr_note_update(site->note), kind = mg_expr_note_kind(site->note);
    if (update >= s->e->n_updates) return;
    const struct mg_expr_update *up = s->e->updates[update];
    struct gathered *g = &s->maps[up->map];
    struct mg_expr_const keys[MG_EXPR_KEYS + 1];
    struct mg_expr_env env;
    g->has_site = true;
    bool always = !g->n_keys && (g->m->agg == MG_EA_count || g->m->agg == MG_EA_sum); /* 0 is an answer */
    if (always) entry_of(s, g, keys)->any = true;
    if (kind != MG_EN_CELLS && kind != MG_EN_DERIVED) return;
    fill_env(&env, k, site);
    for (uint32_t i = 0; i < up->n_keys; i++) keys[i] = mg_expr_eval(up->keys[i], &env);
    if (kind == MG_EN_DERIVED && k->threads && site->block < k->n_blocks)
        add_derived(entry_of(s, g, keys), g->m, mg_expr_note_payload(site->note), k->threads[site->block]);
    else if (kind == MG_EN_CELLS && site->n_cells >= mg_expr_map_cells(g->m))
        add_cells(entry_of(s, g, keys), g->m, k->cells + site->cell);
}

static void gather_kernel(struct shower *s, const struct mg_result_kernel *k)
{
    struct mg_map names = MG_MAP_INIT;
    for (uint32_t i = 0; i < k->n_sites; i++) {
        gather_site(s, k, &k->sites[i]);
        if (mg_expr_note_kind(k->sites[i].note) == MG_EN_NAME)
            mg_map_set(&names, mg_expr_note_payload(k->sites[i].note), i);
    }
    for (uint32_t i = 0; i < k->n_tables; i++) gather_table(s, k, &k->tables[i], &names);
    mg_map_release(&names);
}

/* ---- order --------------------------------------------------------------------------------------------- */

static int compare_keys(const struct mg_expr_const *a, const struct mg_expr_const *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int c = a[i].is_str && b[i].is_str ? strcmp(a[i].str, b[i].str) : (a[i].num > b[i].num) - (a[i].num < b[i].num);
        if (c) return c;
    }
    return 0;
}

static int64_t value_of(const struct mg_expr_map *m, const struct entry *e)
{
    return (int64_t)(m->agg == MG_EA_min || m->agg == MG_EA_max ? mg_expr_from_cell(m->agg, e->cells[0]) : e->cells[0]);
}

struct order {
    const struct entry *e;
    const struct gathered *g;
    bool by_value;
};

static int compare(const void *x, const void *y)
{
    const struct order *a = x, *b = y;
    const struct mg_expr_map *m = a->g->m;
    uint32_t head = m->agg == MG_EA_topk ? a->g->n_keys - 1 : 0; /* topk: the most frequent of each key */
    int c = compare_keys(a->e->keys, b->e->keys, head);
    if (c) return c;
    if (a->by_value && m->agg == MG_EA_avg) {
        double p = (double)(int64_t)a->e->cells[0] / (double)a->e->cells[1],
               q = (double)(int64_t)b->e->cells[0] / (double)b->e->cells[1];
        if (p != q) return p < q ? 1 : -1;
    } else if (a->by_value) {
        int64_t p = value_of(m, a->e), q = value_of(m, b->e);
        if (p != q) return p < q ? 1 : -1;
    }
    return compare_keys(a->e->keys, b->e->keys, a->g->n_keys);
}

/* Entries in order; topk: the most frequent ones alone. */
static struct order *sort_entries(const struct gathered *g, bool by_value, uint32_t *n)
{
    struct order *o = mg_xcalloc(g->entries.n + 1, sizeof *o);
    *n = 0;
    bool top = g->m->agg == MG_EA_topk;
    for (uint32_t i = 0; i < g->entries.n; i++)
        if (g->entries.at[i].any) o[(*n)++] = (struct order){&g->entries.at[i], g, by_value || top};
    qsort(o, *n, sizeof *o, compare);
    if (!top) return o;
    uint32_t kept = 0, run = 0;
    for (uint32_t i = 0; i < *n; i++) {
        bool same = kept && !compare_keys(o[i].e->keys, o[kept - 1].e->keys, g->n_keys - 1);
        run = same ? run + 1 : 1;
        if (run <= g->m->top) o[kept++] = o[i];
    }
    *n = kept;
    return o;
}

/* ---- tables ------------------------------------------------------------------------------------------------ */

static void show_key(struct mg_table *t, const struct mg_expr_const *k, unsigned flags)
{
    char text[32];
    if (k->is_str) {
        mg_table_text(t, k->str);
        return;
    }
    snprintf(text, sizeof text, flags & MG_EVF_HEX ? "0x%" PRIx64 : "%" PRId64, k->num);
    mg_table_text(t, text);
}

static void show_keys(struct mg_table *t, const struct gathered *g, const struct entry *e)
{
    mg_table_row(t);
    for (uint32_t i = 0; i < g->n_keys; i++)
        show_key(t, &e->keys[i], i < g->m->n_keys ? g->m->key_flags[i] : g->m->value_flags);
}

/* Values of a bucket: from, and up to but not including. */
static void bucket_range(const struct mg_expr_map *m, uint32_t b, int64_t *lo, int64_t *hi, bool *has_lo, bool *has_hi)
{
    *has_lo = b != 0;
    *has_hi = b + 1 < mg_expr_map_cells(m);
    if (m->agg == MG_EA_hist) {
        *lo = b < 2 ? 0 : (int64_t)((uint64_t)1 << (b - 2));
        *hi = b < 2 ? (int64_t)b : (int64_t)((uint64_t)1 << (b - 1 < 63 ? b - 1 : 62));
    } else {
        *lo = b + 1 < mg_expr_map_cells(m) ? m->lo + ((int64_t)b - 1) * m->step : m->hi;
        *hi = b ? MG_MIN(m->hi, m->lo + (int64_t)b * m->step) : m->lo;
    }
}

static void show_buckets(struct mg_table *t, const struct gathered *g, const struct entry *e)
{
    uint64_t most = 1;
    uint32_t n = mg_expr_map_cells(g->m), first = n, last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!e->buckets[i]) continue;
        most = MG_MAX(most, e->buckets[i]);
        first = MG_MIN(first, i);
        last = i;
    }
    for (uint32_t i = first; i <= last && i < n; i++) {
        int64_t lo = 0, hi = 0;
        bool has_lo, has_hi;
        char range[64], bar[33] = "";
        bucket_range(g->m, i, &lo, &hi, &has_lo, &has_hi);
        if (has_lo && has_hi && hi - lo == 1)
            snprintf(range, sizeof range, "%" PRId64, lo);
        else if (has_lo && has_hi)
            snprintf(range, sizeof range, "[%" PRId64 ", %" PRId64 ")", lo, hi);
        else
            snprintf(range, sizeof range, has_lo ? ">= %" PRId64 : "< %" PRId64, has_lo ? lo : hi);
        memset(bar, '@', (size_t)((double)e->buckets[i] * 32 / (double)most));
        show_keys(t, g, e);
        mg_table_text(t, range);
        mg_table_u64(t, e->buckets[i]);
        mg_table_text(t, bar);
    }
}

static void show_value(struct mg_table *t, const struct gathered *g, const struct entry *e)
{
    int64_t v = value_of(g->m, e);
    char text[32];
    show_keys(t, g, e);
    if (g->m->agg == MG_EA_avg) {
        mg_table_f64(t, (double)(int64_t)e->cells[0] / (double)e->cells[1]);
    } else if (v < 0) {
        snprintf(text, sizeof text, "%" PRId64, v);
        mg_table_text(t, text);
    } else {
        mg_table_u64(t, (uint64_t)v);
    }
    if (g->m->agg == MG_EA_avg) mg_table_u64(t, e->cells[1]);
}

static void show_map(struct mg_table *t, const struct gathered *g)
{
    const struct mg_expr_map *m = g->m;
    uint32_t n;
    struct order *o = sort_entries(g, m->agg != MG_EA_hist && m->agg != MG_EA_lhist, &n);
    char title[160];
    snprintf(title, sizeof title, "%s %s", m->name, mg_expr_agg_text((enum mg_expr_agg)m->agg));
    mg_table_begin(t, m->name[1] ? m->name + 1 : "map", title);
    for (uint32_t i = 0; i < m->n_keys; i++) mg_table_column(t, m->key_names[i], MG_COL_TEXT, NULL);
    if (m->agg == MG_EA_topk) mg_table_column(t, "value", MG_COL_TEXT, NULL);
    if (m->agg == MG_EA_hist || m->agg == MG_EA_lhist) {
        mg_table_column(t, "range", MG_COL_TEXT, NULL);
        mg_table_column(t, "count", MG_COL_COUNT, NULL);
        mg_table_column(t, "distribution", MG_COL_TEXT, NULL);
    } else {
        mg_table_column(t, m->agg == MG_EA_topk ? "count" : mg_expr_agg_text((enum mg_expr_agg)m->agg),
                        m->agg == MG_EA_avg ? MG_COL_REAL : MG_COL_COUNT, NULL);
        if (m->agg == MG_EA_avg) mg_table_column(t, "of", MG_COL_COUNT, NULL);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (o[i].e->buckets)
            show_buckets(t, g, o[i].e);
        else
            show_value(t, g, o[i].e);
    }
    if (g->lost)
        mg_table_note(t, "%" PRIu64 " updates found no room in the table of their kernel and are missing", g->lost);
    if (!g->has_site)
        mg_table_note(t, "nothing counted: no kernel that ran instrumented has a site of %s (line %u, column %u)",
                      m->name, m->line, m->col);
    free(o);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static void write_value(struct mg_json *j, const struct mg_expr_map *m, const struct entry *e)
{
    if (!e->buckets) {
        if (m->agg == MG_EA_avg)
            mg_json_f64(j, (double)(int64_t)e->cells[0] / (double)e->cells[1]);
        else
            mg_json_i64(j, value_of(m, e));
        return;
    }
    mg_json_arr(j);
    for (uint32_t i = 0; i < mg_expr_map_cells(m); i++) {
        int64_t lo = 0, hi = 0;
        bool has_lo, has_hi;
        if (!e->buckets[i]) continue;
        bucket_range(m, i, &lo, &hi, &has_lo, &has_hi);
        mg_json_obj(j);
        mg_json_key(j, "lo");
        if (has_lo)
            mg_json_i64(j, lo);
        else
            mg_json_null(j);
        mg_json_key(j, "hi");
        if (has_hi)
            mg_json_i64(j, hi);
        else
            mg_json_null(j);
        mg_json_key_u64(j, "count", e->buckets[i]);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void write_map(struct mg_json *j, const struct gathered *g)
{
    uint32_t n;
    struct order *o = sort_entries(g, false, &n);
    mg_json_obj(j);
    mg_json_key_str(j, "name", g->m->name);
    mg_json_key_str(j, "kind", mg_expr_agg_text((enum mg_expr_agg)g->m->agg));
    mg_json_key(j, "keys");
    mg_json_arr(j);
    for (uint32_t i = 0; i < g->n_keys; i++) mg_json_str(j, i < g->m->n_keys ? g->m->key_names[i] : "value");
    mg_json_end(j, ']');
    mg_json_key(j, "entries");
    mg_json_arr(j);
    for (uint32_t i = 0; i < n; i++) {
        mg_json_obj(j);
        mg_json_key(j, "key");
        mg_json_arr(j);
        for (uint32_t k = 0; k < g->n_keys; k++) {
            if (o[i].e->keys[k].is_str)
                mg_json_str(j, o[i].e->keys[k].str);
            else
                mg_json_i64(j, o[i].e->keys[k].num);
        }
        mg_json_end(j, ']');
        mg_json_key(j, "value");
        write_value(j, g->m, o[i].e);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key_u64(j, "lost", g->lost);
    mg_json_key_bool(j, "sites", g->has_site);
    mg_json_end(j, '}');
    free(o);
}

void mg_expr_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    const struct mg_expr *e = ((const struct mg_expr_conf *)conf)->e;
    struct shower s = {.e = e};
    s.maps = mg_arena_array(&s.arena, struct gathered, e->n_maps + 1);
    for (uint32_t i = 0; i < e->n_maps; i++) {
        s.maps[i].m = &e->maps[i];
        s.maps[i].n_keys = e->maps[i].n_keys + (e->maps[i].agg == MG_EA_topk);
        mg_intern_init(&s.maps[i].ids);
    }
    for (uint32_t i = 0; i < r->n_kernels; i++) gather_kernel(&s, &r->kernels[i]);
    mg_json_key(j, "maps");
    mg_json_arr(j);
    for (uint32_t i = 0; i < e->n_maps; i++) {
        show_map(t, &s.maps[i]);
        write_map(j, &s.maps[i]);
        mg_intern_release(&s.maps[i].ids);
        mg_vec_release(&s.maps[i].entries);
    }
    mg_json_end(j, ']');
    mg_events_profile(r, t, j);
    mg_arena_release(&s.arena);
}
