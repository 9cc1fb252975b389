/* latency: cycles from a load (or an atomic that returns) until its value is there, as a distribution of
 * warp executions per site.
 *
 * The clock is read before the instruction and again once its result is known: the second read is
 * guarded by a predicate of the loaded value, both ways, so that it cannot run earlier. A warp waits
 * there, which it would not otherwise: loads that used to overlap follow one another. Sites whose block
 * has another site before the value's first use are labelled `serialised`.
 *
 * What the two reads and the comparison take without a load between them is measured at each kernel's
 * entry, and its minimum is taken off. Bins are quarters of an octave: [2^(b/4), 2^((b+1)/4)). */
#include <stdlib.h>
#include <string.h>

#include "analysis/space.h"
#include "tool/tool.h"
#include "view/chart.h"
#include "view/kit.h"

enum { n_bins = 64, cell_sum = n_bins, site_cells = n_bins + 1, note_serialised = 1, note_kernel = 2, charts = 8 };
static const char *const spaces[] = {"any", "global", "shared", "local", NULL};
static const struct mg_tool_opt latency_opts[] = {{"space", "any", "which accesses: any, global, shared, local"}, {0}};
struct conf {
    uint32_t space;
};
static const struct mg_field latency_fields[] = {{"space", MG_FIELD_CHOICE, offsetof(struct conf, space), 0, 0, spaces},
                                                 {0}};

static enum mg_err latency_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct conf defaults = {0};
    return mg_fields_parse("latency", latency_fields, &defaults, sizeof defaults, args, conf, d);
}

/* ---- instrument ---------------------------------------------------------------------------------------- */

#define R               mg_o_reg
#define I               mg_o_imm
#define EMIT(form, ...) MG_CODE(at, form, __VA_ARGS__)

static mg_id read_clock(struct mg_code_at *at, mg_id into)
{
    EMIT("mov.u64", into, mg_o_sreg(MG_SREG_clock64, 0));
    return into;
}

/* 4 * log2 of v: position of the highest bit, and the two bits below it. */
static mg_id bin_of(struct mg_code_at *at, mg_id v)
{
    mg_id wide = mg_code_temp(at, MG_TYPE_b64), high = mg_code_temp(at, MG_TYPE_b32),
          low = mg_code_temp(at, MG_TYPE_b32), bin = mg_code_temp(at, MG_TYPE_b32);
    EMIT("min.u64", wide, v, 65535); /* the last bin holds what is more */
    EMIT("max.u64", wide, wide, 1);
    EMIT("cvt.u32.u64", low, wide);
    EMIT("bfind.u32", high, low);
    EMIT("shl.b32", low, low, 2);
    EMIT("shr.u32", low, low, high);
    EMIT("and.b32", low, low, 3);
    EMIT("shl.b32", bin, high, 2);
    EMIT("add.u32", bin, bin, low);
    return bin;
}

static void count_took(struct mg_code_at *at, mg_id begin, mg_id end, uint32_t cell)
{
    mg_id took = mg_code_temp(at, MG_TYPE_b64);
    EMIT("sub.u64", took, end, begin);
    mg_cell_update_at(at, cell, n_bins, bin_of(at, took), I(1), MG_ONCE);
    mg_cell_update(at, cell + cell_sum, R(took), MG_ONCE);
}

/* Reads the clock once this register of 32 bits is known; 0: at once. */
static void read_when_known(struct mg_code_at *at, mg_id low, uint32_t bound, mg_id end)
{
    if (!low) {
        read_clock(at, end);
        return;
    }
    mg_id known = mg_code_temp(at, MG_TYPE_pred);
    EMIT("setp.lt.u32", known, low, mg_o_imm(bound));
    for (unsigned other = 0; other < 2; other++) {
        mg_code_push_guard(at, known, other);
        read_clock(at, end);
        mg_code_pop_guard(at);
    }
}

/* Software devices, which take probes by what they mean, do one instruction after another. */
static bool runs_ahead(struct mg_patch *p)
{
    return !mg_patch_module(p)->marked;
}

/* A register that holds what was loaded: the first element that is kept. */
static bool result_of(const struct mg_module *m, mg_id node, const struct mg_access *a, struct mg_opnd *out)
{
    const struct mg_opnd *o = &m->opnds.at[m->nodes.at[node].opnd + a->data];
    uint32_t n = o->kind == MG_OPND_vec ? o->n : 1,
             first = o->kind == MG_OPND_vec ? o->id : m->nodes.at[node].opnd + a->data;
    for (uint32_t i = 0; i < n; i++)
        if (m->opnds.at[first + i].kind == MG_OPND_reg) {
            *out = m->opnds.at[first + i];
            return true;
        }
    return false;
}

