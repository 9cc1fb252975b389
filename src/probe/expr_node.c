/* Expressions of one-liners: reading them by strength of their operators, and their value where it is
 * known before the kernel runs. */
#include "probe/expr_priv.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 100 };

static const struct {
    const char *text;
    uint8_t op, strength;
} binaries[] = {{"||", MG_EO_OR_ELSE, 1}, {"&&", MG_EO_AND_ALSO, 2}, {"|", MG_EO_OR, 3},  {"^", MG_EO_XOR, 4},
                {"&", MG_EO_AND, 5},      {"==", MG_EO_EQ, 6},       {"!=", MG_EO_NE, 6}, {"<", MG_EO_LT, 7},
                {"<=", MG_EO_LE, 7},      {">", MG_EO_GT, 7},        {">=", MG_EO_GE, 7}, {"<<", MG_EO_SHL, 8},
                {">>", MG_EO_SHR, 8},     {"+", MG_EO_ADD, 9},       {"-", MG_EO_SUB, 9}, {"*", MG_EO_MUL, 10},
                {"/", MG_EO_DIV, 10},     {"%", MG_EO_REM, 10}};
static const struct {
    const char *name;
    uint8_t func, n_args;
} funcs[] = {{"popc", MG_EF_popc, 1},
             {"log2", MG_EF_log2, 1},
             {"min", MG_EF_min, 2},
             {"max", MG_EF_max, 2},
             {"abs", MG_EF_abs, 1}};

static struct mg_expr_node *new_node(struct mg_expr_parser *p, enum mg_expr_kind kind, unsigned op,
                                     const struct mg_tok *at)
{
    struct mg_expr_node *n = mg_arena_new(&p->e->arena, struct mg_expr_node);
    n->kind = (uint8_t)kind;
    n->op = (uint8_t)op;
    n->line = at->line;
    n->col = at->col;
    return n;
}

static bool eat(struct mg_expr_parser *p, const char *text)
{
    if (!mg_tok_is(&p->lex.tok, text)) return false;
    mg_lex_next(&p->lex);
    return true;
}

static void want(struct mg_expr_parser *p, const char *text)
{
    const struct mg_tok *t = &p->lex.tok;
    if (!eat(p, text)) mg_expr_err(p, t->line, t->col, "expected '%s' here", text);
}

static struct mg_expr_node *parse_func(struct mg_expr_parser *p, const struct mg_tok *name)
{
    unsigned ix = 0;
    while (ix < MG_COUNT_OF(funcs) &&
           !(strlen(funcs[ix].name) == name->len && !memcmp(funcs[ix].name, name->text, name->len)))
        ix++;
    if (ix == MG_COUNT_OF(funcs))
        mg_expr_err(p, name->line, name->col, "there is no function '%.*s': popc, log2, min, max and abs are there",
                    (int)name->len, name->text);
    struct mg_expr_node *n = new_node(p, MG_EK_FUNC, ix < MG_COUNT_OF(funcs) ? funcs[ix].func : MG_EF_abs, name);
    want(p, "(");
    unsigned takes = ix < MG_COUNT_OF(funcs) ? funcs[ix].n_args : 1;
    for (unsigned i = 0; i < takes; i++) {
        if (i) want(p, ",");
        n->args[n->n_args++] = mg_expr_parse_node(p);
    }
    want(p, ")");
    return n;
}

static struct mg_expr_node *parse_name(struct mg_expr_parser *p)
{
    struct mg_tok t = p->lex.tok;
    mg_lex_next(&p->lex);
    if (mg_tok_is(&p->lex.tok, "(")) return parse_func(p, &t);
    if (t.len > 3 && t.len <= 5 && !memcmp(t.text, "arg", 3) && strspn(t.text + 3, "0123456789") >= t.len - 3) {
        struct mg_expr_node *n = new_node(p, MG_EK_ARG, 0, &t);
        n->num = t.text[3] - '0';
        if (t.len == 5) n->num = n->num * 10 + t.text[4] - '0';
        return n;
    }
    for (unsigned v = 1; v < MG_EV_COUNT; v++)
        if (mg_tok_is(&t, mg_expr_value_text(v))) {
            struct mg_expr_node *n = new_node(p, MG_EK_VALUE, 0, &t);
            n->value = (uint16_t)v;
            if (p->clause) p->clause->uses[v] = true;
            p->e->uses[v] = true;
            return n;
        }
    mg_expr_err(p, t.line, t.col, "'%.*s' is nothing that a probe sees", (int)t.len, t.text);
    return new_node(p, MG_EK_NUM, 0, &t);
}

