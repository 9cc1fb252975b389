/* One instruction: guard, form, operands. Operands are collected on a stack, innermost first, and
 * moved into the module as runs, so that the operands of an instruction, of a vector and of a
 * parenthesised list each stand together. */
#include "ptx/priv.h"

#define MAX_OPND_DEPTH 6

static bool operand(struct parser *p, unsigned depth);

static void push(struct parser *p, struct mg_opnd o)
{
    *mg_vec_push(&p->stack) = o;
}

/* Names nothing declares: kept, settled at the end of the body (labels, later functions). */
static struct mg_opnd pending(struct parser *p, const char *s, size_t len, uint32_t col)
{
    p->n_pending++;
    return (struct mg_opnd){
        .kind = MG_OPND_sym, .id = mg_intern_add(&p->m->names, s, len), .val = (uint64_t)p->line << 32 | col};
}

/* ".x" of a vector register or special register, ".b0" of a video operand; 0 when none follows. */
static unsigned component(struct parser *p, unsigned *sel)
{
    *sel = 0;
    const char *s = p->at;
    if (*s != '.' || !is_start(s[1])) return 0;
    unsigned comp = 0;
    size_t len = 1;
    while (is_ident(s[1 + len])) len++;
    if (len == 1) {
        switch (s[1]) {
        case 'x':
        case 'r':
            comp = 1;
            break;
        case 'y':
        case 'g':
            comp = 2;
            break;
        case 'z':
        case 'b':
            comp = 3;
            break;
        case 'w':
        case 'a':
            comp = 4;
            break;
        default:
            return 0;
        }
    } else if (len == 2 && s[1] == 'b' && s[2] >= '0' && s[2] <= '3') {
        *sel = MG_SEL_b0 + (unsigned)(s[2] - '0');
    } else if (len == 2 && s[1] == 'h' && (s[2] == '0' || s[2] == '1')) {
        *sel = MG_SEL_h0 + (unsigned)(s[2] - '0');
    } else {
        return 0;
    }
    p->at = s + 1 + len;
    return comp;
}

/* +4, -4, [2] behind the name of a variable whose address is taken */
static bool offset(struct parser *p, int64_t *off)
{
    skip_space(p);
    *off = 0;
    if (*p->at == '+')
        p->at++;
    else if (*p->at != '-')
        return true;
    return mg_ptx_int(p, "the offset", off);
}

/* One subscript, in elements whatever the number of dimensions: as ptxas has it. */
static bool subscript(struct parser *p, const struct mg_var *v, int64_t *off)
{
    uint64_t bytes = (mg_type_bits((enum mg_type)v->type) + 7) / 8 * (v->vec ? v->vec : 1);
    int64_t ix;
    if (!take(p, '[')) return true;
    if (!mg_ptx_int(p, "the subscript", &ix) || !mg_ptx_expect(p, ']', "the subscript")) return false;
    *off = (int64_t)((uint64_t)ix * bytes);
    return true;
}

