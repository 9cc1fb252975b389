/* lanes: how many lanes of a warp are active where (channel utilisation), and which branches split warps.
 *
 *   block    33 cells: warp entries with 0..31 active lanes, counted by the lowest active lane; the last
 *            one is filled in from thread entries (lanes.h)
 *   branch   taken       threads that took it, where thread entries do not tell: a register of each thread
 *            divergent   warp executions in which some active lanes took it and some did not
 *
 * Blocks that all lanes of the kernel's entry provably enter together ask once, at the entry.
 * From cells to figures: lanes_report.c. */
#include <stdlib.h>

#include "analysis/dom.h"
#include "analysis/uniform.h"
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

struct run { /* of one kernel */
    struct mg_patch *p;
    uint32_t *preds;
    mg_id partial; /* predicate of the kernel: its warp had not all lanes at the entry; 0: not asked */
};

static void jump(struct mg_code_at *at, mg_id p, bool negated, mg_id to)
{
    mg_code_push_guard(at, p, negated);
    MG_CODE(at, "bra.uni", mg_o_label(to));
    mg_code_pop_guard(at);
}

static mg_id is_partial(struct mg_code_at *at)
{
    mg_id p = mg_code_temp(at, MG_TYPE_pred);
    MG_CODE(at, "setp.ne.u32", mg_o_reg(p), mg_o_reg(mg_value_active(at)), mg_o_imm(0xffffffff));
    return p;
}

/* The cohort of the kernel's entry: are its warps whole? Asked once. */
static mg_id is_partial_at_entry(struct run *r)
{
    struct mg_code_at *entry = mg_at_entry(r->p, 0);
    if (r->partial) return r->partial;
    r->partial = mg_code_reg(entry, MG_TYPE_pred);
    MG_CODE(entry, "mov.pred", mg_o_reg(r->partial), mg_o_reg(is_partial(entry)));
    return r->partial;
}

static uint32_t cohort_of(struct run *r, uint32_t func_ix, uint32_t block)
{
    return func_ix ? MG_NO_COHORT : mg_patch_uniform(r->p, 0)->cohort[block];
}

static void count_block(struct run *r, uint32_t id)
{
    struct mg_patch *p = r->p;
    const struct mg_site_block *b = &mg_patch_sites(p)->blocks[id];
    uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, id, bins, MG_MERGE_SUM, 0);
    struct mg_code_at *at = mg_at_block(p, id);
    mg_id done = mg_code_label(at);
    jump(at, cohort_of(r, b->func_ix, b->block_ix) == 0 ? is_partial_at_entry(r) : is_partial(at), true, done);
    mg_id fewer = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "add.u32", mg_o_reg(fewer), mg_o_reg(mg_value_n_active(at)), mg_o_imm(-1));
    mg_tally_add(at, cell + 1, MG_LANES_WARP - 1, fewer);
    mg_code_place(at, done);
}

static void count_divergence(struct mg_code_at *at, uint32_t cell, mg_id guard)
{
    mg_id as_one = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at);
    MG_CODE(at, "vote.sync.uni.pred", mg_o_reg(as_one), mg_o_reg(guard), mg_o_reg(mg_value_active(at)));
    jump(at, as_one, false, done);
    mg_cell_update(at, cell + MG_LC_DIVERGENT, mg_o_imm(1), MG_ONCE);
    mg_code_place(at, done);
}

static void count_branch(struct run *r, const struct mg_patch_inst *i, mg_id guard, bool negated, uint32_t joins)
{
    struct mg_patch *p = r->p;
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id, MG_LC_COUNT, MG_MERGE_SUM, joins), of;
    struct mg_code_at *at = mg_at_before(p, i->node);
    const struct mg_uniform *u = i->func_ix ? NULL : mg_patch_uniform(p, 0);
    bool off, varies = cohort_of(r, i->func_ix, i->block) == MG_NO_COHORT || guard < u->reg_lo || guard >= u->reg_hi || u->varying[guard - u->reg_lo];
    if (varies) count_divergence(at, cell, guard);
    if (mg_kit_taken(mg_patch_sites(p)->blocks, r->preds, i->id, false, &of, &off)) return;
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

static enum mg_err lanes_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_patch_want_blocks(p, false);
    return MG_ERR_OK;
}

static enum mg_err lanes_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_lanes_opts *c = conf;
    const struct mg_sites *s = mg_patch_sites(p);
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts), func = UINT32_MAX;
    struct mg_dom *post = NULL;
    struct run r = {.p = p, .preds = mg_kit_preds(s->blocks, s->n_blocks)};
    (void)d;
    for (uint32_t id = 0; id < s->n_blocks; id++) count_block(&r, id);
    for (uint32_t i = 0; i < n && c->branches; i++) {
        const struct mg_module *m = mg_patch_module(p);
        bool negated = false;
        mg_id guard = mg_node_guard(m, insts[i].node, &negated);
        if (!guard || mg_node_form(m, &m->nodes.at[insts[i].node])->op != MG_OP_bra) continue;
        if (insts[i].func_ix != func) {
            mg_dom_free(post);
            post = mg_postdom_new(mg_patch_cfg(p, func = insts[i].func_ix));
        }
        count_branch(&r, &insts[i], guard, negated, join_of(s, &insts[i], post));
    }
    mg_dom_free(post);
    free(r.preds);
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_lanes;
const struct mg_tool mg_tool_lanes = {
    .name = "lanes", .summary = "active lanes by block as a distribution; branches that split warps, by what they cost",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 2.1 (docs/measured.md)",
    .opts = lanes_opts, .configure = lanes_configure, .release = free, .one_of = lanes_one_of,
    .analyze = lanes_analyze, .instrument = lanes_instrument, .profile = mg_lanes_profile,
};
