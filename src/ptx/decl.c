/* Declarations: registers and register sets, variables of every space with their initialisers,
 * parameters. One statement is one mg_decl; names declared together stay together. */
#include "ptx/priv.h"

struct quals { /* what stands before the names */
    uint8_t space, type, vec;
    uint8_t is_ptr, ptr_space;
    uint16_t bank;
    uint32_t align, ptr_align;
    mg_id first_attr;
    uint32_t n_attrs;
};

static enum mg_space decl_space(const char *s, size_t len)
{
    static const enum mg_space spaces[] = {MG_SPACE_reg,   MG_SPACE_sreg,  MG_SPACE_const,  MG_SPACE_global,
                                           MG_SPACE_local, MG_SPACE_param, MG_SPACE_shared, MG_SPACE_tex};
    for (size_t i = 0; i < MG_COUNT_OF(spaces); i++)
        if (word_is(s, len, mg_space_name(spaces[i]))) return spaces[i];
    return MG_SPACE_generic;
}

bool mg_ptx_is_decl(const char *word, size_t len)
{
    return decl_space(word, len) || word_is(word, len, "align") || word_is(word, len, "attribute");
}

bool mg_ptx_attributes(struct parser *p, mg_id *first, uint32_t *n)
{
    if (!mg_ptx_expect(p, '(', ".attribute")) return false;
    *first = p->m->strs.n;
    *n = 0;
    for (;;) {
        skip_space(p);
        const char *s = p->at;
        uint32_t depth = 0;
        while (p->at < p->end && *p->at != '\n' && (depth || (*p->at != ',' && *p->at != ')'))) {
            depth += *p->at == '(';
            depth -= *p->at == ')';
            p->at++;
        }
        const char *e = p->at;
        while (e > s && mg_ptx_class[(uint8_t)e[-1]] & CH_SPACE) e--;
        if (e == s || *s != '.') return mg_ptx_fail(p, NULL, "expected an attribute such as .managed");
        *mg_vec_push(&p->m->strs) = mg_intern_add(&p->m->names, s, (size_t)(e - s));
        ++*n;
        if (take(p, ')')) return true;
        if (!mg_ptx_expect(p, ',', "an attribute")) return false;
    }
}

static bool vec_width(const char *s, size_t len, uint8_t *vec)
{
    if (len != 2 || *s != 'v' || (s[1] != '2' && s[1] != '4' && s[1] != '8')) return false;
    *vec = (uint8_t)(s[1] - '0');
    return true;
}

static bool pointer_quals(struct parser *p, struct quals *q)
{
    q->is_ptr = 1;
    for (;;) {
        const char *back = p->at;
        size_t len;
        const char *s = mg_ptx_dot_word(p, &len);
        enum mg_space space = len ? decl_space(s, len) : MG_SPACE_generic;
        if (space) {
            q->ptr_space = (uint8_t)space;
        } else if (word_is(s, len, "align")) {
            if (!mg_ptx_u32(p, "the alignment", &q->ptr_align)) return false;
        } else {
            p->at = back;
            return true;
        }
    }
}

/* Dotted words up to the first name. */
static bool quals(struct parser *p, struct quals *q)
{
    for (;;) {
        skip_space(p);
        if (*p->at != '.') break;
        size_t len;
        const char *s = mg_ptx_dot_word(p, &len);
        if (!len) return mg_ptx_fail(p, NULL, "expected a directive word after '.'");
        enum mg_space space = decl_space(s, len);
        enum mg_type type = mg_type_find(s, len);
        if (space) {
            if (q->space && q->space != space) return mg_ptx_fail(p, NULL, "a second state space in one declaration");
            q->space = (uint8_t)space;
            int64_t bank;
            if (space == MG_SPACE_const && take(p, '[')) {
                if (!mg_ptx_int(p, "the bank", &bank) || !mg_ptx_expect(p, ']', "the bank")) return false;
                if (bank < 0 || bank > 10) return mg_ptx_fail(p, "banks are 0 to 10", "no such constant bank");
                q->bank = (uint16_t)(bank + 1);
            }
        } else if (type) {
            if (q->type) return mg_ptx_fail(p, NULL, "a second type in one declaration");
            q->type = (uint8_t)type;
        } else if (vec_width(s, len, &q->vec)) {
            continue;
        } else if (word_is(s, len, "align")) {
            if (!mg_ptx_u32(p, "the alignment", &q->align)) return false;
            if (!q->align || (q->align & (q->align - 1)))
                return mg_ptx_fail(p, NULL, "the alignment must be a power of two");
        } else if (word_is(s, len, "ptr")) {
            if (!pointer_quals(p, q)) return false;
        } else if (word_is(s, len, "attribute")) {
            if (!mg_ptx_attributes(p, &q->first_attr, &q->n_attrs)) return false;
        } else {
            p->at = s - 1;
            return mg_ptx_fail(p, NULL, "'.%.*s' is no part of a declaration", (int)(len < 40 ? len : 40), s);
        }
    }
    if (!q->type) return mg_ptx_fail(p, NULL, "expected a type such as .b32");
    return true;
}

