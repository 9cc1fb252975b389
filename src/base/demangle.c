/* Recursive descent over a mangled name. A type is two texts, what stands before and behind the
 * declared thing ("void (*" and ")(int)"); all texts live in one arena that is limited in size, since
 * substitutions can double a text with every use. One file, since a name, a type and an expression each hold the
 * others. */
#include "base/demangle.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"

#define MAX_SUBS  400
#define MAX_DEPTH 200
#define MAX_BYTES ((size_t)1 << 20)
#define MAX_AGAIN 8

struct text {
    const char *l, *r;
};
struct arg {
    struct text t;
    struct arg *pack;
    uint32_t n_pack;
    bool is_pack;
};
struct args {
    struct arg *at;
    uint32_t n;
};
struct state {
    const char *p;
    struct mg_arena mem;
    struct text subs[MAX_SUBS];
    const char
        *again[MAX_SUBS]; /* those that have T_ in them: they are read again, since it means what it means there */
    uint32_t again_depth, params_read;
    uint32_t n_subs, depth;
    struct args args;             /* what T_ means: of the innermost name that has template arguments */
    bool is_template, is_special; /* of the last name: ends in <...>; a constructor, destructor or conversion */
    uint32_t pack_at, pack_n;     /* while a pack expansion is read: its turn, and how many there are */
    bool in_pack, in_lambda, in_conversion, bad;
};

static bool read_type(struct state *s, struct text *out);
static bool read_name(struct state *s, struct text *out, const char **quals);
static bool read_encoding(struct state *s, struct text *out, bool is_local);
static bool read_template_args(struct state *s, struct text *out);

static const char *concat(struct state *s, const char *a, const char *b, const char *c)
{
    size_t na = strlen(a), nb = strlen(b), nc = strlen(c);
    if (s->bad || s->mem.total_bytes > MAX_BYTES || na + nb + nc > MAX_BYTES / 8) {
        s->bad = true;
        return "";
    }
    char *t = mg_arena_alloc(&s->mem, na + nb + nc + 1);
    memcpy(t, a, na);
    memcpy(t + na, b, nb);
    memcpy(t + na + nb, c, nc + 1);
    return t;
}

static void add_sub(struct state *s, struct text t)
{
    if (s->again_depth) return;
    if (s->n_subs < MAX_SUBS)
        s->subs[s->n_subs++] = t;
    else
        s->bad = true;
}

static bool eat(struct state *s, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(s->p, word, n)) return false;
    s->p += n;
    return true;
}

/* "_" is 0, "0_" is 1, "1_" is 2 ...; base 36 for substitutions, 10 else. */
static bool read_seq(struct state *s, unsigned base, uint32_t *out)
{
    uint32_t v = 0;
    if (eat(s, "_")) {
        *out = 0;
        return true;
    }
    while (*s->p && *s->p != '_') {
        char c = *s->p++;
        unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 10 : 99;
        if (d >= base || v > 100000) return false;
        v = v * base + d;
    }
    *out = v + 1;
    return eat(s, "_");
}

/* ---- names ------------------------------------------------------------------------------------- */

static bool read_source_name(struct state *s, const char **out)
{
    size_t n = 0;
    if (*s->p < '1' || *s->p > '9') return false;
    while (*s->p >= '0' && *s->p <= '9' && n < 100000) n = n * 10 + (size_t)(*s->p++ - '0');
    if (strnlen(s->p, n) < n) return false;
    if (n > 9 && !strncmp(s->p, "_GLOBAL_", 8) && s->p[9] == 'N')
        *out = "(anonymous namespace)";
    else
        *out = mg_arena_strndup(&s->mem, s->p, n);
    s->p += n;
    while (eat(s, "B")) { /* ABI tag */
        const char *tag;
        if (!read_source_name(s, &tag)) return false;
        *out = concat(s, *out, "[abi:", concat(s, tag, "]", ""));
    }
    return true;
}

/* A type behind cv. Its T_ mean the arguments that follow it, where there are any. */
static bool read_conversion(struct state *s, const char **out)
{
    struct args before = s->args;
    struct text t, args;
    const char *from = s->p;
    uint32_t params = s->params_read;
    bool outer = s->in_conversion;
    s->in_conversion = true;
    bool ok = read_type(s, &t);
    const char *behind = s->p;
    if (ok && *s->p == 'I' && s->params_read > params) {
        s->again_depth++;
        ok = read_template_args(s, &args);
        s->p = from;
        ok = ok && read_type(s, &t);
        s->again_depth--;
        s->p = behind;
        s->args = before;
    }
    s->in_conversion = outer;
    if (ok) *out = concat(s, "operator ", t.l, t.r);
    return ok;
}

static bool read_operator(struct state *s, const char **out)
{
    static const struct {
        char code[3];
        const char *text;
    } ops[] = {{"nw", "operator new"}, {"na", "operator new[]"}, {"dl", "operator delete"}, {"da", "operator delete[]"},
               {"ng", "operator-"},    {"ad", "operator&"},      {"de", "operator*"},       {"co", "operator~"},
               {"pl", "operator+"},    {"mi", "operator-"},      {"ml", "operator*"},       {"dv", "operator/"},
               {"rm", "operator%"},    {"an", "operator&"},      {"or", "operator|"},       {"eo", "operator^"},
               {"aS", "operator="},    {"pL", "operator+="},     {"mI", "operator-="},      {"mL", "operator*="},
               {"dV", "operator/="},   {"rM", "operator%="},     {"aN", "operator&="},      {"oR", "operator|="},
               {"eO", "operator^="},   {"ls", "operator<<"},     {"rs", "operator>>"},      {"lS", "operator<<="},
               {"rS", "operator>>="},  {"eq", "operator=="},     {"ne", "operator!="},      {"lt", "operator<"},
               {"gt", "operator>"},    {"le", "operator<="},     {"ge", "operator>="},      {"nt", "operator!"},
               {"aa", "operator&&"},   {"oo", "operator||"},     {"pp", "operator++"},      {"mm", "operator--"},
               {"cm", "operator,"},    {"pm", "operator->*"},    {"pt", "operator->"},      {"cl", "operator()"},
               {"ix", "operator[]"}};
    for (size_t i = 0; i < MG_COUNT_OF(ops); i++)
        if (eat(s, ops[i].code)) {
            *out = ops[i].text;
            return true;
        }
    if (!eat(s, "cv")) return false;
    s->is_special = true;
    return read_conversion(s, out);
}

