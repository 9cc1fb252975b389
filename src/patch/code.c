/* Spots, and the code that tools put there: collected here, put into the twin by patch/link.c. */
#include "patch/priv.h"

#include <string.h>

/* ---- spots ----------------------------------------------------------------------------------------- */

static struct mg_code_at *spot(struct mg_patch *p, enum mg_spot_kind kind, uint32_t func_ix, mg_id node, uint32_t which)
{
    uint64_t key = ((uint64_t)which << 36 | (uint64_t)node) * MG_AT_KINDS + kind, known;
    if (kind == MG_AT_PROLOGUE || kind == MG_AT_ENTRY) key += (uint64_t)func_ix << 40;
    if (mg_map_get(&p->spot_of, key, &known)) return p->spots.at[known];
    struct mg_code_at *at = mg_arena_new(&p->scratch, struct mg_code_at);
    at->p = p;
    at->kind = kind;
    at->func_ix = func_ix;
    at->node = node;
    mg_map_set(&p->spot_of, key, p->spots.n);
    *mg_vec_push(&p->spots) = at;
    return at;
}

static uint32_t func_of(const struct mg_sites *s, mg_id node)
{
    for (uint32_t i = 0; i < s->n_funcs; i++)
        if (mg_cfg_block_of(s->cfgs[i], node) != MG_NO_BLOCK) return i;
    return UINT32_MAX;
}

/* A spot that leads nowhere stands for one that cannot be: the tool fails, but may go on asking. */
static struct mg_code_at *no_spot(struct mg_patch *p, const char *why)
{
    mg_patch_refuse(p, MG_ERR_STATE, "%s", why);
    return spot(p, MG_AT_ENTRY, 0, 0, 0);
}

struct mg_code_at *mg_at_before(struct mg_patch *p, mg_id node)
{
    uint32_t ix = func_of(p->all->sites, node);
    return ix == UINT32_MAX ? no_spot(p, "code in front of an instruction that is not the kernel's")
                            : spot(p, MG_AT_BEFORE, ix, node, 0);
}

struct mg_code_at *mg_at_after(struct mg_patch *p, mg_id node)
{
    uint32_t ix = func_of(p->all->sites, node);
    if (ix == UINT32_MAX) return no_spot(p, "code behind an instruction that is not the kernel's");
    if (mg_node_form(p->all->m, &p->all->m->nodes.at[node])->op_flags & MG_OPF_ENDS_BLOCK)
        return no_spot(p, "code behind what ends a block");
    return spot(p, MG_AT_AFTER, ix, node, 0);
}

struct mg_code_at *mg_at_block(struct mg_patch *p, uint32_t block)
{
    const struct mg_sites *s = p->all->sites;
    if (block >= s->n_blocks) return no_spot(p, "code at a block that is not the kernel's");
    const struct mg_site_block *b = &s->blocks[block];
    return spot(p, MG_AT_BEFORE, b->func_ix, s->cfgs[b->func_ix]->blocks[b->block_ix].first, 0);
}

struct mg_code_at *mg_at_edge(struct mg_patch *p, uint32_t block, uint32_t succ)
{
    const struct mg_sites *s = p->all->sites;
    if (block >= s->n_blocks || succ >= s->blocks[block].n_succs)
        return no_spot(p, "code on an edge that is not the kernel's");
    const struct mg_site_block *b = &s->blocks[block];
    const struct mg_cfg *c = s->cfgs[b->func_ix];
    mg_id last = c->blocks[b->block_ix].last;
    if (mg_node_form(p->all->m, &p->all->m->nodes.at[last])->op == MG_OP_brx && p->all->m->nodes.at[last].guard)
        return no_spot(p, "code on a way out of a branch through a table with a guard");
    struct mg_code_at *at = spot(p, MG_AT_EDGE, b->func_ix, last, succ + 1);
    if (at->depth || at->items.n || at->guards[0].pred) return at;
    struct mg_spot to =
        mg_place_edge(mg_patch_placer(p->all, b->func_ix), b->block_ix, c->blocks[b->block_ix].succ_at + succ);
    at->node = to.at;
    at->guards[0] = (struct mg_code_guard){to.guard, to.guard_not};
    return at;
}

void mg_code_comes_first(struct mg_code_at *at)
{
    at->first = at->kind == MG_AT_EDGE;
}

