/* Words of a one-liner with their places. Two ways of reading, because a site's pattern ("*.f64",
 * "kernel:entry") is made of characters that are operators elsewhere: the parser says which. */
#ifndef MG_TOOL_EXPR_LEX_H
#define MG_TOOL_EXPR_LEX_H

#include "probe/expr.h"

enum mg_tok_kind {
    MG_TOK_END,
    MG_TOK_NUM,
    MG_TOK_STR,
    MG_TOK_NAME /* dots included: tid.x */,
    MG_TOK_MAP /* @name */,
    MG_TOK_VAR /* $name */,
    MG_TOK_PUNCT,
    MG_TOK_PATTERN,
    MG_TOK_BAD
};
struct mg_tok {
    enum mg_tok_kind kind;
    const char *text;
    uint32_t len; /* in the source; STR: without quotes, escapes as written */
    uint32_t line, col;
    int64_t num;
};
struct mg_lex {
    const char *at, *end, *line_start;
    uint32_t line;
    struct mg_tok tok; /* under the parser's eye */
};
void mg_lex_init(struct mg_lex *l, const char *text, size_t bytes);
void mg_lex_next(struct mg_lex *l);    /* expressions and statements */
void mg_lex_pattern(struct mg_lex *l); /* the word at hand, or the next: site patterns; reads again from tok.text */
static inline bool mg_tok_is(const struct mg_tok *t, const char *text)
{
    if (t->kind != MG_TOK_PUNCT && t->kind != MG_TOK_NAME && t->kind != MG_TOK_PATTERN) return false;
    return __builtin_strlen(text) == t->len && !__builtin_memcmp(text, t->text, t->len);
}
/* Behind a '/': does it end a predicate, because a body follows? */
bool mg_lex_body_follows(const struct mg_lex *l);

#endif