/* "(int, float)" of parameters up to E or the end. */
static bool read_params(struct state *s, const char **out)
{
    const char *list = "";
    uint32_t n = 0;
    if (s->p[0] == 'v' && (!s->p[1] || s->p[1] == 'E' || s->p[1] == '.')) {
        s->p++;
        *out = "()";
        return true;
    }
    while (*s->p && *s->p != 'E' && *s->p != '.') {
        struct text t;
        if (!read_type(s, &t)) return false;
        if (!*t.l && !*t.r) continue; /* an empty pack */
        list = concat(s, list, n++ ? ", " : "", concat(s, t.l, t.r, ""));
    }
    *out = concat(s, "(", list, ")");
    return true;
}

/* Closures and unnamed types: UlvE_ , Ut_ */
static bool read_unnamed(struct state *s, const char **out)
{
    uint32_t n;
    char text[16];
    const char *params = NULL;
    if (eat(s, "Ul")) {
        bool outer = s->in_lambda;
        s->in_lambda = true;
        if (!read_params(s, &params) || !eat(s, "E")) return false;
        s->in_lambda = outer;
    } else if (!eat(s, "Ut")) {
        return false;
    }
    if (!read_seq(s, 10, &n)) return false;
    size_t at = sizeof text - 1;
    text[at] = 0;
    for (n++; n && at; n /= 10) text[--at] = (char)('0' + n % 10);
    *out = params ? concat(s, concat(s, "{lambda", params, "#"), text + at, "}")
                  : concat(s, "{unnamed type#", text + at, "}");
    return true;
}

static bool read_unqualified(struct state *s, const char *last, const char **out)
{
    eat(s, "L"); /* internal linkage */
    if (*s->p >= '1' && *s->p <= '9') return read_source_name(s, out);
    if (*s->p == 'U') return read_unnamed(s, out);
    if (s->p[0] == 'C' && s->p[1] == 'I' && s->p[2]) { /* inherited from that class */
        struct text of;
        s->p += 3;
        *out = last;
        s->is_special = true;
        return read_type(s, &of);
    }
    if ((s->p[0] == 'C' && strchr("123", s->p[1])) || (s->p[0] == 'D' && strchr("012", s->p[1]))) {
        if (!s->p[1]) return false;
        *out = concat(s, *s->p == 'D' ? "~" : "", last, "");
        s->p += 2;
        s->is_special = true;
        return true;
    }
    return read_operator(s, out);
}

/* What T_ stands for; the parameters of a generic lambda are auto. */
static bool find_param(struct state *s, uint32_t ix, struct text *out)
{
    s->params_read++;
    if (s->in_lambda) {
        char text[24];
        snprintf(text, sizeof text, "auto:%u", ix + 1);
        *out = (struct text){mg_arena_strndup(&s->mem, text, strlen(text)), ""};
        return true;
    }
    *out = (struct text){"", ""};
    if (ix >= s->args.n) return s->in_conversion;
    const struct arg *a = &s->args.at[ix];
    *out = a->t;
    if (!a->is_pack) return true;
    if (!s->in_pack) return true; /* nvcc leaves the expansion around it out, of which c++filt makes any one of them */
    s->pack_n = a->n_pack;
    *out = s->pack_at < a->n_pack ? a->pack[s->pack_at].t : (struct text){"", ""};
    return true;
}

static bool read_again(struct state *s, const char *from, struct text *out)
{
    const char *behind = s->p;
    struct text t;
    struct args args = s->args;
    bool is_template = s->is_template, is_special = s->is_special;
    s->p = from;
    s->again_depth++;
    if (s->again_depth < MAX_AGAIN && read_type(s, &t)) *out = t;
    s->again_depth--;
    s->p = behind;
    s->args = args;
    s->is_template = is_template;
    s->is_special = is_special;
    return !s->bad;
}

static bool read_substitution(struct state *s, struct text *out)
{
    static const struct {
        const char *code, *text, *whole;
    } known[] = {{"Sa", "std::allocator", NULL},
                 {"Sb", "std::basic_string", NULL},
                 {"Ss", "std::string", "std::basic_string<char, std::char_traits<char>, std::allocator<char> >"},
                 {"Si", "std::istream", "std::basic_istream<char, std::char_traits<char> >"},
                 {"So", "std::ostream", "std::basic_ostream<char, std::char_traits<char> >"},
                 {"Sd", "std::iostream", "std::basic_iostream<char, std::char_traits<char> >"}};
    uint32_t ix;
    for (size_t i = 0; i < MG_COUNT_OF(known); i++)
        if (eat(s, known[i].code)) {
            bool is_class = known[i].whole && (*s->p == 'C' || *s->p == 'D'); /* of a constructor or destructor */
            *out = (struct text){is_class ? known[i].whole : known[i].text, ""};
            return true;
        }
    if (!eat(s, "S") || !read_seq(s, 36, &ix) || ix >= s->n_subs) return false;
    *out = s->subs[ix];
    return !s->again[ix] || read_again(s, s->again[ix], out);
}