struct mg_code_at *mg_at_entry(struct mg_patch *p, uint32_t func_ix)
{
    if (func_ix >= p->all->sites->n_funcs)
        return no_spot(p, "code at the entry of a function that is not the kernel's");
    return spot(p, MG_AT_ENTRY, func_ix, p->all->twin->entry_at[func_ix], 0);
}

struct mg_code_at *mg_at_prologue(struct mg_patch *p, uint32_t func_ix)
{
    if (!p->own[func_ix].prologue)
        p->own[func_ix].prologue = spot(p, MG_AT_PROLOGUE, func_ix, p->all->twin->entry_at[func_ix], 0);
    return p->own[func_ix].prologue;
}

static struct mg_code_at *at_exit(struct mg_patch *p, uint32_t func_ix, mg_id node)
{
    struct mg_code_at *at = spot(p, MG_AT_EXIT, func_ix, node, 0);
    const struct mg_node *n = &p->all->m->nodes.at[node];
    at->guards[0] = (struct mg_code_guard){n->guard, n->guard && n->flags & MG_NF_GUARD_NOT};
    return at;
}

void mg_at_exits(struct mg_patch *p, uint32_t func_ix, void (*fn)(struct mg_code_at *at, void *user), void *user)
{
    const struct mg_sites *s = p->all->sites;
    if (func_ix >= s->n_funcs) {
        no_spot(p, "code at the exits of a function that is not the kernel's");
        return;
    }
    for (uint32_t f = func_ix; f < (func_ix ? func_ix + 1 : s->n_funcs); f++) {
        const struct mg_cfg *c = s->cfgs[f];
        for (uint32_t b = 0; b < c->n_blocks; b++) {
            mg_id last = c->blocks[b].last;
            unsigned op = mg_node_form(p->all->m, &p->all->m->nodes.at[last])->op;
            bool leaves = f == func_ix && (op == MG_OP_ret || (op == MG_OP_exit && !f));
            if (leaves || (f != func_ix && op == MG_OP_exit)) fn(at_exit(p, f, last), user);
        }
        mg_id closing = f == func_ix ? mg_patch_close(p->all, f) : 0;
        if (closing) fn(at_exit(p, f, closing), user);
    }
}

bool mg_at_repeats(const struct mg_code_at *at)
{
    if (at->kind == MG_AT_PROLOGUE || at->kind == MG_AT_ENTRY || at->kind == MG_AT_EXIT) return false;
    uint32_t b = mg_cfg_block_of(mg_patch_cfg(at->p, at->func_ix), at->node);
    return b == MG_NO_BLOCK || mg_patch_loops(at->p, at->func_ix)->loop_of[b] != MG_NO_LOOP;
}

uint32_t mg_at_func(const struct mg_code_at *at)
{
    return at->func_ix;
}

/* ---- registers ---------------------------------------------------------------------------------------- */

mg_id mg_code_reg(struct mg_code_at *at, enum mg_type type)
{
    return mg_module_add_reg(mg_at_module(at), mg_at_body(at), "__mg_v", type);
}

mg_id mg_code_temp(struct mg_code_at *at, enum mg_type type)
{
    static const enum mg_type types[MG_TEMP_KINDS] = {MG_TYPE_pred, MG_TYPE_b16, MG_TYPE_b32, MG_TYPE_b64};
    unsigned bits = mg_type_bits(type), kind = bits == 1    ? MG_TEMP_PRED
                                               : bits <= 16 ? MG_TEMP_16
                                               : bits == 32 ? MG_TEMP_32
                                                            : MG_TEMP_64;
    struct mg_patch_func *f = &at->p->all->funcs[at->func_ix];
    if (bits > 64 || at->kind == MG_AT_PROLOGUE || at->called) return mg_code_reg(at, type);
    uint32_t n = at->n_temps[kind]++;
    while (f->temps[kind].n <= n)
        *mg_vec_push(&f->temps[kind]) = mg_module_add_reg(mg_at_module(at), mg_at_body(at), "__mg_t", types[kind]);
    return f->temps[kind].at[n];
}

uint32_t mg_code_func(const struct mg_code_at *at)
{
    return at->func_ix;
}

/* ---- code --------------------------------------------------------------------------------------------- */

void mg_code_forget(struct mg_code_at *at)
{
    at->flows = true;
    at->known.n = 0;
}

