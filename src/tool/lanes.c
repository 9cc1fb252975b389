/* lanes: how many lanes of a warp are active where (channel utilisation), and which branches split warps.
 *
 *   block    33 cells: warp entries with 0..32 active lanes, counted by the lowest active lane; the last
 *            one holds lanes, not entries: full warps count in a register of each thread
 *   branch   taken       threads that took it: a register of each thread
 *            divergent   warp executions in which some active lanes took it and some did not
 *
 * A slot is idle when a warp executes an instruction without that lane. Idle slots of a block are charged
 * to the innermost divergent branch around it: that of the smallest region, the blocks on a way from the
 * branch to where its two sides meet again (its immediate postdominator). */
#include <stdlib.h>
#include <string.h>

#include "analysis/dom.h"
#include "tool/chart.h"
#include "tool/kit.h"

enum { warp = 32, bins = warp + 1, cell_taken = 0, cell_divergent = 1, branch_cells = 2, charts = 8 };

static const struct mg_tool_opt lanes_opts[] = {
    {"branches", "on", "the branch table (on|off)"},
    {0},
};
struct conf { bool branches; };
static const struct mg_field lanes_fields[] = {
    {"branches", MG_FIELD_FLAG, offsetof(struct conf, branches), 0, 0, NULL},
    {0},
};

static enum mg_err lanes_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct conf defaults = {.branches = true};
    return mg_fields_parse("lanes", lanes_fields, &defaults, sizeof defaults, args, conf, d);
}

/* ---- instrument ---------------------------------------------------------------------------------------- */

static void count_block(struct mg_patch *p, uint32_t id)
{
    uint32_t cell = mg_patch_site(p, MG_SITE_BLOCK, 0, id, bins, MG_MERGE_SUM, 0);
    struct mg_code_at *at = mg_at_block(p, id);
    mg_id full = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at);
    MG_CODE(at, "setp.eq.u32", mg_o_reg(full), mg_o_reg(mg_value_active(at)), mg_o_imm(0xffffffff));
    mg_code_push_guard(at, full, false);
    mg_sum_add(at, mg_patch_sum(p, cell + warp), mg_o_imm(1));
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_pop_guard(at);
    mg_cell_update_at(at, cell, warp, mg_value_n_active(at), mg_o_imm(1), MG_ONCE);
    mg_code_place(at, done);
}

static void count_branch(struct mg_patch *p, const struct mg_patch_inst *i, mg_id guard, bool negated, uint32_t joins)
{
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id, branch_cells, MG_MERGE_SUM, joins);
    struct mg_code_at *at = mg_at_before(p, i->node);
    mg_id active = mg_value_active(at), ballot = mg_code_reg(at, MG_TYPE_b32), some = mg_code_reg(at, MG_TYPE_pred), split = mg_code_reg(at, MG_TYPE_pred);
    MG_CODE(at, "vote.sync.ballot.b32", mg_o_reg(ballot), mg_o_reg(guard), mg_o_reg(active));
    MG_CODE(at, "setp.ne.u32", mg_o_reg(some), mg_o_reg(ballot), mg_o_imm(0));
    MG_CODE(at, "setp.ne.and.u32", mg_o_reg(split), mg_o_reg(ballot), mg_o_reg(active), mg_o_reg(some));
    mg_code_push_guard(at, split, false);
    mg_cell_update(at, cell + cell_divergent, mg_o_imm(1), MG_ONCE);
    mg_code_pop_guard(at);
    mg_code_push_guard(at, guard, negated);
    mg_sum_add(at, mg_patch_sum(p, cell + cell_taken), mg_o_imm(1));
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
    const struct conf *c = conf;
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

/* ---- profile ------------------------------------------------------------------------------------------- */

struct branch { const struct mg_result_site *s; uint32_t region; /* blocks */ uint64_t taken, not_taken, divergent, idle; };
struct use { /* of one kernel */
    const struct mg_result_kernel *k;
    uint64_t (**block)[bins];         /* by dense id: warp entries by active lanes, NULL: none */
    uint64_t slots, active;           /* warp instructions x 32, of these active */
    uint64_t sum[bins];               /* warp instructions by active lanes */
    struct branch *branches; uint32_t n_branches;
};

static uint64_t insts_of(const struct use *u, uint32_t block)
{
    return u->k->blocks && block < u->k->n_blocks ? u->k->blocks[block].n_insts : 0;
}

static uint64_t block_entries(const struct use *u, uint32_t block, uint64_t *lanes)
{
    uint64_t n = 0;
    *lanes = 0;
    for (uint32_t l = 0; l < bins && u->block[block]; l++) n += (*u->block[block])[l], *lanes += l * (*u->block[block])[l];
    return n;
}