static bool read_template_param(struct state *s, struct text *out)
{
    uint32_t ix;
    return eat(s, "T") && read_seq(s, 10, &ix) && find_param(s, ix, out);
}

/* The last part of "a::b<c::d>" without template arguments: what a constructor is called. */
static const char *last_part(struct state *s, const char *name)
{
    int depth = 0;
    const char *from = name, *end = name + strlen(name);
    for (const char *c = name; *c; c++) {
        if (*c == '<') {
            if (!depth++) end = c;
        } else if (*c == '>') {
            depth--;
        } else if (!depth && c[0] == ':' && c[1] == ':') {
            from = c + 2;
            end = name + strlen(name);
        } else if (!depth && *c == '[' && end > c) { /* a tag of the ABI */
            end = c;
        }
    }
    return mg_arena_strndup(&s->mem, from, end > from ? (size_t)(end - from) : 0);
}

/* " const volatile restrict" */
static const char *read_qualifiers(struct state *s)
{
    bool is_const = false, is_volatile = false, is_restrict = false;
    for (; *s->p && strchr("rVK", *s->p); s->p++) {
        is_const = is_const || *s->p == 'K';
        is_volatile = is_volatile || *s->p == 'V';
        is_restrict = is_restrict || *s->p == 'r';
    }
    return concat(s, is_const ? " const" : "", is_volatile ? " volatile" : "", is_restrict ? " restrict" : "");
}

/* "f<int>", "operator<< <int>" */
static const char *with_args(struct state *s, const char *name, const char *args)
{
    size_t n = strlen(name);
    return concat(s, name, n && name[n - 1] == '<' ? " " : "", args);
}

/* N [qualifiers] part... E */
static bool read_nested(struct state *s, struct text *out, const char **quals)
{
    const char *name = "", *q;
    if (!eat(s, "N")) return false;
    q = read_qualifiers(s);
    if (eat(s, "R"))
        q = concat(s, q, " &", "");
    else if (eat(s, "O"))
        q = concat(s, q, " &&", "");
    while (!eat(s, "E")) {
        struct text t;
        const char *part;
        if (s->bad) return false;
        if (*s->p != 'I') s->is_special = false;
        if (*s->p == 'S' && s->p[1] != 't') {
            if (!read_substitution(s, &t)) return false;
            name = concat(s, t.l, t.r, "");
            s->is_template = false;
            continue;
        }
        if (eat(s, "St")) {
            name = "std";
            continue;
        }
        eat(s, "M"); /* what follows stands in this member's initializer */
        if (*s->p == 'T') {
            if (!read_template_param(s, &t)) return false;
            name = concat(s, t.l, t.r, "");
        } else if (*s->p == 'I') {
            if (!read_template_args(s, &t)) return false;
            name = with_args(s, name, t.l);
            s->is_template = true;
        } else {
            if (!read_unqualified(s, last_part(s, name), &part)) return false;
            name = *name ? concat(s, name, "::", part) : part;
            s->is_template = false;
        }
        if (*s->p != 'E') add_sub(s, (struct text){name, ""});
    }
    if (quals) *quals = q;
    *out = (struct text){name, ""};
    return true;
}

/* Z encoding E entity: a name inside a function */
static bool read_local(struct state *s, struct text *out, const char **quals)
{
    struct text in, entity;
    uint32_t n;
    if (!eat(s, "Z") || !read_encoding(s, &in, true) || !eat(s, "E")) return false;
    if (eat(s, "s")) {
        entity = (struct text){"string literal", ""};
    } else {
        if (eat(s, "d") && !read_seq(s, 10, &n)) return false;
        if (!read_name(s, &entity, quals)) return false;
    }
    if (*s->p == '_') { /* discriminator */
        s->p++;
        bool wide = eat(s, "_");
        while (*s->p >= '0' && *s->p <= '9') {
            s->p++;
            if (!wide) break;
        }
        if (wide) eat(s, "_");
    }
    *out = (struct text){concat(s, in.l, "::", entity.l), ""};
    return true;
}

static bool read_name(struct state *s, struct text *out, const char **quals)
{
    const char *part;
    s->is_template = s->is_special = false;
    if (s->depth > MAX_DEPTH || s->bad) return false;
    if (*s->p == 'N') return read_nested(s, out, quals);
    if (*s->p == 'Z') return read_local(s, out, quals);
    if (*s->p == 'S' && s->p[1] != 't') {
        if (!read_substitution(s, out)) return false;
    } else {
        bool in_std = eat(s, "St");
        if (!read_unqualified(s, "", &part)) return false;
        *out = (struct text){in_std ? concat(s, "std::", part, "") : part, ""};
        if (*s->p == 'I') add_sub(s, *out);
    }
    if (*s->p == 'I') {
        struct text args;
        if (!read_template_args(s, &args)) return false;
        out->l = with_args(s, out->l, args.l);
        s->is_template = true;
    }
    return true;
}

/* ---- template arguments --------------------------------------------------------------------------- */

static bool read_literal(struct state *s, struct text *out)
{
    static const struct {
        char type;
        const char *suffix;
    } suffixes[] = {{'i', ""}, {'j', "u"}, {'l', "l"}, {'m', "ul"}, {'x', "ll"}, {'y', "ull"}};
    struct text type;
    char code = *s->p;
    if (eat(s, "_Z")) {
        return read_encoding(s, out, false) && eat(s, "E");
    }
    if (!read_type(s, &type)) return false;
    bool negative = eat(s, "n");
    size_t n = strcspn(s->p, "E");
    if (!s->p[n]) return false;
    const char *digits = mg_arena_strndup(&s->mem, s->p, n), *value = concat(s, negative ? "-" : "", digits, "");
    s->p += n + 1;
    *out = (struct text){NULL, ""};
    if (code == 'b' && n == 1) out->l = *digits == '1' ? "true" : "false";
    for (size_t i = 0; !out->l && i < MG_COUNT_OF(suffixes); i++)
        if (suffixes[i].type == code) out->l = concat(s, value, suffixes[i].suffix, "");
    if (!out->l && (code == 'f' || code == 'd')) value = concat(s, "[", value, "]");
    if (!out->l) out->l = concat(s, concat(s, "(", type.l, type.r), ")", value);
    return true;
}

