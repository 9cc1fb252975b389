/* Runs tools over a twin, each a pass: first all look at the application's code, then the block counter
 * inserts its counters, then each tool its code. What they reserved becomes the layout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patch/priv.h"
#include "tool/instrument.h"

enum { REGION_BYTES = 128 << 10 /* for copies of a tool's cells */, LINE_WORDS = 16 };

struct run { /* of one twin */
    struct mg_patches all;
    struct mg_patch *patches;
    uint32_t n;                           /* one for each use */
    const struct mg_counter_opts *counts; /* NULL: blocks are not counted */
    struct mg_counter_opts asked;         /* those of no tool, where one asks for counts alone */
    struct mg_region *counter_region;     /* of the tool whose these are; NULL: of none */
};

/* ---- sites ------------------------------------------------------------------------------------------ */

/* node -> .loc in force there, over the functions of the kernel. */
static mg_id *find_locs(const struct mg_patches *s)
{
    mg_id *locs = mg_xcalloc(s->app->nodes.n, sizeof *locs);
    for (uint32_t i = 0; i < s->sites->n_funcs; i++) {
        mg_id now = 0;
        MG_EACH_NODE(s->app, &s->app->funcs.at[s->sites->funcs[i]], id)
        {
            if (s->app->nodes.at[id].kind == MG_NODE_loc) now = s->app->nodes.at[id].ref;
            locs[id] = now;
        }
    }
    return locs;
}

static void add_base_name(struct mg_buf *b, const struct mg_module *m, uint32_t file, uint32_t line)
{
    const char *path = mg_module_path(m, file), *slash = path ? strrchr(path, '/') : NULL;
    mg_buf_printf(b, "%s%s:%u", b->n ? " <- " : "", path ? slash ? slash + 1 : path : "?", (unsigned)line);
}

/* The calls through which the place was inlined, innermost first. A place that was inlined itself has a
 * .loc of its own, with the same file, line and column. */
static const char *inlined_at(struct mg_arena *a, const struct mg_module *m, const struct mg_loc *loc)
{
    struct mg_buf b = MG_BUF_INIT;
    for (unsigned depth = 0; loc && loc->has_inlined && depth < 16; depth++) {
        add_base_name(&b, m, loc->inl_file, loc->inl_line);
        const struct mg_loc *outer = NULL;
        for (mg_id i = 1; i < m->locs.n && !outer; i++) {
            const struct mg_loc *o = &m->locs.at[i];
            if (o != loc && o->has_inlined && o->file == loc->inl_file && o->line == loc->inl_line &&
                o->col == loc->inl_col)
                outer = o;
        }
        loc = outer;
    }
    const char *text = b.n ? mg_arena_strndup(a, b.at, b.n) : NULL;
    mg_buf_release(&b);
    return text;
}