/* ---- registers ----------------------------------------------------------------------------------- */

static bool take_regs(struct parser *p, uint64_t n)
{
    if (n > p->reg_budget) return mg_ptx_fail(p, NULL, "too many registers declared for a text of this size");
    p->reg_budget -= n;
    return true;
}

static bool set_count(struct parser *p, uint32_t *count)
{
    *count = 0;
    if (!take(p, '<')) return true;
    int64_t n;
    if (!mg_ptx_set_size(p, &n) || !mg_ptx_expect(p, '>', "the size of the set")) return false;
    if (n < 0 || n > INT32_MAX) return mg_ptx_fail(p, NULL, "the size of the set is out of range");
    *count = (uint32_t)n;
    return n ? true : mg_ptx_fail(p, NULL, "an empty set declares nothing");
}

static bool reg_names(struct parser *p, const struct quals *q, struct mg_decl *d, mg_id decl)
{
    struct mg_module *m = p->m;
    d->first = m->regs.n;
    d->first_group = m->groups.n;
    do {
        mg_str name;
        uint32_t count;
        if (!mg_ptx_name(p, "a register", &name) || !set_count(p, &count) || !take_regs(p, count ? count : 1))
            return false;
        mg_id first = m->regs.n;
        *mg_vec_push(&m->groups) = (struct mg_reg_group){.name = name, .first_reg = first, .count = count};
        d->n_groups++;
        uint32_t n = count ? count : 1;
        mg_vec_reserve(&m->regs, m->regs.n + n);
        for (uint32_t i = 0; i < n; i++)
            m->regs.at[m->regs.n++] = (struct mg_reg){.name = name,
                                                      .number = count ? i : UINT32_MAX,
                                                      .type = q->type,
                                                      .vec = q->vec,
                                                      .func = p->func,
                                                      .decl = decl};
        d->n += n;
        if (count ? !mg_ptx_bind_set(p, name, first, count) : !mg_ptx_bind(p, name, SYM_reg, first)) return false;
    } while (take(p, ','));
    return true;
}

/* ---- initialisers ---------------------------------------------------------------------------------- */

static void add_init(struct parser *p, struct mg_init in)
{
    *mg_vec_push(&p->m->inits) = in;
}

