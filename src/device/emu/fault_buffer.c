/* Whose buffer an access meant: the kernel's argument that its address is a sum with. For messages. */
#include "device/emu/emu.h"

#include <string.h>

#include "device/mem.h"

enum { MOST_PARAMS = 64, DEPTH = 24 };

struct walk {
    const struct mg_module *m;
    const struct mg_func *f;
    uint64_t params;
    mg_id path[DEPTH];
    unsigned depth;
};

static void sources_of(struct walk *w, mg_id reg);

static void operand(struct walk *w, const struct mg_opnd *o)
{
    if (o->kind == MG_OPND_reg || (o->kind == MG_OPND_addr && o->sub == MG_OPND_reg)) sources_of(w, o->id);
}

/* Parameters that what the instruction gives its destination is a sum with. */
static void through(struct walk *w, const struct mg_node *n)
{
    const struct mg_opnd *o = &w->m->opnds.at[n->opnd];
    switch ((enum mg_op)mg_node_form(w->m, n)->op) {
    case MG_OP_ld: {
        const struct mg_opnd *a = &o[1];
        bool param = n->n_opnds == 2 && a->kind == MG_OPND_addr && a->sub == MG_OPND_var &&
                     w->m->vars.at[a->id].is_param && !a->val;
        uint32_t k = param ? a->id - w->f->first_param : MOST_PARAMS;
        if (k < w->f->n_params && k < MOST_PARAMS) w->params |= 1ull << k;
        return;
    }
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_selp:
    case MG_OP_min:
    case MG_OP_max:
        if (n->n_opnds > 2) operand(w, &o[1]), operand(w, &o[2]);
        return;
    case MG_OP_mad:
    case MG_OP_fma:
        if (n->n_opnds > 3) operand(w, &o[3]);
        return;
    case MG_OP_mov:
    case MG_OP_cvta:
    case MG_OP_cvt:
    case MG_OP_and:
        if (n->n_opnds > 1) operand(w, &o[1]);
        return;
    default:
        return;
    }
}

static void sources_of(struct walk *w, mg_id reg)
{
    mg_id defs[8];
    for (unsigned i = 0; i < w->depth; i++)
        if (w->path[i] == reg) return;
    if (w->depth == DEPTH) return;
    w->path[w->depth++] = reg;
    MG_EACH_NODE(w->m, w->f, id)
    {
        const struct mg_node *n = &w->m->nodes.at[id];
        uint32_t k =
            n->kind == MG_NODE_inst ? MG_MIN(mg_node_defs(w->m, id, defs, MG_COUNT_OF(defs)), MG_COUNT_OF(defs)) : 0;
        while (k-- > 0)
            if (defs[k] == reg) through(w, n);
    }
    w->depth--;
}

/* Parameters that the access's address is a sum with: false where that is not to be told. */
static bool walk_back(struct walk *w, const struct emu_frame *f, mg_id node)
{
    const struct mg_dkernel *k = f->wk->l->code->kernel;
    *w = (struct walk){.m = f->fn->mod->ir, .f = &f->fn->mod->ir->funcs.at[f->fn->id]};
    const struct mg_node *n = &w->m->nodes.at[node];
    if (f->fn->id != k->func || f->fn->mod != k->mod || n->kind != MG_NODE_inst) return false;
    for (uint32_t i = 0; i < n->n_opnds; i++)
        if (w->m->opnds.at[n->opnd + i].kind == MG_OPND_addr) operand(w, &w->m->opnds.at[n->opnd + i]);
    return true;
}

/* Is argument i one of these, and as long as an address? */
static bool read_address(const struct walk *w, const struct emu_frame *f, uint32_t i, uint64_t *at)
{
    const struct mg_dkernel *k = f->wk->l->code->kernel;
    if (i >= MOST_PARAMS || !(w->params >> i & 1) || k->param_sizes[i] != 8 || k->param_offsets[i] + 8 > f->param_bytes)
        return false;
    memcpy(at, f->params + k->param_offsets[i], 8);
    return true;
}

uint32_t emu_fault_argument(const struct emu_frame *f, mg_id node, struct mg_alloc *out)
{
    struct walk w;
    struct mg_alloc a;
    uint64_t at;
    uint32_t found = 0;
    if (!walk_back(&w, f, node)) return 0;
    for (uint32_t i = 0; i < f->wk->l->code->kernel->n_params; i++) {
        if (!read_address(&w, f, i, &at) || (out ? !mg_mem_find(at, &a) : at != 0)) continue;
        if (found) return 0;
        found = i + 1;
        if (out) *out = a;
    }
    return found;
}
