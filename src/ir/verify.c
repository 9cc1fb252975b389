/* What every pass must leave true. Run after each pass in debug builds and by the tests; it trusts
 * nothing, so a broken module gives a message and not a crash. */
#include "base/buf.h"
#include "ir/ir.h"

struct check {
    const struct mg_module *m;
    struct mg_diag *d;
    struct mg_arena scratch;
    uint8_t *reg_seen, *var_seen; /* declared in a scope that is open now */
    MG_VEC(mg_id) undo;           /* regs, and vars with the top bit set; 0 opens a scope */
    mg_id func, node;
    bool failed;
};
#define VAR_BIT 0x80000000u

static void fail(struct check *c, const char *what, mg_id id)
{
    const struct mg_module *m = c->m;
    uint32_t line = c->node && c->node < m->nodes.n ? m->nodes.at[c->node].line : 0;
    c->failed = true;
    (void)mg_diag_add(c->d, MG_ERR_STATE, MG_SEV_ERROR, m->file, line, 0, NULL, "%s (id %u, node %u, function %s)",
                      what, id, c->node, c->func ? mg_name(m, m->funcs.at[c->func].name) : "none");
}

static void check_reg(struct check *c, mg_id reg)
{
    const struct mg_module *m = c->m;
    if (!reg || reg >= m->regs.n) {
        fail(c, "register id out of range", reg);
    } else if (m->regs.at[reg].func && m->regs.at[reg].func != c->func) {
        fail(c, "register of another function", reg);
    } else if (m->regs.at[reg].func && m->regs.at[reg].decl && !c->reg_seen[reg]) {
        struct mg_buf text = MG_BUF_INIT;
        mg_reg_text(m, reg, &text);
        mg_buf_adds(&text, ": register used where its declaration is not in force");
        fail(c, text.at, reg);
        mg_buf_release(&text);
    }
}

static void check_var(struct check *c, mg_id var)
{
    const struct mg_module *m = c->m;
    if (!var || var >= m->vars.n) {
        fail(c, "variable id out of range", var);
        return;
    }
    const struct mg_var *v = &m->vars.at[var];
    if (v->func && v->func != c->func)
        fail(c, "variable of another function", var);
    else if (v->func && !v->is_param && !v->is_ret && !c->var_seen[var])
        fail(c, "variable used where its declaration is not in force", var);
}

static void check_opnds(struct check *c, mg_id first, uint32_t n, unsigned depth)
{
    const struct mg_module *m = c->m;
    if ((uint64_t)first + n > m->opnds.n || depth > 8) {
        fail(c, "operand run out of range", first);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_opnd *o = &m->opnds.at[first + i];
        switch ((enum mg_opnd_kind)o->kind) {
        case MG_OPND_reg:
        case MG_OPND_not:
        case MG_OPND_neg:
        case MG_OPND_sel:
            check_reg(c, o->id);
            break;
        case MG_OPND_sreg:
            if (!o->id || o->id >= MG_SREG_COUNT) fail(c, "special register out of range", o->id);
            break;
        case MG_OPND_var:
            check_var(c, o->id);
            break;
        case MG_OPND_func:
            if (!o->id || o->id >= m->funcs.n) fail(c, "function id out of range", o->id);
            break;
        case MG_OPND_label:
            if (!o->id || o->id >= m->labels.n || m->labels.at[o->id].func != c->func)
                fail(c, "label of another function", o->id);
            else if (!m->labels.at[o->id].node)
                fail(c, "label is named but placed nowhere", o->id);
            break;
        case MG_OPND_addr:
            if (o->sub == MG_OPND_reg)
                check_reg(c, o->id);
            else if (o->sub == MG_OPND_var)
                check_var(c, o->id);
            break;
        case MG_OPND_vec:
        case MG_OPND_list:
        case MG_OPND_tensor:
        case MG_OPND_pair:
            check_opnds(c, o->id, o->n, depth + 1);
            break;
        case MG_OPND_target:
            if (!o->id || o->id >= m->targets.n) fail(c, "target list out of range", o->id);
            break;
        case MG_OPND_none:
        case MG_OPND_KIND_COUNT:
            fail(c, "operand without a kind", first + i);
            break;
        default:
            break;
        }
    }
}

