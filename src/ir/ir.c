/* Making, freeing and reading a module. Adding to one is build.c's and edit.c's business. */
#include "ir/ir.h"

#include <string.h>

#include "base/buf.h"

#define PUSH_DUMMY(v) (memset(mg_vec_push(v), 0, sizeof *(v)->at))

struct mg_module *mg_module_new(void)
{
    struct mg_module *m = mg_xcalloc(1, sizeof *m);
    mg_intern_init(&m->names);
    PUSH_DUMMY(&m->items);
    PUSH_DUMMY(&m->funcs);
    PUSH_DUMMY(&m->vars);
    PUSH_DUMMY(&m->regs);
    PUSH_DUMMY(&m->groups);
    PUSH_DUMMY(&m->decls);
    PUSH_DUMMY(&m->labels);
    PUSH_DUMMY(&m->targets);
    PUSH_DUMMY(&m->nodes);
    PUSH_DUMMY(&m->opnds);
    PUSH_DUMMY(&m->inits);
    PUSH_DUMMY(&m->locs);
    PUSH_DUMMY(&m->files);
    PUSH_DUMMY(&m->sections);
    PUSH_DUMMY(&m->aliases);
    PUSH_DUMMY(&m->strs);
    PUSH_DUMMY(&m->directives);
    PUSH_DUMMY(&m->forms);
    return m;
}

void mg_module_free(struct mg_module *m)
{
    if (!m || __atomic_fetch_sub(&m->n_holds, 1, __ATOMIC_ACQ_REL) > 0) return;
    mg_vec_release(&m->items);
    mg_vec_release(&m->funcs);
    mg_vec_release(&m->vars);
    mg_vec_release(&m->regs);
    mg_vec_release(&m->groups);
    mg_vec_release(&m->decls);
    mg_vec_release(&m->labels);
    mg_vec_release(&m->targets);
    mg_vec_release(&m->nodes);
    mg_vec_release(&m->opnds);
    mg_vec_release(&m->inits);
    mg_vec_release(&m->locs);
    mg_vec_release(&m->files);
    mg_vec_release(&m->sections);
    mg_vec_release(&m->aliases);
    mg_vec_release(&m->strs);
    mg_vec_release(&m->directives);
    mg_vec_release(&m->forms);
    mg_map_release(&m->form_by_text);
    if (m->fused) mg_map_release(m->fused);
    free(m->fused);
    mg_intern_release(&m->names);
    mg_arena_release(&m->arena);
    free(m->file);
    free(m);
}

struct mg_module *mg_module_hold(const struct mg_module *m)
{
    struct mg_module *held = (struct mg_module *)(uintptr_t)m;
    __atomic_fetch_add(&held->n_holds, 1, __ATOMIC_RELAXED);
    return held;
}

mg_id mg_module_find_func(const struct mg_module *m, const char *name)
{
    mg_str s = mg_intern_find(&m->names, name, strlen(name));
    if (!s) return 0;
    for (mg_id f = 1; f < m->funcs.n; f++)
        if (m->funcs.at[f].name == s && m->funcs.at[f].kind != MG_FUNC_proto)
            return m->funcs.at[f].def ? m->funcs.at[f].def : f;
    return 0;
}

mg_id mg_module_find_var(const struct mg_module *m, const char *name)
{
    mg_str s = mg_intern_find(&m->names, name, strlen(name));
    if (!s) return 0;
    for (mg_id v = 1; v < m->vars.n; v++)
        if (m->vars.at[v].name == s && !m->vars.at[v].func && !m->vars.at[v].is_param)
            return m->vars.at[v].def ? m->vars.at[v].def : v;
    return 0;
}

void mg_func_regs(const struct mg_module *m, mg_id func, mg_id *lo, mg_id *hi)
{
    *lo = UINT32_MAX, *hi = 0;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_decl || m->decls.at[n->ref].space != MG_SPACE_reg) continue;
        *lo = MG_MIN(*lo, m->decls.at[n->ref].first);
        *hi = MG_MAX(*hi, m->decls.at[n->ref].first + m->decls.at[n->ref].n);
    }
    *lo = MG_MIN(*lo, *hi);
}

const char *mg_module_path(const struct mg_module *m, uint32_t index)
{
    for (uint32_t i = 1; i < m->files.n; i++)
        if (m->files.at[i].index == index) return mg_name(m, m->files.at[i].path);
    return NULL;
}

void mg_reg_text(const struct mg_module *m, mg_id reg, struct mg_buf *out)
{
    const struct mg_reg *r = &m->regs.at[reg];
    mg_buf_add(out, mg_name(m, r->name), mg_intern_len(&m->names, r->name));
    if (r->number != UINT32_MAX) mg_buf_addu(out, r->number);
}

/* ---- layout -------------------------------------------------------------------------------- */

static uint64_t elem_bytes(const struct mg_var *v)
{
    uint64_t bytes = (mg_type_bits((enum mg_type)v->type) + 7) / 8;
    return v->vec ? bytes * v->vec : bytes;
}

uint64_t mg_var_bytes(const struct mg_var *v)
{
    uint64_t bytes = elem_bytes(v);
    for (uint32_t i = 0; i < v->n_dims; i++)
        if (__builtin_mul_overflow(bytes, v->dims[i], &bytes)) return UINT64_MAX;
    return bytes;
}

