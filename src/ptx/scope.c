/* Names in force. Every name is interned once and looked up by index: one table says what it means
 * now, a log undoes a scope's declarations at its end. Labels may be named before they stand, so
 * references to them are collected and settled at the end of the body, from the scope of the
 * reference outwards. */
#include "ptx/priv.h"

struct sym *mg_ptx_sym(struct parser *p, mg_str name)
{
    if (name >= p->n_syms) {
        uint32_t n = p->n_syms ? p->n_syms * 2 : 256;
        while (n <= name) n *= 2;
        p->syms = mg_xrealloc(p->syms, n * sizeof *p->syms);
        memset(p->syms + p->n_syms, 0, (n - p->n_syms) * sizeof *p->syms);
        p->n_syms = n;
    }
    return &p->syms[name];
}

static size_t stem_len(const char *s, size_t len)
{
    while (len && is_digit(s[len - 1])) len--;
    return len;
}

static void log_undo(struct parser *p, mg_str name)
{
    if (p->depth) *mg_vec_push(&p->undo) = (struct undo){name, *mg_ptx_sym(p, name)};
}

bool mg_ptx_bind(struct parser *p, mg_str name, enum sym_kind kind, uint32_t id)
{
    struct sym *s = mg_ptx_sym(p, name);
    if (s->kind != SYM_none && s->kind != SYM_sreg && s->depth == p->depth && p->depth)
        return mg_ptx_fail(p, NULL, "'%s' is declared twice in one scope", mg_name(p->m, name));
    log_undo(p, name);
    s->kind = (uint8_t)kind;
    s->id = id;
    s->depth = p->depth;
    const char *text = mg_name(p->m, name);
    size_t len = mg_intern_len(&p->m->names, name), stem = stem_len(text, len);
    if (stem < len && stem) {
        mg_str of = mg_intern_add(&p->m->names, text, stem);
        mg_ptx_sym(p, of)->stem_of_plain = 1;
    }
    return true;
}

/* What the name means outside of the open scopes: a function's parameter may be called as the function is. */
struct sym *mg_ptx_sym_outside(struct parser *p, mg_str name)
{
    struct sym *s = mg_ptx_sym(p, name);
    for (uint32_t i = p->undo.n; i; i--)
        if (p->undo.at[i - 1].name == name) s = &p->undo.at[i - 1].old;
    return s;
}

bool mg_ptx_bind_set(struct parser *p, mg_str stem, mg_id first, uint32_t count)
{
    struct sym *s = mg_ptx_sym(p, stem);
    if (s->set_count && s->set_depth == p->depth)
        return mg_ptx_fail(p, NULL, "the set '%s<n>' is declared twice in one scope", mg_name(p->m, stem));
    log_undo(p, stem);
    s->set_first = first;
    s->set_count = count;
    s->set_depth = p->depth;
    return true;
}

void mg_ptx_open(struct parser *p)
{
    *mg_vec_push(&p->undo) = (struct undo){.name = 0};
    p->depth++;
}

void mg_ptx_close(struct parser *p)
{
    p->depth--;
    while (p->undo.n) {
        struct undo *u = &p->undo.at[--p->undo.n];
        if (!u->name) return;
        struct sym *s = &p->syms[u->name];
        struct sym keep = *s;
        *s = u->old;
        s->stem_of_plain = keep.stem_of_plain;
        s->missed_in = keep.missed_in;
        s->label = keep.label;
        s->label_func = keep.label_func;
        s->label_is_target = keep.label_is_target;
    }
}

/* ---- look-up ----------------------------------------------------------------------------------- */

static mg_str find_stem(struct parser *p, const char *s, size_t len)
{
    if (len > 8) return mg_intern_find(&p->m->names, s, len);
    uint64_t bytes;
    memcpy(&bytes, s, 8); /* the text is followed by at least 8 bytes */
    if (len < 8) bytes &= (1ull << 8 * len) - 1;
    struct stem_slot *slot = &p->stems[bytes * 0x9e3779b97f4a7c15u >> 58];
    if (slot->bytes == bytes && slot->len == len) return slot->name;
    mg_str name = mg_intern_find(&p->m->names, s, len);
    if (name) *slot = (struct stem_slot){bytes, (uint32_t)len, name};
    return name;
}

