/* The one-liner language (docs/probe-language.md), from text to something a tool can place:
 *
 *   ld.global, st.global /lanes < 32/ { @bytes[kernel, line] = sum(width) }
 *   └ sites ───────────┘ └ predicate ┘  └ map ┘└ keys ────┘   └ aggregate ┘
 *
 *   text ─ expr_lex ─ expr_parse ─► struct mg_expr ─ expr_check ─► types, maps ─ expr_tool ─► probes
 *
 * A program is a list of clauses. Integers have 64 bits and a sign; strings are known before the kernel
 * runs, so they occur in keys and comparisons only. There are no loops and no pointers: whatever
 * passes the checks here ends and writes nothing but its maps. */
#ifndef MG_TOOL_EXPR_H
#define MG_TOOL_EXPR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/diag.h"

/* ---- values ------------------------------------------------------------------------------------ */
enum mg_expr_value {
    MG_EV_none,
#define VALUE(name, text, flags, help) MG_EV_##name,
#include "probe/expr_values.def"
#undef VALUE
    MG_EV_COUNT
};
enum mg_expr_value_flags {
    MG_EVF_STR = 1,     /* a string */
    MG_EVF_SITE = 2,    /* known at the site before the kernel runs */
    MG_EVF_WARP = 4,    /* the same for all lanes of a warp that are there */
    MG_EVF_INST = 8,    /* only at instructions */
    MG_EVF_ACCESS = 16, /* only at instructions that access memory */
    MG_EVF_AFTER = 32,  /* of an instruction's result: known behind it */
    MG_EVF_HEX = 64,    /* shown as 0x... */
};
const char *mg_expr_value_text(enum mg_expr_value v);
unsigned mg_expr_value_flags(enum mg_expr_value v);

/* ---- the tree; owner of all: the program's arena ------------------------------------------------- */
enum mg_expr_kind {
    MG_EK_NUM,
    MG_EK_STR,
    MG_EK_VALUE,
    MG_EK_ARG /* arg0..: num */,
    MG_EK_VAR /* $x: num = its index */,
    MG_EK_OP,
    MG_EK_FUNC,
    MG_EK_INPUT /* $0..: what a probe in C hands over */
};
enum mg_expr_op { /* binary ones in order of strength, weakest first */
                  MG_EO_none,
                  MG_EO_OR_ELSE,
                  MG_EO_AND_ALSO,
                  MG_EO_OR,
                  MG_EO_XOR,
                  MG_EO_AND,
                  MG_EO_EQ,
                  MG_EO_NE,
                  MG_EO_LT,
                  MG_EO_LE,
                  MG_EO_GT,
                  MG_EO_GE,
                  MG_EO_SHL,
                  MG_EO_SHR,
                  MG_EO_ADD,
                  MG_EO_SUB,
                  MG_EO_MUL,
                  MG_EO_DIV,
                  MG_EO_REM,
                  MG_EO_NEG,
                  MG_EO_NOT,
                  MG_EO_INV,
                  MG_EO_CHOOSE /* a ? b : c */
};
enum mg_expr_func { MG_EF_none, MG_EF_popc, MG_EF_log2, MG_EF_min, MG_EF_max, MG_EF_abs };
enum mg_expr_type { MG_ET_INT, MG_ET_BOOL, MG_ET_STR };
struct mg_expr_node {
    uint8_t kind, op /* enum mg_expr_op or mg_expr_func */, type /* enum mg_expr_type, by mg_expr_check */, n_args;
    uint16_t value; /* enum mg_expr_value */
    uint32_t line, col;
    int64_t num;
    const char *text; /* of a string, or the source text of the whole */
    struct mg_expr_node *args[3];
};

enum mg_expr_agg {
    MG_EA_none,
    MG_EA_count,
    MG_EA_sum,
    MG_EA_min,
    MG_EA_max,
    MG_EA_avg,
    MG_EA_hist,
    MG_EA_lhist,
    MG_EA_topk,
    MG_EA_COUNT
};
const char *mg_expr_agg_text(enum mg_expr_agg a);
enum {
    MG_EXPR_HIST = 65 /* buckets: below 0, 0, then one for each power of two */,
    MG_EXPR_KEYS = 8,
    MG_EXPR_C_VARS = 16,
    MG_EXPR_UPDATES = 127,
    MG_EXPR_BUCKETS = 1024,
    MG_EXPR_ENTRIES = 1 << 14,
    MG_EXPR_MOST_ENTRIES = 1 << 20,
    MG_EXPR_EMITS = 64,
    MG_EXPR_C_EMITS = 4 /* values of a record that a probe in C emits */
};

