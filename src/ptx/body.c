/* Statements of a function body: scopes, labels, directives; instructions go to inst.c. The loop
 * keeps its own depth instead of recursing, so that no nesting of braces can exhaust the stack. */
#include "ptx/priv.h"

mg_id mg_ptx_add_node(struct parser *p, enum mg_node_kind kind, uint32_t ref, uint32_t line)
{
    struct mg_module *m = p->m;
    struct mg_func *f = &m->funcs.at[p->func];
    mg_id id = m->nodes.n;
    *mg_vec_push(&m->nodes) = (struct mg_node){.kind = (uint8_t)kind, .ref = ref, .line = line, .prev = f->last_node};
    if (f->last_node)
        m->nodes.at[f->last_node].next = id;
    else
        f->first_node = id;
    f->last_node = id;
    return id;
}

/* .loc file line col [, function_name label [+ off], inlined_at file line col] */
bool mg_ptx_loc(struct parser *p, mg_id *loc)
{
    struct mg_loc l = {0};
    if (!mg_ptx_u32(p, "the file index", &l.file) || !mg_ptx_u32(p, "the line", &l.line)) return false;
    skip_space(p);
    if (is_digit(*p->at) && !mg_ptx_u32(p, "the column", &l.col)) return false;
    while (take(p, ',')) {
        size_t len;
        const char *s = mg_ptx_ident(p, &len);
        if (word_is(s, len, "function_name")) {
            if (!mg_ptx_name(p, "the function's string", &l.function)) return false;
            if (take(p, '+') && !mg_ptx_u32(p, "the offset", &l.function_off)) return false;
        } else if (word_is(s, len, "inlined_at")) {
            l.has_inlined = 1;
            if (!mg_ptx_u32(p, "the file index", &l.inl_file) || !mg_ptx_u32(p, "the line", &l.inl_line) ||
                !mg_ptx_u32(p, "the column", &l.inl_col))
                return false;
        } else {
            return mg_ptx_fail(p, NULL, "expected function_name or inlined_at");
        }
    }
    *loc = p->m->locs.n;
    *mg_vec_push(&p->m->locs) = l;
    return true;
}

/* What inserted code counts, as one instruction between the quotes. */
static bool ours(struct parser *p, uint32_t line)
{
    mg_id guard = 0;
    unsigned flags = MG_NF_PROBE;
    if (take(p, '@')) {
        unsigned is_not;
        if (!mg_ptx_guard(p, &guard, &is_not)) return false;
        flags |= is_not;
    }
    size_t len;
    const char *s = mg_ptx_ident(p, &len);
    if (!len) return mg_ptx_fail(p, NULL, "expected an operation");
    p->ours = true;
    bool ok = mg_ptx_inst(p, s, len, guard, flags, line);
    p->ours = false;
    return ok && mg_ptx_expect(p, '"', "the operation") && mg_ptx_expect(p, ';', ".pragma");
}

static bool pragma(struct parser *p, uint32_t line)
{
    static const char begin[] = "\"margay ";
    skip_space(p);
    if (p->m->marked && !strncmp(p->at, begin, sizeof begin - 1)) {
        p->at += sizeof begin - 1;
        return ours(p, line);
    }
    do {
        mg_str s;
        if (!mg_ptx_string(p, &s)) return false;
        mg_ptx_add_node(p, MG_NODE_pragma, s, line);
    } while (take(p, ','));
    return mg_ptx_expect(p, ';', ".pragma");
}

/* A directive the tables do not know: kept when it is one line that ends in ';'. */
static bool unknown_directive(struct parser *p, const char *start, uint32_t line)
{
    const char *nl = memchr(start, '\n', (size_t)(p->end - start));
    const char *semi = memchr(start, ';', (size_t)((nl ? nl : p->end) - start));
    if (!semi) {
        p->at = start;
        return mg_ptx_fail(p, NULL, "unknown directive");
    }
    p->at = semi + 1;
    p->m->n_unknown_directives++;
    mg_ptx_add_node(p, MG_NODE_raw, mg_intern_add(&p->m->names, start, (size_t)(semi + 1 - start)), line);
    return true;
}

