/* margay ptx cfg --data, --json: what each instruction reads and who wrote it, what it writes and who reads that,
 * whether the lanes of a warp may see different values, and the space of each access. */
#include "cli/ptx.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/dom.h"
#include "analysis/loop.h"
#include "analysis/space.h"
#include "analysis/ssa.h"
#include "analysis/uniform.h"
#include "ptx/ptx.h"

enum { MOST_REGS = 300 };

struct ptx_data {
    const struct mg_cfg *c;
    const struct mg_spaces *spaces;
    struct mg_dom *dom;
    struct mg_loops *loops;
    struct mg_live *live;
    struct mg_ssa *ssa;
    struct mg_uniform *uniform; /* of kernels */
    uint32_t *seen, stamp;      /* values of the walk at hand */
    MG_VEC(uint32_t) lines;
    bool entry; /* the walk came to the function's entry */
};

struct ptx_data *ptx_data_new(const struct mg_cfg *c, const struct mg_spaces *spaces)
{
    struct ptx_data *d = mg_xcalloc(1, sizeof *d);
    d->c = c;
    d->spaces = spaces;
    d->dom = mg_dom_new(c);
    d->loops = mg_loops_new(c);
    d->live = mg_live_new(c);
    d->ssa = mg_ssa_new(c, d->dom, d->live);
    if (c->m->funcs.at[c->func].kind == MG_FUNC_entry) d->uniform = mg_uniform_new(c, d->loops);
    d->seen = mg_xcalloc(d->ssa->n_values + 1, sizeof *d->seen);
    return d;
}

void ptx_data_free(struct ptx_data *d)
{
    if (!d) return;
    free(d->seen);
    mg_vec_release(&d->lines);
    if (d->uniform) mg_uniform_free(d->uniform);
    mg_ssa_free(d->ssa);
    mg_live_free(d->live);
    mg_loops_free(d->loops);
    mg_dom_free(d->dom);
    free(d);
}

/* ---- chains ------------------------------------------------------------------------------------------------- */

typedef MG_VEC(uint32_t) worklist;

static void look_at(struct ptx_data *d, worklist *w, uint32_t value)
{
    if (!value || d->seen[value] == d->stamp) return;
    d->seen[value] = d->stamp;
    *mg_vec_push(w) = value;
}