/* name, name+4, generic(name)+4; kind is what it becomes, mask the byte mask of 0xff(...) */
static bool init_symbol(struct parser *p, bool masked, int64_t mask)
{
    struct mg_module *m = p->m;
    size_t len;
    skip_space(p);
    uint32_t line = p->line, col = mg_ptx_col(p);
    const char *s = mg_ptx_ident(p, &len);
    if (!len) return mg_ptx_fail(p, NULL, "expected a symbol or a constant");
    bool generic = word_is(s, len, "generic") && take(p, '(');
    if (generic) {
        skip_space(p);
        line = p->line, col = mg_ptx_col(p);
        s = mg_ptx_ident(p, &len);
        if (!len) return mg_ptx_fail(p, NULL, "expected a symbol in generic()");
    }
    int64_t off = 0;
    skip_space(p);
    if (*p->at == '[') { /* name[2], name[2][3]: elements of an array */
        return mg_ptx_fail(p, "write name+bytes", "an element cannot be named in an initialiser");
    }
    if (generic && !mg_ptx_expect(p, ')', "generic(symbol")) return false;
    skip_space(p);
    if (*p->at == '+')
        p->at++;
    else if (*p->at != '-')
        goto add;
    if (!mg_ptx_int(p, "the offset", &off)) return false;
add:;
    struct mg_init in = {.kind = MG_INIT_unresolved, .id = mg_intern_add(&m->names, s, len)};
    enum mg_init_kind kind = masked ? MG_INIT_mask : generic ? MG_INIT_generic : MG_INIT_sym;
    if (masked) {
        in.val = mask;
        in.off = off;
        in.pad = generic;
    } else {
        in.val = off;
    }
    uint32_t id;
    enum sym_kind known = mg_ptx_look_up(p, s, len, &id);
    if (known == SYM_var || known == SYM_func) {
        in.kind = (uint8_t)kind;
        in.id = id;
        in.is_func = known == SYM_func;
    } else if (known != SYM_none) {
        return mg_ptx_fail_at(p, line, col, NULL, "'%.*s' has no address", (int)(len < 60 ? len : 60), s);
    } else {
        *mg_vec_push(&p->init_fixups) = (struct init_fixup){m->inits.n, (uint8_t)kind, line, col};
    }
    add_init(p, in);
    return true;
}

/* addr_mode_0 = clamp_to_border: kept as text */
static bool init_field(struct parser *p, const char *s, size_t len)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_add(&b, s, len);
    mg_buf_adds(&b, " = ");
    skip_space(p);
    const char *v = p->at;
    while (is_ident(*p->at)) p->at++;
    bool ok = p->at > v;
    mg_buf_add(&b, v, (size_t)(p->at - v));
    if (ok) add_init(p, (struct mg_init){.kind = MG_INIT_unresolved, .id = mg_intern_add(&p->m->names, b.at, b.n)});
    mg_buf_release(&b);
    return ok ? true : mg_ptx_fail(p, NULL, "expected a value for '%.*s'", (int)(len < 60 ? len : 60), s);
}

static bool init_value(struct parser *p)
{
    skip_space(p);
    if (is_start(*p->at)) {
        const char *back = p->at;
        size_t len;
        const char *s = mg_ptx_ident(p, &len);
        skip_space(p);
        if (len && *p->at == '=' && p->at[1] != '=') {
            p->at++;
            return init_field(p, s, len);
        }
        p->at = back;
        if (!word_is(s, len, "WARP_SZ")) return init_symbol(p, false, 0);
    }
    struct mg_opnd o;
    if (is_digit(*p->at)) { /* 0xff00(symbol) */
        const char *s = p->at;
        while (is_ident(*s)) s++;
        while (*s == ' ' || *s == '\t') s++;
        if (*s == '(') {
            bool hex = p->at[0] == '0' && (p->at[1] | 32) == 'x';
            uint64_t mask = 0;
            for (const char *c = p->at + (hex ? 2 : 0); is_ident(*c); c++) {
                if (!(mg_ptx_class[(uint8_t)*c] & (hex ? CH_HEX : CH_DIGIT)))
                    return mg_ptx_fail(p, NULL, "malformed mask");
                mask = mask * (hex ? 16 : 10) + (uint64_t)(*c <= '9' ? *c - '0' : (*c | 32) - 'a' + 10);
            }
            p->at = s + 1;
            return init_symbol(p, true, (int64_t)mask) && mg_ptx_expect(p, ')', "the masked symbol");
        }
    }
    if (!mg_ptx_const_opnd(p, &o)) return false;
    struct mg_init in = {.val = (int64_t)o.val, .style = o.sub, .id = o.id};
    in.kind = o.kind == MG_OPND_f32 ? MG_INIT_f32 : o.kind == MG_OPND_f64 ? MG_INIT_f64 : MG_INIT_int;
    add_init(p, in);
    return true;
}

