/* Two profiles side by side: what the same kernels did in each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare.h"
#include "report/compare_page.h"
#include "report/priv.h"

/* Blocks whose counts may depend on timing stand apart: `fixed` is what the others executed. */
struct pair {
    const struct mg_pkernel *a, *b;
    struct mg_kernel_sums sa, sb;
    uint64_t fixed_a, fixed_b;
    double pct;
    bool apart; /* blocks that stand apart differ */
};

static bool same_shape(const struct pair *p)
{
    return p->a && p->b && p->a->n_blocks == p->b->n_blocks;
}

static bool stands_apart(const struct pair *p, uint32_t block)
{
    return p->a->blocks[block].timing_dependent == 1 || p->b->blocks[block].timing_dependent == 1;
}

static uint64_t fixed_of(const struct mg_pkernel *k, const struct pair *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < k->n_blocks; i++)
        if (same_shape(p) ? !stands_apart(p, i) : k->blocks[i].timing_dependent != 1)
            sum += k->blocks[i].threads * k->blocks[i].n_insts;
    return sum;
}

static const struct mg_pkernel *partner(const struct mg_recording *p, const struct mg_pkernel *k, const bool *taken)
{
    for (int exact = 1; exact >= 0; exact--)
        for (uint32_t i = 0; i < p->n_kernels; i++)
            if (!taken[i] && !strcmp(p->kernels[i].name, k->name) &&
                (!exact || !strcmp(p->kernels[i].module, k->module)))
                return &p->kernels[i];
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
    return difference(p->fixed_a, p->fixed_b);
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

static void find_fixed(struct pair *p)
{
    if (!p->a || !p->b) return;
    p->fixed_a = fixed_of(p->a, p);
    p->fixed_b = fixed_of(p->b, p);
    p->apart = p->sa.measured && p->sb.measured && p->sa.thread_insts - p->fixed_a != p->sb.thread_insts - p->fixed_b;
    for (uint32_t i = 0; same_shape(p) && i < p->a->n_blocks; i++)
        p->apart |= stands_apart(p, i) && p->a->blocks[i].threads != p->b->blocks[i].threads;
}

static struct pair *pair_up(const struct mg_recording *a, const struct mg_recording *b, const struct mg_report_opts *o,
                            uint32_t *n)
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
        find_fixed(&pairs[i]);
        pairs[i].pct = pair_difference(&pairs[i]);
    }
    free(taken);
    return pairs;
}

static void add_pct(struct mg_buf *out, double pct, bool apart)
{
    if (pct == 0 && apart)
        mg_buf_printf(out, "%11s", "timing");
    else if (isinf(pct))
        mg_buf_printf(out, "%11s", "only one");
    else if (pct == 0)
        mg_buf_printf(out, "%11s", "equal");
    else
        mg_buf_printf(out, "%+9.3g %%", pct);
}

/* Blocks whose entries differ, the largest difference in instructions first; apart: those whose counts may
 * depend on timing, else the others. */
static void write_blocks(const struct pair *p, bool apart, struct mg_buf *out)
{
    uint32_t differing = 0, worst = 0, of = 0;
    uint64_t most = 0;
    if (!same_shape(p) || !p->sa.measured || !p->sb.measured) return;
    for (uint32_t i = 0; i < p->a->n_blocks; i++) {
        const struct mg_pblock *x = &p->a->blocks[i], *y = &p->b->blocks[i];
        uint64_t d = (x->threads > y->threads ? x->threads - y->threads : y->threads - x->threads) * x->n_insts;
        if (stands_apart(p, i) != apart) continue;
        of++;
        differing += d != 0;
        if (d > most) {
            most = d;
            worst = i;
        }
    }
    if (!differing) return;
    const struct mg_pblock *x = &p->a->blocks[worst], *y = &p->b->blocks[worst];
    mg_buf_printf(out, "%12s%u of %u blocks%s differ, most block %u", "", differing, of,
                  apart ? " whose counts may depend on timing" : "", worst);
    if (x->file && x->line) mg_buf_printf(out, " (%s:%u)", x->file, x->line);
    mg_buf_adds(out, ": thread entries ");
    mg_add_grouped(out, x->threads);
    mg_buf_adds(out, " and ");
    mg_add_grouped(out, y->threads);
    mg_buf_addc(out, '\n');
}

static void release_pairs(struct pair *pairs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        mg_kernel_sums_release(&pairs[i].sa);
        mg_kernel_sums_release(&pairs[i].sb);
    }
    free(pairs);
}

static double worst_of(const struct pair *pairs, uint32_t n)
{
    double worst = 0;
    for (uint32_t i = 0; i < n; i++) worst = fmax(worst, fabs(pairs[i].pct));
    return worst;
}

