/* Module scope: version and target, functions with their directives, files, debug sections,
 * aliases; and the parser's beginning and end. */
#include <locale.h>
#include <stdlib.h>

#include "base/hash.h"
#include "ptx/priv.h"

static void add_item(struct parser *p, enum mg_item_kind kind, mg_id id)
{
    *mg_vec_push(&p->m->items) = (struct mg_item){.kind = (uint8_t)kind, .id = id};
}

/* ---- .version .target .address_size --------------------------------------------------------------- */

static bool version(struct parser *p)
{
    skip_space(p);
    unsigned long v[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        if (i && *p->at != '.')
            return mg_ptx_fail(p, "for example .version 8.0", "expected major.minor after .version");
        p->at += i;
        const char *s = p->at;
        while (is_digit(*p->at) && p->at - s < 4) v[i] = v[i] * 10 + (unsigned long)(*p->at++ - '0');
        if (p->at == s) return mg_ptx_fail(p, "for example .version 8.0", "expected major.minor after .version");
    }
    if (p->seen_version) return mg_ptx_fail(p, NULL, ".version stands twice");
    p->seen_version = true;
    p->m->version_major = (uint16_t)v[0];
    p->m->version_minor = (uint16_t)v[1];
    return true;
}

static void note_target(struct parser *p, const char *s, size_t len)
{
    struct mg_module *m = p->m;
    size_t at = len > 3 && !memcmp(s, "sm_", 3) ? 3 : len > 8 && !memcmp(s, "compute_", 8) ? 8 : 0;
    if (at) {
        uint32_t sm = 0;
        while (at < len && is_digit(s[at]) && sm < 6000) sm = sm * 10 + (uint32_t)(s[at++] - '0');
        m->sm = (uint16_t)sm;
        m->sm_suffix = at < len ? s[at] : 0;
    }
    if (word_is(s, len, "debug")) m->debug = 1;
}

static bool target(struct parser *p)
{
    struct mg_buf b = MG_BUF_INIT;
    bool ok = true;
    do {
        size_t len;
        const char *s = mg_ptx_ident(p, &len);
        if (!len) {
            ok = mg_ptx_fail(p, "for example .target sm_70", "expected a target");
            break;
        }
        note_target(p, s, len);
        if (b.n) mg_buf_adds(&b, ", ");
        mg_buf_add(&b, s, len);
    } while (take(p, ','));
    if (ok && p->seen_target) { /* a later one: stays where it stands */
        struct mg_buf line = MG_BUF_INIT;
        mg_buf_printf(&line, ".target %s", b.at);
        add_item(p, MG_ITEM_raw, mg_intern_add(&p->m->names, line.at, line.n));
        mg_buf_release(&line);
    } else if (ok) {
        p->m->target = mg_intern_add(&p->m->names, b.at, b.n);
        p->seen_target = true;
    }
    mg_buf_release(&b);
    return ok;
}

static bool address_size(struct parser *p)
{
    uint32_t bits;
    if (!mg_ptx_u32(p, "the address size", &bits)) return false;
    if (bits != 32 && bits != 64) return mg_ptx_fail(p, NULL, ".address_size is 32 or 64");
    p->m->address_size = (uint8_t)bits;
    p->m->has_address_size = 1;
    return true;
}

/* ---- functions --------------------------------------------------------------------------------------- */

static void note_numbers(const char *s, uint32_t *out, unsigned n, uint32_t rest)
{
    unsigned i = 0;
    for (; *s && i < n;) {
        if (!is_digit(*s)) {
            s++;
            continue;
        }
        uint64_t v = 0;
        for (; is_digit(*s); s++) v = v < UINT32_MAX ? v * 10 + (uint64_t)(*s - '0') : v;
        out[i++] = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
    }
    for (; i && i < n; i++) out[i] = rest;
}

