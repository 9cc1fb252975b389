/* lanes: from cells to figures, tables, JSON and charts.
 *
 * A slot is idle when a warp executes an instruction without that lane. Idle slots of a block are charged
 * to the innermost divergent branch around it: that of the smallest region, the blocks on a way from the
 * branch to where its two sides meet again (its immediate postdominator).
 *
 * Of a sample of launches (sample=) every figure is what all launches would have counted, with a bound
 * (base/estimate.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/estimate.h"
#include "view/chart.h"
#include "tool/lanes/lanes.h"

enum { warp = MG_LANES_WARP, bins = MG_LANES_BINS, charts = 8 };

struct told {
    uint64_t value;
    double bound; /* 0: exact; < 0: not known */
};
struct branch {
    const struct mg_result_site *s;
    uint32_t region; /* blocks */
    struct told taken, not_taken, divergent, idle;
};
struct use { /* of one kernel */
    const struct mg_result_kernel *k;
    const struct mg_result_site **site; /* of a block, NULL: none */
    const uint64_t *all; /* told of all launches: of each block warp entries by active lanes, then cells of branches */
    uint32_t *owner;     /* of a block's idle slots: branch + 1 */
    struct branch *branches;
    uint32_t n_branches;
    struct mg_member *members;
    const uint64_t **told;
    uint64_t n_members;        /* of a sample: its launches, those that were counted with what is told; 0: all were */
    struct told slots, active; /* warp instructions x 32, of these active */
    double use_bound;          /* of active / slots */
};

/* ---- figures --------------------------------------------------------------------------------------------- */

static uint64_t insts_of(const struct use *u, uint32_t block)
{
    return u->k->blocks && block < u->k->n_blocks ? u->k->blocks[block].n_insts : 0;
}

static const uint64_t *entries_of(const uint64_t *told, uint32_t block)
{
    return told + (uint64_t)block * bins;
}
static const uint64_t *branch_of(const struct use *u, const uint64_t *told, uint32_t ix)
{
    return told + (uint64_t)u->k->n_blocks * bins + (uint64_t)ix * MG_LC_COUNT;
}

static uint64_t block_entries(const uint64_t *told, uint32_t block, uint64_t *lanes)
{
    uint64_t n = 0;
    *lanes = 0;
    for (uint32_t l = 0; l < bins; l++) n += entries_of(told, block)[l], *lanes += l * entries_of(told, block)[l];
    return n;
}

/* Entries of partial warps, from the cells of a block that others may follow. */
static void add_partial(const struct mg_result_site *s, const uint64_t *cells, uint64_t *to)
{
    bool tells = s->note % MG_LN_KINDS == MG_LN_TELLS;
    for (uint32_t l = 1; l < warp; l++)
        to[l] += (uint64_t)((int64_t)(cells[s->cell + l] + (tells ? cells[s->cell + bins + l] : 0)) / l);
}

static uint64_t split_by(const struct mg_result_site *s, const uint64_t *cells)
{
    uint64_t n = 0;
    for (uint32_t l = 1; l < warp; l++) n += cells[s->cell + bins + l] / l;
    return n;
}

static bool is_split_told(const struct use *u, uint32_t x, uint32_t branch_block)
{
    return u->site[x] && u->site[x]->note == MG_LN_KINDS * branch_block + MG_LN_TELLS;
}

static const uint64_t *tell_all(const struct use *u, const uint64_t *cells, const uint64_t *threads,
                                const uint32_t *preds)
{
    const struct mg_result_kernel *k = u->k;
    uint64_t *told = mg_xcalloc((uint64_t)k->n_blocks * bins + (uint64_t)u->n_branches * MG_LC_COUNT + 1, sizeof *told);
    for (uint32_t x = 0; x < k->n_blocks; x++) {
        const struct mg_result_site *s = u->site[x];
        uint64_t *e = told + (uint64_t)x * bins, others = 0;
        uint32_t kind = s ? s->note % MG_LN_KINDS : 0, of = s ? s->note / MG_LN_KINDS : 0;
        if (!s) continue;
        if ((kind == MG_LN_SAME || kind == MG_LN_FOLLOWS) && of < k->n_blocks && u->site[of])
            add_partial(u->site[of], cells, e);
        if (kind != MG_LN_SAME) add_partial(s, cells, e);
        for (uint32_t l = 1; l < warp; l++) others += l * e[l];
        e[warp] = (threads[x] - others) / warp;
    }
    for (uint32_t i = 0; i < u->n_branches; i++) {
        const struct mg_result_site *s = u->branches[i].s;
        uint64_t *b = told + (uint64_t)k->n_blocks * bins + (uint64_t)i * MG_LC_COUNT;
        struct mg_kit_taken t;
        memcpy(b, cells + s->cell, MG_LC_COUNT * sizeof *b);
        if (mg_kit_taken(k->blocks, preds, k->n_blocks, s->block, false, &t))
            b[MG_LC_TAKEN] = mg_kit_takers(&t, threads, s->block);
        for (uint32_t e = 0; e < k->blocks[s->block].n_succs; e++) {
            uint32_t x = k->blocks[s->block].succs[e];
            if (x < k->n_blocks && is_split_told(u, x, s->block)) b[MG_LC_DIVERGENT] = split_by(u->site[x], cells);
        }
    }
    return told;
}

