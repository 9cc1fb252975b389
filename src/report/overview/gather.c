/* A program's figures from its profiles. Counts come from the profile that holds most launches, each other figure from
 * the first that has it. */
#include <math.h>
#include <string.h>

#include "report/overview/priv.h"

const char *const step_names[STEP_COUNT] = {"parse", "analyse", "instrument", "print",
                                            "JIT",   "load",    "execute"}; /* ORDER STEPS */

/* ---- counts ------------------------------------------------------------------------------------------------ */

static void add_kernel(struct work *w, const struct mg_pkernel *k)
{
    struct mg_kernel_sums s;
    mg_kernel_sums_init(&s, k);
    w->kernels++;
    w->blocks += k->n_blocks;
    w->estimate = w->estimate || k->estimated;
    if (s.measured) {
        w->any = true;
        w->has_warps = w->has_warps && s.has_warps;
        w->thread_entries += s.thread_entries;
        w->warp_entries += s.warp_entries;
        w->thread_insts += s.thread_insts;
        w->warp_insts += s.warp_insts;
        for (uint32_t i = 0; i < s.n_ops; i++) w->metrics[metric_of(s.ops[i].op)] += s.ops[i].threads;
    }
    mg_kernel_sums_release(&s);
}

static struct work work_of(const struct mg_recording *p)
{
    struct work w = {.has_warps = true};
    struct mg_coverage c;
    for (uint32_t i = 0; i < p->n_kernels; i++)
        if (p->kernels[i].launches) add_kernel(&w, &p->kernels[i]);
    mg_coverage_init(&c, p);
    w.launches = c.launches + c.device_launches;
    mg_coverage_release(&c);
    for (uint64_t i = 0; i < p->n_launches; i++)
        if (!p->launches[i].repeat && p->launches[i].complete && p->launches[i].threads)
            w.counted_launches += p->launches[i].replays;
    return w;
}

/* ---- tools --------------------------------------------------------------------------------------------------- */

static void add_named(struct named_sum **at, uint32_t *n, uint32_t cap, const struct mg_jval *list,
                      struct mg_arena *arena)
{
    for (const struct mg_jval *v = mg_jval_first(list); v; v = v->next) {
        const char *name = mg_jval_text(v, "name");
        uint32_t i = 0;
        while (name && i < *n && strcmp((*at)[i].name, name)) i++;
        if (!name || i == cap) continue;
        if (i == *n) (*at)[(*n)++] = (struct named_sum){mg_arena_strndup(arena, name, strlen(name)), 0};
        (*at)[i].n += mg_jval_u64(v, "thread");
    }
}

enum { MOST_NAMES = 16 };

static void mix_of(struct mix *to, struct mg_facts *f, struct mg_arena *arena)
{
    const struct mg_jval *kernels = mg_jval_get(mg_facts_tool(f, "opcodes"), "kernels");
    if (to->classes.n || !mg_jval_first(kernels)) return;
    mg_vec_reserve(&to->classes, MOST_NAMES);
    mg_vec_reserve(&to->widths, MOST_NAMES);
    for (const struct mg_jval *k = mg_jval_first(kernels); k; k = k->next) {
        add_named(&to->classes.at, &to->classes.n, MOST_NAMES, mg_jval_get(k, "gtpin"), arena);
        add_named(&to->widths.at, &to->widths.n, MOST_NAMES, mg_jval_get(k, "widths"), arena);
    }
}

static void moved_of(struct moved *to, struct mg_facts *f)
{
    const struct mg_jval *sites = mg_jval_get(mg_facts_tool(f, "memory"), "sites");
    if (to->any || !sites) return;
    to->any = true;
    for (const struct mg_jval *s = mg_jval_first(sites); s; s = s->next) {
        const char *space = mg_jval_text(s, "space");
        if (space && !strcmp(space, "shared")) continue;
        to->read += mg_jval_u64(s, "bytes_read");
        to->written += mg_jval_u64(s, "bytes_written");
    }
}

static void calls_of(struct calls *to, struct mg_facts *f)
{
    const struct mg_jval *line = mg_facts_tool(f, "timeline"), *pct = mg_jval_get(line, "call_percent");
    if (to->any || !pct || !mg_jval_is_number(mg_jval_get(pct, "kernel"))) return;
    to->any = true;
    to->kernel_pct = mg_jval_f64(pct, "kernel");
    to->sync_pct = mg_jval_f64(pct, "synchronisation");
    to->other_pct = mg_jval_f64(pct, "other");
    for (const struct mg_jval *c = mg_jval_first(mg_jval_get(line, "calls")); c; c = c->next) {
        const char *layer = mg_jval_text(c, "layer");
        if (layer && !strcmp(layer, "driver")) to->n += mg_jval_u64(c, "count");
    }
}

/* ---- load ---------------------------------------------------------------------------------------------------- */

static const struct mg_jval *of_kernel(const struct mg_jval *tool, uint32_t kernel)
{
    for (const struct mg_jval *k = mg_jval_first(mg_jval_get(tool, "kernels")); k; k = k->next)
        if (mg_jval_u64(k, "kernel") == kernel) return k;
    return NULL;
}

static double number_or_nan(const struct mg_jval *object, const char *key)
{
    const struct mg_jval *v = mg_jval_get(object, key);
    return mg_jval_is_number(v) ? mg_jval_number(v) : NAN;
}

static void add_busy(struct load *to, const struct mg_jval *sms, struct mg_arena *arena)
{
    if (!sms || sms->kind != MG_JVAL_ARRAY || !sms->n) return;
    to->n_sms = sms->n;
    to->busy = mg_arena_array(arena, double, sms->n);
    uint32_t i = 0;
    for (const struct mg_jval *s = mg_jval_first(sms); s; s = s->next) to->busy[i++] = mg_jval_f64(s, "busy");
}