static bool directive(struct parser *p)
{
    const char *start = p->at;
    uint32_t line = p->line;
    size_t len;
    const char *s = mg_ptx_dot_word(p, &len);
    mg_id id;
    if (!len) return mg_ptx_fail(p, NULL, "expected a directive word after '.'");
    if (word_is(s, len, "loc")) {
        if (!mg_ptx_loc(p, &id)) return false;
        mg_ptx_add_node(p, MG_NODE_loc, id, line);
        return true;
    }
    if (word_is(s, len, "pragma")) return pragma(p, line);
    if (mg_ptx_is_decl(s, len)) {
        p->at = start;
        if (!mg_ptx_decl(p, MG_LINK_none, &id)) return false;
        mg_ptx_add_node(p, MG_NODE_decl, id, line);
        return true;
    }
    if (word_is(s, len, "file")) {
        p->at = start;
        mg_ptx_add_node(p, MG_NODE_raw, mg_ptx_rest_of_line(p), line);
        return true;
    }
    return unknown_directive(p, start, line);
}

/* name: .branchtargets L0, L1;   name: .calltargets f, g;   name: .callprototype (r) _ (p); */
static bool target_list(struct parser *p, mg_str name, uint32_t line, bool *is_target)
{
    struct mg_module *m = p->m;
    const char *start = p->at;
    size_t len;
    const char *s = mg_ptx_dot_word(p, &len);
    struct mg_target t = {.name = name, .func = p->func};
    *is_target = true;
    if (word_is(s, len, "branchtargets")) {
        t.kind = MG_TARGET_branch;
    } else if (word_is(s, len, "calltargets")) {
        t.kind = MG_TARGET_call;
    } else if (word_is(s, len, "callprototype")) {
        t.kind = MG_TARGET_proto;
    } else {
        p->at = start;
        *is_target = false;
        return true;
    }
    if (t.kind == MG_TARGET_proto) {
        struct mg_func f = {.kind = MG_FUNC_proto, .line = line, .name = mg_intern_adds(&m->names, "_")};
        size_t name_len;
        mg_id owner = p->func;
        mg_id proto = m->funcs.n;
        *mg_vec_push(&m->funcs) = f;
        p->func = proto;
        mg_ptx_open(p);
        skip_space(p);
        bool ok = *p->at != '(' || mg_ptx_params(p, true, &f.first_ret, &f.n_rets);
        if (ok) {
            s = mg_ptx_ident(p, &name_len); /* '_', or any name in old texts */
            if (name_len)
                f.name = mg_intern_add(&m->names, s, name_len);
            else
                ok = mg_ptx_fail(p, NULL, "expected '_' in the prototype");
        }
        skip_space(p);
        if (ok && *p->at == '(') ok = mg_ptx_params(p, false, &f.first_param, &f.n_params);
        f.first_directive = m->directives.n;
        while (ok && (s = mg_ptx_dot_word(p, &len), len)) {
            const char *e = p->at;
            if (word_is(s, len, "noreturn")) f.noreturn = 1;
            skip_space(p);
            while (is_digit(*p->at)) e = ++p->at;
            *mg_vec_push(&m->directives) = (struct mg_directive){mg_intern_add(&m->names, s - 1, (size_t)(e - s + 1))};
            f.n_directives++;
        }
        mg_ptx_close(p);
        m->funcs.at[proto] = f;
        p->func = owner;
        t.proto = proto;
        if (!ok) return false;
    } else {
        uint32_t base = p->stack.n = 0;
        p->n_pending = 0;
        p->form = (struct mg_form){.op = t.kind == MG_TARGET_branch ? MG_OP_bra : MG_OP_call};
        do {
            skip_space(p);
            uint32_t col = mg_ptx_col(p), id;
            s = mg_ptx_ident(p, &len);
            if (!len) return mg_ptx_fail(p, NULL, "expected a %s", t.kind == MG_TARGET_branch ? "label" : "function");
            if (t.kind == MG_TARGET_call && mg_ptx_look_up(p, s, len, &id) == SYM_func) {
                *mg_vec_push(&p->stack) = mg_o_func(id);
                continue;
            }
            p->n_pending++;
            *mg_vec_push(&p->stack) = (struct mg_opnd){
                .kind = MG_OPND_sym, .id = mg_intern_add(&m->names, s, len), .val = (uint64_t)p->line << 32 | col};
        } while (take(p, ','));
        t.n_opnds = p->stack.n - base;
        t.first_opnd = mg_ptx_commit(p, base);
    }
    if (!mg_ptx_expect(p, ';', "the list")) return false;
    mg_id id = m->targets.n;
    *mg_vec_push(&m->targets) = t;
    mg_ptx_add_node(p, MG_NODE_target, id, line);
    return mg_ptx_place_label(p, name, true, id, line, 1);
}

