/* What the parts of the one-liner language share among themselves. */
#ifndef MG_TOOL_EXPR_PRIV_H
#define MG_TOOL_EXPR_PRIV_H

#include "probe/expr_lex.h"

struct mg_expr_parser {
    struct mg_lex lex;
    struct mg_expr *e;
    struct mg_expr_clause *clause;
    const char *name;
    struct mg_diag *d;
    uint32_t n_errors, depth;
    bool inputs; /* $0.. are allowed: the keys of a probe in C */
};
/* Notes an error at a place. */
void mg_expr_err(struct mg_expr_parser *p, uint32_t line, uint32_t col, const char *fmt, ...) MG_PRINTF(4, 5);
struct mg_expr_node *mg_expr_parse_node(struct mg_expr_parser *p); /* expr_node.c; never NULL */
/* Types, places where values may stand, aggregates. */
void mg_expr_check(struct mg_expr_parser *p);
void mg_expr_check_update(struct mg_expr_parser *p, struct mg_expr_update *up);
void mg_expr_check_node(struct mg_expr_parser *p, struct mg_expr_node *n);

#endif
