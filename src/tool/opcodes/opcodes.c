/* opcodes: which instructions were executed, by opcode, class, operation width and source line.
 *
 * Counts come from block counts: every instruction of the kernel is a site without cells, so a run costs
 * what tool blocks costs. With lanes=on, guarded instructions have a cell besides: the lanes whose guard
 * was true, summed in a register of each thread; instructions of a block under the same guard share it.
 * A guard under which the block is left has none: block counts tell (mg_kit_taken). */
#include <stdlib.h>
#include <string.h>

#include "analysis/ssa.h"
#include "base/vec.h"
#include "tool/tool.h"
#include "view/chart.h"
#include "view/kit.h"
#include "tool/opcodes/opclass.h"
#include "tool/opcodes/sass_map.h"

enum { LEVEL_PTX, LEVEL_SASS };
struct conf {
    bool lanes;
    uint32_t level;
};

static const char *const levels[] = {"ptx", "sass", NULL};
static const struct mg_tool_opt opcodes_opts[] = {
    {"lanes", "off", "count the lanes whose guard was true (on|off); off: null for guarded instructions"},
    {"level", "ptx", "sass: machine instructions, too, where a disassembler is installed when the report is made"},
    {0},
};
static const struct mg_field opcodes_fields[] = {
    {"lanes", MG_FIELD_FLAG, offsetof(struct conf, lanes), 0, 0, NULL},
    {"level", MG_FIELD_CHOICE, offsetof(struct conf, level), 0, 0, levels},
    {0},
};

static enum mg_err opcodes_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct conf defaults = {.lanes = false};
    return mg_fields_parse("opcodes", opcodes_fields, &defaults, sizeof defaults, args, conf, d);
}

/* ---- analyze, instrument ------------------------------------------------------------------------------ */

enum {
    note_guarded = 1,
    note_shift = 1
}; /* note: guarded | (site whose lanes are its own + 1) << 1: that one has a cell, or ends its block */

/* A guard that is not written anew between two instructions of a block lets the same lanes through both. */
struct guards {
    mg_id pred;
    bool negated;
    uint32_t site;
};

static void forget(struct guards *g, uint32_t *n, const struct mg_module *m, mg_id node)
{
    for (uint32_t i = *n; i-- > 0;)
        if (mg_kit_writes(m, node, g[i].pred)) g[i] = g[--*n];
}

static enum mg_err opcodes_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_patch_want_blocks(p);
    return MG_ERR_OK;
}

static bool leaves(enum mg_op op)
{
    return op == MG_OP_ret || op == MG_OP_exit;
}

/* The instruction that leaves the block under the same guard, if block counts tell how many do; UINT32_MAX: they do
 * not. */
static uint32_t told_by(struct mg_patch *p, const struct mg_patch_inst *insts, uint32_t n, uint32_t i, mg_id guard,
                        const uint32_t *preds)
{
    const struct mg_module *m = mg_patch_module(p);
    const struct mg_ssa *ssa = mg_patch_ssa(p, insts[i].func_ix);
    uint32_t last = i;
    bool negated, not_last;
    struct mg_kit_taken t;
    while (last + 1 < n && insts[last + 1].id == insts[i].id) last++;
    enum mg_op op = (enum mg_op)mg_node_form(m, &m->nodes.at[insts[last].node])->op;
    mg_node_guard(m, insts[i].node, &negated);
    if ((op != MG_OP_bra && !leaves(op)) || mg_node_guard(m, insts[last].node, &not_last) != guard ||
        negated != not_last)
        return UINT32_MAX;
    uint32_t value = mg_ssa_read(ssa, insts[i].node, guard);
    return value && value == mg_ssa_read(ssa, insts[last].node, guard) &&
                   mg_kit_taken(mg_patch_sites(p)->blocks, preds, mg_patch_sites(p)->n_blocks, insts[i].id, leaves(op),
                                &t)
               ? last
               : UINT32_MAX;
}

