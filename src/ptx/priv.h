/* The parser's inside: one pass over the text, character by character, straight into the IR.
 *
 *   parse.c  directives of module scope ──► decl.c  variables, registers, parameters, initialisers
 *                │                            └─► expr.c  constant expressions
 *                └─► body.c  statements of a function ──► inst.c  instructions and operands
 *   scope.c   names in force, labels, references settled later        lex.c  characters, errors
 *
 * Parse functions return false after they reported an error; the statement loops of parse.c and
 * body.c then skip to the next statement and go on. The text is copied once and ends in NULs, so
 * that no scan needs to check for its end.
 */
#ifndef MG_PTX_PRIV_H
#define MG_PTX_PRIV_H

#include <string.h>

#include "ptx/ptx.h"

enum char_class { CH_IDENT = 1, CH_START = 2, CH_DIGIT = 4, CH_SPACE = 8, CH_HEX = 16 };
extern const uint8_t mg_ptx_class[256];

enum sym_kind { SYM_none, SYM_reg, SYM_var, SYM_func, SYM_sreg };
struct sym { /* what a name means now; indexed by mg_str */
    uint32_t id, depth;
    uint32_t set_first, set_count, set_depth; /* as the stem of a register set %r<n> */
    mg_id label; /* label or target list of that name in the outermost scope of label_func */
    mg_id label_func;
    mg_id missed_in;       /* function in which its absence was reported */
    uint8_t kind;          /* enum sym_kind */
    uint8_t stem_of_plain; /* some register called stem + digits was declared alone */
    uint8_t label_is_target;
};
struct undo {
    mg_str name; /* 0: a scope began here */
    struct sym old;
};
struct fixup { /* a name in an operand that nothing had declared when it was read */
    mg_id opnd;
    mg_str name;
    uint32_t scope, line, col;
    uint8_t strict;  /* an error when nothing declares it by the end of the module */
    uint8_t targets; /* makes the label a branch target */
};
struct init_fixup {
    mg_id init;
    uint8_t kind;
    uint32_t line, col;
};
struct stem_slot {
    uint64_t bytes;
    uint32_t len;
    mg_str name;
};
#define STEM_SLOTS 64
struct form_slot { /* an opcode of up to 16 characters is its own exact key */
    uint64_t head, tail;
    uint32_t len;
    mg_id form;
};
#define FORM_SLOTS 256
#define MAX_DEPTH  1000
#define MAX_ERRORS 1000

struct parser {
    const char *text, *end, *at, *line_start;
    uint32_t line;
    uint32_t n_errors;
    const char *file;
    struct mg_diag *d;
    struct mg_module *m;

    struct sym *syms;
    uint32_t n_syms;
    MG_VEC(struct undo) undo;
    struct stem_slot stems[STEM_SLOTS];
    struct form_slot form_slots[FORM_SLOTS];
    uint32_t depth;                /* 0 = module scope, 1 = parameters, 2 = body, ... */
    uint32_t scope;                /* of the body being read: 0 = outermost */
    MG_VEC(uint32_t) scope_parent; /* of the body being read */
    struct mg_map inner_labels;    /* name << 32 | scope -> is_target << 32 | id; scopes other than 0 */
    MG_VEC(struct fixup) fixups, late_fixups;
    MG_VEC(struct init_fixup) init_fixups;
    MG_VEC(struct mg_opnd) stack; /* operands being collected */
    uint32_t n_pending;           /* MG_OPND_sym on the stack */
    MG_VEC(mg_id) form_of;        /* mg_str -> form */

    mg_id func;          /* body or parameter list being read, 0 at module scope */
    struct mg_form form; /* of the instruction being read */
    uint64_t reg_budget; /* registers that may still be declared */
    bool seen_version, seen_target;
    bool ours;      /* within a pragma of ours: MG_PTX_OURS */
    void *c_locale; /* locale_t, made when the first decimal float is read */
};

struct value { /* of a constant expression */
    bool is_float, is_unsigned;
    uint64_t bits; /* integer or double bits */
};