/* A set of the same stem in an outer scope that is long enough. */
static mg_id outer_set(const struct parser *p, mg_str stem, uint32_t number)
{
    for (uint32_t i = p->undo.n; i; i--) {
        const struct undo *u = &p->undo.at[i - 1];
        if (u->name == stem && u->old.set_count > number) return u->old.set_first + number;
    }
    return 0;
}

static enum sym_kind look_up_plain(struct parser *p, const char *s, size_t len, uint32_t *id)
{
    mg_str name = mg_intern_find(&p->m->names, s, len);
    if (name) {
        struct sym *sym = mg_ptx_sym(p, name);
        if (sym->kind != SYM_none) {
            *id = sym->id;
            return (enum sym_kind)sym->kind;
        }
    }
    enum mg_sreg r = *s == '%' || *s == 'W' ? mg_sreg_find(s, len) : MG_SREG_none;
    if (!r) return SYM_none;
    struct sym *sym = mg_ptx_sym(p, mg_intern_add(&p->m->names, s, len));
    sym->kind = SYM_sreg;
    sym->id = *id = r;
    sym->depth = 0;
    return SYM_sreg;
}

enum sym_kind mg_ptx_look_up(struct parser *p, const char *s, size_t len, uint32_t *id)
{
    size_t stem = stem_len(s, len);
    if (stem < len && stem && len - stem <= 9) { /* %r01 is %r1 */
        mg_str of = find_stem(p, s, stem);
        if (of && of < p->n_syms) {
            const struct sym *set = &p->syms[of];
            uint32_t number = 0;
            for (size_t i = stem; i < len; i++) number = number * 10 + (uint32_t)(s[i] - '0');
            mg_id reg = set->set_count > number ? set->set_first + number : 0;
            if (!reg && set->set_count) reg = outer_set(p, of, number);
            if (reg && set->stem_of_plain) {
                mg_str full = mg_intern_find(&p->m->names, s, len);
                const struct sym *plain = full ? mg_ptx_sym(p, full) : NULL;
                if (plain && plain->kind != SYM_none && plain->depth > p->syms[of].set_depth) reg = 0;
            }
            if (reg) {
                *id = reg;
                return SYM_reg;
            }
        }
    }
    return look_up_plain(p, s, len, id);
}

bool mg_ptx_undeclared(struct parser *p, const char *what, const char *s, size_t len, uint32_t line, uint32_t col)
{
    struct sym *sym = mg_ptx_sym(p, mg_intern_add(&p->m->names, s, len));
    if (sym->missed_in == p->func + 1) {
        p->n_errors++;
        return false;
    }
    sym->missed_in = p->func + 1;
    return mg_ptx_fail_at(p, line, col, "declare it in this or an outer block, or check the spelling",
                          "%s'%.*s' is not declared", what, (int)(len < 80 ? len : 80), s);
}

/* ---- labels -------------------------------------------------------------------------------------- */

static uint64_t label_key(mg_str name, uint32_t scope)
{
    return (uint64_t)name << 32 | scope;
}

bool mg_ptx_place_label(struct parser *p, mg_str name, bool is_target, mg_id id, uint32_t line, uint32_t col)
{
    struct sym *s = mg_ptx_sym(p, name);
    bool known = p->scope ? mg_map_get(&p->inner_labels, label_key(name, p->scope), NULL) : s->label_func == p->func;
    if (known && !is_target)
        return mg_ptx_fail_at(p, line, col, NULL, "label '%s' stands twice in one scope", mg_name(p->m, name));
    if (p->scope) {
        mg_map_set(&p->inner_labels, label_key(name, p->scope), (uint64_t)is_target << 32 | id);
        return true;
    }
    s->label = id;
    s->label_func = p->func;
    s->label_is_target = is_target;
    return true;
}

