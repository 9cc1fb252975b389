/* Takes the hidden parameter from functions of a twin that do not need it. A recursive function would keep it
 * through every call of itself. Behind all tools; a function whose address is taken keeps it, callers do not
 * know whom they call. */
#include <stdlib.h>

#include "pass/priv.h"

/* The position of the hidden parameter; UINT32_MAX: the function has none. */
static uint32_t find_param(const struct mg_module *m, const struct mg_func *f, mg_str name)
{
    for (uint32_t k = 0; k < f->n_params; k++)
        if (m->vars.at[f->first_param + k].name == name && !m->vars.at[f->first_param + k].is_reg_param) return k;
    return UINT32_MAX;
}

/* The function of the twin that the node calls by name. */
static uint32_t callee_of(const struct mg_twin *t, mg_id node, struct mg_call *c)
{
    const struct mg_module *m = t->m;
    if (m->nodes.at[node].kind != MG_NODE_inst || mg_node_form(m, &m->nodes.at[node])->op != MG_OP_call)
        return UINT32_MAX;
    mg_call_read(m, node, c);
    mg_id body = c->func ? mg_func_body(m, c->func) : 0;
    for (uint32_t i = 0; body && i < t->n_funcs; i++)
        if (t->funcs[i] == body) return i;
    return UINT32_MAX;
}

static struct mg_opnd *args_of(struct mg_module *m, mg_id node, const struct mg_call *c)
{
    return c->args == MG_NO_OPND ? NULL : &m->opnds.at[m->nodes.at[node].opnd + c->args];
}

static bool is_entry_load(const struct mg_module *m, const struct mg_node *n, mg_id param)
{
    return n->kind == MG_NODE_inst && mg_node_form(m, n)->op == MG_OP_ld && n->n_opnds == 2 &&
           m->opnds.at[n->opnd + 1].kind == MG_OPND_addr && m->opnds.at[n->opnd + 1].sub == MG_OPND_var &&
           m->opnds.at[n->opnd + 1].id == param;
}

/* Does the function do anything with it but hand it to functions that do not need it? */
static bool needs(const struct mg_twin *t, uint32_t i, mg_str name, const bool *need)
{
    struct mg_module *m = t->m;
    const struct mg_func *f = &m->funcs.at[t->funcs[i]];
    uint32_t ix = find_param(m, f, name), cap = 512;
    if (ix == UINT32_MAX) return true;
    mg_id *ids = mg_xcalloc(cap, sizeof *ids);
    bool found = false;
    MG_EACH_NODE(m, f, id)
    {
        struct mg_call c;
        uint32_t n, uses = 0, callee = callee_of(t, id, &c);
        if (found || m->nodes.at[id].kind != MG_NODE_inst || is_entry_load(m, &m->nodes.at[id], f->first_param + ix))
            continue;
        while ((n = mg_node_uses(m, id, ids, cap)) > cap) ids = mg_xrealloc(ids, (cap = n) * sizeof *ids);
        for (uint32_t k = 0; k < n; k++) uses += ids[k] == t->ctx_reg[i];
        if (callee != UINT32_MAX && !need[callee]) {
            const struct mg_func *to = &m->funcs.at[t->funcs[callee]];
            const struct mg_opnd *args = args_of(m, id, &c);
            uint32_t at = find_param(m, to, name);
            bool handed = args && args->n == to->n_params && m->opnds.at[args->id + at].kind == MG_OPND_reg &&
                          m->opnds.at[args->id + at].id == t->ctx_reg[i];
            if (handed)
                uses--;
            else
                found = true; /* a call that we did not write */
        }
        found |= uses != 0;
    }
    free(ids);
    return found;
}

static void drop_argument(struct mg_module *m, mg_id node, const struct mg_call *c, uint32_t ix)
{
    struct mg_opnd *args = args_of(m, node, c);
    for (uint32_t k = ix; k + 1 < args->n; k++) m->opnds.at[args->id + k] = m->opnds.at[args->id + k + 1];
    args->n--;
}

/* Those in front of it move up by one, so that the run stays one: their names in the body follow. */
static void follow(struct mg_module *m, mg_id first, uint32_t n, mg_id lo, mg_id hi)
{
    for (uint32_t i = 0; i < n; i++) {
        struct mg_opnd *o = &m->opnds.at[first + i];
        if (o->kind == MG_OPND_vec || o->kind == MG_OPND_list || o->kind == MG_OPND_tensor || o->kind == MG_OPND_pair)
            follow(m, o->id, o->n, lo, hi);
        else if ((o->kind == MG_OPND_var || (o->kind == MG_OPND_addr && o->sub == MG_OPND_var)) && o->id >= lo &&
                 o->id < hi)
            o->id++;
    }
}

static void drop_param(struct mg_module *m, mg_id func, uint32_t ix)
{
    struct mg_func *f = &m->funcs.at[func];
    mg_id first = f->first_param;
    for (uint32_t k = ix; k > 0; k--) m->vars.at[first + k] = m->vars.at[first + k - 1];
    f->first_param++;
    f->n_params--;
    MG_EACH_NODE(m, f, id)
    if (m->nodes.at[id].kind == MG_NODE_inst)
        follow(m, m->nodes.at[id].opnd, m->nodes.at[id].n_opnds, first, first + ix);
}

static void drop(struct mg_twin *t, uint32_t i, mg_str name)
{
    struct mg_module *m = t->m;
    mg_id func = t->funcs[i];
    uint32_t ix = find_param(m, &m->funcs.at[func], name);
    mg_id param = m->funcs.at[func].first_param + ix, next;
    for (uint32_t k = 0; k < t->n_funcs; k++) MG_EACH_NODE(m, &m->funcs.at[t->funcs[k]], id)
        {
            struct mg_call c;
            if (callee_of(t, id, &c) == i) drop_argument(m, id, &c, ix);
        }
    for (mg_id id = m->funcs.at[func].first_node; id; id = next) {
        next = m->nodes.at[id].next;
        if (is_entry_load(m, &m->nodes.at[id], param)) mg_node_remove(m, func, id);
    }
    for (mg_id other = 1; other < m->funcs.n; other++)
        if (m->funcs.at[other].kind == MG_FUNC_func && mg_func_body(m, other) == func)
            drop_param(m, other, find_param(m, &m->funcs.at[other], name));
}

void mg_twin_drop_contexts(struct mg_twin *t)
{
    struct mg_module *m = t->m;
    mg_str name = m->vars.at[t->ctx_param].name;
    bool *taken = t->n_funcs > 1 ? mg_funcs_taken(m) : NULL, *need = mg_xcalloc(t->n_funcs + 1, sizeof *need);
    for (uint32_t i = 0; i < t->n_funcs; i++) need[i] = i == 0 || taken[t->funcs[i]];
    for (bool again = t->n_funcs > 1; again;) {
        again = false;
        for (uint32_t i = 1; i < t->n_funcs; i++)
            if (!need[i] && needs(t, i, name, need)) again = need[i] = true;
    }
    for (uint32_t i = 1; i < t->n_funcs; i++)
        if (!need[i]) drop(t, i, name);
    free(taken);
    free(need);
}
