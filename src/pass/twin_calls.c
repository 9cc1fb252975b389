/* Calls inside a twin.
 *
 * A function with a body is cloned with the hidden parameter, so a direct call of it passes the
 * context block on. A function without a body (vprintf, malloc, ...) is the device's: its calls
 * stay as they are.
 *
 * An indirect call sees the NATIVE address of its callee, because function pointers and vtables
 * are state of the app. A chain of selects translates it to the clone's, and since a native
 * function has no hidden parameter, two calls in a row make the call, one for either kind of
 * callee; a lane is in exactly one of them:
 *
 *     setp.eq.u64  k, v, native_0;                    per function that the prototype allows
 *     mov.u64      c, clone_0;
 *     selp.b64     t, c, t, k;  or.pred known, known, k;
 *     @known  call (ret), t, (args, ctx), proto_with_ctx;     stands for the app's call
 *     @!known call (ret), v, (args), proto;                   ours, of a function without a clone
 *
 * The second call splits a block of the twin in two. That is harmless: sites come from the
 * original module, counters are placed by the node they belong to, and the new block follows the
 * old one in every order. When a .calltargets list names all callees the second call is left out.
 */
#include <stdio.h>
#include <string.h>

#include "pass/priv.h"

/* The run [first, first + n) with one operand more behind it, copied to a fresh place. */
static mg_id longer_run(struct mg_module *m, mg_id first, uint32_t n, struct mg_opnd more)
{
    mg_id at = mg_opnd_alloc(m, n + 1);
    if (n) memcpy(&m->opnds.at[at], &m->opnds.at[first], n * sizeof(struct mg_opnd));
    m->opnds.at[at + n] = more;
    return at;
}

/* Appends a register to the call's argument list, making one when there is none. */
void mg_call_add_arg(struct mg_module *m, mg_id node, const struct mg_call *call, mg_id reg)
{
    struct mg_node *n = &m->nodes.at[node];
    if (call->args != MG_NO_OPND) {
        struct mg_opnd list = m->opnds.at[n->opnd + call->args];
        list.id = longer_run(m, list.id, list.n, mg_o_reg(reg));
        list.n++;
        m->opnds.at[m->nodes.at[node].opnd + call->args] = list;
        return;
    }
    /* [rets] callee [target]: the list comes right after the callee */
    struct mg_opnd list = {.kind = MG_OPND_list, .n = 1, .id = longer_run(m, 0, 0, mg_o_reg(reg))};
    mg_id at = longer_run(m, m->nodes.at[node].opnd, m->nodes.at[node].n_opnds, list);
    n = &m->nodes.at[node];
    uint32_t last = n->n_opnds++;
    n->opnd = at;
    for (uint32_t i = last; i > call->callee + 1; i--) m->opnds.at[at + i] = m->opnds.at[at + i - 1];
    m->opnds.at[at + call->callee + 1] = list;
}

mg_id mg_twin_add_param(struct mg_twin_build *b, mg_id func)
{
    mg_str name = b->m->funcs.at[func].kind == MG_FUNC_proto ? mg_intern_adds(&b->m->names, "_") : b->ctx_name;
    return mg_func_add_param(b->m, func, name, MG_TYPE_u64);
}

