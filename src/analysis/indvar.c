/* How the bound of a loop is found: a block that every round passes ends with a branch out of the
 * loop; staying implies a comparison of a register that every round steps. Values that let the loop
 * go on are then distinct, so there are at most as many rounds as values:
 *
 *   r += 1, stay while r < b          b may change: a value that stays is below the greatest, r never wraps
 *   r += 1, stay while r != b         b does not change: r meets it within 2^32 steps
 *   r += 2^k, or <=, >=               b does not change and there is no other way out: a loop that
 *   r += s, s does not change         passes a value again never ends, and then nothing is counted
 *   r += 1, stay while r != 0    r begins with -(x & m), which is not 0: m rounds at most (or r -= 1, from x & m)
 *   r <<= k, r >>= k                  the same; after 32 rounds no value is new
 */
#include "analysis/indvar.h"

#include <stdlib.h>
#include <string.h>

/* Steps that bound a loop and count nothing: by what is the same in every round; a shift by a constant. */
#define STRIDE    INT64_MIN
#define SHIFTS    (INT64_MIN + 1)
#define BY_STRIDE 255 /* shift of such a register */
#define BY_SHIFTS 254

struct finder {
    const struct mg_cfg *c;
    const struct mg_module *m;
    const struct mg_dom *d;
    const struct mg_loops *l;
    mg_id lo, hi; /* registers */
    uint32_t *defs_at;
    mg_id *defs; /* register - lo -> instructions that write it */
    MG_VEC(struct mg_iv) found;
    MG_VEC(mg_id) stepped; /* beside found: register that holds the stepped value too (0: none) */
    struct mg_ivs *out;
    uint32_t *n_exits; /* loop -> edges that leave it, leaving and calls included */
    bool among_others; /* the test at hand is one part of a condition: another may end the loop as well */
};

static mg_id reg_of(const struct mg_opnd *o)
{
    return o->kind == MG_OPND_reg && !o->sub && !o->val ? o->id : 0;
}

static const struct mg_opnd *opnds_of(const struct finder *f, mg_id node)
{
    return &f->m->opnds.at[f->m->nodes.at[node].opnd];
}

static void note_def(struct finder *f, mg_id node, uint32_t *fill)
{
    mg_id d[256];
    uint32_t n = mg_node_defs(f->m, node, d, MG_COUNT_OF(d));
    for (uint32_t i = 0; i < n && i < MG_COUNT_OF(d); i++) {
        if (d[i] < f->lo || d[i] >= f->hi) continue;
        if (fill)
            f->defs[fill[d[i] - f->lo]++] = node;
        else
            f->defs_at[d[i] - f->lo + 1]++;
    }
}

static void collect_defs(struct finder *f)
{
    const struct mg_func *fn = &f->m->funcs.at[f->c->func];
    mg_func_regs(f->m, f->c->func, &f->lo, &f->hi);
    uint32_t n = f->hi - f->lo;
    f->defs_at = mg_xcalloc(n + 2, sizeof *f->defs_at);
    MG_EACH_NODE(f->m, fn, id) if (f->m->nodes.at[id].kind == MG_NODE_inst) note_def(f, id, NULL);
    for (uint32_t i = 0; i < n; i++) f->defs_at[i + 1] += f->defs_at[i];
    f->defs = mg_xcalloc(f->defs_at[n] + 1, sizeof *f->defs);
    uint32_t *fill = mg_xmalloc(sizeof *fill * (n + 1));
    memcpy(fill, f->defs_at, sizeof *fill * (n + 1));
    MG_EACH_NODE(f->m, fn, id) if (f->m->nodes.at[id].kind == MG_NODE_inst) note_def(f, id, fill);
    free(fill);
}

/* The only instruction that writes r; 0: none or several. */
static mg_id only_def(const struct finder *f, mg_id r)
{
    if (r < f->lo || r >= f->hi || f->defs_at[r - f->lo + 1] - f->defs_at[r - f->lo] != 1) return 0;
    return f->defs[f->defs_at[r - f->lo]];
}

/* The only instruction inside the loop that writes r; 0: none or several. */
static mg_id only_def_inside(const struct finder *f, mg_id r, uint32_t loop)
{
    mg_id only = 0;
    if (r < f->lo || r >= f->hi) return 0;
    for (uint32_t i = f->defs_at[r - f->lo]; i < f->defs_at[r - f->lo + 1]; i++) {
        uint32_t b = mg_cfg_block_of(f->c, f->defs[i]);
        if (b == MG_NO_BLOCK || !mg_loops_contains(f->l, loop, b)) continue;
        if (only) return 0;
        only = f->defs[i];
    }
    return only;
}

static bool changes_inside(const struct finder *f, mg_id r, uint32_t loop)
{
    if (r < f->lo || r >= f->hi) return true;
    for (uint32_t i = f->defs_at[r - f->lo]; i < f->defs_at[r - f->lo + 1]; i++) {
        uint32_t b = mg_cfg_block_of(f->c, f->defs[i]);
        if (b != MG_NO_BLOCK && mg_loops_contains(f->l, loop, b)) return true;
    }
    return false;
}

static bool is_shift(const struct finder *f, mg_id node, mg_id var)
{
    const struct mg_node *n = &f->m->nodes.at[node];
    const struct mg_form *fm = mg_node_form(f->m, n);
    if ((fm->op != MG_OP_shl && fm->op != MG_OP_shr) || n->guard || n->n_opnds != 3 || fm->n_types != 1 ||
        mg_type_bits((enum mg_type)fm->types[0]) != 32)
        return false;
    const struct mg_opnd *o = opnds_of(f, node);
    return var && reg_of(&o[0]) && reg_of(&o[1]) == var && o[2].kind == MG_OPND_imm && o[2].val >= 1 && o[2].val < 32;
}

