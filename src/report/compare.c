/* Metrics of two profiles, side by side.
 *
 *   kernels, tools' rows (facts.h), maps of one-liners ─► metrics in all, and by (metric, function, line) ─► pairs ─►
 * verdict
 *
 * Functions are paired by family: their C++ names without template and function arguments. Of one function and file,
 * lines that have a metric are paired in order where both profiles have as many, else by number. */
#include "report/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "report/advice/advice.h"
#include "report/facts.h"
#include "report/priv.h"

enum how { SUM, MOST, LEAST };
static const struct known {
    const char *name;
    int better;
    enum how how;
} knowns[] = {
#define LESS                      (-1)
#define MORE                      1
#define METRIC(name, better, how) {name, better, how},
#include "report/metrics.def"
#undef METRIC
#undef LESS
#undef MORE
};

const char *const mg_verdict_names[] = {"no difference", "better", "worse", "unclear"}; /* ORDER mg_verdict */

static const struct known *find_known(const char *name)
{
    for (size_t i = 0; i < MG_COUNT_OF(knowns); i++)
        if (!strcmp(knowns[i].name, name)) return &knowns[i];
    return NULL;
}

double mg_compared_pct(const struct mg_compared *x)
{
    if (fabs(x->v[1] - x->v[0]) <= 4e-16 * fabs(x->v[0])) return 0; /* two roundings of one number */
    return x->v[0] != 0 ? 100 * (x->v[1] - x->v[0]) / fabs(x->v[0]) : INFINITY;
}

bool mg_comparison_is_of(const struct mg_comparison *c, const struct mg_metric *m)
{
    return c->by && !strcmp(m->name, c->by == MG_JUDGED_BY_TIME ? "time" : "work");
}

const char *mg_metric_judged(const struct mg_comparison *c, const struct mg_metric *m)
{
    if (!mg_comparison_is_of(c, m)) return mg_compared_judged(&m->of, m->better);
    return c->verdict == MG_VERDICT_SAME ? "" : mg_verdict_names[c->verdict];
}

const char *mg_compared_judged(const struct mg_compared *x, int better)
{
    double change = mg_compared_pct(x);
    if (!x->has[0] || !x->has[1] || change == 0 || !better) return "";
    return (change > 0) == (better > 0) ? "better" : "worse";
}

static void put(struct mg_compared *x, int side, double v, enum how how)
{
    if (!x->has[side])
        x->v[side] = v;
    else if (how == SUM)
        x->v[side] += v;
    else if (how == MOST)
        x->v[side] = fmax(x->v[side], v);
    else
        x->v[side] = fmin(x->v[side], v);
    x->has[side] = true;
}

static uint32_t metric_at(struct mg_comparison *c, const char *name)
{
    for (uint32_t i = 0; i < c->metrics.n; i++)
        if (!strcmp(c->metrics.at[i].name, name)) return i;
    const struct known *k = find_known(name);
    *mg_vec_push(&c->metrics) =
        (struct mg_metric){.name = mg_arena_strndup(&c->arena, name, strlen(name)), .better = k ? k->better : 0};
    return c->metrics.n - 1;
}

static void put_metric(struct mg_comparison *c, const char *name, int side, double v)
{
    const struct known *k = find_known(name);
    uint32_t at = metric_at(c, name); /* first: the list may move */
    put(&c->metrics.at[at].of, side, v, k ? k->how : SUM);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

struct row {
    uint32_t metric;
    const char *function, *file;
    uint32_t line;
    double v;
};
struct collecting {
    struct mg_comparison *c;
    const struct mg_report_opts *o;
    int side;
    bool host_times; /* no GPU: times say nothing about the program */
    MG_VEC(struct row) rows[2];
};

/* "ns::f" of "void ns::f<int>(float*)". */
static const char *family(struct mg_comparison *c, const char *name)
{
    char *plain = mg_demangle(name);
    struct mg_buf b = MG_BUF_INIT;
    mg_add_family(&b, plain ? plain : name);
    const char *text = mg_arena_strndup(&c->arena, b.n ? b.at : "", b.n);
    mg_buf_release(&b);
    free(plain);
    return text;
}

static void add_row(struct collecting *x, uint32_t metric, const char *function, const char *file, uint32_t line,
                    double v, enum how how)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    if (slash) file = slash + 1;
    for (uint32_t i = x->rows[x->side].n; i > 0; i--) {
        struct row *r = &x->rows[x->side].at[i - 1];
        if (r->metric != metric || r->line != line || strcmp(r->function, function) ||
            strcmp(r->file ? r->file : "", file ? file : ""))
            continue;
        struct mg_compared both = {{true}, {r->v}};
        put(&both, 0, v, how);
        r->v = both.v[0];
        return;
    }
    *mg_vec_push(&x->rows[x->side]) =
        (struct row){metric, function, file ? mg_arena_strndup(&x->c->arena, file, strlen(file)) : NULL, line, v};
}

