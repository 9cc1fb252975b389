/* Sites: the blocks of every function a kernel reaches, as the profile and every report name them.
 * Made from the module as loaded, never from a twin: ids, lines and instruction counts are the
 * application's own. */
#include "analysis/sites.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/meet.h"
#include "analysis/timing.h"

struct op_count {
    const char *text;
    uint32_t form, n, n_guarded;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct op_count *)a)->text, ((const struct op_count *)b)->text);
}

/* Counts the forms of one block. seen: form -> position in ops + 1, all 0 before and after. */
static uint32_t count_ops(const struct mg_module *m, const struct mg_block *k, uint32_t *seen, struct op_count *ops)
{
    uint32_t n_ops = 0;
    for (mg_id id = k->first;; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_inst && !(n->flags & MG_NF_META)) {
            if (!seen[n->ref]) {
                ops[n_ops++] = (struct op_count){.text = mg_name(m, m->forms.at[n->ref].text), .form = n->ref};
                seen[n->ref] = n_ops;
            }
            ops[seen[n->ref] - 1].n++;
            ops[seen[n->ref] - 1].n_guarded += n->guard != 0;
        }
        if (id == k->last) break;
    }
    for (uint32_t i = 0; i < n_ops; i++) seen[ops[i].form] = 0;
    qsort(ops, n_ops, sizeof *ops, by_text);
    return n_ops;
}

struct filler {
    struct mg_sites *s;
    const struct mg_module *m;
    uint32_t *seen;
    struct op_count *ops;
};

static void fill_block(struct filler *x, uint32_t func_ix, uint32_t block_ix)
{
    struct mg_sites *s = x->s;
    const struct mg_module *m = x->m;
    const struct mg_cfg *c = s->cfgs[func_ix];
    const struct mg_block *k = &c->blocks[block_ix];
    uint32_t id = s->first_block[func_ix] + block_ix;
    struct mg_site_block *b = &s->blocks[id];
    const char *label = k->label ? mg_name(m, m->labels.at[k->label].name) : block_ix ? "" : "entry";
    *b = (struct mg_site_block){
        .id = id,
        .func_ix = func_ix,
        .block_ix = block_ix,
        .n_insts = k->n_insts,
        .function = mg_arena_copy(&s->arena, mg_name(m, m->funcs.at[c->func].name),
                                  mg_intern_len(&m->names, m->funcs.at[c->func].name) + 1),
        .label = mg_arena_copy(&s->arena, label, strlen(label) + 1),
        .ptx_line = m->nodes.at[k->first].line,
    };
    if (block_ix) b->function = s->blocks[s->first_block[func_ix]].function;
    const struct mg_loc *loc = k->loc ? &m->locs.at[k->loc] : NULL;
    const char *path = loc ? mg_module_path(m, loc->file) : NULL;
    if (path) {
        b->file = mg_arena_copy(&s->arena, path, strlen(path) + 1);
        b->line = loc->line;
    }
    uint32_t *succs = mg_arena_array(&s->arena, uint32_t, k->n_succs + 1);
    for (uint32_t i = 0; i < k->n_succs; i++) succs[i] = s->first_block[func_ix] + c->edges[k->succ_at + i];
    b->succs = succs;
    b->n_succs = k->n_succs;
    b->n_ops = count_ops(m, k, x->seen, x->ops);
    struct mg_site_op *ops = mg_arena_array(&s->arena, struct mg_site_op, b->n_ops + 1);
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const char *text = x->ops[i].text;
        ops[i] =
            (struct mg_site_op){mg_arena_copy(&s->arena, text, strlen(text) + 1), x->ops[i].n, x->ops[i].n_guarded};
    }
    b->ops = ops;
}

static void find_timing(struct mg_sites *s, const struct mg_module *m)
{
    struct mg_timing *t = mg_timing_new(m, s->funcs, s->cfgs, s->n_funcs);
    for (uint32_t i = 0; i < s->n_blocks; i++) {
        struct mg_site_block *b = &s->blocks[i];
        b->timing = mg_timing_text(t, t->of[b->func_ix][b->block_ix], &s->arena);
    }
    mg_timing_free(t);
}

static void find_meeting(struct mg_sites *s, const struct mg_module *m)
{
    bool *open = mg_xcalloc(s->n_blocks + 1, sizeof *open);
    mg_meet_find(m, s->funcs, s->cfgs, s->n_funcs, s->first_block, open);
    for (uint32_t i = 0; i < s->n_blocks; i++) s->blocks[i].apart = open[i];
    free(open);
}

struct mg_sites *mg_sites_new(const struct mg_module *m, mg_id kernel)
{
    struct mg_sites *s = mg_xcalloc(1, sizeof *s);
    struct mg_callgraph *g = mg_callgraph_new(m, kernel);
    const char *name = mg_name(m, m->funcs.at[kernel].name);
    s->kernel = mg_arena_copy(&s->arena, name, strlen(name) + 1);
    s->n_funcs = g->n_funcs;
    s->funcs = mg_arena_copy(&s->arena, g->funcs, sizeof *s->funcs * g->n_funcs);
    s->first_block = mg_arena_array(&s->arena, uint32_t, g->n_funcs);
    s->cfgs = mg_arena_array(&s->arena, struct mg_cfg *, g->n_funcs);
    for (uint32_t i = 0; i < s->n_funcs; i++) {
        s->cfgs[i] = mg_cfg_new(m, s->funcs[i]);
        s->first_block[i] = s->n_blocks;
        s->n_blocks += s->cfgs[i]->n_blocks;
    }
    s->blocks = mg_arena_array(&s->arena, struct mg_site_block, s->n_blocks + 1);
    struct filler x = {
        .s = s, .m = m, .seen = mg_xcalloc(m->forms.n, sizeof *x.seen), .ops = mg_xmalloc(sizeof *x.ops * m->forms.n)};
    for (uint32_t i = 0; i < s->n_funcs; i++)
        for (uint32_t b = 0; b < s->cfgs[i]->n_blocks; b++) fill_block(&x, i, b);
    free(x.seen);
    free(x.ops);
    find_timing(s, m);
    find_meeting(s, m);
    mg_callgraph_free(g);
    return s;
}

void mg_sites_free(struct mg_sites *s)
{
    if (!s) return;
    for (uint32_t i = 0; i < s->n_funcs; i++) mg_cfg_free(s->cfgs[i]);
    mg_arena_release(&s->arena);
    free(s);
}
