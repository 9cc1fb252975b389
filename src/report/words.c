/* Numbers, bars and the coverage line in words. */
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/json_read.h"
#include "report/priv.h"

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

void mg_add_right(struct mg_buf *out, const char *text, uint32_t width)
{
    for (size_t n = strlen(text); n < width; n++) mg_buf_addc(out, ' ');
    mg_buf_adds(out, text);
}

void mg_add_left(struct mg_buf *out, const char *text, uint32_t width)
{
    size_t n = strlen(text);
    if (n > width && width > 2)
        mg_buf_printf(out, "%.*s..", (int)width - 2, text);
    else
        mg_buf_adds(out, text);
    for (; n < width; n++) mg_buf_addc(out, ' ');
}

void mg_add_time(struct mg_buf *out, uint64_t ns)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    for (size_t i = 0; i < MG_COUNT_OF(units); i++)
        if ((double)ns >= units[i].unit) {
            mg_buf_printf(out, "%.3g %s", (double)ns / units[i].unit, units[i].name);
            return;
        }
    mg_buf_printf(out, "%llu ns", (unsigned long long)ns);
}

/* Eighths of a cell in UTF-8, or '#'. */
void mg_add_bar(struct mg_buf *out, double share, uint32_t width, bool ascii)
{
    uint32_t eighths = (uint32_t)(share * width * 8 + 0.5), full = eighths / 8, rest = eighths % 8;
    for (uint32_t i = 0; i < full; i++) mg_buf_adds(out, ascii ? "#" : "\xe2\x96\x88");
    if (!ascii && rest) {
        const char part[] = {(char)0xe2, (char)0x96, (char)(0x90 - rest), 0}; /* U+2588..U+258F */
        mg_buf_adds(out, part);
    } else if (rest >= 4) {
        mg_buf_addc(out, '#');
    }
}

void mg_add_count(struct mg_buf *out, uint64_t v, bool measured, bool estimated, uint32_t width)
{
    struct mg_buf cell = MG_BUF_INIT;
    if (estimated && measured) mg_buf_addc(&cell, '~');
    if (measured)
        mg_add_grouped(&cell, v);
    else
        mg_buf_addc(&cell, '-');
    if (cell.n >= width) mg_buf_addc(out, ' '); /* never onto the column before */
    mg_add_right(out, cell.at, width);
    mg_buf_release(&cell);
}

/* Counts of PTX that is not the one behind the machine code (an older virtual architecture). */
static void add_other_ptx(const struct mg_recording *p, struct mg_buf *out)
{
    for (uint32_t i = 0; i < p->n_tools; i++) {
        const struct mg_ptool *t = &p->tools[i];
        if (strcmp(t->tool, "margay") || strcmp(t->key, "virtual_architecture")) continue;
        struct mg_arena arena = MG_ARENA_INIT;
        const struct mg_jval *list = mg_jval_parse(&arena, t->json, strlen(t->json)), *first = mg_jval_first(list);
        unsigned ptx = (unsigned)mg_jval_u64(first, "ptx"), code = (unsigned)mg_jval_u64(first, "code"),
                 n = list ? list->n : 0;
        mg_arena_release(&arena);
        if (!first) continue;
        mg_buf_printf(out, "  %u kernel%s counted in PTX for compute_%u, while the machine code is of compute_%u\n", n,
                      n == 1 ? "" : "s", ptx, code);
    }
}

/* Are there launches of this kernel that did complete, for all that is known, but whose end could not be written? */
static bool is_unwritten(const struct mg_recording *p, uint32_t kernel)
{
    for (uint64_t i = 0; i < p->n_launches; i++)
        if (p->launches[i].kernel == kernel && p->launches[i].unended) return true;
    return false;
}

/* Launches of a kernel that are not in the counts, by id: those that did not complete, and those that the program wrote
 * into. */
