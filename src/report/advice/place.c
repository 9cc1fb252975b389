/* Where a finding is told: at the line that the user can change. A place in a header of the toolkit or the compiler is
 * told as the innermost call outside of them that it was inlined through. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "report/advice/priv.h"
#include "report/inlined.h"
#include "report/priv.h"

/* The part of a path in front of `at` up to the slash before it. */
static const char *part_before(const char *path, const char *at)
{
    while (at > path && at[-1] != '/') at--;
    return at;
}

static bool is_toolkit_folder(const char *path, const char *include)
{
    const char *own = part_before(path, include);
    if (!strncmp(own, "cuda", 4)) return own + 4 == include || (own[4] == '-' && isdigit((unsigned char)own[5]));
    if (own == path) return false;
    const char *above = part_before(path, own - 1);
    return !strncmp(above, "targets/", 8) || !strncmp(above, "nvidia/", 7);
}

bool is_toolkit_header(const char *path)
{
    if (!strncmp(path, "/usr/include/", 13) || !strncmp(path, "/usr/local/include/", 19)) return true;
    if (strstr(path, "/lib/clang/") || strstr(path, "/lib/gcc/")) return true;
    for (const char *at = path; (at = strstr(at, "/include/")); at++)
        if (is_toolkit_folder(path, at)) return true;
    return false;
}

/* Rows of the kernel's instructions; NULL: the profile does not keep its text. */
static const struct mg_kernel_lines *lines_of(struct advice *a, const struct mg_pkernel *k)
{
    struct kernel_text *t = &a->texts[k->id];
    if (!t->asked) t->known = mg_lines_of(a->modules, k, &t->lines);
    t->asked = true;
    return t->known ? &t->lines : NULL;
}

/* The row that holds the line; NULL: none begins before it. */
static const struct mg_line_row *row_at(const struct mg_kernel_lines *l, uint32_t ptx_line)
{
    const struct mg_line_row *row = NULL;
    for (uint32_t i = 0; i < l->rows.n; i++)
        if (l->rows.at[i].ptx_line <= ptx_line && (!row || row->ptx_line < l->rows.at[i].ptx_line))
            row = &l->rows.at[i];
    return row;
}

static void to_caller(const struct mg_kernel_lines *l, uint32_t ptx_line, struct place *p)
{
    const struct mg_line_row *row = row_at(l, ptx_line);
    for (uint32_t f = row ? row->inlined : 0; f && f < l->n_frames; f = l->frames[f].outer) {
        const struct mg_inline_frame *x = &l->frames[f];
        if (!x->file || !x->line || is_toolkit_header(x->file)) continue;
        p->header = p->file, p->header_line = p->line;
        p->file = x->file, p->line = x->line;
        return;
    }
}

struct place place_of_site(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site)
{
    struct place p = {.file = mg_jval_text(site, "file"),
                      .line = (uint32_t)mg_jval_u64(site, "line"),
                      .ptx_line = (uint32_t)mg_jval_u64(site, "ptx_line")};
    if (!p.file || !p.ptx_line || !is_toolkit_header(p.file)) return p;
    const struct mg_kernel_lines *l = lines_of(a, k);
    if (l) to_caller(l, p.ptx_line, &p);
    return p;
}

struct place place_of_line(struct advice *a, const struct mg_pkernel *k, uint32_t ptx_line)
{
    const struct mg_kernel_lines *l = lines_of(a, k);
    const struct mg_line_row *row = l ? row_at(l, ptx_line) : NULL;
    struct place p = {.ptx_line = ptx_line};
    while (row && !row->line && row > l->rows.at)
        row--; /* what the compiler adds has none: it belongs to the line above */
    if (!row || !row->file || !row->line) return p;
    p.file = row->file;
    p.line = row->line;
    if (is_toolkit_header(p.file)) to_caller(l, ptx_line, &p);
    return p;
}

void say_caller(struct advice *a, struct mg_finding *f)
{
    const struct mg_kernel_lines *l = f->header ? NULL : lines_of(a, f->kernel);
    const struct mg_line_row *row = l ? row_at(l, f->ptx_line) : NULL;
    const struct mg_inline_frame *x = row && row->inlined ? &l->frames[row->inlined] : NULL;
    const char *slash = x && x->file ? strrchr(x->file, '/') : NULL;
    if (!x || !x->file || !x->line || is_toolkit_header(x->file)) return;
    f->text =
        mg_arena_printf(&a->out->arena, "%s It is called at %s:%u.", f->text, slash ? slash + 1 : x->file, x->line);
}

static bool has_word(const char *text, size_t bytes, const char *word, size_t n)
{
    for (size_t i = 0; i + n <= bytes; i++) {
        bool begins = !i || !(isalnum((unsigned char)text[i - 1]) || text[i - 1] == '_');
        bool ends = i + n == bytes || !(isalnum((unsigned char)text[i + n]) || text[i + n] == '_');
        if (begins && ends && !memcmp(text + i, word, n)) return true;
    }
    return false;
}

uint32_t find_shared(struct advice *a, const char *file, uint32_t access, const char *name, size_t n)
{
    size_t bytes = 0;
    uint32_t found = 0;
    if (!a->sources) a->sources = mg_sources_new(a->facts->p);
    const char *text = file ? mg_sources_text(a->sources, file, &bytes) : NULL;
    for (uint32_t line = 1; text && bytes; line++) {
        const char *end = memchr(text, '\n', bytes);
        size_t length = end ? (size_t)(end - text) : bytes;
        if (line > access && found) break;
        if (has_word(text, length, "__shared__", 10) && has_word(text, length, name, n)) found = line;
        if (!end) break;
        bytes -= length + 1;
        text = end + 1;
    }
    return found;
}

bool ways_of_branch(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *branch, struct ways *w)
{
    const char *function = mg_jval_text(branch, "function");
    const struct mg_module *m = mg_lines_module(a->modules, k->module);
    mg_id func = m && (!function || !strcmp(function, k->name)) ? mg_module_find_func(m, k->name) : 0;
    uint64_t line = mg_jval_u64(branch, "ptx_line");
    struct kernel_text *t = &a->texts[k->id];
    *w = (struct ways){0};
    if (!func || !m->funcs.at[func].defined || !line) return false;
    if (!t->cfg) {
        t->cfg = mg_cfg_new(m, func);
        t->post = mg_postdom_new(t->cfg);
        t->same = mg_same_new(t->cfg, MG_SAME_CTAS);
    }
    for (uint32_t b = 0; b < t->cfg->n_blocks; b++) {
        const struct mg_block *x = &t->cfg->blocks[b];
        const struct mg_node *n = &m->nodes.at[x->last];
        if (n->line != line || !n->guard) continue;
        for (uint32_t i = 0; i < x->n_succs && i < 2; i++) {
            uint32_t s = t->cfg->edges[x->succ_at + i];
            if (s != t->post->idom[b]) w->ptx_line[w->n++] = m->nodes.at[t->cfg->blocks[s].first].line;
        }
        return mg_same_reg(t->same, n->guard);
    }
    return false;
}

void texts_release(struct advice *a)
{
    if (a->sources) mg_sources_free(a->sources);
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        if (a->texts[i].known) mg_kernel_lines_release(&a->texts[i].lines);
        mg_same_free(a->texts[i].same);
        mg_dom_free(a->texts[i].post);
        mg_cfg_free(a->texts[i].cfg);
    }
    free(a->texts);
}
