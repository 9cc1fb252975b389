/* functions: cycles that threads spent in kernels and in functions that were not inlined, and calls.
 *
 *   function   calls        threads that entered it          inclusive   cycles from entry to return, summed
 *   call       calls        threads that made it             cycles      from before it until after it
 *
 * exclusive = inclusive - the cycles of the calls it makes. All are sums over threads, in registers: what
 * 32 lanes spend together counts 32 times. What a thread that leaves by `exit` inside a function that was
 * called spent since its last completed call is not known. The cost of reading the clock is not taken
 * off (docs/tools/functions.md states it). */
#include <stdlib.h>
#include <string.h>

#include "tool/tool.h"
#include "view/kit.h"

enum { cell_calls, cell_cycles, site_cells };
static const struct mg_tool_opt functions_opts[] = {{0}};

static enum mg_err functions_configure(const char *args, void **conf, struct mg_diag *d)
{
    static const struct mg_field none[] = {{0}};
    return mg_fields_parse("functions", none, "", 0, args, conf, d);
}

/* ---- instrument ---------------------------------------------------------------------------------------- */

struct span {
    uint32_t func_ix;
    mg_id begin;
    uint32_t calls, cycles; /* sums */
};

static void begin_span(struct mg_code_at *at, struct span *s)
{
    s->begin = mg_code_reg(at, MG_TYPE_b64);
    MG_CODE(at, "mov.b64", s->begin, mg_value_clock(at));
    mg_sum_add(at, s->calls, mg_o_imm(1));
}

static void end_span(struct mg_code_at *at, void *user)
{
    struct span *s = user;
    if (mg_at_func(at) != s->func_ix) return; /* `exit` inside a callee, whose registers are others */
    mg_id took = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "sub.u64", took, mg_value_clock(at), s->begin);
    mg_sum_add(at, s->cycles, mg_o_reg(took));
}

/* note: 0 a function, 1 a call */
static struct span new_span(struct mg_patch *p, enum mg_site_kind kind, mg_id node, uint32_t block, uint32_t note)
{
    uint32_t cell = mg_patch_site(p, kind, node, block, site_cells, MG_MERGE_SUM, note);
    return (struct span){.func_ix = mg_patch_sites(p)->blocks[block].func_ix,
                         .calls = mg_patch_sum(p, cell + cell_calls),
                         .cycles = mg_patch_sum(p, cell + cell_cycles)};
}

static void count_call(struct mg_patch *p, const struct mg_patch_inst *i)
{
    bool negated = false;
    mg_id guard = mg_node_guard(mg_patch_module(p), i->node, &negated);
    if (!mg_patch_sites(p)->blocks[i->id].n_succs) return; /* does not come back */
    struct span s = new_span(p, MG_SITE_INST, i->node, i->id, 1);
    struct mg_code_at *before = mg_at_before(p, i->node), *after = mg_at_edge(p, i->id, 0);
    mg_code_push_guard(before, guard, negated);
    begin_span(before, &s);
    mg_code_pop_guard(before);
    mg_code_push_guard(after, guard, negated);
    end_span(after, &s);
    mg_code_pop_guard(after);
}

static enum mg_err functions_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_sites *s = mg_patch_sites(p);
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    (void)conf, (void)d;
    for (uint32_t f = 0; f < s->n_funcs; f++) {
        if (!s->cfgs[f]->n_blocks) continue;
        struct span *span = mg_arena_new(mg_patch_scratch(p), struct span);
        *span = new_span(p, MG_SITE_BLOCK, 0, s->first_block[f], 0);
        begin_span(mg_at_entry(p, f), span);
        mg_at_exits(p, f, end_span, span);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_module *m = mg_patch_module(p);
        if (mg_node_form(m, &m->nodes.at[insts[i].node])->op == MG_OP_call) count_call(p, &insts[i]);
    }
    return MG_ERR_OK;
}

/* ---- profile ------------------------------------------------------------------------------------------- */

struct figure {
    const struct mg_result_kernel *k;
    const struct mg_result_site *s;
    uint64_t calls, inclusive, inner;
};

