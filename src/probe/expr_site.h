/* Where the clauses of a one-liner go in a kernel, and what is known there beforehand. */
#ifndef MG_TOOL_EXPR_SITE_H
#define MG_TOOL_EXPR_SITE_H

#include "probe/expr.h"
#include "patch/patch.h"

struct mg_expr_spot { /* one place where a clause fires */
    const struct mg_expr_clause *clause;
    const struct mg_expr_site *site;
    mg_id node;              /* INST */
    uint32_t func_ix, block; /* block: dense id */
    uint32_t succ;           /* EDGE: which successor */
    struct mg_expr_env env;
};
/* Calls fn for every spot, clause by clause, in text order of the kernel. Strings of env live as long as the patch. */
void mg_expr_each_spot(const struct mg_expr *e, struct mg_patch *p,
                       void (*fn)(const struct mg_expr_spot *s, void *user), void *user);
/* Bytes that one thread's access of this dotted text moves; 0: not to be told from the text alone. */
uint32_t mg_expr_op_width(const char *op);
/* What a site of the profile knows of the values: kernel, function, file, op, line, ptx, block, to, width. */
void mg_expr_env_fill(struct mg_expr_env *env, const char *kernel, const char *function, const char *file,
                      const char *op, uint32_t line, uint32_t ptx_line, uint32_t block, uint32_t to);

#endif
