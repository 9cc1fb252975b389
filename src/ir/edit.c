/* Nodes of a body: making, linking, unlinking; and the deep copy of a module. */
#include <string.h>

#include "ir/ir.h"

mg_id mg_node_new(struct mg_module *m, const char *form, const struct mg_opnd *opnds, uint32_t n)
{
    mg_assert(n <= UINT16_MAX);
    mg_id id = mg_node_new_kind(m, MG_NODE_inst, mg_form_intern(m, form, strlen(form)));
    mg_id first = mg_opnd_alloc(m, n);
    if (n) memcpy(&m->opnds.at[first], opnds, n * sizeof *opnds);
    m->nodes.at[id].opnd = first;
    m->nodes.at[id].n_opnds = (uint16_t)n;
    return id;
}

mg_id mg_node_new_kind(struct mg_module *m, enum mg_node_kind kind, uint32_t ref)
{
    mg_id id = m->nodes.n;
    *mg_vec_push(&m->nodes) = (struct mg_node){.kind = (uint8_t)kind, .flags = MG_NF_META | MG_NF_PROBE, .ref = ref};
    return id;
}

static bool is_counted(const struct mg_node *n)
{
    return n->kind == MG_NODE_inst && !(n->flags & MG_NF_META);
}

static void link_between(struct mg_module *m, mg_id func, mg_id before, mg_id node, mg_id after)
{
    struct mg_func *f = &m->funcs.at[func];
    struct mg_node *n = &m->nodes.at[node];
    n->prev = before;
    n->next = after;
    if (before)
        m->nodes.at[before].next = node;
    else
        f->first_node = node;
    if (after)
        m->nodes.at[after].prev = node;
    else
        f->last_node = node;
    if (n->kind == MG_NODE_label) m->labels.at[n->ref].node = node;
    if (is_counted(n)) {
        f->n_insts++;
        m->n_insts++;
    }
}

void mg_node_insert_before(struct mg_module *m, mg_id func, mg_id at, mg_id node)
{
    link_between(m, func, at ? m->nodes.at[at].prev : m->funcs.at[func].last_node, node, at);
}

void mg_node_insert_after(struct mg_module *m, mg_id func, mg_id at, mg_id node)
{
    link_between(m, func, at, node, at ? m->nodes.at[at].next : m->funcs.at[func].first_node);
}

void mg_node_remove(struct mg_module *m, mg_id func, mg_id node)
{
    struct mg_func *f = &m->funcs.at[func];
    struct mg_node *n = &m->nodes.at[node];
    if (n->prev)
        m->nodes.at[n->prev].next = n->next;
    else
        f->first_node = n->next;
    if (n->next)
        m->nodes.at[n->next].prev = n->prev;
    else
        f->last_node = n->prev;
    n->prev = n->next = 0;
    if (n->kind == MG_NODE_label && m->labels.at[n->ref].node == node) m->labels.at[n->ref].node = 0;
    if (is_counted(n)) {
        f->n_insts--;
        m->n_insts--;
    }
}

#define COPY_VEC(to, from)                                                                                             \
    do {                                                                                                               \
        (to)->at = mg_xmalloc((from)->n * sizeof *(from)->at);                                                         \
        memcpy((to)->at, (from)->at, (from)->n * sizeof *(from)->at);                                                  \
        (to)->n = (to)->cap = (from)->n;                                                                               \
    } while (0)

static void copy_opnds(struct mg_module *c, const struct mg_module *m, mg_id first, uint32_t n)
{
    if (n) memcpy(&c->opnds.at[first], &m->opnds.at[first], n * sizeof *m->opnds.at);
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_opnd *o = &m->opnds.at[first + i];
        if (o->kind == MG_OPND_vec || o->kind == MG_OPND_list || o->kind == MG_OPND_tensor || o->kind == MG_OPND_pair)
            copy_opnds(c, m, o->id, o->n);
    }
}

/* Bodies of the functions to keep, at the same ids. Pages that nothing is written to are never made: the
 * copy of one kernel of a large module costs what the kernel costs. */
