/* IR to PTX text, from the IR alone. Deterministic; one statement a line.
 *
 * Characters go through a small window over the buffer: every put() makes room once and copies. */
#include <stdio.h>
#include <string.h>

#include "ptx/ptx.h"

struct out {
    const struct mg_module *m;
    struct mg_buf *b;
    char *at, *end;
};

static void refill(struct out *o, size_t need)
{
    o->b->n = o->b->at ? (size_t)(o->at - o->b->at) : 0;
    size_t room = need + 4096;
    o->at = mg_buf_room(o->b, room);
    o->end = o->b->at + o->b->cap - 1;
}

static inline void put(struct out *o, const char *s, size_t n)
{
    if (MG_UNLIKELY((size_t)(o->end - o->at) < n)) refill(o, n);
    memcpy(o->at, s, n);
    o->at += n;
}

static inline void putch(struct out *o, char c)
{
    if (MG_UNLIKELY(o->at == o->end)) refill(o, 1);
    *o->at++ = c;
}

static void puts_(struct out *o, const char *s)
{
    put(o, s, strlen(s));
}

static inline void put_name(struct out *o, mg_str s)
{
    const struct mg_intern_entry *e = &o->m->names.entries[s];
    if (MG_LIKELY(e->len <= 15 && s &&
                  o->end - o->at >= 16)) { /* interned text stands in 16-byte pieces: copy one whole */
        memcpy(o->at, e->s, 16);
        o->at += e->len;
    } else {
        put(o, e->s, e->len);
    }
}

static void put_uint(struct out *o, uint64_t v)
{
    char text[20];
    size_t at = sizeof text;
    if (v < 10) {
        putch(o, (char)('0' + v));
        return;
    }
    if (v < 100) {
        putch(o, (char)('0' + v / 10));
        putch(o, (char)('0' + v % 10));
        return;
    }
    do text[--at] = (char)('0' + v % 10);
    while (v /= 10);
    put(o, text + at, sizeof text - at);
}

