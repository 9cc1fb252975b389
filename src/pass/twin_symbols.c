/* State exists once: inside a twin every module-scope variable and every function address is read
 * from the symbol table of the launch's context block, so that twin and app share one instance and
 * no address stands in the text.
 *
 *     mov.u64 d, v+4       ->   mov.u64 d, s4           at entry:  ld.global.u64 s,  [table + 8*i]
 *     ld.global.f32 d,[v]  ->   ld.global.f32 d, [s]               add.s64       s4, s, 4
 *
 * Constant memory has no window of its own here: the table gives the global address of a .const
 * variable, so ld.const becomes ld.global.nc and cvta.const becomes cvta.global, whatever the
 * address comes from. Module-scope .shared and .local variables are not state: the twin keeps its
 * own declaration of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "pass/priv.h"

static uint32_t add_symbol(struct mg_twin_build *b, struct mg_map *map, uint64_t key, const char *name, bool is_func)
{
    uint64_t ix;
    if (mg_map_get(map, key, &ix)) return (uint32_t)ix;
    mg_map_set(map, key, b->symbols.n);
    *mg_vec_push(&b->symbols) = (struct mg_twin_symbol){mg_xstrdup(name), is_func};
    return b->symbols.n - 1;
}

uint32_t mg_twin_symbol_of_var(struct mg_twin_build *b, mg_id var)
{
    return add_symbol(b, &b->symbol_of_var, var, mg_name(b->m, b->m->vars.at[var].name), false);
}

uint32_t mg_twin_symbol_of_func(struct mg_twin_build *b, mg_id func)
{
    return add_symbol(b, &b->symbol_of_func, func, mg_name(b->m, b->m->funcs.at[func].name), true);
}

static mg_id entry_at(const struct mg_twin_func *f)
{
    return f->b->t->entry_at[f->ix];
}

/* In the kernel, a variable whose address the launch brings along; UINT32_MAX: none. */
static uint32_t known_table(const struct mg_twin_func *f, uint32_t symbol)
{
    for (uint32_t k = 0; !f->ix && k < f->b->t->n_known; k++)
        if (f->b->t->known[k].symbol == symbol) return k;
    return UINT32_MAX;
}

static mg_id symbol_reg(struct mg_twin_func *f, uint32_t symbol, int64_t off)
{
    struct mg_module *m = f->b->m;
    uint64_t key = (uint64_t)symbol << 40 ^ ((uint64_t)off & 0xffffffffffu), known;
    if (mg_map_get(&f->reg_of_symbol, key, &known)) return (mg_id)known;
    mg_id r = mg_module_add_reg(m, f->func, "__mg_s", MG_TYPE_b64);
    uint32_t table = known_table(f, symbol);
    if (table != UINT32_MAX) *mg_vec_push(&f->b->known_regs) = (struct mg_twin_known_reg){r, table, off};
    if (off) {
        mg_id base = symbol_reg(f, symbol, 0);
        MG_INSERT(m, f->func, entry_at(f), "add.s64", r, base, mg_o_imm(off));
    } else if (table != UINT32_MAX) {
        MG_INSERT(m, f->func, entry_at(f), "ld.param.u64", r,
                  mg_o_addr_var(f->b->t->known_param, 8 * (int64_t)(table + 1)));
    } else {
        if (!f->table) {
            f->table = mg_module_add_reg(m, f->func, "__mg_table", MG_TYPE_b64);
            MG_INSERT(m, f->func, entry_at(f), "ld.global.u64", f->table, mg_o_addr_reg(f->ctx, MG_CTX_SYMBOLS));
        }
        MG_INSERT(m, f->func, entry_at(f), "ld.global.u64", r, mg_o_addr_reg(f->table, 8 * (int64_t)symbol));
    }
    mg_map_set(&f->reg_of_symbol, key, r);
    return r;
}

/* A texture or surface reference: the handle that is bound to it, which its variable holds. */
static mg_id reference_reg(struct mg_twin_func *f, uint32_t symbol)
{
    struct mg_module *m = f->b->m;
    uint64_t key = (uint64_t)symbol << 40 ^ 1ull << 39, known;
    if (mg_map_get(&f->reg_of_symbol, key, &known)) return (mg_id)known;
    mg_id at = symbol_reg(f, symbol, 0), r = mg_module_add_reg(m, f->func, "__mg_s", MG_TYPE_b64);
    MG_INSERT(m, f->func, entry_at(f), "ld.global.u64", r, mg_o_addr_reg(at, 0));
    mg_map_set(&f->reg_of_symbol, key, r);
    return r;
}

mg_id mg_twin_symbol_reg(struct mg_twin_func *f, uint32_t symbol)
{
    return symbol_reg(f, symbol, 0);
}

enum mg_err mg_twin_refuse(struct mg_twin_func *f, mg_id node, const char *why, const char *name)
{
    struct mg_module *m = f->b->m;
    return mg_diag_add(f->b->d, MG_ERR_UNSUPPORTED, MG_SEV_ERROR, m->file, m->nodes.at[node].line, 0, NULL, "%s%s%s",
                       why, name ? " " : "", name ? name : "");
}

static bool is_reference(const struct mg_var *v)
{
    return mg_type_kind((enum mg_type)v->type) == MG_TK_OPAQUE || v->space == MG_SPACE_tex;
}