static enum mg_err opcodes_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct conf *c = conf;
    const struct mg_module *m = mg_patch_module(p);
    const struct mg_patch_inst *insts;
    struct guards known[16];
    uint32_t n = mg_patch_insts(p, &insts), n_known = 0,
             *preds = mg_kit_preds(mg_patch_sites(p)->blocks, mg_patch_sites(p)->n_blocks);
    (void)d;
    for (uint32_t i = 0; i < n; i++) {
        bool negated = false;
        mg_id guard = mg_node_guard(m, insts[i].node, &negated);
        uint32_t at = 0, note = guard ? note_guarded : 0;
        if (i && insts[i].id != insts[i - 1].id) n_known = 0;
        while (at < n_known && (known[at].pred != guard || known[at].negated != negated)) at++;
        bool fresh = guard && c->lanes && at == n_known;
        uint32_t by = fresh ? told_by(p, insts, n, i, guard, preds) : guard && c->lanes ? known[at].site : 0;
        bool counts = by == UINT32_MAX;
        if (counts) by = i;
        if (guard && c->lanes) note |= (by + 1) << note_shift;
        uint32_t cell = mg_patch_site(p, MG_SITE_INST, insts[i].node, insts[i].id, counts, MG_MERGE_SUM, note);
        if (counts) {
            struct mg_code_at *code = mg_at_before(p, insts[i].node);
            mg_code_push_guard(code, guard, negated);
            mg_sum_add(code, mg_patch_sum(p, cell), mg_o_imm(1));
            mg_code_pop_guard(code);
        }
        if (fresh && n_known < MG_COUNT_OF(known)) known[n_known++] = (struct guards){guard, negated, by};
        forget(known, &n_known, m, insts[i].node);
    }
    free(preds);
    return MG_ERR_OK;
}

/* ---- profile ------------------------------------------------------------------------------------------ */

struct tally { /* of one opcode, class, width or line */
    const char *name;
    const struct mg_result_site *site; /* of a line */
    uint64_t n_static, threads, lanes;
    bool lanes_known;
};
typedef MG_VEC(struct tally) tallies;

/* Executions of an instruction by threads, and by lanes whose guard was true. */
static uint64_t lanes_of(const struct mg_result_kernel *k, const struct mg_result_site *s, const uint32_t *preds,
                         uint64_t threads, bool *known)
{
    uint32_t by = s->note >> note_shift;
    struct mg_kit_taken t;
    *known = true;
    if (!(s->note & note_guarded)) return threads;
    const struct mg_result_site *c = by && by <= k->n_sites ? &k->sites[by - 1] : NULL;
    if (c && c->n_cells) return k->cells[c->cell];
    *known = c && k->threads && c->block < k->n_blocks &&
             mg_kit_taken(k->blocks, preds, k->n_blocks, c->block, strncmp(c->op, "bra", 3), &t);
    return *known ? mg_kit_takers(&t, k->threads, c->block) : 0;
}

static struct tally *tally_of(tallies *t, const char *name, const struct mg_result_site *site)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const struct mg_result_site *s = t->at[i].site;
        if (site ? s->line == site->line && !strcmp(s->file ? s->file : "", site->file ? site->file : "") &&
                       (s->file || s->ptx_line == site->ptx_line)
                 : !strcmp(t->at[i].name, name))
            return &t->at[i];
    }
    *mg_vec_push(t) = (struct tally){.name = name, .site = site, .lanes_known = true};
    return &t->at[t->n - 1];
}

static void add_to(struct tally *t, uint64_t threads, uint64_t lanes, bool known)
{
    t->n_static++;
    t->threads += threads;
    t->lanes += lanes;
    t->lanes_known = t->lanes_known && known;
}

struct mix {
    tallies ops, types, classes, gt, widths, lines;
    uint64_t threads;
};