static void put_int(struct out *o, int64_t v)
{
    if (v < 0) putch(o, '-');
    put_uint(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static void put_hex(struct out *o, uint64_t v, unsigned digits, const char *alphabet)
{
    char text[16];
    unsigned n = 0;
    do text[15 - n++] = alphabet[v & 15];
    while ((v >>= 4) || n < digits);
    put(o, text + 16 - n, n);
}

#define UPPER "0123456789ABCDEF"
#define LOWER "0123456789abcdef"

static inline void put_reg(struct out *o, mg_id reg)
{
    const struct mg_reg *r = &o->m->regs.at[reg];
    put_name(o, r->name);
    if (r->number != UINT32_MAX) put_uint(o, r->number);
}

/* ---- operands ------------------------------------------------------------------------------------ */

static void put_imm(struct out *o, uint64_t v, unsigned style, mg_str wide)
{
    switch ((enum mg_imm_style)style) {
    case MG_IMM_DEC:
    case MG_IMM_NEG:
        put_int(o, (int64_t)v);
        break;
    case MG_IMM_UNSIGNED:
        put_uint(o, v);
        putch(o, 'U');
        break;
    case MG_IMM_HEX:
    case MG_IMM_HEX_UNSIGNED:
        put(o, "0x", 2);
        put_hex(o, v, 1, LOWER);
        if (style == MG_IMM_HEX_UNSIGNED) putch(o, 'U');
        break;
    case MG_IMM_OCT: {
        char text[24];
        put(o, text, (size_t)snprintf(text, sizeof text, "0%llo", (unsigned long long)v));
        break;
    }
    case MG_IMM_BIN: {
        put(o, "0b", 2);
        int bit = 63;
        while (bit && !(v >> bit & 1)) bit--;
        for (; bit >= 0; bit--) putch(o, v >> bit & 1 ? '1' : '0');
        break;
    }
    case MG_IMM_WIDE:
        put_name(o, wide);
        break;
    }
}

static void put_f32(struct out *o, uint32_t bits)
{
    put(o, "0f", 2);
    put_hex(o, bits, 8, UPPER);
}

static void put_f64(struct out *o, uint64_t bits, unsigned decimal, mg_str text)
{
    if (decimal) {
        put_name(o, text);
        return;
    }
    put(o, "0d", 2);
    put_hex(o, bits, 16, UPPER);
}

static const char comps[][3] = {"", ".x", ".y", ".z", ".w"};
static const char sels[][4] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};

static void put_comp(struct out *o, unsigned comp)
{
    if (comp && comp < MG_COUNT_OF(comps)) put(o, comps[comp], 2);
}

static void put_offset(struct out *o, uint64_t val)
{
    if (!val) return;
    putch(o, '+'); /* "+-4": ptxas takes no "-4" */
    put_int(o, (int64_t)val);
}

static void put_address(struct out *o, const struct mg_opnd *a)
{
    switch ((enum mg_opnd_kind)a->sub) {
    case MG_OPND_reg:
        put_reg(o, a->id);
        put_comp(o, a->n & 7u);
        break;
    case MG_OPND_var:
        put_name(o, o->m->vars.at[a->id].name);
        break;
    case MG_OPND_func:
        put_name(o, o->m->funcs.at[a->id].name);
        break;
    case MG_OPND_sym:
        put_name(o, a->id);
        break;
    default:
        put_int(o, (int64_t)a->val);
        return;
    }
    if (a->n & MG_ADDR_ZERO && !a->val) puts_(o, "+0");
    put_offset(o, a->val);
}

static void put_opnd(struct out *o, const struct mg_opnd *a);

static void put_run(struct out *o, const struct mg_opnd *a, const char *between)
{
    for (uint32_t i = 0; i < a->n; i++) {
        const struct mg_opnd *e = &o->m->opnds.at[a->id + i];
        if (i) puts_(o, between);
        if (a->kind == MG_OPND_tensor && e->kind == MG_OPND_addr)
            put_address(o, e);
        else
            put_opnd(o, e);
    }
}

static void put_opnd(struct out *o, const struct mg_opnd *a)
{
    const struct mg_module *m = o->m;
    switch ((enum mg_opnd_kind)a->kind) {
    case MG_OPND_reg:
        put_reg(o, a->id);
        put_comp(o, a->sub);
        put_offset(o, a->val);
        break;
    case MG_OPND_imm:
        put_imm(o, a->val, a->sub, a->id);
        break;
    case MG_OPND_f32:
        put_f32(o, (uint32_t)a->val);
        break;
    case MG_OPND_f64:
        put_f64(o, a->val, a->sub, a->id);
        break;
    case MG_OPND_sreg:
        puts_(o, mg_sreg_text((enum mg_sreg)a->id));
        put_comp(o, a->sub);
        break;
    case MG_OPND_var:
        put_name(o, m->vars.at[a->id].name);
        put_offset(o, a->val);
        break;
    case MG_OPND_func:
        put_name(o, m->funcs.at[a->id].name);
        break;
    case MG_OPND_label:
        put_name(o, m->labels.at[a->id].name);
        break;
    case MG_OPND_addr:
        putch(o, '[');
        put_address(o, a);
        putch(o, ']');
        break;
    case MG_OPND_vec:
        putch(o, '{');
        put_run(o, a, ", ");
        putch(o, '}');
        break;
    case MG_OPND_list:
        putch(o, '(');
        put_run(o, a, ", ");
        putch(o, ')');
        break;
    case MG_OPND_tensor:
        putch(o, '[');
        put_run(o, a, ", ");
        putch(o, ']');
        break;
    case MG_OPND_pair:
        put_run(o, a, "|");
        break;
    case MG_OPND_not:
        putch(o, '!');
        put_reg(o, a->id);
        break;
    case MG_OPND_sink:
        putch(o, '_');
        break;
    case MG_OPND_sym:
        put_name(o, a->id);
        break;
    case MG_OPND_neg:
    case MG_OPND_sel:
        if (a->kind == MG_OPND_neg) putch(o, '-');
        put_reg(o, a->id);
        if ((a->sub & 15u) < MG_COUNT_OF(sels)) puts_(o, sels[a->sub & 15u]);
        break;
    case MG_OPND_target:
        put_name(o, m->targets.at[a->id].name);
        break;
    case MG_OPND_none:
    case MG_OPND_KIND_COUNT:
        break;
    }
}

static void put_inst(struct out *o, const struct mg_node *n)
{
    const struct mg_module *m = o->m;
    if (n->guard) {
        putch(o, '@');
        if (n->flags & MG_NF_GUARD_NOT) putch(o, '!');
        put_reg(o, n->guard);
        putch(o, ' ');
    }
    put_name(o, m->forms.at[n->ref].text);
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        put(o, i ? ", " : " ", i ? 2 : 1);
        put_opnd(o, &m->opnds.at[n->opnd + i]);
    }
    putch(o, ';');
}

/* ---- declarations ---------------------------------------------------------------------------------- */

static const char *link_text(unsigned link)
{
    static const char *const text[] = {"", ".extern ", ".visible ", ".weak ", ".common "};
    return link < MG_COUNT_OF(text) ? text[link] : "";
}