static bool initialiser(struct parser *p)
{
    uint32_t depth = 0;
    for (;;) {
        if (take(p, '{')) {
            if (++depth > 64) return mg_ptx_fail(p, NULL, "initialiser is nested too deeply");
            add_init(p, (struct mg_init){.kind = MG_INIT_open});
            skip_space(p);
            if (*p->at != '}') continue;
        } else if (!init_value(p)) {
            return false;
        }
        for (;;) {
            skip_space(p);
            if (!depth) return true;
            if (*p->at == '}') {
                p->at++;
                depth--;
                add_init(p, (struct mg_init){.kind = MG_INIT_close});
                continue;
            }
            break;
        }
        if (!mg_ptx_expect(p, ',', "an initialiser")) return false;
    }
}

/* ---- variables ------------------------------------------------------------------------------------- */

static bool dims(struct parser *p, struct mg_var *v)
{
    uint64_t d[16];
    while (take(p, '[')) {
        if (v->n_dims == MG_COUNT_OF(d)) return mg_ptx_fail(p, NULL, "too many array dimensions");
        int64_t n = 0;
        if (!take(p, ']')) {
            if (!mg_ptx_int(p, "the array size", &n) || !mg_ptx_expect(p, ']', "the array size")) return false;
            if (n < 0) return mg_ptx_fail(p, NULL, "the array size is negative");
        }
        d[v->n_dims++] = (uint64_t)n;
    }
    if (v->n_dims) v->dims = mg_arena_copy(&p->m->arena, d, v->n_dims * sizeof *d);
    return true;
}

static struct mg_var var_of(const struct parser *p, const struct quals *q, mg_str name, enum mg_link link)
{
    struct mg_var v = {.name = name,
                       .space = q->space,
                       .type = q->type,
                       .vec = q->vec,
                       .link = (uint8_t)link,
                       .align = q->align,
                       .func = p->func,
                       .first_attr = q->first_attr,
                       .n_attrs = q->n_attrs,
                       .is_ptr = q->is_ptr,
                       .ptr_space = q->ptr_space,
                       .ptr_align = q->ptr_align,
                       .line = p->line};
    if (q->space == MG_SPACE_const) v.ptr_flags = q->bank;
    for (uint32_t i = 0; i < q->n_attrs; i++)
        if (!strncmp(mg_name(p->m, p->m->strs.at[q->first_attr + i]), ".managed", 8)) v.managed = 1;
    return v;
}

/* .extern declarations and the definition find each other. */
static void note_definition(struct parser *p, mg_id var)
{
    struct mg_module *m = p->m;
    struct mg_var *v = &m->vars.at[var];
    v->def = var;
    if (v->func) return;
    const struct sym *s = mg_ptx_sym(p, v->name);
    if (s->kind != SYM_var || s->depth) return;
    struct mg_var *old = &m->vars.at[s->id];
    if (v->link == MG_LINK_extern)
        v->def = old->def;
    else if (old->link == MG_LINK_extern)
        old->def = var;
}

/* `x[] = {...}`: the first dimension takes its length from the initialiser. */
static void size_by_init(const struct parser *p, struct mg_var *v)
{
    if (!v->n_dims || v->dims[0] || !v->n_inits) return;
    const struct mg_init *in = &p->m->inits.at[v->first_init];
    uint64_t row = 1, rows = 0, leaves = 0;
    uint32_t depth = 0;
    for (uint32_t i = 1; i < v->n_dims; i++) row *= v->dims[i];
    for (uint32_t i = 0; i < v->n_inits; i++) {
        if (in[i].kind == MG_INIT_close) {
            depth--;
        } else if (in[i].kind == MG_INIT_open) {
            rows += depth == 1;
            depth++;
        } else {
            leaves++;
        }
    }
    v->dims[0] = v->n_dims > 1 && rows ? rows : row ? (leaves + row - 1) / row : 0;
}