static void mix_init(struct mix *x, const struct mg_result_kernel *k)
{
    uint32_t *preds = mg_kit_preds(k->blocks, k->blocks ? k->n_blocks : 0);
    memset(x, 0, sizeof *x);
    for (uint32_t i = 0; i < MG_CLASS_COUNT; i++) tally_of(&x->classes, mg_op_class_name((enum mg_op_class)i), NULL);
    for (uint32_t i = 0; i < MG_GT_COUNT; i++) tally_of(&x->gt, mg_gt_class_name((enum mg_gt_class)i), NULL);
    for (uint32_t i = 0; i < MG_WIDTH_COUNT; i++) tally_of(&x->widths, mg_op_width_name((enum mg_op_width)i), NULL);
    for (uint32_t i = 0; i < k->n_sites; i++) {
        const struct mg_result_site *s = &k->sites[i];
        uint64_t threads = k->threads && s->block < k->n_blocks ? k->threads[s->block] : 0;
        bool known;
        uint64_t lanes = lanes_of(k, s, preds, threads, &known);
        struct mg_form f = {0};
        mg_form_parse(&f, s->op, strlen(s->op));
        add_to(tally_of(&x->ops, s->op, NULL), threads, lanes, known);
        add_to(tally_of(&x->types, f.n_types ? mg_type_name((enum mg_type)f.types[0]) : "none", NULL), threads, lanes,
               known);
        add_to(&x->classes.at[mg_form_class(&f)], threads, lanes, known);
        add_to(&x->gt.at[mg_form_gt_class(&f)], threads, lanes, known);
        add_to(&x->widths.at[mg_form_width(&f)], threads, lanes, known);
        add_to(tally_of(&x->lines, "", s), threads, lanes, known);
        x->threads += threads;
    }
    free(preds);
}

static void mix_release(struct mix *x)
{
    mg_vec_release(&x->ops);
    mg_vec_release(&x->classes);
    mg_vec_release(&x->gt);
    mg_vec_release(&x->widths);
    mg_vec_release(&x->types);
    mg_vec_release(&x->lines);
}

static void tally_json(struct mg_json *j, const char *key, const tallies *t, bool measured)
{
    mg_json_key(j, key);
    mg_json_arr(j);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct tally *a = &t->at[i];
        if (!a->n_static) continue;
        mg_json_obj(j);
        if (a->site) {
            mg_json_key_str(j, "file", a->site->file);
            mg_json_key_u64_if(j, "line", a->site->file != NULL, a->site->line);
            mg_json_key_u64(j, "ptx_line", a->site->ptx_line);
        } else {
            mg_json_key_str(j, "name", a->name);
        }
        mg_json_key_u64(j, "static", a->n_static);
        mg_json_key_u64_if(j, "thread", measured, a->threads);
        mg_json_key_u64_if(j, "lanes", measured && a->lanes_known, a->lanes);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void tally_rows(struct mg_table *t, const char *kernel, const tallies *a, const struct mix *x, bool measured)
{
    for (uint32_t i = 0; i < a->n; i++) {
        const struct tally *one = &a->at[i];
        if (!one->n_static) continue;
        mg_table_row(t);
        mg_table_text(t, kernel);
        if (one->site)
            mg_table_place(t, one->site);
        else
            mg_table_text(t, one->name);
        mg_table_u64(t, one->n_static);
        if (measured)
            mg_table_u64(t, one->threads), mg_table_f64(t, mg_kit_percent(one->threads, x->threads));
        else
            mg_table_null(t), mg_table_null(t);
        if (measured && one->lanes_known)
            mg_table_u64(t, one->lanes);
        else
            mg_table_null(t);
    }
}

static void tally_table(struct mg_table *t, const char *name, const char *title, const char *what,
                        enum mg_column_kind kind)
{
    mg_table_begin(t, name, title);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, what, kind, NULL);
    mg_table_column(t, "static", MG_COL_COUNT, NULL);
    mg_table_column(t, "thread", MG_COL_COUNT, NULL);
    mg_table_column(t, "share", MG_COL_PERCENT, NULL);
    mg_table_column(t, "lanes", MG_COL_COUNT, NULL);
}

