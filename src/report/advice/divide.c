/* Rule slow_division: integers divided by what the compiler does not know. PTX has one instruction for it, the machine
 * some twenty, and of 64 bits some eighty (costs.def). By source line. */
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "report/advice/priv.h"

static bool is_division(const char *op)
{
    bool remainder = !strncmp(op, "rem.", 4);
    return remainder || (!strncmp(op, "div.", 4) && (op[4] == 'u' || op[4] == 's') && op[5] >= '0' && op[5] <= '9');
}

static bool has_division(const struct mg_pblock *b)
{
    for (uint32_t i = 0; i < b->n_ops; i++)
        if (is_division(b->ops[i].op)) return true;
    return false;
}

static double warps_of_block(struct advice *a, const struct mg_pkernel *k, const struct mg_pblock *b)
{
    const struct mg_jval *lanes = a->without & MG_WORK_NO_LANES ? NULL : mg_facts_tool(a->facts, "lanes");
    double threads;
    if (b->has_warps) return (double)b->warps;
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(lanes, "kernels")); v; v = v->next)
        if (mg_jval_u64(v, "kernel") == k->id) return warps_at(v, b->id, &threads);
    return b->has_threads ? (double)b->threads / 32 : 0;
}

/* The first instruction of the block, of its function's nodes from `first` on; 0: not found. */
static mg_id first_of(const struct mg_module *m, mg_id first, const struct mg_pblock *b)
{
    for (mg_id id = first; id; id = m->nodes.at[id].next)
        if (m->nodes.at[id].kind == MG_NODE_inst && m->nodes.at[id].line == b->ptx_line) return id;
    return 0;
}

static void add_division(struct advice *a, struct line_sums *sums, const struct mg_pkernel *k,
                         const struct mg_pblock *b, const char *op, uint32_t ptx_line, double warps)
{
    struct line_sum *s = sum_of_place(sums, k, place_of_line(a, k, ptx_line));
    s->function = b->function ? b->function : k->name;
    s->op = op;
    s->requests += warps;
    s->cycles += warps * (issues_of_op(op) - 1) / 4;
}

/* Is the last operand a number, or a register that is one: defined once, by mov of a number? The assembler sees both.
 */
static bool divides_by_constant(const struct mg_module *m, const struct mg_node *division, mg_id first)
{
    const struct mg_opnd *by = division->n_opnds ? &m->opnds.at[division->opnd + division->n_opnds - 1] : NULL;
    uint32_t n = 0, numbers = 0;
    if (!by || by->kind == MG_OPND_imm) return by != NULL;
    for (mg_id id = by->kind == MG_OPND_reg ? first : 0; id; id = m->nodes.at[id].next) {
        const struct mg_node *d = &m->nodes.at[id];
        const struct mg_opnd *o = &m->opnds.at[d->opnd];
        if (d->kind != MG_NODE_inst || !d->n_opnds || o->kind != MG_OPND_reg || o->id != by->id) continue;
        n++;
        numbers += mg_node_form(m, d)->op == MG_OP_mov && !d->guard && d->n_opnds == 2 && o[1].kind == MG_OPND_imm;
    }
    return n == 1 && numbers == 1;
}

static void add_block(struct advice *a, struct line_sums *sums, const struct mg_pkernel *k, const struct mg_pblock *b)
{
    const struct mg_module *m = mg_lines_module(a->modules, k->module);
    double warps = m ? warps_of_block(a, k, b) : 0;
    mg_id func = warps > 0 ? mg_module_find_func(m, b->function ? b->function : k->name) : 0,
          first = func ? m->funcs.at[func].first_node : 0;
    uint32_t n = 0;
    for (mg_id id = first_of(m, first, b); id && n < b->n_insts; id = m->nodes.at[id].next) {
        const struct mg_node *node = &m->nodes.at[id];
        if (node->kind != MG_NODE_inst) continue;
        n++;
        const char *op = mg_name(m, mg_node_form(m, node)->text);
        if (is_division(op) && !divides_by_constant(m, node, first)) add_division(a, sums, k, b, op, node->line, warps);
    }
}

static void tell_division(struct advice *a, const struct line_sum *s)
{
    const struct kernel_cost *c = &a->costs[s->k->id];
    double issues = issues_of_op(s->op), gain = gain_of(c, PART_ISSUE, s->cycles);
    bool remainder = !strncmp(s->op, "rem.", 4);
    struct mg_finding *f = add_finding(a, c, gain, false);
    place_at_line(f, s);
    f->measure = issues;
    f->unit = "machine instructions for one of PTX";
    f->text = mg_arena_printf(
        &a->out->arena,
        "%s divides by what the compiler does not know: the machine takes up to %.0f instructions for it, %.0f %% of the "
        "kernel's. Where the divisor is a power of two%s, %s. Else make it a constant, or divide outside of the loop.",
        s->op, issues, c->issues > 0 ? 400 * s->cycles / c->issues : 0,
        s->op[4] == 's' ? " and no number is negative" : "", remainder ? "mask the bits below it" : "shift");
}

void mg_rule_slow_division(struct advice *a, const struct mg_rule *self)
{
    struct line_sums sums = {0};
    (void)self;
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct mg_pkernel *k = a->costs[i].k;
        if (a->costs[i].share < LEAST_GAIN_PCT / 100) continue;
        for (uint32_t b = 0; b < k->n_blocks; b++)
            if (has_division(&k->blocks[b])) add_block(a, &sums, k, &k->blocks[b]);
    }
    for (uint32_t i = 0; i < sums.n; i++)
        if (is_worth(&a->costs[sums.at[i].k->id], PART_ISSUE, sums.at[i].cycles)) tell_division(a, &sums.at[i]);
    free(sums.at);
}
