/* Two profiles side by side: what the same kernels did in each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/priv.h"

struct pair { const struct mg_pkernel *a, *b; struct mg_kernel_sums sa, sb; double pct; };

static const struct mg_pkernel *partner(const struct mg_profile *p, const struct mg_pkernel *k, const bool *taken)
{
    for (int exact = 1; exact >= 0; exact--)
        for (uint32_t i = 0; i < p->n_kernels; i++)
            if (!taken[i] && !strcmp(p->kernels[i].name, k->name) && (!exact || !strcmp(p->kernels[i].module, k->module))) return &p->kernels[i];
    return NULL;
}

static double difference(uint64_t a, uint64_t b)
{
    if (a == b) return 0;
    return a ? 100.0 * ((double)b - (double)a) / (double)a : INFINITY;
}

static double pair_difference(const struct pair *p)
{
    if (!p->a || !p->b || p->sa.measured != p->sb.measured) return INFINITY;
    if (!p->sa.measured) return difference(p->a->launches, p->b->launches);
    return difference(p->sa.thread_insts, p->sb.thread_insts);
}

static int by_size(const void *x, const void *y)
{
    const struct pair *p = x, *q = y;
    double a = fabs(p->pct), b = fabs(q->pct);
    if (a != b) return a > b ? -1 : 1;
    uint64_t m = MG_MAX(p->sa.thread_insts, p->sb.thread_insts), n = MG_MAX(q->sa.thread_insts, q->sb.thread_insts);
    if (m != n) return m > n ? -1 : 1;
    return strcmp((p->a ? p->a : p->b)->name, (q->a ? q->a : q->b)->name);
}

static struct pair *pair_up(const struct mg_profile *a, const struct mg_profile *b, const struct mg_report_opts *o, uint32_t *n)
{
    struct pair *pairs = mg_xcalloc(a->n_kernels + b->n_kernels + 1, sizeof *pairs);
    bool *taken = mg_xcalloc(b->n_kernels + 1, sizeof *taken);
    *n = 0;
    for (uint32_t i = 0; i < a->n_kernels; i++) {
        if (!mg_report_shows(o, &a->kernels[i])) continue;
        struct pair *p = &pairs[(*n)++];
        p->a = &a->kernels[i];
        p->b = partner(b, p->a, taken);
        if (p->b) taken[p->b->id] = true;
    }
    for (uint32_t i = 0; i < b->n_kernels; i++)
        if (!taken[i] && mg_report_shows(o, &b->kernels[i])) pairs[(*n)++].b = &b->kernels[i];
    for (uint32_t i = 0; i < *n; i++) {
        if (pairs[i].a) mg_kernel_sums_init(&pairs[i].sa, pairs[i].a);
        if (pairs[i].b) mg_kernel_sums_init(&pairs[i].sb, pairs[i].b);
        pairs[i].pct = pair_difference(&pairs[i]);
    }
    free(taken);
    return pairs;
}

static void add_pct(struct mg_buf *out, double pct)
{
    if (isinf(pct)) mg_buf_printf(out, "%11s", "only one");
    else if (pct == 0) mg_buf_printf(out, "%11s", "equal");
    else mg_buf_printf(out, "%+9.3g %%", pct);
}

/* Blocks whose entries differ, the largest difference in instructions first. */
static void write_blocks(const struct pair *p, struct mg_buf *out)
{
    uint32_t differing = 0, worst = 0;
    uint64_t most = 0;
    if (!p->a || !p->b || p->a->n_blocks != p->b->n_blocks || !p->sa.measured || !p->sb.measured) return;
    for (uint32_t i = 0; i < p->a->n_blocks; i++) {
        const struct mg_pblock *x = &p->a->blocks[i], *y = &p->b->blocks[i];
        uint64_t d = (x->threads > y->threads ? x->threads - y->threads : y->threads - x->threads) * x->n_insts;
        differing += d != 0;
        if (d > most) {
            most = d;
            worst = i;
        }
    }
    if (!differing) return;
    const struct mg_pblock *x = &p->a->blocks[worst], *y = &p->b->blocks[worst];
    mg_buf_printf(out, "%12s%u of %u blocks differ, most block %u", "", differing, p->a->n_blocks, worst);
    if (x->file) mg_buf_printf(out, " (%s:%u)", x->file, x->line);
    mg_buf_adds(out, ": thread entries ");
    mg_add_grouped(out, x->threads);
    mg_buf_adds(out, " and ");
    mg_add_grouped(out, y->threads);
    mg_buf_addc(out, '\n');
}

double mg_report_diff(const struct mg_profile *a, const struct mg_profile *b, const struct mg_report_opts *o, struct mg_buf *out)
{
    uint32_t n, top = o && o->top ? o->top : 20, equal = 0;
    double worst = 0;
    struct pair *pairs = pair_up(a, b, o, &n);
    if (n) qsort(pairs, n, sizeof *pairs, by_size);
    mg_buf_printf(out, "%11s%10s%10s%22s%22s  kernel\n", "difference", "launches", "", "thread instructions", "");
    for (uint32_t i = 0; i < n; i++) {
        const struct pair *p = &pairs[i];
        equal += p->pct == 0;
        if (fabs(p->pct) > worst) worst = fabs(p->pct);
        if (i >= top) continue;
        add_pct(out, p->pct);
        mg_add_count(out, p->a ? p->a->launches : 0, p->a != NULL, false, 10);
        mg_add_count(out, p->b ? p->b->launches : 0, p->b != NULL, false, 10);
        mg_add_count(out, p->sa.thread_insts, p->sa.measured, p->a && p->a->estimated, 22);
        mg_add_count(out, p->sb.thread_insts, p->sb.measured, p->b && p->b->estimated, 22);
        mg_buf_printf(out, "  %s\n", (p->a ? p->a : p->b)->demangled);
        write_blocks(p, out);
    }
    if (n > top) mg_buf_printf(out, "  and %u more kernels\n", n - top);
    mg_buf_printf(out, "%u of %u kernels equal in thread instructions\n", equal, n);
    for (uint32_t i = 0; i < n; i++) {
        mg_kernel_sums_release(&pairs[i].sa);
        mg_kernel_sums_release(&pairs[i].sb);
    }
    free(pairs);
    return worst;
}
