/* The tools of a session: those that the configuration names, and those that came later. Each launch
 * runs with the set of tools that are switched on when it is made; a set has a twin of its own
 * (struct mg_variant), so a launch pays for its tools alone and a running one is never altered.
 *
 *   set of tools ──► variant ── launch ends ──► cells merged over copies ──► tool.finalize
 *                                                                      └──► account of the store
 *
 * Tools are only ever added and never freed: launches in flight point to them. */
#include "inject/tools.h"

#include "inject/tracefile.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/search.h"
#include "inject/backend.h"
#include "inject/channels.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/select.h"
#include "inject/session.h"
#include "inject/timeline.h"
#include "inject/twin.h"
#include "tool/plugin.h"
#include "tool/spec.h"

/* ---- which -------------------------------------------------------------------------------------------- */

bool mg_tools_any(void)
{
    const struct mg_session *s = &mg_session;
    uint32_t n = __atomic_load_n(&s->n_uses, __ATOMIC_ACQUIRE);
    for (uint32_t u = 0; u < n; u++)
        if (!mg_tool_is_native(s->uses[u].tool, s->uses[u].conf)) return true;
    return false;
}

uint32_t mg_tools_active(enum mg_reason *why)
{
    const struct mg_session *s = &mg_session;
    uint32_t set = mg_select_tools(), n = __atomic_load_n(&s->n_uses, __ATOMIC_ACQUIRE),
             all = 0; /* in this order: a wish adds one */
    for (uint32_t u = 0; u < n; u++)
        if (!mg_tool_is_native(s->uses[u].tool, s->uses[u].conf)) all |= 1u << u;
    if (why) *why = all ? MG_REASON_switched_off : MG_REASON_no_tool;
    return set & all;
}

/* The first launch of all, then one of every group of one_of: which, only its number and the kernel's name say, so that
 * runs repeat. */
static bool is_drawn(const struct mg_code *c, uint64_t n, uint32_t one_of)
{
    uint64_t group = n ? (n - 1) / one_of : 0;
    return !n || (n - 1) % one_of == mg_hash64(c->name, strlen(c->name), group) % one_of;
}

uint32_t mg_tools_draw(struct mg_code *c, uint32_t set)
{
    for (uint32_t u = 0; u < mg_session.n_uses; u++) {
        uint32_t one_of = mg_session.uses[u].one_of;
        struct mg_code_use *of = set >> u & 1 && one_of > 1 ? mg_code_use(c, u) : NULL;
        if (of && !is_drawn(c, __atomic_fetch_add(&of->drawn_from, 1, __ATOMIC_RELAXED), one_of)) set &= ~(1u << u);
    }
    return set;
}

uint32_t mg_tools_list(uint32_t set, struct mg_use *uses, uint32_t *at)
{
    uint32_t n = 0;
    for (uint32_t u = 0; u < mg_session.n_uses; u++)
        if (set >> u & 1) {
            uses[n] = mg_session.uses[u];
            at[n++] = u;
        }
    return n;
}

static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* t is the session's from now on, or closed. */
static enum mg_err add_tool(struct mg_tool_spec t, struct mg_diag *d)
{
    struct mg_session *s = &mg_session;
    enum mg_err err = MG_ERR_OK;
    void *conf = NULL;
    pthread_mutex_lock(&adding);
    for (uint32_t u = 0; !err && u < s->n_uses; u++)
        if (!strcmp(s->uses[u].name, t.name)) err = mg_diag_err(d, MG_ERR_INPUT, "tool %s is there already", t.name);
    if (!err && s->n_uses == MG_MAX_USES) err = mg_diag_err(d, MG_ERR_INPUT, "more than %d tools", MG_MAX_USES);
    if (!err) {
        mg_select_name(s->n_uses, t.name);
        mg_select_enter(s->n_uses, MG_CONTROL_CONFIGURE);
        err = mg_tool_configure(t.tool, t.args, mg_session_can(MG_BACKEND_HARDWARE) ? s->sm : 0, &conf, d);
        mg_select_leave(s->n_uses);
    }
    if (err) {
        mg_tool_spec_close(&t);
    } else {
        s->uses[s->n_uses] = (struct mg_use){.tool = t.tool,
                                             .conf = conf,
                                             .name = t.name,
                                             .args = t.args,
                                             .path = t.path,
                                             .store_id = mg_store_use(s->store, t.name, t.args, t.path),
                                             .one_of = t.tool->one_of ? t.tool->one_of(conf) : 1};
        mg_select_known(s->n_uses);
        mg_select_enter(s->n_uses, MG_CONTROL_BEGIN);
        if (t.tool->begin) t.tool->begin(conf, mg_tools_host());
        mg_select_leave(s->n_uses);
        __atomic_store_n(&s->n_uses, s->n_uses + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&adding);
    return err;
}

bool mg_tools_add(const char *spec, char *why, size_t room)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_tool_spec t;
    bool foreign = strchr(spec, '/') != NULL;
    if (foreign) {
        mg_store_flush(mg_session.store); /* should its constructor end the process */
        mg_select_opening(spec);
    }
    enum mg_err err = mg_tool_spec_open(spec, &t, &d);
    mg_select_opening("");
    if (!err) err = add_tool(t, &d);
    if (err) snprintf(why, room, "%s", mg_diag_first(&d, err));
    mg_diag_release(&d);
    return !err;
}