static bool name_operand(struct parser *p, bool minus)
{
    size_t len;
    skip_space(p);
    uint32_t col = mg_ptx_col(p), id = 0;
    const char *s = mg_ptx_ident(p, &len);
    if (!len) return mg_ptx_fail(p, NULL, "expected an operand");
    if (len == 1 && *s == '_') {
        push(p, (struct mg_opnd){.kind = MG_OPND_sink});
        return true;
    }
    enum sym_kind kind = mg_ptx_look_up(p, s, len, &id);
    unsigned sel, comp = component(p, &sel);
    if (minus && kind != SYM_reg) return mg_ptx_fail_at(p, p->line, col, NULL, "'-' needs a constant or a register");
    switch (kind) {
    case SYM_reg:
        if (minus) {
            push(p, (struct mg_opnd){.kind = MG_OPND_neg, .id = id, .sub = (uint8_t)sel});
        } else if (sel) {
            push(p, (struct mg_opnd){.kind = MG_OPND_sel, .id = id, .sub = (uint8_t)sel});
        } else {
            int64_t off;
            if (!offset(p, &off)) return false;
            push(p, (struct mg_opnd){.kind = MG_OPND_reg, .id = id, .sub = (uint8_t)comp, .val = (uint64_t)off});
        }
        return true;
    case SYM_sreg: {
        if (id == MG_SREG_WARP_SZ) {
            skip_space(p);
            if (*p->at != ',' && *p->at != ';' && *p->at != ')' && *p->at != '}') {
                struct mg_opnd o;
                p->at = s;
                if (!mg_ptx_const_opnd(p, &o)) return false;
                push(p, o);
                return true;
            }
        }
        push(p, (struct mg_opnd){.kind = MG_OPND_sreg, .id = id, .sub = (uint8_t)comp});
        return true;
    }
    case SYM_func:
        push(p, mg_o_func(id));
        return true;
    case SYM_var: {
        int64_t off = 0;
        skip_space(p);
        if (*p->at == '[') { /* a[2]: the element in memory operations, its address elsewhere */
            if (!subscript(p, &p->m->vars.at[id], &off)) return false;
            if (p->form.op_flags & (MG_OPF_READS | MG_OPF_WRITES)) {
                push(p, mg_o_addr_var(id, off));
                return true;
            }
        }
        int64_t more;
        if (!offset(p, &more)) return false;
        push(p, (struct mg_opnd){.kind = MG_OPND_var, .id = id, .val = (uint64_t)off + (uint64_t)more});
        return true;
    }
    case SYM_none:
        break;
    }
    /* a special register newer than the tables */
    bool new_sreg = *s == '%' && p->form.op == MG_OP_mov && !is_digit(s[len - 1]);
    if (*s == '%' && !p->form.unknown && !new_sreg) return mg_ptx_undeclared(p, "register ", s, len, p->line, col);
    if (new_sreg || p->form.unknown) {
        if (comp)
            len += 2;
        else if (sel)
            len += 3;
    } else if (comp || sel) {
        return mg_ptx_undeclared(p, "", s, len, p->line, col);
    }
    if (new_sreg) { /* nothing to settle: it is text, and sub says so */
        p->m->n_unknown_sregs++;
        push(p, (struct mg_opnd){.kind = MG_OPND_sym, .sub = 1, .id = mg_intern_add(&p->m->names, s, len)});
    } else {
        push(p, pending(p, s, len, col));
    }
    return true;
}

/* Turns the operands from stack[base] on into one of the given kind. */
static bool group(struct parser *p, uint32_t base, enum mg_opnd_kind kind)
{
    uint32_t n = p->stack.n - base;
    if (n > UINT16_MAX) return mg_ptx_fail(p, NULL, "too many operands");
    mg_id first = mg_ptx_commit(p, base);
    push(p, (struct mg_opnd){.kind = (uint8_t)kind, .n = (uint16_t)n, .id = first});
    return true;
}

/* a, b, ... up to the closer; the opener is behind us */
static bool sequence(struct parser *p, char closer, enum mg_opnd_kind kind, unsigned depth)
{
    uint32_t base = p->stack.n;
    if (!take(p, closer)) {
        do {
            if (!operand(p, depth + 1)) return false;
        } while (take(p, ','));
        if (!mg_ptx_expect(p, closer, "the operands")) return false;
    }
    return group(p, base, kind);
}

/* One place of an address: register, variable or constant with an offset. */
static bool address_part(struct parser *p, struct mg_opnd *o)
{
    skip_space(p);
    *o = (struct mg_opnd){.kind = MG_OPND_addr};
    if (!is_start(*p->at)) {
        int64_t v;
        if (!mg_ptx_int(p, "the address", &v)) return false;
        o->sub = MG_OPND_imm;
        o->val = (uint64_t)v;
        return true;
    }
    size_t len;
    uint32_t col = mg_ptx_col(p), id = 0;
    const char *s = mg_ptx_ident(p, &len);
    if (!len) return mg_ptx_fail(p, NULL, "expected an address");
    enum sym_kind kind = mg_ptx_look_up(p, s, len, &id);
    unsigned sel;
    int64_t off = 0, more;
    o->id = id;
    if (kind == SYM_reg) {
        o->sub = MG_OPND_reg;
        o->n = (uint16_t)component(p, &sel);
    } else if (kind == SYM_var) {
        o->sub = MG_OPND_var;
        skip_space(p);
        if (*p->at == '[' && !subscript(p, &p->m->vars.at[id], &off)) return false;
    } else if (kind == SYM_func) {
        o->sub = MG_OPND_func;
    } else if (kind == SYM_none && p->form.unknown) {
        o->sub = MG_OPND_sym;
        o->id = mg_intern_add(&p->m->names, s, len);
    } else if (kind == SYM_none) {
        return mg_ptx_undeclared(p, "", s, len, p->line, col);
    } else {
        return mg_ptx_fail_at(p, p->line, col, NULL, "'%.*s' cannot be an address", (int)(len < 80 ? len : 80), s);
    }
    skip_space(p);
    if (*p->at == '+') {
        p->at++;
        skip_space(p);
        if (is_start(*p->at) && strncmp(p->at, "WARP_SZ", 7))
            return mg_ptx_fail(p, "compute the sum in a register",
                               "an address is one register or name plus a constant");
        if (!mg_ptx_int(p, "the offset", &more)) return false;
        if (!more && p->m->debug) o->n |= MG_ADDR_ZERO;
    } else if (!offset(p, &more)) {
        return false;
    }
    o->val = (uint64_t)off + (uint64_t)more;
    return true;
}

