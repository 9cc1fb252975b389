/* Source and PTX lines for the page: for every kernel whose PTX is kept, which line each run of
 * instructions comes from; of the files named there, the text; of the PTX, the functions that are reached.
 *
 * Long files are cut down to what lies near a line with instructions. Hot kernels come first: when a page
 * would become too large, the PTX of the others is left out, and the page says so. */
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/order.h"
#include "report/inlined.h"
#include "report/lines.h"
#include "report/page.h"

enum { WHOLE_FILE_LINES = 1500, NEAR_LINES = 25, ROWS_AT_MOST = 400000 };
static const size_t source_at_most = (size_t)4 << 20, ptx_at_most = (size_t)8 << 20;

struct file {
    const char *path;
    MG_VEC(uint32_t) lines;
};
struct kept {
    const char *module, *text;
    size_t bytes;
    struct mg_line_range range;
};
struct gathering {
    const struct mg_page *g;
    struct mg_json *source, *ptx;
    struct mg_lines *lines;
    MG_VEC(struct file) files;
    MG_VEC(struct kept) kept;
    size_t ptx_bytes, n_rows;
    uint32_t left_out; /* kernels without lines or PTX, since there is too much */
};

static uint32_t file_ix(struct gathering *x, const char *path)
{
    for (uint32_t i = x->files.n; i > 0; i--)
        if (!strcmp(x->files.at[i - 1].path, path)) return i - 1;
    *mg_vec_push(&x->files) = (struct file){.path = path};
    return x->files.n - 1;
}

static uint32_t use_line(struct gathering *x, const char *path, uint32_t line)
{
    uint32_t ix = file_ix(x, path);
    struct file *f = &x->files.at[ix];
    if (!f->lines.n || f->lines.at[f->lines.n - 1] != line) *mg_vec_push(&f->lines) = line;
    return ix;
}

/* ---- text ------------------------------------------------------------------------------------------------ */

/* Lines first..last of a text as one string; returns its bytes. `at` is where line `now` begins, and moves on. */
static size_t write_lines(struct mg_json *j, const char **at, uint32_t *now, const char *end, uint32_t first,
                          uint32_t last)
{
    struct mg_buf part = MG_BUF_INIT;
    for (; *now <= last && *at < end; ++*now) {
        const char *nl = memchr(*at, '\n', (size_t)(end - *at)), *stop = nl ? nl : end;
        if (*now >= first) {
            if (*now > first) mg_buf_addc(&part, '\n');
            mg_buf_add(&part, *at, (size_t)(stop - *at));
        }
        *at = nl ? nl + 1 : end;
    }
    for (size_t i = 0; i < part.n; i++)
        if (!part.at[i]) part.at[i] = ' '; /* a text in JSON ends at a NUL */
    mg_json_arr(j);
    mg_json_u64(j, first);
    mg_json_str(j, part.n ? part.at : "");
    mg_json_end(j, ']');
    size_t bytes = part.n;
    mg_buf_release(&part);
    return bytes;
}

static uint32_t count_lines(const char *text, size_t bytes)
{
    uint32_t n = 0;
    for (const char *at = text, *end = text + bytes; at && at < end; n++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at) at++;
    }
    return n;
}

/* The whole of a short file; of a long one what lies near the lines that are used. */
static size_t write_file(struct mg_json *j, struct file *f, const char *text, size_t bytes, bool whole)
{
    const char *at = text, *end = text + bytes;
    uint32_t now = 1;
    size_t written = 0;
    if (whole) return write_lines(j, &at, &now, end, 1, UINT32_MAX);
    if (f->lines.n) qsort(f->lines.at, f->lines.n, sizeof *f->lines.at, mg_by_u32);
    for (uint32_t i = 0, next; i < f->lines.n; i = next) {
        uint32_t first = f->lines.at[i] > NEAR_LINES ? f->lines.at[i] - NEAR_LINES : 1,
                 last = f->lines.at[i] + NEAR_LINES;
        for (next = i + 1; next < f->lines.n && f->lines.at[next] <= last + NEAR_LINES + 1; next++)
            last = f->lines.at[next] + NEAR_LINES;
        if (at < end) written += write_lines(j, &at, &now, end, MG_MAX(first, now), last);
    }
    return written;
}