struct mg_expr_map {
    const char *name;      /* with its '@' */
    uint8_t agg;           /* enum mg_expr_agg */
    uint32_t first_update; /* that made it */
    uint32_t n_keys;
    const char *key_names[MG_EXPR_KEYS]; /* as first written */
    uint8_t key_flags[MG_EXPR_KEYS];     /* MG_EVF_STR, MG_EVF_HEX */
    int64_t lo, hi, step;                /* lhist */
    uint32_t top;                        /* topk */
    uint8_t value_flags;                 /* MG_EVF_HEX: what topk shows */
    uint32_t line, col;
};
/* Cells that one entry takes. */
uint32_t mg_expr_map_cells(const struct mg_expr_map *m);
uint32_t mg_expr_lhist_buckets(const struct mg_expr_map *m); /* below and above included */

struct mg_expr_update {
    uint32_t map, ix; /* ix: number of the update in the program */
    struct mg_expr_node *keys[MG_EXPR_KEYS];
    uint32_t n_keys;
    struct mg_expr_node *value; /* NULL: count */
};
enum mg_expr_stmt_kind {
    MG_ES_UPDATE,
    MG_ES_SET,
    MG_ES_IF,
    MG_ES_SKIP,
    MG_ES_BEGIN,
    MG_ES_END /* an event */,
    MG_ES_EMIT,
    MG_ES_CALL /* a probe in C */
};
struct mg_expr_stmt {
    uint8_t kind;
    uint32_t line, col;
    struct mg_expr_stmt *next, *then, *other;
    struct mg_expr_node *expr; /* SET: value; IF: condition */
    uint32_t var;
    const char *name;         /* CALL; BEGIN, END: of the event */
    struct mg_expr_update up; /* UPDATE; EMIT: its keys are the values, ix the number of the emit */
};

enum mg_expr_where {
    MG_EW_INST,
    MG_EW_BLOCK,
    MG_EW_EDGE,
    MG_EW_BACK_EDGE,
    MG_EW_LOOP,
    MG_EW_KERNEL_ENTRY,
    MG_EW_KERNEL_EXIT,
    MG_EW_FUNC_ENTRY,
    MG_EW_FUNC_EXIT,
    MG_EW_CTA_ENTRY
};
enum mg_expr_position { MG_EP_AUTO, MG_EP_BEFORE, MG_EP_AFTER };
struct mg_expr_site { /* of a clause's list */
    uint8_t where, position;
    bool issued;                                 /* lanes whose guard is false, too */
    const char *pattern;                         /* INST: "ld.global" */
    const char *kernel, *function, *file, *type; /* globs; NULL: any */
    uint32_t line_lo, line_hi;                   /* hi 0: any */
    uint32_t line, col;
    struct mg_expr_site *next;
};
struct mg_expr_clause {
    struct mg_expr_site *sites;
    struct mg_expr_node *pred; /* NULL: always */
    struct mg_expr_stmt *body;
    struct mg_expr_clause *next;
    bool uses[MG_EV_COUNT]; /* values it reads */
    bool skips, calls;      /* calls: of probes in C */
    uint32_t line, col;
};
struct mg_expr {
    struct mg_arena arena;
    struct mg_expr_clause *clauses;
    struct mg_expr_map *maps;
    uint32_t n_maps;
    struct mg_expr_update **updates;
    uint32_t n_updates;
    const char **vars;
    uint32_t n_vars;  /* with their '$'; those of probes in C come first: $c0 .. */
    uint32_t entries; /* room in each hash table, a power of two */
    uint32_t records; /* that a launch has room for: events */
    const char *emits[MG_EXPR_EMITS];
    uint32_t n_emits;  /* who emits records: line:column of the statement, or a probe in C */
    const char *probe; /* file of probes in C, compiled; NULL: none */
    bool uses[MG_EV_COUNT];
};
/* Parses and checks a program; `name` stands in messages ("-e"). Several errors are reported at once. */
enum mg_err mg_expr_parse(const char *text, size_t bytes, const char *name, struct mg_expr **out,
                          struct mg_diag *d) MG_MUST_CHECK;
void mg_expr_free(struct mg_expr *e);
struct mg_probe;
/* Joins a program with the probes in C that it calls. */
enum mg_err mg_expr_join(struct mg_expr *e, struct mg_probe *p, const char *name, struct mg_diag *d) MG_MUST_CHECK;
/* Once more, when clauses have learnt what their probes in C look at. */
enum mg_err mg_expr_recheck(struct mg_expr *e, const char *name, struct mg_diag *d) MG_MUST_CHECK;
/* Is an instruction's dotted text one that the pattern means? "ld.global" fits "ld.relaxed.gpu.global.u32":
 * the first word names the opcode, the others modifiers in that order; each may be a glob. */
bool mg_expr_fits(const char *pattern, const char *op);
bool mg_expr_is_class(const char *word, size_t n); /* load, store, atomic or access */

/* ---- evaluation before the kernel runs -------------------------------------------------------------- */
struct mg_expr_const {
    bool known, is_str;
    int64_t num;
    const char *str;
};
struct mg_expr_env {
    struct mg_expr_const values[MG_EV_COUNT]; /* of the site */
};
/* Not known when anything that matters is not: `0 && x` is 0. Pure. */
struct mg_expr_const mg_expr_eval(const struct mg_expr_node *n, const struct mg_expr_env *env);

#endif