/* An address without its brackets, as an element of [a, {x, y}]. */
static struct mg_opnd unbracketed(struct mg_opnd o)
{
    if (o.val || o.n) return o;
    if (o.sub == MG_OPND_reg || o.sub == MG_OPND_var) return (struct mg_opnd){.kind = o.sub, .id = o.id};
    return o;
}

static bool address(struct parser *p, unsigned depth)
{
    struct mg_opnd o;
    if (!address_part(p, &o)) return false;
    if (take(p, ']')) {
        push(p, o);
        return true;
    }
    uint32_t base = p->stack.n;
    push(p, unbracketed(o));
    while (take(p, ',')) {
        skip_space(p);
        if (*p->at == '{') {
            if (!operand(p, depth + 1)) return false;
        } else {
            if (!address_part(p, &o)) return false;
            push(p, unbracketed(o));
        }
    }
    return mg_ptx_expect(p, ']', "the address") && group(p, base, MG_OPND_tensor);
}

static bool simple_operand(struct parser *p, unsigned depth)
{
    skip_space(p);
    char c = *p->at;
    if (is_start(c)) return name_operand(p, false);
    if (c == '[') {
        p->at++;
        return address(p, depth);
    }
    if (c == '{') {
        p->at++;
        return sequence(p, '}', MG_OPND_vec, depth);
    }
    if (c == '(' && p->form.op == MG_OP_call) {
        p->at++;
        return sequence(p, ')', MG_OPND_list, depth);
    }
    if (c == '!') {
        const char *s = p->at + 1;
        while (*s == ' ' || *s == '\t') s++;
        if (is_start(*s)) {
            p->at = s;
            if (!name_operand(p, false)) return false;
            struct mg_opnd *o = &p->stack.at[p->stack.n - 1];
            if (o->kind != MG_OPND_reg || o->sub) return mg_ptx_fail(p, NULL, "'!' needs a predicate register");
            o->kind = MG_OPND_not;
            return true;
        }
    }
    if (c == '-') {
        const char *s = p->at + 1;
        while (*s == ' ' || *s == '\t') s++;
        if (is_start(*s) && strncmp(s, "WARP_SZ", 7)) {
            p->at = s;
            return name_operand(p, true);
        }
    }
    struct mg_opnd o;
    if (c == '"' || c == ';' || c == ',' || p->at >= p->end) return mg_ptx_fail(p, NULL, "expected an operand");
    if (!mg_ptx_const_opnd(p, &o)) return false;
    push(p, o);
    return true;
}

static bool operand(struct parser *p, unsigned depth)
{
    if (depth > MAX_OPND_DEPTH) return mg_ptx_fail(p, NULL, "operand is nested too deeply");
    uint32_t base = p->stack.n;
    if (!simple_operand(p, depth)) return false;
    skip_space(p);
    if (*p->at != '|') return true;
    p->at++;
    return simple_operand(p, depth) && group(p, base, MG_OPND_pair);
}

bool mg_ptx_guard(struct parser *p, mg_id *guard, unsigned *flags)
{
    *flags = take(p, '!') ? MG_NF_GUARD_NOT : 0;
    skip_space(p);
    uint32_t col = mg_ptx_col(p), id = 0;
    size_t len;
    const char *s = mg_ptx_ident(p, &len);
    if (!len) return mg_ptx_fail(p, NULL, "expected a predicate register after '@'");
    enum sym_kind kind = mg_ptx_look_up(p, s, len, &id);
    if (kind != SYM_reg) return mg_ptx_undeclared(p, "predicate ", s, len, p->line, col);
    if (p->m->regs.at[id].type != MG_TYPE_pred)
        return mg_ptx_fail_at(p, p->line, col, NULL, "guard '%.*s' is not a .pred register", (int)(len < 80 ? len : 80),
                              s);
    *guard = id;
    return true;
}