/* add d, var, constant (or sub) in the loop, or a register that does not change there, or a shift: fills step. */
static bool is_step(const struct finder *f, mg_id node, mg_id var, uint32_t loop, mg_id *d, int64_t *step,
                    unsigned *bits)
{
    const struct mg_node *n = &f->m->nodes.at[node];
    const struct mg_form *fm = mg_node_form(f->m, n);
    if (is_shift(f, node, var)) {
        *d = reg_of(&opnds_of(f, node)[0]);
        *step = SHIFTS;
        *bits = 32;
        return true;
    }
    if ((fm->op != MG_OP_add && fm->op != MG_OP_sub) || n->guard || n->n_opnds != 3 || fm->n_mods != 1 ||
        fm->n_types != 1)
        return false;
    enum mg_type_kind kind = mg_type_kind((enum mg_type)fm->types[0]);
    *bits = mg_type_bits((enum mg_type)fm->types[0]);
    if ((kind != MG_TK_UINT && kind != MG_TK_SINT) || (*bits != 32 && *bits != 64)) return false;
    const struct mg_opnd *o = opnds_of(f, node), *by = &o[2];
    *d = reg_of(&o[0]);
    if (!*d || !var) return false;
    if (reg_of(&o[1]) != var) {
        if (fm->op != MG_OP_add || reg_of(&o[2]) != var) return false;
        by = &o[1];
    }
    if (reg_of(by)) {
        *step = STRIDE;
        return *bits == 32 && !changes_inside(f, reg_of(by), loop);
    }
    if (by->kind != MG_OPND_imm || by->sub == MG_IMM_WIDE) return false;
    *step = *bits == 32 ? (int64_t)(int32_t)(uint32_t)by->val : (int64_t)by->val;
    if (fm->op == MG_OP_sub) *step = -*step;
    return *step != 0 && *step != STRIDE && *step != SHIFTS;
}

static bool add_iv(struct finder *f, mg_id reg, mg_id node, mg_id other, uint32_t block, int64_t step, unsigned bits)
{
    uint64_t size = step < 0 ? -(uint64_t)step : (uint64_t)step;
    bool bounds_only = step == STRIDE || step == SHIFTS;
    if (!bounds_only && (size & (size - 1))) return false;
    if (f->m->regs.at[reg].vec || mg_type_bits((enum mg_type)f->m->regs.at[reg].type) != bits) return false;
    *mg_vec_push(&f->found) = (struct mg_iv){
        .loop = f->l->loop_of[block],
        .block = block,
        .reg = reg,
        .step = node,
        .down = step < 0,
        .shift = step == STRIDE   ? BY_STRIDE
                 : step == SHIFTS ? BY_SHIFTS
                                  : (uint8_t)__builtin_ctzll(size),
        .bits = (uint8_t)bits,
    };
    *mg_vec_push(&f->stepped) = other;
    return true;
}

/* Does this instruction step a register once for each execution of its block? */
static void find_step(struct finder *f, mg_id node)
{
    uint32_t b = mg_cfg_block_of(f->c, node), loop = f->l->loop_of[b];
    mg_id d;
    int64_t step;
    unsigned bits;
    const struct mg_node *n = &f->m->nodes.at[node];
    if (loop == MG_NO_LOOP || n->guard) return;
    mg_id to = n->n_opnds ? reg_of(&opnds_of(f, node)[0]) : 0;
    if (is_step(f, node, to, loop, &d, &step, &bits)) {
        if (only_def_inside(f, d, loop) == node) add_iv(f, d, node, 0, b, step, bits);
        return;
    }
    /* add t, r, step; ... mov r, t */
    const struct mg_form *fm = mg_node_form(f->m, n);
    if (fm->op != MG_OP_mov || n->n_opnds != 2) return;
    mg_id r = to, t = reg_of(&opnds_of(f, node)[1]), by = t ? only_def(f, t) : 0;
    if (!r || !by || only_def_inside(f, r, loop) != node || !is_step(f, by, r, loop, &d, &step, &bits)) return;
    uint32_t at = mg_cfg_block_of(f->c, by);
    if (at == MG_NO_BLOCK || f->l->loop_of[at] != loop || !mg_dom_over(f->d, at, b)) return;
    if (at == b) { /* in this order within the block */
        mg_id id = by;
        while (id && id != node && id != f->c->blocks[b].last) id = f->m->nodes.at[id].next;
        if (id != node) return;
    }
    add_iv(f, r, 0, t, b, step, bits);
}

/* ---- bounds -------------------------------------------------------------------------------------- */

enum relation { REL_NONE, REL_LT, REL_LE, REL_GT, REL_GE, REL_NE, REL_EQ };

static enum relation negated(enum relation r)
{
    static const uint8_t to[] = {REL_NONE, REL_GE, REL_GT, REL_LE, REL_LT, REL_EQ, REL_NE};
    return (enum relation)to[r];
}

static enum relation flipped(enum relation r)
{
    static const uint8_t to[] = {REL_NONE, REL_GT, REL_GE, REL_LT, REL_LE, REL_NE, REL_EQ};
    return (enum relation)to[r];
}