static bool is_there(const struct mg_tool *tool)
{
    for (uint32_t u = 0; u < mg_session.n_uses; u++)
        if (mg_session.uses[u].tool == tool) return true;
    return false;
}

/* Tools that are linked into the program or preloaded: "pid:address,..." (tool/plugin.h). */
static void add_announced(void)
{
    const char *at = getenv(MG_TOOL_HERE);
    char *end;
    if (!at || strtol(at, &end, 10) != (long)getpid() || *end != ':') return;
    for (at = end + 1; *at; at = end + (*end == ',')) {
        const struct mg_tool_plugin *p = (const struct mg_tool_plugin *)(uintptr_t)strtoull(at, &end, 16);
        if (end == at || !p) return;
        if (is_there(p->tool)) continue; /* -t has opened it */
        struct mg_diag d = MG_DIAG_INIT;
        enum mg_err err =
            strcmp(p->stamp, MG_TOOL_STAMP)
                ? mg_diag_err(&d, MG_ERR_INPUT, "a tool in the program was built with other headers than this margay")
                : MG_ERR_OK;
        Dl_info where = {0};
        dladdr(p, &where);
        if (!err)
            err = add_tool((struct mg_tool_spec){.name = strdup(p->tool->name),
                                                 .args = strdup(""),
                                                 .path = where.dli_fname ? realpath(where.dli_fname, NULL) : NULL,
                                                 .tool = p->tool},
                           &d);
        if (err) mg_session_say("%s; it is left out", mg_diag_first(&d, err));
        mg_diag_release(&d);
    }
}

/* tools/margay/scope: one CTA or warp of a launch counts its blocks, and reports scale that to the grid. */
static void tell_scope(const struct mg_use *use)
{
    const struct mg_counter_opts *o = use->tool->counts ? use->tool->counts(use->conf) : NULL;
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    if (!o || o->scope == MG_COUNT_FULL) return;
    mg_json_init(&j, &text, 0);
    mg_json_obj(&j);
    mg_json_key_str(&j, "scope", o->scope == MG_COUNT_CTA ? "cta" : "warp");
    mg_json_key_u64(&j, "cta", o->cta);
    mg_json_key_u64(&j, "warp", o->warp);
    mg_json_end(&j, '}');
    mg_store_tool_json(mg_session.store, "margay", "scope", text.at);
    mg_buf_release(&text);
}

void mg_tools_begin(void)
{
    char why[600];
    const char *at = mg_session.config.tools ? mg_session.config.tools : "none";
    while (*at) {
        char *spec = mg_tool_spec_next(&at);
        if (spec && *spec && !mg_tools_add(spec, why, sizeof why)) mg_session_say("%s; the tool is left out", why);
        free(spec);
    }
    add_announced();
    for (uint32_t u = 0; u < mg_session.n_uses; u++) tell_scope(&mg_session.uses[u]);
    if (!mg_session.n_uses) mg_session_say("nothing is instrumented");
}

static bool over; /* nothing more is finalized; under mg_session.closing */

void mg_tools_end(void)
{
    pthread_rwlock_wrlock(&mg_session.closing); /* no tool is at work on the end of a launch */
    over = true;
    pthread_rwlock_unlock(&mg_session.closing);
    for (uint32_t u = 0; u < mg_session.n_uses; u++)
        if (mg_session.uses[u].tool->end) {
            mg_select_enter(u, MG_CONTROL_END);
            mg_session.uses[u].tool->end(mg_session.uses[u].conf);
            mg_select_leave(u);
        }
}