static void write_files(struct gathering *x)
{
    struct mg_sources *s = mg_sources_new(x->g->p);
    size_t written = 0;
    mg_json_key(x->source, "files");
    mg_json_arr(x->source);
    for (uint32_t i = 0; i < x->files.n; i++) {
        size_t bytes = 0;
        const char *text = mg_sources_text(s, x->files.at[i].path, &bytes);
        mg_json_obj(x->source);
        mg_json_key_str(x->source, "path", x->files.at[i].path);
        mg_json_key_u64_if(x->source, "lines", text != NULL, count_lines(text, text ? bytes : 0));
        mg_json_key_str(x->source, "doubt", mg_sources_doubt(s, x->files.at[i].path));
        mg_json_key(x->source, "parts");
        mg_json_arr(x->source);
        if (text && written < source_at_most)
            written +=
                write_file(x->source, &x->files.at[i], text, bytes, count_lines(text, bytes) <= WHOLE_FILE_LINES);
        mg_json_end(x->source, ']');
        mg_json_end(x->source, '}');
    }
    mg_json_end(x->source, ']');
    mg_sources_free(s);
}

/* ---- kernels --------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    int c = strcmp(x->module, y->module);
    if (c) return c;
    return x->range.first < y->range.first ? -1 : x->range.first > y->range.first;
}

static bool is_kept(const struct gathering *x, const char *module, struct mg_line_range r)
{
    for (uint32_t i = x->kept.n; i > 0; i--)
        if (x->kept.at[i - 1].range.first == r.first && !strcmp(x->kept.at[i - 1].module, module)) return true;
    return false;
}

static void keep_ptx(struct gathering *x, const struct mg_pkernel *k, const struct mg_kernel_lines *l)
{
    if (x->ptx_bytes > ptx_at_most) {
        x->left_out++;
        return;
    }
    for (uint32_t i = 0; i < l->texts.n; i++) {
        if (is_kept(x, k->module, l->texts.at[i])) continue;
        *mg_vec_push(&x->kept) = (struct kept){k->module, l->text, l->bytes, l->texts.at[i]};
        x->ptx_bytes += (size_t)(l->texts.at[i].last - l->texts.at[i].first + 1) * 24; /* about */
    }
}

/* Numbers of the frames that rows of the kernel name, outer ones first, from 1 on. Release with free. */
static uint32_t *number_frames(const struct mg_kernel_lines *l)
{
    uint32_t *numbers = mg_xcalloc(l->n_frames + 1, sizeof *numbers), n = 0;
    for (uint32_t i = 0; i < l->rows.n; i++)
        for (uint32_t f = l->rows.at[i].inlined; f && !numbers[f]; f = l->frames[f].outer) numbers[f] = 1;
    for (uint32_t f = 1; f < l->n_frames; f++)
        if (numbers[f]) numbers[f] = ++n;
    return numbers;
}

/* "inlined": [[function, file of the call or -1, its line, number of the outer frame or 0], ...] */
static void write_inlined(struct gathering *x, const struct mg_kernel_lines *l, const uint32_t *numbers)
{
    mg_json_key(x->source, "inlined");
    mg_json_arr(x->source);
    for (uint32_t i = 1; i < l->n_frames; i++) {
        const struct mg_inline_frame *f = &l->frames[i];
        if (!numbers[i]) continue;
        mg_json_arr(x->source);
        if (f->function)
            mg_json_str(x->source, f->function);
        else
            mg_json_null(x->source);
        mg_json_i64(x->source, f->file ? (int64_t)use_line(x, f->file, f->line) : -1);
        mg_json_u64(x->source, f->line);
        mg_json_u64(x->source, numbers[f->outer]);
        mg_json_end(x->source, ']');
    }
    mg_json_end(x->source, ']');
}

