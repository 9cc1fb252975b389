/* What an instruction does to memory, from its form: space, width, which operands are address and data. */
#include "analysis/analysis.h"
#include "patch/patch.h"

/* The nth operand that is an address in brackets. */
static uint32_t find_address(const struct mg_module *m, const struct mg_node *n, uint32_t nth)
{
    for (uint32_t i = 0; i < n->n_opnds; i++)
        if (m->opnds.at[n->opnd + i].kind == MG_OPND_addr && !nth--) return i;
    return UINT32_MAX;
}

static uint8_t bytes_of(enum mg_type t)
{
    return (uint8_t)(mg_type_bits(t) / 8);
}

/* cp.async [dst], [src], bytes: its read; bulk copies have their size in a register. */
static bool read_copy(const struct mg_module *m, const struct mg_node *n, const struct mg_form *f, struct mg_access *a)
{
    if (!mg_form_has(f, MG_MOD_async) || mg_form_has(f, MG_MOD_bulk)) return false;
    a->addr = find_address(m, n, 1);
    if (a->addr == UINT32_MAX || a->addr + 1u >= n->n_opnds) return false; /* commit_group, wait_group */
    const struct mg_opnd *size = &m->opnds.at[n->opnd + a->addr + 1];
    a->space = MG_SPACE_global;
    a->bytes = size->kind == MG_OPND_imm ? (uint8_t)size->val : 4;
    a->reads = a->is_async = true;
    return true;
}

bool mg_access_of(const struct mg_module *m, mg_id node, struct mg_access *a)
{
    const struct mg_node *n = &m->nodes.at[node];
    *a = (struct mg_access){.vec = 1, .addr = UINT32_MAX, .data = UINT32_MAX};
    if (n->kind != MG_NODE_inst) return false;
    const struct mg_form *f = mg_node_form(m, n);
    a->space = (enum mg_space)f->space;
    a->is_volatile = mg_form_has(f, MG_MOD_volatile);
    switch (f->op) {
    case MG_OP_ld:
    case MG_OP_ldu:
        a->reads = true;
        break;
    case MG_OP_st:
        a->writes = true;
        break;
    case MG_OP_atom:
    case MG_OP_red:
        a->reads = a->writes = a->atomic = true;
        break;
    case MG_OP_cp:
        return read_copy(m, n, f, a);
    default:
        return false;
    }
    if (!f->n_types) return false;
    a->is_async = mg_form_has(f, MG_MOD_async);
    a->bytes = bytes_of((enum mg_type)f->types[f->n_types - 1]);
    a->vec = f->vec ? f->vec : 1;
    a->addr = find_address(m, n, 0);
    if (a->addr == UINT32_MAX) return false;
    a->data = f->op == MG_OP_ld || f->op == MG_OP_ldu || f->op == MG_OP_atom ? 0 : a->addr + 1;
    if (a->data >= n->n_opnds) a->data = UINT32_MAX;
    return a->bytes != 0;
}

bool mg_patch_access(struct mg_patch *p, const struct mg_patch_inst *i, struct mg_access *a)
{
    const struct mg_module *app = mg_patch_cfg(p, i->func_ix)->m;
    if (!mg_access_of(mg_patch_module(p), i->node, a)) return false;
    if (mg_form_has(mg_node_form(app, &app->nodes.at[i->node]), MG_MOD_const)) a->space = MG_SPACE_const;
    return true;
}
