/* The twin of a kernel: its clone with the functions it reaches, the hidden parameter and nothing
 * of the module's state (see pass.h for the contract and the layout of the context block).
 *
 *   clone module ─► add hidden parameters ─► load the context at each entry ─► rewrite symbols
 *                ─► rewrite calls ─► drop every item the kernel does not need
 *
 * Probes are the tools' business; a twin without probes computes what the kernel computes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/contract.h"
#include "pass/priv.h"

mg_id mg_insert(struct mg_module *m, mg_id func, mg_id at, const char *form, const struct mg_opnd *opnds, uint32_t n)
{
    mg_id id = mg_node_new(m, form, opnds, n);
    mg_node_insert_before(m, func, at, id);
    if (at) m->nodes.at[id].origin = at;
    return id;
}

/* First node that is code, a label that code jumps to or a scope: entry code goes in front of it. Labels of debug
 * information may stand in front of variables that entry code names. */
static mg_id find_entry(const struct mg_module *m, mg_id func)
{
    mg_id at = 0;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        unsigned kind = m->nodes.at[id].kind;
        if (kind != MG_NODE_inst && kind != MG_NODE_label && kind != MG_NODE_open) continue;
        if (kind == MG_NODE_label && !m->labels.at[m->nodes.at[id].ref].targeted) continue;
        at = id;
        break;
    }
    /* a pragma belongs to what follows it */
    while (at && m->nodes.at[at].prev) {
        unsigned kind = m->nodes.at[m->nodes.at[at].prev].kind;
        if (kind != MG_NODE_pragma && kind != MG_NODE_loc) break;
        at = m->nodes.at[at].prev;
    }
    return at;
}

static enum mg_err check_limits(struct mg_twin_build *b)
{
    const struct mg_module *m = b->m;
    struct mg_twin *t = b->t;
    struct mg_func *k = &b->m->funcs.at[t->kernel];
    t->ctx_offset = (uint32_t)mg_func_param_offset(k, m->vars.at, k->n_params - 1);
    k->param_bytes = t->ctx_offset + 8;
    bool large = m->sm >= 70 && (m->version_major > 8 || (m->version_major == 8 && m->version_minor >= 1));
    uint32_t limit = large ? 32764 : 4352 - 256;
    if (k->param_bytes <= limit) return MG_ERR_OK;
    return mg_diag_err(b->d, MG_ERR_LIMIT,
                       "no room for the hidden parameter: %llu bytes of parameters, the limit is %u",
                       (unsigned long long)k->param_bytes, (unsigned)limit);
}

static void prepare_func(struct mg_twin_build *b, struct mg_twin_func *f)
{
    struct mg_module *m = b->m;
    const struct mg_func *fn = &m->funcs.at[f->func];
    const struct mg_var *v = &m->vars.at[fn->first_param + fn->n_params - 1];
    mg_id param = fn->first_param + fn->n_params - 1;
    b->t->entry_at[f->ix] = find_entry(m, f->func);
    if (v->is_reg_param) {
        f->ctx = v->reg;
    } else {
        f->ctx = mg_module_add_reg(m, f->func, "__mg_ctxp", MG_TYPE_b64);
        MG_INSERT(m, f->func, b->t->entry_at[f->ix], "ld.param.u64", f->ctx, mg_o_addr_var(param, 0));
    }
    b->t->ctx_reg[f->ix] = f->ctx;
}

static enum mg_err rewrite_func(struct mg_twin_build *b, uint32_t ix)
{
    struct mg_twin_func f = {.b = b, .func = b->t->funcs[ix], .ix = ix};
    prepare_func(b, &f);
    mg_map_release(&b->proto_of);
    b->proto_of = (struct mg_map)MG_MAP_INIT;
    if (!ix) mg_twin_plan_constants(&f);
    if (!ix && (b->flags & MG_TWIN_CONSTANTS) && b->t->known_bytes == b->t->known_values)
        mg_twin_prefetch_constants(&f);
    enum mg_err err = mg_twin_rewrite_symbols(&f);
    if (!err) err = mg_twin_rewrite_calls(&f);
    mg_map_release(&f.reg_of_symbol);
    return err;
}

/* ---- what the twin's text holds --------------------------------------------------------------- */

struct uses {
    bool *vars, *funcs;
};

static void mark_uses(const struct mg_module *m, struct uses *u, mg_id first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_opnd *o = &m->opnds.at[first + i];
        if (o->kind == MG_OPND_func)
            u->funcs[o->id] = true;
        else if (o->kind == MG_OPND_var || (o->kind == MG_OPND_addr && o->sub == MG_OPND_var))
            u->vars[o->id] = true;
        else if (o->kind == MG_OPND_vec || o->kind == MG_OPND_list || o->kind == MG_OPND_tensor ||
                 o->kind == MG_OPND_pair)
            mark_uses(m, u, o->id, o->n);
    }
}

