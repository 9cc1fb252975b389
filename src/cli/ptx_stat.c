/* margay ptx stat: what a module's functions are made of, without running anything. */
#include "cli/ptx.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/callgraph.h"
#include "analysis/equiv.h"
#include "analysis/formula.h"
#include "analysis/live.h"
#include "analysis/loop.h"
#include "analysis/space.h"
#include "analysis/uniform.h"

struct mix {
    const char *text;
    uint32_t n;
};

static int by_count(const void *a, const void *b)
{
    const struct mix *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return strcmp(x->text, y->text);
}

/* The opcodes of the nodes from `first` up to `end`, the most frequent first; malloc'd. */
static struct mix *count_mix(const struct mg_module *m, mg_id first, mg_id end, uint32_t *n)
{
    struct mix *mix = mg_xcalloc(m->forms.n + 1, sizeof *mix);
    for (mg_id f = 1; f < m->forms.n; f++) mix[f].text = mg_name(m, m->forms.at[f].text);
    for (mg_id id = first; id && id != end; id = m->nodes.at[id].next)
        if (m->nodes.at[id].kind == MG_NODE_inst) mix[m->nodes.at[id].ref].n++;
    *n = 0;
    for (mg_id f = 1; f < m->forms.n; f++)
        if (mix[f].n) mix[(*n)++] = mix[f];
    qsort(mix, *n, sizeof *mix, by_count);
    return mix;
}

static void print_mix(const struct mg_module *m, mg_id func, struct mg_buf *out)
{
    uint32_t n;
    struct mix *mix = count_mix(m, m->funcs.at[func].first_node, 0, &n);
    for (uint32_t i = 0; i < n; i++) mg_buf_printf(out, "    %6u  %s\n", mix[i].n, mix[i].text);
    free(mix);
}

static void opcodes_json(const struct mg_cfg *c, uint32_t b, struct mg_json *j)
{
    uint32_t n;
    struct mix *mix = count_mix(c->m, c->blocks[b].first, c->m->nodes.at[c->blocks[b].last].next, &n);
    mg_json_key(j, "opcodes");
    mg_json_obj(j);
    for (uint32_t i = 0; i < n; i++) mg_json_key_u64(j, mix[i].text, mix[i].n);
    mg_json_end(j, '}');
    free(mix);
}

static void print_memory(const struct mg_module *m, const struct mg_spaces *s, mg_id func, struct mg_buf *out)
{
    uint32_t by_space[MG_SPACE_COUNT] = {0}, open = 0;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        unsigned set = mg_spaces_of(s, id);
        enum mg_space one = mg_spaces_one(set);
        if (!set) continue;
        if (one == MG_SPACE_generic)
            open++;
        else
            by_space[one]++;
    }
    mg_buf_adds(out, "  memory operations:");
    for (unsigned i = 1; i < MG_SPACE_COUNT; i++)
        if (by_space[i]) mg_buf_printf(out, " %s %u", mg_space_name((enum mg_space)i), by_space[i]);
    if (open) mg_buf_printf(out, " undecided %u", open);
    mg_buf_addc(out, '\n');
}

static const char *block_label(const struct mg_cfg *c, uint32_t b)
{
    return c->blocks[b].label ? mg_name(c->m, c->m->labels.at[c->blocks[b].label].name) : b ? "" : "entry";
}

static void print_formulas(const struct mg_cfg *c, struct mg_buf *out)
{
    struct mg_formulas *f = mg_formulas_new(c);
    mg_buf_printf(out, "  thread entries that follow from geometry and arguments: %u of %u blocks\n", f->n_known,
                  f->n_blocks);
    for (uint32_t b = 0; b < f->n_blocks && f->n_known; b++)
        mg_buf_printf(out, "    %4u %-12s %s\n", b, block_label(c, b), f->text[b] ? f->text[b] : "-");
    mg_formulas_free(f);
}

