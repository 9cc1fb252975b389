/* The analysis as text and as CSV. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/demangle.h"
#include "study/comm_print.h"

enum { TOP = 8 /* rows of a list */, STEPS = 12 /* supersteps that are shown */ };

static void add_bytes(struct mg_buf *out, uint64_t v)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)v;
    unsigned u = 0;
    while (x >= 1024 && u + 1 < MG_COUNT_OF(units)) x /= 1024, u++;
    mg_buf_printf(out, u ? "%.1f %s" : "%.0f %s", x, units[u]);
}

static void add_row(struct mg_buf *out, const char *label, uint64_t bytes, uint64_t of)
{
    mg_buf_printf(out, "  %-34s %16" PRIu64 " B ", label, bytes);
    if (of) mg_buf_printf(out, " %5.1f %%", 100.0 * (double)bytes / (double)of);
    mg_buf_addc(out, '\n');
}

static void print_volumes(struct mg_buf *out, const struct mg_comm_metrics *m)
{
    mg_buf_adds(out, "\n6.1 volume, and what of it communicates\n");
    add_row(out, "loads", m->total.load, 0);
    add_row(out, "  of an earlier launch's values", m->used.load, m->total.load);
    add_row(out, "stores", m->total.store, 0);
    add_row(out, "  that a later launch reads", m->used.store, m->total.store);
    add_row(out, "atomics", m->total.atomic, 0);
    add_row(out, "  either way", m->used.atomic, m->total.atomic);
}

static int more_common(const struct mg_comm_bin *a, const struct mg_comm_bin *b)
{
    return a->count > b->count;
}

/* The commonest values of b with their shares and, behind them, how many are left. */
static void print_bins(struct mg_buf *out, const char *title, const char *value, const char *what,
                       const mg_comm_bins *b)
{
    uint64_t all = 0, shown = 0;
    mg_comm_bins top = {0};
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t at = top.n;
        all += b->at[i].count;
        while (at && more_common(&b->at[i], &top.at[at - 1])) at--;
        if (at >= TOP) continue;
        if (top.n < TOP) (void)mg_vec_push(&top);
        memmove(&top.at[at + 1 < top.n ? at + 1 : at], &top.at[at], (top.n - at - 1) * sizeof *top.at);
        top.at[at] = b->at[i];
    }
    mg_buf_printf(out, "\n%s: %" PRIu64 " %s, %lu different\n", title, all, what, (unsigned long)b->n);
    for (uint32_t i = 0; i < top.n; i++) {
        mg_buf_printf(out, "  %12" PRIu64 " %-10s %14" PRIu64 "  %5.1f %%\n", top.at[i].value, value, top.at[i].count,
                      100.0 * (double)top.at[i].count / (double)all);
        shown += top.at[i].count;
    }
    if (shown < all)
        mg_buf_printf(out, "  %12s %-10s %14" PRIu64 "  %5.1f %%\n", "others", "", all - shown,
                      100.0 * (double)(all - shown) / (double)all);
    mg_vec_release(&top);
}

/* Partners in the classes 0, 1, 2, 3-4, 5-8, ... */
static void print_degrees(struct mg_buf *out, const char *title, const mg_comm_bins *b)
{
    uint64_t all = 0, least = 0, most = 0;
    for (uint32_t i = 0; i < b->n; i++) all += b->at[i].count;
    mg_buf_printf(out, "\n%s\n", title);
    for (; all && least <= b->at[b->n - 1].value; least = most + 1) {
        uint64_t n = 0;
        char label[48];
        most = least <= 1 ? least : 2 * (least - 1);
        for (uint32_t i = 0; i < b->n; i++)
            if (b->at[i].value >= least && b->at[i].value <= most) n += b->at[i].count;
        if (least == most)
            snprintf(label, sizeof label, "%" PRIu64, least);
        else
            snprintf(label, sizeof label, "%" PRIu64 " to %" PRIu64, least, most);
        if (n)
            mg_buf_printf(out, "  %-16s partners %14" PRIu64 "  %5.1f %%\n", label, n, 100.0 * (double)n / (double)all);
    }
}

static void print_bisection(struct mg_buf *out, const struct mg_comm_metrics *m)
{
    static const char *const names[] = {"x", "y", "z"};
    mg_buf_adds(out, "\n6.4 bisection: bytes between the halves of the grid\n");
    for (int i = 0; i < 3; i++)
        if (m->bisection[i].is_known) add_row(out, names[i], m->bisection[i].bytes, m->bytes);
    if (m->unplaced) add_row(out, "no place (several writers)", m->unplaced, m->bytes);
}