static void describe(struct mg_patch *p, uint32_t i, const mg_id *locs, struct mg_arena *a)
{
    const struct mg_patches *all = p->all;
    const struct mg_module *m = all->app;
    struct mg_layout_site *s = &p->sites.at[i];
    if (s->kind == MG_SITE_KERNEL) {
        s->function = mg_arena_strndup(a, all->sites->kernel, strlen(all->sites->kernel));
        return;
    }
    const struct mg_site_block *b = &all->sites->blocks[s->block];
    const struct mg_block *k = &all->sites->cfgs[b->func_ix]->blocks[b->block_ix];
    mg_id node = p->site_nodes.at[i];
    const char *before = i ? p->sites.at[i - 1].function : NULL; /* sites of one function have one name */
    s->function =
        before && !strcmp(before, b->function) ? before : mg_arena_strndup(a, b->function, strlen(b->function));
    s->ptx_line = m->nodes.at[node ? node : k->first].line;
    if (node && !*s->op) {
        const char *op = mg_name(m, mg_node_form(m, &m->nodes.at[node])->text);
        s->op = mg_arena_strndup(a, op, strlen(op));
    }
    mg_id loc_id = node ? locs[node] : k->loc;
    const struct mg_loc *loc = loc_id ? &m->locs.at[loc_id] : NULL;
    const char *path = loc ? mg_module_path(m, loc->file) : NULL;
    if (!path) return;
    s->file = mg_arena_strndup(a, path, strlen(path));
    s->line = loc->line;
    s->inlined = inlined_at(a, m, loc);
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t n)
{
    return (n + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS;
}

static void make_region(struct run *x, struct mg_patch *p)
{
    struct mg_layout *l = x->all.layout;
    struct mg_region *r = p->region;
    mg_id *locs = p->sites.n ? find_locs(&x->all) : NULL;
    for (uint32_t i = 0; i < p->sites.n; i++) describe(p, i, locs, &l->arena);
    free(locs);
    r->sites = mg_arena_copy(&l->arena, p->sites.at, p->sites.n * sizeof *r->sites);
    r->n_sites = p->sites.n;
    r->rules = mg_arena_copy(&l->arena, p->rules.at, p->rules.n);
    r->n_cells = p->rules.n;
    mg_sums_place(p);
    uint32_t words = r->n_cells + r->n_sums;
    r->copy_words = (uint32_t)round_up(words);
    r->n_copies = 1;
    while (words && !p->one_copy && r->n_copies * 2 <= x->all.o->max_copies &&
           r->n_copies * 2 * r->copy_words * 8ull <= REGION_BYTES)
        r->n_copies *= 2;
    r->at = round_up(l->has_blocks ? mg_counters_words(&l->blocks, NULL) : 0) + l->n_region_words;
    r->n_words = words ? (uint64_t)r->n_copies * r->copy_words : 0;
    r->channel_widths = mg_arena_copy(&l->arena, p->widths.at, p->widths.n);
    r->n_channel_widths = p->widths.n;
    r->record_types = mg_arena_copy(&l->arena, p->record_types.at, p->record_types.n * sizeof *r->record_types);
    r->n_record_types = p->record_types.n;
    r->tables = mg_arena_copy(&l->arena, p->tables.at, p->tables.n * sizeof *r->tables);
    r->n_tables = p->tables.n;
    for (uint32_t i = 0; i < r->n_tables; i++) {
        struct mg_layout_table *t = &r->tables[i];
        t->at = r->n_words;
        r->n_words = round_up(r->n_words + 1 + (uint64_t)t->n_entries * (1 + t->n_keys + t->n_cells));
    }
    r->list_at = r->n_words;
    r->n_words = round_up(r->n_words + r->n_list);
    l->n_region_words += r->n_words;
}

/* ---- one tool --------------------------------------------------------------------------------------------- */

static void give_up(struct run *x, struct mg_region *r, struct mg_diag *d, enum mg_err err)
{
    const char *why = mg_diag_first(d, err);
    if (!r->reason) r->reason = mg_arena_strndup(&x->all.layout->arena, why, strlen(why));
}

static void begin_patch(struct run *x, struct mg_patch *p, const struct mg_tool_use *use, struct mg_region *r)
{
    *p = (struct mg_patch){.all = &x->all, .tool = use->tool, .conf = use->conf, .region = r};
    p->own = mg_arena_array(&p->scratch, struct mg_patch_own, x->all.sites->n_funcs + 1);
    p->in_analyze = true;
    enum mg_err err = p->tool->analyze ? p->tool->analyze(p->conf, p, &p->d) : MG_ERR_OK;
    p->in_analyze = false;
    if (err || p->err) give_up(x, r, &p->d, err ? err : p->err);
}

static void release_patch(struct mg_patch *p)
{
    for (uint32_t i = 0; i < p->spots.n; i++) {
        mg_vec_release(&p->spots.at[i]->items);
        mg_vec_release(&p->spots.at[i]->known);
    }
    mg_vec_release(&p->spots);
    mg_called_release(p);
    mg_vec_release(&p->rules);
    mg_vec_release(&p->sites);
    mg_vec_release(&p->site_nodes);
    mg_vec_release(&p->tables);
    mg_vec_release(&p->widths);
    mg_vec_release(&p->record_types);
    mg_vec_release(&p->sums);
    mg_vec_release(&p->shares);
    mg_vec_release(&p->strips);
    mg_vec_release(&p->skips);
    mg_vec_release(&p->near.cells);
    mg_map_release(&p->near.word_of);
    mg_map_release(&p->spot_of);
    mg_diag_release(&p->d);
    mg_arena_release(&p->scratch);
}

struct step {
    struct run *x;
    struct mg_patch *p; /* NULL: the block counter */
};

static enum mg_err run_tool(struct mg_pass_ctx *c, void *user, mg_id func, uint32_t block)
{
    const struct step *s = user;
    struct mg_patch *p = s->p;
    (void)c, (void)func, (void)block;
    const struct mg_counter_layout *counts = &s->x->all.layout->blocks;
    if (p->region->reason) return MG_ERR_OK;
    if (counts->n_counters && !counts->n_copies)
        mg_patch_refuse(p, MG_ERR_UNSUPPORTED, "counters=thread of tool blocks counts alone");
    enum mg_err err = p->err || !p->tool->instrument ? p->err : p->tool->instrument(p->conf, p, &p->d);
    if (!err && !p->err && p->channel) mg_channel_end(p);
    if (!err && !p->err) mg_near_end(p);
    if (!err && !p->err) make_region(s->x, p);
    if (!err && !p->err) mg_patch_link(p);
    if (err || p->err) give_up(s->x, p->region, &p->d, err ? err : p->err);
    return MG_ERR_OK;
}

static enum mg_err run_counter(struct mg_pass_ctx *c, void *user, mg_id func, uint32_t block)
{
    struct run *x = ((const struct step *)user)->x;
    struct mg_layout *l = x->all.layout;
    struct mg_diag d = MG_DIAG_INIT;
    const struct mg_pass_opts *o = x->all.o->passes;
    struct mg_buf *plan = o && o->dump && !strcmp(o->dump, MG_DUMP_PLAN) ? o->dump_to : NULL;
    (void)c, (void)func, (void)block;
    enum mg_err err = mg_count_insert(x->counts, x->all.sites, x->all.twin, &l->blocks, plan, &d);
    l->has_blocks = !err;
    if (err && x->counter_region) give_up(x, x->counter_region, &d, err);
    mg_diag_release(&d);
    return MG_ERR_OK;
}

/* ---- all of them -------------------------------------------------------------------------------------------- */

/* A tool says how it wants blocks counted: the first that does is heard, others have to want the same. */
static void want_counts(struct run *x, const struct mg_tool_use *use, struct mg_region *r)
{
    const struct mg_counter_opts *o = use->tool->counts(use->conf);
    static const char other[] = "another tool of this run has blocks counted in another way";
    if (!x->counts) {
        x->counts = o;
        x->counter_region = r;
    } else if (!mg_counter_opts_equal(o, x->counts)) {
        r->reason = mg_arena_strndup(&x->all.layout->arena, other, strlen(other));
    }
}

static void release_shared(struct mg_patches *s)
{
    for (uint32_t i = 0; i < s->sites->n_funcs; i++) {
        struct mg_patch_func *f = &s->funcs[i];
        mg_ssa_free(f->ssa);
        mg_live_free(f->live);
        mg_uniform_free(f->uniform);
        mg_freq_free(f->freq);
        mg_ivs_free(f->ivs);
        mg_loops_free(f->loops);
        mg_dom_free(f->dom);
        if (f->has_placer) mg_placer_release(&f->placer);
        for (unsigned k = 0; k < MG_TEMP_KINDS; k++) mg_vec_release(&f->temps[k]);
    }
    mg_spaces_free(s->spaces);
    mg_map_release(&s->behind);
    free(s->funcs);
    free(s->insts);
    free(s->may_exit);
}

static enum mg_err run_passes(struct run *x, struct mg_diag *d)
{
    struct mg_pass *passes = mg_xcalloc(x->n + 1, sizeof *passes);
    struct mg_pipeline_step *steps = mg_xcalloc(x->n + 1, sizeof *steps);
    struct step *users = mg_xcalloc(x->n + 1, sizeof *users);
    uint32_t n = 0;
    if (x->counts) {
        users[n] = (struct step){x, NULL};
        passes[n] = (struct mg_pass){.name = "blocks",
                                     .summary = "count how often blocks are entered",
                                     .scope = MG_SCOPE_MODULE,
                                     .run = run_counter};
        steps[n] = (struct mg_pipeline_step){&passes[n], &users[n]};
        n++;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        struct mg_patch *p = &x->patches[i];
        if (!p->tool) continue;
        users[n] = (struct step){x, p};
        passes[n] = (struct mg_pass){
            .name = p->tool->name, .summary = p->tool->summary, .scope = MG_SCOPE_MODULE, .run = run_tool};
        steps[n] = (struct mg_pipeline_step){&passes[n], &users[n]};
        n++;
    }
    enum mg_err err = mg_pass_run(x->all.m, steps, n, x->all.o->passes, d);
    free(passes);
    free(steps);
    free(users);
    return err;
}

/* What the counts of blocks have to fit, for who reads them when module and sites are gone. */
static void keep_fit(struct mg_layout *l, const struct mg_sites *sites)
{
    l->fit = (struct mg_fit){.blocks = mg_arena_array(&l->arena, struct mg_fit_block, sites->n_blocks + 1),
                             .n = sites->n_blocks};
    for (uint32_t b = 0; b < sites->n_blocks; b++) {
        const struct mg_site_block *k = &sites->blocks[b];
        const uint32_t *succs = mg_arena_copy(&l->arena, k->succs, k->n_succs * sizeof *succs);
        l->fit.blocks[b] = mg_fit_block_of(succs, k->n_succs, k->ops, k->n_ops, !k->block_ix);
        l->fit.blocks[b].leaves |=
            sites->cfgs[k->func_ix]->blocks[k->block_ix].leaves; /* by running off the end, too */
    }
}

/* Is there code of tools, other than counters of blocks? */
static bool has_code(const struct run *x)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->patches[i].spots.n) return true;
    return false;
}