static enum relation relation_of(const struct mg_form *fm, bool *is_signed)
{
    *is_signed = mg_type_kind((enum mg_type)fm->types[0]) == MG_TK_SINT;
    for (unsigned i = 0; i < fm->n_mods; i++) switch (fm->mods[i]) {
        case MG_MOD_lt:
            return REL_LT;
        case MG_MOD_le:
            return REL_LE;
        case MG_MOD_gt:
            return REL_GT;
        case MG_MOD_ge:
            return REL_GE;
        case MG_MOD_ne:
            return REL_NE;
        case MG_MOD_eq:
            return REL_EQ;
        case MG_MOD_lo:
            *is_signed = false;
            return REL_LT;
        case MG_MOD_ls:
            *is_signed = false;
            return REL_LE;
        case MG_MOD_hi:
            *is_signed = false;
            return REL_GT;
        case MG_MOD_hs:
            *is_signed = false;
            return REL_GE;
        default:
            break;
        }
    return REL_NONE;
}

static void improve(struct finder *f, uint32_t loop, enum mg_trips trips, unsigned bits)
{
    struct mg_ivs *o = f->out;
    if (o->trips[loop] != MG_TRIPS_ANY &&
        (o->trip_bits[loop] < bits || (o->trip_bits[loop] == bits && o->trips[loop] >= trips)))
        return;
    o->trips[loop] = (uint8_t)trips;
    o->trip_bits[loop] = (uint8_t)bits;
}

static unsigned bits_for(uint64_t n)
{
    unsigned bits = 0;
    while (bits < 63 && (1ull << bits) < n) bits++;
    return bits;
}

/* The instruction outside the loop that gives v its first value, when there is one alone from which it can be reached.
 */
static mg_id first_def(const struct finder *f, const struct mg_iv *v)
{
    mg_id outside = 0;
    uint32_t n = 0;
    uint64_t *leads = mg_xcalloc(mg_bits_words(f->c->n_blocks) + 1, sizeof *leads);
    mg_cfg_find_reaching(f->c, f->l->loops[v->loop].header, leads);
    for (uint32_t i = f->defs_at[v->reg - f->lo]; i < f->defs_at[v->reg - f->lo + 1]; i++) {
        uint32_t b = mg_cfg_block_of(f->c, f->defs[i]);
        if (b != MG_NO_BLOCK && (mg_loops_contains(f->l, v->loop, b) || !mg_has(leads, b))) continue;
        outside = f->defs[i];
        n++;
    }
    free(leads);
    return n == 1 && !f->m->nodes.at[outside].guard ? outside : 0;
}

/* The last instruction that all lanes pass on their way into the loop and that gives v a value, when none behind it
 * does: others may be in front of it, or on ways that lead elsewhere. 0: there is none, or it has a guard. */
static mg_id def_at_entry(const struct finder *f, const struct mg_iv *v)
{
    uint32_t header = f->l->loops[v->loop].header, in = MG_NO_BLOCK;
    mg_id last = 0;
    for (uint32_t i = f->defs_at[v->reg - f->lo]; i < f->defs_at[v->reg - f->lo + 1]; i++) {
        uint32_t b = mg_cfg_block_of(f->c, f->defs[i]);
        if (b == MG_NO_BLOCK || mg_loops_contains(f->l, v->loop, b) || !mg_dom_over(f->d, b, header)) continue;
        if (in == MG_NO_BLOCK || mg_dom_over(f->d, in, b)) in = b, last = f->defs[i];
    }
    if (!last || f->m->nodes.at[last].guard) return 0;
    uint64_t *behind = mg_xcalloc(2 * (size_t)mg_bits_words(f->c->n_blocks) + 1, sizeof *behind),
             *wall = behind + mg_bits_words(f->c->n_blocks);
    mg_put(wall, header);
    mg_put(wall, in);
    mg_graph_after(&f->c->succ, in, behind, wall);
    for (uint32_t i = f->defs_at[v->reg - f->lo]; last && i < f->defs_at[v->reg - f->lo + 1]; i++) {
        uint32_t b = mg_cfg_block_of(f->c, f->defs[i]);
        if (b != in && b != header && b != MG_NO_BLOCK && mg_has(behind, b)) last = 0;
    }
    free(behind);
    return last;
}

/* Constant that the register has whenever the loop is entered. */
static bool start_of(const struct finder *f, const struct mg_iv *v, int64_t *start)
{
    mg_id def = def_at_entry(f, v);
    if (!def) return false;
    uint32_t b = mg_cfg_block_of(f->c, def);
    const struct mg_opnd *o = opnds_of(f, def);
    if (mg_node_form(f->m, &f->m->nodes.at[def])->op != MG_OP_mov || f->m->nodes.at[def].n_opnds != 2 ||
        o[1].kind != MG_OPND_imm || b == MG_NO_BLOCK)
        return false;
    *start = (int32_t)(uint32_t)o[1].val;
    return mg_dom_over(f->d, b, f->l->loops[v->loop].header);
}

/* ---- what a guard in front of the loop says ---------------------------------------------------------- */

struct guard { /* what is asked: does `start rel bound` hold whenever the loop is entered? */
    mg_id start,
        source; /* register of the induction variable, 0: has another value yet; register it was copied from, or 0 */
    mg_id reg, def; /* the induction variable; where it gets its first value */
    bool has_value;
    uint32_t value; /* constant it begins with */
    const struct mg_opnd *bound;
    bool differs, below, above; /* answers; the last two in the signedness of the loop's own test */
    bool is_signed;
};

static bool holds_for(uint32_t a, enum relation rel, uint32_t b, bool is_signed)
{
    int64_t x = is_signed ? (int32_t)a : (int64_t)a, y = is_signed ? (int32_t)b : (int64_t)b;
    switch (rel) {
    case REL_LT:
        return x < y;
    case REL_LE:
        return x <= y;
    case REL_GT:
        return x > y;
    case REL_GE:
        return x >= y;
    case REL_NE:
        return x != y;
    case REL_EQ:
        return x == y;
    default:
        return true;
    }
}