double mg_report_diff(const struct mg_recording *a, const struct mg_recording *b, const struct mg_report_opts *o,
                      struct mg_buf *out)
{
    uint32_t n, top = o && o->top ? o->top : 20, equal = 0, apart = 0;
    struct pair *pairs = pair_up(a, b, o, &n);
    if (n) qsort(pairs, n, sizeof *pairs, by_size);
    struct mg_comparison c;
    mg_comparison_init(&c, a, b, o);
    mg_add_comparison(&c, top, out);
    mg_comparison_release(&c);
    mg_buf_printf(out, "\n%11s%10s%10s%22s%22s  kernel\n", "difference", "launches", "", "thread instructions", "");
    for (uint32_t i = 0; i < n; i++) {
        const struct pair *p = &pairs[i];
        equal += p->pct == 0 && !p->apart;
        apart += p->pct == 0 && p->apart;
        if (i >= top) continue;
        add_pct(out, p->pct, p->apart);
        mg_add_count(out, p->a ? p->a->launches : 0, p->a != NULL, false, 10);
        mg_add_count(out, p->b ? p->b->launches : 0, p->b != NULL, false, 10);
        mg_add_count(out, p->sa.thread_insts, p->sa.measured, p->a && p->a->estimated, 22);
        mg_add_count(out, p->sb.thread_insts, p->sb.measured, p->b && p->b->estimated, 22);
        mg_buf_adds(out, "  ");
        mg_add_name(out, (p->a ? p->a : p->b)->demangled, 100);
        mg_buf_addc(out, '\n');
        write_blocks(p, false, out);
        write_blocks(p, true, out);
    }
    if (n > top) mg_buf_printf(out, "  and %u more kernels\n", n - top);
    mg_buf_printf(out, "%u of %u kernels equal in thread instructions\n", equal, n);
    if (apart)
        mg_buf_printf(out,
                      "%u more differ only in blocks whose counts may depend on timing: no difference to --fail-over\n",
                      apart);
    double worst = worst_of(pairs, n);
    release_pairs(pairs, n);
    return worst;
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void key_two(struct mg_json *j, const char *key, bool has_a, uint64_t a, bool has_b, uint64_t b)
{
    mg_json_key(j, key);
    mg_json_arr(j);
    if (has_a)
        mg_json_u64(j, a);
    else
        mg_json_null(j);
    if (has_b)
        mg_json_u64(j, b);
    else
        mg_json_null(j);
    mg_json_end(j, ']');
}

static void key_pct(struct mg_json *j, const char *key, double pct)
{
    mg_json_key(j, key);
    if (isinf(pct))
        mg_json_null(j);
    else
        mg_json_f64(j, pct);
}

static void json_blocks(struct mg_json *j, const struct pair *p)
{
    mg_json_key(j, "blocks");
    mg_json_arr(j);
    for (uint32_t i = 0; same_shape(p) && i < p->a->n_blocks; i++) {
        const struct mg_pblock *x = &p->a->blocks[i], *y = &p->b->blocks[i];
        if (!x->has_threads || !y->has_threads || x->threads == y->threads) continue;
        mg_json_obj(j);
        mg_json_key_u64(j, "id", i);
        mg_json_key_str(j, "file", x->file);
        mg_json_key_u64_if(j, "line", x->line != 0, x->line);
        mg_json_key_u64(j, "ptx_line", x->ptx_line);
        key_two(j, "thread_entries", true, x->threads, true, y->threads);
        mg_json_key_bool(j, "timing_dependent", stands_apart(p, i));
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

double mg_report_diff_json(const struct mg_recording *a, const struct mg_recording *b, const struct mg_report_opts *o,
                           double fail_over, struct mg_buf *out)
{
    struct mg_json j;
    uint32_t n;
    struct pair *pairs = pair_up(a, b, o, &n);
    double worst = worst_of(pairs, n);
    if (n) qsort(pairs, n, sizeof *pairs, by_size);
    mg_json_init(&j, out, 1);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    key_pct(&j, "difference_pct", worst);
    mg_json_key_bool(&j, "fails", fail_over >= 0 && worst > fail_over);
    struct mg_comparison c;
    mg_comparison_init(&c, a, b, o);
    mg_write_comparison(&c, &j);
    mg_comparison_release(&c);
    mg_json_key(&j, "kernels");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < n; i++) {
        const struct pair *p = &pairs[i];
        const struct mg_pkernel *k = p->a ? p->a : p->b;
        mg_json_obj(&j);
        mg_json_key_str(&j, "name", k->name);
        mg_json_key_str(&j, "demangled", k->demangled);
        key_two(&j, "launches", p->a, p->a ? p->a->launches : 0, p->b, p->b ? p->b->launches : 0);
        key_two(&j, "thread_instructions", p->sa.measured, p->sa.thread_insts, p->sb.measured, p->sb.thread_insts);
        key_two(&j, "compared_instructions", p->sa.measured && p->b, p->fixed_a, p->sb.measured && p->a, p->fixed_b);
        key_pct(&j, "difference_pct", p->pct);
        mg_json_key_bool(&j, "timing_differs", p->apart);
        json_blocks(&j, p);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
    release_pairs(pairs, n);
    return worst;
}

void mg_report_diff_html(const struct mg_recording *a, const struct mg_recording *b, const struct mg_report_opts *o,
                         struct mg_buf *out)
{
    uint32_t n;
    struct pair *pairs = pair_up(a, b, o, &n);
    struct mg_compare_kernel *kernels = mg_xcalloc(n + 1, sizeof *kernels);
    if (n) qsort(pairs, n, sizeof *pairs, by_size);
    for (uint32_t i = 0; i < n; i++) {
        const struct pair *p = &pairs[i];
        kernels[i] = (struct mg_compare_kernel){.name = (p->a ? p->a : p->b)->demangled,
                                                .has = {p->a, p->b},
                                                .pct = p->pct,
                                                .launches = {p->a ? p->a->launches : 0, p->b ? p->b->launches : 0},
                                                .insts = {p->sa.thread_insts, p->sb.thread_insts},
                                                .measured = {p->sa.measured, p->sb.measured},
                                                .timing = p->pct == 0 && p->apart};
    }
    struct mg_comparison c;
    mg_comparison_init(&c, a, b, o);
    mg_add_comparison_page(&c, a, b, kernels, n, out);
    mg_comparison_release(&c);
    release_pairs(pairs, n);
    free(kernels);
}