enum what {
    SLOTS,
    ACTIVE,
    TAKEN,
    NOT_TAKEN,
    DIVERGENT,
    BRANCH_IDLE,
    BLOCK_WARPS,
    BLOCK_THREADS
}; /* ix: branch or block */

/* Lanes of the widest warp that entered the kernel: fewer than 32 where each CTA has fewer threads. */
static uint64_t widest(const struct use *u, const uint64_t *told)
{
    for (uint32_t l = bins; u->k->n_blocks && l-- > 1;)
        if (entries_of(told, 0)[l]) return l;
    return warp;
}

static uint64_t figure(const struct use *u, const uint64_t *told, enum what what, uint32_t ix)
{
    uint64_t lanes, n, sum = 0, there = what == BRANCH_IDLE ? widest(u, told) : warp;
    if (what == TAKEN || what == DIVERGENT)
        return branch_of(u, told, ix)[what == TAKEN ? MG_LC_TAKEN : MG_LC_DIVERGENT];
    if (what == NOT_TAKEN)
        return block_entries(told, u->branches[ix].s->block, &lanes), lanes - branch_of(u, told, ix)[MG_LC_TAKEN];
    if (what >= BLOCK_WARPS) return n = block_entries(told, ix, &lanes), what == BLOCK_WARPS ? n : lanes;
    for (uint32_t x = 0; x < u->k->n_blocks; x++) {
        if (what == BRANCH_IDLE && u->owner[x] != ix + 1) continue;
        n = block_entries(told, x, &lanes);
        sum += (what == SLOTS ? n * warp : what == ACTIVE ? lanes : n * there - lanes) * insts_of(u, x);
    }
    return sum;
}

static struct told total_of(const struct use *u, enum what what, uint32_t ix)
{
    if (!u->all) return (struct told){0, 0};
    if (!u->n_members) return (struct told){figure(u, u->all, what, ix), 0};
    for (uint64_t i = 0; i < u->n_members; i++)
        if (u->told[i]) u->members[i].count = (double)figure(u, u->told[i], what, ix) / u->members[i].times;
    struct mg_estimate e = mg_estimate_total(u->members, u->n_members, mg_estimate_method(u->members, u->n_members));
    return (struct told){(uint64_t)(e.value + .5), e.bound};
}

/* Of a ratio: the bound of what is left of the upper figure when the lower one, times the ratio, is taken off. */
static double bound_of_use(const struct use *u)
{
    double ratio = mg_kit_share(u->active.value, u->slots.value);
    if (!u->n_members || !u->slots.value) return 0;
    for (uint64_t i = 0; i < u->n_members; i++)
        if (u->told[i])
            u->members[i].count =
                ((double)figure(u, u->told[i], ACTIVE, 0) - ratio * (double)figure(u, u->told[i], SLOTS, 0)) /
                u->members[i].times;
    struct mg_estimate e = mg_estimate_total(u->members, u->n_members, mg_estimate_method(u->members, u->n_members));
    return e.bound < 0 ? -1 : e.bound / (double)u->slots.value;
}

static int by_geometry(const void *a, const void *b)
{
    const struct mg_result_launch *x = *(const struct mg_result_launch *const *)a,
                                  *y = *(const struct mg_result_launch *const *)b;
    int c = memcmp(x->grid, y->grid, sizeof x->grid);
    return c ? c : memcmp(x->block, y->block, sizeof x->block);
}

