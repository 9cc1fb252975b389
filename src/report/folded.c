/* Folded stacks, as flame graph programs take them: "kernel;function;inlined function;file:line COUNT", COUNT thread
 * instructions. A function that the compiler inlined is a frame where the PTX names it; the line is that of the
 * innermost. */
#include "report/folded.h"

#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "report/inlined.h"
#include "report/lines.h"
#include "report/priv.h"
#include "span/sum.h"

struct folded_host { /* a stack of the host */
    char *text;
    uint64_t n;
};

/* A frame's text: ';' parts frames, a newline parts stacks. */
static void add_frame(struct mg_buf *out, const char *name)
{
    for (; *name; name++) mg_buf_addc(out, *name == ';' ? ':' : *name == '\n' ? ' ' : *name);
}

static void add_function(struct mg_buf *out, const char *function)
{
    char *plain = mg_demangle(function);
    add_frame(out, plain ? plain : function);
    free(plain);
}

static void add_count(struct mg_buf *out, uint64_t n)
{
    mg_buf_addc(out, ' ');
    mg_buf_addu(out, n);
    mg_buf_addc(out, '\n');
}

static void add_stack(struct mg_buf *out, const struct mg_pkernel *k, const struct mg_pblock *b)
{
    add_frame(out, k->demangled);
    if (!b->function || !strcmp(b->function, k->name)) return;
    mg_buf_addc(out, ';');
    add_function(out, b->function);
}

static void add_place(struct mg_buf *out, const char *file, uint32_t line)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    if (!file || !line) return;
    mg_buf_addc(out, ';');
    add_frame(out, slash ? slash + 1 : file);
    mg_buf_printf(out, ":%u", line);
}

/* Outermost first. */
static void add_inlined(struct mg_buf *out, const struct mg_inline_frame *frames, uint32_t frame)
{
    if (!frame) return;
    add_inlined(out, frames, frames[frame].outer);
    if (!frames[frame].function) return;
    mg_buf_addc(out, ';');
    add_frame(out, frames[frame].function);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Stacks of one kernel, equal ones as one. */
static void add_kernel(struct mg_lines *lines, const struct mg_pkernel *k, struct mg_buf *out)
{
    struct mg_kernel_lines of;
    MG_VEC(char *) stacks = {0};
    if (!mg_lines_of(lines, k, &of)) { /* no PTX: blocks at the line where they begin */
        of = (struct mg_kernel_lines){0};
        for (uint32_t b = 0; b < k->n_blocks; b++)
            *mg_vec_push(&of.rows) = (struct mg_line_row){
                b, k->blocks[b].line, k->blocks[b].ptx_line, k->blocks[b].n_insts, k->blocks[b].file, 0};
    }
    uint64_t *counts = mg_xcalloc(of.rows.n + 1, sizeof *counts);
    for (uint32_t i = 0; i < of.rows.n; i++) {
        const struct mg_line_row *r = &of.rows.at[i];
        struct mg_buf text = MG_BUF_INIT;
        if (!k->blocks[r->block].threads) continue;
        add_stack(&text, k, &k->blocks[r->block]);
        add_inlined(&text, of.frames, r->inlined);
        add_place(&text, r->file, r->line);
        mg_buf_addc(&text, '\t'); /* the row behind it, for the count */
        mg_buf_addu(&text, i);
        *mg_vec_push(&stacks) = mg_buf_take(&text);
    }
    if (stacks.n) qsort(stacks.at, stacks.n, sizeof *stacks.at, by_text);
    for (uint32_t i = 0; i < stacks.n; i++) {
        char *tab = strrchr(stacks.at[i], '\t');
        const struct mg_line_row *r = &of.rows.at[strtoul(tab + 1, NULL, 10)];
        uint64_t n = k->blocks[r->block].threads * r->n_insts;
        *tab = 0;
        bool again = i && !strcmp(stacks.at[i - 1], stacks.at[i]);
        counts[i] = n + (again ? counts[i - 1] : 0);
        if (again) counts[i - 1] = 0;
    }
    for (uint32_t i = 0; i < stacks.n; i++) {
        if (counts[i]) mg_buf_adds(out, stacks.at[i]), add_count(out, counts[i]);
        free(stacks.at[i]);
    }
    free(counts);
    mg_vec_release(&stacks);
    mg_kernel_lines_release(&of);
}

void mg_report_folded(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    struct mg_lines *lines = mg_lines_new(p);
    for (uint32_t i = 0; i < p->n_kernels; i++)
        if (mg_report_shows(o, &p->kernels[i])) add_kernel(lines, &p->kernels[i], out);
    mg_lines_free(lines);
}

/* ---- the host's stacks ------------------------------------------------------------------------------------- */

const char *const mg_folded_host_names[] = {"launches", "wait", "device", NULL};

static int by_stack(const void *a, const void *b)
{
    const struct folded_host *x = a, *y = b;
    return strcmp(x->text, y->text);
}

enum mg_err mg_report_folded_host(const char *dir, enum mg_folded_host what, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_sum s;
    MG_VEC(struct folded_host) rows = {0};
    enum mg_err err = mg_sum_init(&s, dir, d);
    if (err) return err;
    for (uint32_t i = 0; i < s.stacks.n; i++) {
        const struct mg_sum_stack *k = &s.stacks.at[i];
        uint64_t n = what == MG_FOLDED_WAIT ? k->wait_ns : what == MG_FOLDED_DEVICE ? k->device_ns : k->launches;
        struct mg_buf text = MG_BUF_INIT;
        if (!n) continue;
        mg_stack_print(mg_spans_stacks(s.spans), k->stack, &text);
        mg_buf_addc(&text, ';');
        add_function(&text, k->name);
        *mg_vec_push(&rows) = (struct folded_host){mg_buf_take(&text), n};
    }
    if (rows.n) qsort(rows.at, rows.n, sizeof *rows.at, by_stack);
    for (uint32_t i = 0; i < rows.n; i++) { /* equal ones as one */
        if (i + 1 < rows.n && !strcmp(rows.at[i].text, rows.at[i + 1].text)) {
            rows.at[i + 1].n += rows.at[i].n;
        } else {
            mg_buf_adds(out, rows.at[i].text);
            add_count(out, rows.at[i].n);
        }
        if (i) free(rows.at[i - 1].text);
    }
    if (rows.n) free(rows.at[rows.n - 1].text);
    if (!s.stacks.n) err = mg_diag_err(d, MG_ERR_INPUT, "the profile has no stacks (margay run -t timeline,stacks=on)");
    mg_vec_release(&rows);
    mg_sum_release(&s);
    return err;
}