static void note_directive(struct mg_func *f, const char *word, size_t len, const char *args)
{
    if (word_is(word, len, "maxntid"))
        note_numbers(args, f->maxntid, 3, 1);
    else if (word_is(word, len, "reqntid"))
        note_numbers(args, f->reqntid, 3, 1);
    else if (word_is(word, len, "minnctapersm"))
        note_numbers(args, &f->minnctapersm, 1, 0);
    else if (word_is(word, len, "maxnctapersm"))
        note_numbers(args, &f->maxnctapersm, 1, 0);
    else if (word_is(word, len, "maxnreg"))
        note_numbers(args, &f->maxnreg, 1, 0);
    else if (word_is(word, len, "reqnctapercluster"))
        note_numbers(args, f->cluster, 3, 1);
    else if (word_is(word, len, "noreturn"))
        f->noreturn = 1;
}

/* Performance directives up to '{' or ';', each kept as its text with single spaces. */
static bool directives(struct parser *p, struct mg_func *f)
{
    struct mg_buf b = MG_BUF_INIT;
    bool ok = true;
    f->first_directive = p->m->directives.n;
    for (skip_space(p); ok && *p->at == '.'; skip_space(p)) {
        size_t len;
        const char *word = mg_ptx_dot_word(p, &len);
        if (!len) {
            ok = mg_ptx_fail(p, NULL, "expected a directive word after '.'");
            break;
        }
        if (word_is(word, len, "attribute")) {
            ok = mg_ptx_attributes(p, &f->first_attr, &f->n_attrs);
            continue;
        }
        if (word_is(word, len, "loc") || word_is(word, len, "visible") || word_is(word, len, "entry") ||
            word_is(word, len, "func") || word_is(word, len, "extern") || word_is(word, len, "weak") ||
            word_is(word, len, "file") || word_is(word, len, "section") ||
            mg_ptx_is_decl(word, len)) { /* the next item: the caller decides whether this one may end so */
            p->at = word - 1;
            break;
        }
        mg_buf_reset(&b);
        mg_buf_addc(&b, '.');
        mg_buf_add(&b, word, len);
        bool pragma = word_is(word, len, "pragma"), gap = true;
        for (;;) {
            const char *before = p->at;
            skip_space(p);
            char c = *p->at;
            gap |= p->at != before;
            if (p->at >= p->end || c == '.' || c == '{' || (c == ';' && !pragma)) break;
            if (c == ';') {
                mg_buf_addc(&b, ';');
                p->at++;
                break;
            }
            if (gap && c != ',') mg_buf_addc(&b, ' ');
            gap = false;
            if (c == '"') {
                mg_str s;
                if (!(ok = mg_ptx_string(p, &s))) break;
                mg_buf_printf(&b, "\"%s\"", mg_name(p->m, s));
                continue;
            }
            if (!is_ident(c) && !is_start(c) && !strchr(",()+-*", c)) {
                ok = mg_ptx_fail(p, NULL, "expected '{' or ';' after the function's head");
                break;
            }
            mg_buf_addc(&b, c);
            p->at++;
        }
        if (!ok) break;
        note_directive(f, word, len, b.at + 1 + len);
        *mg_vec_push(&p->m->directives) = (struct mg_directive){mg_intern_add(&p->m->names, b.at, b.n)};
        f->n_directives++;
    }
    mg_buf_release(&b);
    return ok;
}

static void bind_func(struct parser *p, mg_id id)
{
    struct mg_module *m = p->m;
    struct mg_func *f = &m->funcs.at[id];
    struct sym *s = mg_ptx_sym_outside(p, f->name);
    if (s->kind == SYM_func && !s->depth) {
        const struct mg_func *old = &m->funcs.at[s->id];
        f->decl_of = old->decl_of ? old->decl_of : s->id;
        if (old->defined) return; /* a later declaration does not hide the definition */
    }
    s->kind = SYM_func;
    s->id = id;
    s->depth = 0;
}

static bool func_head(struct parser *p, struct mg_func *f)
{
    size_t len;
    for (;;) {
        skip_space(p);
        if (*p->at != '.') break;
        const char *s = mg_ptx_dot_word(p, &len);
        if (word_is(s, len, "attribute")) {
            if (!mg_ptx_attributes(p, &f->first_attr, &f->n_attrs)) return false;
        } else {
            return mg_ptx_fail(p, NULL, "expected the function's name");
        }
    }
    if (*p->at == '(' && f->kind == MG_FUNC_func && !mg_ptx_params(p, true, &f->first_ret, &f->n_rets)) return false;
    if (!mg_ptx_name(p, "the function", &f->name)) return false;
    skip_space(p);
    if (*p->at == '(' && !mg_ptx_params(p, false, &f->first_param, &f->n_params)) return false;
    return directives(p, f);
}