static struct mg_expr_node *parse_var(struct mg_expr_parser *p)
{
    struct mg_tok t = p->lex.tok;
    struct mg_expr *e = p->e;
    mg_lex_next(&p->lex);
    if (t.len == 2 && t.text[1] >= '0' && t.text[1] <= '9') {
        struct mg_expr_node *n = new_node(p, MG_EK_INPUT, 0, &t);
        n->num = t.text[1] - '0';
        if (!p->inputs)
            mg_expr_err(p, t.line, t.col, "'%.*s' is for maps of probes in C; a variable begins with a letter",
                        (int)t.len, t.text);
        return n;
    }
    struct mg_expr_node *n = new_node(p, MG_EK_VAR, 0, &t);
    for (uint32_t i = 0; i < e->n_vars; i++)
        if (strlen(e->vars[i]) == t.len && !memcmp(e->vars[i], t.text, t.len)) {
            n->num = i;
            return n;
        }
    mg_expr_err(p, t.line, t.col, t.len < 2 ? "a variable needs a name" : "'%.*s' is read before any clause sets it",
                (int)t.len, t.text);
    return n;
}

static struct mg_expr_node *parse_primary(struct mg_expr_parser *p)
{
    struct mg_tok t = p->lex.tok;
    if (t.kind == MG_TOK_NUM || t.kind == MG_TOK_STR) {
        struct mg_expr_node *n = new_node(p, t.kind == MG_TOK_NUM ? MG_EK_NUM : MG_EK_STR, 0, &t);
        n->num = t.num;
        if (t.kind == MG_TOK_STR) n->text = mg_arena_strndup(&p->e->arena, t.text, t.len);
        mg_lex_next(&p->lex);
        return n;
    }
    if (t.kind == MG_TOK_NAME) return parse_name(p);
    if (t.kind == MG_TOK_VAR) return parse_var(p);
    if (eat(p, "(")) {
        struct mg_expr_node *n = mg_expr_parse_node(p);
        want(p, ")");
        return n;
    }
    if (t.kind == MG_TOK_MAP)
        mg_expr_err(p, t.line, t.col, "a map cannot be read: what it holds is known when the program has ended");
    else
        mg_expr_err(p, t.line, t.col,
                    t.kind == MG_TOK_END ? "the text ends where a value is expected" : "expected a value here");
    if (t.kind != MG_TOK_END) mg_lex_next(&p->lex);
    return new_node(p, MG_EK_NUM, 0, &t);
}

static struct mg_expr_node *parse_unary(struct mg_expr_parser *p)
{
    struct mg_tok t = p->lex.tok;
    unsigned op = mg_tok_is(&t, "-")   ? MG_EO_NEG
                  : mg_tok_is(&t, "!") ? MG_EO_NOT
                  : mg_tok_is(&t, "~") ? MG_EO_INV
                                       : MG_EO_none;
    if (op == MG_EO_none) return parse_primary(p);
    mg_lex_next(&p->lex);
    if (p->depth >= MAX_DEPTH) {
        mg_expr_err(p, t.line, t.col, "nested too deeply");
        return new_node(p, MG_EK_NUM, 0, &t);
    }
    p->depth++;
    struct mg_expr_node *n = new_node(p, MG_EK_OP, op, &t);
    n->args[n->n_args++] = parse_unary(p);
    p->depth--;
    return n;
}

static unsigned find_binary(const struct mg_expr_parser *p)
{
    unsigned i = 0;
    /* the '/' in front of a body ends a predicate */
    if (mg_tok_is(&p->lex.tok, "/") && mg_lex_body_follows(&p->lex)) return MG_COUNT_OF(binaries);
    while (i < MG_COUNT_OF(binaries) && !mg_tok_is(&p->lex.tok, binaries[i].text)) i++;
    return i;
}

static struct mg_expr_node *parse_binary(struct mg_expr_parser *p, unsigned strength)
{
    struct mg_expr_node *left = parse_unary(p);
    for (unsigned i; (i = find_binary(p)) < MG_COUNT_OF(binaries) && binaries[i].strength >= strength;) {
        struct mg_expr_node *n = new_node(p, MG_EK_OP, binaries[i].op, &p->lex.tok);
        mg_lex_next(&p->lex);
        n->args[0] = left;
        n->args[1] = parse_binary(p, binaries[i].strength + 1u);
        n->n_args = 2;
        left = n;
    }
    return left;
}