/* Blocks on a way from the branch to its join, by mark. */
static uint32_t mark_region(const struct use *u, const struct mg_result_site *s, bool *in, uint32_t *stack)
{
    const struct mg_result_kernel *k = u->k;
    uint32_t depth = 0, n = 0;
    memset(in, 0, k->n_blocks);
    for (uint32_t from = s->block;;) {
        for (uint32_t i = 0; i < k->blocks[from].n_succs; i++) {
            uint32_t to = k->blocks[from].succs[i];
            if (to >= k->n_blocks || in[to] || to + 1 == s->note) continue;
            in[to] = true;
            n++;
            stack[depth++] = to;
        }
        if (!depth) return n;
        from = stack[--depth];
    }
}

static void charge(struct use *u)
{
    const struct mg_result_kernel *k = u->k;
    bool *in = mg_xcalloc(k->n_blocks + 1, 1);
    uint32_t *stack = mg_xcalloc(k->n_blocks + 1, sizeof *stack), *owner = mg_xcalloc(k->n_blocks + 1, sizeof *owner);
    for (uint32_t i = 0; i < u->n_branches; i++) {
        struct branch *b = &u->branches[i];
        b->region = mark_region(u, b->s, in, stack);
        for (uint32_t x = 0; b->divergent && x < k->n_blocks; x++)
            if (in[x] && (!owner[x] || b->region < u->branches[owner[x] - 1].region)) owner[x] = i + 1;
    }
    for (uint32_t x = 0; x < k->n_blocks; x++) {
        uint64_t lanes, n = block_entries(u, x, &lanes);
        if (owner[x]) u->branches[owner[x] - 1].idle += (n * warp - lanes) * insts_of(u, x);
    }
    free(in);
    free(stack);
    free(owner);
}

static void use_init(struct use *u, const struct mg_result_kernel *k)
{
    memset(u, 0, sizeof *u);
    u->k = k;
    u->block = mg_xcalloc(k->n_blocks + 1, sizeof *u->block);
    u->branches = mg_xcalloc(k->n_sites + 1, sizeof *u->branches);
    for (uint32_t i = 0; i < k->n_sites; i++)
        if (k->sites[i].kind == MG_SITE_BLOCK && k->sites[i].block < k->n_blocks && k->sites[i].n_cells == bins && !u->block[k->sites[i].block]) {
            uint64_t (*of)[bins] = mg_xcalloc(1, sizeof *of);
            memcpy(of, mg_kit_cells(k, &k->sites[i]), sizeof *of);
            (*of)[warp] /= warp;
            u->block[k->sites[i].block] = of;
        }
    for (uint32_t i = 0; i < k->n_sites; i++) {
        const struct mg_result_site *s = &k->sites[i];
        if (s->kind != MG_SITE_INST || s->block >= k->n_blocks || s->n_cells != branch_cells) continue;
        struct branch *b = &u->branches[u->n_branches++];
        uint64_t lanes;
        block_entries(u, s->block, &lanes);
        b->s = s;
        b->taken = mg_kit_cells(k, s)[cell_taken];
        b->not_taken = lanes - b->taken;
        b->divergent = mg_kit_cells(k, s)[cell_divergent];
    }
    for (uint32_t x = 0; x < k->n_blocks; x++) {
        uint64_t lanes, n = block_entries(u, x, &lanes), insts = insts_of(u, x);
        u->slots += n * warp * insts;
        u->active += lanes * insts;
        for (uint32_t l = 0; l < bins && u->block[x]; l++) u->sum[l] += (*u->block[x])[l] * insts;
    }
    if (k->blocks) charge(u);
}

static void use_release(struct use *u)
{
    for (uint32_t x = 0; x < u->k->n_blocks; x++) free(u->block[x]);
    free(u->block);
    free(u->branches);
}