static void note_relation(struct guard *g, enum relation rel, bool is_signed)
{
    g->differs |= rel == REL_LT || rel == REL_GT || rel == REL_NE;
    if (is_signed != g->is_signed) return;
    g->below |= rel == REL_LT;
    g->above |= rel == REL_GT;
}

/* a rel b holds on the way into the loop. */
static void note_guard(const struct finder *f, struct guard *g, const struct mg_opnd *a, enum relation rel,
                       const struct mg_opnd *b, bool is_signed)
{
    mg_id x = reg_of(a), y = reg_of(b), bound = reg_of(g->bound);
    bool starts = x && (x == g->start || x == g->source);
    if (starts && ((y && y == bound && only_def(f, y)) || (b->kind == MG_OPND_imm && g->bound->kind == MG_OPND_imm &&
                                                           (uint32_t)b->val == (uint32_t)g->bound->val)))
        note_relation(g, rel, is_signed);
    /* a constant on one side: what it is compared with excludes it or not */
    if (starts && b->kind == MG_OPND_imm && g->bound->kind == MG_OPND_imm &&
        !holds_for((uint32_t)g->bound->val, rel, (uint32_t)b->val, is_signed))
        g->differs = true;
    if (x && x == bound && only_def(f, x) && g->has_value && b->kind == MG_OPND_imm &&
        !holds_for(g->value, rel, (uint32_t)b->val, is_signed))
        g->differs = true;
}

static bool comes_before(const struct finder *f, mg_id a, mg_id b)
{
    uint32_t x = mg_cfg_block_of(f->c, a), y = mg_cfg_block_of(f->c, b);
    if (x == MG_NO_BLOCK || y == MG_NO_BLOCK || x != y)
        return x != MG_NO_BLOCK && y != MG_NO_BLOCK && mg_dom_over(f->d, x, y);
    for (mg_id id = a; id; id = f->m->nodes.at[id].next) {
        if (id == b) return true;
        if (id == f->c->blocks[x].last) break;
    }
    return false;
}

static void read_guard(const struct finder *f, struct guard *g, uint32_t at, const struct mg_opnd *p, bool holds,
                       unsigned depth)
{
    if (p->kind == MG_OPND_not)
        holds = !holds;
    else if (p->kind != MG_OPND_reg)
        return;
    mg_id node = only_def(f, p->id);
    uint32_t b = node ? mg_cfg_block_of(f->c, node) : MG_NO_BLOCK;
    if (!node || depth > 6 || f->m->nodes.at[node].guard || b == MG_NO_BLOCK || !mg_dom_over(f->d, b, at)) return;
    const struct mg_form *fm = mg_node_form(f->m, &f->m->nodes.at[node]);
    const struct mg_opnd *o = opnds_of(f, node);
    if (fm->op == MG_OP_not) {
        read_guard(f, g, at, &o[1], !holds, depth + 1);
    } else if (fm->op == MG_OP_and || fm->op == MG_OP_or) {
        if ((fm->op == MG_OP_and) != holds) return;
        read_guard(f, g, at, &o[1], holds, depth + 1);
        read_guard(f, g, at, &o[2], holds, depth + 1);
    } else if (fm->op == MG_OP_setp && o[0].kind == MG_OPND_reg && f->m->nodes.at[node].n_opnds == 3 &&
               mg_type_bits((enum mg_type)fm->types[0]) == 32) {
        bool is_signed;
        enum relation rel = relation_of(fm, &is_signed);
        enum mg_type_kind kind = mg_type_kind((enum mg_type)fm->types[0]);
        if (rel == REL_NONE || kind == MG_TK_FLOAT || kind == MG_TK_PACKED) return;
        if (!holds) rel = negated(rel);
        g->start = comes_before(f, g->def, node) ? g->reg : 0;
        note_guard(f, g, &o[1], rel, &o[2], is_signed);
        note_guard(f, g, &o[2], flipped(rel), &o[1], is_signed);
    }
}

/* Follows the only way into the loop backwards, from branch to branch. */
static void ask_guards(const struct finder *f, const struct mg_iv *v, struct guard *g)
{
    const struct mg_cfg *c = f->c;
    uint32_t to = f->l->loops[v->loop].header, from = MG_NO_BLOCK;
    mg_id def = first_def(f, v);
    if (!def) return;
    const struct mg_opnd *o = opnds_of(f, def);
    g->reg = v->reg;
    g->def = def;
    bool copies = mg_node_form(f->m, &f->m->nodes.at[def])->op == MG_OP_mov && f->m->nodes.at[def].n_opnds == 2;
    if (copies && o[1].kind == MG_OPND_imm) g->has_value = true, g->value = (uint32_t)o[1].val;
    if (copies && reg_of(&o[1]) && only_def(f, reg_of(&o[1]))) g->source = reg_of(&o[1]);
    for (uint32_t i = 0; i < c->blocks[to].n_preds; i++) {
        uint32_t p = c->preds[c->blocks[to].pred_at + i];
        if (mg_loops_contains(f->l, v->loop, p)) continue;
        if (from != MG_NO_BLOCK) return;
        from = p;
    }
    for (unsigned steps = 0; from != MG_NO_BLOCK && steps < 8; steps++) {
        const struct mg_block *k = &c->blocks[from];
        const struct mg_node *end = &f->m->nodes.at[k->last];
        if (mg_node_form(f->m, end)->op == MG_OP_bra && end->guard && k->n_succs == 2) {
            bool taken = c->edges[k->succ_at + 1] == to;
            struct mg_opnd p = mg_o_reg(end->guard);
            read_guard(f, g, from, &p, taken != ((end->flags & MG_NF_GUARD_NOT) != 0), 0);
        }
        to = from;
        from = k->n_preds == 1 && to != 0 ? c->preds[k->pred_at] : MG_NO_BLOCK;
    }
}

