/* Launches in groups: by family of kernels (a C++ name without its types), by cause (instrumented, or why not), by
 * device, or by the ranges of NVTX that their calls lie in (the time line has them): a module, an operation, a step of
 * the program.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "report/priv.h"
#include "span/span.h"

struct group {
    mg_str name;
    uint64_t launches, instrumented, timed, time_ns, insts;
    bool counted;          /* any launch has counts */
    struct mg_map kernels; /* kernel -> time or launches */
};
struct groups {
    const struct mg_recording *p;
    const struct mg_report_opts *o;
    struct mg_intern names;
    struct mg_map of_name; /* mg_str -> index */
    MG_VEC(struct group) at;
    uint64_t all_launches, all_ns, all_insts;
    bool all_timed;
};
struct event { /* a launch, or a piece of the time line */
    uint32_t kernel;
    uint64_t times, time_ns, insts;
    bool instrumented, timed, counted;
};

static void add(struct groups *g, mg_str name, const struct event *e)
{
    uint64_t ix, sum = 0;
    if (!mg_map_get(&g->of_name, name, &ix)) {
        mg_map_set(&g->of_name, name, ix = g->at.n);
        *mg_vec_push(&g->at) = (struct group){.name = name};
    }
    struct group *x = &g->at.at[ix];
    x->launches += e->times;
    x->instrumented += e->instrumented ? e->times : 0;
    x->timed += e->timed ? e->times : 0;
    x->time_ns += e->timed ? e->time_ns : 0;
    x->insts += e->insts;
    x->counted |= e->counted;
    mg_map_get(&x->kernels, e->kernel, &sum);
    mg_map_set(&x->kernels, e->kernel, sum + (e->timed ? e->time_ns : e->times));
    g->all_launches += e->times;
    g->all_ns += e->timed ? e->time_ns : 0;
    g->all_insts += e->insts;
    g->all_timed &= e->timed;
}

static mg_str family_of(struct groups *g, uint32_t kernel)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_add_family(&b, g->p->kernels[kernel].demangled);
    mg_str name = mg_intern_add(&g->names, b.n ? b.at : "", b.n);
    mg_buf_release(&b);
    return name;
}

static struct event event_of(const struct groups *g, const struct mg_plaunch *l)
{
    const struct mg_pkernel *k = &g->p->kernels[l->kernel];
    struct event e = {.kernel = l->kernel,
                      .times = l->replays,
                      .time_ns = l->time_ns,
                      .instrumented = l->ran == MG_RAN_INSTRUMENTED,
                      .timed = l->timed,
                      .counted = l->threads != NULL};
    for (uint32_t b = 0; l->threads && b < l->n_counts && b < k->n_blocks; b++)
        e.insts += l->threads[b] * k->blocks[b].n_insts;
    return e;
}

/* Each process numbers the devices that it sees. */
static mg_str device_of(struct groups *g, const struct mg_plaunch *l)
{
    const struct mg_pprocess *p = &g->p->processes[l->process];
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_printf(&b, "device %u", l->device);
    if (p->rank >= 0)
        mg_buf_printf(&b, " of rank %d", p->rank);
    else if (g->p->n_processes > 1)
        mg_buf_printf(&b, " of process %u", p->pid);
    mg_str name = mg_intern_add(&g->names, b.at, b.n);
    mg_buf_release(&b);
    return name;
}

static mg_str cause_of(struct groups *g, const struct mg_plaunch *l)
{
    bool instrumented = l->ran == MG_RAN_INSTRUMENTED;
    return mg_intern_adds(&g->names, instrumented ? "instrumented" : l->reason ? l->reason : "no reason recorded");
}

static void add_launches(struct groups *g, enum mg_report_by by)
{
    for (uint64_t i = 0; i < g->p->n_launches; i++) {
        const struct mg_plaunch *l = &g->p->launches[i];
        if (l->repeat || l->graph == MG_GRAPH_DEVICE || !mg_report_shows(g->o, &g->p->kernels[l->kernel])) continue;
        struct event e = event_of(g, l);
        add(g,
            by == MG_BY_FAMILY   ? family_of(g, l->kernel)
            : by == MG_BY_DEVICE ? device_of(g, l)
                                 : cause_of(g, l),
            &e);
    }
}

/* ---- ranges --------------------------------------------------------------------------------------------------- */