static bool keep_decl(const struct mg_module *m, const struct uses *u, const struct mg_decl *d)
{
    if (d->space == MG_SPACE_reg) return true;
    if (d->space != MG_SPACE_shared && d->space != MG_SPACE_local && d->space != MG_SPACE_param) return false;
    for (uint32_t i = 0; i < d->n; i++) {
        if (u->vars[d->first + i]) return true;
        mg_id def = m->vars.at[d->first + i].def;
        if (def && u->vars[def]) return true;
    }
    return false;
}

static bool is_called_name(const struct mg_module *m, const struct uses *u, mg_str name)
{
    for (mg_id f = 1; f < m->funcs.n; f++)
        if (u->funcs[f] && m->funcs.at[f].name == name) return true;
    return false;
}

static void prune(struct mg_twin_build *b)
{
    struct mg_module *m = b->m;
    struct uses u = {mg_xcalloc(m->vars.n, 1), mg_xcalloc(m->funcs.n, 1)};
    for (uint32_t i = 0; i < b->t->n_funcs; i++) MG_EACH_NODE(m, &m->funcs.at[b->t->funcs[i]], id)
        {
            const struct mg_node *n = &m->nodes.at[id];
            if (n->kind == MG_NODE_inst) mark_uses(m, &u, n->opnd, n->n_opnds);
            if (n->kind == MG_NODE_target)
                mark_uses(m, &u, m->targets.at[n->ref].first_opnd, m->targets.at[n->ref].n_opnds);
        }
    uint32_t n = 1;
    for (uint32_t i = 1; i < m->items.n; i++) {
        struct mg_item it = m->items.at[i];
        bool keep = true;
        if (it.kind == MG_ITEM_func) {
            mg_id body = mg_func_body(m, it.id);
            keep = body ? b->reached[body] : is_called_name(m, &u, m->funcs.at[it.id].name);
        } else if (it.kind == MG_ITEM_decl) {
            keep = keep_decl(m, &u, &m->decls.at[it.id]);
        } else if (it.kind == MG_ITEM_section) {
            keep = false; /* debug information speaks of the whole module */
        } else if (it.kind == MG_ITEM_alias) {
            mg_id body = mg_func_body(m, m->aliases.at[it.id].from);
            keep = body && b->reached[body];
        }
        if (keep) m->items.at[n++] = it;
    }
    m->items.n = n;
    for (uint32_t i = 1; i < m->locs.n; i++) { /* names of inlined functions stand in .debug_str */
        m->locs.at[i].function = 0;
        m->locs.at[i].has_inlined = 0;
    }
    free(u.vars);
    free(u.funcs);
}

/* A module without debug sections must not claim to be compiled for debugging. */
static void strip_debug_target(struct mg_module *m)
{
    char *copy = mg_xstrdup(mg_name(m, m->target)), *save = NULL;
    struct mg_buf b = MG_BUF_INIT;
    for (char *w = strtok_r(copy, ", \t", &save); w; w = strtok_r(NULL, ", \t", &save)) {
        if (!strcmp(w, "debug")) continue;
        if (b.n) mg_buf_adds(&b, ", ");
        mg_buf_adds(&b, w);
    }
    if (b.n) m->target = mg_intern_add(&m->names, b.at, b.n);
    m->debug = 0;
    mg_buf_release(&b);
    free(copy);
}

/* Functions whose address the select chains take may stand behind their user: declare them first. */
static void declare_taken(struct mg_twin_build *b)
{
    struct mg_module *m = b->m;
    uint32_t at = 1;
    while (at < m->items.n && m->items.at[at].kind != MG_ITEM_func) at++;
    for (uint32_t i = 0; i < b->graph->n_taken; i++) {
        mg_id f = b->graph->taken[i];
        if (!b->reached[f]) continue;
        mg_id id = m->funcs.n;
        struct mg_func decl = m->funcs.at[f];
        decl.defined = 0;
        decl.def = f;
        decl.decl_of = f;
        decl.first_node = decl.last_node = 0;
        decl.n_insts = 0;
        decl.n_directives = 0;
        *mg_vec_push(&m->funcs) = decl;
        (void)mg_vec_push(&m->items);
        memmove(&m->items.at[at + 1], &m->items.at[at], (m->items.n - 1 - at) * sizeof *m->items.at);
        m->items.at[at++] = (struct mg_item){.kind = MG_ITEM_func, .id = id};
    }
}

static mg_str choose_name(struct mg_module *m)
{
    char name[32] = "__mg_ctx";
    for (unsigned i = 1; mg_intern_find(&m->names, name, strlen(name)); i++)
        snprintf(name, sizeof name, "__mg_ctx%u", i);
    return mg_intern_adds(&m->names, name);
}

static void add_params(struct mg_twin_build *b)
{
    struct mg_module *m = b->m;
    b->ctx_name = choose_name(m);
    uint32_t n = m->funcs.n;
    for (mg_id f = 1; f < n; f++) {
        mg_id body = m->funcs.at[f].kind == MG_FUNC_proto ? 0 : mg_func_body(m, f);
        if (!body || !b->reached[body]) continue;
        mg_id v = mg_twin_add_param(b, f);
        if (f == b->t->kernel) b->t->ctx_param = v;
    }
}