/* Largest first value, when that is known; UINT32_MAX otherwise. */
static uint32_t most_at_first(const struct finder *f, const struct mg_iv *v)
{
    mg_id def = first_def(f, v);
    const struct mg_form *fm = def ? mg_node_form(f->m, &f->m->nodes.at[def]) : NULL;
    if (!def || fm->op != MG_OP_and || f->m->nodes.at[def].n_opnds != 3) return UINT32_MAX;
    const struct mg_opnd *o = opnds_of(f, def);
    return o[2].kind == MG_OPND_imm ? (uint32_t)o[2].val : UINT32_MAX;
}

/* Rounds of a run whose only way out is this test; first: the value tested first. 0: not to be said. */
static uint64_t exact_rounds(const struct mg_iv *v, enum relation rel, bool is_signed, int64_t first,
                             uint32_t bound_bits)
{
    int64_t bound = is_signed ? (int64_t)(int32_t)bound_bits : (int64_t)bound_bits, step = (int64_t)1 << v->shift;
    int64_t least = is_signed ? INT32_MIN : 0, most = is_signed ? INT32_MAX : UINT32_MAX;
    if (v->down) { /* mirrored: everything counts upwards */
        int64_t low = least;
        bound = -bound, first = -first, least = -most, most = -low;
        rel = flipped(rel);
    }
    if (rel == REL_LE && bound < most) rel = REL_LT, bound++;
    if (rel == REL_NE && first <= bound && !((bound - first) & (step - 1)))
        return (uint64_t)((bound - first) >> v->shift) + 1;
    if (rel != REL_LT || bound - 1 + step > most) return 0;
    return first >= bound ? 1 : (uint64_t)((bound - first + step - 1) >> v->shift) + 1;
}

/* Rounds that go on have `r rel bound`; r is the register of v, or what it has become after the step
 * when `after`. */
static void apply(struct finder *f, const struct mg_iv *v, bool after, enum relation rel, bool is_signed,
                  const struct mg_opnd *bound)
{
    bool constant = bound->kind == MG_OPND_imm,
         fixed = constant || (reg_of(bound) && !changes_inside(f, reg_of(bound), v->loop));
    bool single = f->n_exits[v->loop] == 1 && !f->among_others;
    int64_t start, first = 0, lowest = is_signed ? INT32_MIN : 0, highest = is_signed ? INT32_MAX : UINT32_MAX;
    bool begins = start_of(f, v, &start);
    bool strict = v->down ? rel == REL_GT : rel == REL_LT;
    if (v->bits != 32) return;
    struct guard g = {.bound = bound, .is_signed = is_signed};
    ask_guards(f, v, &g);
    if (v->shift == BY_SHIFTS) {
        if (rel != REL_NONE && fixed && single) improve(f, v->loop, MG_TRIPS_BELOW, 6);
        return;
    }
    if (v->shift == BY_STRIDE) { /* values that go on are distinct, and so is the one before the first of them, if it
                                    would go on too */
        bool proven = after && ((rel == REL_LT && g.below) || (rel == REL_GT && g.above));
        if (rel != REL_NONE && fixed && single) improve(f, v->loop, proven ? MG_TRIPS_BELOW : MG_TRIPS_LIMITED, 32);
        return;
    }
    if (begins) {
        int64_t step = (int64_t)1 << v->shift;
        first = start + (after ? (v->down ? -step : step) : 0);
        first = is_signed ? (int32_t)(uint32_t)first : (int64_t)(uint32_t)first;
        if (constant && single && f->out->latch[v->loop] != MG_NO_BLOCK)
            f->out->exact[v->loop] = exact_rounds(v, rel, is_signed, first, (uint32_t)bound->val);
    }
    if (strict && v->shift == 0) {
        int64_t limit = constant  ? (is_signed ? (int64_t)(int32_t)(uint32_t)bound->val : (int64_t)(uint32_t)bound->val)
                        : v->down ? lowest
                                  : highest;
        if (!begins) { /* the first value compared is not the least one, if the guard compared the one before it */
            bool proven = after && (v->down ? g.above : g.below);
            improve(f, v->loop, proven ? MG_TRIPS_BELOW : MG_TRIPS_LIMITED, 32);
            return;
        }
        int64_t passes = v->down ? first - limit : limit - first; /* values that stay */
        if (passes < 0) passes = 0;
        if (passes + 1 < (int64_t)1 << 32)
            improve(f, v->loop, MG_TRIPS_BELOW, bits_for((uint64_t)passes + 2));
        else
            improve(f, v->loop, MG_TRIPS_LIMITED, 32);
        return;
    }
    if (rel == REL_NE && fixed && (v->shift == 0 || single)) {
        if (constant && begins) {
            uint64_t far = (uint32_t)(v->down ? first - (int64_t)bound->val : (int64_t)bound->val - first);
            unsigned bits = bits_for((far >> v->shift) + 2);
            if (!(far & ((1u << v->shift) - 1)) && bits <= 32) improve(f, v->loop, MG_TRIPS_BELOW, bits);
        }
        uint32_t most = most_at_first(f, v);
        if (after && g.differs && v->down && constant && (uint32_t)bound->val == 0 && most < UINT32_MAX &&
            v->shift == 0)
            improve(f, v->loop, MG_TRIPS_BELOW, bits_for((uint64_t)most + 1));
        improve(f, v->loop, after && g.differs ? MG_TRIPS_BELOW : MG_TRIPS_LIMITED, 32 - v->shift);
        return;
    }
    bool towards = v->down ? rel == REL_GT || rel == REL_GE : rel == REL_LT || rel == REL_LE;
    if (towards && fixed && single) improve(f, v->loop, MG_TRIPS_LIMITED, 32 - v->shift);
}