mg_id mg_func_add_param(struct mg_module *m, mg_id func, mg_str name, enum mg_type type)
{
    struct mg_func *f = &m->funcs.at[func];
    mg_id old = f->first_param, first = m->vars.n;
    uint32_t n = f->n_params;
    bool in_reg = f->kind != MG_FUNC_entry && m->version_major < 2;
    mg_vec_reserve(&m->vars, m->vars.n + n + 1);
    for (uint32_t i = 0; i < n; i++) {
        m->vars.at[first + i] = m->vars.at[old + i];
        in_reg |= f->kind != MG_FUNC_entry && m->vars.at[old + i].is_reg_param;
    }
    m->vars.at[first + n] =
        (struct mg_var){.name = name, .space = MG_SPACE_param, .type = (uint8_t)type, .func = func, .is_param = 1};
    m->vars.n += n + 1;
    struct mg_var *v = &m->vars.at[first + n];
    if (in_reg) {
        v->space = MG_SPACE_reg;
        v->is_reg_param = 1;
        v->reg = m->regs.n;
        *mg_vec_push(&m->regs) =
            (struct mg_reg){.name = name, .number = UINT32_MAX, .type = (uint8_t)type, .func = func};
    }
    f->first_param = first;
    f->n_params = n + 1;
    /* the body names parameters by id: follow the move */
    if (n) MG_EACH_NODE(m, f, id)
        {
            const struct mg_node *x = &m->nodes.at[id];
            if (x->kind != MG_NODE_inst) continue;
            for (uint32_t i = 0; i < x->n_opnds; i++) {
                struct mg_opnd *o = &m->opnds.at[x->opnd + i];
                bool names_var = o->kind == MG_OPND_var || (o->kind == MG_OPND_addr && o->sub == MG_OPND_var);
                struct mg_opnd *run = o;
                uint32_t n_run = 1;
                if (o->kind == MG_OPND_vec || o->kind == MG_OPND_list || o->kind == MG_OPND_tensor ||
                    o->kind == MG_OPND_pair) {
                    run = &m->opnds.at[o->id];
                    n_run = o->n;
                } else if (!names_var) {
                    continue;
                }
                for (uint32_t k = 0; k < n_run; k++) {
                    bool is_var =
                        run[k].kind == MG_OPND_var || (run[k].kind == MG_OPND_addr && run[k].sub == MG_OPND_var);
                    if (is_var && run[k].id >= old && run[k].id < old + n) run[k].id += first - old;
                }
            }
        }
    return first + n;
}

/* The prototype of an indirect call with the hidden parameter added, declared behind the app's. */
static mg_id proto_with_ctx(struct mg_twin_func *f, mg_id target)
{
    struct mg_module *m = f->b->m;
    uint64_t known;
    if (mg_map_get(&f->b->proto_of, target, &known)) return (mg_id)known;
    mg_id at = 0;
    MG_EACH_NODE(m, &m->funcs.at[f->func], id)
    if (m->nodes.at[id].kind == MG_NODE_target && m->nodes.at[id].ref == target) at = id;
    mg_assert(at);
    mg_id func = m->funcs.n;
    struct mg_func copy = m->funcs.at[m->targets.at[target].proto];
    *mg_vec_push(&m->funcs) = copy;
    mg_twin_add_param(f->b, func);
    char name[32];
    snprintf(name, sizeof name, "__mg_proto%u", (unsigned)func);
    struct mg_target t = {
        .kind = MG_TARGET_proto, .name = mg_intern_adds(&m->names, name), .func = f->func, .proto = func};
    mg_id added = m->targets.n;
    *mg_vec_push(&m->targets) = t;
    mg_node_insert_after(m, f->func, at, mg_node_new_kind(m, MG_NODE_target, added));
    mg_map_set(&f->b->proto_of, target, added);
    return added;
}

static struct mg_opnd guard_of(const struct mg_node *n)
{
    return (n->flags & MG_NF_GUARD_NOT) ? mg_o_not(n->guard) : mg_o_reg(n->guard);
}