static bool find_label(struct parser *p, mg_str name, uint32_t scope, mg_id *id, bool *is_target)
{
    uint64_t v;
    for (; scope; scope = p->scope_parent.at[scope]) {
        if (!p->inner_labels.n || !mg_map_get(&p->inner_labels, label_key(name, scope), &v)) continue;
        *id = (mg_id)v;
        *is_target = v >> 32;
        return true;
    }
    const struct sym *s = mg_ptx_sym(p, name);
    if (s->label_func != p->func) return false;
    *id = s->label;
    *is_target = s->label_is_target;
    return true;
}

/* ---- references settled later ----------------------------------------------------------------------- */

mg_id mg_ptx_commit(struct parser *p, uint32_t base)
{
    uint32_t n = p->stack.n - base;
    struct mg_module *m = p->m;
    mg_id first = m->opnds.n;
    if (!n) return first;
    mg_vec_reserve(&m->opnds, first + n);
    memcpy(&m->opnds.at[first], &p->stack.at[base], n * sizeof *m->opnds.at);
    m->opnds.n += n;
    p->stack.n = base;
    for (uint32_t i = 0; p->n_pending && i < n; i++) {
        struct mg_opnd *o = &m->opnds.at[first + i];
        if (o->kind != MG_OPND_sym || o->sub) continue;
        p->n_pending--;
        *mg_vec_push(&p->fixups) = (struct fixup){.opnd = first + i,
                                                  .name = o->id,
                                                  .scope = p->scope,
                                                  .line = (uint32_t)(o->val >> 32),
                                                  .col = (uint32_t)o->val,
                                                  .strict = !p->form.unknown,
                                                  .targets = p->form.op == MG_OP_bra || p->form.op == MG_OP_brx};
        o->val = 0;
    }
    return first;
}

static bool settle_global(struct parser *p, struct mg_opnd *o, mg_str name)
{
    const struct sym *s = mg_ptx_sym(p, name);
    if (s->kind == SYM_func)
        *o = mg_o_func(s->id);
    else if (s->kind == SYM_var && !s->depth)
        *o = mg_o_var(s->id);
    else
        return false;
    return true;
}

void mg_ptx_settle_body(struct parser *p)
{
    for (uint32_t i = 0; i < p->fixups.n; i++) {
        const struct fixup *f = &p->fixups.at[i];
        struct mg_opnd *o = &p->m->opnds.at[f->opnd];
        mg_id id;
        bool is_target;
        if (find_label(p, f->name, f->scope, &id, &is_target)) {
            *o = (struct mg_opnd){.kind = is_target ? MG_OPND_target : MG_OPND_label, .id = id};
            if (!is_target && f->targets) p->m->labels.at[id].targeted = 1;
        } else if (!settle_global(p, o, f->name)) {
            *mg_vec_push(&p->late_fixups) = *f;
        }
    }
    p->fixups.n = 0;
}

void mg_ptx_settle_module(struct parser *p)
{
    struct mg_module *m = p->m;
    for (uint32_t i = 0; i < p->late_fixups.n; i++) {
        const struct fixup *f = &p->late_fixups.at[i];
        if (settle_global(p, &m->opnds.at[f->opnd], f->name)) continue;
        if (f->strict)
            (void)mg_ptx_undeclared(p, "", mg_name(m, f->name), mg_intern_len(&m->names, f->name), f->line, f->col);
    }
    for (uint32_t i = 0; i < p->init_fixups.n; i++) {
        const struct init_fixup *f = &p->init_fixups.at[i];
        struct mg_init *in = &m->inits.at[f->init];
        mg_str name = in->id;
        const struct sym *s = mg_ptx_sym(p, name);
        if (s->kind != SYM_func && s->kind != SYM_var) {
            (void)mg_ptx_fail_at(p, f->line, f->col, NULL, "'%s' is not declared", mg_name(m, name));
            continue;
        }
        in->kind = f->kind;
        in->id = s->id;
        in->is_func = s->kind == SYM_func;
    }
}
