/* lanes: how many lanes of a warp are active where (channel utilisation), and which branches split warps.
 *
 *   block    33 cells: warp entries with 0..32 active lanes, counted by the lowest active lane; the last
 *            one holds lanes, not entries: full warps count in a register of each thread
 *   branch   taken       threads that took it: a register of each thread
 *            divergent   warp executions in which some active lanes took it and some did not
 * From cells to figures: lanes_report.c. */
#include <stdlib.h>

#include "analysis/dom.h"
#include "tool/lanes.h"

enum { bins = MG_LANES_BINS };

static const struct mg_tool_opt lanes_opts[] = {
    {"branches", "on", "the branch table (on|off)"},
    {"sample", "1", "count one of so many launches of a kernel, drawn at random, and estimate the others, with a bound"},
    {0},
};
static const struct mg_field lanes_fields[] = {
    {"branches", MG_FIELD_FLAG, offsetof(struct mg_lanes_opts, branches), 0, 0, NULL},
    {"sample", MG_FIELD_NUMBER, offsetof(struct mg_lanes_opts, sample), 1, 1 << 20, NULL},
    {0},
};

static enum mg_err lanes_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct mg_lanes_opts defaults = {.branches = true, .sample = 1};
    return mg_fields_parse("lanes", lanes_fields, &defaults, sizeof defaults, args, conf, d);
}

static uint32_t lanes_one_of(const void *conf)
{
    return (uint32_t)((const struct mg_lanes_opts *)conf)->sample;
}

/* ---- instrument ---------------------------------------------------------------------------------------- */

static void count_block(struct mg_patch *p, uint32_t id)
{
    uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, id, bins, MG_MERGE_SUM, 0);
    struct mg_code_at *at = mg_at_block(p, id);
    mg_id full = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at);
    MG_CODE(at, "setp.eq.u32", mg_o_reg(full), mg_o_reg(mg_value_active(at)), mg_o_imm(0xffffffff));
    mg_code_push_guard(at, full, false);
    mg_sum_add(at, mg_patch_sum(p, cell + MG_LANES_WARP), mg_o_imm(1));
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_pop_guard(at);
    mg_cell_update_at(at, cell, MG_LANES_WARP, mg_value_n_active(at), mg_o_imm(1), MG_ONCE);
    mg_code_place(at, done);
}

static void count_branch(struct mg_patch *p, const struct mg_patch_inst *i, mg_id guard, bool negated, uint32_t joins)
{
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id, MG_LC_COUNT, MG_MERGE_SUM, joins);
    struct mg_code_at *at = mg_at_before(p, i->node);
    mg_id active = mg_value_active(at), ballot = mg_code_reg(at, MG_TYPE_b32), some = mg_code_reg(at, MG_TYPE_pred), split = mg_code_reg(at, MG_TYPE_pred);
    MG_CODE(at, "vote.sync.ballot.b32", mg_o_reg(ballot), mg_o_reg(guard), mg_o_reg(active));
    MG_CODE(at, "setp.ne.u32", mg_o_reg(some), mg_o_reg(ballot), mg_o_imm(0));
    MG_CODE(at, "setp.ne.and.u32", mg_o_reg(split), mg_o_reg(ballot), mg_o_reg(active), mg_o_reg(some));
    mg_code_push_guard(at, split, false);
    mg_cell_update(at, cell + MG_LC_DIVERGENT, mg_o_imm(1), MG_ONCE);
    mg_code_pop_guard(at);
    mg_code_push_guard(at, guard, negated);
    mg_sum_add(at, mg_patch_sum(p, cell + MG_LC_TAKEN), mg_o_imm(1));
    mg_code_pop_guard(at);
}

/* Dense id + 1 of the block where both sides of the branch meet again, 0: nowhere. */
static uint32_t join_of(const struct mg_sites *s, const struct mg_patch_inst *i, const struct mg_dom *post)
{
    uint32_t join = post->idom[i->block];
    return join >= MG_DOM_ROOT ? 0 : s->first_block[i->func_ix] + join + 1;
}

static enum mg_err lanes_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_lanes_opts *c = conf;
    const struct mg_sites *s = mg_patch_sites(p);
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts), func = UINT32_MAX;
    struct mg_dom *post = NULL;
    (void)d;
    for (uint32_t id = 0; id < s->n_blocks; id++) count_block(p, id);
    for (uint32_t i = 0; i < n && c->branches; i++) {
        const struct mg_module *m = mg_patch_module(p);
        bool negated = false;
        mg_id guard = mg_node_guard(m, insts[i].node, &negated);
        if (!guard || mg_node_form(m, &m->nodes.at[insts[i].node])->op != MG_OP_bra) continue;
        if (insts[i].func_ix != func) {
            mg_dom_free(post);
            post = mg_postdom_new(mg_patch_cfg(p, func = insts[i].func_ix));
        }
        count_branch(p, &insts[i], guard, negated, join_of(s, &insts[i], post));
    }
    mg_dom_free(post);
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_lanes;
const struct mg_tool mg_tool_lanes = {
    .name = "lanes", .summary = "active lanes by block as a distribution; branches that split warps, by what they cost",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 2.4 (docs/measured.md)",
    .opts = lanes_opts, .configure = lanes_configure, .release = free, .one_of = lanes_one_of,
    .instrument = lanes_instrument, .profile = mg_lanes_profile,
};