mg_id mg_code_emit(struct mg_code_at *at, mg_id guard, bool guard_not, const char *form, const struct mg_opnd *opnds,
                   uint32_t n)
{
    struct mg_module *m = mg_at_module(at);
    mg_id id = mg_node_new(m, form, opnds, n);
    struct mg_node *node = &m->nodes.at[id];
    node->guard = guard;
    if (guard && guard_not) node->flags |= MG_NF_GUARD_NOT;
    if (at->kind >= MG_AT_BEFORE) node->origin = at->node;
    *mg_vec_push(&at->items) = (struct mg_code_item){.node = id};
    bool flows = mg_node_form(m, node)->op_flags & MG_OPF_ENDS_BLOCK;
    for (uint32_t i = 0; i < n; i++)
        if (opnds[i].kind == MG_OPND_label) {
            m->labels.at[opnds[i].id].targeted = 1;
            flows = true;
        }
    if (flows) mg_code_forget(at);
    return id;
}

void mg_code(struct mg_code_at *at, const char *form, const struct mg_opnd *opnds, uint32_t n)
{
    const struct mg_code_guard *g = mg_at_guard(at);
    mg_code_emit(at, g->pred, g->is_not, form, opnds, n);
}

struct mg_opnd mg_code_vec(struct mg_code_at *at, const mg_id *regs, uint32_t n)
{
    struct mg_module *m = mg_at_module(at);
    mg_id first = mg_opnd_alloc(m, n);
    for (uint32_t i = 0; i < n; i++) m->opnds.at[first + i] = mg_o_reg(regs[i]);
    return (struct mg_opnd){.kind = MG_OPND_vec, .id = first, .n = (uint16_t)n};
}

mg_id mg_code_label(struct mg_code_at *at)
{
    return mg_module_add_label(mg_at_module(at), mg_at_body(at), "$__mg_l");
}

void mg_code_place(struct mg_code_at *at, mg_id label)
{
    mg_id id = mg_node_new_kind(mg_at_module(at), MG_NODE_label, label);
    *mg_vec_push(&at->items) = (struct mg_code_item){.node = id};
    mg_code_forget(at);
}

void mg_code_rolled(struct mg_code_at *at)
{
    struct mg_module *m = mg_at_module(at);
    *mg_vec_push(&at->items) =
        (struct mg_code_item){.node = mg_node_new_kind(m, MG_NODE_pragma, mg_intern_adds(&m->names, "nounroll"))};
}

/* ---- guards ---------------------------------------------------------------------------------------------- */

/* The guard at this depth, under those of lower ones. */
static struct mg_code_guard under(struct mg_code_at *at, const struct mg_code_guard *outer, mg_id pred, bool negated)
{
    if (!pred) return *outer;
    if (!outer->pred) return (struct mg_code_guard){pred, negated};
    mg_id both = mg_code_reg(at, MG_TYPE_pred), part = pred;
    if (negated) {
        part = mg_code_temp(at, MG_TYPE_pred);
        MG_PURE(at, "not.pred", part, pred);
    }
    if (outer->is_not) {
        mg_id not_outer = mg_code_temp(at, MG_TYPE_pred);
        MG_PURE(at, "not.pred", not_outer, outer->pred);
        MG_PURE(at, "and.pred", both, not_outer, part);
    } else {
        MG_PURE(at, "and.pred", both, outer->pred, part);
    }
    return (struct mg_code_guard){both, false};
}

void mg_code_push_guard(struct mg_code_at *at, mg_id pred, bool negated)
{
    if (at->depth + 1 == MG_MAX_GUARDS) {
        mg_patch_refuse(at->p, MG_ERR_LIMIT, "guards nest deeper than %d", (int)MG_MAX_GUARDS - 1);
        return;
    }
    struct mg_code_guard g = under(at, mg_at_guard(at), pred, negated);
    at->guards[++at->depth] = g;
}

void mg_code_pop_guard(struct mg_code_at *at)
{
    if (at->depth)
        at->depth--;
    else
        mg_patch_refuse(at->p, MG_ERR_STATE, "a guard is taken away that was not set");
}

void mg_code_guard(struct mg_code_at *at, mg_id pred, bool negated)
{
    if (at->depth) at->depth--;
    if (pred) mg_code_push_guard(at, pred, negated);
}