static void print_gaps(struct mg_buf *out, const char *title, const mg_comm_gaps *g)
{
    mg_comm_bins b = {0};
    for (uint32_t i = 0; i < g->n; i++) *mg_vec_push(&b) = (struct mg_comm_bin){g->at[i].bytes, g->at[i].count};
    if (b.n) print_bins(out, title, "bytes", "gaps", &b);
    mg_vec_release(&b);
}

static void print_density(struct mg_buf *out, const struct mg_comm_metrics *m)
{
    uint64_t same = 0, near = 0, reads = 0;
    for (uint32_t i = 0; i < m->density.n; i++) {
        const struct mg_comm_cell *c = &m->density.at[i];
        uint32_t apart = c->source > c->target ? c->source - c->target : c->target - c->source;
        reads += c->reads;
        if (!apart) same += c->reads;
        if (apart == 1) near += c->reads;
    }
    if (!m->density_ctas) return;
    mg_buf_printf(out, "\n6.6 density: %lu of %" PRIu64 " pairs of CTA numbers, %" PRIu64 " reads\n",
                  (unsigned long)m->density.n, (uint64_t)m->density_ctas * m->density_ctas, reads);
    mg_buf_printf(out, "  the same CTA number  %5.1f %% of reads\n  its neighbours       %5.1f %%\n",
                  reads ? 100.0 * (double)same / (double)reads : 0, reads ? 100.0 * (double)near / (double)reads : 0);
}

static void print_steps(struct mg_buf *out, const struct mg_comm_result *r, const struct mg_comm_metrics *m)
{
    mg_buf_adds(out, "\n6.7, 6.9 supersteps: communicated bytes, out-degree, patterns of what they read (bytes)\n");
    mg_buf_printf(out, "  %4s %6s %13s %13s %7s %7s %13s %13s %13s  kernel\n", "step", "stream", "loads", "stores",
                  "mean", "dev.", "1:1", "n:1", "1:n, n:n");
    for (uint32_t i = 0; i < r->n_steps && i < STEPS; i++) {
        const struct mg_comm_step *s = &r->steps[i];
        const struct mg_comm_by_step *b = &m->steps[i];
        struct mg_comm_volume used = mg_comm_sum(s->used, s->n_ctas);
        uint64_t many =
            b->pattern[MG_COMM_SCATTER].bytes + b->pattern[MG_COMM_MULTICAST].bytes + b->pattern[MG_COMM_ALL].bytes;
        mg_buf_printf(out,
                      "  %4lu %6lu %13" PRIu64 " %13" PRIu64 " %7.2f %7.2f %13" PRIu64 " %13" PRIu64 " %13" PRIu64 "  ",
                      (unsigned long)s->superstep, (unsigned long)s->stream, used.load, used.store, b->mean,
                      b->deviation, b->pattern[MG_COMM_POINT_TO_POINT].bytes, b->pattern[MG_COMM_GATHER].bytes, many);
        mg_demangle_add(out, r->kernels[s->kernel], SIZE_MAX);
        mg_buf_addc(out, '\n');
    }
    if (r->n_steps > STEPS) mg_buf_printf(out, "  and %lu more: --json\n", (unsigned long)(r->n_steps - STEPS));
}

static void print_warnings(struct mg_buf *out, const struct mg_comm_study *s)
{
    uint64_t in_launch = 0, unsure = 0, most = 0, atomic = 0;
    for (uint32_t i = 0; i < s->r->n_steps; i++) {
        in_launch += s->r->steps[i].in_launch;
        atomic += s->r->steps[i].in_launch_atomic;
        unsure += s->r->steps[i].ambiguous;
        most += s->r->steps[i].ambiguous_most;
    }
    mg_buf_adds(out, "\ninside launches\n");
    add_row(out, "behind a barrier or in the warp", in_launch, 0);
    add_row(out, "atomics of several on one cell", atomic, 0);
    add_row(out, "reads of unknown order", unsure, 0);
    if (unsure) {
        mg_buf_adds(out, "  warning: these launches read what others of the same launch store to: counts may depend on "
                         "timing;\n  transfers between launches are ");
        mg_buf_printf(out, "0 to %" PRIu64 " bytes more\n", most);
    }
    if (!s->source) return;
    if (s->source->untraced)
        mg_buf_printf(out, "  warning: %" PRIu64 " of %" PRIu64 " launches ran native: what they wrote is not known\n",
                      s->source->untraced, s->source->launches);
    if (s->source->is_partial) mg_buf_adds(out, "  warning: the trace leaves accesses out: all numbers are too low\n");
    if (s->source->graph_copies)
        mg_buf_printf(out, "  warning: %" PRIu64 " copies inside graphs are not known\n", s->source->graph_copies);
    if (s->source->array_copies)
        mg_buf_printf(out, "  warning: %" PRIu64 " copies of arrays are not looked at\n", s->source->array_copies);
    if (s->source->host_bytes)
        mg_buf_printf(out,
                      "  warning: the host may write %" PRIu64
                      " bytes (managed, mapped) unseen: what it writes counts as the last kernel's\n",
                      s->source->host_bytes);
    if (s->source->unseen)
        mg_buf_printf(out, "  warning: not looked at, run by %" PRIu64 " lanes: %s\n", s->source->unseen,
                      s->source->unseen_ops);
    if (s->source->damaged)
        mg_buf_printf(out, "  warning: %" PRIu64 " damaged pieces of the trace are left out\n", s->source->damaged);
}