static bool is_zero(const struct mg_opnd *o)
{
    return o->kind == MG_OPND_imm && o->sub != MG_IMM_WIDE && !o->val;
}

/* Is the register, which is written in one place, not 0 whenever the loop is entered? Some branch on the only way to it
 * says so. */
static bool is_not_zero(const struct finder *f, mg_id reg, uint32_t loop, unsigned bits)
{
    const struct mg_cfg *c = f->c;
    uint32_t to = f->l->loops[loop].header, from = MG_NO_BLOCK;
    for (uint32_t i = 0; i < c->blocks[to].n_preds; i++) {
        uint32_t p = c->preds[c->blocks[to].pred_at + i];
        if (mg_loops_contains(f->l, loop, p)) continue;
        if (from != MG_NO_BLOCK) return false;
        from = p;
    }
    for (unsigned steps = 0; from != MG_NO_BLOCK && steps < 8; steps++) {
        const struct mg_block *k = &c->blocks[from];
        const struct mg_node *end = &f->m->nodes.at[k->last];
        bool forks = mg_node_form(f->m, end)->op == MG_OP_bra && end->guard && k->n_succs == 2 &&
                     c->edges[k->succ_at] != c->edges[k->succ_at + 1];
        mg_id test = forks ? only_def(f, end->guard) : 0;
        const struct mg_form *fm = test ? mg_node_form(f->m, &f->m->nodes.at[test]) : NULL;
        if (test && fm->op == MG_OP_setp && f->m->nodes.at[test].n_opnds == 3 && !f->m->nodes.at[test].guard &&
            mg_type_bits((enum mg_type)fm->types[0]) == bits &&
            mg_type_kind((enum mg_type)fm->types[0]) != MG_TK_FLOAT) {
            const struct mg_opnd *o = opnds_of(f, test);
            bool is_signed, holds = (c->edges[k->succ_at + 1] == to) != ((end->flags & MG_NF_GUARD_NOT) != 0);
            enum relation rel = relation_of(fm, &is_signed);
            if (!holds) rel = negated(rel);
            if (reg_of(&o[0]) == end->guard && rel == REL_NE &&
                ((reg_of(&o[1]) == reg && is_zero(&o[2])) || (reg_of(&o[2]) == reg && is_zero(&o[1]))))
                return comes_before(f, only_def(f, reg), test) && mg_dom_over(f->d, mg_cfg_block_of(c, test), from);
        }
        to = from;
        from = k->n_preds == 1 && to != 0 ? c->preds[k->pred_at] : MG_NO_BLOCK;
    }
    return false;
}

/* The rest of a loop of 2^k bodies a round: begins with `x & (2^k - 1)`, which is not 0, or with minus that, and goes
 * to 0 by ones. Rounds at most; 0: it is none. */
static uint64_t most_of_rest(const struct finder *f, const struct mg_iv *v)
{
    mg_id def = first_def(f, v), masked = 0;
    uint32_t header = f->l->loops[v->loop].header, at = def ? mg_cfg_block_of(f->c, def) : MG_NO_BLOCK;
    if (!def || v->shift || at == MG_NO_BLOCK || !mg_dom_over(f->d, at, header)) return 0;
    const struct mg_node *n = &f->m->nodes.at[def];
    const struct mg_form *fm = mg_node_form(f->m, n);
    const struct mg_opnd *o = opnds_of(f, def);
    bool minus = fm->op == MG_OP_neg;
    if (minus == v->down || (!minus && fm->op != MG_OP_mov) || n->n_opnds != 2 || fm->n_types != 1 ||
        mg_type_bits((enum mg_type)fm->types[0]) != v->bits)
        return 0;
    mg_id from = def;
    if (!(masked = reg_of(&o[1])) || !(def = only_def(f, masked)) || f->m->nodes.at[def].guard ||
        !comes_before(f, def, from) || mg_type_bits((enum mg_type)f->m->regs.at[masked].type) != v->bits)
        return 0;
    fm = mg_node_form(f->m, &f->m->nodes.at[def]);
    o = opnds_of(f, def);
    if (fm->op != MG_OP_and || f->m->nodes.at[def].n_opnds != 3 ||
        mg_type_bits((enum mg_type)fm->types[0]) != v->bits || o[2].kind != MG_OPND_imm || o[2].sub == MG_IMM_WIDE ||
        o[2].val <= 0 || o[2].val > INT32_MAX)
        return 0;
    return is_not_zero(f, masked, v->loop, v->bits) ? (uint64_t)o[2].val : 0;
}