static bool function(struct parser *p, enum mg_func_kind kind, enum mg_link link, uint32_t line)
{
    struct mg_module *m = p->m;
    mg_id id = m->funcs.n;
    struct mg_func f = {.kind = (uint8_t)kind, .link = (uint8_t)link, .line = line};
    *mg_vec_push(&m->funcs) = f;
    p->func = id;
    mg_ptx_open(p);
    bool ok = func_head(p, &f);
    m->funcs.at[id] = f;
    if (ok) {
        bind_func(p, id);
        add_item(p, MG_ITEM_func, id);
        if (take(p, '{')) {
            const struct sym *s = mg_ptx_sym_outside(p, f.name);
            if (s->id != id) ok = mg_ptx_fail(p, NULL, "'%s' is defined twice", mg_name(m, f.name));
            m->funcs.at[id].defined = 1;
            ok = mg_ptx_body(p) && ok;
            m->funcs.at[id].end_line = p->line;
        } else if (*p->at != '.' || kind == MG_FUNC_entry) { /* nvopencc wrote prototypes without ';' */
            ok = mg_ptx_expect(p, ';', "the function's head");
        }
    }
    mg_ptx_close(p);
    p->func = 0;
    return ok;
}

/* ---- files, sections, aliases ------------------------------------------------------------------------- */

static bool file(struct parser *p)
{
    struct mg_file f = {0};
    if (!mg_ptx_u32(p, "the file index", &f.index) || !mg_ptx_string(p, &f.path)) return false;
    if (take(p, ',')) {
        int64_t time, size;
        if (!mg_ptx_int(p, "the time", &time) || !mg_ptx_expect(p, ',', "the time") ||
            !mg_ptx_int(p, "the size", &size))
            return false;
        f.has_time = 1;
        f.time = (uint64_t)time;
        f.size = (uint64_t)size;
    }
    add_item(p, MG_ITEM_file, p->m->files.n);
    *mg_vec_push(&p->m->files) = f;
    return true;
}

static void add_section_line(struct parser *p, const char *s, const char *e, struct mg_section *sec)
{
    while (s < e && mg_ptx_class[(uint8_t)*s] & CH_SPACE) s++;
    while (s < e && mg_ptx_class[(uint8_t)e[-1]] & CH_SPACE) e--;
    if (s == e) return;
    *mg_vec_push(&p->m->strs) = mg_intern_add(&p->m->names, s, (size_t)(e - s));
    sec->n_lines++;
}

static bool section(struct parser *p)
{
    struct mg_section sec = {0};
    skip_space(p);
    const char *s = p->at;
    while (p->at < p->end && *p->at != '{' && *p->at != '\n' && *p->at != ' ' && *p->at != '\t') p->at++;
    if (p->at == s) return mg_ptx_fail(p, NULL, "expected the section's name");
    sec.name = mg_intern_add(&p->m->names, s, (size_t)(p->at - s));
    if (!mg_ptx_expect(p, '{', ".section")) return false;
    sec.first_line = p->m->strs.n;
    for (s = p->at;;) {
        if (p->at >= p->end)
            return mg_ptx_fail(p, "the text is cut off here", "section '%s' is never closed", mg_name(p->m, sec.name));
        char c = *p->at;
        if (c == '"') {
            for (p->at++; p->at < p->end && *p->at != '"' && *p->at != '\n'; p->at++) continue;
            if (*p->at == '"') p->at++;
        } else if (c == '\n' || c == '}' || (c == '/' && (p->at[1] == '/' || p->at[1] == '*'))) {
            add_section_line(p, s, p->at, &sec);
            if (c == '}') break;
            skip_space(p);
            s = p->at;
        } else {
            p->at++;
        }
    }
    p->at++;
    add_item(p, MG_ITEM_section, p->m->sections.n);
    *mg_vec_push(&p->m->sections) = sec;
    return true;
}