static mg_id form_by_name(struct parser *p, const char *s, size_t len)
{
    mg_str text = mg_intern_add(&p->m->names, s, len);
    if (text >= p->form_of.n) {
        uint32_t old = p->form_of.n;
        mg_vec_reserve(&p->form_of, text + 1);
        memset(&p->form_of.at[old], 0, (text + 1 - old) * sizeof(mg_id));
        p->form_of.n = text + 1;
    }
    if (!p->form_of.at[text]) p->form_of.at[text] = mg_form_intern(p->m, s, len);
    return p->form_of.at[text];
}

/* Most opcodes have up to 16 characters and were seen before: a small exact cache answers. s is
 * followed by at least 16 readable bytes. */
static mg_id form_of(struct parser *p, const char *s, size_t len)
{
    if (len > 16 || s < p->text || s > p->end) return form_by_name(p, s, len);
    uint64_t head, tail;
    memcpy(&head, s, 8);
    memcpy(&tail, s + 8, 8);
    if (len < 8) head &= (1ull << 8 * len) - 1;
    if (len <= 8)
        tail = 0;
    else if (len < 16)
        tail &= (1ull << 8 * (len - 8)) - 1;
    struct form_slot *slot = &p->form_slots[((head ^ tail * 31) * 0x9e3779b97f4a7c15u) >> 56];
    if (slot->head != head || slot->tail != tail || slot->len != len)
        *slot = (struct form_slot){head, tail, (uint32_t)len, form_by_name(p, s, len)};
    return slot->form;
}

/* The dotted rest of the opcode at p->at; text is where it began. */
static mg_id read_form(struct parser *p, const char *text)
{
    for (;;) {
        while (*p->at == '.' && is_ident(p->at[1])) {
            p->at++;
            while (is_ident(*p->at) || (p->at[0] == ':' && p->at[1] == ':' && is_ident(p->at[2])))
                p->at += *p->at == ':' ? 2 : 1;
        }
        const char *end = p->at;
        skip_space(p);
        if (*p->at != '.' || !is_start(p->at[1]) || end == p->at) return form_of(p, text, (size_t)(end - text));
        /* "cvt.f32 .s32": one opcode written with spaces */
        struct mg_buf b = MG_BUF_INIT;
        mg_buf_add(&b, text, (size_t)(end - text));
        size_t len;
        for (const char *w; w = mg_ptx_dot_word(p, &len), len;) {
            mg_buf_addc(&b, '.');
            mg_buf_add(&b, w, len);
        }
        mg_id f = form_of(p, b.at, b.n);
        mg_buf_release(&b);
        return f;
    }
}

bool mg_ptx_inst(struct parser *p, const char *op, size_t len, mg_id guard, unsigned flags, uint32_t line)
{
    uint32_t base = p->stack.n = 0;
    p->n_pending = 0;
    mg_id form = read_form(p, op);
    p->form = p->m->forms.at[form];
    if ((p->form.op_flags & MG_OPF_OURS) != (p->ours ? MG_OPF_OURS : 0))
        return mg_ptx_fail(p, NULL, "'%.*s' is no instruction here", (int)(len < 40 ? len : 40), op);
    if (p->form.unknown && !p->form.op && *p->at == '=')
        return mg_ptx_fail(p, NULL, "expected an instruction, found '%.*s'", (int)(len < 40 ? len : 40), op);
    skip_space(p);
    if (*p->at != ';') {
        do {
            if (!operand(p, 0)) return false;
        } while (take(p, ','));
    }
    if (!mg_ptx_expect(p, ';', "the operands")) return false;
    uint32_t n = p->stack.n - base;
    if (n > UINT16_MAX) return mg_ptx_fail(p, NULL, "too many operands");
    mg_id first = mg_ptx_commit(p, base);
    mg_id id = mg_ptx_add_node(p, MG_NODE_inst, form, line);
    struct mg_node *node = &p->m->nodes.at[id];
    node->opnd = first;
    node->n_opnds = (uint16_t)n;
    node->guard = guard;
    node->flags = (uint8_t)(flags | mg_ptx_mark(p));
    p->m->funcs.at[p->func].n_insts++;
    p->m->n_insts++;
    return true;
}