static void add_uncounted(const struct mg_recording *p, uint32_t kernel, bool spoilt, bool whys, struct mg_buf *out)
{
    enum { named = 6 };
    const struct mg_pkernel *k = &p->kernels[kernel];
    const uint64_t all = spoilt ? k->spoilt : k->incomplete;
    const char *why = NULL;
    uint32_t n = 0;
    if (!all) return;
    mg_buf_printf(out, "  %s: ", k->demangled);
    mg_add_grouped(out, all);
    mg_buf_adds(out, spoilt                    ? " without counts ("
                     : is_unwritten(p, kernel) ? " ended after recording had stopped ("
                                               : " did not complete (");
    for (uint64_t i = 0; i < p->n_launches && n <= named; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if ((spoilt ? !l->spoilt : l->complete) || l->kernel != kernel) continue;
        if (n == named)
            mg_buf_adds(out, ", ...");
        else
            mg_buf_printf(out, "%s%llu", n ? ", " : all == 1 ? "launch " : "launches ", (unsigned long long)l->id);
        why = why ? why : l->why;
        n++;
    }
    if (spoilt)
        mg_buf_printf(out, "): %s\n", why);
    else
        mg_buf_printf(out, "): not in the counts%s%s\n", why && whys ? "; " : "", why && whys ? why : "");
}

/* "99.9 %": what is not all never reads as 100. */
static void add_share(struct mg_buf *out, double pct, bool all)
{
    mg_buf_printf(out, "%.1f %%", !all && pct < 100 && pct > 99.9 ? 99.9 : pct);
}

void mg_add_coverage(const struct mg_recording *p, struct mg_buf *out, uint32_t max_rows)
{
    struct mg_coverage c;
    mg_coverage_init(&c, p);
    for (uint32_t i = 0; i < c.n_rows && i < max_rows; i++) {
        const char *name = c.rows[i].kernel;
        for (uint32_t k = 0; k < p->n_kernels; k++)
            if (p->kernels[k].name == name) name = p->kernels[k].demangled;
        char *plain = c.rows[i].ran == MG_RAN_COUNT ? mg_demangle(name) : NULL; /* no kernel of the profile */
        mg_buf_printf(out, "  %s: ", plain ? plain : name);
        free(plain);
        if (c.rows[i].launches) mg_add_grouped(out, c.rows[i].launches), mg_buf_addc(out, ' ');
        mg_buf_printf(out, "%s, %s\n", mg_ran_text(c.rows[i].ran), c.rows[i].reason);
    }
    if (c.n_rows > max_rows)
        mg_buf_printf(out, "  and %u more kernels or reasons (margay report --json names all)\n", c.n_rows - max_rows);
    uint32_t uncounted = 0;
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        if (!p->kernels[i].incomplete && !p->kernels[i].spoilt) continue;
        if (uncounted++ >= max_rows) continue;
        add_uncounted(p, i, false, max_rows == UINT32_MAX, out);
        add_uncounted(p, i, true, true, out);
    }
    if (uncounted > max_rows)
        mg_buf_printf(out, "  and %u more kernels with launches that are not in the counts\n", uncounted - max_rows);
    mg_add_left_alone(p, out, max_rows);
    add_other_ptx(p, out);
    mg_add_unwritten(p, out, max_rows);
    mg_buf_adds(out, "coverage: ");
    mg_add_grouped(out, c.instrumented);
    mg_buf_adds(out, " of ");
    mg_add_grouped(out, c.launches);
    mg_buf_adds(out, " launches instrumented");
    if (c.no_end) { /* what they did is not known: no share is said of them */
        mg_buf_adds(out, ", ");
        mg_add_grouped(out, c.no_end);
        mg_buf_adds(out, " of them without an end and not in the counts");
    } else {
        mg_buf_adds(out, " (");
        add_share(out, c.launches ? 100.0 * (double)c.instrumented / (double)c.launches : 0,
                  c.instrumented == c.launches);
        mg_buf_addc(out, ')');
    }
    if (c.timed) {
        mg_buf_adds(out, ", ");
        add_share(out, c.time_pct, c.instrumented == c.launches);
        mg_buf_adds(out, c.no_end ? " of measured kernel time (" : " of kernel time (");
        add_share(out, c.timed_pct, !c.no_end);
        mg_buf_adds(out, " of launches timed)");
    }
    if (c.repeats) {
        mg_buf_adds(out, ", ");
        mg_add_grouped(out, c.repeats);
        mg_buf_adds(out, " repeats beside them");
    }
    if (c.incomplete) {
        mg_buf_adds(out, ", ");
        mg_add_grouped(out, c.incomplete);
        mg_buf_adds(out, " did not complete");
    }
    if (c.failed) {
        mg_buf_adds(out, ", ");
        mg_add_grouped(out, c.failed);
        mg_buf_adds(out, " failed");
    }
    if (c.not_written) {
        mg_buf_adds(out, ", ");
        mg_add_grouped(out, c.not_written);
        mg_buf_adds(out, " not written");
    }
    if (c.open) mg_buf_printf(out, ", %u process%s without a recorded end", c.open, c.open == 1 ? "" : "es");
    if (c.empty)
        mg_buf_printf(out, ", %u process%s of which nothing could be recorded", c.empty, c.empty == 1 ? "" : "es");
    if (c.spoilt) {
        mg_buf_adds(out, ", ");
        mg_add_grouped(out, c.spoilt);
        mg_buf_adds(out, " without counts: the program wrote into them");
    }
    if (c.unknown) {
        mg_buf_adds(out, ", ");
        mg_add_grouped(out, c.unknown);
        mg_buf_adds(out, " unknown");
    }
    mg_buf_addc(out, '\n');
    mg_coverage_release(&c);
}