void mg_comm_print_text(const struct mg_comm_study *s, struct mg_buf *out)
{
    const struct mg_comm_result *r = s->r;
    const struct mg_comm_metrics *m = s->m;
    mg_buf_printf(out, "communication: %lu launches, %lu kernels, entity %s, match %s\n", (unsigned long)r->n_steps,
                  (unsigned long)r->n_kernels, mg_comm_entity_name(r->opts.entity),
                  r->opts.match == MG_COMM_START ? "start" : "byte");
    mg_buf_printf(out, "%lu transfers, ", (unsigned long)r->n_edges);
    add_bytes(out, m->bytes);
    mg_buf_adds(out, " distinct\n");
    print_volumes(out, m);
    print_bins(out, "6.2 transfer sizes", "bytes", "transfers", &m->sizes);
    print_degrees(out, "6.3 in-degree: sources of an entity", &m->in_degree);
    print_degrees(out, "6.3 out-degree: targets of an entity", &m->out_degree);
    print_bisection(out, m);
    print_gaps(out, "6.5 stride of loads that communicate", &r->load_gaps);
    print_gaps(out, "6.5 stride of stores that communicate", &r->store_gaps);
    print_density(out, m);
    print_steps(out, r, m);
    print_bins(out, "6.8 supersteps between write and read", "between", "bytes", &m->distance);
    if (m->other_stream) add_row(out, "between streams", m->other_stream, 0);
    mg_buf_adds(out, "\nhost\n");
    add_row(out, "copied in", r->copied_in, 0);
    add_row(out, "copied out", r->copied_out, 0);
    add_row(out, "copied within, set", r->copied_within + r->cleared, 0);
    print_warnings(out, s);
    if (s->advice) mg_comm_print_advice_text(s, out);
}

static void add_field(struct mg_buf *out, const char *text)
{
    mg_buf_addc(out, '"');
    for (; *text; text++) {
        if (*text == '"') mg_buf_addc(out, '"');
        mg_buf_addc(out, *text);
    }
    mg_buf_addc(out, '"');
}

static void add_end(struct mg_buf *out, const struct mg_comm_result *r, uint32_t step, uint32_t entity)
{
    const struct mg_comm_step *s = &r->steps[step];
    add_field(out, r->kernels[s->kernel]);
    mg_buf_printf(out, ",%" PRIu64 ",%lu,%lu,%lu,%lu,", s->id, (unsigned long)s->superstep, (unsigned long)s->device,
                  (unsigned long)s->context, (unsigned long)s->stream);
    if (entity == MG_COMM_SEVERAL)
        mg_buf_adds(out, "several,");
    else if (mg_comm_has_ctas(r))
        mg_buf_printf(out, "%lu,%lu", (unsigned long)mg_comm_cta_of(s, entity), (unsigned long)(entity % s->per_cta));
    else
        mg_buf_printf(out, "%lu,0", (unsigned long)entity);
}

void mg_comm_print_csv(const struct mg_comm_study *s, struct mg_buf *out)
{
    static const char *const ends[] = {"source", "target"};
    const struct mg_comm_result *r = s->r;
    for (int i = 0; i < 2; i++)
        mg_buf_printf(out, "%s_kernel,%s_launch,%s_superstep,%s_device,%s_context,%s_stream,%s_%s,%s_part,", ends[i],
                      ends[i], ends[i], ends[i], ends[i], ends[i], ends[i],
                      mg_comm_has_ctas(r) ? "cta" : mg_comm_entity_name(r->opts.entity), ends[i]);
    mg_buf_adds(out, "bytes,executed,reads\n");
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_edge *e = &r->edges[i];
        add_end(out, r, e->source_step, e->source);
        mg_buf_addc(out, ',');
        add_end(out, r, e->target_step, e->target);
        mg_buf_printf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", e->bytes, e->executed, e->reads);
    }
}
