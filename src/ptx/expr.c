/* Literals and constant expressions (PTX ISA, "Constants"): 64-bit integers and doubles, C's
 * operators and precedence. An expression of more than one literal is evaluated here and printed
 * as its value. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "ptx/priv.h"

#define MAX_NESTING 64

static int hex_digit(char c)
{
    return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

static bool hex_float(struct parser *p, unsigned digits, uint64_t *bits)
{
    const char *s = p->at + 2;
    uint64_t v = 0;
    for (unsigned i = 0; i < digits; i++) {
        if (!(mg_ptx_class[(uint8_t)s[i]] & CH_HEX))
            return mg_ptx_fail(
                p, digits == 8 ? "0f takes exactly 8 hexadecimal digits" : "0d takes exactly 16 hexadecimal digits",
                "malformed floating-point literal");
        v = v << 4 | (unsigned)hex_digit(s[i]);
    }
    if (is_ident(s[digits])) return mg_ptx_fail(p, NULL, "malformed floating-point literal");
    p->at = s + digits;
    *bits = v;
    return true;
}

/* The end of a decimal floating-point literal at s, or NULL when an integer stands there. */
static const char *float_end(const char *s)
{
    const char *e = s;
    bool is_float = false;
    while (is_digit(*e)) e++;
    if (*e == '.' && (e > s || is_digit(e[1])) && !is_start(e[1])) {
        is_float = true;
        for (e++; is_digit(*e); e++) continue;
    }
    if (e > s && (*e | 32) == 'e') {
        const char *x = e + 1 + (e[1] == '+' || e[1] == '-');
        if (is_digit(*x)) {
            is_float = true;
            for (e = x; is_digit(*e); e++) continue;
        }
    }
    return is_float ? e : NULL;
}

static bool decimal_float(struct parser *p, const char *end, uint64_t *bits)
{
    char text[512];
    size_t len = (size_t)(end - p->at);
    if (len >= sizeof text) return mg_ptx_fail(p, NULL, "floating-point literal is too long");
    memcpy(text, p->at, len);
    text[len] = 0;
    if (!p->c_locale) p->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double d = strtod_l(text, NULL, (locale_t)p->c_locale);
    memcpy(bits, &d, 8);
    p->at = end;
    return true;
}

/* Integer literal; *wide is set when it does not fit 64 bits. */
static bool integer(struct parser *p, uint64_t *out, unsigned *style, bool *wide)
{
    const char *s = p->at;
    unsigned base = 10;
    *style = MG_IMM_DEC;
    if (*s == '0' && (s[1] | 32) == 'x')
        base = 16, s += 2, *style = MG_IMM_HEX;
    else if (*s == '0' && (s[1] | 32) == 'b')
        base = 2, s += 2, *style = MG_IMM_BIN;
    else if (*s == '0' && is_digit(s[1]))
        base = 8, s += 1, *style = MG_IMM_OCT;
    const char *first = s;
    uint64_t v = 0;
    *wide = false;
    for (; mg_ptx_class[(uint8_t)*s] & CH_HEX; s++) {
        unsigned digit = (unsigned)hex_digit(*s);
        if (digit >= base) break;
        uint64_t next;
        if (__builtin_mul_overflow(v, base, &next) || __builtin_add_overflow(next, digit, &next)) *wide = true;
        v = next;
    }
    if (s == first) return mg_ptx_fail(p, NULL, "malformed number");
    if (*s == 'U' || *s == 'u') {
        s++;
        if (*style == MG_IMM_DEC)
            *style = MG_IMM_UNSIGNED;
        else if (*style == MG_IMM_HEX)
            *style = MG_IMM_HEX_UNSIGNED;
    } else if (*style == MG_IMM_DEC && v > INT64_MAX) {
        *style = MG_IMM_UNSIGNED;
    }
    if (is_ident(*s)) return mg_ptx_fail(p, NULL, "malformed number");
    p->at = s;
    *out = v;
    return true;
}

static double as_double(const struct value *v)
{
    double d;
    if (!v->is_float) return v->is_unsigned ? (double)v->bits : (double)(int64_t)v->bits;
    memcpy(&d, &v->bits, 8);
    return d;
}

static struct value of_double(double d)
{
    struct value v = {.is_float = true};
    memcpy(&v.bits, &d, 8);
    return v;
}

static bool ternary(struct parser *p, struct value *v, unsigned depth);

