/* Which source line every instruction of a kernel comes from, told from the PTX that the profile keeps.
 *
 *   kernel ──► text of its module (parsed once) ──► functions it reaches ──► blocks ──► rows
 *
 * Blocks have the ids of the profile: they are made from the same text in the same way (analysis/sites.c). */
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/callgraph.h"
#include "ptx/ptx.h"
#include "report/inlined.h"
#include "report/lines.h"

struct module {
    const char *id;
    char *text;
    size_t bytes;
    struct mg_module *m;      /* NULL: not kept, or it does not parse */
    const char **path_of_loc; /* by loc id; NULL: no file */
    struct mg_inlined inlined;
};
struct mg_lines {
    const struct mg_recording *p;
    MG_VEC(struct module) modules;
};

struct mg_lines *mg_lines_new(const struct mg_recording *p)
{
    struct mg_lines *l = mg_xcalloc(1, sizeof *l);
    l->p = p;
    return l;
}

void mg_lines_free(struct mg_lines *l)
{
    for (uint32_t i = 0; i < l->modules.n; i++) {
        if (l->modules.at[i].m) {
            mg_inlined_release(&l->modules.at[i].inlined);
            mg_module_free(l->modules.at[i].m);
        }
        free(l->modules.at[i].path_of_loc);
        free(l->modules.at[i].text);
    }
    mg_vec_release(&l->modules);
    free(l);
}

static const struct module *module_of(struct mg_lines *l, const char *id)
{
    for (uint32_t i = l->modules.n; i > 0; i--)
        if (!strcmp(l->modules.at[i - 1].id, id)) return &l->modules.at[i - 1];
    struct module *x = mg_vec_push(&l->modules);
    *x = (struct module){.id = id};
    if (!*id || !(x->text = mg_recording_module(l->p->dir, id, &x->bytes))) return x;
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_ptx_parse(x->text, x->bytes, NULL, &x->m, &d)) x->m = NULL;
    mg_diag_release(&d);
    if (!x->m) return x;
    x->path_of_loc = mg_xcalloc(x->m->locs.n + 1, sizeof *x->path_of_loc);
    for (uint32_t i = 1; i < x->m->locs.n; i++) x->path_of_loc[i] = mg_module_path(x->m, x->m->locs.at[i].file);
    mg_inlined_init(&x->inlined, x->m);
    return x;
}

const struct mg_module *mg_lines_module(struct mg_lines *l, const char *id)
{
    return module_of(l, id)->m;
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

struct walk {
    const struct module *x;
    struct mg_kernel_lines *out;
    uint32_t first_block;
};

static void add_instruction(struct walk *w, uint32_t block, mg_id loc, uint32_t ptx_line)
{
    const char *file = loc ? w->x->path_of_loc[loc] : NULL;
    uint32_t line = file ? w->x->m->locs.at[loc].line : 0, inlined = file ? w->x->inlined.of_loc[loc] : 0;
    struct mg_line_row *last = w->out->rows.n ? &w->out->rows.at[w->out->rows.n - 1] : NULL;
    if (last && last->block == block && last->line == line && last->file == file && last->inlined == inlined)
        last->n_insts++;
    else
        *mg_vec_push(&w->out->rows) = (struct mg_line_row){block, line, ptx_line, 1, file, inlined};
}

static void add_function(struct walk *w, mg_id func)
{
    const struct mg_module *m = w->x->m;
    struct mg_cfg *c = mg_cfg_new(m, func);
    struct mg_line_range range = {UINT32_MAX, 0};
    mg_id loc = 0;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_loc) loc = n->ref;
        if (n->kind != MG_NODE_inst || n->flags & MG_NF_META) continue;
        uint32_t block = mg_cfg_block_of(c, id);
        if (block == MG_NO_BLOCK) continue;
        add_instruction(w, w->first_block + block, loc, n->line);
        range.first = MG_MIN(range.first, n->line);
        range.last = MG_MAX(range.last, n->line);
    }
    if (range.last) *mg_vec_push(&w->out->texts) = range;
    w->first_block += c->n_blocks;
    mg_cfg_free(c);
}

bool mg_lines_of(struct mg_lines *l, const struct mg_pkernel *k, struct mg_kernel_lines *out)
{
    struct walk w = {module_of(l, k->module), out, 0};
    *out = (struct mg_kernel_lines){0};
    mg_id kernel = w.x->m ? mg_module_find_func(w.x->m, k->name) : 0;
    if (!kernel || !w.x->m->funcs.at[kernel].defined) return false;
    struct mg_callgraph *g = mg_callgraph_new(w.x->m, kernel);
    for (uint32_t i = 0; i < g->n_funcs; i++) add_function(&w, g->funcs[i]);
    mg_callgraph_free(g);
    out->text = w.x->text;
    out->bytes = w.x->bytes;
    out->frames = w.x->inlined.frames.at;
    out->n_frames = w.x->inlined.frames.n;
    if (w.first_block == k->n_blocks) return true;
    mg_kernel_lines_release(out); /* blocks of another text: a damaged profile */
    return false;
}

/* Rows stand in the order of blocks. */
struct mg_block_rows mg_block_rows_of(const struct mg_kernel_lines *k, uint32_t block)
{
    uint32_t low = 0, high = k->rows.n, end;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (k->rows.at[mid].block < block)
            low = mid + 1;
        else
            high = mid;
    }
    for (end = low; end < k->rows.n && k->rows.at[end].block == block;) end++;
    return (struct mg_block_rows){k->rows.at + low, end - low};
}

struct mg_block_place mg_block_place_of(const struct mg_kernel_lines *k, const struct mg_pblock *b)
{
    struct mg_block_place best = {b->file, b->line, b->line, b->line};
    struct mg_block_rows r = mg_block_rows_of(k, b->id);
    uint32_t most = 0;
    for (uint32_t i = 0; i < r.n; i++) {
        uint32_t insts = 0;
        if (!r.at[i].file || !r.at[i].line) continue;
        for (uint32_t j = i; j < r.n; j++)
            if (r.at[j].file == r.at[i].file && r.at[j].line == r.at[i].line) insts += r.at[j].n_insts;
        if (insts <= most) continue;
        most = insts;
        best = (struct mg_block_place){r.at[i].file, r.at[i].line, r.at[i].line, r.at[i].line};
    }
    for (uint32_t i = 0; i < r.n && most; i++) {
        if (r.at[i].file != best.file || !r.at[i].line) continue;
        best.first = MG_MIN(best.first, r.at[i].line);
        best.last = MG_MAX(best.last, r.at[i].line);
    }
    return best;
}

void mg_kernel_lines_release(struct mg_kernel_lines *k)
{
    mg_vec_release(&k->rows);
    mg_vec_release(&k->texts);
    *k = (struct mg_kernel_lines){0};
}