static enum mg_err build(struct mg_twin_build *b)
{
    struct mg_module *m = b->m;
    struct mg_twin *t = b->t;
    if (m->address_size == 32) return mg_diag_err(b->d, MG_ERR_UNSUPPORTED, "32-bit addresses");
    const struct mg_func *k = &m->funcs.at[t->kernel];
    for (uint32_t i = 0; i < k->n_params; i++)
        if (m->vars.at[k->first_param + i].is_ptr && m->vars.at[k->first_param + i].ptr_space == MG_SPACE_const)
            return mg_diag_err(b->d, MG_ERR_UNSUPPORTED, "kernel parameter that points to the constant window");
    add_params(b);
    enum mg_err err = check_limits(b);
    for (uint32_t i = 0; i < t->n_funcs && !err; i++) err = rewrite_func(b, i);
    if (err) return err;
    prune(b);
    if (m->debug) strip_debug_target(m);
    declare_taken(b);
    return MG_ERR_OK;
}

void mg_twin_has_cells(struct mg_twin *t)
{
    if (!t->has_cells)
        MG_INSERT(t->m, t->kernel, t->entry_at[0], "cells", mg_o_addr_var(t->ctx_param, 0), MG_CTX_BYTES);
    t->has_cells = true;
}

bool mg_kernel_launches(const struct mg_module *m, mg_id kernel)
{
    struct mg_callgraph *g = mg_callgraph_new(m, kernel);
    struct uses u = {mg_xcalloc(m->vars.n, 1), mg_xcalloc(m->funcs.n, 1)};
    bool found = false;
    for (uint32_t i = 0; i < g->n_funcs; i++) MG_EACH_NODE(m, &m->funcs.at[g->funcs[i]], id)
        {
            const struct mg_node *n = &m->nodes.at[id];
            if (n->kind == MG_NODE_inst) mark_uses(m, &u, n->opnd, n->n_opnds);
        }
    for (mg_id f = 1; f < m->funcs.n && !found; f++)
        found = u.funcs[f] &&
                (m->funcs.at[f].kind == MG_FUNC_entry || mg_func_is_device_launch(mg_name(m, m->funcs.at[f].name)));
    mg_callgraph_free(g);
    free(u.vars);
    free(u.funcs);
    return found;
}

enum mg_err mg_twin_new(const struct mg_module *m, mg_id kernel, struct mg_twin **out, struct mg_diag *d)
{
    return mg_twin_new_as(m, kernel, 0, out, d);
}

enum mg_err mg_twin_new_as(const struct mg_module *m, mg_id kernel, unsigned flags, struct mg_twin **out,
                           struct mg_diag *d)
{
    struct mg_twin *t = mg_xcalloc(1, sizeof *t);
    struct mg_twin_build b = {.t = t, .d = d, .app = m, .graph = mg_callgraph_new(m, kernel), .flags = flags};
    *out = NULL;
    t->kernel = kernel;
    t->n_funcs = b.graph->n_funcs;
    t->funcs = mg_xcalloc(t->n_funcs, sizeof *t->funcs);
    memcpy(t->funcs, b.graph->funcs, t->n_funcs * sizeof *t->funcs);
    t->ctx_reg = mg_xcalloc(t->n_funcs, sizeof *t->ctx_reg);
    t->entry_at = mg_xcalloc(t->n_funcs, sizeof *t->entry_at);
    t->closing = mg_xcalloc(t->n_funcs, sizeof *t->closing);
    b.reached = mg_xcalloc(m->funcs.n, sizeof *b.reached);
    for (uint32_t i = 0; i < t->n_funcs; i++) b.reached[t->funcs[i]] = true;
    t->m = b.m = mg_module_clone_part(m, b.reached);
    mg_contract_keep(t->m);
    enum mg_err err = build(&b);
    t->symbols = b.symbols.at;
    t->n_symbols = b.symbols.n;
    t->native_calls = b.native_calls.at;
    t->native_guards = b.native_guards.at;
    t->n_native_calls = b.native_calls.n;
    t->known_regs = b.known_regs.at;
    t->n_known_regs = b.known_regs.n;
    t->known_loads = b.known_loads.at;
    t->n_known_loads = b.known_loads.n;
    mg_map_release(&b.symbol_of_var);
    mg_map_release(&b.symbol_of_func);
    mg_map_release(&b.proto_of);
    mg_callgraph_free(b.graph);
    free(b.reached);
    if (err)
        mg_twin_free(t);
    else
        *out = t;
    return err;
}

void mg_twin_free(struct mg_twin *t)
{
    if (!t) return;
    for (uint32_t i = 0; i < t->n_symbols; i++) free(t->symbols[i].name);
    free(t->symbols);
    free(t->known);
    free(t->known_regs);
    free(t->known_loads);
    free(t->funcs);
    free(t->ctx_reg);
    free(t->entry_at);
    free(t->closing);
    free(t->native_calls);
    free(t->native_guards);
    mg_module_free(t->m);
    free(t);
}