/* Tools whose figures are times. */
static bool is_of_times(const char *tool)
{
    return !strcmp(tool, "clock") || !strcmp(tool, "latency") || !strcmp(tool, "functions");
}

static void add_fact(const struct mg_fact *f, void *user)
{
    struct collecting *x = user;
    char name[160];
    if (!mg_report_shows(x->o, f->kernel) || (x->host_times && is_of_times(f->tool))) return;
    const char *function = family(x->c, f->function);
    for (const struct mg_jval *v = mg_jval_first(f->values); v; v = v->next) {
        if (!mg_fact_is_metric(v)) continue;
        snprintf(name, sizeof name, "%s.%s", f->tool, v->key);
        const struct known *k = find_known(name);
        if (!k && v->kind != MG_JVAL_U64) continue;
        put_metric(x->c, name, x->side, mg_jval_number(v));
        if (f->line) add_row(x, metric_at(x->c, name), function, f->file, f->line, mg_jval_number(v), k ? k->how : SUM);
    }
}

/* Figures of a kernel that have no place: "lane_use" of tool lanes. */
static void add_plain(struct collecting *x, const char *tool, const struct mg_jval *kernels)
{
    char name[160];
    for (const struct mg_jval *v = mg_jval_first(kernels); v; v = v->next) {
        if (mg_jval_get(v, "ptx_line")) continue;
        for (const struct mg_jval *m = mg_jval_first(v); m; m = m->next) {
            snprintf(name, sizeof name, "%s.%s", tool, m->key ? m->key : "");
            if (mg_fact_is_metric(m) && find_known(name)) put_metric(x->c, name, x->side, mg_jval_number(m));
        }
    }
}

static void add_maps(struct collecting *x, const struct mg_jval *expr)
{
    char name[160];
    for (const struct mg_jval *m = mg_jval_first(mg_jval_get(expr, "maps")); m; m = m->next) {
        const char *map = mg_jval_text(m, "name");
        snprintf(name, sizeof name, "expr.%s", map ? map : "");
        for (const struct mg_jval *e = mg_jval_first(mg_jval_get(m, "entries")); e; e = e->next)
            if (mg_jval_is_number(mg_jval_get(e, "value"))) put_metric(x->c, name, x->side, mg_jval_f64(e, "value"));
    }
}

static void add_profile(struct collecting *x, const struct mg_recording *p, struct mg_facts *f)
{
    x->host_times = !p->n_processes || !p->processes[0].device_kind || strcmp(p->processes[0].device_kind, "nvidia");
    for (uint32_t k = 0; k < p->n_kernels; k++) {
        struct mg_kernel_sums s;
        if (!mg_report_shows(x->o, &p->kernels[k])) continue;
        mg_kernel_sums_init(&s, &p->kernels[k]);
        if (s.measured) put_metric(x->c, "instructions", x->side, (double)s.thread_insts);
        if (s.has_warps) put_metric(x->c, "warp_instructions", x->side, (double)s.warp_insts);
        mg_kernel_sums_release(&s);
    }
    mg_facts_each(f, add_fact, x);
    for (uint32_t u = 0; u < p->n_uses; u++) {
        add_plain(x, p->uses[u].name, mg_jval_get(mg_facts_use(f, u), "kernels"));
        if (!strcmp(p->uses[u].name, "expr")) add_maps(x, mg_facts_use(f, u));
    }
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->metric != y->metric) return x->metric < y->metric ? -1 : 1;
    int c = strcmp(x->function, y->function);
    if (!c) c = strcmp(x->file ? x->file : "", y->file ? y->file : "");
    return c ? c : (x->line > y->line) - (x->line < y->line);
}

