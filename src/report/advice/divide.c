/* Rule slow_division: integers divided by what the compiler does not know. PTX has one instruction for it, the machine
 * some twenty, and of 64 bits some eighty (costs.def). By source line. */
#include <stdlib.h>
#include <string.h>

#include "report/advice/priv.h"
#include "report/advice/view.h"

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
    const struct mg_jval *lanes = b->has_warps ? NULL : lanes_of(a, k);
    double threads;
    if (b->has_warps) return (double)b->warps;
    if (lanes) return warps_at(lanes, b->id, &threads);
    return b->has_threads ? (double)b->threads / 32 : 0;
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

/* Has the operand one value in all rounds of the loop that the instruction stands in? */
static bool is_same_each_round(struct view *v, mg_id node, const struct mg_opnd *o)
{
    uint32_t loop = loop_at(v, node);
    if (o->kind == MG_OPND_imm) return true;
    return o->kind == MG_OPND_reg && loop != MG_NO_LOOP &&
           mg_ssa_is_fixed(ssa_of(v), v->loops, loop, mg_ssa_read(ssa_of(v), node, o->id));
}

/* Machine instructions of one execution. What a round of a loop repeats stands in front of the loop. */
static double issues_of_division(struct view *v, const struct division *d, mg_id node)
{
    const struct mg_node *n = &v->m->nodes.at[node];
    const struct mg_opnd *o = &v->m->opnds.at[n->opnd];
    bool kept = n->n_opnds == 3 && (d->by_constant || is_same_each_round(v, node, &o[2]));
    if (!kept) return issues_of_op(d->op);
    return is_same_each_round(v, node, &o[1]) && o[1].kind == MG_OPND_reg ? 0 : issues_of_op_again(d->op);
}

/* Of one that did not run the divisions cost nothing. */
static bool has_run(const struct mg_pblock *b)
{
    return b->has_warps ? b->warps > 0 : !b->has_threads || b->threads > 0;
}

static void add_block(struct advice *a, struct view *v, const struct mg_pkernel *k, uint32_t ix)
{
    const struct mg_pblock *b = &k->blocks[ix];
    const struct mg_module *m = mg_lines_module(a->modules, k->module);
    mg_id first = view_function(v, m, b->function ? b->function : k->name);
    uint32_t n = 0;
    for (mg_id id = node_at(m, first, b->ptx_line); id && n < b->n_insts; id = m->nodes.at[id].next) {
        const struct mg_node *node = &m->nodes.at[id];
        if (node->kind != MG_NODE_inst) continue;
        n++;
        struct division d = {k, ix, node->line, mg_name(m, mg_node_form(m, node)->text), 0, false};
        if (!is_division(d.op)) continue;
        d.by_constant = divides_by_constant(m, node, first);
        d.issues = issues_of_division(v, &d, id);
        *mg_vec_push(&a->divisions) = d;
    }
}

void find_divisions(struct advice *a)
{
    struct view v = {0};
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct mg_pkernel *k = &a->facts->p->kernels[i];
        if (!mg_report_shows(a->facts->o, k)) continue;
        for (uint32_t b = 0; b < k->n_blocks; b++)
            if (has_run(&k->blocks[b]) && has_division(&k->blocks[b])) add_block(a, &v, k, b);
    }
    view_release(&v);
}

double issues_of(const struct advice *a, const struct mg_pkernel *k, const struct mg_pblock *b)
{
    double sum = issues_of_block(b);
    for (uint32_t i = 0; i < a->divisions.n && has_division(b); i++) {
        const struct division *d = &a->divisions.at[i];
        if (d->k == k && &k->blocks[d->block] == b) sum -= issues_of_op(d->op) - d->issues;
    }
    return sum;
}

static void add_division(struct advice *a, struct line_sums *sums, const struct division *d, double warps)
{
    const struct mg_pblock *b = &d->k->blocks[d->block];
    struct line_sum *s = sum_of_place(sums, d->k, place_of_line(a, d->k, d->ptx_line));
    s->function = b->function ? b->function : d->k->name;
    s->requests += warps;
    s->cycles += warps * (d->issues - 1) / 4;
    if (d->issues <= s->most) return;
    s->most = d->issues;
    s->op = d->op;
}

static void tell_division(struct advice *a, const struct line_sum *s)
{
    const struct kernel_cost *c = &a->costs[s->k->id];
    double gain = gain_of(c, PART_ISSUE, s->cycles);
    bool remainder = !strncmp(s->op, "rem.", 4);
    struct mg_finding *f = add_finding(a, c, gain, false);
    place_at_line(f, s);
    f->limit = say_limit(a, c, PART_ISSUE);
    f->measure = s->most;
    f->unit = "machine instructions for one of PTX";
    bool again = s->most < issues_of_op(s->op);
    f->text = mg_arena_printf(
        &a->out->arena,
        "%s divides by what the compiler does not know%s: the machine takes up to %.0f instructions for it%s, %.0f %% of the "
        "kernel's. Where the divisor is a power of two%s, %s. Else make it a constant (a template argument).",
        s->op, again ? ", though no round of the loop changes it" : "", s->most, again ? " in each round" : "",
        c->issues > 0 ? 400 * s->cycles / c->issues : 0, s->op[4] == 's' ? " and no number is negative" : "",
        remainder ? "mask the bits below it" : "shift");
}

void mg_rule_slow_division(struct advice *a, const struct mg_rule *self)
{
    struct line_sums sums = {0};
    (void)self;
    for (uint32_t i = 0; i < a->divisions.n; i++) {
        const struct division *d = &a->divisions.at[i];
        double warps = d->by_constant || d->issues <= 1 ? 0 : warps_of_block(a, d->k, &d->k->blocks[d->block]);
        if (a->costs[d->k->id].share >= LEAST_GAIN_PCT / 100 && warps > 0) add_division(a, &sums, d, warps);
    }
    for (uint32_t i = 0; i < sums.n; i++)
        if (is_worth(&a->costs[sums.at[i].k->id], PART_ISSUE, sums.at[i].cycles)) tell_division(a, &sums.at[i]);
    free(sums.at);
}
