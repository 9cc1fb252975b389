/* What `margay run` says when the program has ended: at most one screen, the coverage line last. */
#include <stdlib.h>
#include <string.h>

#include "report/priv.h"

#define SUMMARY_KERNELS 8
#define SUMMARY_REASONS 8

void mg_add_grouped(struct mg_buf *out, uint64_t v)
{
    char text[32];
    size_t at = sizeof text, digits = 0;
    do {
        if (digits && digits % 3 == 0) text[--at] = ',';
        text[--at] = (char)('0' + v % 10);
        digits++;
    } while (v /= 10);
    mg_buf_add(out, text + at, sizeof text - at);
}

void mg_add_coverage(const struct mg_profile *p, struct mg_buf *out, uint32_t max_rows)
{
    struct mg_coverage c;
    mg_coverage_init(&c, p);
    for (uint32_t i = 0; i < c.n_rows && i < max_rows; i++) {
        mg_buf_printf(out, "  %s: ", c.rows[i].kernel);
        mg_add_grouped(out, c.rows[i].launches);
        mg_buf_printf(out, " %s, %s\n", mg_ran_text(c.rows[i].ran), c.rows[i].reason);
    }
    if (c.n_rows > max_rows) mg_buf_printf(out, "  and %u more kernels or reasons\n", c.n_rows - max_rows);
    mg_buf_adds(out, "coverage: ");
    mg_add_grouped(out, c.instrumented);
    mg_buf_adds(out, " of ");
    mg_add_grouped(out, c.launches);
    mg_buf_printf(out, " launches instrumented (%.1f %%)", c.launches ? 100.0 * (double)c.instrumented / (double)c.launches : 0);
    if (c.timed) mg_buf_printf(out, ", %.1f %% of kernel time (%.1f %% of launches timed)", c.time_pct, c.timed_pct);
    if (c.failed) {
        mg_buf_adds(out, ", ");
        mg_add_grouped(out, c.failed);
        mg_buf_adds(out, " failed");
    }
    if (c.unknown) {
        mg_buf_adds(out, ", ");
        mg_add_grouped(out, c.unknown);
        mg_buf_adds(out, " unknown");
    }
    mg_buf_addc(out, '\n');
    mg_coverage_release(&c);
}

struct hot { const struct mg_pkernel *k; struct mg_kernel_sums s; };

static int by_heat(const void *a, const void *b)
{
    const struct hot *x = a, *y = b;
    if (x->s.thread_insts != y->s.thread_insts) return x->s.thread_insts > y->s.thread_insts ? -1 : 1;
    return x->k->id < y->k->id ? -1 : 1;
}

void mg_report_summary(const struct mg_profile *p, struct mg_buf *out)
{
    struct hot *hot = mg_xcalloc(p->n_kernels + 1, sizeof *hot);
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        hot[i].k = &p->kernels[i];
        mg_kernel_sums_init(&hot[i].s, hot[i].k);
    }
    if (p->n_kernels) {
        qsort(hot, p->n_kernels, sizeof *hot, by_heat);
        mg_buf_printf(out, "%12s %18s %18s  kernel\n", "launches", "thread insts", "warp insts");
    }
    for (uint32_t i = 0; i < p->n_kernels && i < SUMMARY_KERNELS; i++) {
        struct mg_buf cell = MG_BUF_INIT;
        mg_add_grouped(&cell, hot[i].k->launches);
        mg_buf_printf(out, "%12s", cell.at);
        mg_buf_reset(&cell);
        if (hot[i].s.measured) mg_add_grouped(&cell, hot[i].s.thread_insts);
        else mg_buf_adds(&cell, "-");
        mg_buf_printf(out, " %18s", cell.at);
        mg_buf_reset(&cell);
        if (hot[i].s.has_warps) mg_add_grouped(&cell, hot[i].s.warp_insts);
        else mg_buf_adds(&cell, "-");
        mg_buf_printf(out, " %18s  %s\n", cell.at, hot[i].k->demangled ? hot[i].k->demangled : hot[i].k->name);
        mg_buf_release(&cell);
    }
    if (p->n_kernels > SUMMARY_KERNELS) mg_buf_printf(out, "  and %u more kernels\n", p->n_kernels - SUMMARY_KERNELS);
    mg_add_coverage(p, out, SUMMARY_REASONS);
    for (uint32_t i = 0; i < p->n_kernels; i++) mg_kernel_sums_release(&hot[i].s);
    free(hot);
}