static void count_load(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_opnd result, uint32_t note)
{
    bool negated = false;
    mg_id guard = mg_node_guard(mg_patch_module(p), i->node, &negated);
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id, site_cells, MG_MERGE_SUM, note);
    struct mg_code_at *before = mg_at_before(p, i->node), *at = mg_at_after(p, i->node);
    mg_id begin = mg_code_reg(before, MG_TYPE_b64), end = mg_code_temp(at, MG_TYPE_b64);
    read_clock(before, begin);
    mg_id low = runs_ahead(p) ? mg_code_temp(at, MG_TYPE_b32) : 0;
    if (low) EMIT("cvt.u32.u64", low, mg_value_wide(at, result));
    read_when_known(at, low, 0x40000000, end);
    mg_code_push_guard(at, guard, negated);
    count_took(at, begin, end, cell);
    mg_code_pop_guard(at);
}

/* What the clock itself takes: the least over all warps, as complement. */
static void count_clock(struct mg_patch *p)
{
    uint32_t cell = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, 1, MG_MERGE_MAX, note_kernel);
    struct mg_code_at *at = mg_at_entry(p, 0);
    mg_id begin = read_clock(at, mg_code_temp(at, MG_TYPE_b64)), end = mg_code_temp(at, MG_TYPE_b64),
          took = mg_code_temp(at, MG_TYPE_b64);
    read_when_known(at, runs_ahead(p) ? mg_value_lane(at) : 0, 16, end);
    EMIT("sub.u64", took, end, begin);
    EMIT("not.b64", took, took);
    mg_cell_update(at, cell, R(took), MG_ONCE);
}

static bool is_site(struct mg_patch *p, const struct conf *c, const struct mg_patch_inst *i, struct mg_opnd *result)
{
    static const enum mg_space only[] = {MG_SPACE_generic, MG_SPACE_global, MG_SPACE_shared, MG_SPACE_local};
    const struct mg_module *m = mg_patch_module(p);
    struct mg_access a;
    if (!mg_patch_access(p, i, &a) || a.space == MG_SPACE_param || a.space == MG_SPACE_const || a.is_async ||
        !a.reads || a.data == UINT32_MAX)
        return false;
    if (mg_node_form(m, &m->nodes.at[i->node])->op == MG_OP_red || a.bytes > 8) return false;
    enum mg_space space = a.space ? a.space : mg_spaces_one(mg_spaces_of(mg_patch_spaces(p, i->func_ix), i->node));
    return (!c->space || space == only[c->space]) && result_of(m, i->node, &a, result);
}

static enum mg_err latency_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts), last_block = UINT32_MAX;
    (void)d;
    count_clock(p);
    for (uint32_t i = 0; i < n; i++) {
        struct mg_opnd result, other;
        if (!is_site(p, conf, &insts[i], &result)) continue;
        bool neighbour = insts[i].id == last_block;
        for (uint32_t k = i + 1; k < n && insts[k].id == insts[i].id && !neighbour; k++)
            neighbour = is_site(p, conf, &insts[k], &other);
        count_load(p, &insts[i], result, neighbour ? note_serialised : 0);
        last_block = insts[i].id;
    }
    return MG_ERR_OK;
}

/* ---- profile ------------------------------------------------------------------------------------------- */

static uint64_t clock_cost(const struct mg_result_kernel *k)
{
    for (uint32_t i = 0; i < k->n_sites; i++)
        if (k->sites[i].note & note_kernel && k->sites[i].n_cells == 1 && mg_kit_cells(k, &k->sites[i])[0])
            return ~mg_kit_cells(k, &k->sites[i])[0];
    return 0;
}

/* Lower bound of a bin: (4 + b % 4) / 4 * 2^(b / 4). */
static double bin_low(uint32_t b)
{
    return (4 + b % 4) / 4.0 * (double)((uint64_t)1 << b / 4);
}

static uint64_t warps_of(const uint64_t *c)
{
    uint64_t n = 0;
    for (uint32_t b = 0; b < n_bins; b++) n += c[b];
    return n;
}

/* The middle of the bin that holds the q-th part of the executions, the clock taken off. */
static double quantile(const uint64_t *c, uint64_t n, double q, uint64_t cost)
{
    uint64_t seen = 0;
    for (uint32_t b = 0; b < n_bins; b++) {
        seen += c[b];
        if (n && (double)seen >= q * (double)n) return MG_MAX(0.0, (bin_low(b) + bin_low(b + 1)) / 2 - (double)cost);
    }
    return 0;
}