static enum mg_err rewrite_indirect(struct mg_twin_func *f, mg_id node, const struct mg_call *call)
{
    struct mg_twin_build *b = f->b;
    struct mg_module *m = b->m;
    mg_id func = f->func, opnd = m->nodes.at[node].opnd;
    struct mg_opnd callee = m->opnds.at[opnd + call->callee];
    mg_id target = call->target == MG_NO_OPND ? 0 : m->opnds.at[opnd + call->target].id;
    if (!target) return mg_twin_refuse(f, node, "indirect call without a prototype", NULL);
    bool open = m->targets.at[target].kind == MG_TARGET_proto; /* other callees than clones are possible */
    mg_id t = mg_module_add_reg(m, func, "__mg_callee", MG_TYPE_b64);
    mg_id c = mg_module_add_reg(m, func, "__mg_clone", MG_TYPE_b64);
    mg_id k = mg_module_add_reg(m, func, "__mg_is", MG_TYPE_pred);
    mg_id known = mg_module_add_reg(m, func, "__mg_known", MG_TYPE_pred);
    MG_INSERT(m, func, node, "mov.u64", t, callee);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->graph->n_taken; i++) {
        mg_id cand = b->graph->taken[i];
        if (!mg_call_may_reach(b->app, target, cand)) continue;
        mg_id native = mg_twin_symbol_reg(f, mg_twin_symbol_of_func(b, cand));
        MG_INSERT(m, func, node, "setp.eq.u64", n ? k : known, callee, native);
        MG_INSERT(m, func, node, "mov.u64", c, mg_o_func(cand));
        MG_INSERT(m, func, node, "selp.b64", t, c, t, n ? k : known);
        if (n) MG_INSERT(m, func, node, "or.pred", known, known, k);
        n++;
    }
    if (!n) MG_INSERT(m, func, node, "setp.ne.u64", known, t, t);
    struct mg_node app = m->nodes.at[node];
    if (open) {
        mg_id other = mg_module_add_reg(m, func, "__mg_native", MG_TYPE_pred);
        MG_INSERT(m, func, node, "not.pred", other, known);
        if (app.guard) {
            MG_INSERT(m, func, node, "and.pred", other, other, guard_of(&app));
            MG_INSERT(m, func, node, "and.pred", known, known, guard_of(&app));
        }
        mg_id second = mg_node_new_kind(m, MG_NODE_inst, app.ref);
        struct mg_node *s = &m->nodes.at[second];
        s->guard = other;
        s->origin = node;
        s->n_opnds = app.n_opnds;
        mg_id copy = mg_opnd_alloc(m, app.n_opnds);
        memcpy(&m->opnds.at[copy], &m->opnds.at[app.opnd], app.n_opnds * sizeof(struct mg_opnd));
        m->nodes.at[second].opnd = copy;
        mg_node_insert_after(m, func, node, second);
        *mg_vec_push(&b->native_calls) = second;
        *mg_vec_push(&b->native_guards) = other;
        m->opnds.at[opnd + call->target].id = proto_with_ctx(f, target);
        m->nodes.at[node].guard = known;
        m->nodes.at[node].flags &= (uint8_t)~MG_NF_GUARD_NOT;
    }
    m->opnds.at[opnd + call->callee] = mg_o_reg(t);
    mg_call_add_arg(m, node, call, f->ctx);
    return MG_ERR_OK;
}

static enum mg_err rewrite_call(struct mg_twin_func *f, mg_id node)
{
    struct mg_module *m = f->b->m;
    struct mg_call call;
    mg_call_read(m, node, &call);
    if (call.indirect) return rewrite_indirect(f, node, &call);
    mg_id body = call.func ? mg_func_body(m, call.func) : 0;
    if (body && m->funcs.at[body].kind == MG_FUNC_entry)
        return mg_twin_refuse(f, node, "call of a kernel:", mg_name(m, m->funcs.at[body].name));
    if (body) {
        mg_call_add_arg(m, node, &call, f->ctx);
        return MG_ERR_OK;
    }
    const struct mg_opnd *o = call.callee == MG_NO_OPND ? NULL : &m->opnds.at[m->nodes.at[node].opnd + call.callee];
    const char *name = call.func                     ? mg_name(m, m->funcs.at[call.func].name)
                       : o && o->kind == MG_OPND_sym ? mg_name(m, o->id)
                                                     : "";
    if (mg_func_is_device_launch(name) && !(f->b->flags & MG_TWIN_LAUNCHES))
        return mg_twin_refuse(f, node, "device-side launch:", name);
    return MG_ERR_OK;
}

enum mg_err mg_twin_rewrite_calls(struct mg_twin_func *f)
{
    struct mg_module *m = f->b->m;
    mg_id next;
    for (mg_id id = m->funcs.at[f->func].first_node; id; id = next) {
        const struct mg_node *n = &m->nodes.at[id];
        next = n->next;
        if (n->kind != MG_NODE_inst || (n->flags & MG_NF_META) || mg_node_form(m, n)->op != MG_OP_call) continue;
        enum mg_err err = rewrite_call(f, id);
        if (err) return err;
    }
    return MG_ERR_OK;
}