/* ---- expressions: in decltype and template arguments ----------------------------------------------- */

struct expression {
    const char *text;
    bool is_simple; /* stands without brackets beside an operator */
};

static bool read_expression(struct state *s, struct expression *out);

/* An operand that follows, in brackets unless it needs none. */
static bool read_operand(struct state *s, const char **out)
{
    struct expression e;
    if (!read_expression(s, &e)) return false;
    *out = e.is_simple ? e.text : concat(s, "(", e.text, ")");
    return true;
}

/* fp_ fp0_ ... : a parameter of the function */
static bool read_parameter(struct state *s, const char **out)
{
    char text[24];
    size_t n = strspn(s->p, "0123456789");
    unsigned long at = n ? strtoul(s->p, NULL, 10) + 2 : 1;
    if (n > 5 || s->p[n] != '_') return false;
    s->p += n + 1;
    snprintf(text, sizeof text, "{parm#%lu}", at);
    *out = mg_arena_strndup(&s->mem, text, strlen(text));
    return true;
}

/* Behind sr: a type, or namespaces up to E, and a name in it with its template arguments. */
/* A name with its template arguments. */
static bool read_simple_name(struct state *s, const char **out)
{
    struct args before = s->args;
    struct text args;
    if (!(*s->p >= '1' && *s->p <= '9' ? read_source_name(s, out) : eat(s, "on") && read_operator(s, out)))
        return false;
    if (*s->p != 'I') return true;
    if (!read_template_args(s, &args)) return false;
    s->args = before;
    *out = with_args(s, *out, args.l);
    return true;
}

static bool read_scoped(struct state *s, struct expression *out)
{
    const char *scope = "", *name;
    struct text of;
    if (*s->p >= '1' && *s->p <= '9') {
        while (!eat(s, "E")) {
            if (!read_simple_name(s, &name)) return false;
            scope = concat(s, scope, *scope ? "::" : "", name);
        }
    } else {
        if (!read_type(s, &of)) return false;
        scope = concat(s, of.l, of.r, "");
    }
    if (!read_simple_name(s, &name)) return false;
    *out = (struct expression){concat(s, scope, "::", name), !strchr(name, '<')};
    return true;
}

/* A member of what stands before: dt is ".", pt "->". */
static bool read_member(struct state *s, const char *mark, const char **out)
{
    const char *of, *name;
    if (!read_operand(s, &of) || !read_simple_name(s, &name)) return false;
    *out = concat(s, of, mark, name);
    return true;
}

/* Expressions up to E. */
static bool read_list(struct state *s, const char *left, const char *right, const char **out)
{
    const char *list = "";
    struct expression e;
    for (uint32_t n = 0; !eat(s, "E"); n++) {
        if (!read_expression(s, &e)) return false;
        list = concat(s, list, n ? ", " : "", e.text);
    }
    *out = concat(s, left, list, right);
    return true;
}

static bool read_call(struct state *s, const char **out)
{
    const char *list, *f;
    if (!read_operand(s, &f) || !read_list(s, "(", ")", &list)) return false;
    *out = concat(s, f, list, "");
    return true;
}

/* "(long)(x)", "(S)(1, 2)" */
static bool read_cast(struct state *s, const char **out)
{
    struct text t;
    const char *of;
    if (!read_type(s, &t) || !(eat(s, "_") ? read_list(s, "(", ")", &of) : read_operand(s, &of))) return false;
    *out = concat(s, concat(s, "(", t.l, t.r), ")", of);
    return true;
}

/* "static_cast<int>(x)" */
static bool read_named_cast(struct state *s, const char *name, const char **out)
{
    struct text t;
    struct expression e;
    if (!read_type(s, &t) || !read_expression(s, &e)) return false;
    *out = concat(s, concat(s, name, "<", t.l), concat(s, t.r, ">(", e.text), ")");
    return true;
}

/* Behind sp: the expression for each of the pack; of parameters of the function alone "{parm#1}...". */
static bool read_pack(struct state *s, const char **out)
{
    const char *from = s->p, *list = "", *end = NULL;
    struct expression e;
    uint32_t n = 1, n_subs = 0;
    bool outer = s->in_pack;
    for (uint32_t i = 0; i < n; i++) {
        s->p = from;
        s->in_pack = true;
        s->pack_at = i;
        s->pack_n = UINT32_MAX;
        s->again_depth += i > 0; /* what it names was noted the first time */
        bool ok = read_expression(s, &e);
        s->again_depth -= i > 0;
        if (!ok) return false;
        end = s->p;
        n_subs = s->n_subs;
        if (s->pack_n == UINT32_MAX) {
            list = concat(s, e.is_simple ? "" : "(", e.text, e.is_simple ? "..." : ")...");
            break;
        }
        n = s->pack_n;
        if (n) list = concat(s, list, i ? ", " : "", e.text);
    }
    s->in_pack = outer;
    s->n_subs = n_subs;
    s->p = end;
    *out = list;
    return true;
}