static void mix_chart(struct mg_table *t, const char *name, const char *title, const struct mg_tool_result *r,
                      const struct mix *mixes, bool widths)
{
    uint32_t n_series = widths ? MG_WIDTH_COUNT : MG_GT_COUNT, n = MG_MIN(r->n_kernels, 40u);
    const char *series[MG_CLASS_COUNT], **labels = mg_xcalloc(n + 1, sizeof *labels);
    double *values = mg_xcalloc((size_t)n * n_series + 1, sizeof *values);
    struct mg_buf svg = MG_BUF_INIT, one = MG_BUF_INIT;
    char **made = mg_xcalloc(n + 1, sizeof *made);
    for (uint32_t i = 0; i < n_series; i++)
        series[i] = widths ? mg_op_width_name((enum mg_op_width)i) : mg_gt_class_name((enum mg_gt_class)i);
    for (uint32_t k = 0; k < n; k++) {
        const struct tally *a = widths ? mixes[k].widths.at : mixes[k].gt.at;
        mg_kit_kernel_name(&r->kernels[k], 40, &one);
        labels[k] = made[k] = mg_buf_take(&one);
        for (uint32_t i = 0; i < n_series; i++) values[(size_t)k * n_series + i] = (double)a[i].threads;
    }
    if (n) mg_chart_stacked(&svg, title, labels, n, series, NULL, n_series, values, "instructions");
    if (n) mg_table_chart(t, name, title, svg.at, svg.n);
    for (uint32_t k = 0; k < n; k++) free(made[k]);
    free(made);
    free(labels);
    free(values);
    mg_buf_release(&svg);
}

static const tallies *mix_tallies(const struct mix *x, size_t at)
{
    return (const tallies *)(const void *)((const char *)x + at);
}

/* ---- blocks: the same of the instructions of each ------------------------------------------------------------- */

struct block_mix {
    const struct mg_result_site *first;
    tallies ops;
};

/* The block whose instructions begin with site `from`; returns the first site behind them. Sites are in the order of
 * the text. */
static uint32_t block_mix(const struct mg_result_kernel *k, uint32_t from, const uint32_t *preds, struct block_mix *b)
{
    uint32_t i = from;
    *b = (struct block_mix){.first = &k->sites[from]};
    for (; i < k->n_sites && k->sites[i].block == b->first->block; i++) {
        uint64_t threads = k->threads && k->sites[i].block < k->n_blocks ? k->threads[k->sites[i].block] : 0;
        bool known;
        uint64_t lanes = lanes_of(k, &k->sites[i], preds, threads, &known);
        add_to(tally_of(&b->ops, k->sites[i].op, NULL), threads, lanes, known);
    }
    return i;
}

static void blocks_json(const struct mg_result_kernel *k, struct mg_json *j)
{
    uint32_t *preds = mg_kit_preds(k->blocks, k->blocks ? k->n_blocks : 0);
    mg_json_key(j, "blocks");
    mg_json_arr(j);
    for (uint32_t i = 0; i < k->n_sites;) {
        struct block_mix b;
        i = block_mix(k, i, preds, &b);
        mg_json_obj(j);
        mg_json_key_u64(j, "id", b.first->block);
        tally_json(j, "opcodes", &b.ops, k->threads != NULL);
        mg_json_end(j, '}');
        mg_vec_release(&b.ops);
    }
    mg_json_end(j, ']');
    free(preds);
}

static void block_rows(struct mg_table *t, const struct mg_result_kernel *k, uint64_t all)
{
    uint32_t *preds = mg_kit_preds(k->blocks, k->blocks ? k->n_blocks : 0);
    for (uint32_t i = 0; i < k->n_sites;) {
        struct block_mix b;
        i = block_mix(k, i, preds, &b);
        for (uint32_t o = 0; o < b.ops.n; o++) {
            mg_table_row(t);
            mg_table_text(t, k->demangled);
            mg_table_u64(t, b.first->block);
            mg_table_place(t, b.first);
            mg_table_text(t, b.ops.at[o].name);
            mg_table_u64(t, b.ops.at[o].n_static);
            if (k->threads)
                mg_table_u64(t, b.ops.at[o].threads), mg_table_f64(t, mg_kit_percent(b.ops.at[o].threads, all));
            else
                mg_table_null(t), mg_table_null(t);
            if (k->threads && b.ops.at[o].lanes_known)
                mg_table_u64(t, b.ops.at[o].lanes);
            else
                mg_table_null(t);
        }
        mg_vec_release(&b.ops);
    }
    free(preds);
}

