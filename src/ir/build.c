/* Adding forms, registers, labels and operands to a module. Names are made unique over the whole
 * module, so that no scope, however nested, can take one for its own. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "ir/ir.h"

mg_id mg_form_intern(struct mg_module *m, const char *text, size_t len)
{
    mg_str s = mg_intern_add(&m->names, text, len);
    uint64_t known;
    if (mg_map_get(&m->form_by_text, s, &known)) return (mg_id)known;
    mg_id id = m->forms.n;
    struct mg_form *f = mg_vec_push(&m->forms);
    f->text = s;
    mg_form_parse(f, text, len);
    m->n_unknown_forms += f->unknown;
    mg_map_set(&m->form_by_text, s, id);
    return id;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Would a declaration of s (or of s0, s1, ... for a set) hide or clash with a name in use? */
static bool is_taken(const struct mg_module *m, const char *s, size_t len, bool set)
{
    if (mg_intern_find(&m->names, s, len)) return true;
    for (size_t stem = len; stem && is_digit(s[stem - 1]); stem--)
        if (mg_intern_find(&m->names, s, stem - 1)) return true;
    if (!set) return false;
    for (mg_str id = 1; id < m->names.n; id++) {
        const struct mg_intern_entry *e = &m->names.entries[id];
        if (e->len < len || memcmp(e->s, s, len)) continue;
        size_t at = len;
        while (at < e->len && is_digit(e->s[at])) at++;
        if (at == e->len) return true;
    }
    return false;
}

static mg_str unique_name(struct mg_module *m, const char *base, bool set, uint32_t salt)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_adds(&b, base);
    if (set && b.n && is_digit(b.at[b.n - 1])) mg_buf_addc(&b, '_');
    for (; is_taken(m, b.at, b.n, set); salt++) {
        mg_buf_reset(&b);
        mg_buf_printf(&b, "%s_%u_", base, salt);
    }
    mg_str s = mg_intern_add(&m->names, b.at, b.n);
    mg_buf_release(&b);
    return s;
}

void mg_module_add_item(struct mg_module *m, struct mg_item item)
{
    uint32_t at = 1;
    while (at < m->items.n && m->items.at[at].kind != MG_ITEM_func) at++;
    (void)mg_vec_push(&m->items);
    memmove(&m->items.at[at + 1], &m->items.at[at], (m->items.n - 1 - at) * sizeof item);
    m->items.at[at] = item;
}

static mg_id add_regs(struct mg_module *m, mg_id func, mg_str name, enum mg_type type, uint32_t count)
{
    mg_id decl = m->decls.n, first = m->regs.n;
    uint32_t n = count ? count : 1;
    *mg_vec_push(&m->decls) = (struct mg_decl){.space = MG_SPACE_reg,
                                               .type = (uint8_t)type,
                                               .first = first,
                                               .n = n,
                                               .first_group = m->groups.n,
                                               .n_groups = 1};
    *mg_vec_push(&m->groups) = (struct mg_reg_group){.name = name, .first_reg = first, .count = count};
    for (uint32_t i = 0; i < n; i++)
        *mg_vec_push(&m->regs) = (struct mg_reg){
            .name = name, .number = count ? i : UINT32_MAX, .type = (uint8_t)type, .func = func, .decl = decl};
    if (!func) {
        mg_module_add_item(m, (struct mg_item){.kind = MG_ITEM_decl, .id = decl});
    } else {
        mg_node_insert_after(m, func, 0, mg_node_new_kind(m, MG_NODE_decl, decl));
    }
    return first;
}

mg_id mg_module_add_shared(struct mg_module *m, mg_id func, const char *stem, enum mg_type type, uint32_t align,
                           uint64_t n)
{
    char name[64];
    mg_id var = m->vars.n, decl = m->decls.n;
    snprintf(name, sizeof name, "%s%u", stem, (unsigned)var);
    struct mg_var v = {.name = mg_intern_adds(&m->names, name),
                       .space = MG_SPACE_shared,
                       .type = (uint8_t)type,
                       .align = align,
                       .n_dims = n != 0,
                       .func = func,
                       .is_added = true};
    if (n) v.dims = mg_arena_array(&m->arena, uint64_t, 1), v.dims[0] = n;
    *mg_vec_push(&m->vars) = v;
    *mg_vec_push(&m->decls) = (struct mg_decl){.space = MG_SPACE_shared, .type = v.type, .first = var, .n = 1};
    if (func)
        mg_node_insert_after(m, func, 0, mg_node_new_kind(m, MG_NODE_decl, decl));
    else
        mg_module_add_item(m, (struct mg_item){.kind = MG_ITEM_decl, .id = decl});
    return var;
}

mg_id mg_module_add_reg(struct mg_module *m, mg_id func, const char *name, enum mg_type type)
{
    return add_regs(m, func, unique_name(m, name, false, m->regs.n), type, 0);
}

mg_id mg_module_add_regs(struct mg_module *m, mg_id func, const char *prefix, enum mg_type type, uint32_t count)
{
    mg_assert(count);
    return add_regs(m, func, unique_name(m, prefix, true, m->regs.n), type, count);
}

mg_id mg_module_add_label(struct mg_module *m, mg_id func, const char *name)
{
    mg_id id = m->labels.n;
    mg_str s = unique_name(m, name, false, id);
    *mg_vec_push(&m->labels) = (struct mg_label){.name = s, .func = func};
    return id;
}

mg_id mg_opnd_alloc(struct mg_module *m, uint32_t n)
{
    mg_id first = m->opnds.n;
    mg_vec_reserve(&m->opnds, m->opnds.n + n);
    m->opnds.n += n;
    if (n) memset(&m->opnds.at[first], 0, n * sizeof *m->opnds.at);
    return first;
}