static int by_line(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* In order, each once. */
static void sort_lines(struct ptx_data *d)
{
    uint32_t n = 0;
    if (d->lines.n) qsort(d->lines.at, d->lines.n, sizeof *d->lines.at, by_line);
    for (uint32_t i = 0; i < d->lines.n; i++)
        if (!n || d->lines.at[n - 1] != d->lines.at[i]) d->lines.at[n++] = d->lines.at[i];
    d->lines.n = n;
}

typedef void (*visit_fn)(struct ptx_data *d, worklist *w, const struct mg_ssa_value *v);

/* d->lines: what the visitor finds at the value and at those that it asks to be looked at. */
static void walk_values(struct ptx_data *d, uint32_t value, visit_fn visit)
{
    worklist w = {0};
    d->stamp++;
    d->lines.n = 0;
    d->entry = false;
    look_at(d, &w, value);
    while (w.n) visit(d, &w, &d->ssa->values[w.at[--w.n]]);
    mg_vec_release(&w);
    sort_lines(d);
}

/* Instructions that may have written what is read here as the value. */
static void visit_writers(struct ptx_data *d, worklist *w, const struct mg_ssa_value *v)
{
    d->entry |= v->kind == MG_SSA_entry || (v->kind == MG_SSA_phi && !v->block); /* a loop at the very head */
    if (v->kind == MG_SSA_def) *mg_vec_push(&d->lines) = d->c->m->nodes.at[v->node].line;
    if (v->kind == MG_SSA_def) look_at(d, w, v->prev);
    for (uint32_t i = 0; v->kind == MG_SSA_phi && i < v->n_args; i++) look_at(d, w, d->ssa->args[v->args_at + i]);
}

/* Instructions that may read the value, also where paths have joined. */
static void visit_readers(struct ptx_data *d, worklist *w, const struct mg_ssa_value *v)
{
    for (uint32_t i = 0; i < v->n_uses; i++) {
        const struct mg_ssa_use *u = &d->ssa->uses[v->uses_at + i];
        if (u->node)
            *mg_vec_push(&d->lines) = d->c->m->nodes.at[u->node].line;
        else
            look_at(d, w, u->value);
    }
}

/* ---- lanes, spaces ----------------------------------------------------------------------------------------------- */

static bool varies(const struct ptx_data *d, mg_id reg)
{
    const struct mg_uniform *u = d->uniform;
    return reg < u->reg_lo || reg >= u->reg_hi || u->varying[reg - u->reg_lo];
}

/* Do lanes that execute it together provably read the same? Of a function this is not known. */
static bool is_uniform(const struct ptx_data *d, mg_id node)
{
    mg_id regs[MOST_REGS];
    uint32_t n = mg_node_uses(d->c->m, node, regs, MOST_REGS);
    bool same = n <= MOST_REGS;
    for (uint32_t i = 0; i < n && same; i++) same = !varies(d, regs[i]);
    n = mg_node_defs(d->c->m, node, regs, MOST_REGS);
    same = same && n <= MOST_REGS;
    for (uint32_t i = 0; i < n && same; i++) same = !varies(d, regs[i]); /* special registers, memory */
    return same;
}

/* "global", "global|shared" where several are possible; false: no access. */
static bool add_space(const struct ptx_data *d, mg_id node, struct mg_buf *out)
{
    unsigned set = mg_spaces_of(d->spaces, node);
    size_t before = out->n;
    for (unsigned i = 1; i < MG_SPACE_COUNT; i++)
        if (set & MG_SPACE_BIT(i))
            mg_buf_printf(out, "%s%s", out->n > before ? "|" : "", mg_space_name((enum mg_space)i));
    return set != 0;
}

static void add_text(const struct mg_module *m, mg_id node, struct mg_buf *out)
{
    size_t from = out->n;
    mg_ptx_print_node(m, node, out);
    while (out->n > from && (out->at[out->n - 1] == '\n' || out->at[out->n - 1] == ' ')) out->at[--out->n] = 0;
    size_t skip = 0;
    while (from + skip < out->n && (out->at[from + skip] == '\t' || out->at[from + skip] == ' ')) skip++;
    memmove(out->at + from, out->at + from + skip, out->n - from - skip + 1);
    out->n -= skip;
}

#define EACH_INST(c, b, id)                                                                                            \
    for (mg_id id = (c)->blocks[b].first, end_ = (c)->m->nodes.at[(c)->blocks[b].last].next; id != end_;               \
         id = (c)->m->nodes.at[id].next)                                                                               \
        if ((c)->m->nodes.at[id].kind == MG_NODE_inst)

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void add_lines(const struct ptx_data *d, struct mg_buf *out)
{
    for (uint32_t i = 0; i < d->lines.n; i++) mg_buf_printf(out, "%s%u", i ? "," : "", d->lines.at[i]);
    if (d->entry) mg_buf_adds(out, d->lines.n ? ",entry" : "entry");
}

void ptx_data_print(struct ptx_data *d, uint32_t block, struct mg_buf *out)
{
    const struct mg_module *m = d->c->m;
    if (d->uniform && d->uniform->cohort[block] != MG_NO_COHORT)
        mg_buf_printf(out, "    lanes enter together since block %u\n", d->uniform->cohort[block]);
    EACH_INST(d->c, block, id)
    {
        mg_id regs[MOST_REGS];
        struct mg_buf text = MG_BUF_INIT, space = MG_BUF_INIT;
        uint32_t n = MG_MIN(mg_node_uses(m, id, regs, MOST_REGS), (uint32_t)MOST_REGS);
        add_text(m, id, &text);
        mg_buf_printf(out, "    %5u  %-7s  %-6s  %-48s", m->nodes.at[id].line,
                      !d->uniform         ? "-"
                      : is_uniform(d, id) ? "uniform"
                                          : "varying",
                      add_space(d, id, &space) ? space.at : "", text.at);
        for (uint32_t i = 0; i < n; i++) {
            mg_buf_adds(out, "  ");
            mg_reg_text(m, regs[i], out);
            mg_buf_addc(out, '<');
            walk_values(d, mg_ssa_read(d->ssa, id, regs[i]), visit_writers);
            add_lines(d, out);
        }
        while (out->n && out->at[out->n - 1] == ' ') out->at[--out->n] = 0;
        mg_buf_addc(out, '\n');
        mg_buf_release(&text);
        mg_buf_release(&space);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void key_lines(struct mg_json *j, const char *key, const struct ptx_data *d)
{
    mg_json_key(j, key);
    mg_json_arr(j);
    for (uint32_t i = 0; i < d->lines.n; i++) mg_json_u64(j, d->lines.at[i]);
    mg_json_end(j, ']');
}

static void key_reg(struct mg_json *j, const struct mg_module *m, mg_id reg)
{
    struct mg_buf name = MG_BUF_INIT;
    mg_reg_text(m, reg, &name);
    mg_json_obj(j);
    mg_json_key_str(j, "register", name.at);
    mg_buf_release(&name);
}

static void registers_json(struct ptx_data *d, mg_id id, struct mg_json *j)
{
    const struct mg_module *m = d->c->m;
    mg_id regs[MOST_REGS];
    uint32_t n = MG_MIN(mg_node_uses(m, id, regs, MOST_REGS), (uint32_t)MOST_REGS);
    mg_json_key(j, "reads");
    mg_json_arr(j);
    for (uint32_t i = 0; i < n; i++) {
        walk_values(d, mg_ssa_read(d->ssa, id, regs[i]), visit_writers);
        key_reg(j, m, regs[i]);
        key_lines(j, "from", d);
        mg_json_key_bool(j, "entry", d->entry);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    n = MG_MIN(mg_node_defs(m, id, regs, MOST_REGS), (uint32_t)MOST_REGS);
    mg_json_key(j, "writes");
    mg_json_arr(j);
    for (uint32_t i = 0; i < n; i++) {
        walk_values(d, mg_ssa_write(d->ssa, id, regs[i]), visit_readers);
        key_reg(j, m, regs[i]);
        key_lines(j, "used_by", d);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void instruction_json(struct ptx_data *d, mg_id id, struct mg_json *j)
{
    const struct mg_module *m = d->c->m;
    struct mg_buf text = MG_BUF_INIT, space = MG_BUF_INIT;
    add_text(m, id, &text);
    mg_json_obj(j);
    mg_json_key_u64(j, "ptx_line", m->nodes.at[id].line);
    mg_json_key_str(j, "text", text.at);
    mg_json_key(j, "uniform");
    if (d->uniform)
        mg_json_bool(j, is_uniform(d, id));
    else
        mg_json_null(j);
    mg_json_key_str(j, "space", add_space(d, id, &space) ? space.at : NULL);
    registers_json(d, id, j);
    mg_json_end(j, '}');
    mg_buf_release(&text);
    mg_buf_release(&space);
}

static void block_json(struct ptx_data *d, uint32_t b, struct mg_json *j)
{
    const struct mg_cfg *c = d->c;
    const struct mg_block *k = &c->blocks[b];
    mg_json_obj(j);
    mg_json_key_u64(j, "id", b);
    mg_json_key_str(j, "label", k->label ? mg_name(c->m, c->m->labels.at[k->label].name) : NULL);
    mg_json_key_u64(j, "ptx_line", c->m->nodes.at[k->first].line);
    mg_json_key_u64(j, "rank", c->rank[b]);
    mg_json_key_bool(j, "reachable", c->reachable[b]);
    mg_json_key_bool(j, "leaves", k->leaves);
    mg_json_key_u64_if(j, "idom", d->dom->idom[b] != MG_NO_BLOCK, d->dom->idom[b]);
    mg_json_key_u64(j, "loop_depth", mg_loops_depth(d->loops, b));
    mg_json_key_u64_if(j, "together_since", d->uniform && d->uniform->cohort[b] != MG_NO_COHORT,
                       d->uniform ? d->uniform->cohort[b] : 0);
    mg_json_key(j, "succ");
    mg_json_arr(j);
    for (uint32_t i = 0; i < k->n_succs; i++) mg_json_u64(j, c->edges[k->succ_at + i]);
    mg_json_end(j, ']');
    mg_json_key(j, "instructions");
    mg_json_arr(j);
    EACH_INST(c, b, id) instruction_json(d, id, j);
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

void ptx_data_json(struct ptx_data *d, struct mg_json *j)
{
    const struct mg_func *f = &d->c->m->funcs.at[d->c->func];
    mg_json_obj(j);
    mg_json_key_str(j, "name", mg_name(d->c->m, f->name));
    mg_json_key_bool(j, "kernel", f->kind == MG_FUNC_entry);
    mg_json_key(j, "blocks");
    mg_json_arr(j);
    for (uint32_t b = 0; b < d->c->n_blocks; b++) block_json(d, b, j);
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}