/* What a framework adds to the name of each call goes: "aten::mm, seq = 7, op_id = 12" is aten::mm. */
static size_t plain_length(const char *name)
{
    static const char *const added[] = {", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "};
    size_t n = strlen(name);
    for (size_t i = 0; i < MG_COUNT_OF(added); i++) {
        const char *at = strstr(name, added[i]);
        if (at && (size_t)(at - name) < n) n = (size_t)(at - name);
    }
    return n;
}

static uint64_t range_key(uint32_t process, uint64_t correlation)
{
    return mg_mix64(correlation ^ (uint64_t)process << 40) | 1;
}

/* "outer / inner"; a range in one of its own name is that one. */
static mg_str path_of(struct groups *g, const struct mg_map *paths, const struct mg_span *mark)
{
    struct mg_buf b = MG_BUF_INIT;
    uint64_t outer = 0;
    size_t n = plain_length(mark->name), from = 0;
    if (mark->outer && mg_map_get(paths, range_key(mark->process, mark->outer), &outer)) {
        mg_buf_adds(&b, mg_intern_text(&g->names, (mg_str)outer));
        for (size_t i = 0; i + 2 < b.n; i++)
            if (!strncmp(b.at + i, " / ", 3)) from = i + 3;
        if (b.n - from == n && !strncmp(b.at + from, mark->name, n)) n = 0;
        if (n) mg_buf_adds(&b, " / ");
    }
    mg_buf_add(&b, mark->name, n);
    mg_str path = mg_intern_add(&g->names, b.n ? b.at : "", b.n);
    mg_buf_release(&b);
    return path;
}

/* The kernel of that name, and whether the launch was instrumented; false: the profile does not know it. */
static bool find_kernel(struct groups *g, const struct mg_map *launches, const struct mg_span *s, struct event *e)
{
    uint64_t at;
    if (s->launch != MG_SPAN_NONE && mg_map_get(launches, range_key(s->process, s->launch), &at)) {
        const struct mg_plaunch *l = &g->p->launches[at];
        *e = event_of(g, l);
        if (l->replays > 1) e->insts /= l->replays; /* the mean: a node's replays are counted together */
    } else {
        uint32_t k = 0;
        while (k < g->p->n_kernels && strcmp(g->p->kernels[k].name, s->name)) k++;
        if (k == g->p->n_kernels) return false;
        *e = (struct event){.kernel = k};
    }
    e->times = 1;
    e->timed = s->source != MG_SOURCE_none;
    e->time_ns = s->end_ns - s->begin_ns;
    return mg_report_shows(g->o, &g->p->kernels[e->kernel]);
}

static enum mg_err add_spans(struct groups *g, struct mg_diag *d)
{
    struct mg_span_query q = {.size = sizeof q, .kinds = 1u << MG_SPAN_KERNEL | 1u << MG_SPAN_MARK};
    struct mg_spans *spans;
    struct mg_map paths = MG_MAP_INIT, launches = MG_MAP_INIT;
    enum mg_err err = mg_spans_open(g->p->dir, &q, &spans, d);
    if (err) return err;
    for (uint64_t i = 0; i < g->p->n_launches; i++) {
        const struct mg_plaunch *l = &g->p->launches[i];
        mg_map_set(&launches, range_key(g->p->processes[l->process].pid, l->id), i);
    }
    for (const struct mg_span *s; (s = mg_spans_next(spans));) {
        struct event e;
        uint64_t path = 0;
        if (s->kind == MG_SPAN_MARK && s->mark != MG_MARK_INSTANT)
            mg_map_set(&paths, range_key(s->process, s->correlation), path_of(g, &paths, s));
        if (s->kind != MG_SPAN_KERNEL || !find_kernel(g, &launches, s, &e)) continue;
        if (s->range) mg_map_get(&paths, range_key(s->process, s->range), &path);
        add(g, path ? (mg_str)path : mg_intern_adds(&g->names, "(in no range)"), &e);
    }
    mg_map_release(&paths);
    mg_map_release(&launches);
    mg_spans_close(spans);
    return MG_ERR_OK;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static int by_weight(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns > y->time_ns ? -1 : 1;
    if (x->insts != y->insts) return x->insts > y->insts ? -1 : 1;
    if (x->launches != y->launches) return x->launches > y->launches ? -1 : 1;
    return x->name < y->name ? -1 : 1;
}

/* The family that takes most of the group. */
static mg_str most_of(struct groups *g, const struct group *x)
{
    uint64_t kernel, v, most = 0;
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; mg_map_next(&x->kernels, &i, &kernel, &v);)
        if (found == UINT32_MAX || v > most || (v == most && kernel < found)) found = (uint32_t)kernel, most = v;
    return family_of(g, found);
}