enum mg_err mg_tools_instrument(const struct mg_tool_use *uses, uint32_t n, const struct mg_sites *sites,
                                struct mg_twin *twin, const struct mg_tools_opts *o, struct mg_layout *layout,
                                struct mg_diag *d)
{
    struct run x = {
        .all = {.sites = sites, .app = sites->cfgs[0]->m, .twin = twin, .m = twin->m, .o = o, .layout = layout},
        .n = n};
    bool wanted = false;
    enum mg_err err = MG_ERR_OK;
    *layout = (struct mg_layout){.blocks = {.other_at = UINT32_MAX}, .n_regions = n};
    if (sites->n_funcs != twin->n_funcs) return mg_diag_err(d, MG_ERR_STATE, "sites and twin are of different kernels");
    layout->regions = mg_arena_array(&layout->arena, struct mg_region, n + 1);
    x.patches = mg_xcalloc(n + 1, sizeof *x.patches);
    x.all.funcs = mg_xcalloc(sites->n_funcs + 1, sizeof *x.all.funcs);
    for (uint32_t i = 0; i < n; i++) {
        struct mg_region *r = &layout->regions[i];
        *r = (struct mg_region){
            .tool = mg_arena_strndup(&layout->arena, uses[i].tool->name, strlen(uses[i].tool->name)), .n_copies = 1};
        if (uses[i].tool->counts) want_counts(&x, &uses[i], r);
        if (!uses[i].tool->analyze && !uses[i].tool->instrument) continue;
        begin_patch(&x, &x.patches[i], &uses[i], r);
        wanted |= x.patches[i].wants_blocks;
    }
    bool own = !x.counts && wanted; /* by nobody's options */
    if (own) {
        x.asked = mg_counter_opts_for(o->reduce, o->sm);
        x.counts = &x.asked;
    }
    twin->keeps_lanes |= x.counts && x.counts->warps;
    mg_raise_target(twin->m, o->sm);
    if (!err) err = run_passes(&x, d);
    if (!err && layout->has_blocks) keep_fit(layout, sites);
    if (!err && o->reduce) {
        if (has_code(&x)) mg_twin_hide_zeros(twin);
        mg_twin_contract(twin);
        mg_twin_drop_contexts(twin);
        if (!twin->keeps_lanes) mg_twin_inline(twin); /* lanes meet behind calls */
        mg_twin_keep_window(twin);
        mg_twin_split_constants(twin);
    }
    bool stands = n == 0;
    for (uint32_t i = 0; i < n; i++) stands |= !layout->regions[i].reason;
    if (!err && !stands)
        err = mg_diag_err(d, MG_ERR_UNSUPPORTED, "%s: %s", layout->regions[0].tool, layout->regions[0].reason);
    for (uint32_t i = 0; i < n; i++)
        if (x.patches[i].tool) release_patch(&x.patches[i]);
    free(x.patches);
    release_shared(&x.all);
    return err;
}
