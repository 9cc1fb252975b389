/* Inserting code: guards, linear ids, and what has to be known of calls and of the ways a body ends. */
#include "insert/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

mg_id mg_emit(struct mg_emit *x, const char *form, const struct mg_opnd *opnds, uint32_t n)
{
    mg_id id = mg_insert(x->m, x->func, x->at, form, opnds, n);
    x->m->nodes.at[id].guard = x->guard;
    if (x->guard_not) x->m->nodes.at[id].flags |= MG_NF_GUARD_NOT;
    return id;
}

mg_id mg_emit_reg(struct mg_emit *x, const char *name, enum mg_type type)
{
    return mg_module_add_reg(x->m, x->func, name, type);
}

void mg_emit_guard(struct mg_emit *x, mg_id guard, bool guard_not)
{
    x->guard = guard;
    x->guard_not = guard && guard_not;
}

void mg_emit_guard_by(struct mg_emit *x, mg_id guard, bool guard_not, mg_id p)
{
    mg_emit_guard(x, 0, false);
    if (!guard || !p) {
        mg_emit_guard(x, guard ? guard : p, guard_not);
        return;
    }
    if (!x->both) x->both = mg_emit_reg(x, "__mg_both", MG_TYPE_pred);
    if (guard_not) {
        EMIT("not.pred", x->both, guard);
        EMIT("and.pred", x->both, x->both, p);
    } else {
        EMIT("and.pred", x->both, guard, p);
    }
    x->guard = x->both;
}

mg_id mg_emit_linear(struct mg_emit *x, enum mg_sreg id, enum mg_sreg extent)
{
    mg_id a = mg_emit_reg(x, "__mg_a", MG_TYPE_b32), b = mg_emit_reg(x, "__mg_b", MG_TYPE_b32),
          c = mg_emit_reg(x, "__mg_x", MG_TYPE_b32);
    mg_id l = mg_emit_reg(x, "__mg_l", MG_TYPE_b64), w = mg_emit_reg(x, "__mg_v", MG_TYPE_b64);
    EMIT("mov.u32", a, mg_o_sreg(id, 3));
    EMIT("mov.u32", b, mg_o_sreg(extent, 2));
    EMIT("mov.u32", c, mg_o_sreg(id, 2));
    EMIT("mad.lo.u32", a, a, b, c);
    EMIT("mov.u32", b, mg_o_sreg(extent, 1));
    EMIT("mul.wide.u32", l, a, b);
    EMIT("mov.u32", c, mg_o_sreg(id, 1));
    EMIT("cvt.u64.u32", w, c);
    EMIT("add.u64", l, l, w);
    return l;
}

void mg_emit_count(struct mg_emit *x, uint64_t cell, struct mg_opnd n, bool per_warp)
{
    mg_twin_has_cells(x->t);
    EMIT(per_warp ? "count_warps" : "count_threads", (int64_t)cell, n);
}

mg_id mg_in_front_of(const struct mg_module *m, mg_id at)
{
    while (m->nodes.at[at].prev && m->nodes.at[m->nodes.at[at].prev].kind == MG_NODE_pragma) at = m->nodes.at[at].prev;
    return at;
}

mg_id mg_direct_callee(const struct mg_module *m, mg_id node)
{
    const struct mg_node *n = &m->nodes.at[node];
    if (n->kind != MG_NODE_inst || mg_node_form(m, n)->op != MG_OP_call) return 0;
    struct mg_call c;
    mg_call_read(m, node, &c);
    return c.func ? mg_func_body(m, c.func) : 0;
}

bool mg_callee_may_exit(const struct mg_module *m, const bool *may_exit, mg_id node)
{
    struct mg_call call;
    mg_call_read(m, node, &call);
    if (call.func) {
        mg_id body = mg_func_body(m, call.func);
        return body ? may_exit[body] : !mg_func_is_builtin(mg_name(m, m->funcs.at[call.func].name));
    }
    if (call.indirect) return may_exit[0]; /* any address-taken function */
    const struct mg_opnd *o = call.callee == MG_NO_OPND ? NULL : &m->opnds.at[m->nodes.at[node].opnd + call.callee];
    return !o || o->kind != MG_OPND_sym || !mg_func_is_builtin(mg_name(m, o->id));
}

bool *mg_funcs_may_exit(const struct mg_module *m, const struct mg_twin *t)
{
    bool *may = mg_xcalloc(m->funcs.n, sizeof *may);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < t->n_funcs; i++) {
            mg_id func = t->funcs[i];
            bool now = may[func];
            MG_EACH_NODE(m, &m->funcs.at[func], id)
            {
                const struct mg_node *n = &m->nodes.at[id];
                if (now) break;
                if (n->kind != MG_NODE_inst) continue;
                unsigned op = mg_node_form(m, n)->op;
                now = op == MG_OP_exit || (op == MG_OP_call && mg_callee_may_exit(m, may, id));
            }
            changed |= now != may[func];
            may[func] = now;
            if (now && i) may[0] = true;
        }
    }
    return may;
}

bool mg_body_falls_off(const struct mg_module *m, const struct mg_cfg *c)
{
    if (!c->n_blocks) return false;
    mg_id last = c->blocks[c->n_blocks - 1].last;
    const struct mg_node *n = &m->nodes.at[last];
    const struct mg_form *f = mg_node_form(m, n);
    if (!(f->op_flags & MG_OPF_ENDS_BLOCK) || n->guard || f->op == MG_OP_call) return true;
    for (mg_id id = n->next; id; id = m->nodes.at[id].next)
        if (m->nodes.at[id].kind == MG_NODE_label && !(m->nodes.at[id].flags & MG_NF_META) &&
            m->labels.at[m->nodes.at[id].ref].targeted)
            return true;
    return false;
}

bool mg_choose_mask(struct mg_module *m, bool *ballot)
{
    unsigned version = m->version_major * 10u + m->version_minor;
    *ballot = false;
    if (version >= 62 && m->sm >= 30) return true;
    if (version >= 20 && m->sm >= 20 && m->sm < 70) return *ballot = true;
    if (m->sm < 70) return false;
    m->version_major = 6; /* sm_70 came with 6.0, activemask with 6.2 */
    m->version_minor = 2;
    return true;
}

mg_id mg_body_close(struct mg_twin *t, uint32_t ix, const struct mg_cfg *c)
{
    if (t->closing[ix]) return t->closing[ix];
    if (!mg_body_falls_off(t->m, c)) return 0;
    return t->closing[ix] = mg_insert(t->m, t->funcs[ix], 0, "ret", NULL, 0);
}

void mg_raise_target(struct mg_module *m, uint32_t sm)
{
    if (sm >= 80 && m->sm >= 70 && m->sm < 80 && !m->sm_suffix) {
        const char *rest = strchr(mg_name(m, m->target), ',');
        char text[128];
        snprintf(text, sizeof text, "sm_80%.100s", rest ? rest : "");
        m->target = mg_intern_adds(&m->names, text);
        m->sm = 80;
    }
    unsigned need = m->sm >= 80 ? 70 : 62, version = m->version_major * 10u + m->version_minor;
    if (m->sm >= 70 && version < need) {
        m->version_major = (uint16_t)(need / 10);
        m->version_minor = (uint16_t)(need % 10);
    }
}