/* The launches of a kernel of which some were not counted. The first was counted in any case: it stands for itself
 * alone. */
static void take_sample(struct use *u, const uint32_t *preds)
{
    const struct mg_result_kernel *k = u->k;
    const struct mg_result_launch **of = mg_xcalloc(k->n_of_launch + k->n_others + 1, sizeof *of);
    for (uint64_t i = 0; i < k->n_of_launch; i++)
        if (k->of_launch[i].complete) of[u->n_members++] = &k->of_launch[i];
    for (uint64_t i = 0; i < k->n_others; i++) of[u->n_members++] = &k->others[i];
    if (u->n_members > 1) qsort(of + 1, u->n_members - 1, sizeof *of, by_geometry); /* launches come in order */
    u->members = mg_xcalloc(u->n_members + 1, sizeof *u->members);
    u->told = mg_xcalloc(u->n_members + 1, sizeof *u->told);
    for (uint64_t i = 0; i < u->n_members; i++) {
        bool counted = of[i]->cells && of[i]->threads;
        u->members[i] = (struct mg_member){
            .stratum = i ? u->members[i - 1].stratum + (i == 1 || by_geometry(&of[i - 1], &of[i])) : 0,
            .counted = counted,
            .times = (double)of[i]->times,
            .size = 1};
        for (int d = 0; d < 3; d++) u->members[i].size *= (double)of[i]->grid[d] * of[i]->block[d];
        u->told[i] = counted ? tell_all(u, of[i]->cells, of[i]->threads, preds) : NULL;
    }
    free(of);
}

/* Blocks on a way from the branch to its join. Result: how many. */
static uint32_t mark_region(const struct mg_graph *g, const struct mg_result_site *s, uint64_t *in, uint64_t *wall)
{
    uint32_t n = 0;
    if (s->note && s->note <= g->n) mg_put(wall, (uint32_t)s->note - 1);
    mg_graph_after(g, s->block, in, wall);
    if (s->note && s->note <= g->n) mg_cut(wall, (uint32_t)s->note - 1);
    for (uint32_t b = 0; b < g->n; b++) n += mg_has(in, b);
    return n;
}

/* Who pays for a block's idle slots. */
static void find_owners(struct use *u)
{
    const struct mg_result_kernel *k = u->k;
    struct mg_arena arena = MG_ARENA_INIT;
    struct mg_graph g = mg_kit_graph(&arena, k->blocks, k->n_blocks);
    uint64_t *in = mg_arena_array(&arena, uint64_t, mg_bits_words(g.n) + 1),
             *wall = mg_arena_array(&arena, uint64_t, mg_bits_words(g.n) + 1);
    for (uint32_t i = 0; i < u->n_branches; i++) {
        struct branch *b = &u->branches[i];
        b->region = mark_region(&g, b->s, in, wall);
        for (uint32_t x = 0; branch_of(u, u->all, i)[MG_LC_DIVERGENT] && x < k->n_blocks; x++)
            if (mg_has(in, x) && (!u->owner[x] || b->region < u->branches[u->owner[x] - 1].region)) u->owner[x] = i + 1;
    }
    mg_arena_release(&arena);
}

static void use_init(struct use *u, const struct mg_result_kernel *k)
{
    memset(u, 0, sizeof *u);
    u->k = k;
    u->site = mg_xcalloc(k->n_blocks + 1, sizeof *u->site);
    u->owner = mg_xcalloc(k->n_blocks + 1, sizeof *u->owner);
    u->branches = mg_xcalloc(k->n_sites + 1, sizeof *u->branches);
    for (uint32_t i = 0; i < k->n_sites; i++) {
        const struct mg_result_site *s = &k->sites[i];
        if (s->block >= k->n_blocks) continue;
        if (s->kind == MG_SITE_BLOCK) u->site[s->block] = s;
        if (s->kind == MG_SITE_INST && s->n_cells == MG_LC_COUNT) u->branches[u->n_branches++].s = s;
    }
    if (!k->blocks || !k->threads) { /* blocks of some threads only: not known */
        memset(u->site, 0, (k->n_blocks + 1) * sizeof *u->site);
        u->n_branches = 0;
        return;
    }
    uint32_t *preds = mg_kit_preds(k->blocks, k->n_blocks);
    u->all = tell_all(u, k->cells, k->threads, preds);
    find_owners(u);
    if (k->n_others) take_sample(u, preds);
    free(preds);
    for (uint32_t i = 0; i < u->n_branches; i++) {
        struct branch *b = &u->branches[i];
        b->taken = total_of(u, TAKEN, i);
        b->not_taken = total_of(u, NOT_TAKEN, i);
        b->divergent = total_of(u, DIVERGENT, i);
        b->idle = total_of(u, BRANCH_IDLE, i);
    }
    u->slots = total_of(u, SLOTS, 0);
    u->active = total_of(u, ACTIVE, 0);
    u->use_bound = bound_of_use(u);
}