static void site_json(const struct mg_result_kernel *k, const struct mg_result_site *s, uint64_t cost,
                      struct mg_json *j)
{
    const uint64_t *c = mg_kit_cells(k, s);
    uint64_t n = warps_of(c);
    mg_json_obj(j);
    mg_kit_site_json(j, k, s);
    mg_json_key_u64(j, "warps", n);
    mg_json_key_u64(j, "cycles", c[cell_sum] - MG_MIN(c[cell_sum], n * cost));
    mg_json_key_f64_if(j, "mean", n, MG_MAX(0.0, (double)c[cell_sum] / (double)n - (double)cost));
    mg_json_key_bool(j, "serialised", s->note & note_serialised);
    mg_json_key(j, "bins"); /* as read, the clock not taken off */
    mg_json_arr(j);
    for (uint32_t b = 0; b < n_bins; b++) mg_json_u64(j, c[b]);
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

static void site_row(const struct mg_result_kernel *k, const struct mg_result_site *s, uint64_t cost,
                     struct mg_table *t)
{
    const uint64_t *c = mg_kit_cells(k, s);
    uint64_t n = warps_of(c);
    if (!n) return;
    mg_table_row(t);
    mg_table_place(t, s);
    mg_table_text(t, s->op);
    mg_table_u64(t, c[cell_sum] - MG_MIN(c[cell_sum], n * cost));
    mg_table_u64(t, n);
    mg_table_f64(t, MG_MAX(0.0, (double)c[cell_sum] / (double)n - (double)cost));
    mg_table_f64(t, quantile(c, n, .5, cost));
    mg_table_f64(t, quantile(c, n, .95, cost));
    mg_table_text(t, s->note & note_serialised ? "serialised" : "");
    mg_table_text(t, k->demangled);
}

/* Only the powers of two in which something was counted, and their neighbours. */
static void site_chart(const struct mg_result_kernel *k, const struct mg_result_site *s, struct mg_table *t,
                       uint32_t ix)
{
    double v[n_bins];
    const char *marks[n_bins] = {NULL}, *slash = s->file ? strrchr(s->file, '/') : NULL;
    struct mg_buf svg = MG_BUF_INIT, title = MG_BUF_INIT, power[n_bins / 4] = {{0}};
    const uint64_t *c = mg_kit_cells(k, s);
    uint32_t first = n_bins, end = 0;
    if (!warps_of(c)) return;
    for (uint32_t b = 0; b < n_bins; b++) {
        v[b] = (double)c[b];
        if (c[b]) first = MG_MIN(first, b & ~3u), end = (b | 3) + 1;
    }
    for (uint32_t b = 0; b < n_bins; b += 4) {
        mg_chart_short(&power[b / 4], (double)((uint64_t)1 << b / 4));
        marks[b] = power[b / 4].at;
    }
    const char *file = !s->line ? "PTX" : slash ? slash + 1 : s->file ? s->file : "PTX";
    mg_buf_printf(&title, "%s at %s:%u: warps by the cycles that they waited", s->op, file,
                  s->file && s->line ? s->line : s->ptx_line);
    mg_chart_distribution(&svg, title.at, "cycles, the clock's own included", "warps", v + first, end - first, 0,
                          marks + first);
    for (uint32_t b = 0; b < n_bins / 4; b++) mg_buf_release(&power[b]);
    mg_kit_chart(t, "latency", ix, &title, &svg);
}

static void latency_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    uint32_t drawn = 0;
    (void)conf;
    mg_kit_times_table(t, r, "latency", "loads by the cycles that warps waited for them");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "instruction", MG_COL_TEXT, NULL);
    mg_table_column(t, "cycles", MG_COL_CYCLES, NULL);
    mg_table_column(t, "warps", MG_COL_COUNT, NULL);
    mg_table_column(t, "mean", MG_COL_REAL, "cycles");
    mg_table_column(t, "median", MG_COL_REAL, "cycles");
    mg_table_column(t, "95 %", MG_COL_REAL, "cycles");
    mg_table_column(t, "note", MG_COL_TEXT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "kernel", r->kernels[k].id);
        mg_json_key_u64(j, "clock_cycles", clock_cost(&r->kernels[k]));
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key(j, "sites");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++)
        for (uint32_t i = 0; i < r->kernels[k].n_sites; i++) {
            const struct mg_result_site *s = &r->kernels[k].sites[i];
            if (s->n_cells != site_cells) continue;
            site_json(&r->kernels[k], s, clock_cost(&r->kernels[k]), j);
            site_row(&r->kernels[k], s, clock_cost(&r->kernels[k]), t);
            if (drawn < charts) site_chart(&r->kernels[k], s, t, drawn++);
        }
    mg_json_end(j, ']');
    mg_table_sort(t, 2);
}

extern const struct mg_tool mg_tool_latency;
const struct mg_tool mg_tool_latency = {
    .name = "latency",
    .summary = "cycles that loads take, as a distribution for each of them",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 2.3 (docs/measured.md)",
    .opts = latency_opts,
    .configure = latency_configure,
    .release = free,
    .instrument = latency_instrument,
    .profile = latency_profile,
    .flags = MG_TOOL_NO_LOADS | MG_TOOL_ACCESSES | MG_TOOL_CLOCKS, /* of constants */
};