/* ---- lex.c ---- */
void mg_ptx_skip_slow(struct parser *p);
static inline void skip_space(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t') p->at++;
    if (mg_ptx_class[(uint8_t)*p->at] & CH_SPACE || *p->at == '/') mg_ptx_skip_slow(p);
}
/* Right behind a statement: was it inserted? */
static inline unsigned mg_ptx_mark(const struct parser *p)
{
    return p->m->marked && !strncmp(p->at, MG_PTX_MARK, sizeof MG_PTX_MARK - 1) ? MG_NF_PROBE : 0;
}
static inline bool is_ident(char c)
{
    return mg_ptx_class[(uint8_t)c] & CH_IDENT;
}
static inline bool is_start(char c)
{
    return mg_ptx_class[(uint8_t)c] & CH_START;
}
static inline bool is_digit(char c)
{
    return mg_ptx_class[(uint8_t)c] & CH_DIGIT;
}
/* Both skip space first and take the character when it is there. */
static inline bool take(struct parser *p, char c)
{
    skip_space(p);
    if (*p->at != c) return false;
    p->at++;
    return true;
}
bool mg_ptx_expect(struct parser *p, char c, const char *after);
/* Appends an error at the current character and returns false. */
bool mg_ptx_fail(struct parser *p, const char *hint, const char *fmt, ...) MG_PRINTF(3, 4);
bool mg_ptx_fail_at(struct parser *p, uint32_t line, uint32_t col, const char *hint, const char *fmt, ...)
    MG_PRINTF(5, 6);
static inline uint32_t mg_ptx_col(const struct parser *p)
{
    return (uint32_t)(p->at - p->line_start) + 1;
}
/* Identifier at the current character (after space): its start, 0 length when there is none. */
const char *mg_ptx_ident(struct parser *p, size_t *len);
/* ".word" at the current character: the word without its dot. */
const char *mg_ptx_dot_word(struct parser *p, size_t *len);
bool mg_ptx_name(struct parser *p, const char *what, mg_str *out);
bool mg_ptx_string(struct parser *p, mg_str *out); /* "..." as written between the quotes */
bool mg_ptx_u32(struct parser *p, const char *what, uint32_t *out);
mg_str mg_ptx_rest_of_line(struct parser *p);
/* After an error: to behind the next ';', or to a brace, or to a line that begins like a statement. */
void mg_ptx_recover(struct parser *p, bool in_body);
static inline bool word_is(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(s, word, len);
}

/* ---- expr.c ---- */
bool mg_ptx_expr(struct parser *p, struct value *v);
/* A literal or an expression as an operand, how it was written included. */
bool mg_ptx_const_opnd(struct parser *p, struct mg_opnd *o);
bool mg_ptx_int(struct parser *p, const char *what, int64_t *out);
bool mg_ptx_set_size(struct parser *p, int64_t *out); /* of %r<n>: no comparison, the '>' ends it */

/* ---- scope.c ---- */
struct sym *mg_ptx_sym(struct parser *p, mg_str name);
struct sym *mg_ptx_sym_outside(struct parser *p, mg_str name);
bool mg_ptx_bind(struct parser *p, mg_str name, enum sym_kind kind, uint32_t id);
bool mg_ptx_bind_set(struct parser *p, mg_str stem, mg_id first, uint32_t count);
void mg_ptx_open(struct parser *p);
void mg_ptx_close(struct parser *p);
/* What a name means here; SYM_none when nothing declared it. */
/* Reports a name nothing declares, once a function; returns false. */
bool mg_ptx_undeclared(struct parser *p, const char *what, const char *s, size_t len, uint32_t line, uint32_t col);
enum sym_kind mg_ptx_look_up(struct parser *p, const char *s, size_t len, uint32_t *id);
bool mg_ptx_place_label(struct parser *p, mg_str name, bool is_target, mg_id id, uint32_t line, uint32_t col);
/* Moves the operands from stack[base] on into the module; returns the first id. */
mg_id mg_ptx_commit(struct parser *p, uint32_t base);
void mg_ptx_settle_body(struct parser *p);
void mg_ptx_settle_module(struct parser *p);

/* ---- decl.c ---- */
/* The statement at ".reg", ".shared", ... with linkage already read. */
bool mg_ptx_decl(struct parser *p, enum mg_link link, mg_id *decl);
bool mg_ptx_params(struct parser *p, bool is_ret, mg_id *first, uint32_t *n);
bool mg_ptx_is_decl(const char *word, size_t len);
bool mg_ptx_attributes(struct parser *p, mg_id *first, uint32_t *n); /* behind ".attribute" */

/* ---- inst.c ---- */
bool mg_ptx_inst(struct parser *p, const char *op, size_t len, mg_id guard, unsigned flags, uint32_t line);
bool mg_ptx_guard(struct parser *p, mg_id *guard, unsigned *flags);

/* ---- body.c ---- */
mg_id mg_ptx_add_node(struct parser *p, enum mg_node_kind kind, uint32_t ref, uint32_t line);
bool mg_ptx_body(struct parser *p); /* behind '{' up to behind the closing '}' */
bool mg_ptx_loc(struct parser *p, mg_id *loc);

#endif