static bool same_group(const struct row *a, const struct row *b)
{
    return a->metric == b->metric && !strcmp(a->function, b->function) &&
           !strcmp(a->file ? a->file : "", b->file ? b->file : "");
}

static uint32_t group_end(const struct row *rows, uint32_t n, uint32_t from)
{
    uint32_t end = from + 1;
    while (end < n && same_group(&rows[from], &rows[end])) end++;
    return end;
}

static void add_line(struct mg_comparison *c, const struct row *before, const struct row *after)
{
    const struct row *any = before ? before : after;
    struct mg_metric_line *l = mg_vec_push(&c->lines);
    *l = (struct mg_metric_line){.metric = any->metric, .function = any->function, .file = any->file};
    for (int side = 0; side < 2; side++) {
        const struct row *r = side ? after : before;
        l->line[side] = r ? r->line : 0;
        l->of.has[side] = r != NULL;
        l->of.v[side] = r ? r->v : 0;
    }
}

static void pair_group(struct mg_comparison *c, const struct row *a, uint32_t na, const struct row *b, uint32_t nb)
{
    uint32_t i = 0, k = 0;
    if (na == nb) {
        for (; i < na; i++) add_line(c, &a[i], &b[i]);
        return;
    }
    while (i < na || k < nb) {
        if (i < na && k < nb && a[i].line == b[k].line)
            add_line(c, &a[i++], &b[k++]);
        else if (k >= nb || (i < na && a[i].line < b[k].line))
            add_line(c, &a[i++], NULL);
        else
            add_line(c, NULL, &b[k++]);
    }
}

static void pair_rows(struct collecting *x)
{
    uint32_t i = 0, k = 0;
    for (int side = 0; side < 2; side++)
        if (x->rows[side].n) qsort(x->rows[side].at, x->rows[side].n, sizeof *x->rows[side].at, by_place);
    while (i < x->rows[0].n || k < x->rows[1].n) {
        const struct row *a = i < x->rows[0].n ? &x->rows[0].at[i] : NULL,
                         *b = k < x->rows[1].n ? &x->rows[1].at[k] : NULL;
        bool both = a && b && same_group(a, b), first = !both && a && (!b || by_place(a, b) < 0);
        uint32_t ie = both || first ? group_end(x->rows[0].at, x->rows[0].n, i) : i;
        uint32_t ke = both || !first ? group_end(x->rows[1].at, x->rows[1].n, k) : k;
        pair_group(x->c, a, ie - i, b, ke - k);
        i = ie;
        k = ke;
    }
}

/* ---- verdict ----------------------------------------------------------------------------------------------------- */

/* Time of all launches of the kernels shown, and the variance of that from launch to launch; false: not every kernel
 * was timed. */
static bool sum_times(const struct mg_recording *p, const struct mg_report_opts *o, double *time, double *variance,
                      bool *several)
{
    struct moments {
        double n, sum, squares;
    } *of = mg_xcalloc(p->n_kernels + 1, sizeof *of);
    bool all = p->n_kernels > 0 && p->n_processes && p->processes[0].device_kind &&
               !strcmp(p->processes[0].device_kind, "nvidia");
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if (!l->timed || l->repeat || !l->replays) continue;
        double t = (double)l->time_ns / (double)l->replays;
        of[l->kernel].n++;
        of[l->kernel].sum += t;
        of[l->kernel].squares += t * t;
    }
    *time = *variance = 0;
    *several = true;
    for (uint32_t k = 0; k < p->n_kernels; k++) {
        if (!mg_report_shows(o, &p->kernels[k]) || !p->kernels[k].launches) continue;
        struct moments *m = &of[k];
        all = all && m->n > 0;
        if (m->n < 1) continue;
        double launches = (double)p->kernels[k].launches, mean = m->sum / m->n;
        *time += launches * mean;
        if (m->n > 1)
            *variance += launches * launches * (m->squares - m->n * mean * mean) / (m->n - 1) / m->n;
        else
            *several = false;
    }
    free(of);
    return all;
}