static bool var_names(struct parser *p, const struct quals *q, enum mg_link link, struct mg_decl *d)
{
    struct mg_module *m = p->m;
    d->first = m->vars.n;
    do {
        mg_str name;
        uint32_t count;
        if (!mg_ptx_name(p, "a variable", &name) || !set_count(p, &count)) return false;
        if (count) {
            if (!take_regs(p, count)) return false;
            for (uint32_t i = 0; i < count; i++) {
                struct mg_buf b = MG_BUF_INIT;
                mg_buf_printf(&b, "%s%u", mg_name(m, name), i);
                mg_str one = mg_intern_add(&m->names, b.at, b.n);
                mg_buf_release(&b);
                mg_id id = m->vars.n;
                *mg_vec_push(&m->vars) = var_of(p, q, one, link);
                d->n++;
                note_definition(p, id);
                if (!mg_ptx_bind(p, one, SYM_var, id)) return false;
            }
            continue;
        }
        struct mg_var v = var_of(p, q, name, link);
        if (!dims(p, &v)) return false;
        mg_id id = m->vars.n;
        *mg_vec_push(&m->vars) = v;
        d->n++;
        note_definition(p, id);
        if (!mg_ptx_bind(p, name, SYM_var, id)) return false;
        if (take(p, '=')) {
            mg_id first = m->inits.n;
            if (!initialiser(p)) return false;
            m->vars.at[id].first_init = first;
            m->vars.at[id].n_inits = m->inits.n - first;
            size_by_init(p, &m->vars.at[id]);
        }
    } while (take(p, ','));
    return true;
}

bool mg_ptx_decl(struct parser *p, enum mg_link link, mg_id *decl)
{
    struct mg_module *m = p->m;
    struct quals q = {0};
    struct mg_decl d = {0};
    if (!quals(p, &q)) return false;
    if (!q.space) {
        if (mg_type_kind((enum mg_type)q.type) != MG_TK_OPAQUE)
            return mg_ptx_fail(p, NULL, "expected a state space such as .global");
        q.space = MG_SPACE_global;
    }
    d.space = q.space;
    d.type = q.type;
    d.vec = q.vec;
    *decl = m->decls.n;
    *mg_vec_push(&m->decls) = d;
    bool ok = q.space == MG_SPACE_reg ? reg_names(p, &q, &d, *decl) : var_names(p, &q, link, &d);
    m->decls.at[*decl] = d;
    return ok && mg_ptx_expect(p, ';', "the declaration");
}

/* ---- parameters --------------------------------------------------------------------------------------- */

static bool param(struct parser *p, bool is_ret)
{
    struct mg_module *m = p->m;
    struct quals q = {0};
    if (!quals(p, &q)) return false;
    if (q.space != MG_SPACE_param && q.space != MG_SPACE_reg)
        return mg_ptx_fail(p, NULL, "a parameter is .param or .reg");
    mg_str name = 0;
    skip_space(p);
    if (*p->at != ',' && *p->at != ')' && !mg_ptx_name(p, "a parameter", &name))
        return false; /* prototypes may leave it out */
    struct mg_var v = var_of(p, &q, name, MG_LINK_none);
    v.is_param = !is_ret;
    v.is_ret = is_ret;
    if (!dims(p, &v)) return false;
    mg_id id = m->vars.n;
    bool anonymous = !name || word_is(mg_name(m, name), mg_intern_len(&m->names, name), "_");
    if (q.space == MG_SPACE_reg) {
        if (!take_regs(p, 1)) return false;
        v.is_reg_param = 1;
        v.reg = m->regs.n;
        *mg_vec_push(&m->regs) =
            (struct mg_reg){.name = name, .number = UINT32_MAX, .type = q.type, .vec = q.vec, .func = p->func};
    }
    *mg_vec_push(&m->vars) = v;
    if (anonymous) return true;
    return v.is_reg_param ? mg_ptx_bind(p, name, SYM_reg, v.reg) : mg_ptx_bind(p, name, SYM_var, id);
}

bool mg_ptx_params(struct parser *p, bool is_ret, mg_id *first, uint32_t *n)
{
    *first = p->m->vars.n;
    *n = 0;
    if (!mg_ptx_expect(p, '(', "the name")) return false;
    if (take(p, ')')) return true;
    do {
        if (!param(p, is_ret)) return false;
        ++*n;
    } while (take(p, ','));
    return mg_ptx_expect(p, ')', "the parameters");
}