/* Calls of a function add to its inner cycles; in order of sites, functions first. */
static uint32_t figures_of(const struct mg_result_kernel *k, struct figure *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->n_sites; i++) {
        const struct mg_result_site *s = &k->sites[i];
        if (s->n_cells != site_cells) continue;
        const uint64_t *c = mg_kit_cells(k, s);
        if (!s->note) {
            f[n++] = (struct figure){.k = k, .s = s, .calls = c[cell_calls], .inclusive = c[cell_cycles]};
            continue;
        }
        for (uint32_t g = 0; g < n; g++)
            if (!strcmp(f[g].s->function, s->function)) f[g].inner += c[cell_cycles];
    }
    return n;
}

static uint64_t exclusive(const struct figure *f)
{
    return f->inclusive > f->inner ? f->inclusive - f->inner : 0;
}

static void kernel_json(const struct mg_result_kernel *k, const struct figure *f, uint32_t n, struct mg_json *j)
{
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", k->id);
    mg_json_key(j, "functions");
    mg_json_arr(j);
    for (uint32_t i = 0; i < n; i++) {
        mg_json_obj(j);
        mg_kit_site_json(j, k, f[i].s);
        mg_json_key_u64(j, "calls", f[i].calls);
        mg_json_key_u64(j, "inclusive_cycles", f[i].inclusive);
        mg_json_key_u64(j, "exclusive_cycles", exclusive(&f[i]));
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key(j, "calls");
    mg_json_arr(j);
    for (uint32_t i = 0; i < k->n_sites; i++) {
        const struct mg_result_site *s = &k->sites[i];
        if (!s->note || s->n_cells != site_cells) continue;
        mg_json_obj(j);
        mg_kit_site_json(j, k, s);
        mg_json_key_u64(j, "calls", mg_kit_cells(k, s)[cell_calls]);
        mg_json_key_u64(j, "cycles", mg_kit_cells(k, s)[cell_cycles]);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

static void kernel_rows(const struct figure *f, uint32_t n, struct mg_table *t)
{
    for (uint32_t i = 0; i < n; i++) {
        mg_table_row(t);
        mg_table_text(t, f[i].s->function);
        mg_table_u64(t, exclusive(&f[i]));
        mg_table_u64(t, f[i].inclusive);
        mg_table_f64(t, mg_kit_percent(f[i].inclusive, f[0].inclusive));
        mg_table_u64(t, f[i].calls);
        mg_table_f64(t, mg_kit_share(f[i].inclusive, f[i].calls));
        mg_table_place(t, f[i].s);
        mg_table_text(t, f[i].k->demangled);
    }
}

static void functions_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf;
    mg_kit_times_table(t, r, "functions", "functions by cycles of their own, summed over threads");
    mg_table_column(t, "function", MG_COL_TEXT, NULL);
    mg_table_column(t, "exclusive", MG_COL_CYCLES, NULL);
    mg_table_column(t, "inclusive", MG_COL_CYCLES, NULL);
    mg_table_column(t, "of kernel", MG_COL_PERCENT, NULL);
    mg_table_column(t, "calls", MG_COL_COUNT, "threads");
    mg_table_column(t, "a call", MG_COL_REAL, "cycles");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        struct figure *f = mg_xcalloc(r->kernels[k].n_sites + 1, sizeof *f);
        uint32_t n = figures_of(&r->kernels[k], f);
        kernel_json(&r->kernels[k], f, n, j);
        kernel_rows(f, n, t);
        free(f);
    }
    mg_json_end(j, ']');
    mg_table_sort(t, 1);
}

extern const struct mg_tool mg_tool_functions;
const struct mg_tool mg_tool_functions = {
    .name = "functions",
    .summary = "cycles in kernels and in functions that were not inlined, and their calls",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 1.15 (docs/measured.md)",
    .opts = functions_opts,
    .configure = functions_configure,
    .release = free,
    .instrument = functions_instrument,
    .profile = functions_profile,
    .flags = MG_TOOL_NO_LOADS | MG_TOOL_CLOCKS,
};