/* Better or worse is what an interval says that does not hold 0; `least`: what counts as 0. */
static void judge_interval(struct mg_comparison *c, double least)
{
    c->verdict = c->low_pct > least                             ? MG_VERDICT_WORSE
                 : c->high_pct < -least                         ? MG_VERDICT_BETTER
                 : c->low_pct >= -least && c->high_pct <= least ? MG_VERDICT_SAME
                                                                : MG_VERDICT_UNCLEAR;
}

static void judge_time(struct mg_comparison *c, const struct mg_recording *const p[2], const struct mg_report_opts *o)
{
    double time[2], variance[2];
    bool several[2], has[2];
    for (int side = 0; side < 2; side++) {
        has[side] = sum_times(p[side], o, &time[side], &variance[side], &several[side]);
        if (has[side]) put_metric(c, "time", side, time[side]);
    }
    if (!has[0] || !has[1] || time[0] <= 0) return;
    double change = 100 * (time[1] - time[0]) / time[0];
    double spread = 100 * 1.96 * sqrt(fmax(0, variance[0] + variance[1])) / time[0];
    c->by = MG_JUDGED_BY_TIME;
    c->change_pct = change;
    c->has_interval = several[0] && several[1];
    c->low_pct = c->has_interval ? change - spread : change;
    c->high_pct = c->has_interval ? change + spread : change;
    judge_interval(c, c->has_interval ? 0 : 1);
    if (c->verdict == MG_VERDICT_UNCLEAR) c->verdict = MG_VERDICT_SAME; /* what chance explains */
}

/* The metric whose part of the work, and which itself, grew most; `sign` -1: fell. UINT32_MAX: none by a thousandth of
 * the work. */
static uint32_t changed_most(struct mg_comparison *c, const struct mg_work w[2], double sign)
{
    static const char *const names[MG_WORK_PARTS] = {"warp_instructions", "memory.bank_conflicts", "memory.sectors",
                                                     "memory.accesses",   "ctas.imbalance",        "launched_ctas"};
    double most = 1e-3 * w[0].all;
    uint32_t found = UINT32_MAX;
    for (int i = 0; i < MG_WORK_PARTS; i++) {
        uint32_t metric = metric_at(c, names[i]);
        const double *v = c->metrics.at[metric].of.v;
        double change = sign * (w[1].parts[i] - w[0].parts[i]);
        if (change < most || sign * (v[1] - v[0]) <= 0) continue;
        most = change;
        found = metric;
    }
    return found;
}

static double pct_of(double before, double after)
{
    return before > 0 ? 100 * (after - before) / before : 0;
}

/* Of two runs whose counts depend on timing nobody can say which change is the source's. */
static void doubt_timing(struct mg_comparison *c, const struct mg_work w[2])
{
    c->by_timing =
        c->verdict != MG_VERDICT_SAME && fabs(w[1].by_timing - w[0].by_timing) > .5 * fabs(w[1].all - w[0].all);
    if (!c->by_timing) return;
    c->low_pct = fmin(c->low_pct, 0);
    c->high_pct = fmax(c->high_pct, 0);
    c->verdict = MG_VERDICT_UNCLEAR;
}

/* What turns the result most, of what the model does not know: by how much pairs of settings differ that differ in it
 * alone. Two are named where they turn it about alike. */