static void print_func(const struct mg_module *m, const struct mg_spaces *s, mg_id func, struct mg_buf *out)
{
    struct mg_cfg *c = mg_cfg_new(m, func);
    struct mg_loops *l = mg_loops_new(c);
    struct mg_live *live = mg_live_new(c);
    struct mg_uniform *u = mg_uniform_new(c, l);
    struct mg_equiv *q = mg_equiv_new(c, NULL);
    bool entry = m->funcs.at[func].kind == MG_FUNC_entry;
    uint32_t insts = 0, depth = 0, irreducible = 0, together = 0;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        insts += c->blocks[b].n_insts;
        together += u->cohort[b] != MG_NO_COHORT;
    }
    for (uint32_t i = 0; i < l->n_loops; i++) {
        depth = MG_MAX(depth, l->loops[i].depth);
        irreducible += l->loops[i].n_headers > 1;
    }
    mg_buf_printf(out, "%s %s\n  blocks %u (%u classes of equal count", entry ? "kernel" : "function",
                  mg_name(m, m->funcs.at[func].name), c->n_blocks, q->n_classes);
    if (entry) mg_buf_printf(out, ", %u entered by lanes together", together);
    mg_buf_printf(out, "), instructions %u, loops %u", insts, l->n_loops);
    if (l->n_loops) mg_buf_printf(out, " (depth %u)", depth);
    if (irreducible) mg_buf_printf(out, ", %u of them with several entries", irreducible);
    mg_buf_printf(out, "\n  32-bit registers live at once, at most: %u\n", mg_live_pressure(live, c));
    if (entry) {
        struct mg_callgraph *g = mg_callgraph_new(m, func);
        mg_buf_printf(out, "  functions reached: %u%s%s\n", g->n_funcs - 1,
                      g->has_indirect ? ", some through pointers" : "", g->has_recursion ? ", with recursion" : "");
        mg_callgraph_free(g);
        print_formulas(c, out);
    }
    print_memory(m, s, func, out);
    print_mix(m, func, out);
    mg_equiv_free(q);
    mg_uniform_free(u);
    mg_live_free(live);
    mg_loops_free(l);
    mg_cfg_free(c);
}

void ptx_stat(const struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out)
{
    struct mg_spaces *s = mg_spaces_new(m);
    for (mg_id f = 1; f < m->funcs.n; f++)
        if (ptx_wants(o, m, f)) print_func(m, s, f, out);
    mg_buf_printf(out, "generic accesses: %u, of one known space: %u\n", s->n_generic, s->n_resolved);
    mg_spaces_free(s);
}

static void func_json(const struct mg_module *m, mg_id func, struct mg_json *j)
{
    struct mg_cfg *c = mg_cfg_new(m, func);
    struct mg_loops *l = mg_loops_new(c);
    struct mg_formulas *f = m->funcs.at[func].kind == MG_FUNC_entry ? mg_formulas_new(c) : NULL;
    mg_json_obj(j);
    mg_json_key_str(j, "name", mg_name(m, m->funcs.at[func].name));
    mg_json_key_bool(j, "kernel", f != NULL);
    mg_json_key(j, "blocks");
    mg_json_arr(j);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "id", b);
        mg_json_key_str(j, "label", block_label(c, b));
        mg_json_key_u64(j, "ptx_line", m->nodes.at[c->blocks[b].first].line);
        mg_json_key_u64(j, "instructions", c->blocks[b].n_insts);
        mg_json_key_u64(j, "loop_depth", mg_loops_depth(l, b));
        mg_json_key_str(j, "thread_entries", f ? f->text[b] : NULL);
        opcodes_json(c, b, j);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
    mg_formulas_free(f);
    mg_loops_free(l);
    mg_cfg_free(c);
}

void ptx_stat_json(const struct mg_module *m, const struct ptx_opts *o, const char *label, struct mg_json *j)
{
    mg_json_obj(j);
    mg_json_key_str(j, "module", label);
    mg_json_key(j, "functions");
    mg_json_arr(j);
    for (mg_id f = 1; f < m->funcs.n; f++)
        if (ptx_wants(o, m, f)) func_json(m, f, j);
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}