static void block_table(struct mg_table *t, const struct mg_tool_result *r, const struct mix *mixes)
{
    mg_table_begin(t, "block-opcodes", "instructions by block and opcode");
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, "block", MG_COL_COUNT, NULL);
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "opcode", MG_COL_TEXT, NULL);
    mg_table_column(t, "static", MG_COL_COUNT, NULL);
    mg_table_column(t, "thread", MG_COL_COUNT, NULL);
    mg_table_column(t, "share", MG_COL_PERCENT, NULL);
    mg_table_column(t, "lanes", MG_COL_COUNT, NULL);
    for (uint32_t k = 0; k < r->n_kernels; k++) block_rows(t, &r->kernels[k], mixes[k].threads);
    mg_table_sort(t, 5);
}

static void opcodes_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    static const struct {
        const char *name, *title, *what;
        enum mg_column_kind kind;
        size_t at;
    } tables[] = {
        {"opcodes", "instructions by opcode", "opcode", MG_COL_TEXT, offsetof(struct mix, ops)},
        {"types", "instructions by type, of what they write where they name several", "type", MG_COL_TEXT,
         offsetof(struct mix, types)},
        {"classes", "instructions by class", "class", MG_COL_TEXT, offsetof(struct mix, classes)},
        {"gtpin", "instructions by GT-Pin's classes", "class", MG_COL_TEXT, offsetof(struct mix, gt)},
        {"widths", "instructions by operation width", "width", MG_COL_TEXT, offsetof(struct mix, widths)},
        {"lines", "instructions by source line", "line", MG_COL_PLACE, offsetof(struct mix, lines)},
    };
    struct mix *mixes = mg_xcalloc(r->n_kernels + 1, sizeof *mixes);
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        mix_init(&mixes[k], &r->kernels[k]);
        mg_json_obj(j);
        mg_json_key_u64(j, "kernel", r->kernels[k].id);
        mg_json_key_u64_if(j, "thread", r->kernels[k].threads != NULL, mixes[k].threads);
        for (uint32_t i = 0; i < MG_COUNT_OF(tables); i++)
            tally_json(j, tables[i].name, mix_tallies(&mixes[k], tables[i].at), r->kernels[k].threads != NULL);
        blocks_json(&r->kernels[k], j);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    for (uint32_t i = 0; i < MG_COUNT_OF(tables); i++) {
        tally_table(t, tables[i].name, tables[i].title, tables[i].what, tables[i].kind);
        for (uint32_t k = 0; k < r->n_kernels; k++)
            tally_rows(t, r->kernels[k].demangled, mix_tallies(&mixes[k], tables[i].at), &mixes[k],
                       r->kernels[k].threads != NULL);
        mg_table_sort(t, 3);
    }
    block_table(t, r, mixes);
    if (((const struct conf *)conf)->level == LEVEL_SASS) mg_opcodes_machine(r, t, j);
    mix_chart(t, "opcodes-gtpin", "Dynamic instructions by class", r, mixes, false);
    mix_chart(t, "opcodes-widths", "Dynamic instructions by operation width", r, mixes, true);
    for (uint32_t k = 0; k < r->n_kernels; k++) mix_release(&mixes[k]);
    free(mixes);
}

extern const struct mg_tool mg_tool_opcodes;
const struct mg_tool mg_tool_opcodes = {
    .name = "opcodes",
    .summary = "instructions executed, by opcode, class, operation width and source line",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 1.03, with lanes=on 1.06 (docs/measured.md)",
    .opts = opcodes_opts,
    .configure = opcodes_configure,
    .release = free,
    .analyze = opcodes_analyze,
    .instrument = opcodes_instrument,
    .profile = opcodes_profile,
    .flags = MG_TOOL_NO_LOADS,
};