/* How many a pack has. */
static bool read_pack_length(struct state *s, const char **out)
{
    char text[16];
    struct text t;
    bool outer = s->in_pack;
    s->in_pack = true;
    s->pack_at = 0;
    s->pack_n = UINT32_MAX;
    bool ok = read_template_param(s, &t);
    s->in_pack = outer;
    snprintf(text, sizeof text, "%u", s->pack_n);
    *out = mg_arena_strndup(&s->mem, text, strlen(text));
    return ok && s->pack_n != UINT32_MAX;
}

/* "(a)?(b) : (c)" */
static bool read_condition(struct state *s, const char **out)
{
    const char *a, *b, *c;
    if (!read_operand(s, &a) || !read_operand(s, &b) || !read_operand(s, &c)) return false;
    *out = concat(s, concat(s, a, "?", b), " : ", c);
    return true;
}

static bool read_braced(struct state *s, const char **out)
{
    struct text t;
    const char *list;
    if (!read_type(s, &t) || !read_list(s, "{", "}", &list)) return false;
    *out = concat(s, t.l, t.r, list);
    return true;
}

/* Those that are no operator between operands; *known: it is one of them. */
static bool read_other(struct state *s, const char **out, bool *known)
{
    const char *of;
    struct expression e;
    *known = true;
    if (eat(s, "cl")) return read_call(s, out);
    if (eat(s, "cv")) return read_cast(s, out);
    if (eat(s, "sc")) return read_named_cast(s, "static_cast", out);
    if (eat(s, "dc")) return read_named_cast(s, "dynamic_cast", out);
    if (eat(s, "cc")) return read_named_cast(s, "const_cast", out);
    if (eat(s, "rc")) return read_named_cast(s, "reinterpret_cast", out);
    if (eat(s, "sp")) return read_pack(s, out);
    if (eat(s, "sZ")) return read_pack_length(s, out);
    if (eat(s, "qu")) return read_condition(s, out);
    if (eat(s, "tl")) return read_braced(s, out);
    if (eat(s, "il")) return read_list(s, "{", "}", out);
    if (eat(s, "dt")) return read_member(s, ".", out);
    if (eat(s, "pt")) return read_member(s, "->", out);
    if (eat(s, "ix")) {
        if (!read_operand(s, &of) || !read_expression(s, &e)) return false;
        *out = concat(s, of, concat(s, "[", e.text, "]"), "");
        return true;
    }
    const char *before = eat(s, "pp_") ? "++" : eat(s, "mm_") ? "--" : eat(s, "sz") ? "sizeof " : NULL;
    if (!before) {
        *known = false;
        return false;
    }
    if (!read_operand(s, &of)) return false;
    *out = concat(s, before, of, "");
    return true;
}

static bool read_operation(struct state *s, const char **out)
{
    static const char unary[][3] = {"ng", "ad", "de", "co", "nt"};
    const char *op, *a, *b;
    bool is_unary = false;
    for (size_t i = 0; i < MG_COUNT_OF(unary); i++) is_unary = is_unary || !strncmp(s->p, unary[i], 2);
    if (!read_operator(s, &op) || s->is_special || strlen(op) > 11) return false; /* no new, delete, conversion */
    op += sizeof "operator" - 1;
    if (!read_operand(s, &a)) return false;
    if (is_unary) {
        *out = concat(s, op, a, "");
        return true;
    }
    if (!read_operand(s, &b)) return false;
    *out = concat(s, a, op, b);
    if (!strcmp(op, ">")) *out = concat(s, "(", *out, ")");
    return true;
}

/* What is not read here: new and delete, throw, folds, noexcept, typeid, lengths of packs of parameters. */
static bool read_expression(struct state *s, struct expression *out)
{
    struct text t;
    bool ok;
    *out = (struct expression){0};
    if (s->bad || ++s->depth > MAX_DEPTH) return false;
    if (*s->p == 'T' || *s->p == 'L') {
        ok = *s->p == 'T' ? read_template_param(s, &t) : eat(s, "L") && read_literal(s, &t);
        if (ok) out->text = concat(s, t.l, t.r, "");
    } else if (eat(s, "fp")) {
        out->is_simple = true;
        ok = read_parameter(s, &out->text);
    } else if (*s->p >= '1' && *s->p <= '9') {
        ok = read_simple_name(s, &out->text);
        out->is_simple = ok && !strchr(out->text, '<');
    } else if (eat(s, "gssr")) {
        ok = read_scoped(s, out);
        if (ok) *out = (struct expression){concat(s, "::", out->text, ""), false};
    } else if (eat(s, "sr")) {
        ok = read_scoped(s, out);
    } else if (eat(s, "st")) {
        ok = read_type(s, &t);
        if (ok) out->text = concat(s, "sizeof (", concat(s, t.l, t.r, ""), ")");
    } else {
        bool known;
        ok = read_other(s, &out->text, &known);
        if (!known) ok = read_operation(s, &out->text);
    }
    s->depth--;
    return ok && !s->bad;
}

/* A pack of nothing, or an expansion of one. */
static bool is_nothing(const struct arg *a)
{
    return a->is_pack ? !a->n_pack : !*a->t.l && !*a->t.r;
}

static bool read_arg(struct state *s, struct arg *out)
{
    struct expression e;
    *out = (struct arg){0};
    if (s->bad || s->depth > MAX_DEPTH) return false;
    if (eat(s, "L")) return read_literal(s, &out->t);
    if (eat(s, "J")) {
        uint32_t cap = 0;
        out->is_pack = true;
        const char *list = "";
        while (!eat(s, "E")) {
            if (out->n_pack == cap) {
                struct arg *more = mg_arena_array(&s->mem, struct arg, cap = cap ? cap * 2 : 4);
                if (out->n_pack) memcpy(more, out->pack, out->n_pack * sizeof *more);
                out->pack = more;
            }
            struct arg *a = &out->pack[out->n_pack];
            if (!read_arg(s, a)) return false;
            if (is_nothing(a)) continue;
            list = concat(s, list, out->n_pack++ ? ", " : "", concat(s, a->t.l, a->t.r, ""));
        }
        out->t = (struct text){list, ""};
        return true;
    }
    if (eat(s, "XadL_Z")) { /* a function's address */
        if (!read_encoding(s, &out->t, false)) return false;
        out->t = (struct text){concat(s, "&(", out->t.l, ")"), ""};
        return eat(s, "EE");
    }
    if (eat(s, "X")) {
        if (!read_expression(s, &e) || !eat(s, "E")) return false;
        out->t = (struct text){e.text, ""};
        return true;
    }
    return read_type(s, &out->t);
}