static void use_release(struct use *u)
{
    free(u->site);
    free(u->owner);
    free(u->branches);
    free((void *)(uintptr_t)u->all);
    for (uint64_t i = 0; i < u->n_members; i++) free((void *)(uintptr_t)u->told[i]);
    free(u->members);
    free(u->told);
}

/* ---- JSON -------------------------------------------------------------------------------------------------- */

static void key_told(struct mg_json *j, const char *key, struct told v, bool sample)
{
    if (!sample) {
        mg_json_key_u64(j, key, v.value);
        return;
    }
    mg_json_key(j, key);
    mg_json_obj(j);
    mg_json_key_u64(j, "estimate", v.value);
    mg_json_key_u64_if(j, "bound", v.bound >= 0, v.bound >= 0 ? (uint64_t)ceil(v.bound) : 0);
    mg_json_end(j, '}');
}

static void sample_json(const struct use *u, struct mg_json *j)
{
    mg_json_key(j, "sample");
    if (!u->n_members) {
        mg_json_null(j);
        return;
    }
    double launches = 0, counted = 0;
    for (uint64_t i = 0; i < u->n_members; i++) {
        launches += u->members[i].times;
        counted += u->members[i].counted ? u->members[i].times : 0;
    }
    mg_json_obj(j);
    mg_json_key_u64(j, "launches", (uint64_t)launches);
    mg_json_key_u64(j, "counted", (uint64_t)counted);
    mg_json_key_str(j, "method",
                    mg_estimate_method(u->members, u->n_members) == MG_SAMPLE_GEOMETRY ? "geometry" : "threads");
    mg_json_key_f64_if(j, "lane_use_bound", u->use_bound >= 0, u->use_bound);
    mg_json_end(j, '}');
}

/* Warp executions of a guarded instruction by lanes whose guard was true; those of its block that are left had none. */
static bool guard_lanes(const struct use *u, const struct mg_result_site *s, uint64_t to[bins], uint64_t *here)
{
    uint64_t with = 0, entries;
    if (s->kind != MG_SITE_INST || s->n_cells != bins || !u->all || s->block >= u->k->n_blocks) return false;
    entries = block_entries(u->all, s->block, here);
    for (uint32_t l = 1; l < bins; l++) with += to[l] = u->k->cells[s->cell + l] / l;
    to[0] = entries - MG_MIN(with, entries);
    return true;
}

