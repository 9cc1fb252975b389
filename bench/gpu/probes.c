/* Tools of the benchmark: the same counts as the tool blocks takes, by probes that are put in as written,
 * without any thought of which counters could be spared. */
#include "probes.h"

#include "tool/tool.h"

#include <string.h>

/* A register of each thread for every block, to which 1 is added where the block begins. */
static enum mg_err sums(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    for (uint32_t b = 0; b < mg_patch_sites(p)->n_blocks; b++) {
        uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, b, 1, MG_MERGE_SUM, 0);
        mg_sum_add(mg_at_block(p, b), mg_patch_sum(p, cell), mg_o_imm(1));
    }
    return MG_ERR_OK;
}

/* One register of each thread for the whole kernel. */
static enum mg_err one_sum(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    uint32_t sum = mg_patch_sum(p, mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 1, MG_MERGE_SUM, 0));
    for (uint32_t b = 0; b < mg_patch_sites(p)->n_blocks; b++) mg_sum_add(mg_at_block(p, b), sum, mg_o_imm(1));
    return MG_ERR_OK;
}

/* A cell for every block, in memory: once a warp. */
static enum mg_err cells(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    for (uint32_t b = 0; b < mg_patch_sites(p)->n_blocks; b++)
        mg_cell_update(mg_at_block(p, b), mg_patch_site(p, MG_SITE_BLOCK, 0, b, 1, MG_MERGE_SUM, 0), mg_o_imm(1),
                       MG_TIMES);
    return MG_ERR_OK;
}

/* ---- those that hand.h writes into the source (which says what they count) -------------------------------------- */

struct place {
    struct mg_patch *p;
    uint32_t cell, sum;
    mg_id start;
};

/* Calls fn at each load from global memory, or at each store to it, with the operand of what is read or written. */
static void at_accesses(struct place *x, bool loads,
                        void (*fn)(struct place *x, struct mg_code_at *at, const struct mg_access *a, struct mg_opnd v))
{
    const struct mg_patch_inst *insts;
    const struct mg_module *m = mg_patch_module(x->p);
    for (uint32_t i = 0, n = mg_patch_insts(x->p, &insts); i < n; i++) {
        struct mg_access a;
        bool negated;
        if (!mg_access_of(m, insts[i].node, &a) || a.space != MG_SPACE_global || a.atomic || a.reads != loads) continue;
        struct mg_opnd v = m->opnds.at[m->nodes.at[insts[i].node].opnd + a.data];
        if (v.kind == MG_OPND_vec) v = m->opnds.at[v.id];
        mg_id guard = mg_node_guard(m, insts[i].node, &negated);
        struct mg_code_at *at = loads ? mg_at_after(x->p, insts[i].node) : mg_at_before(x->p, insts[i].node);
        mg_code_push_guard(at, guard, negated);
        fn(x, at, &a, v);
        mg_code_pop_guard(at);
    }
}

static void add_bytes(struct place *x, struct mg_code_at *at, const struct mg_access *a, struct mg_opnd v)
{
    (void)v;
    mg_sum_add(at, x->sum, mg_o_imm(a->bytes * a->vec));
}

static void add_value(struct place *x, struct mg_code_at *at, const struct mg_access *a, struct mg_opnd v)
{
    mg_id low = mg_code_temp(at, MG_TYPE_b32);
    (void)a;
    MG_CODE(at, "mov.b32", mg_o_reg(low), v);
    MG_CODE(at, "and.b32", mg_o_reg(low), mg_o_reg(low), mg_o_imm(15));
    mg_cell_update_at(at, x->cell, 16, low, mg_o_imm(1), MG_EACH);
}

static void add_warp(struct place *x, struct mg_code_at *at, const struct mg_access *a, struct mg_opnd v)
{
    (void)a, (void)v;
    mg_cell_update(at, x->cell, mg_o_imm(1), MG_ONCE);
    mg_cell_update(at, x->cell + 1, mg_o_imm(1), MG_TIMES);
}

static void add_lanes(struct place *x, struct mg_code_at *at, const struct mg_access *a, struct mg_opnd v)
{
    (void)a, (void)v;
    mg_cell_update_at(at, x->cell, 33, mg_value_n_active(at), mg_o_imm(1), MG_ONCE);
}

static void raise_max(struct place *x, struct mg_code_at *at, const struct mg_access *a, struct mg_opnd v)
{
    mg_id bits = mg_code_temp(at, MG_TYPE_b32);
    (void)a;
    MG_CODE(at, "mov.b32", mg_o_reg(bits), v);
    mg_cell_update(at, x->cell, mg_o_reg(bits), MG_EACH);
}

static void add_cycles(struct mg_code_at *at, void *user)
{
    struct place *x = user;
    mg_id t = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "sub.u64", mg_o_reg(t), mg_o_reg(mg_value_clock(at)), mg_o_reg(x->start));
    mg_cell_update(at, x->cell, mg_o_reg(t), MG_EACH);
}

static enum mg_err bytes(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct place x = {.p = p, .cell = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 1, MG_MERGE_SUM, 0)};
    (void)conf, (void)d;
    x.sum = mg_patch_sum(p, x.cell);
    at_accesses(&x, true, add_bytes);
    return MG_ERR_OK;
}

static enum mg_err values(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct place x = {.p = p, .cell = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 16, MG_MERGE_SUM, 0)};
    (void)conf, (void)d;
    at_accesses(&x, true, add_value);
    return MG_ERR_OK;
}

static enum mg_err warps(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct place x = {.p = p, .cell = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 2, MG_MERGE_SUM, 0)};
    (void)conf, (void)d;
    at_accesses(&x, true, add_warp);
    return MG_ERR_OK;
}

static enum mg_err max(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct place x = {.p = p, .cell = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 1, MG_MERGE_MAX, 0)};
    (void)conf, (void)d;
    at_accesses(&x, false, raise_max);
    return MG_ERR_OK;
}

static enum mg_err cycles(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct place x = {.p = p, .cell = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 1, MG_MERGE_SUM, 0)};
    struct mg_code_at *at = mg_at_entry(p, 0);
    (void)conf, (void)d;
    x.start = mg_code_reg(at, MG_TYPE_b64);
    MG_CODE(at, "mov.b64", mg_o_reg(x.start), mg_o_reg(mg_value_clock(at)));
    mg_at_exits(p, 0, add_cycles, &x);
    return MG_ERR_OK;
}

static enum mg_err lanes(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct place x = {.p = p, .cell = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 33, MG_MERGE_SUM, 0)};
    (void)conf, (void)d;
    at_accesses(&x, true, add_lanes);
    return MG_ERR_OK;
}

static const struct mg_tool probes[] = {
    {.name = "bytes", .instrument = bytes},       {.name = "values", .instrument = values},
    {.name = "warps", .instrument = warps},       {.name = "max", .instrument = max},
    {.name = "cycles", .instrument = cycles},     {.name = "lanes", .instrument = lanes},
    {.name = "probe-sum", .instrument = one_sum}, {.name = "probe-sums", .instrument = sums},
    {.name = "probe-cells", .instrument = cells},
};

const struct mg_tool *probe_find(const char *name)
{
    for (unsigned i = 0; i < MG_COUNT_OF(probes); i++)
        if (!strcmp(probes[i].name, name)) return &probes[i];
    return NULL;
}