static bool label(struct parser *p, const char *s, size_t len, uint32_t line, uint32_t col)
{
    struct mg_module *m = p->m;
    unsigned mark = mg_ptx_mark(p);
    mg_str name = mg_intern_add(&m->names, s, len);
    skip_space(p);
    if (*p->at == '.') {
        bool is_target;
        if (!target_list(p, name, line, &is_target)) return false;
        if (is_target) return true;
    }
    mg_id id = m->labels.n;
    *mg_vec_push(&m->labels) = (struct mg_label){.name = name, .func = p->func};
    m->labels.at[id].node = mg_ptx_add_node(p, MG_NODE_label, id, line);
    m->nodes.at[m->labels.at[id].node].flags = (uint8_t)mark;
    return mg_ptx_place_label(p, name, false, id, line, col);
}

static void open_scope(struct parser *p)
{
    mg_ptx_add_node(p, MG_NODE_open, 0, p->line);
    mg_ptx_open(p);
    *mg_vec_push(&p->scope_parent) = p->scope;
    p->scope = p->scope_parent.n - 1;
}

static void close_scope(struct parser *p)
{
    mg_ptx_add_node(p, MG_NODE_close, 0, p->line);
    mg_ptx_close(p);
    p->scope = p->scope_parent.at[p->scope];
}

static bool statement(struct parser *p)
{
    char c = *p->at;
    uint32_t line = p->line;
    mg_id guard = 0;
    unsigned flags = 0;
    if (c == '.') return directive(p);
    if (c == '@' && p->at[1] == '@') {
        mg_ptx_add_node(p, MG_NODE_raw, mg_ptx_rest_of_line(p), line);
        return true;
    }
    if (c == '@') {
        p->at++;
        if (!mg_ptx_guard(p, &guard, &flags)) return false;
        skip_space(p);
    }
    if (c == ';') {
        p->at++;
        return true;
    }
    const char *s = p->at;
    if (!is_start(*s)) {
        if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f)
            return mg_ptx_fail(p, NULL, "unexpected byte 0x%02x", (unsigned char)*s);
        return mg_ptx_fail(p, NULL, "expected a statement, found '%c'", *s);
    }
    while (is_ident(*++p->at)) continue;
    size_t len = (size_t)(p->at - s);
    if (*p->at != '.' && !guard) {
        const char *line_start = p->line_start;
        line = p->line;
        skip_space(p);
        if (*p->at == ':' && p->at[1] != ':') {
            p->at++;
            return label(p, s, len, line, (uint32_t)(s - line_start) + 1);
        }
        p->at = s + len;
        p->line = line;
        p->line_start = line_start;
    }
    return mg_ptx_inst(p, s, len, guard, flags, line);
}

bool mg_ptx_body(struct parser *p)
{
    uint32_t inner = 0, first_line = p->line;
    mg_ptx_open(p);
    for (;;) {
        skip_space(p);
        if (p->at >= p->end) {
            (void)mg_ptx_fail(p, "the text is cut off here", "function body opened in line %u is never closed",
                              first_line);
            break;
        }
        if (p->n_errors >= MAX_ERRORS) {
            p->at = p->end;
            break;
        }
        if (*p->at == '{') {
            if (inner == MAX_DEPTH) {
                (void)mg_ptx_fail(p, NULL, "blocks are nested more than %d deep", MAX_DEPTH);
                p->at = p->end;
                break;
            }
            open_scope(p);
            p->at++;
            inner++;
        } else if (*p->at == '}') {
            p->at++;
            if (!inner) break;
            close_scope(p);
            inner--;
        } else if (!statement(p)) {
            mg_ptx_recover(p, true);
        }
    }
    for (; inner; inner--) close_scope(p);
    mg_ptx_close(p);
    mg_ptx_settle_body(p);
    return true;
}