static void find_hinge(struct mg_comparison *c, const double pct[MG_WORK_SETTINGS])
{
    enum { WAITS = 3, BITS = 9 };
    static const char *const bits[BITS] = {/* ORDER: the bits of a setting (advice/work.c), waits first */
                                           "how long a warp waits for an instruction",
                                           "how long a warp waits for shared memory",
                                           "how long a warp waits for global memory (as long as L1 takes, or memory)",
                                           "how far instructions, shared and global memory overlap",
                                           "whether the warps of a CTA are as unequal as its CTAs",
                                           "whether accesses are as unequal as the instructions of its CTAs",
                                           "how long launching a CTA takes",
                                           "whether L1 holds what it has brought till it is asked for again",
                                           "how much has to come from memory (what L2 has, and what lanes leave out "
                                           "between the lowest and the highest byte)"};
    double turns[BITS] = {0};
    int most = 0, next = -1;
    for (int b = 0; b < BITS; b++) {
        for (unsigned i = 0; i < MG_WORK_SETTINGS; i++)
            if (!(i >> b & 1)) turns[b] += fabs(pct[i | 1u << b] - pct[i]);
        if (turns[b] > turns[most]) most = b;
    }
    for (int b = 0; b < BITS; b++)
        if (b != most && turns[b] > .8 * turns[most] && (next < 0 || turns[b] > turns[next])) next = b;
    c->hinge = next < 0 ? bits[most] : mg_arena_printf(&c->arena, "%s, and on %s", bits[most], bits[next]);
    c->hinges_on_waits = most < WAITS;
}

/* Better or worse where no setting of the model says the contrary. */
static void judge_settings(struct mg_comparison *c, const struct mg_work w[2])
{
    c->change_pct = c->low_pct = c->high_pct = pct_of(w[0].all, w[1].all);
    c->full_pct = pct_of(w[0].full, w[1].full);
    c->has_interval = true;
    double pct[MG_WORK_SETTINGS];
    for (int i = 0; i < MG_WORK_SETTINGS; i++) {
        pct[i] = pct_of(w[0].set[i], w[1].set[i]);
        c->low_pct = fmin(c->low_pct, pct[i]);
        c->high_pct = fmax(c->high_pct, pct[i]);
    }
    judge_interval(c, .05);
    if (c->verdict == MG_VERDICT_UNCLEAR) find_hinge(c, pct);
    doubt_timing(c, w);
}

/* With level=bytes tool memory counts none. */
static bool counts_sectors(struct mg_facts *f)
{
    const struct mg_jval *memory = mg_facts_tool(f, "memory"), *first = mg_jval_first(mg_jval_get(memory, "sites"));
    bool any = !first;
    for (const struct mg_jval *v = first; v && !any; v = v->next) any = mg_jval_is_number(mg_jval_get(v, "sectors"));
    return any;
}

static void judge_work(struct mg_comparison *c, struct mg_facts f[2])
{
    static const char *const needed[] = {"memory", "lanes", "ctas", "values"}; /* ORDER MG_WORK_NO_ */
    struct mg_work w[2];
    unsigned without = 0;
    for (size_t i = 0; i < MG_COUNT_OF(needed); i++)
        if (!mg_facts_tool(&f[0], needed[i]) || !mg_facts_tool(&f[1], needed[i])) without |= 1u << i;
    if (!counts_sectors(&f[0]) || !counts_sectors(&f[1])) without |= MG_WORK_NO_MEMORY;
    if (c->uncounted) return;
    for (int side = 0; side < 2; side++) {
        mg_work_init(&w[side], &f[side], without);
        if (w[side].all > 0) put_metric(c, "work", side, w[side].all);
        if (w[side].all > 0) put_metric(c, "launched_ctas", side, w[side].ctas);
    }
    if (w[0].all <= 0 || w[1].all <= 0) return;
    double sign = w[1].all < w[0].all ? -1 : 1, even[2];
    for (int side = 0; side < 2; side++) even[side] = w[side].all - w[side].parts[MG_WORK_IMBALANCE];
    for (int side = 0; side < 2; side++) /* what is longer by imbalance alone, of as much work */
        w[side].parts[MG_WORK_IMBALANCE] *= MG_MIN(even[0], even[1]) / even[side];
    c->reason = changed_most(c, w, sign);
    c->against = changed_most(c, w, -sign);
    if (c->by) return;
    c->by = MG_JUDGED_BY_WORK;
    for (int side = 0; side < 2; side++) c->launches[side] = w[side].launches, c->counted[side] = w[side].counted;
    judge_settings(c, w);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void weigh(struct mg_comparison *c)
{
    for (uint32_t i = 0; i < c->lines.n; i++) {
        struct mg_metric_line *l = &c->lines.at[i];
        const struct mg_compared *all = &c->metrics.at[l->metric].of;
        double whole = fmax(fabs(all->v[0]), fabs(all->v[1]));
        l->weight = whole > 0 ? fabs(l->of.v[1] - l->of.v[0]) / whole : 0;
    }
}

static int by_change(const void *a, const void *b)
{
    const struct mg_metric_line *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    if (x->metric != y->metric) return x->metric < y->metric ? -1 : 1;
    int c = strcmp(x->function, y->function);
    return c ? c : MG_MAX(x->line[0], x->line[1]) < MG_MAX(y->line[0], y->line[1]) ? -1 : 1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct mg_metric *)a)->name, ((const struct mg_metric *)b)->name);
}

