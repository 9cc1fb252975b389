/* margay ptx cfg: blocks, edges, dominators and loops of every function, as text or for Graphviz. */
#include "cli/ptx.h"

#include "analysis/dom.h"
#include "analysis/loop.h"
#include "analysis/space.h"
#include "base/demangle.h"
#include "ptx/ptx.h"

bool ptx_wants(const struct ptx_opts *o, const struct mg_module *m, mg_id func)
{
    const struct mg_func *f = &m->funcs.at[func];
    if (!f->defined || f->kind == MG_FUNC_proto) return false;
    return !o->kernel || mg_name_matches(o->kernel, mg_name(m, f->name));
}

static void add_loc(struct mg_buf *out, const struct mg_module *m, mg_id loc)
{
    if (!loc) return;
    const struct mg_loc *l = &m->locs.at[loc];
    for (uint32_t i = 1; i < m->files.n; i++)
        if (m->files.at[i].index == l->file) mg_buf_printf(out, "  %s:%u", mg_name(m, m->files.at[i].path), l->line);
}

static void print_text(const struct mg_cfg *c, const struct mg_dom *d, const struct mg_loops *l, struct ptx_data *data,
                       struct mg_buf *out)
{
    const struct mg_module *m = c->m;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const struct mg_block *k = &c->blocks[b];
        mg_buf_printf(out, "  block %u  line %u  %u instructions  rank %u", b, m->nodes.at[k->first].line, k->n_insts,
                      c->rank[b]);
        if (k->label) mg_buf_printf(out, "  %s", mg_name(m, m->labels.at[k->label].name));
        if (d->idom[b] != MG_NO_BLOCK) mg_buf_printf(out, "  idom %u", d->idom[b]);
        if (mg_loops_depth(l, b))
            mg_buf_printf(out, "  loop depth %u of block %u", mg_loops_depth(l, b), l->loops[l->loop_of[b]].header);
        if (!c->reachable[b]) mg_buf_adds(out, "  unreachable");
        add_loc(out, m, k->loc);
        mg_buf_adds(out, "  ->");
        for (uint32_t i = 0; i < k->n_succs; i++) mg_buf_printf(out, " %u", c->edges[k->succ_at + i]);
        mg_buf_adds(out, k->leaves ? " leave\n" : "\n");
        if (data) ptx_data_print(data, b, out);
    }
}

static void add_escaped(struct mg_buf *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') mg_buf_addc(out, '\\');
        mg_buf_addc(out, *s);
    }
}

static void print_dot(const struct mg_cfg *c, const char *name, struct mg_buf *out)
{
    const struct mg_module *m = c->m;
    mg_buf_adds(out, "digraph \"");
    add_escaped(out, name);
    mg_buf_adds(out, "\" {\n  node [shape=box fontname=monospace];\n");
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const struct mg_block *k = &c->blocks[b];
        mg_buf_printf(out, "  b%u [label=\"%u", b, b);
        if (k->label) {
            mg_buf_addc(out, ' ');
            add_escaped(out, mg_name(m, m->labels.at[k->label].name));
        }
        struct mg_buf text = MG_BUF_INIT;
        mg_buf_adds(out, "\\l");
        for (mg_id id = k->first;; id = m->nodes.at[id].next) {
            if (m->nodes.at[id].kind == MG_NODE_inst) {
                mg_buf_reset(&text);
                mg_ptx_print_node(m, id, &text);
                add_escaped(out, text.at);
                mg_buf_adds(out, "\\l");
            }
            if (id == k->last) break;
        }
        mg_buf_release(&text);
        mg_buf_adds(out, "\"];\n");
        for (uint32_t i = 0; i < k->n_succs; i++) mg_buf_printf(out, "  b%u -> b%u;\n", b, c->edges[k->succ_at + i]);
    }
    mg_buf_adds(out, "}\n");
}

void ptx_cfg(const struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out)
{
    struct mg_spaces *spaces = o->data ? mg_spaces_new(m) : NULL;
    for (mg_id f = 1; f < m->funcs.n; f++) {
        if (!ptx_wants(o, m, f)) continue;
        const char *name = mg_name(m, m->funcs.at[f].name);
        struct mg_cfg *c = mg_cfg_new(m, f);
        struct mg_dom *d = mg_dom_new(c);
        struct mg_loops *l = mg_loops_new(c);
        if (o->dot) {
            print_dot(c, name, out);
        } else {
            const char *kind = m->funcs.at[f].kind == MG_FUNC_entry ? "kernel" : "function";
            mg_buf_printf(out, "%s %s: %u blocks, %u loops\n", kind, name, c->n_blocks, l->n_loops);
            struct ptx_data *data = spaces ? ptx_data_new(c, spaces) : NULL;
            print_text(c, d, l, data, out);
            ptx_data_free(data);
        }
        mg_loops_free(l);
        mg_dom_free(d);
        mg_cfg_free(c);
    }
    if (spaces) mg_spaces_free(spaces);
}

void ptx_cfg_json(const struct mg_module *m, const struct ptx_opts *o, const char *label, struct mg_json *j)
{
    struct mg_spaces *spaces = mg_spaces_new(m);
    mg_json_obj(j);
    mg_json_key_str(j, "module", label);
    mg_json_key(j, "functions");
    mg_json_arr(j);
    for (mg_id f = 1; f < m->funcs.n; f++) {
        if (!ptx_wants(o, m, f)) continue;
        struct mg_cfg *c = mg_cfg_new(m, f);
        struct ptx_data *data = ptx_data_new(c, spaces);
        ptx_data_json(data, j);
        ptx_data_free(data);
        mg_cfg_free(c);
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
    mg_spaces_free(spaces);
}