static bool alias(struct parser *p)
{
    mg_id ids[2];
    for (int i = 0; i < 2; i++) {
        size_t len;
        uint32_t id = 0;
        if (i && !mg_ptx_expect(p, ',', "the alias")) return false;
        const char *s = mg_ptx_ident(p, &len);
        if (!len || mg_ptx_look_up(p, s, len, &id) != SYM_func)
            return mg_ptx_fail(p, "declare it with .func first", "'%.*s' is no function", (int)(len < 80 ? len : 80),
                               s);
        ids[i] = id;
    }
    add_item(p, MG_ITEM_alias, p->m->aliases.n);
    *mg_vec_push(&p->m->aliases) = (struct mg_alias){ids[0], ids[1]};
    return mg_ptx_expect(p, ';', ".alias");
}

static bool pragma(struct parser *p)
{
    do {
        mg_str s;
        if (!mg_ptx_string(p, &s)) return false;
        add_item(p, MG_ITEM_pragma, s);
    } while (take(p, ','));
    return mg_ptx_expect(p, ';', ".pragma");
}

static bool unknown_directive(struct parser *p, const char *start)
{
    const char *nl = memchr(start, '\n', (size_t)(p->end - start));
    const char *semi = memchr(start, ';', (size_t)((nl ? nl : p->end) - start));
    p->at = start;
    if (!semi || memchr(start, '{', (size_t)(semi - start))) return mg_ptx_fail(p, NULL, "unknown directive");
    p->m->n_unknown_directives++;
    p->at = semi + 1;
    add_item(p, MG_ITEM_raw, mg_intern_add(&p->m->names, start, (size_t)(semi + 1 - start)));
    return true;
}

static enum mg_link link_of(const char *s, size_t len)
{
    static const char *const words[] = {"", "extern", "visible", "weak", "common"};
    for (unsigned i = 1; i < MG_COUNT_OF(words); i++)
        if (word_is(s, len, words[i])) return (enum mg_link)i;
    return MG_LINK_none;
}

/* One item at '.'. */
static bool item(struct parser *p)
{
    const char *start = p->at;
    uint32_t line = p->line;
    size_t len;
    enum mg_link link = MG_LINK_none, next;
    const char *s = mg_ptx_dot_word(p, &len);
    mg_id id;
    while (len && (next = link_of(s, len)) != MG_LINK_none) {
        link = next;
        skip_space(p);
        start = p->at;
        s = mg_ptx_dot_word(p, &len);
    }
    if (!len) return mg_ptx_fail(p, NULL, "expected a directive word");
    if (word_is(s, len, "entry")) return function(p, MG_FUNC_entry, link, line);
    if (word_is(s, len, "func")) return function(p, MG_FUNC_func, link, line);
    if (word_is(s, len, "version")) return version(p);
    if (word_is(s, len, "target")) return target(p);
    if (word_is(s, len, "address_size")) return address_size(p);
    if (word_is(s, len, "file")) return file(p);
    if (word_is(s, len, "section")) return section(p);
    if (word_is(s, len, "alias")) return alias(p);
    if (word_is(s, len, "pragma")) return pragma(p);
    if (word_is(s, len, "loc")) {
        if (!mg_ptx_loc(p, &id)) return false;
        add_item(p, MG_ITEM_loc, id);
        return true;
    }
    enum mg_type type = mg_type_find(s, len);
    if (mg_ptx_is_decl(s, len) || mg_type_kind(type) == MG_TK_OPAQUE) {
        p->at = start;
        if (!mg_ptx_decl(p, link, &id)) return false;
        add_item(p, MG_ITEM_decl, id);
        return true;
    }
    return unknown_directive(p, start);
}

static void parse_items(struct parser *p)
{
    for (;;) {
        bool ok = true;
        skip_space(p);
        if (p->at >= p->end || p->n_errors >= MAX_ERRORS) return;
        char c = *p->at;
        const char *before = p->at;
        if (c == '.') {
            ok = item(p);
        } else if (c == '@' && p->at[1] == '@') {
            add_item(p, MG_ITEM_raw, mg_ptx_rest_of_line(p));
        } else if (c == ';') {
            p->at++;
        } else {
            if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7f)
                ok = mg_ptx_fail(p, "this is not PTX text", "unexpected byte 0x%02x", (unsigned char)c);
            else
                ok = mg_ptx_fail(p, NULL, "expected a directive, found '%c'", c);
            p->at++;
        }
        if (!ok) {
            p->func = 0;
            while (p->depth) mg_ptx_close(p);
            mg_ptx_recover(p, false);
            if (p->at <= before) p->at = before + 1;
        }
    }
}