static bool read_template_args(struct state *s, struct text *out)
{
    struct args args = {0};
    uint32_t cap = 0;
    const char *list = "";
    bool any = false, empty = false, special = s->is_special; /* empty: the last one is a pack of nothing */
    if (!eat(s, "I")) return false;
    s->depth++;
    while (!eat(s, "E")) {
        if (args.n == cap) {
            struct arg *more = mg_arena_array(&s->mem, struct arg, cap = cap ? cap * 2 : 4);
            if (args.n) memcpy(more, args.at, args.n * sizeof *more);
            args.at = more;
        }
        struct arg *a = &args.at[args.n++];
        if (!read_arg(s, a)) return false;
        empty = is_nothing(a);
        if (empty) continue;
        list = concat(s, list, any ? ", " : "", concat(s, a->t.l, a->t.r, ""));
        any = true;
    }
    s->depth--;
    size_t n = strlen(list);
    *out = (struct text){concat(s, "<", list, n && list[n - 1] == '>' && !empty ? " >" : ">"), ""};
    s->args = args;
    s->is_special = special;
    return true;
}

/* ---- types ----------------------------------------------------------------------------------------- */

static const char *builtin(const char *p, size_t *used)
{
    static const struct {
        const char *code, *text;
    } table[] = {{"v", "void"},
                 {"w", "wchar_t"},
                 {"b", "bool"},
                 {"c", "char"},
                 {"a", "signed char"},
                 {"h", "unsigned char"},
                 {"s", "short"},
                 {"t", "unsigned short"},
                 {"i", "int"},
                 {"j", "unsigned int"},
                 {"l", "long"},
                 {"m", "unsigned long"},
                 {"x", "long long"},
                 {"y", "unsigned long long"},
                 {"n", "__int128"},
                 {"o", "unsigned __int128"},
                 {"f", "float"},
                 {"d", "double"},
                 {"e", "long double"},
                 {"g", "__float128"},
                 {"z", "..."},
                 {"Dn", "decltype(nullptr)"},
                 {"Dh", "half"},
                 {"Di", "char32_t"},
                 {"Ds", "char16_t"},
                 {"Du", "char8_t"},
                 {"Da", "auto"},
                 {"Dc", "decltype(auto)"},
                 {"Df", "decimal32"},
                 {"Dd", "decimal64"},
                 {"De", "decimal128"},
                 {"DF16_", "_Float16"},
                 {"DF16b", "std::bfloat16_t"}};
    for (size_t i = 0; i < MG_COUNT_OF(table); i++) {
        *used = strlen(table[i].code);
        if (!strncmp(p, table[i].code, *used)) return table[i].text;
    }
    return NULL;
}

/* What stands behind a function's or array's type begins with a space. */
static const char *behind_space(const char *r)
{
    return r + (*r == ' ');
}

/* Puts `mark` ("*", "&") on a type; in front of a function or array behind it, in parentheses. */
static struct text pointed(struct state *s, struct text t, const char *mark)
{
    size_t n = strlen(t.l);
    bool in_pointer = n > 1 && t.l[n - 1] == '*' && t.l[n - 2] == '(';
    const char *behind = behind_space(t.r);
    if (*behind == '(' || *behind == '[')
        return (struct text){concat(s, t.l, in_pointer ? "(" : " (", mark),
                             concat(s, ")", *behind == '[' ? " " : "", behind)};
    return (struct text){concat(s, t.l, mark, ""), t.r};
}

static bool read_function_type(struct state *s, struct text *out)
{
    struct text result;
    const char *params;
    if (!eat(s, "F")) return false;
    eat(s, "Y");
    if (!read_type(s, &result) || !read_params(s, &params)) return false;
    if (!eat(s, "E")) return false;
    *out = (struct text){result.l, concat(s, *result.r ? "" : " ", params, result.r)};
    return true;
}

static bool read_array_type(struct state *s, struct text *out)
{
    size_t n = strspn(s->p, "0123456789");
    const char *bound = mg_arena_strndup(&s->mem, s->p, n);
    struct text param;
    s->p += n;
    if (*s->p == 'T') {
        if (!read_template_param(s, &param)) return false;
        bound = param.l;
    }
    if (!eat(s, "_") || !read_type(s, out)) return false;
    out->r = concat(s, concat(s, " [", bound, "]"), behind_space(out->r), "");
    return true;
}

static bool read_pack_type(struct state *s, struct text *out)
{
    const char *from = s->p, *list = "", *end = NULL;
    uint32_t n_subs = 0, n = 1;
    bool outer = s->in_pack;
    for (uint32_t i = 0; i < n; i++) {
        struct text t;
        s->p = from;
        s->in_pack = true;
        s->pack_at = i;
        s->pack_n = UINT32_MAX;
        if (i) s->n_subs = n_subs - (n_subs > 0);
        if (!read_type(s, &t)) return false;
        end = s->p;
        if (i == 0) n_subs = s->n_subs;
        if (s->in_lambda && s->pack_n == UINT32_MAX) {
            list = concat(s, "(", concat(s, t.l, t.r, ""), ")...");
            break;
        }
        if (s->pack_n == UINT32_MAX) return false;
        if (i == 0 && !s->pack_n) break;
        n = s->pack_n;
        list = concat(s, list, i ? ", " : "", concat(s, t.l, t.r, ""));
    }
    s->in_pack = outer;
    s->n_subs = n_subs;
    s->p = end;
    *out = (struct text){list, ""};
    return true;
}