static void guards_json(const struct use *u, struct mg_json *j)
{
    uint64_t lanes[bins], here;
    mg_json_key(j, "guards");
    mg_json_arr(j);
    for (uint32_t i = 0; i < u->k->n_sites; i++) {
        if (!guard_lanes(u, &u->k->sites[i], lanes, &here)) continue;
        mg_json_obj(j);
        mg_kit_site_json(j, u->k, &u->k->sites[i]);
        mg_json_key(j, "lanes");
        mg_json_arr(j);
        for (uint32_t l = 0; l < bins; l++) mg_json_u64(j, lanes[l]);
        mg_json_end(j, ']');
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static struct told idle_of(const struct use *u)
{
    bool bounded = u->slots.bound >= 0 && u->active.bound >= 0;
    return (struct told){u->slots.value - MG_MIN(u->active.value, u->slots.value),
                         bounded ? u->slots.bound + u->active.bound : -1};
}

static void use_json(const struct use *u, struct mg_json *j)
{
    bool sample = u->n_members > 0;
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", u->k->id);
    mg_json_key_f64_if(j, "lane_use", u->slots.value, mg_kit_share(u->active.value, u->slots.value));
    key_told(j, "slots", u->slots, sample);
    key_told(j, "slots_idle", idle_of(u), sample);
    sample_json(u, j);
    mg_json_key(j, "blocks");
    mg_json_arr(j);
    for (uint32_t x = 0; x < u->k->n_blocks; x++) {
        if (!u->site[x]) continue;
        mg_json_obj(j);
        mg_json_key_u64(j, "id", x);
        mg_json_key(j, "lanes");
        mg_json_arr(j);
        for (uint32_t l = 0; l < bins; l++) mg_json_u64(j, entries_of(u->all, x)[l]);
        mg_json_end(j, ']');
        if (sample) {
            key_told(j, "warp_entries", total_of(u, BLOCK_WARPS, x), true);
            key_told(j, "thread_entries", total_of(u, BLOCK_THREADS, x), true);
        }
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key(j, "branches");
    mg_json_arr(j);
    for (uint32_t i = 0; i < u->n_branches; i++) {
        const struct branch *b = &u->branches[i];
        mg_json_obj(j);
        mg_kit_site_json(j, u->k, b->s);
        key_told(j, "taken", b->taken, sample);
        key_told(j, "not_taken", b->not_taken, sample);
        key_told(j, "divergent", b->divergent, sample);
        key_told(j, "idle_slots", b->idle, sample);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    guards_json(u, j);
    mg_json_end(j, '}');
}

/* ---- tables, pictures ----------------------------------------------------------------------------------------- */

static void bound_cell(struct mg_table *t, const struct told *v, bool sampled)
{
    if (!sampled) return;
    if (v->bound >= 0)
        mg_table_u64(t, (uint64_t)ceil(v->bound));
    else
        mg_table_null(t);
}

static void branch_table(struct mg_table *t, const struct use *u, uint32_t n, bool sampled)
{
    mg_table_begin(
        t, "branches",
        "branches by the lane slots they leave idle; taken: threads that jump in the PTX, often past the if");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "idle slots", MG_COL_COUNT, NULL);
    if (sampled) mg_table_column(t, "+-", MG_COL_COUNT, NULL);
    mg_table_column(t, "of kernel", MG_COL_PERCENT, NULL);
    mg_table_column(t, "divergent", MG_COL_COUNT, "warp executions");
    mg_table_column(t, "taken", MG_COL_COUNT, "threads");
    mg_table_column(t, "not taken", MG_COL_COUNT, "threads");
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < u[k].n_branches; i++) {
            const struct branch *b = &u[k].branches[i];
            mg_table_row(t);
            mg_table_place(t, b->s);
            mg_table_u64(t, b->idle.value);
            bound_cell(t, &b->idle, sampled);
            mg_table_f64(t, mg_kit_percent(b->idle.value, u[k].slots.value));
            mg_table_u64(t, b->divergent.value);
            mg_table_u64(t, b->taken.value);
            mg_table_u64(t, b->not_taken.value);
            mg_table_text(t, u[k].k->demangled);
        }
    mg_table_sort(t, 1);
}

static void sample_notes(struct mg_table *t, const struct use *u, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if (!u[k].n_members) continue;
        if (u[k].use_bound < 0)
            mg_table_note(t, "%s: estimated from %llu of %llu launches; too few for a bound", u[k].k->demangled,
                          (unsigned long long)u[k].k->counted, (unsigned long long)u[k].k->launches);
        else
            mg_table_note(t, "%s: estimated from %llu of %llu launches; lane use %.2f +- %.2f %% (95 %%)",
                          u[k].k->demangled, (unsigned long long)u[k].k->counted, (unsigned long long)u[k].k->launches,
                          mg_kit_percent(u[k].active.value, u[k].slots.value), 100 * u[k].use_bound);
    }
}

static struct mg_result_site place_of_block(const struct mg_tool_result *r, const struct mg_result_kernel *k,
                                            uint32_t block)
{
    const struct mg_site_block *b = &k->blocks[block];
    struct mg_result_place at =
        r->line_of_block ? r->line_of_block(r->lines, k, block) : (struct mg_result_place){b->file, b->line};
    return (struct mg_result_site){.file = at.file, .line = at.line, .ptx_line = b->ptx_line};
}

static void block_table(struct mg_table *t, const struct mg_tool_result *r, const struct use *u, uint32_t n,
                        bool sampled)
{
    mg_table_begin(t, "lanes", "lane use by block: of each warp instruction's 32 lanes, how many were active");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "idle slots", MG_COL_COUNT, NULL);
    mg_table_column(t, "lane use", MG_COL_PERCENT, NULL);
    mg_table_column(t, "warp entries", MG_COL_COUNT, NULL);
    if (sampled) mg_table_column(t, "+-", MG_COL_COUNT, NULL);
    mg_table_column(t, "thread entries", MG_COL_COUNT, NULL);
    mg_table_column(t, "block", MG_COL_COUNT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t x = 0; x < u[k].k->n_blocks && u[k].k->blocks; x++) {
            const struct mg_site_block *b = &u[k].k->blocks[x];
            struct mg_result_site place = place_of_block(r, u[k].k, x);
            struct told entries = total_of(&u[k], BLOCK_WARPS, x), lanes = total_of(&u[k], BLOCK_THREADS, x);
            if (!entries.value) continue;
            mg_table_row(t);
            mg_table_place(t, &place);
            mg_table_u64(t, (entries.value * warp - MG_MIN(lanes.value, entries.value * warp)) * b->n_insts);
            mg_table_f64(t, mg_kit_percent(lanes.value, entries.value * warp));
            mg_table_u64(t, entries.value);
            bound_cell(t, &entries, sampled);
            mg_table_u64(t, lanes.value);
            mg_table_u64(t, x);
            mg_table_text(t, u[k].k->demangled);
        }
    mg_table_sort(t, 1);
}