static void copy_bodies(struct mg_module *c, const struct mg_module *m, const bool *keep)
{
    c->nodes.cap = m->nodes.n + m->nodes.n / 8 + 1024;
    c->opnds.cap = m->opnds.n + m->opnds.n / 8 + 4096;
    c->nodes.at = mg_xcalloc(c->nodes.cap, sizeof *c->nodes.at);
    c->opnds.at = mg_xcalloc(c->opnds.cap, sizeof *c->opnds.at);
    for (mg_id f = 1; f < m->funcs.n; f++) {
        if (!keep[f]) {
            c->funcs.at[f].first_node = c->funcs.at[f].last_node = 0;
            continue;
        }
        MG_EACH_NODE(m, &m->funcs.at[f], id)
        {
            const struct mg_node *n = &m->nodes.at[id];
            c->nodes.at[id] = *n;
            if (n->kind == MG_NODE_inst) copy_opnds(c, m, n->opnd, n->n_opnds);
            if (n->kind == MG_NODE_target)
                copy_opnds(c, m, m->targets.at[n->ref].first_opnd, m->targets.at[n->ref].n_opnds);
        }
    }
}

struct mg_module *mg_module_clone(const struct mg_module *m)
{
    return mg_module_clone_part(m, NULL);
}

struct mg_module *mg_module_clone_part(const struct mg_module *m, const bool *keep)
{
    struct mg_module *c = mg_xcalloc(1, sizeof *c);
    *c = *m;
    c->n_holds = 0;
    c->arena = (struct mg_arena)MG_ARENA_INIT;
    c->form_by_text = (struct mg_map)MG_MAP_INIT;
    c->fused = NULL;
    c->file = m->file ? mg_xstrdup(m->file) : NULL;
    mg_intern_init(&c->names);
    for (mg_str s = 1; s < m->names.n; s++) {
        mg_str same = mg_intern_add(&c->names, m->names.entries[s].s, m->names.entries[s].len);
        mg_assert(same == s);
    }
    COPY_VEC(&c->items, &m->items);
    COPY_VEC(&c->funcs, &m->funcs);
    COPY_VEC(&c->vars, &m->vars);
    COPY_VEC(&c->regs, &m->regs);
    COPY_VEC(&c->groups, &m->groups);
    COPY_VEC(&c->decls, &m->decls);
    COPY_VEC(&c->labels, &m->labels);
    COPY_VEC(&c->targets, &m->targets);
    if (keep) {
        copy_bodies(c, m, keep);
    } else {
        COPY_VEC(&c->nodes, &m->nodes);
        COPY_VEC(&c->opnds, &m->opnds);
    }
    COPY_VEC(&c->inits, &m->inits);
    COPY_VEC(&c->locs, &m->locs);
    COPY_VEC(&c->files, &m->files);
    COPY_VEC(&c->sections, &m->sections);
    COPY_VEC(&c->aliases, &m->aliases);
    COPY_VEC(&c->strs, &m->strs);
    COPY_VEC(&c->directives, &m->directives);
    COPY_VEC(&c->forms, &m->forms);
    for (mg_id f = 1; f < c->forms.n; f++) mg_map_set(&c->form_by_text, c->forms.at[f].text, f);
    for (mg_id v = 1; v < c->vars.n; v++)
        if (c->vars.at[v].n_dims)
            c->vars.at[v].dims = mg_arena_copy(&c->arena, m->vars.at[v].dims, c->vars.at[v].n_dims * sizeof(uint64_t));
    return c;
}

void mg_module_finish(struct mg_module *m)
{
    bool *funcs = mg_xcalloc(m->funcs.n, sizeof *funcs), *vars = mg_xcalloc(m->vars.n, sizeof *vars);
    for (uint32_t i = 1; i < m->items.n; i++) {
        const struct mg_item *it = &m->items.at[i];
        if (it->kind == MG_ITEM_func) funcs[it->id] = true;
        const struct mg_decl *d = it->kind == MG_ITEM_decl ? &m->decls.at[it->id] : NULL;
        for (uint32_t k = 0; d && d->space != MG_SPACE_reg && k < d->n; k++) vars[d->first + k] = true;
    }
    for (mg_id f = 1; f < m->funcs.n; f++)
        if (!funcs[f] && m->funcs.at[f].kind != MG_FUNC_proto) m->funcs.at[f].defined = 0;
    for (mg_id v = 1; v < m->vars.n; v++) {
        struct mg_var *var = &m->vars.at[v];
        if (vars[v] || var->func || var->is_param || var->is_ret) continue;
        var->space = MG_SPACE_generic;
        var->n_inits = 0;
    }
    for (mg_id n = 1; n < m->nodes.n; n++) {
        m->nodes.at[n].flags &= (uint8_t)~MG_NF_META;
        m->nodes.at[n].origin = 0;
    }
    free(funcs);
    free(vars);
}