static void put_attributes(struct out *o, mg_id first, uint32_t n)
{
    if (!n) return;
    puts_(o, ".attribute(");
    for (uint32_t i = 0; i < n; i++) {
        if (i) puts_(o, ", ");
        put_name(o, o->m->strs.at[first + i]);
    }
    puts_(o, ") ");
}

static void put_type(struct out *o, unsigned type, unsigned vec)
{
    if (vec) {
        puts_(o, ".v");
        put_uint(o, vec);
        putch(o, ' ');
    }
    putch(o, '.');
    puts_(o, mg_type_name((enum mg_type)type));
    putch(o, ' ');
}

static void put_var_head(struct out *o, const struct mg_var *v)
{
    if (v->is_reg_param)
        puts_(o, ".reg");
    else
        putch(o, '.'), puts_(o, mg_space_name((enum mg_space)v->space));
    if (v->space == MG_SPACE_const && v->ptr_flags) {
        putch(o, '[');
        put_uint(o, v->ptr_flags - 1u);
        putch(o, ']');
    }
    putch(o, ' ');
    put_attributes(o, v->first_attr, v->n_attrs);
    if (v->align) {
        puts_(o, ".align ");
        put_uint(o, v->align);
        putch(o, ' ');
    }
    put_type(o, v->type, v->vec);
}

static void put_dims(struct out *o, const struct mg_var *v)
{
    for (uint32_t i = 0; i < v->n_dims; i++) {
        putch(o, '[');
        if (v->dims[i]) put_uint(o, v->dims[i]);
        putch(o, ']');
    }
}

static void put_symbol(struct out *o, const struct mg_init *in, int64_t off, bool generic)
{
    if (generic) puts_(o, "generic(");
    put_name(o, in->is_func ? o->m->funcs.at[in->id].name : o->m->vars.at[in->id].name);
    if (generic) putch(o, ')');
    put_offset(o, (uint64_t)off);
}

static void put_inits(struct out *o, const struct mg_var *v)
{
    bool comma = false;
    for (uint32_t i = 0; i < v->n_inits; i++) {
        const struct mg_init *in = &o->m->inits.at[v->first_init + i];
        if (in->kind == MG_INIT_close) {
            putch(o, '}');
            comma = true;
            continue;
        }
        if (comma) puts_(o, ", ");
        comma = in->kind != MG_INIT_open;
        switch ((enum mg_init_kind)in->kind) {
        case MG_INIT_int:
            put_imm(o, (uint64_t)in->val, in->style, in->id);
            break;
        case MG_INIT_f32:
            put_f32(o, (uint32_t)in->val);
            break;
        case MG_INIT_f64:
            put_f64(o, (uint64_t)in->val, in->style, in->id);
            break;
        case MG_INIT_sym:
        case MG_INIT_generic:
            put_symbol(o, in, in->val, in->kind == MG_INIT_generic);
            break;
        case MG_INIT_mask:
            puts_(o, "0x");
            put_hex(o, (uint64_t)in->val, 1, UPPER);
            putch(o, '(');
            put_symbol(o, in, in->off, in->pad);
            putch(o, ')');
            break;
        case MG_INIT_open:
            putch(o, '{');
            break;
        case MG_INIT_unresolved:
            put_name(o, in->id);
            break;
        case MG_INIT_close:
            break;
        }
    }
}

/* One variable a statement: names that shared one are printed apart, which means the same. */
static void put_decl(struct out *o, const struct mg_decl *d, const char *indent)
{
    const struct mg_module *m = o->m;
    if (d->space == MG_SPACE_reg) {
        puts_(o, indent);
        puts_(o, ".reg ");
        put_type(o, d->type, d->vec);
        for (uint32_t i = 0; i < d->n_groups; i++) {
            const struct mg_reg_group *g = &m->groups.at[d->first_group + i];
            if (i) puts_(o, ", ");
            put_name(o, g->name);
            if (!g->count) continue;
            putch(o, '<');
            put_uint(o, g->count);
            putch(o, '>');
        }
        puts_(o, ";\n");
        return;
    }
    for (mg_id id = d->first; id < d->first + d->n; id++) {
        const struct mg_var *v = &m->vars.at[id];
        puts_(o, indent);
        puts_(o, link_text(v->link));
        put_var_head(o, v);
        put_name(o, v->name);
        put_dims(o, v);
        if (v->n_inits) {
            puts_(o, " = ");
            put_inits(o, v);
        }
        puts_(o, ";\n");
    }
}