static void compare(struct finder *f, uint32_t loop, mg_id node, bool holds)
{
    const struct mg_form *fm = mg_node_form(f->m, &f->m->nodes.at[node]);
    bool is_signed;
    enum relation rel = relation_of(fm, &is_signed);
    enum mg_type_kind kind = mg_type_kind((enum mg_type)fm->types[0]);
    if (kind != MG_TK_UINT && kind != MG_TK_SINT && kind != MG_TK_BITS) return;
    unsigned bits = mg_type_bits((enum mg_type)fm->types[0]);
    if ((bits != 32 && bits != 64) || rel == REL_NONE) return;
    if (!holds) rel = negated(rel);
    const struct mg_opnd *o = opnds_of(f, node);
    for (uint32_t i = 0; i < f->found.n; i++) {
        const struct mg_iv *v = &f->found.at[i];
        if (v->loop != loop || v->bits != bits) continue;
        for (uint32_t side = 0; side < 2; side++) {
            const struct mg_opnd *a = &o[1 + side], *b = &o[2 - side];
            mg_id r = reg_of(a);
            if (!r || (r != v->reg && r != f->stepped.at[i])) continue;
            /* is what is compared the value of before the step or of after it? Both blocks run in
             * every round, so one dominates the other */
            uint32_t at = mg_cfg_block_of(f->c, node);
            bool after = r == f->stepped.at[i];
            if (!after && at == v->block) {
                mg_id by = only_def_inside(f, v->reg, loop);
                for (mg_id id = f->c->blocks[at].first; id && id != node; id = f->m->nodes.at[id].next)
                    after |= id == by;
            } else if (!after) {
                after = mg_dom_over(f->d, v->block, at);
            }
            uint64_t most = after && rel == REL_NE && is_zero(b) ? most_of_rest(f, v) : 0;
            if (most) improve(f, loop, MG_TRIPS_BELOW, bits_for(most + 1));
            apply(f, v, after, side ? flipped(rel) : rel, is_signed, b);
        }
    }
}

/* What is known when predicate `p` has the value `holds` at a block of the loop. */
static void imply(struct finder *f, uint32_t loop, uint32_t at, const struct mg_opnd *p, bool holds, unsigned depth)
{
    if (p->kind == MG_OPND_not)
        holds = !holds;
    else if (p->kind != MG_OPND_reg)
        return;
    mg_id node = only_def(f, p->id);
    uint32_t b = node ? mg_cfg_block_of(f->c, node) : MG_NO_BLOCK;
    if (!node || depth > 6 || f->m->nodes.at[node].guard || b == MG_NO_BLOCK || f->l->loop_of[b] != loop ||
        !mg_dom_over(f->d, b, at))
        return;
    const struct mg_form *fm = mg_node_form(f->m, &f->m->nodes.at[node]);
    const struct mg_opnd *o = opnds_of(f, node);
    uint32_t n = f->m->nodes.at[node].n_opnds;
    switch (fm->op) {
    case MG_OP_setp: {
        if (o[0].kind != MG_OPND_reg || n < 3) return;
        bool conj = mg_form_has(fm, MG_MOD_and), disj = mg_form_has(fm, MG_MOD_or);
        if (mg_form_has(fm, MG_MOD_xor) || (conj && !holds) || (disj && holds)) return;
        f->among_others |= conj || disj;
        compare(f, loop, node, holds);
        if ((conj || disj) && n == 4) imply(f, loop, at, &o[3], holds, depth + 1);
        return;
    }
    case MG_OP_not:
        imply(f, loop, at, &o[1], !holds, depth + 1);
        return;
    case MG_OP_and:
    case MG_OP_or:
        if ((fm->op == MG_OP_and) != holds) return;
        f->among_others = true;
        imply(f, loop, at, &o[1], holds, depth + 1);
        imply(f, loop, at, &o[2], holds, depth + 1);
        return;
    default:
        return;
    }
}

/* Does the block run in every round that another follows? */
static bool in_every_round(const struct finder *f, uint32_t loop, uint32_t b)
{
    uint32_t h = f->l->loops[loop].header;
    if (f->l->loop_of[b] != loop || f->l->loops[loop].n_headers != 1) return false;
    const struct mg_block *k = &f->c->blocks[h];
    for (uint32_t i = 0; i < k->n_preds; i++) {
        uint32_t p = f->c->preds[k->pred_at + i];
        if (mg_loops_contains(f->l, loop, p) && !mg_dom_over(f->d, b, p)) return false;
    }
    return true;
}

static void bound_loops(struct finder *f)
{
    const struct mg_cfg *c = f->c;
    struct mg_iv *list = f->found.at;
    uint32_t n = 0; /* only what steps in every round bounds it; the rest may still count */
    bool *steps = mg_xcalloc(f->found.n + 1, sizeof *steps);
    for (uint32_t i = 0; i < f->found.n; i++) steps[i] = in_every_round(f, list[i].loop, list[i].block);
    struct finder only = *f;
    only.found.at = mg_xmalloc(sizeof *list * (f->found.n + 1));
    only.stepped.at = mg_xmalloc(sizeof(mg_id) * (f->found.n + 1));
    for (uint32_t i = 0; i < f->found.n; i++) {
        if (!steps[i]) continue;
        only.found.at[n] = list[i];
        only.stepped.at[n++] = f->stepped.at[i];
    }
    only.found.n = only.stepped.n = n;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        uint32_t loop = f->l->loop_of[b];
        const struct mg_block *k = &c->blocks[b];
        const struct mg_node *end = &f->m->nodes.at[k->last];
        if (loop == MG_NO_LOOP || !end->guard || !in_every_round(f, loop, b)) continue;
        unsigned op = mg_node_form(f->m, end)->op;
        bool not_guard = end->flags & MG_NF_GUARD_NOT, holds;
        if (op == MG_OP_bra && k->n_succs == 2) {
            bool fall = mg_loops_contains(f->l, loop, c->edges[k->succ_at]),
                 taken = mg_loops_contains(f->l, loop, c->edges[k->succ_at + 1]);
            if (fall == taken) continue;
            holds = taken != not_guard;
        } else if (op == MG_OP_ret || op == MG_OP_exit) {
            holds = not_guard;
        } else {
            continue;
        }
        struct mg_opnd p = mg_o_reg(end->guard);
        only.among_others = false;
        imply(&only, loop, b, &p, holds, 0);
    }
    free(only.found.at);
    free(only.stepped.at);
    free(steps);
}