struct mg_expr_node *mg_expr_parse_node(struct mg_expr_parser *p)
{
    struct mg_tok t = p->lex.tok;
    if (p->depth >= MAX_DEPTH) {
        mg_expr_err(p, t.line, t.col, "nested too deeply");
        p->lex.at = p->lex.end; /* what follows would say so again and again */
        mg_lex_next(&p->lex);
        return new_node(p, MG_EK_NUM, 0, &t);
    }
    p->depth++;
    const char *from = t.text;
    struct mg_expr_node *n = parse_binary(p, 1);
    if (mg_tok_is(&p->lex.tok, "?")) {
        struct mg_expr_node *choose = new_node(p, MG_EK_OP, MG_EO_CHOOSE, &p->lex.tok);
        mg_lex_next(&p->lex);
        choose->args[0] = n;
        choose->args[1] = mg_expr_parse_node(p);
        want(p, ":");
        choose->args[2] = mg_expr_parse_node(p);
        choose->n_args = 3;
        n = choose;
    }
    if (!n->text && n->kind != MG_EK_STR) { /* how a key's column is called */
        const char *to = p->lex.tok.text;
        while (to > from && strchr(" \t\r\n", to[-1])) to--;
        n->text = mg_arena_strndup(&p->e->arena, from, to > from ? (size_t)(to - from) : 0);
    }
    p->depth--;
    return n;
}

/* ---- values known beforehand ------------------------------------------------------------------ */

static int64_t apply(unsigned op, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op) {
    case MG_EO_OR:
        return a | b;
    case MG_EO_XOR:
        return a ^ b;
    case MG_EO_AND:
        return a & b;
    case MG_EO_EQ:
        return a == b;
    case MG_EO_NE:
        return a != b;
    case MG_EO_LT:
        return a < b;
    case MG_EO_LE:
        return a <= b;
    case MG_EO_GT:
        return a > b;
    case MG_EO_GE:
        return a >= b;
    case MG_EO_SHL:
        return y > 63 ? 0 : (int64_t)(x << y);
    case MG_EO_SHR:
        return y > 63 ? (a < 0 ? -1 : 0) : a >> y;
    case MG_EO_ADD:
        return (int64_t)(x + y);
    case MG_EO_SUB:
        return (int64_t)(x - y);
    case MG_EO_MUL:
        return (int64_t)(x * y);
    case MG_EO_DIV:
        return !b ? 0 : b == -1 ? (int64_t)(0 - x) : a / b;
    case MG_EO_REM:
        return !b || b == -1 ? 0 : a % b;
    case MG_EO_NEG:
        return (int64_t)(0 - x);
    case MG_EO_NOT:
        return !a;
    default:
        return ~a;
    }
}

static int64_t call(unsigned func, int64_t a, int64_t b)
{
    switch (func) {
    case MG_EF_popc:
        return __builtin_popcountll((uint64_t)a);
    case MG_EF_log2:
        return a <= 0 ? 0 : 63 - __builtin_clzll((uint64_t)a);
    case MG_EF_min:
        return MG_MIN(a, b);
    case MG_EF_max:
        return MG_MAX(a, b);
    default:
        return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    }
}

static struct mg_expr_const known(int64_t v)
{
    return (struct mg_expr_const){.known = true, .num = v};
}

static struct mg_expr_const eval_op(const struct mg_expr_node *n, const struct mg_expr_env *env)
{
    struct mg_expr_const a = mg_expr_eval(n->args[0], env), none = {0};
    if (n->op == MG_EO_CHOOSE) return a.known ? mg_expr_eval(n->args[a.num ? 1 : 2], env) : none;
    if (n->n_args == 1) return a.known ? known(apply(n->op, a.num, 0)) : none;
    struct mg_expr_const b = mg_expr_eval(n->args[1], env);
    if (n->op == MG_EO_AND_ALSO || n->op == MG_EO_OR_ELSE) {
        bool decides = n->op == MG_EO_OR_ELSE;
        if ((a.known && !!a.num == decides) || (b.known && !!b.num == decides)) return known(decides);
        return a.known && b.known ? known(!decides) : none;
    }
    if (!a.known || !b.known) return none;
    if (a.is_str != b.is_str) return none; /* refused later on */
    if (a.is_str) return known(!strcmp(a.str, b.str) == (n->op == MG_EO_EQ));
    return known(apply(n->op, a.num, b.num));
}

struct mg_expr_const mg_expr_eval(const struct mg_expr_node *n, const struct mg_expr_env *env)
{
    struct mg_expr_const none = {0};
    switch (n->kind) {
    case MG_EK_NUM:
        return known(n->num);
    case MG_EK_STR:
        return (struct mg_expr_const){.known = true, .is_str = true, .str = n->text};
    case MG_EK_VALUE:
        return env->values[n->value];
    case MG_EK_OP:
        return eval_op(n, env);
    case MG_EK_FUNC: {
        struct mg_expr_const a = mg_expr_eval(n->args[0], env), b = n->n_args > 1 ? mg_expr_eval(n->args[1], env) : a;
        return a.known && b.known ? known(call(n->op, a.num, b.num)) : none;
    }
    default:
        return none;
    }
}