static void put_params(struct out *o, mg_id first, uint32_t n, bool own_lines)
{
    putch(o, '(');
    for (mg_id id = first; id < first + n; id++) {
        const struct mg_var *v = &o->m->vars.at[id];
        if (id != first) putch(o, ',');
        if (own_lines)
            puts_(o, "\n\t");
        else if (id != first)
            putch(o, ' ');
        if (v->is_ptr) { /* .param .u64 .ptr .global .align 8 name */
            puts_(o, ".param ");
            put_attributes(o, v->first_attr, v->n_attrs);
            put_type(o, v->type, v->vec);
            puts_(o, ".ptr ");
            if (v->ptr_space) putch(o, '.'), puts_(o, mg_space_name((enum mg_space)v->ptr_space)), putch(o, ' ');
            if (v->ptr_align) puts_(o, ".align "), put_uint(o, v->ptr_align), putch(o, ' ');
        } else {
            put_var_head(o, v);
        }
        put_name(o, v->name);
        put_dims(o, v);
    }
    if (own_lines && n) putch(o, '\n');
    putch(o, ')');
}

/* ---- bodies ------------------------------------------------------------------------------------------ */

static void put_loc(struct out *o, const struct mg_loc *l)
{
    puts_(o, ".loc ");
    put_uint(o, l->file);
    putch(o, ' ');
    put_uint(o, l->line);
    putch(o, ' ');
    put_uint(o, l->col);
    if (l->function) {
        puts_(o, ", function_name ");
        put_name(o, l->function);
        if (l->function_off) puts_(o, " + "), put_uint(o, l->function_off);
    }
    if (l->has_inlined) {
        puts_(o, ", inlined_at ");
        put_uint(o, l->inl_file);
        putch(o, ' ');
        put_uint(o, l->inl_line);
        putch(o, ' ');
        put_uint(o, l->inl_col);
    }
    if (l->raw) putch(o, ' '), put_name(o, l->raw);
}

static void put_target(struct out *o, const struct mg_target *t)
{
    const struct mg_module *m = o->m;
    put_name(o, t->name);
    puts_(o, t->kind == MG_TARGET_branch ? ": .branchtargets "
             : t->kind == MG_TARGET_call ? ": .calltargets "
                                         : ": .callprototype ");
    if (t->kind == MG_TARGET_proto) {
        const struct mg_func *f = &m->funcs.at[t->proto];
        if (f->n_rets) put_params(o, f->first_ret, f->n_rets, false), putch(o, ' ');
        put_name(o, f->name);
        putch(o, ' ');
        put_params(o, f->first_param, f->n_params, false);
        for (uint32_t i = 0; i < f->n_directives; i++) {
            putch(o, ' ');
            put_name(o, m->directives.at[f->first_directive + i].text);
        }
    } else {
        for (uint32_t i = 0; i < t->n_opnds; i++) {
            if (i) puts_(o, ", ");
            put_opnd(o, &m->opnds.at[t->first_opnd + i]);
        }
    }
    putch(o, ';');
}

static void put_mark(struct out *o, const struct mg_node *n)
{
    if (o->m->marked && n->flags & MG_NF_PROBE) put(o, MG_PTX_MARK, sizeof MG_PTX_MARK - 1);
}

static void put_node(struct out *o, const struct mg_node *n)
{
    const struct mg_module *m = o->m;
    switch ((enum mg_node_kind)n->kind) {
    case MG_NODE_inst:
        putch(o, '\t');
        if (m->forms.at[n->ref].op_flags & MG_OPF_OURS) {
            puts_(o, MG_PTX_OURS);
            put_inst(o, n);
            puts_(o, "\";");
            break;
        }
        put_inst(o, n);
        put_mark(o, n);
        break;
    case MG_NODE_label:
        put_name(o, m->labels.at[n->ref].name);
        putch(o, ':');
        put_mark(o, n);
        break;
    case MG_NODE_open:
        puts_(o, "\t{");
        break;
    case MG_NODE_close:
        puts_(o, "\t}");
        break;
    case MG_NODE_decl:
        put_decl(o, &m->decls.at[n->ref], "\t");
        return;
    case MG_NODE_loc:
        putch(o, '\t');
        put_loc(o, &m->locs.at[n->ref]);
        break;
    case MG_NODE_pragma:
        puts_(o, "\t.pragma \"");
        put_name(o, n->ref);
        puts_(o, "\";");
        break;
    case MG_NODE_target:
        put_target(o, &m->targets.at[n->ref]);
        break;
    case MG_NODE_raw:
        put_name(o, n->ref);
        break;
    case MG_NODE_none:
    case MG_NODE_KIND_COUNT:
        return;
    }
    putch(o, '\n');
}

