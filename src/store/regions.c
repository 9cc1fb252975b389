/* Reading what tools counted: uses, regions with their sites, merged cells, entries of tables, cells of
 * single launches. Regions of several processes are one while tool, kernel and shape agree: their cells
 * are merged by rule. Everything is checked before it is believed: a damaged database never gives a
 * site outside its cells or its kernel's blocks. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "store/cells.h"
#include "store/read.h"

#define MAX_CELLS (1u << 27)
#define SLACK     4096 /* zeros behind cells and sites: a tool that trusts a damaged profile reads those */

static uint64_t u64_at(sqlite3_stmt *st, int col)
{
    return (uint64_t)sqlite3_column_int64(st, col);
}
static uint32_t u32_at(sqlite3_stmt *st, int col)
{
    return (uint32_t)sqlite3_column_int64(st, col);
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static enum mg_err read_use(struct mg_one_db *o, sqlite3_stmt *st)
{
    struct mg_reading *r = o->r;
    if (sqlite3_column_int64(st, 0) != (int64_t)o->uses.n) return mg_damaged(o, "tool ids are not dense");
    struct mg_puse u = {or_empty(mg_text_at(o, st, 1)), or_empty(mg_text_at(o, st, 2)), mg_text_at(o, st, 3)};
    uint32_t ix = 0;
    while (ix < r->uses.n &&
           (r->uses.at[ix].name != u.name || r->uses.at[ix].args != u.args || r->uses.at[ix].path != u.path))
        ix++; /* interned */
    if (ix == r->uses.n) *mg_vec_push(&r->uses) = u;
    *mg_vec_push(&o->uses) = ix;
    return MG_ERR_OK;
}

/* Bits of the process' tools -> bits of the profile's. */
static void map_tools(struct mg_one_db *o)
{
    struct mg_reading *r = o->r;
    for (uint64_t i = r->n_launches; i-- && r->launches[i].process == o->process;) {
        uint64_t from = r->launches[i].tools, to = 0;
        for (uint32_t u = 0; u < o->uses.n && u < 63; u++)
            if (from >> u & 1 && o->uses.at[u] < 63) to |= 1ull << o->uses.at[u];
        r->launches[i].tools = to;
    }
}

/* ---- regions ------------------------------------------------------------------------------------------ */

static uint64_t key_of(int64_t use, int64_t kernel)
{
    return (uint64_t)use << 32 | (uint32_t)kernel;
}

static struct mg_pregion *find_region(struct mg_one_db *o, sqlite3_stmt *st, int col)
{
    uint64_t ix;
    int64_t use = sqlite3_column_int64(st, col), kernel = sqlite3_column_int64(st, col + 1);
    if (use < 0 || use >= o->uses.n || kernel < 0 || kernel >= o->kernels.n ||
        !mg_map_get(&o->regions, key_of(use, kernel), &ix))
        return NULL;
    return &o->r->regions.at[ix];
}

static bool parse_rules(sqlite3_stmt *st, int col, uint8_t *rules, uint32_t n)
{
    const uint8_t *p = sqlite3_column_blob(st, col), *end = p ? p + sqlite3_column_bytes(st, col) : NULL;
    uint32_t at = 0;
    while (p < end) {
        uint64_t run;
        if (!(p = mg_leb_read(p, end, &run)) || p == end || *p > MG_MERGE_OR || run > n - at) return false;
        memset(rules + at, *p++, run);
        at += (uint32_t)run;
    }
    return at == n;
}

static bool parse_tables(struct mg_one_db *o, sqlite3_stmt *st, int col, struct mg_pregion *g)
{
    const uint8_t *p = sqlite3_column_blob(st, col), *end = p ? p + sqlite3_column_bytes(st, col) : NULL;
    uint32_t room = (uint32_t)sqlite3_column_bytes(st, col) / 4;
    g->tables = mg_arena_array(&o->r->p->arena, struct mg_ptable, room + 1);
    while (p < end) {
        uint64_t v[4];
        for (int i = 0; i < 4; i++)
            if (!(p = mg_leb_read(p, end, &v[i]))) return false;
        if (v[0] >= g->n_sites || !v[1] || v[1] > 64 || v[2] > 4096 || v[3] > MG_MERGE_OR) return false;
        g->tables[g->n_tables++] =
            (struct mg_ptable){(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2], (enum mg_merge)v[3], NULL, 0, 0};
    }
    return true;
}

static bool same_shape(const struct mg_pregion *a, const struct mg_pregion *b)
{
    bool same = a->n_sites == b->n_sites && a->n_cells == b->n_cells && a->n_tables == b->n_tables &&
                !memcmp(a->rules, b->rules, a->n_cells) && !a->reason == !b->reason;
    for (uint32_t t = 0; same && t < a->n_tables; t++)
        same = a->tables[t].site == b->tables[t].site && a->tables[t].n_keys == b->tables[t].n_keys &&
               a->tables[t].n_cells == b->tables[t].n_cells;
    return same;
}

static enum mg_err read_region(struct mg_one_db *o, sqlite3_stmt *st)
{
    int64_t use = sqlite3_column_int64(st, 0), kernel = sqlite3_column_int64(st, 1),
            sites = sqlite3_column_int64(st, 3), cells = sqlite3_column_int64(st, 4);
    struct mg_arena *arena = &o->r->p->arena;
    if (use < 0 || use >= o->uses.n || kernel < 0 || kernel >= o->kernels.n)
        return mg_damaged(o, "a tool's region of no tool or kernel");
    if (sites < 0 || cells < 0 || sites > MAX_CELLS || cells > MAX_CELLS)
        return mg_damaged(o, "a tool's region is too large");
    if (sites != sqlite3_column_int64(st, 7)) return mg_damaged(o, "a tool's sites are missing");
    struct mg_pregion g = {.use = o->uses.at[use],
                           .kernel = o->kernels.at[kernel],
                           .reason = mg_text_at(o, st, 2),
                           .n_sites = (uint32_t)sites,
                           .n_cells = (uint32_t)cells};
    uint8_t *rules = mg_arena_zalloc(arena, (size_t)cells + 1);
    if (!parse_rules(st, 5, rules, g.n_cells)) return mg_damaged(o, "rules of a tool's cells");
    g.rules = rules;
    struct mg_result_site *none = mg_arena_array(arena, struct mg_result_site, g.n_sites + 1);
    for (uint32_t i = 0; i <= g.n_sites; i++) none[i].function = none[i].op = "";
    g.sites = none;
    if (!parse_tables(o, st, 6, &g)) return mg_damaged(o, "a tool's tables");
    uint32_t ix = 0;
    while (ix < o->r->regions.n && (o->r->regions.at[ix].use != g.use || o->r->regions.at[ix].kernel != g.kernel ||
                                    !same_shape(&o->r->regions.at[ix], &g)))
        ix++;
    if (ix == o->r->regions.n) {
        g.cells = mg_arena_array(arena, uint64_t, g.n_cells + SLACK);
        *mg_vec_push(&o->r->regions) = g;
    }
    mg_map_set(&o->regions, key_of(use, kernel), ix);
    return MG_ERR_OK;
}

static enum mg_err read_site(struct mg_one_db *o, sqlite3_stmt *st)
{
    struct mg_pregion *g = find_region(o, st, 0);
    int64_t id = sqlite3_column_int64(st, 2), kind = sqlite3_column_int64(st, 3), block = sqlite3_column_int64(st, 5);
    int64_t cell = sqlite3_column_int64(st, 13), n = sqlite3_column_int64(st, 14);
    if (!g || id < 0 || id >= g->n_sites) return mg_damaged(o, "a tool's site of no region");
    uint32_t n_blocks = o->r->kernels.at[g->kernel].n_blocks;
    if (kind < 0 || kind > MG_SITE_EDGE || (kind != MG_SITE_KERNEL && (block < 0 || block >= n_blocks)))
        return mg_damaged(o, "what a tool's site is");
    if (cell < 0 || n < 0 || n > g->n_cells || cell > (int64_t)g->n_cells - n)
        return mg_damaged(o, "the cells of a tool's site");
    struct mg_result_site *sites = (struct mg_result_site *)(uintptr_t)g->sites; /* of our arena */
    sites[id] = (struct mg_result_site){.kind = (enum mg_site_kind)kind,
                                        .note = u32_at(st, 4),
                                        .block = (uint32_t)block,
                                        .succ = u32_at(st, 6),
                                        .ptx_line = u32_at(st, 7),
                                        .function = or_empty(mg_text_at(o, st, 8)),
                                        .op = or_empty(mg_text_at(o, st, 9)),
                                        .file = mg_text_at(o, st, 10),
                                        .line = u32_at(st, 11),
                                        .inlined = mg_text_at(o, st, 12),
                                        .cell = (uint32_t)cell,
                                        .n_cells = (uint32_t)n};
    return MG_ERR_OK;
}

static enum mg_err read_cells(struct mg_one_db *o, sqlite3_stmt *st)
{
    struct mg_pregion *g = find_region(o, st, 0);
    if (!g) return mg_damaged(o, "a tool's cells of no region");
    struct mg_arena_mark mark = mg_arena_mark(&o->r->p->arena);
    uint64_t *v = mg_arena_array(&o->r->p->arena, uint64_t, g->n_cells + 1);
    bool ok = mg_counts_decode(sqlite3_column_blob(st, 3), (size_t)sqlite3_column_bytes(st, 3), v, g->n_cells);
    for (uint32_t i = 0; ok && i < g->n_cells; i++)
        g->cells[i] = mg_merged((enum mg_merge)g->rules[i], g->cells[i], v[i]);
    g->counted += u64_at(st, 2);
    mg_arena_rewind(&o->r->p->arena, mark);
    return ok ? MG_ERR_OK : mg_damaged(o, "a tool's cells");
}

static enum mg_err read_entries(struct mg_one_db *o, sqlite3_stmt *st)
{
    struct mg_pregion *g = find_region(o, st, 0);
    int64_t at = sqlite3_column_int64(st, 2), n = sqlite3_column_int64(st, 3);
    if (!g || at < 0 || at >= g->n_tables) return mg_damaged(o, "a table of no tool");
    struct mg_ptable *t = &g->tables[at];
    uint32_t width = t->n_keys + t->n_cells;
    const uint8_t *p = sqlite3_column_blob(st, 5), *end = p ? p + sqlite3_column_bytes(st, 5) : NULL;
    if (n < 0 || n > sqlite3_column_bytes(st, 5)) return mg_damaged(o, "a tool's table");
    uint64_t *words = (uint64_t *)(uintptr_t)t->words;
    t->words = words = mg_xrealloc(words, ((t->n + (uint64_t)n) * width + 1) * sizeof *words);
    for (uint64_t i = t->n * width; i < (t->n + (uint64_t)n) * width; i++)
        if (!(p = mg_leb_read(p, end, &words[i]))) return mg_damaged(o, "a tool's table");
    t->n += (uint64_t)n;
    t->lost += u64_at(st, 4);
    return p == end ? MG_ERR_OK : mg_damaged(o, "a tool's table");
}

static enum mg_err read_launch_cells(struct mg_one_db *o, sqlite3_stmt *st)
{
    uint64_t launch, ix;
    int64_t use = sqlite3_column_int64(st, 1), local = sqlite3_column_int64(st, 3);
    if (!mg_map_get(&o->launches, u64_at(st, 0), &launch)) return MG_ERR_OK; /* dropped since */
    if (use < 0 || use >= o->uses.n || !mg_map_get(&o->regions, key_of(use, local), &ix))
        return mg_damaged(o, "a launch's cells of no region");
    uint64_t *v = mg_arena_array(&o->r->p->arena, uint64_t, o->r->regions.at[ix].n_cells + SLACK);
    if (!mg_counts_decode(sqlite3_column_blob(st, 2), (size_t)sqlite3_column_bytes(st, 2), v,
                          o->r->regions.at[ix].n_cells))
        return mg_damaged(o, "a launch's cells");
    *mg_vec_push(&o->r->launch_cells) = (struct mg_plaunch_cells){launch, (uint32_t)ix, v};
    return MG_ERR_OK;
}

enum mg_err mg_read_regions(struct mg_one_db *o)
{
    enum mg_err err = mg_each_row(o, "id, name, args, path", "FROM use ORDER BY id", read_use);
    if (!err) map_tools(o);
    if (!err)
        err = mg_each_row(
            o,
            "use, kernel, reason, n_sites, n_cells, rules, tables, (SELECT count(*) FROM site s WHERE s.use=g.use AND s.kernel=g.kernel)",
            "FROM region g ORDER BY use, kernel", read_region);
    if (!err)
        err = mg_each_row(
            o, "use, kernel, id, kind, note, block, succ, ptx_line, function, op, file, line, inlined, cell, n_cells",
            "FROM site", read_site);
    if (!err) err = mg_each_row(o, "use, kernel, counted, cells", "FROM cells", read_cells);
    if (!err) err = mg_each_row(o, "use, kernel, tab, n, lost, entries", "FROM entries", read_entries);
    if (!err)
        err = mg_each_row(o, "c.launch, c.use, c.cells, l.kernel",
                          "FROM launch_cells c JOIN launch l ON l.id=c.launch ORDER BY c.launch, c.use",
                          read_launch_cells);
    return err;
}

/* ---- order ------------------------------------------------------------------------------------------------ */

static int by_keys(const void *a, const void *b, void *n_keys)
{
    const uint64_t *x = a, *y = b;
    for (uint32_t i = 0; i < *(const uint32_t *)n_keys; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Sorted, and equal keys of several processes made one. */
static void settle_table(struct mg_ptable *t)
{
    uint32_t width = t->n_keys + t->n_cells;
    uint64_t *w = (uint64_t *)(uintptr_t)t->words, n = 0;
    if (t->n) qsort_r(w, t->n, width * sizeof *w, by_keys, &t->n_keys);
    for (uint64_t i = 0; i < t->n; i++) {
        uint64_t *from = w + i * width, *to = w + (n ? n - 1 : 0) * width;
        if (n && !memcmp(from, to, t->n_keys * sizeof *w)) {
            for (uint32_t c = t->n_keys; c < width; c++) to[c] = mg_merged(t->rule, to[c], from[c]);
            continue;
        }
        memmove(w + n++ * width, from, width * sizeof *w);
    }
    t->n = n;
}

struct placed {
    struct mg_pregion g;
    uint32_t from;
};

static int by_use(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->g.use != y->g.use) return x->g.use < y->g.use ? -1 : 1;
    if (x->g.kernel != y->g.kernel) return x->g.kernel < y->g.kernel ? -1 : 1;
    return x->from < y->from ? -1 : 1;
}

void mg_regions_done(struct mg_reading *r)
{
    uint32_t n = r->regions.n, *moved = mg_xcalloc(n + 1, sizeof *moved);
    struct placed *sorted = mg_xcalloc(n + 1, sizeof *sorted);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t t = 0; t < r->regions.at[i].n_tables; t++) settle_table(&r->regions.at[i].tables[t]);
        sorted[i] = (struct placed){r->regions.at[i], i};
    }
    qsort(sorted, n, sizeof *sorted, by_use);
    for (uint32_t i = 0; i < n; i++) {
        r->regions.at[i] = sorted[i].g;
        moved[sorted[i].from] = i;
    }
    for (uint32_t i = 0; i < r->launch_cells.n; i++) r->launch_cells.at[i].region = moved[r->launch_cells.at[i].region];
    free(sorted);
    free(moved);
}