static void number_if(struct mg_table *t, bool has, double v)
{
    if (has)
        mg_table_f64(t, v);
    else
        mg_table_null(t);
}

static void fill(struct groups *g, enum mg_report_by by, struct mg_table *t)
{
    static const char *const heads[] = {"family", "cause", "range", "device"}; /* ORDER mg_report_by */
    struct mg_buf title = MG_BUF_INIT;
    mg_buf_printf(&title, "launches by %s", heads[by]);
    mg_table_begin(t, "groups", title.at);
    mg_buf_release(&title);
    mg_table_column(t, "share", MG_COL_PERCENT, "%");
    mg_table_column(t, "time", MG_COL_TIME_NS, NULL);
    mg_table_column(t, "launches", MG_COL_COUNT, NULL);
    mg_table_column(t, "timed", MG_COL_COUNT, NULL);
    mg_table_column(t, "instrumented", MG_COL_COUNT, NULL);
    mg_table_column(t, "kernels", MG_COL_COUNT, NULL);
    mg_table_column(t, "thread instructions", MG_COL_COUNT, NULL);
    mg_table_column(t, heads[by], MG_COL_TEXT, NULL);
    if (by != MG_BY_FAMILY) mg_table_column(t, "most of it", MG_COL_TEXT, NULL);
    if (g->at.n) qsort(g->at.at, g->at.n, sizeof *g->at.at, by_weight);
    for (uint32_t i = 0; i < g->at.n; i++) {
        const struct group *x = &g->at.at[i];
        mg_table_row(t);
        number_if(t, g->all_ns != 0, 100 * (double)x->time_ns / (double)MG_MAX(g->all_ns, 1u));
        if (x->timed)
            mg_table_u64(t, x->time_ns);
        else
            mg_table_null(t);
        mg_table_u64(t, x->launches);
        mg_table_u64(t, x->timed);
        mg_table_u64(t, x->instrumented);
        mg_table_u64(t, x->kernels.n);
        if (x->counted)
            mg_table_u64(t, x->insts);
        else
            mg_table_null(t);
        mg_table_text(t, mg_intern_text(&g->names, x->name));
        if (by != MG_BY_FAMILY) mg_table_text(t, mg_intern_text(&g->names, most_of(g, x)));
    }
    if (g->all_ns && !g->all_timed) mg_table_note(t, "share: of measured kernel time; not every launch was timed");
}

enum mg_err mg_report_groups(const struct mg_recording *p, const struct mg_report_opts *o, enum mg_report_by by,
                             enum mg_report_form form, struct mg_buf *out, struct mg_diag *d)
{
    struct groups g = {.p = p, .o = o, .all_timed = true};
    struct mg_table t = {0};
    enum mg_err err = MG_ERR_OK;
    mg_intern_init(&g.names);
    if (by == MG_BY_RANGE)
        err = add_spans(&g, d);
    else
        add_launches(&g, by);
    fill(&g, by, &t);
    if (!err && form == MG_FORM_TEXT) {
        mg_add_table(&t.tables.at[0], o, o->top ? o->top : 40, out);
        mg_buf_addc(out, '\n');
        mg_add_coverage(p, out, 10);
    } else if (!err && form == MG_FORM_CSV) {
        mg_add_table_csv(p, &t.tables.at[0], out);
    } else if (!err) {
        struct mg_json j;
        mg_json_init(&j, out, 0);
        mg_json_obj(&j);
        mg_json_key_u64(&j, "margay_json", 1);
        mg_write_table(&j, &t.tables.at[0]);
        mg_json_end(&j, '}');
        mg_buf_addc(out, '\n');
    }
    for (uint32_t i = 0; i < g.at.n; i++) mg_map_release(&g.at.at[i].kernels);
    mg_vec_release(&g.at);
    mg_map_release(&g.of_name);
    mg_intern_release(&g.names);
    mg_table_release(&t);
    return err;
}