/* The variable whose one instance lives in the app's image, or 0. */
static enum mg_err find_state(struct mg_twin_func *f, mg_id node, mg_id var, mg_id *state)
{
    const struct mg_module *m = f->b->m;
    const struct mg_var *v = &m->vars.at[var];
    *state = 0;
    if (v->is_param || v->is_ret) return MG_ERR_OK;
    if (v->type == MG_TYPE_samplerref) return mg_twin_refuse(f, node, "sampler reference", mg_name(m, v->name));
    if (!is_reference(v) && v->space != MG_SPACE_global && v->space != MG_SPACE_const) return MG_ERR_OK;
    if (v->func)
        return mg_twin_refuse(f, node, "variable of static storage declared inside a function:", mg_name(m, v->name));
    if (v->count) return mg_twin_refuse(f, node, "parameterised variable set", mg_name(m, v->name));
    *state = v->def ? v->def : var;
    return MG_ERR_OK;
}

static enum mg_err fix_run(struct mg_twin_func *f, mg_id node, mg_id first, uint32_t n);

static enum mg_err fix_operand(struct mg_twin_func *f, mg_id node, mg_id at)
{
    struct mg_module *m = f->b->m;
    struct mg_opnd o = m->opnds.at[at];
    switch (o.kind) {
    case MG_OPND_vec:
    case MG_OPND_list:
    case MG_OPND_tensor:
    case MG_OPND_pair:
        return fix_run(f, node, o.id, o.n);
    case MG_OPND_func: {
        mg_id body = mg_func_body(m, o.id);
        if (m->funcs.at[body ? body : o.id].kind == MG_FUNC_entry && !(f->b->flags & MG_TWIN_LAUNCHES))
            return mg_twin_refuse(f, node, "address of a kernel:", mg_name(m, m->funcs.at[o.id].name));
        mg_id r = symbol_reg(f, mg_twin_symbol_of_func(f->b, body ? body : o.id), 0);
        m->opnds.at[at] = mg_o_reg(r);
        return MG_ERR_OK;
    }
    case MG_OPND_var: {
        mg_id v;
        enum mg_err err = find_state(f, node, o.id, &v);
        if (err || !v) return err;
        uint32_t symbol = mg_twin_symbol_of_var(f->b, v);
        mg_id r = is_reference(&m->vars.at[v]) ? reference_reg(f, symbol) : symbol_reg(f, symbol, (int64_t)o.val);
        m->opnds.at[at] = mg_o_reg(r);
        return MG_ERR_OK;
    }
    case MG_OPND_addr: {
        mg_id v;
        if (o.sub != MG_OPND_var) return MG_ERR_OK;
        enum mg_err err = find_state(f, node, o.id, &v);
        if (err || !v) return err;
        uint32_t symbol = mg_twin_symbol_of_var(f->b, v);
        mg_id r = is_reference(&m->vars.at[v]) ? reference_reg(f, symbol) : symbol_reg(f, symbol, 0);
        m->opnds.at[at] = mg_o_addr_reg(r, (int64_t)o.val);
        return MG_ERR_OK;
    }
    default:
        return MG_ERR_OK;
    }
}

static enum mg_err fix_run(struct mg_twin_func *f, mg_id node, mg_id first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        enum mg_err err = fix_operand(f, node, first + i);
        if (err) return err;
    }
    return MG_ERR_OK;
}

/* Gives the node the form whose text has ".const" (and a bank behind it) replaced by `with`. */
static void replace_const(struct mg_module *m, mg_id node, const char *with)
{
    const char *text = mg_name(m, m->forms.at[m->nodes.at[node].ref].text);
    const char *at = strstr(text, ".const");
    if (!at) return;
    const char *rest = at + 6;
    if (*rest == '[') rest = strchr(rest, ']') ? strchr(rest, ']') + 1 : rest;
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_add(&b, text, (size_t)(at - text));
    mg_buf_adds(&b, with);
    mg_buf_adds(&b, rest);
    mg_id form = mg_form_intern(m, b.at, b.n);
    m->nodes.at[node].ref = form;
    mg_buf_release(&b);
}

static enum mg_err fix_const_space(struct mg_twin_func *f, mg_id node)
{
    struct mg_module *m = f->b->m;
    const struct mg_form *form = mg_node_form(m, &m->nodes.at[node]);
    if (!mg_form_has(form, MG_MOD_const)) return MG_ERR_OK;
    bool has_nc = m->sm >= 35 && (m->version_major > 3 || (m->version_major == 3 && m->version_minor >= 1));
    switch (form->op) {
    case MG_OP_ld:
        if (!f->ix && f->b->t->known_bytes) *mg_vec_push(&f->b->known_loads) = node;
        replace_const(m, node, has_nc ? ".global.nc" : ".global");
        return MG_ERR_OK;
    case MG_OP_cvta:
    case MG_OP_prefetch:
        replace_const(m, node, ".global");
        return MG_ERR_OK;
    default:
        return mg_twin_refuse(f, node, "constant window asked for by", mg_name(m, form->text));
    }
}

enum mg_err mg_twin_rewrite_symbols(struct mg_twin_func *f)
{
    struct mg_module *m = f->b->m;
    mg_id next;
    for (mg_id id = m->funcs.at[f->func].first_node; id; id = next) {
        struct mg_node n = m->nodes.at[id];
        next = n.next;
        if (n.kind != MG_NODE_inst || (n.flags & MG_NF_META)) continue;
        struct mg_call call = {.callee = MG_NO_OPND};
        if (mg_node_form(m, &n)->op == MG_OP_call) mg_call_read(m, id, &call);
        for (uint32_t i = 0; i < n.n_opnds; i++) {
            if (i == call.callee) continue;
            enum mg_err err = fix_operand(f, id, n.opnd + i);
            if (err) return err;
        }
        enum mg_err err = fix_const_space(f, id);
        if (err) return err;
    }
    return MG_ERR_OK;
}