static void use_json(const struct use *u, struct mg_json *j)
{
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", u->k->id);
    mg_json_key(j, "lane_use");
    if (u->slots) mg_json_f64(j, mg_kit_share(u->active, u->slots));
    else mg_json_null(j);
    mg_json_key(j, "blocks");
    mg_json_arr(j);
    for (uint32_t x = 0; x < u->k->n_blocks; x++) {
        if (!u->block[x]) continue;
        mg_json_obj(j);
        mg_json_key_u64(j, "id", x);
        mg_json_key(j, "lanes");
        mg_json_arr(j);
        for (uint32_t l = 0; l < bins; l++) mg_json_u64(j, (*u->block[x])[l]);
        mg_json_end(j, ']');
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key(j, "branches");
    mg_json_arr(j);
    for (uint32_t i = 0; i < u->n_branches; i++) {
        const struct branch *b = &u->branches[i];
        mg_json_obj(j);
        mg_kit_site_json(j, u->k, b->s);
        mg_json_key_u64(j, "taken", b->taken);
        mg_json_key_u64(j, "not_taken", b->not_taken);
        mg_json_key_u64(j, "divergent", b->divergent);
        mg_json_key_u64(j, "idle_slots", b->idle);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

static void branch_table(struct mg_table *t, const struct use *u, uint32_t n)
{
    mg_table_begin(t, "branches", "branches by the lane slots they leave idle");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "idle slots", MG_COL_COUNT, NULL);
    mg_table_column(t, "of kernel", MG_COL_PERCENT, NULL);
    mg_table_column(t, "divergent", MG_COL_COUNT, "warps");
    mg_table_column(t, "taken", MG_COL_COUNT, "threads");
    mg_table_column(t, "not taken", MG_COL_COUNT, "threads");
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < u[k].n_branches; i++) {
            const struct branch *b = &u[k].branches[i];
            mg_table_row(t);
            mg_table_place(t, b->s);
            mg_table_u64(t, b->idle);
            mg_table_f64(t, mg_kit_percent(b->idle, u[k].slots));
            mg_table_u64(t, b->divergent);
            mg_table_u64(t, b->taken);
            mg_table_u64(t, b->not_taken);
            mg_table_text(t, u[k].k->demangled);
        }
    mg_table_sort(t, 1);
}

static void block_table(struct mg_table *t, const struct use *u, uint32_t n)
{
    mg_table_begin(t, "lanes", "lane use by block: of each warp instruction's 32 lanes, how many were active");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "idle slots", MG_COL_COUNT, NULL);
    mg_table_column(t, "lane use", MG_COL_PERCENT, NULL);
    mg_table_column(t, "warp entries", MG_COL_COUNT, NULL);
    mg_table_column(t, "thread entries", MG_COL_COUNT, NULL);
    mg_table_column(t, "block", MG_COL_COUNT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t x = 0; x < u[k].k->n_blocks && u[k].k->blocks; x++) {
            const struct mg_site_block *b = &u[k].k->blocks[x];
            struct mg_result_site place = {.file = b->file, .line = b->line, .ptx_line = b->ptx_line};
            uint64_t lanes, entries = block_entries(&u[k], x, &lanes);
            if (!entries) continue;
            mg_table_row(t);
            mg_table_place(t, &place);
            mg_table_u64(t, (entries * warp - lanes) * b->n_insts);
            mg_table_f64(t, mg_kit_percent(lanes, entries * warp));
            mg_table_u64(t, entries);
            mg_table_u64(t, lanes);
            mg_table_u64(t, x);
            mg_table_text(t, u[k].k->demangled);
        }
    mg_table_sort(t, 1);
}

static void lane_chart(struct mg_table *t, const struct use *u, uint32_t ix)
{
    double v[bins];
    struct mg_buf svg = MG_BUF_INIT, title = MG_BUF_INIT;
    for (uint32_t l = 0; l < bins; l++) v[l] = (double)u->sum[l];
    mg_kit_kernel_name(u->k, 60, &title);
    mg_buf_printf(&title, ": warp instructions by active lanes, %.1f %% of slots used", mg_kit_percent(u->active, u->slots));
    mg_chart_distribution(&svg, title.at, "active lanes", v, bins, 0);
    mg_kit_chart(t, "lanes", ix, &title, &svg);
}

static void lanes_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    struct use *u = mg_xcalloc(r->n_kernels + 1, sizeof *u);
    (void)conf;
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        use_init(&u[k], &r->kernels[k]);
        use_json(&u[k], j);
    }
    mg_json_end(j, ']');
    branch_table(t, u, r->n_kernels);
    block_table(t, u, r->n_kernels);
    for (uint32_t k = 0; k < r->n_kernels; k++)
        if (k < charts && u[k].slots) lane_chart(t, &u[k], k);
    for (uint32_t k = 0; k < r->n_kernels; k++) use_release(&u[k]);
    free(u);
}

extern const struct mg_tool mg_tool_lanes;
const struct mg_tool mg_tool_lanes = {
    .name = "lanes", .summary = "active lanes by block as a distribution; branches that split warps, by what they cost",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 2.4 (docs/measured.md)",
    .opts = lanes_opts, .configure = lanes_configure, .release = free,
    .instrument = lanes_instrument, .profile = lanes_profile,
};