static void put_func(struct out *o, const struct mg_func *f)
{
    const struct mg_module *m = o->m;
    puts_(o, link_text(f->link));
    puts_(o, f->kind == MG_FUNC_entry ? ".entry " : ".func ");
    put_attributes(o, f->first_attr, f->n_attrs);
    if (f->n_rets) put_params(o, f->first_ret, f->n_rets, false), putch(o, ' ');
    put_name(o, f->name);
    if (f->n_params || f->kind == MG_FUNC_func) put_params(o, f->first_param, f->n_params, true);
    for (uint32_t i = 0; i < f->n_directives; i++) {
        putch(o, '\n');
        put_name(o, m->directives.at[f->first_directive + i].text);
    }
    if (!f->defined) {
        puts_(o, ";\n");
        return;
    }
    puts_(o, "\n{\n");
    for (mg_id id = f->first_node; id; id = m->nodes.at[id].next) put_node(o, &m->nodes.at[id]);
    puts_(o, "}\n");
}

/* ---- the module --------------------------------------------------------------------------------------- */

static void put_file(struct out *o, const struct mg_file *f)
{
    puts_(o, ".file ");
    put_uint(o, f->index);
    puts_(o, " \"");
    put_name(o, f->path);
    putch(o, '"');
    if (f->has_time) {
        puts_(o, ", ");
        put_uint(o, f->time);
        puts_(o, ", ");
        put_uint(o, f->size);
    }
    putch(o, '\n');
}

static void put_item(struct out *o, const struct mg_item *it)
{
    const struct mg_module *m = o->m;
    switch ((enum mg_item_kind)it->kind) {
    case MG_ITEM_func:
        put_func(o, &m->funcs.at[it->id]);
        break;
    case MG_ITEM_decl:
        put_decl(o, &m->decls.at[it->id], "");
        break;
    case MG_ITEM_file:
        put_file(o, &m->files.at[it->id]);
        break;
    case MG_ITEM_section: {
        const struct mg_section *s = &m->sections.at[it->id];
        puts_(o, ".section ");
        put_name(o, s->name);
        puts_(o, "\n{\n");
        for (uint32_t i = 0; i < s->n_lines; i++) {
            put_name(o, m->strs.at[s->first_line + i]);
            putch(o, '\n');
        }
        puts_(o, "}\n");
        break;
    }
    case MG_ITEM_alias:
        puts_(o, ".alias ");
        put_name(o, m->funcs.at[m->aliases.at[it->id].from].name);
        puts_(o, ", ");
        put_name(o, m->funcs.at[m->aliases.at[it->id].to].name);
        puts_(o, ";\n");
        break;
    case MG_ITEM_pragma:
        puts_(o, ".pragma \"");
        put_name(o, it->id);
        puts_(o, "\";\n");
        break;
    case MG_ITEM_loc:
        put_loc(o, &m->locs.at[it->id]);
        putch(o, '\n');
        break;
    case MG_ITEM_raw:
        put_name(o, it->id);
        putch(o, '\n');
        break;
    case MG_ITEM_none:
        break;
    }
}

static struct out begin(const struct mg_module *m, struct mg_buf *b)
{
    struct out o = {.m = m, .b = b};
    mg_buf_room(b, 4096);
    o.at = b->at + b->n;
    o.end = b->at + b->cap - 1;
    return o;
}

static void finish(struct out *o)
{
    o->b->n = (size_t)(o->at - o->b->at);
    *o->at = 0;
}

void mg_ptx_print(const struct mg_module *m, struct mg_buf *out)
{
    struct out o = begin(m, out);
    if (m->marked) puts_(&o, MG_PTX_MARKED);
    puts_(&o, ".version ");
    put_uint(&o, m->version_major);
    putch(&o, '.');
    put_uint(&o, m->version_minor);
    if (m->target) puts_(&o, "\n.target "), put_name(&o, m->target);
    putch(&o, '\n');
    if (m->has_address_size) {
        puts_(&o, ".address_size ");
        put_uint(&o, m->address_size);
        putch(&o, '\n');
    }
    for (uint32_t i = 1; i < m->items.n; i++) put_item(&o, &m->items.at[i]);
    finish(&o);
}

void mg_ptx_print_node(const struct mg_module *m, mg_id node, struct mg_buf *out)
{
    struct out o = begin(m, out);
    const struct mg_node *n = &m->nodes.at[node];
    if (n->kind == MG_NODE_inst)
        put_inst(&o, n);
    else if (n->kind == MG_NODE_label)
        put_name(&o, m->labels.at[n->ref].name), putch(&o, ':');
    finish(&o);
}