static void open_decl(struct check *c, mg_id decl)
{
    const struct mg_module *m = c->m;
    if (!decl || decl >= m->decls.n) {
        fail(c, "declaration id out of range", decl);
        return;
    }
    const struct mg_decl *d = &m->decls.at[decl];
    bool reg = d->space == MG_SPACE_reg;
    if ((uint64_t)d->first + d->n > (reg ? m->regs.n : m->vars.n)) {
        fail(c, "declaration run out of range", decl);
        return;
    }
    for (mg_id id = d->first; id < d->first + d->n; id++) {
        uint8_t *seen = reg ? &c->reg_seen[id] : &c->var_seen[id];
        if (*seen) fail(c, "declared twice", id);
        *seen = 1;
        *mg_vec_push(&c->undo) = reg ? id : id | VAR_BIT;
    }
}

static void close_scope(struct check *c)
{
    while (c->undo.n) {
        mg_id id = c->undo.at[--c->undo.n];
        if (!id) return;
        if (id & VAR_BIT)
            c->var_seen[id & ~VAR_BIT] = 0;
        else
            c->reg_seen[id] = 0;
    }
}

static void check_node(struct check *c, const struct mg_node *n, uint32_t *depth)
{
    const struct mg_module *m = c->m;
    switch ((enum mg_node_kind)n->kind) {
    case MG_NODE_inst:
        if (!n->ref || n->ref >= m->forms.n) fail(c, "form id out of range", n->ref);
        if (n->guard) {
            check_reg(c, n->guard);
            if (n->guard < m->regs.n && m->regs.at[n->guard].type != MG_TYPE_pred)
                fail(c, "guard is no predicate", n->guard);
        }
        check_opnds(c, n->opnd, n->n_opnds, 0);
        break;
    case MG_NODE_label:
        if (!n->ref || n->ref >= m->labels.n)
            fail(c, "label id out of range", n->ref);
        else if (m->labels.at[n->ref].node != c->node)
            fail(c, "label placed twice", n->ref);
        break;
    case MG_NODE_open:
        ++*depth;
        *mg_vec_push(&c->undo) = 0;
        break;
    case MG_NODE_close:
        if (!*depth)
            fail(c, "scope closed that was not opened", 0);
        else
            --*depth;
        close_scope(c);
        break;
    case MG_NODE_decl:
        open_decl(c, n->ref);
        break;
    case MG_NODE_loc:
        if (!n->ref || n->ref >= m->locs.n) fail(c, "loc id out of range", n->ref);
        break;
    case MG_NODE_target:
        if (!n->ref || n->ref >= m->targets.n)
            fail(c, "target list out of range", n->ref);
        else
            check_opnds(c, m->targets.at[n->ref].first_opnd, m->targets.at[n->ref].n_opnds, 0);
        break;
    case MG_NODE_pragma:
    case MG_NODE_raw:
        if (n->ref >= m->names.n) fail(c, "text id out of range", n->ref);
        break;
    default:
        fail(c, "node without a kind", c->node);
        break;
    }
}

static void check_body(struct check *c, mg_id func)
{
    const struct mg_module *m = c->m;
    const struct mg_func *f = &m->funcs.at[func];
    uint32_t depth = 0, steps = 0;
    mg_id prev = 0;
    c->func = func;
    for (mg_id id = f->first_node; id; prev = id, id = m->nodes.at[id].next) {
        c->node = id;
        if (id >= m->nodes.n || steps++ > m->nodes.n) {
            fail(c, "node list broken", id);
            break;
        }
        if (m->nodes.at[id].prev != prev) {
            fail(c, "node list broken", id);
            break;
        }
        check_node(c, &m->nodes.at[id], &depth);
    }
    if (depth) fail(c, "scope left open", 0);
    if (!c->failed && f->last_node != prev) fail(c, "last node is not last", f->last_node);
    while (c->undo.n) close_scope(c);
    c->func = c->node = 0;
}

enum mg_err mg_module_verify(const struct mg_module *m, struct mg_diag *d)
{
    struct check c = {.m = m, .d = d};
    c.reg_seen = mg_arena_zalloc(&c.scratch, m->regs.n + 1);
    c.var_seen = mg_arena_zalloc(&c.scratch, m->vars.n + 1);
    for (mg_id f = 1; f < m->funcs.n; f++) {
        const struct mg_func *fn = &m->funcs.at[f];
        if ((uint64_t)fn->first_param + fn->n_params > m->vars.n || (uint64_t)fn->first_ret + fn->n_rets > m->vars.n)
            fail(&c, "parameter run out of range", f);
        if (fn->first_node && !fn->defined) fail(&c, "declaration with a body", f);
        check_body(&c, f);
    }
    mg_arena_release(&c.scratch);
    mg_vec_release(&c.undo);
    return c.failed ? MG_ERR_STATE : MG_ERR_OK;
}