static bool primary(struct parser *p, struct value *v, unsigned depth)
{
    skip_space(p);
    char c = *p->at;
    if (c == '(') {
        p->at++;
        return ternary(p, v, depth + 1) && mg_ptx_expect(p, ')', "the expression");
    }
    if (is_digit(c) || (c == '.' && is_digit(p->at[1]))) {
        *v = (struct value){0};
        if (c == '0' && (p->at[1] | 32) == 'f') {
            uint64_t bits;
            float f;
            if (!hex_float(p, 8, &bits)) return false;
            uint32_t low = (uint32_t)bits;
            memcpy(&f, &low, 4);
            *v = of_double((double)f);
            return true;
        }
        if (c == '0' && (p->at[1] | 32) == 'd') {
            v->is_float = true;
            return hex_float(p, 16, &v->bits);
        }
        const char *fe = float_end(p->at);
        if (fe) {
            v->is_float = true;
            return decimal_float(p, fe, &v->bits);
        }
        unsigned style;
        bool wide;
        if (!integer(p, &v->bits, &style, &wide)) return false;
        if (wide) return mg_ptx_fail(p, NULL, "integer does not fit 64 bits");
        v->is_unsigned = style == MG_IMM_UNSIGNED || style == MG_IMM_HEX_UNSIGNED || v->bits > INT64_MAX;
        return true;
    }
    size_t len;
    const char *s = mg_ptx_ident(p, &len);
    if (word_is(s, len, "WARP_SZ")) {
        *v = (struct value){.bits = 32};
        return true;
    }
    if (len) p->at = s;
    return mg_ptx_fail(p, NULL, "expected a constant");
}

static bool unary(struct parser *p, struct value *v, unsigned depth)
{
    if (depth > MAX_NESTING) return mg_ptx_fail(p, NULL, "expression is nested too deeply");
    skip_space(p);
    char c = *p->at;
    if (c == '(') {
        const char *back = p->at;
        p->at++;
        size_t len;
        const char *s = mg_ptx_dot_word(p, &len);
        if (word_is(s, len, "s64") || word_is(s, len, "u64")) {
            bool is_unsigned = *s == 'u';
            if (!mg_ptx_expect(p, ')', "the cast") || !unary(p, v, depth + 1)) return false;
            if (v->is_float) {
                double d = as_double(v);
                v->bits = is_unsigned ? (d > 0 && d < 0x1p64 ? (uint64_t)d : 0)
                                      : (d > -0x1p63 && d < 0x1p63 ? (uint64_t)(int64_t)d : 0);
            }
            v->is_float = false;
            v->is_unsigned = is_unsigned;
            return true;
        }
        if (p->line_start > back) return mg_ptx_fail(p, NULL, "expected an expression on one line");
        p->at = back;
    }
    if (c != '-' && c != '+' && c != '!' && c != '~') return primary(p, v, depth);
    p->at++;
    if (!unary(p, v, depth + 1)) return false;
    if (c == '-' && v->is_float)
        v->bits ^= 1ull << 63;
    else if (c == '-')
        v->bits = 0 - v->bits, v->is_unsigned = false;
    else if (c == '!')
        v->bits = v->is_float ? as_double(v) == 0.0 : !v->bits, v->is_float = v->is_unsigned = false;
    else if (c == '~')
        v->bits = ~v->bits;
    return true;
}

enum bin {
    B_NONE,
    B_LOR,
    B_LAND,
    B_OR,
    B_XOR,
    B_AND,
    B_EQ,
    B_NE,
    B_LT,
    B_LE,
    B_GT,
    B_GE,
    B_SHL,
    B_SHR,
    B_ADD,
    B_SUB,
    B_MUL,
    B_DIV,
    B_REM
};
static const uint8_t level[] = {[B_LOR] = 1, [B_LAND] = 2, [B_OR] = 3,  [B_XOR] = 4,  [B_AND] = 5,  [B_EQ] = 6,
                                [B_NE] = 6,  [B_LT] = 7,   [B_LE] = 7,  [B_GT] = 7,   [B_GE] = 7,   [B_SHL] = 8,
                                [B_SHR] = 8, [B_ADD] = 9,  [B_SUB] = 9, [B_MUL] = 10, [B_DIV] = 10, [B_REM] = 10};

