/* Which functions a kernel reaches, directly and through function pointers. */
#include "analysis/callgraph.h"

#include <stdlib.h>
#include <string.h>

void mg_call_read(const struct mg_module *m, mg_id node, struct mg_call *out)
{
    const struct mg_node *n = &m->nodes.at[node];
    *out = (struct mg_call){MG_NO_OPND, MG_NO_OPND, MG_NO_OPND, MG_NO_OPND, 0, false};
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
        if (o->kind == MG_OPND_list) {
            if (out->callee == MG_NO_OPND)
                out->rets = i;
            else
                out->args = i;
        } else if (out->callee == MG_NO_OPND) {
            out->callee = i;
            if (o->kind == MG_OPND_func)
                out->func = o->id;
            else
                out->indirect = o->kind == MG_OPND_reg;
        } else {
            out->target = i;
        }
    }
}

mg_id mg_func_body(const struct mg_module *m, mg_id func)
{
    for (unsigned hops = 0; func && hops < 16; hops++) {
        const struct mg_func *f = &m->funcs.at[func];
        if (f->defined) return func;
        if (f->def && f->def != func) {
            func = f->def;
            continue;
        }
        mg_id to = 0;
        for (uint32_t i = 0; i < m->aliases.n && !to; i++) {
            mg_id from = m->aliases.at[i].from;
            if (from && (from == func || m->funcs.at[from].name == f->name)) to = m->aliases.at[i].to;
        }
        func = to;
    }
    return 0;
}

static bool same_shape(const struct mg_module *m, const struct mg_func *a, const struct mg_func *b)
{
    if (a->n_params != b->n_params || a->n_rets != b->n_rets) return false;
    for (uint32_t i = 0; i < a->n_params; i++)
        if (mg_var_bytes(&m->vars.at[a->first_param + i]) != mg_var_bytes(&m->vars.at[b->first_param + i]))
            return false;
    for (uint32_t i = 0; i < a->n_rets; i++)
        if (mg_var_bytes(&m->vars.at[a->first_ret + i]) != mg_var_bytes(&m->vars.at[b->first_ret + i])) return false;
    return true;
}

bool mg_call_may_reach(const struct mg_module *m, mg_id target, mg_id func)
{
    if (m->funcs.at[func].kind != MG_FUNC_func) return false;
    if (!target) return true;
    const struct mg_target *t = &m->targets.at[target];
    if (t->kind == MG_TARGET_proto) return !t->proto || same_shape(m, &m->funcs.at[t->proto], &m->funcs.at[func]);
    for (uint32_t i = 0; i < t->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[t->first_opnd + i];
        if (o->kind == MG_OPND_func && mg_func_body(m, o->id) == func) return true;
    }
    return false;
}