uint32_t mg_var_align(const struct mg_var *v)
{
    uint64_t natural = elem_bytes(v);
    if (v->align) return v->align;
    return natural ? (uint32_t)natural : 1;
}

uint64_t mg_func_param_offset(const struct mg_func *f, const struct mg_var *vars, uint32_t ix)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i <= ix && i < f->n_params; i++) {
        const struct mg_var *v = &vars[f->first_param + i];
        uint64_t align = mg_var_align(v);
        at = (at + align - 1) / align * align;
        if (i < ix) at += mg_var_bytes(v);
    }
    return at;
}

/* ---- what an instruction reads and writes ---------------------------------------------------- */

struct id_sink {
    mg_id *ids;
    uint32_t n, cap;
};

static void note(struct id_sink *s, mg_id reg)
{
    if (!reg) return;
    if (s->n < s->cap) s->ids[s->n] = reg;
    s->n++;
}

static void note_all(const struct mg_module *m, const struct mg_opnd *o, struct id_sink *s)
{
    switch ((enum mg_opnd_kind)o->kind) {
    case MG_OPND_reg:
    case MG_OPND_not:
    case MG_OPND_neg:
    case MG_OPND_sel:
        note(s, o->id);
        break;
    case MG_OPND_addr:
        if (o->sub == MG_OPND_reg) note(s, o->id);
        break;
    case MG_OPND_vec:
    case MG_OPND_list:
    case MG_OPND_tensor:
    case MG_OPND_pair:
        for (uint32_t i = 0; i < o->n; i++) note_all(m, &m->opnds.at[o->id + i], s);
        break;
    default:
        break;
    }
}

/* Registers of a destination: not those that only form an address. */
static void note_dst(const struct mg_module *m, const struct mg_opnd *o, bool parts_only, struct id_sink *s)
{
    switch ((enum mg_opnd_kind)o->kind) {
    case MG_OPND_reg:
        if (!parts_only || o->sub) note(s, o->id);
        break;
    case MG_OPND_sel:
        if (!parts_only) note(s, o->id);
        break;
    case MG_OPND_vec:
    case MG_OPND_list:
    case MG_OPND_pair:
        for (uint32_t i = 0; i < o->n; i++) note_dst(m, &m->opnds.at[o->id + i], parts_only, s);
        break;
    default:
        break;
    }
}

/* Index 0 is a destination, or nothing is. */
static bool has_dst(const struct mg_module *m, const struct mg_node *n)
{
    if (n->kind != MG_NODE_inst || !n->n_opnds) return false;
    const struct mg_form *f = mg_node_form(m, n);
    const struct mg_opnd *o = &m->opnds.at[n->opnd];
    if (f->op == MG_OP_call) return o->kind == MG_OPND_list;
    if (f->op_flags & MG_OPF_NO_DST) return false;
    return o->kind == MG_OPND_reg || o->kind == MG_OPND_vec || o->kind == MG_OPND_pair || o->kind == MG_OPND_sel;
}

static bool reads_its_dst(const struct mg_form *f)
{
    return !f->op || (f->op == MG_OP_wgmma && mg_form_has(f, MG_MOD_mma_async));
}

uint32_t mg_node_uses(const struct mg_module *m, mg_id node, mg_id *ids, uint32_t cap)
{
    const struct mg_node *n = &m->nodes.at[node];
    struct id_sink s = {ids, 0, cap};
    if (n->kind != MG_NODE_inst) return 0;
    note(&s, n->guard);
    bool dst = has_dst(m, n), all = dst && reads_its_dst(mg_node_form(m, n));
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
        if (i == 0 && dst && !all)
            note_dst(m, o, true, &s);
        else
            note_all(m, o, &s);
    }
    return s.n;
}

uint32_t mg_node_defs(const struct mg_module *m, mg_id node, mg_id *ids, uint32_t cap)
{
    const struct mg_node *n = &m->nodes.at[node];
    struct id_sink s = {ids, 0, cap};
    if (has_dst(m, n)) note_dst(m, &m->opnds.at[n->opnd], false, &s);
    return s.n;
}

static void rename_opnd(struct mg_module *m, mg_id at, bool is_dst, const struct mg_reg_renamer *r)
{
    struct mg_opnd o = m->opnds.at[at];
    switch ((enum mg_opnd_kind)o.kind) {
    case MG_OPND_reg:
    case MG_OPND_not:
    case MG_OPND_neg:
    case MG_OPND_sel:
        o.id = is_dst ? r->def(o.id, r->user) : r->use(o.id, r->user);
        break;
    case MG_OPND_addr:
        if (o.sub == MG_OPND_reg) o.id = r->use(o.id, r->user);
        break;
    case MG_OPND_vec:
    case MG_OPND_list:
    case MG_OPND_tensor:
    case MG_OPND_pair:
        for (uint32_t i = 0; i < o.n; i++) rename_opnd(m, o.id + i, is_dst, r);
        return;
    default:
        return;
    }
    m->opnds.at[at].id = o.id;
}

void mg_node_rename(struct mg_module *m, mg_id node, const struct mg_reg_renamer *r)
{
    const struct mg_node n = m->nodes.at[node];
    if (n.kind != MG_NODE_inst) return;
    bool dst = has_dst(m, &n);
    if (n.guard) m->nodes.at[node].guard = r->use(n.guard, r->user);
    for (uint32_t i = 0; i < n.n_opnds; i++) rename_opnd(m, n.opnd + i, i == 0 && dst, r);
}