/* Of the profile that knows most: counts of CTAs, then their times. The first kernel of the report's order: by time
 * where a GPU measured it, else by instructions. */
static void load_of(struct load *to, const struct mg_recording *p, struct mg_facts *f, struct mg_arena *arena)
{
    const struct mg_jval *clock = mg_facts_tool(f, "clock"), *ctas = mg_facts_tool(f, "ctas");
    uint32_t n = 0;
    uint64_t keys = 0, insts = 0;
    unsigned knows = (ctas ? 2 : 0) + (clock ? 1 : 0);
    if (knows <= to->knows) return;
    struct mg_hot_kernel *hot = mg_hot_kernels(p, f->o, &n);
    for (uint32_t i = 0; i < n; i++) keys += hot[i].key, insts += hot[i].s.thread_insts;
    const struct mg_jval *by_clock = n ? of_kernel(clock, hot[0].k->id) : NULL,
                         *by_ctas = n ? of_kernel(ctas, hot[0].k->id) : NULL;
    if (by_clock || by_ctas) {
        const char *name = hot[0].k->demangled;
        const struct mg_jval *any = by_ctas ? by_ctas : by_clock;
        *to = (struct load){.knows = knows, .kernel = mg_arena_strndup(arena, name, strlen(name))};
        to->share = keys    ? (double)hot[0].key / (double)keys
                    : insts ? (double)hot[0].s.thread_insts / (double)insts
                            : NAN;
        to->ctas = mg_jval_u64(any, "ctas");
        to->launches = mg_jval_u64(any, "launches");
        to->cta_imbalance = number_or_nan(by_ctas, "imbalance");
        to->sm_imbalance = number_or_nan(by_clock, "imbalance");
        add_busy(to, mg_jval_get(by_clock, "sms"), arena);
    }
    mg_hot_release(hot, n);
}

/* ---- --stats ------------------------------------------------------------------------------------------------- */

static void steps_of(struct program *to, const struct mg_recording *p)
{
    static const char *const keys[STEP_COUNT] = {"parse_ns", "analyse_ns", "instrument_ns", "print_ns",
                                                 "jit_ns",   "load_ns",    "execute_ns"};
    struct mg_arena arena = MG_ARENA_INIT;
    if (to->has_steps) return;
    for (uint32_t i = 0; i < p->n_tools; i++) {
        const struct mg_ptool *t = &p->tools[i];
        if (strcmp(t->tool, "margay") || strcmp(t->key, "stats")) continue;
        const struct mg_jval *v = mg_jval_parse(&arena, t->json, strlen(t->json));
        for (int s = 0; v && s < STEP_COUNT; s++) to->steps[s] += mg_jval_u64(v, keys[s]);
        to->has_steps = to->has_steps || v;
    }
    mg_arena_release(&arena);
}

/* ---- a program ------------------------------------------------------------------------------------------------ */

/* More launches, then warps beside threads. */
static bool is_better(const struct work *w, const struct work *than)
{
    if (!than->any || w->counted_launches != than->counted_launches)
        return !than->any || w->counted_launches > than->counted_launches;
    return w->has_warps && !than->has_warps;
}

static void add_profile(struct program *to, const struct mg_recording *p, struct mg_arena *arena)
{
    struct mg_facts f;
    struct work w = work_of(p);
    if (w.any && is_better(&w, &to->work)) {
        const char *kind = p->n_processes ? p->processes[0].device_kind : NULL;
        to->work = w;
        to->device = kind ? mg_arena_strndup(arena, kind, strlen(kind)) : NULL;
    }
    mg_facts_init(&f, p, NULL);
    mix_of(&to->mix, &f, arena);
    moved_of(&to->moved, &f);
    calls_of(&to->calls, &f);
    load_of(&to->load, p, &f, arena);
    steps_of(to, p);
    mg_facts_release(&f);
}

enum mg_err mg_overview_add(struct mg_overview *o, const char *name, const char *domain, const char *const *dirs,
                            uint32_t n, struct mg_diag *d)
{
    struct mg_recording **runs = mg_xcalloc(n + 1, sizeof *runs);
    struct program x = {.name = mg_arena_strndup(&o->arena, name, strlen(name)),
                        .domain = domain ? mg_arena_strndup(&o->arena, domain, strlen(domain)) : NULL};
    enum mg_err err = MG_ERR_OK;
    uint32_t opened = 0;
    while (!err && opened < n) {
        err = mg_recording_open(dirs[opened], &runs[opened], d);
        if (!err && runs[opened++]->n_damaged)
            err = mg_diag_err(d, MG_ERR_INPUT, "%s: %s", dirs[opened - 1], runs[opened - 1]->damaged[0]);
    }
    for (uint32_t i = 0; !err && i < n; i++) add_profile(&x, runs[i], &o->arena);
    if (!err) costs_of(&x, runs, n, &o->arena);
    for (uint32_t i = 0; i < opened; i++) mg_recording_free(runs[i]);
    free(runs);
    *mg_vec_push(&o->programs) = x;
    return err;
}

struct mg_overview *mg_overview_new(void)
{
    return mg_xcalloc(1, sizeof(struct mg_overview));
}

void mg_overview_free(struct mg_overview *o)
{
    if (!o) return;
    for (uint32_t i = 0; i < o->programs.n; i++) {
        mg_vec_release(&o->programs.at[i].costs);
        mg_vec_release(&o->programs.at[i].mix.classes);
        mg_vec_release(&o->programs.at[i].mix.widths);
    }
    mg_vec_release(&o->programs);
    mg_arena_release(&o->arena);
    free(o);
}