/* ---- what they placed ------------------------------------------------------------------------------------- */

static struct mg_account *tell_region(const struct mg_code *c, const struct mg_use *use, const struct mg_region *g)
{
    struct mg_result_site *sites = calloc((size_t)g->n_sites + 1, sizeof *sites);
    struct mg_store_table *tables = calloc((size_t)g->n_tables + 1, sizeof *tables);
    struct mg_account *a = NULL;
    for (uint32_t i = 0; sites && i < g->n_sites; i++) {
        const struct mg_layout_site *f = &g->sites[i];
        sites[i] = (struct mg_result_site){.kind = f->kind,
                                           .note = f->note,
                                           .block = f->block,
                                           .succ = f->succ,
                                           .ptx_line = f->ptx_line,
                                           .function = f->function,
                                           .op = f->op,
                                           .file = f->file,
                                           .line = f->line,
                                           .inlined = f->inlined,
                                           .cell = f->cell,
                                           .n_cells = f->n_cells};
    }
    for (uint32_t i = 0; tables && i < g->n_tables; i++)
        tables[i] =
            (struct mg_store_table){g->tables[i].site, g->tables[i].n_keys, g->tables[i].n_cells, g->tables[i].rule};
    if (sites && tables)
        a = mg_store_region(mg_session.store, &(struct mg_store_region){.use = use->store_id,
                                                                        .kernel = c->store_id,
                                                                        .reason = g->reason,
                                                                        .sites = sites,
                                                                        .n_sites = g->n_sites,
                                                                        .rules = g->rules,
                                                                        .n_cells = g->n_cells,
                                                                        .tables = tables,
                                                                        .n_tables = g->n_tables});
    free(sites);
    free(tables);
    return a;
}

void mg_tools_tell(struct mg_variant *v)
{
    struct mg_code *c = v->code;
    for (uint32_t k = 0; k < v->layout.n_regions; k++) {
        const struct mg_region *g = &v->layout.regions[k];
        uint32_t u = v->uses[k];
        if (!g->reason && mg_session.uses[u].store_id < 63) v->tools |= 1ull << mg_session.uses[u].store_id;
        struct mg_code_use *of = mg_code_use(c, u);
        if (!of || of->told) continue;
        of->account = tell_region(c, &mg_session.uses[u], g);
        of->told = true;
    }
    __atomic_store_n(&v->told, true, __ATOMIC_RELEASE);
}

/* ---- one launch --------------------------------------------------------------------------------------------- */

static struct mg_tool_launch describe(const struct mg_run *r)
{
    return (struct mg_tool_launch){.kernel = r->inst->code->name,
                                   .id = r->child ? 0 : r->number,
                                   .traced = mg_run_traced_as(r),
                                   .shape = mg_run_launch(&r->shape),
                                   .args = r->values,
                                   .args_bytes = r->values ? r->inst->param_bytes : 0,
                                   .node = r->node};
}

bool mg_tools_words(const struct mg_run *r, uint64_t *words)
{
    const struct mg_variant *v = r->body->variant;
    const struct mg_tool_launch l = describe(r);
    bool any = false;
    for (uint32_t k = 0; k < v->layout.n_regions; k++) {
        const struct mg_region *g = &v->layout.regions[k];
        const struct mg_use *use = &mg_session.uses[v->uses[k]];
        if (g->reason || !g->n_launch_words) continue;
        if (use->tool->initialize) {
            mg_select_enter(v->uses[k], MG_CONTROL_INITIALIZE);
            use->tool->initialize(use->conf, &l, words + g->first_word);
            mg_select_leave(v->uses[k]);
        }
        if (g->has_channel) mg_channels_words(r, k, words + g->first_word + g->channel_word);
        any |= use->tool->initialize || g->has_channel;
    }
    return any;
}

