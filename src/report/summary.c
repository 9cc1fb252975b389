/* What `margay run` says when the program has ended: at most one screen, the coverage line last. */
#include "report/advice/advice.h"
#include "report/priv.h"

#define SUMMARY_KERNELS  8
#define SUMMARY_REASONS  6
#define SUMMARY_MARKED   3 /* kernels that a line names */
#define SUMMARY_FINDINGS 3
#define SUMMARY_LINES    20 /* of tables of tools, two of each being its title and its heading */

/* Kernels with blocks of which something is to be known: how many, by `of`. */
static void add_marked(const struct mg_recording *p, const struct mg_hot_kernel *hot, uint32_t n, const char *what,
                       uint32_t (*of)(const struct mg_recording *p, const struct mg_hot_kernel *k), struct mg_buf *out)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t blocks = of(p, &hot[i]);
        if (!blocks) continue;
        if (told++ >= SUMMARY_MARKED) continue;
        mg_buf_adds(out, told == 1 ? what : ", ");
        mg_buf_printf(out, "%u of %u blocks of ", blocks, hot[i].k->n_blocks);
        mg_add_kernel_name(out, p, hot[i].k, 60);
    }
    if (told > SUMMARY_MARKED) mg_buf_printf(out, " and of %u more kernels", told - SUMMARY_MARKED);
    if (told) mg_buf_addc(out, '\n');
}

static uint32_t by_timing(const struct mg_recording *p, const struct mg_hot_kernel *k)
{
    (void)p;
    return k->s.measured ? mg_timing_blocks(k->k) : 0;
}

static uint32_t apart(const struct mg_recording *p, const struct mg_hot_kernel *k)
{
    return mg_told_apart(p, k->k);
}

/* The first findings, where tools were asked that find some. */
static void add_findings(const struct mg_recording *p, struct mg_buf *out)
{
    struct mg_facts facts;
    struct mg_findings list;
    mg_facts_init(&facts, p, NULL);
    mg_findings_init(&list, &facts);
    mg_add_findings(&list, p, 120, SUMMARY_FINDINGS, out);
    mg_findings_release(&list);
    mg_facts_release(&facts);
}

void mg_report_summary(const struct mg_recording *p, struct mg_buf *out)
{
    uint32_t n;
    struct mg_hot_kernel *hot = mg_hot_kernels(p, NULL, &n);
    if (n)
        mg_buf_printf(out, "%10s %21s %19s %7s  kernel\n", "launches", "thread instructions", "warp instructions",
                      "lanes");
    for (uint32_t i = 0; i < n && i < SUMMARY_KERNELS; i++) {
        const struct mg_kernel_sums *s = &hot[i].s;
        mg_add_count(out, hot[i].k->launches, true, false, 10);
        mg_add_count(out, s->thread_insts, s->measured, hot[i].k->estimated, 22);
        mg_add_count(out, s->warp_insts, s->has_warps, hot[i].k->estimated, 20);
        if (s->has_warps && s->warp_insts)
            mg_buf_printf(out, " %5.1f %%  ", 100.0 * (double)s->thread_insts / (32.0 * (double)s->warp_insts));
        else
            mg_buf_adds(out, "       -  ");
        mg_add_kernel_name(out, p, hot[i].k, 60);
        while (out->n && out->at[out->n - 1] == ' ') out->at[--out->n] = 0;
        mg_buf_addc(out, '\n');
    }
    if (n > SUMMARY_KERNELS) mg_buf_printf(out, "  and %u more kernels\n", n - SUMMARY_KERNELS);
    add_marked(p, hot, n, "counts that may depend on timing: ", by_timing, out);
    add_marked(p, hot, n, "lanes may meet elsewhere in native code: ", apart, out);
    uint32_t lines = SUMMARY_LINES / MG_MAX(p->n_uses, 1u), rows = lines > 4 ? MG_MIN(lines - 4, 8u) : 1;
    if (p->n_uses <= MG_MOST_TABLES)
        mg_add_tools(p, &(struct mg_report_opts){.size = sizeof(struct mg_report_opts)}, rows, true, out);
    add_findings(p, out);
    if (!p->n_processes && !p->n_empty)
        mg_buf_adds(out, "no CUDA call was seen\n");
    else if (p->n_processes && !p->n_launches && !p->n_unknowns)
        mg_buf_adds(out, "no kernel was launched\n");
    mg_add_coverage(p, out, SUMMARY_REASONS);
    mg_hot_release(hot, n);
}