/* ---- kernels by instructions ------------------------------------------------------------------------- */

static int by_heat(const void *a, const void *b)
{
    const struct mg_hot_kernel *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    if (x->s.thread_insts != y->s.thread_insts) return x->s.thread_insts > y->s.thread_insts ? -1 : 1;
    if (x->k->time_ns != y->k->time_ns && !x->s.measured && !y->s.measured)
        return x->k->time_ns > y->k->time_ns ? -1 : 1;
    return x->k->id < y->k->id ? -1 : 1;
}

static int by_kernel_name(const void *a, const void *b)
{
    const struct mg_hot_kernel *x = a, *y = b;
    int c = strcmp(x->k->demangled, y->k->demangled);
    return c ? c : x->k->id < y->k->id ? -1 : 1;
}

/* Did a GPU time every kernel that is shown? Elsewhere times are the host's. */
static bool times_known(const struct mg_recording *p, const struct mg_report_opts *o)
{
    bool all = p->n_processes && p->processes[0].device_kind && !strcmp(p->processes[0].device_kind, "nvidia");
    for (uint32_t i = 0; i < p->n_kernels; i++)
        all = all && (!mg_report_shows(o, &p->kernels[i]) || !p->kernels[i].launches || p->kernels[i].timed_launches);
    return all;
}

struct mg_hot_kernel *mg_hot_kernels(const struct mg_recording *p, const struct mg_report_opts *o, uint32_t *n)
{
    struct mg_hot_kernel *hot = mg_xcalloc(p->n_kernels + 1, sizeof *hot);
    enum mg_report_sort sort = o && o->sort ? o->sort : times_known(p, o) ? MG_SORT_TIME : MG_SORT_INSTRUCTIONS;
    *n = 0;
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        if (!mg_report_shows(o, &p->kernels[i])) continue;
        hot[*n].k = &p->kernels[i];
        hot[*n].key = sort == MG_SORT_TIME       ? p->kernels[i].time_ns
                      : sort == MG_SORT_LAUNCHES ? p->kernels[i].launches
                                                 : 0;
        mg_kernel_sums_init(&hot[(*n)++].s, &p->kernels[i]);
    }
    if (*n) qsort(hot, *n, sizeof *hot, sort == MG_SORT_NAME ? by_kernel_name : by_heat);
    return hot;
}

void mg_hot_release(struct mg_hot_kernel *hot, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) mg_kernel_sums_release(&hot[i].s);
    free(hot);
}