void mg_tools_lists(struct mg_run *r, mg_write_fn write)
{
    const struct mg_variant *v = r->body->variant;
    const struct mg_tool_launch l = describe(r);
    for (uint32_t k = 0; k < v->layout.n_regions; k++) {
        const struct mg_region *g = &v->layout.regions[k];
        const struct mg_use *use = &mg_session.uses[v->uses[k]];
        if (g->reason || !g->n_list || !use->tool->list) continue;
        uint64_t *words = calloc(g->n_list, sizeof *words);
        mg_select_enter(v->uses[k], MG_CONTROL_INITIALIZE);
        uint32_t n = words ? use->tool->list(use->conf, &l, words, g->n_list) : 0;
        mg_select_leave(v->uses[k]);
        if (n) write(r, MG_CTX_BYTES + 8 * (g->at + g->list_at), words, n < g->n_list ? n : g->n_list);
        free(words);
    }
}

/* Entries of a table that replays added to: what was told already, by keys. */
struct entries {
    const struct mg_layout_table *t;
    struct mg_account *account;
    uint32_t table;
    uint64_t *told, n, cap;
};

static int by_keys(const void *a, const void *b, void *n)
{
    const uint64_t *x = a, *y = b;
    for (uint32_t i = 0; i < *(const uint32_t *)n; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

static void remember(const uint64_t *keys, const uint64_t *cells, void *user)
{
    struct entries *e = user;
    uint32_t nk = e->t->n_keys, width = nk + e->t->n_cells;
    if (e->n == e->cap) {
        uint64_t *more = realloc(e->told, (e->cap ? 2 * e->cap : 64) * width * sizeof *more);
        if (!more) return;
        e->told = more;
        e->cap = e->cap ? 2 * e->cap : 64;
    }
    memcpy(e->told + e->n * width, keys, nk * sizeof *keys);
    memcpy(e->told + e->n++ * width + nk, cells, e->t->n_cells * sizeof *cells);
}

static const uint64_t *find_told(const struct entries *e, const uint64_t *keys)
{
    uint64_t width = e->t->n_keys + e->t->n_cells, k;
    void *n_keys = (void *)(uintptr_t)&e->t->n_keys;
    MG_FIND_FIRST(k, e->n, by_keys(keys, e->told + k * width, n_keys) > 0);
    return k < e->n && !by_keys(keys, e->told + k * width, n_keys) ? e->told + k * width : NULL;
}

static void tell_entry(const uint64_t *keys, const uint64_t *cells, void *user)
{
    struct entries *e = user;
    uint32_t nk = e->t->n_keys, nc = e->t->n_cells;
    const uint64_t *was = e->t->rule == MG_MERGE_SUM ? find_told(e, keys) : NULL;
    uint64_t few[16] = {0}, *since = few;
    if (!was) {
        mg_account_entry(e->account, e->table, keys, cells);
        return;
    }
    if (nc > MG_COUNT_OF(few) && !(since = malloc(nc * sizeof *since))) return;
    for (uint32_t c = 0; c < nc; c++) since[c] = cells[c] - was[nk + c];
    mg_account_entry(e->account, e->table, keys, since);
    if (since != few) free(since);
}

static void tell_tables(const struct mg_region *g, struct mg_account *a, const uint64_t *raw, const uint64_t *before)
{
    for (uint32_t t = 0; t < g->n_tables; t++) {
        struct entries e = {.t = &g->tables[t], .account = a, .table = t};
        uint64_t lost = before ? mg_layout_read_table(g, t, before, remember, &e) : 0;
        if (e.n)
            qsort_r(e.told, e.n, (e.t->n_keys + e.t->n_cells) * sizeof *e.told, by_keys,
                    (void *)(uintptr_t)&e.t->n_keys);
        mg_account_lost(a, t, mg_layout_read_table(g, t, raw, tell_entry, &e) - lost);
        free(e.told);
    }
}

struct reading { /* a list */
    const struct mg_run *run;
    struct mg_account *account;
    struct mg_timeline_kernel *kernel;
};

static void add_entry(const struct mg_tool_list *l, uint32_t table, const uint64_t *keys, const uint64_t *cells)
{
    const struct reading *x = l->user;
    if (table < l->region->n_tables) mg_account_entry(x->account, table, keys, cells);
}

static void place_clock(const struct mg_tool_list *l, uint64_t first, uint64_t last)
{
    const struct reading *x = l->user;
    mg_timeline_place(x->kernel, x->run, first, last);
}

static void put_inside(const struct mg_tool_list *l, const struct mg_inside *s)
{
    const struct reading *x = l->user;
    mg_timeline_inside(x->kernel, s);
}

static void read_list(struct reading *x, const struct mg_region *g, uint32_t u, const uint64_t *raw,
                      const uint64_t *before)
{
    const struct mg_run *r = x->run;
    const struct mg_use *use = &mg_session.uses[u];
    const uint64_t at = g->at + g->list_at;
    if (g->n_frame && g->n_record_types && !use->tool->read)
        mg_tracefile_frame(u, r->inst->code->name, r->number, g, raw + at, before ? before + at : NULL);
    if (!g->n_list || !use->tool->read) return;
    const struct mg_tool_launch l = describe(r);
    mg_select_enter(u, MG_CONTROL_READ);
    use->tool->read(use->conf, &l,
                    &(struct mg_tool_list){.words = raw + at,
                                           .n = g->n_list,
                                           .before = before ? before + at : NULL,
                                           .region = g,
                                           .add = add_entry,
                                           .clock = x->kernel ? place_clock : NULL,
                                           .inside = x->kernel ? put_inside : NULL,
                                           .user = x});
    mg_select_leave(u);
}

void mg_tools_running(const struct mg_run *r, uint32_t region, const uint64_t *list)
{
    const struct mg_variant *v = r->body->variant;
    const struct mg_region *g = &v->layout.regions[region];
    const struct mg_use *use = &mg_session.uses[v->uses[region]];
    const struct mg_tool_launch l = describe(r);
    mg_select_enter(v->uses[region], MG_CONTROL_READ);
    use->tool->read(use->conf, &l, &(struct mg_tool_list){.words = list, .n = g->n_list, .region = g, .running = true});
    mg_select_leave(v->uses[region]);
}

/* The region's cells; of sums, what has not been told. To be freed. */
static uint64_t *cells_since(const struct mg_region *g, const uint64_t *raw, const uint64_t *before)
{
    uint64_t *cells = calloc((size_t)g->n_cells + 1, sizeof *cells),
             *told = before ? calloc((size_t)g->n_cells + 1, sizeof *told) : NULL;
    if (!cells || (before && !told)) {
        free(cells);
        return NULL;
    }
    mg_layout_read(g, raw, cells);
    if (before) mg_layout_read(g, before, told);
    for (uint32_t i = 0; before && i < g->n_cells; i++) cells[i] -= g->rules[i] == MG_MERGE_SUM ? told[i] : 0;
    free(told);
    return cells;
}

/* Its cells are none of the program's. */
static bool is_repeat(const struct mg_run *r)
{
    return r->reason.code == MG_REASON_repeat;
}

uint64_t mg_tools_ended(const struct mg_run *r, uint64_t launch, const uint64_t *raw, const uint64_t *before,
                        uint64_t replays, bool complete, struct mg_timeline_kernel *kernel)
{
    const struct mg_variant *v = r->body->variant;
    uint64_t hash = 1;
    for (uint32_t k = 0; k < v->layout.n_regions; k++) {
        const struct mg_region *g = &v->layout.regions[k];
        const struct mg_use *use = &mg_session.uses[v->uses[k]];
        const struct mg_code_use *of = mg_code_use(v->code, v->uses[k]);
        struct mg_account *a = of ? of->account : NULL;
        uint64_t *cells = g->reason || !(use->tool->analyze || use->tool->instrument) || use->tool->flags & MG_TOOL_SPAN
                              ? NULL
                          : raw ? cells_since(g, raw, before)
                                : calloc(g->n_cells + 1, sizeof *cells);
        if (!cells) continue;
        if (complete && a && !is_repeat(r)) {
            tell_tables(g, a, raw, before);
            read_list(&(struct reading){r, a, kernel}, g, v->uses[k], raw, before);
            mg_account_add(a, cells, replays, use->tool->flags & MG_TOOL_PER_LAUNCH || use->one_of > 1, launch);
        }
        if (use->tool->finalize && !over) {
            struct mg_tool_launch l = describe(r);
            l.shape.times = replays;
            l.complete = complete;
            mg_select_enter(v->uses[k], MG_CONTROL_FINALIZE);
            use->tool->finalize(use->conf, &l, cells, g->n_cells);
            mg_select_leave(v->uses[k]);
        }
        hash = mg_hash64(cells, g->n_cells * sizeof *cells, hash);
        free(cells);
    }
    return hash;
}