static bool read_qualified(struct state *s, struct text *out)
{
    const char *q = read_qualifiers(s);
    if (*s->p == 'F' ? !read_function_type(s, out) : !read_type(s, out))
        return false; /* one type with its qualifiers */
    size_t n = strlen(out->l);
    if (n > 6 && !strcmp(out->l + n - 6, " const") && !strncmp(q, " const", 6)) q += 6; /* it is, already */
    if (*behind_space(out->r) == '(')
        out->r = concat(s, out->r, q, "");
    else
        out->l = concat(s, out->l, q, "");
    return true;
}

static bool read_compound(struct state *s, struct text *out)
{
    size_t used;
    const char *name;
    struct args before = s->args;
    struct text targs;
    bool ok;
    if (!*s->p) return false;
    if (strchr("rVK", *s->p)) return read_qualified(s, out);
    if (eat(s, "Dp")) return read_pack_type(s, out);
    if (eat(s, "Dv")) {
        used = strspn(s->p, "0123456789");
        name = concat(s, " __vector(", mg_arena_strndup(&s->mem, s->p, used), ")");
        s->p += used;
        if (!eat(s, "_") || !read_type(s, out)) return false;
        out->l = concat(s, out->l, name, "");
        return true;
    }
    switch (*s->p) {
    case 'P':
    case 'R':
    case 'O':
        name = *s->p == 'P' ? "*" : *s->p == 'R' ? "&" : "&&";
        s->p++;
        if (!read_type(s, out)) return false;
        used = strlen(out->l);
        if (*name == '&' && used && out->l[used - 1] == '&') return true; /* references collapse */
        *out = pointed(s, *out, name);
        return true;
    case 'F':
        return read_function_type(s, out);
    case 'A':
        s->p++;
        return read_array_type(s, out);
    case 'M': {
        struct text of, member;
        s->p++;
        if (!read_type(s, &of) || !read_type(s, &member)) return false;
        name = concat(s, of.l, of.r, "::*");
        *out = *member.r ? pointed(s, member, name) : (struct text){concat(s, member.l, " ", name), ""};
        return true;
    }
    case 'T':
        if (!read_template_param(s, out)) return false;
        if (*s->p != 'I' || s->in_conversion) return true; /* those are the operator's */
        add_sub(s, *out);
        ok = read_template_args(s, &targs);
        s->args = before;
        out->l = concat(s, out->l, ok ? targs.l : "", "");
        return ok;
    case 'D': {
        struct expression e;
        if (eat(s, "Do")) {
            if (!read_function_type(s, out)) return false;
            out->r = concat(s, out->r, " noexcept", "");
            return true;
        }
        if ((!eat(s, "Dt") && !eat(s, "DT")) || !read_expression(s, &e) || !eat(s, "E")) return false;
        *out = (struct text){concat(s, "decltype (", e.text, ")"), ""};
        return true;
    }
    default:
        break;
    }
    ok = read_name(s, out, NULL);
    s->args = before;
    return ok;
}

static bool read_type(struct state *s, struct text *out)
{
    size_t used;
    const char *name;
    if (s->bad || ++s->depth > MAX_DEPTH) return false;
    if ((name = builtin(s->p, &used))) {
        s->p += used;
        *out = (struct text){name, ""};
    } else if (eat(s, "u")) {
        if (!read_source_name(s, &name)) return false;
        *out = (struct text){name, ""};
    } else if (*s->p == 'S' && s->p[1] != 't') {
        if (!read_substitution(s, out)) return false;
        if (*s->p == 'I') {
            struct args before = s->args;
            struct text args;
            if (!read_template_args(s, &args)) return false;
            s->args = before;
            out->l = concat(s, out->l, args.l, "");
            add_sub(s, *out);
        }
    } else {
        const char *from = s->p;
        uint32_t params = s->params_read;
        if (!read_compound(s, out)) return false;
        add_sub(s, *out);
        if (!s->bad && !s->again_depth && s->params_read > params) s->again[s->n_subs - 1] = from;
    }
    s->depth--;
    return !s->bad;
}

/* Of a thunk: h or v with one number, or two. */
static bool read_call_offset(struct state *s)
{
    bool is_virtual = *s->p == 'v';
    if (!eat(s, "h") && !eat(s, "v")) return false;
    for (int i = 0; i < 1 + is_virtual; i++) {
        eat(s, "n");
        s->p += strspn(s->p, "0123456789");
        if (!eat(s, "_")) return false;
    }
    return true;
}

/* Tables of classes and what else compilers make: "vtable for A". */
static bool read_special(struct state *s, struct text *out)
{
    enum of { TYPE, NAME, ENCODING };
    static const struct {
        char code[4];
        enum of of;
        const char *text;
    } known[] = {{"TV", TYPE, "vtable for "},
                 {"TT", TYPE, "VTT for "},
                 {"TI", TYPE, "typeinfo for "},
                 {"TS", TYPE, "typeinfo name for "},
                 {"TW", NAME, "TLS wrapper function for "},
                 {"TH", NAME, "TLS init function for "},
                 {"GV", NAME, "guard variable for "},
                 {"GTt", ENCODING, "transaction clone for "},
                 {"GTn", ENCODING, "non-transaction clone for "},
                 {"Tc", ENCODING, "covariant return thunk to "},
                 {"Th", ENCODING, "non-virtual thunk to "},
                 {"Tv", ENCODING, "virtual thunk to "}};
    size_t i = 0;
    while (i < MG_COUNT_OF(known) && strncmp(s->p, known[i].code, strlen(known[i].code))) i++;
    if (i == MG_COUNT_OF(known)) return false;
    bool thunk = known[i].of == ENCODING && *s->p == 'T';
    s->p += strlen(known[i].code) - (thunk && s->p[1] != 'c');
    if (thunk && !read_call_offset(s)) return false;
    if (known[i].code[1] == 'c' && !read_call_offset(s)) return false;
    bool ok = known[i].of == TYPE   ? read_type(s, out)
              : known[i].of == NAME ? read_name(s, out, NULL)
                                    : read_encoding(s, out, true);
    if (ok) *out = (struct text){concat(s, known[i].text, out->l, out->r), ""};
    return ok;
}