/* Metrics by name; what refers to them by number goes along. */
static void sort_metrics(struct mg_comparison *c)
{
    uint32_t n = c->metrics.n, *to = mg_xcalloc(n + 1, sizeof *to);
    const char **names = mg_xcalloc(n + 1, sizeof *names);
    for (uint32_t i = 0; i < n; i++) names[i] = c->metrics.at[i].name;
    if (n) qsort(c->metrics.at, n, sizeof *c->metrics.at, by_name);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (names[i] == c->metrics.at[k].name) to[i] = k;
    for (uint32_t i = 0; i < c->lines.n; i++) c->lines.at[i].metric = to[c->lines.at[i].metric];
    if (c->reason < n) c->reason = to[c->reason];
    if (c->against < n) c->against = to[c->against];
    free(names);
    free(to);
}

/* What the program that was run was given, without its name: that changes from build to build. */
static const char *arguments_of(struct mg_arena *arena, const struct mg_recording *p)
{
    const struct mg_pprocess *first = p->n_processes ? &p->processes[0] : NULL;
    struct mg_buf text = MG_BUF_INIT;
    for (uint32_t i = 1; first && i < first->argc; i++) mg_buf_printf(&text, "%s%s", i > 1 ? " " : "", first->argv[i]);
    const char *kept = mg_arena_strndup(arena, text.n ? text.at : "", text.n);
    mg_buf_release(&text);
    return kept;
}

static void compare_arguments(struct mg_comparison *c, const struct mg_recording *before,
                              const struct mg_recording *after)
{
    const char *a = arguments_of(&c->arena, before), *b = arguments_of(&c->arena, after);
    if (!before->n_processes || !after->n_processes || !strcmp(a, b)) return;
    c->arguments[0] = a;
    c->arguments[1] = b;
}

void mg_comparison_init(struct mg_comparison *c, const struct mg_recording *before, const struct mg_recording *after,
                        const struct mg_report_opts *o)
{
    static const struct mg_report_opts defaults = {.size = sizeof defaults};
    const struct mg_recording *const p[2] = {before, after};
    struct mg_facts f[2];
    struct collecting x = {.c = c, .o = o ? o : &defaults};
    *c = (struct mg_comparison){.reason = UINT32_MAX, .against = UINT32_MAX};
    mg_compare_counted(c, p, x.o);
    for (x.side = 0; x.side < 2; x.side++) {
        mg_facts_init(&f[x.side], p[x.side], x.o);
        add_profile(&x, p[x.side], &f[x.side]);
    }
    compare_arguments(c, before, after);
    judge_time(c, p, x.o);
    judge_work(c, f);
    pair_rows(&x);
    sort_metrics(c);
    weigh(c);
    if (c->lines.n) qsort(c->lines.at, c->lines.n, sizeof *c->lines.at, by_change);
    for (int side = 0; side < 2; side++) {
        mg_facts_release(&f[side]);
        mg_vec_release(&x.rows[side]);
    }
}

void mg_comparison_release(struct mg_comparison *c)
{
    mg_vec_release(&c->metrics);
    mg_vec_release(&c->lines);
    mg_arena_release(&c->arena);
    *c = (struct mg_comparison){0};
}

const struct mg_metric *mg_comparison_find(const struct mg_comparison *c, const char *name)
{
    for (uint32_t i = 0; i < c->metrics.n; i++)
        if (!strcmp(c->metrics.at[i].name, name) && (c->metrics.at[i].of.has[0] || c->metrics.at[i].of.has[1]))
            return &c->metrics.at[i];
    return NULL;
}