bool mg_func_is_builtin(const char *name)
{
    static const char *const names[] = {"vprintf", "malloc", "free", "__assertfail", "__assert_fail"};
    for (unsigned i = 0; i < MG_COUNT_OF(names); i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

bool mg_func_is_device_launch(const char *name)
{
    return !strncmp(name, "cudaLaunchDevice", 16) || !strncmp(name, "cudaGetParameterBuffer", 22) ||
           !strncmp(name, "__cudaCDP2LaunchDevice", 22) || !strncmp(name, "__cudaCDP2GetParameterBuffer", 28) ||
           !strncmp(name, "cudaCGGetIntrinsicHandle", 24) || !strncmp(name, "cudaGraphLaunch", 15);
}

/* Of an indirect call: its target list or prototype; 0: none given. */
static mg_id target_of(const struct mg_module *m, mg_id node, const struct mg_call *call)
{
    const struct mg_opnd *t = call->target == MG_NO_OPND ? NULL : &m->opnds.at[m->nodes.at[node].opnd + call->target];
    return t && t->kind == MG_OPND_target ? t->id : 0;
}

bool mg_call_enters(const struct mg_module *m, mg_id node, mg_id func, const bool *taken)
{
    struct mg_call call;
    mg_call_read(m, node, &call);
    if (!call.indirect) return call.func && mg_func_body(m, call.func) == func;
    return (!taken || taken[func]) && mg_call_may_reach(m, target_of(m, node, &call), func);
}

/* ---- address-taken functions ----------------------------------------------------------------- */

static void mark_taken(const struct mg_module *m, bool *taken, mg_id func)
{
    mg_id body = mg_func_body(m, func);
    if (body && m->funcs.at[body].kind == MG_FUNC_func) taken[body] = true;
}

static void take_in_node(const struct mg_module *m, bool *taken, const struct mg_node *n)
{
    bool call = n->kind == MG_NODE_inst && m->forms.at[n->ref].op == MG_OP_call;
    if (n->kind == MG_NODE_target && m->targets.at[n->ref].kind == MG_TARGET_call) {
        const struct mg_target *t = &m->targets.at[n->ref];
        for (uint32_t i = 0; i < t->n_opnds; i++)
            if (m->opnds.at[t->first_opnd + i].kind == MG_OPND_func)
                mark_taken(m, taken, m->opnds.at[t->first_opnd + i].id);
    }
    if (n->kind != MG_NODE_inst || call) return;
    for (uint32_t i = 0; i < n->n_opnds; i++)
        if (m->opnds.at[n->opnd + i].kind == MG_OPND_func) mark_taken(m, taken, m->opnds.at[n->opnd + i].id);
}

bool *mg_funcs_taken(const struct mg_module *m)
{
    bool *taken = mg_xcalloc(m->funcs.n, sizeof *taken);
    for (mg_id f = 1; f < m->funcs.n; f++)
        MG_EACH_NODE(m, &m->funcs.at[f], id) take_in_node(m, taken, &m->nodes.at[id]);
    for (uint32_t i = 0; i < m->inits.n; i++) {
        const struct mg_init *x = &m->inits.at[i];
        if (x->is_func && (x->kind == MG_INIT_sym || x->kind == MG_INIT_generic || x->kind == MG_INIT_mask))
            mark_taken(m, taken, x->id);
    }
    return taken;
}

/* ---- reachability ---------------------------------------------------------------------------- */

struct walk {
    const struct mg_module *m;
    struct mg_callgraph *g;
    uint8_t *state; /* by func: 0 new, 1 on the path, 2 done */
    bool *taken;    /* NULL until an indirect call is met */
};

static void list_taken(struct walk *w)
{
    w->taken = mg_funcs_taken(w->m);
    uint32_t n = 0;
    for (mg_id f = 1; f < w->m->funcs.n; f++) n += w->taken[f];
    w->g->taken = mg_xcalloc(n + 1, sizeof *w->g->taken);
    for (mg_id f = 1; f < w->m->funcs.n; f++)
        if (w->taken[f]) w->g->taken[w->g->n_taken++] = f;
}

static void visit_func(struct walk *w, mg_id func);

static void visit_callee(struct walk *w, mg_id func)
{
    if (w->state[func] == 1)
        w->g->has_recursion = true;
    else if (!w->state[func])
        visit_func(w, func);
}

/* Depth-first over calls. Depth is the depth of the call tree, which programs keep small. */
static void visit_func(struct walk *w, mg_id func)
{
    const struct mg_module *m = w->m;
    w->state[func] = 1;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_inst || m->forms.at[n->ref].op != MG_OP_call) continue;
        struct mg_call call;
        mg_call_read(m, id, &call);
        if (call.func) {
            mg_id body = mg_func_body(m, call.func);
            if (body) visit_callee(w, body);
        }
        if (!call.indirect) continue;
        w->g->has_indirect = true;
        if (!w->taken) list_taken(w);
        mg_id target = target_of(m, id, &call);
        for (uint32_t i = 0; i < w->g->n_taken; i++)
            if (mg_call_may_reach(m, target, w->g->taken[i])) visit_callee(w, w->g->taken[i]);
    }
    w->state[func] = 2;
}

struct mg_callgraph *mg_callgraph_new(const struct mg_module *m, mg_id entry)
{
    struct mg_callgraph *g = mg_xcalloc(1, sizeof *g);
    struct walk w = {.m = m, .g = g, .state = mg_xcalloc(m->funcs.n, 1)};
    visit_func(&w, entry);
    g->funcs = mg_xcalloc(m->funcs.n, sizeof *g->funcs);
    g->funcs[g->n_funcs++] = entry;
    for (mg_id f = 1; f < m->funcs.n; f++)
        if (w.state[f] && f != entry) g->funcs[g->n_funcs++] = f;
    free(w.state);
    free(w.taken);
    return g;
}

void mg_callgraph_free(struct mg_callgraph *g)
{
    if (!g) return;
    free(g->funcs);
    free(g->taken);
    free(g);
}