/* "functions": {as in blocks: C++ name, ...} of device functions that stay calls. */
static void write_functions(struct gathering *x, const struct mg_pkernel *k)
{
    const char *last = k->name;
    mg_json_key(x->source, "functions");
    mg_json_obj(x->source);
    for (uint32_t i = 0; i < k->n_blocks; i++) {
        const char *function = k->blocks[i].function;
        if (!function || !strcmp(function, last)) continue; /* blocks of one function follow each other */
        char *plain = mg_demangle(function);
        mg_json_key_str(x->source, function, plain ? plain : function);
        free(plain);
        last = function;
    }
    mg_json_end(x->source, '}');
}

/* {"kernel", "rows": [block, file or -1, line, PTX line, instructions, inlined frame or 0, ...], "inlined",
 * "functions"} */
static void write_kernel(struct gathering *x, const struct mg_pkernel *k)
{
    struct mg_kernel_lines l;
    if (!k->n_blocks || !mg_lines_of(x->lines, k, &l)) return;
    if (x->n_rows + l.rows.n > ROWS_AT_MOST) {
        x->left_out++;
        mg_kernel_lines_release(&l);
        return;
    }
    x->n_rows += l.rows.n;
    keep_ptx(x, k, &l);
    uint32_t *numbers = number_frames(&l);
    mg_json_obj(x->source);
    mg_json_key_u64(x->source, "kernel", k->id);
    mg_json_key(x->source, "rows");
    mg_json_arr(x->source);
    for (uint32_t i = 0; i < l.rows.n; i++) {
        const struct mg_line_row *r = &l.rows.at[i];
        mg_json_u64(x->source, r->block);
        mg_json_i64(x->source, r->file ? (int64_t)use_line(x, r->file, r->line) : -1);
        mg_json_u64(x->source, r->line);
        mg_json_u64(x->source, r->ptx_line);
        mg_json_u64(x->source, r->n_insts);
        mg_json_u64(x->source, numbers[r->inlined]);
    }
    mg_json_end(x->source, ']');
    write_inlined(x, &l, numbers);
    free(numbers);
    write_functions(x, k);
    mg_json_end(x->source, '}');
    mg_kernel_lines_release(&l);
}

/* {"modules": [{"module", "parts": [[first line, text], ...]}]} */
static void write_ptx(struct gathering *x)
{
    if (x->kept.n) qsort(x->kept.at, x->kept.n, sizeof *x->kept.at, by_place);
    mg_json_obj(x->ptx);
    mg_json_key(x->ptx, "modules");
    mg_json_arr(x->ptx);
    for (uint32_t i = 0; i < x->kept.n;) {
        const struct kept *k = &x->kept.at[i];
        const char *at = k->text, *end = k->text + k->bytes, *module = k->module;
        uint32_t now = 1;
        mg_json_obj(x->ptx);
        mg_json_key_str(x->ptx, "module", module);
        mg_json_key(x->ptx, "parts");
        mg_json_arr(x->ptx);
        for (; i < x->kept.n && !strcmp(x->kept.at[i].module, module); i++)
            if (x->kept.at[i].range.first >= now)
                write_lines(x->ptx, &at, &now, end, x->kept.at[i].range.first, x->kept.at[i].range.last);
        mg_json_end(x->ptx, ']');
        mg_json_end(x->ptx, '}');
    }
    mg_json_end(x->ptx, ']');
    mg_json_key_u64(x->ptx, "left_out", x->left_out);
    mg_json_end(x->ptx, '}');
}

void mg_page_lines(const struct mg_page *g, struct mg_json *source, struct mg_json *ptx)
{
    struct gathering x = {.g = g, .source = source, .ptx = ptx, .lines = mg_lines_new(g->p)};
    uint32_t n;
    struct mg_hot_kernel *hot = mg_hot_kernels(g->p, &g->o, &n);
    mg_json_obj(source);
    mg_json_key(source, "kernels");
    mg_json_arr(source);
    for (uint32_t i = 0; i < n; i++) write_kernel(&x, hot[i].k);
    mg_json_end(source, ']');
    write_files(&x);
    mg_json_end(source, '}');
    write_ptx(&x);
    mg_hot_release(hot, n);
    mg_lines_free(x.lines);
    for (uint32_t i = 0; i < x.files.n; i++) mg_vec_release(&x.files.at[i].lines);
    mg_vec_release(&x.files);
    mg_vec_release(&x.kept);
}