static enum bin peek_operator(struct parser *p, unsigned *len)
{
    skip_space(p);
    const char *s = p->at;
    *len = 2;
    switch (*s) {
    case '|':
        if (s[1] == '|') return B_LOR;
        *len = 1;
        return B_OR;
    case '&':
        if (s[1] == '&') return B_LAND;
        *len = 1;
        return B_AND;
    case '=':
        return s[1] == '=' ? B_EQ : B_NONE;
    case '!':
        return s[1] == '=' ? B_NE : B_NONE;
    case '<':
        if (s[1] == '<') return B_SHL;
        if (s[1] == '=') return B_LE;
        *len = 1;
        return B_LT;
    case '>':
        if (s[1] == '>') return B_SHR;
        if (s[1] == '=') return B_GE;
        *len = 1;
        return B_GT;
    case '^':
        *len = 1;
        return B_XOR;
    case '+':
        *len = 1;
        return B_ADD;
    case '-':
        *len = 1;
        return B_SUB;
    case '*':
        *len = 1;
        return B_MUL;
    case '/':
        *len = 1;
        return B_DIV;
    case '%':
        *len = 1;
        return is_ident(s[1]) && !is_digit(s[1]) ? B_NONE : B_REM;
    default:
        return B_NONE;
    }
}

static struct value truth(bool b)
{
    return (struct value){.bits = b};
}

static bool apply_float(struct parser *p, enum bin op, struct value *a, const struct value *b)
{
    double x = as_double(a), y = as_double(b);
    switch (op) {
    case B_ADD:
        *a = of_double(x + y);
        return true;
    case B_SUB:
        *a = of_double(x - y);
        return true;
    case B_MUL:
        *a = of_double(x * y);
        return true;
    case B_DIV:
        *a = of_double(x / y);
        return true;
    case B_EQ:
        *a = truth(x == y);
        return true;
    case B_NE:
        *a = truth(x != y);
        return true;
    case B_LT:
        *a = truth(x < y);
        return true;
    case B_LE:
        *a = truth(x <= y);
        return true;
    case B_GT:
        *a = truth(x > y);
        return true;
    case B_GE:
        *a = truth(x >= y);
        return true;
    case B_LAND:
        *a = truth(x != 0 && y != 0);
        return true;
    case B_LOR:
        *a = truth(x != 0 || y != 0);
        return true;
    default:
        return mg_ptx_fail(p, NULL, "operator needs integers");
    }
}

static bool apply(struct parser *p, enum bin op, struct value *a, const struct value *b)
{
    if (a->is_float || b->is_float) return apply_float(p, op, a, b);
    bool un = a->is_unsigned || b->is_unsigned;
    uint64_t x = a->bits, y = b->bits;
    int64_t sx = (int64_t)x, sy = (int64_t)y;
    if ((op == B_DIV || op == B_REM) && !y) return mg_ptx_fail(p, NULL, "division by zero in a constant expression");
    if ((op == B_DIV || op == B_REM) && !un && sy == -1) { /* INT64_MIN / -1 traps */
        *a = (struct value){.bits = op == B_DIV ? 0 - x : 0};
        return true;
    }
    switch (op) {
    case B_ADD:
        x += y;
        break;
    case B_SUB:
        x -= y;
        break;
    case B_MUL:
        x *= y;
        break;
    case B_DIV:
        x = un ? x / y : (uint64_t)(sx / sy);
        break;
    case B_REM:
        x = un ? x % y : (uint64_t)(sx % sy);
        break;
    case B_SHL:
        x = y < 64 ? x << y : 0;
        un = a->is_unsigned;
        break;
    case B_SHR:
        un = a->is_unsigned;
        x = un ? (y < 64 ? x >> y : 0) : (uint64_t)(sx >> (y < 63 ? y : 63));
        break;
    case B_AND:
        x &= y;
        break;
    case B_OR:
        x |= y;
        break;
    case B_XOR:
        x ^= y;
        break;
    case B_EQ:
        x = x == y;
        un = false;
        break;
    case B_NE:
        x = x != y;
        un = false;
        break;
    case B_LT:
        x = un ? x < y : sx < sy;
        un = false;
        break;
    case B_LE:
        x = un ? x <= y : sx <= sy;
        un = false;
        break;
    case B_GT:
        x = un ? x > y : sx > sy;
        un = false;
        break;
    case B_GE:
        x = un ? x >= y : sx >= sy;
        un = false;
        break;
    case B_LAND:
        x = x && y;
        un = false;
        break;
    case B_LOR:
        x = x || y;
        un = false;
        break;
    default:
        break;
    }
    *a = (struct value){.is_unsigned = un, .bits = x};
    return true;
}