static void guard_table(struct mg_table *t, const struct use *u, uint32_t n)
{
    mg_table_begin(
        t, "guards",
        "lanes whose guard is true, of those that are there: the first instruction of a block under each guard");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "lanes", MG_COL_COUNT, NULL);
    mg_table_column(t, "true", MG_COL_PERCENT, NULL);
    mg_table_column(t, "executions", MG_COL_COUNT, "warps");
    mg_table_column(t, "none true", MG_COL_COUNT, "warps");
    mg_table_column(t, "instruction", MG_COL_TEXT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < u[k].k->n_sites; i++) {
            const struct mg_result_site *s = &u[k].k->sites[i];
            uint64_t lanes[bins], here, sum = 0, warps = 0;
            if (!guard_lanes(&u[k], s, lanes, &here) || !here) continue;
            for (uint32_t l = 0; l < bins; l++) sum += l * lanes[l], warps += lanes[l];
            mg_table_row(t);
            mg_table_place(t, s);
            mg_table_u64(t, here);
            mg_table_f64(t, mg_kit_percent(sum, here));
            mg_table_u64(t, warps);
            mg_table_u64(t, lanes[0]);
            mg_table_text(t, s->op);
            mg_table_text(t, u[k].k->demangled);
        }
    mg_table_sort(t, 1);
}

static void lane_chart(struct mg_table *t, const struct use *u, uint32_t ix)
{
    double v[bins] = {0};
    struct mg_buf svg = MG_BUF_INIT, title = MG_BUF_INIT;
    for (uint32_t x = 0; x < u->k->n_blocks; x++)
        for (uint32_t l = 0; l < bins && u->site[x]; l++) v[l] += (double)(entries_of(u->all, x)[l] * insts_of(u, x));
    mg_kit_kernel_name(u->k, 60, &title);
    mg_buf_printf(&title, ": warp instructions by active lanes, %.1f %% of slots used",
                  mg_kit_percent(u->active.value, u->slots.value));
    if (u->n_members) mg_buf_adds(&title, " (of a sample)");
    mg_chart_distribution(&svg, title.at, "active lanes", "warp instructions", v, bins, 0, NULL);
    mg_kit_chart(t, "lanes", ix, &title, &svg);
}

void mg_lanes_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    struct use *u = mg_xcalloc(r->n_kernels + 1, sizeof *u);
    const struct mg_lanes_opts *c = conf;
    bool sampled = c->sample > 1;
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        use_init(&u[k], &r->kernels[k]);
        use_json(&u[k], j);
    }
    mg_json_end(j, ']');
    branch_table(t, u, r->n_kernels, sampled);
    sample_notes(t, u, r->n_kernels);
    block_table(t, r, u, r->n_kernels, sampled);
    if (c->guards) guard_table(t, u, r->n_kernels);
    for (uint32_t k = 0; k < r->n_kernels; k++)
        if (k < charts && u[k].slots.value) lane_chart(t, &u[k], k);
    for (uint32_t k = 0; k < r->n_kernels; k++) use_release(&u[k]);
    free(u);
}
