/* zeros: which loads read nothing but zeros? docs/howto-add-a-tool.md tells it step by step. */
#include "tool/plugin.h"
#include "view/result.h"

enum { READS, ZEROS, N_CELLS }; /* cells of every load: lanes that read, lanes that read 0 */

/* Called for every load of one 32-bit value, in the order of the text. */
static void each_load(struct mg_patch *p,
                      void (*fn)(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_opnd value, uint32_t ix))
{
    const struct mg_module *m = mg_patch_module(p);
    const struct mg_patch_inst *insts;
    struct mg_access a;
    for (uint32_t i = 0, ix = 0, n = mg_patch_insts(p, &insts); i < n; i++)
        if (mg_access_of(m, insts[i].node, &a) && a.reads && !a.writes && !a.is_async && a.bytes == 4 && a.vec == 1 &&
            a.space != MG_SPACE_param)
            fn(p, &insts[i], m->opnds.at[m->nodes.at[insts[i].node].opnd + a.data], ix++);
}

static void reserve(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_opnd value, uint32_t ix)
{
    (void)value, (void)ix;
    mg_patch_site(p, MG_SITE_INST, i->node, i->id, N_CELLS, MG_MERGE_SUM, 0);
}

static void count(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_opnd value, uint32_t ix)
{
    struct mg_code_at *at = mg_at_after(p, i->node);
    bool negated;
    mg_id guard = mg_node_guard(mg_patch_module(p), i->node, &negated), zero = mg_code_temp(at, MG_TYPE_pred);
    mg_code_guard(at, guard, negated); /* lanes that did not load count nothing */
    mg_cell_update(at, ix * N_CELLS + READS, mg_o_imm(1), MG_TIMES);
    MG_CODE(at, "setp.eq.b32", zero, value, 0);
    mg_code_push_guard(at, zero, false);
    mg_cell_update(at, ix * N_CELLS + ZEROS, mg_o_imm(1), MG_TIMES);
    mg_code_pop_guard(at);
}

static enum mg_err analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    return (void)conf, (void)d, each_load(p, reserve), MG_ERR_OK;
}
static enum mg_err instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    return (void)conf, (void)d, each_load(p, count), MG_ERR_OK;
}

static void profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf;
    mg_table_begin(t, "loads", "loads and the zeros that they read");
    mg_table_column(t, "reads", MG_COL_COUNT, NULL), mg_table_column(t, "zeros", MG_COL_COUNT, NULL),
        mg_table_column(t, "share", MG_COL_PERCENT, NULL);
    mg_table_column(t, "place", MG_COL_PLACE, NULL), mg_table_column(t, "op", MG_COL_TEXT, NULL),
        mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_json_key(j, "loads"), mg_json_arr(j);
    for (const struct mg_result_kernel *k = r->kernels; k < r->kernels + r->n_kernels; k++)
        for (const struct mg_result_site *s = k->sites; s < k->sites + k->n_sites; s++) {
            uint64_t reads = k->cells[s->cell + READS], zeros = k->cells[s->cell + ZEROS];
            mg_table_row(t), mg_table_u64(t, reads), mg_table_u64(t, zeros),
                mg_table_f64(t, reads ? 100.0 * (double)zeros / (double)reads : 0);
            mg_table_place(t, s), mg_table_text(t, s->op), mg_table_text(t, k->demangled);
            mg_json_obj(j), mg_json_key_u64(j, "kernel", k->id), mg_json_key_u64(j, "ptx_line", s->ptx_line);
            mg_json_key_u64(j, "reads", reads), mg_json_key_u64(j, "zeros", zeros), mg_json_end(j, '}');
        }
    mg_json_end(j, ']'), mg_table_sort(t, 1); /* most zeros first */
}

static const struct mg_tool zeros = {.name = "zeros",
                                     .summary = "loads and the zeros that they read",
                                     .analyze = analyze,
                                     .instrument = instrument,
                                     .profile = profile};
MG_TOOL_PLUGIN(zeros)