static bool binary(struct parser *p, struct value *v, unsigned min_level, unsigned depth)
{
    if (!unary(p, v, depth)) return false;
    for (;;) {
        unsigned len;
        enum bin op = peek_operator(p, &len);
        if (op == B_NONE || level[op] < min_level) return true;
        p->at += len;
        struct value right;
        if (!binary(p, &right, level[op] + 1u, depth + 1) || !apply(p, op, v, &right)) return false;
    }
}

static bool ternary(struct parser *p, struct value *v, unsigned depth)
{
    if (depth > MAX_NESTING) return mg_ptx_fail(p, NULL, "expression is nested too deeply");
    if (!binary(p, v, 1, depth)) return false;
    if (!take(p, '?')) return true;
    struct value yes, no;
    if (!ternary(p, &yes, depth + 1) || !mg_ptx_expect(p, ':', "'?'") || !ternary(p, &no, depth + 1)) return false;
    *v = (v->is_float ? as_double(v) != 0.0 : v->bits != 0) ? yes : no;
    return true;
}

bool mg_ptx_expr(struct parser *p, struct value *v)
{
    return ternary(p, v, 0);
}

static bool int_of_level(struct parser *p, const char *what, unsigned min_level, int64_t *out)
{
    struct value v;
    skip_space(p);
    uint32_t line = p->line, col = mg_ptx_col(p);
    if (min_level ? !binary(p, &v, min_level, 0) : !mg_ptx_expr(p, &v)) return false;
    if (v.is_float) return mg_ptx_fail_at(p, line, col, NULL, "%s must be an integer", what);
    *out = (int64_t)v.bits;
    return true;
}

bool mg_ptx_int(struct parser *p, const char *what, int64_t *out)
{
    return int_of_level(p, what, 0, out);
}

bool mg_ptx_set_size(struct parser *p, int64_t *out)
{
    return int_of_level(p, "the size of the set", level[B_ADD], out);
}

/* Is the literal that ends here the whole operand? */
static bool ends_operand(struct parser *p)
{
    skip_space(p);
    char c = *p->at;
    return c == ',' || c == ';' || c == '}' || c == ']' || c == ')' || c == '|';
}

bool mg_ptx_const_opnd(struct parser *p, struct mg_opnd *o)
{
    skip_space(p);
    const char *start = p->at, *start_line_at = p->line_start;
    uint32_t start_line = p->line;
    bool minus = *start == '-';
    if (minus) p->at++;
    *o = (struct mg_opnd){0};
    if (is_digit(*p->at) || (*p->at == '.' && is_digit(p->at[1]))) {
        const char *fe = float_end(p->at);
        char kind = *p->at == '0' && !fe ? (char)(p->at[1] | 32) : 0;
        if (kind == 'f') {
            if (!hex_float(p, 8, &o->val)) return false;
            o->kind = MG_OPND_f32;
            if (minus) o->val ^= 1u << 31;
        } else if (kind == 'd') {
            if (!hex_float(p, 16, &o->val)) return false;
            o->kind = MG_OPND_f64;
            if (minus) o->val ^= 1ull << 63;
        } else if (fe) {
            if (!decimal_float(p, fe, &o->val)) return false;
            o->kind = MG_OPND_f64;
            o->sub = 1;
            o->id = mg_intern_add(&p->m->names, start, (size_t)(fe - start));
            if (minus) o->val ^= 1ull << 63;
        } else {
            unsigned style;
            bool wide;
            if (!integer(p, &o->val, &style, &wide)) return false;
            o->kind = MG_OPND_imm;
            o->sub = (uint8_t)style;
            if (wide) {
                o->sub = MG_IMM_WIDE;
                o->id = mg_intern_add(&p->m->names, start, (size_t)(p->at - start));
            } else if (minus) {
                o->val = 0 - o->val;
                o->sub = MG_IMM_DEC;
            }
        }
        if (ends_operand(p)) return true;
    }
    p->at = start;
    p->line = start_line;
    p->line_start = start_line_at;
    struct value v;
    if (!mg_ptx_expr(p, &v)) return false;
    *o = (struct mg_opnd){.kind = v.is_float ? MG_OPND_f64 : MG_OPND_imm, .val = v.bits};
    if (!v.is_float && v.is_unsigned) o->sub = MG_IMM_UNSIGNED;
    return true;
}