/* ---- beginning and end --------------------------------------------------------------------------------- */

static void settle_definitions(struct parser *p)
{
    struct mg_module *m = p->m;
    for (mg_id f = 1; f < m->funcs.n; f++) {
        if (m->funcs.at[f].kind == MG_FUNC_proto || !m->funcs.at[f].name) continue;
        const struct sym *s = mg_ptx_sym(p, m->funcs.at[f].name);
        if (s->kind == SYM_func && m->funcs.at[s->id].defined) m->funcs.at[f].def = s->id;
    }
    for (mg_id f = 1; f < m->funcs.n; f++) {
        struct mg_func *fn = &m->funcs.at[f];
        if (fn->kind != MG_FUNC_entry || !fn->n_params) continue;
        const struct mg_var *last = &m->vars.at[fn->first_param + fn->n_params - 1];
        fn->param_bytes = mg_func_param_offset(fn, m->vars.at, fn->n_params - 1) + mg_var_bytes(last);
    }
}

static void release(struct parser *p)
{
    free(p->syms);
    mg_vec_release(&p->undo);
    mg_vec_release(&p->scope_parent);
    mg_map_release(&p->inner_labels);
    mg_vec_release(&p->fixups);
    mg_vec_release(&p->late_fixups);
    mg_vec_release(&p->init_fixups);
    mg_vec_release(&p->stack);
    mg_vec_release(&p->form_of);
    if (p->c_locale) freelocale((locale_t)p->c_locale);
}

#define PADDING 32 /* NULs behind the text: scans look a few characters ahead */

enum mg_err mg_ptx_parse(const char *text, size_t bytes, const char *file_name, struct mg_module **out,
                         struct mg_diag *d)
{
    *out = NULL;
    while (bytes && !text[bytes - 1]) bytes--;
    if (bytes > UINT32_MAX / 2)
        return mg_diag_add(d, MG_ERR_LIMIT, MG_SEV_ERROR, file_name, 0, 0, NULL, "text is larger than 2 GB");
    char *copy = malloc(bytes + PADDING);
    if (!copy) return mg_diag_add(d, MG_ERR_NO_MEMORY, MG_SEV_ERROR, file_name, 0, 0, NULL, "no memory for the text");
    memcpy(copy, text, bytes);
    memset(copy + bytes, 0, PADDING);
    struct parser p = {.text = copy,
                       .at = copy,
                       .line_start = copy,
                       .end = copy + bytes,
                       .line = 1,
                       .file = file_name,
                       .d = d,
                       .m = mg_module_new(),
                       .reg_budget = (1u << 20) + 4 * (uint64_t)bytes};
    struct mg_module *m = p.m;
    m->file = file_name ? mg_xstrdup(file_name) : NULL;
    m->address_size = 64;
    m->marked = !strncmp(copy, MG_PTX_MARKED, sizeof MG_PTX_MARKED - 1);
    *mg_vec_push(&p.scope_parent) = 0;
    mg_vec_reserve(&m->nodes, (uint32_t)(bytes / 30) + 16); /* what compilers write fits: no array moves */
    mg_vec_reserve(&m->opnds, (uint32_t)(bytes / 16) + 16);
    mg_text_id(text, bytes, m->id);
    parse_items(&p);
    mg_ptx_settle_module(&p);
    settle_definitions(&p);
    if (!p.n_errors && !p.seen_version)
        (void)mg_ptx_fail_at(&p, 1, 1, "PTX begins with .version", "no .version directive");
    bool ok = !p.n_errors; /* without .target sm stays 0: old texts exist that have none */
    release(&p);
    free(copy);
    if (!ok) {
        mg_module_free(m);
        return MG_ERR_INPUT;
    }
    *out = m;
    return MG_ERR_OK;
}