/* is_local: that something stands in, which is said without what it returns. */
static bool read_encoding(struct state *s, struct text *out, bool is_local)
{
    const char *quals = "", *params;
    struct text result = {"", ""};
    if (s->bad || ++s->depth > MAX_DEPTH) return false;
    if (*s->p == 'T' || *s->p == 'G') {
        bool ok = read_special(s, out);
        s->depth--;
        return ok;
    }
    if (!read_name(s, out, &quals)) return false;
    bool returns = s->is_template && !s->is_special;
    s->depth--;
    if (!*s->p || *s->p == 'E' || *s->p == '.') return true; /* a variable */
    if (returns && !read_type(s, &result)) return false;
    if (!read_params(s, &params)) return false;
    const char *whole = concat(s, out->l, params, quals);
    if (returns && !is_local) whole = concat(s, result.l, *result.r ? "" : " ", concat(s, whole, result.r, ""));
    *out = (struct text){whole, ""};
    return true;
}

/* " [clone .part.0]": a copy that the compiler made of a part. */
static const char *add_clone(struct state *s, const char *name)
{
    size_t n = 1 + strspn(s->p + 1, "abcdefghijklmnopqrstuvwxyz_");
    while (s->p[n] == '.' && s->p[n + 1] >= '0' && s->p[n + 1] <= '9') n += 1 + strspn(s->p + n + 1, "0123456789");
    const char *suffix = mg_arena_strndup(&s->mem, s->p, n);
    s->p += n;
    return concat(s, name, " [clone ", concat(s, suffix, "]", ""));
}

char *mg_demangle(const char *name)
{
    struct text t;
    char *out = NULL;
    if (strncmp(name, "_Z", 2)) return NULL;
    struct state *s = mg_xcalloc(1, sizeof *s);
    s->p = name + 2;
    bool ok = read_encoding(s, &t, false);
    while (ok && *s->p == '.' && s->p[1]) t.l = add_clone(s, t.l);
    if (ok && !s->bad && !*s->p) out = mg_xstrdup(t.l);
    mg_arena_release(&s->mem);
    free(s);
    return out;
}

/* ---- patterns ------------------------------------------------------------------------------------- */

/* Cuts "void ns::f<T>(args)" to "ns::f<T>", in place; returns where that begins. */
static char *cut_to_function(char *text)
{
    static const char anonymous[] = "(anonymous namespace)";
    char *from = text;
    int depth = 0;
    for (char *c = text; *c; c++) {
        if (!strncmp(c, anonymous, sizeof anonymous - 1)) {
            c += sizeof anonymous - 2;
            continue;
        }
        depth += (*c == '<') - (*c == '>');
        if (depth) continue;
        if (*c == ' ') from = c + 1;
        if (*c == '(') {
            *c = 0;
            break;
        }
    }
    return from;
}

/* Behind the last "::" that is not in template arguments. */
static char *skip_namespaces(char *text)
{
    int depth = 0;
    for (char *c = text; *c; c++) {
        depth += (*c == '<' || *c == '(') - (*c == '>' || *c == ')');
        if (!depth && c[0] == ':' && c[1] == ':') text = c + 2;
    }
    return text;
}

/* The function's name in one that is not understood as a whole: the last of the leading <length><name>. */
static bool matches_part(const char *glob, const char *mangled)
{
    char plain[512] = "";
    const char *p = mangled + 2;
    if (strncmp(mangled, "_Z", 2)) return false;
    while (*p == 'N' || *p == 'L' || *p == 'K') p++;
    while (*p >= '0' && *p <= '9') {
        char *end;
        unsigned long n = strtoul(p, &end, 10);
        if (n > strlen(end) || n >= sizeof plain) break;
        memcpy(plain, end, n);
        plain[n] = 0;
        p = end + n;
    }
    return *plain && !fnmatch(glob, plain, 0);
}

bool mg_name_matches(const char *glob, const char *name)
{
    if (!fnmatch(glob, name, 0)) return true;
    char *text = mg_demangle(name);
    if (!text) return matches_part(glob, name);
    bool found = !fnmatch(glob, text, 0);
    for (int with_args = 1; !found && with_args >= 0; with_args--) {
        char *function = cut_to_function(text), *plain = skip_namespaces(function);
        if (!with_args) plain[strcspn(plain, "<")] = 0;
        found = !fnmatch(glob, function, 0) || !fnmatch(glob, plain, 0);
    }
    free(text);
    return found;
}

void mg_demangle_add(struct mg_buf *out, const char *name, size_t most)
{
    char *text = mg_demangle(name);
    if (text && strlen(text) > most) {
        char *plain = skip_namespaces(cut_to_function(text));
        size_t n = strcspn(plain, "<");
        mg_buf_add(out, plain, n);
        if (plain[n]) mg_buf_adds(out, "<..>");
    } else {
        mg_buf_adds(out, text ? text : name);
    }
    free(text);
}
