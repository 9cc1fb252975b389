/* Text of a one-liner into words. Never reads behind its end, never fails: what it does not know is
 * MG_TOK_BAD, and the parser says so. */
#include "probe/expr_lex.h"

#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_pattern(char c)
{
    return is_letter(c) || is_digit(c) || (c && strchr(".*?:[]-<>", c));
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(struct mg_lex *l)
{
    for (; l->at < l->end; l->at++) {
        if (*l->at == '#' || (*l->at == '/' && l->at + 1 < l->end && l->at[1] == '/'))
            while (l->at + 1 < l->end && l->at[1] != '\n') l->at++;
        else if (!is_space(*l->at))
            return;
        if (*l->at == '\n') {
            l->line++;
            l->line_start = l->at + 1;
        }
    }
}

static void begin(struct mg_lex *l)
{
    skip_space(l);
    l->tok = (struct mg_tok){
        .kind = MG_TOK_END, .text = l->at, .line = l->line, .col = (uint32_t)(l->at - l->line_start) + 1};
}

static void finish(struct mg_lex *l, enum mg_tok_kind kind)
{
    l->tok.kind = kind;
    l->tok.len = (uint32_t)(l->at - l->tok.text);
}

void mg_lex_init(struct mg_lex *l, const char *text, size_t bytes)
{
    *l = (struct mg_lex){.at = text, .end = text + bytes, .line_start = text, .line = 1};
    mg_lex_next(l);
}

static int digit_of(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

/* 12, 0x7f, 4k, 1M, 2G; what does not fit into 64 bits is bad. */
static void read_number(struct mg_lex *l)
{
    unsigned base = 10;
    uint64_t v = 0;
    bool bad = false;
    if (l->end - l->at > 2 && l->at[0] == '0' && (l->at[1] | 32) == 'x') {
        base = 16;
        l->at += 2;
        bad = digit_of(*l->at) >= 16;
    }
    for (; l->at < l->end && digit_of(*l->at) < (int)base; l->at++) {
        bad |= v > (UINT64_MAX - 15) / base;
        v = v * base + (unsigned)digit_of(*l->at);
    }
    if (l->at < l->end && base == 10) {
        unsigned shift = *l->at == 'k' || *l->at == 'K' ? 10 : *l->at == 'M' ? 20 : *l->at == 'G' ? 30 : 0;
        if (shift) {
            bad |= v > (uint64_t)INT64_MAX >> shift;
            v <<= shift & 63;
            l->at++;
        }
    }
    while (l->at < l->end && (is_letter(*l->at) || is_digit(*l->at))) {
        bad = true;
        l->at++;
    }
    l->tok.num = (int64_t)v;
    finish(l, bad ? MG_TOK_BAD : MG_TOK_NUM);
}

static void read_string(struct mg_lex *l)
{
    l->at++;
    const char *from = l->at;
    while (l->at < l->end && *l->at != '"' && *l->at != '\n') l->at++;
    bool closed = l->at < l->end && *l->at == '"';
    l->tok.text = from;
    finish(l, closed ? MG_TOK_STR : MG_TOK_BAD);
    if (closed) l->at++;
}

static void read_name(struct mg_lex *l, enum mg_tok_kind kind)
{
    if (kind != MG_TOK_NAME) l->at++;
    for (; l->at < l->end; l->at++) {
        bool dot = kind == MG_TOK_NAME && *l->at == '.' && l->at + 1 < l->end && is_letter(l->at[1]);
        if (!is_letter(*l->at) && !is_digit(*l->at) && !dot) break;
    }
    finish(l, kind);
}

void mg_lex_next(struct mg_lex *l)
{
    static const char two[][3] = {"||", "&&", "==", "!=", "<=", ">=", "<<", ">>"};
    begin(l);
    if (l->at >= l->end) return;
    char c = *l->at;
    if (is_digit(c)) {
        read_number(l);
    } else if (c == '"') {
        read_string(l);
    } else if (c == '@' || c == '$') {
        read_name(l, c == '@' ? MG_TOK_MAP : MG_TOK_VAR);
    } else if (is_letter(c)) {
        read_name(l, MG_TOK_NAME);
    } else {
        l->at++;
        for (unsigned i = 0; i < MG_COUNT_OF(two); i++)
            if (l->at < l->end && c == two[i][0] && *l->at == two[i][1]) {
                l->at++;
                break;
            }
        finish(l, c && strchr("|&^=!<>+-*/%~?:;,(){}[]", c) ? MG_TOK_PUNCT : MG_TOK_BAD);
    }
}

void mg_lex_pattern(struct mg_lex *l)
{
    if (l->tok.kind == MG_TOK_END || l->tok.kind == MG_TOK_STR) return;
    l->at = l->tok.text;
    while (l->at < l->end && is_pattern(*l->at)) l->at++;
    if (l->at > l->tok.text) {
        finish(l, MG_TOK_PATTERN);
    } else {
        l->at = l->tok.text;
        mg_lex_next(l);
    }
}

bool mg_lex_body_follows(const struct mg_lex *l)
{
    struct mg_lex look = *l;
    skip_space(&look);
    return look.at < look.end && *look.at == '{';
}