static void count_exits(struct finder *f)
{
    const struct mg_cfg *c = f->c;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const struct mg_block *k = &c->blocks[b];
        if (!c->reachable[b]) continue;
        bool away = k->leaves || mg_node_form(f->m, &f->m->nodes.at[k->last])->op == MG_OP_call;
        for (uint32_t loop = f->l->loop_of[b]; loop != MG_NO_LOOP; loop = f->l->loops[loop].parent) {
            f->n_exits[loop] += away;
            for (uint32_t s = 0; s < k->n_succs; s++)
                f->n_exits[loop] += !mg_loops_contains(f->l, loop, c->edges[k->succ_at + s]);
        }
    }
}

static void find_latches(struct finder *f)
{
    for (uint32_t i = 0; i < f->l->n_loops; i++) {
        const struct mg_loop *lp = &f->l->loops[i];
        const struct mg_block *h = &f->c->blocks[lp->header];
        f->out->latch[i] = MG_NO_BLOCK;
        uint32_t n = 0;
        for (uint32_t p = 0; p < h->n_preds; p++) {
            uint32_t from = f->c->preds[h->pred_at + p];
            if (!mg_loops_contains(f->l, i, from)) continue;
            f->out->latch[i] = from;
            n++;
        }
        if (n != 1 || lp->n_headers != 1) f->out->latch[i] = MG_NO_BLOCK;
    }
}

/* Does the block run in the round in which the loop is left? */
static enum mg_iv_last last_round(const struct finder *f, uint32_t loop, uint32_t b)
{
    const struct mg_cfg *c = f->c;
    bool always = in_every_round(f, loop, b), never = true;
    for (uint32_t x = 0; x < c->n_blocks && (always || never); x++) {
        const struct mg_block *k = &c->blocks[x];
        if (!c->reachable[x] || !mg_loops_contains(f->l, loop, x)) continue;
        bool ends = k->leaves || mg_node_form(f->m, &f->m->nodes.at[k->last])->op == MG_OP_call;
        for (uint32_t s = 0; s < k->n_succs; s++) ends |= !mg_loops_contains(f->l, loop, c->edges[k->succ_at + s]);
        if (!ends) continue;
        always = always && mg_dom_over(f->d, b, x);
        never = never && x != b && f->l->loop_of[x] == loop && mg_dom_over(f->d, x, b);
    }
    return always ? MG_IV_ALWAYS : never ? MG_IV_NEVER : MG_IV_MAYBE;
}

static int by_loop(const void *a, const void *b)
{
    const struct mg_iv *x = a, *y = b;
    return x->loop != y->loop ? (x->loop < y->loop ? -1 : 1) : x->reg < y->reg ? -1 : x->reg > y->reg;
}

struct mg_ivs *mg_ivs_new(const struct mg_cfg *c, const struct mg_dom *d, const struct mg_loops *l)
{
    struct mg_ivs *out = mg_xcalloc(1, sizeof *out);
    out->trips = mg_xcalloc(l->n_loops + 1, 1);
    out->trip_bits = mg_xcalloc(l->n_loops + 1, 1);
    out->latch = mg_xcalloc(l->n_loops + 1, sizeof *out->latch);
    out->exact = mg_xcalloc(l->n_loops + 1, sizeof *out->exact);
    if (!l->n_loops) return out;
    struct finder f = {.c = c, .m = c->m, .d = d, .l = l, .out = out};
    f.n_exits = mg_xcalloc(l->n_loops, sizeof *f.n_exits);
    collect_defs(&f);
    count_exits(&f);
    find_latches(&f);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        uint32_t loop = l->loop_of[b];
        if (!c->reachable[b] || loop == MG_NO_LOOP || l->loops[loop].n_headers != 1) continue;
        for (mg_id id = c->blocks[b].first;; id = f.m->nodes.at[id].next) {
            if (f.m->nodes.at[id].kind == MG_NODE_inst && !(f.m->nodes.at[id].flags & MG_NF_META)) find_step(&f, id);
            if (id == c->blocks[b].last) break;
        }
    }
    MG_EACH_NODE(f.m, &f.m->funcs.at[c->func], id)
    {
        if (f.m->nodes.at[id].kind != MG_NODE_inst) continue;
        unsigned op = mg_node_form(f.m, &f.m->nodes.at[id])->op;
        out->carry_used |= op == MG_OP_addc || op == MG_OP_subc || op == MG_OP_madc;
    }
    bound_loops(&f);
    out->list = f.found.at;
    for (uint32_t i = 0; i < f.found.n; i++) {
        if (f.found.at[i].shift >= BY_SHIFTS) continue;
        struct mg_iv *to = &out->list[out->n++];
        *to = f.found.at[i];
        to->last = last_round(&f, to->loop, to->block);
    }
    if (out->n) qsort(out->list, out->n, sizeof *out->list, by_loop);
    mg_vec_release(&f.stepped);
    free(f.defs_at);
    free(f.defs);
    free(f.n_exits);
    return out;
}

void mg_ivs_free(struct mg_ivs *v)
{
    if (!v) return;
    free(v->list);
    free(v->trips);
    free(v->trip_bits);
    free(v->latch);
    free(v->exact);
    free(v);
}

bool mg_ivs_most(const struct mg_ivs *v, const struct mg_loops *l, uint32_t loop, unsigned *bits, bool *below)
{
    *bits = 0;
    *below = false;
    for (; loop != MG_NO_LOOP; loop = l->loops[loop].parent) {
        if (v->trips[loop] == MG_TRIPS_ANY) return false;
        *below |= v->trips[loop] == MG_TRIPS_BELOW;
        *bits += v->trip_bits[loop];
    }
    return true;
}
