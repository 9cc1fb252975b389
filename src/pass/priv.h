/* Shared by the files that make a twin (twin.c, twin_symbols.c, twin_calls.c) and by passes that
 * insert code. Not for other folders. */
#ifndef MG_PASS_PRIV_H
#define MG_PASS_PRIV_H

#include "analysis/callgraph.h"
#include "pass/pass.h"

/* A twin in the making. */
struct mg_twin_build {
    struct mg_twin *t;
    struct mg_module *m;         /* t->m */
    const struct mg_module *app; /* the original: shapes of parameters before ours was added */
    struct mg_callgraph *graph;  /* of the kernel */
    struct mg_diag *d;
    mg_str ctx_name; /* of the hidden parameter */
    bool *reached;   /* func with a body -> has a clone */
    unsigned flags;  /* enum mg_twin_flags */
    MG_VEC(struct mg_twin_symbol) symbols;
    struct mg_map symbol_of_var, symbol_of_func; /* id -> index in symbols */
    MG_VEC(mg_id) native_calls, native_guards, known_loads;
    MG_VEC(struct mg_twin_known_reg) known_regs;
    struct mg_map proto_of; /* target list of the app -> prototype with the hidden parameter */
};

/* Where inserted code goes in the body at hand. */
struct mg_twin_func {
    struct mg_twin_build *b;
    mg_id func;
    uint32_t ix;                 /* in t->funcs */
    mg_id ctx, table;            /* registers: context block, symbol table (0 until needed) */
    struct mg_map reg_of_symbol; /* symbol index -> register that holds its address */
};

/* Index of the symbol in the context's table. */
uint32_t mg_twin_symbol_of_var(struct mg_twin_build *b, mg_id var);
uint32_t mg_twin_symbol_of_func(struct mg_twin_build *b, mg_id func);
enum mg_err mg_twin_refuse(struct mg_twin_func *f, mg_id node, const char *why, const char *name); /* name: or NULL */
bool mg_is_constant_load(const struct mg_module *m, const struct mg_node *n);
/* Register that holds a symbol's address from the function's entry on. */
mg_id mg_twin_symbol_reg(struct mg_twin_func *f, uint32_t symbol);
/* Replaces every reference to module-scope state and every function address in the body. */
enum mg_err mg_twin_rewrite_symbols(struct mg_twin_func *f) MG_MUST_CHECK;
/* Small tables of constants: adds the parameter that brings their values along, where that is worth it (twin_const.c).
 */
void mg_twin_plan_constants(struct mg_twin_func *f);
/* Does the function read tables of constants at moving places, in loops? */
bool mg_twin_reads_tables_in_loops(const struct mg_module *m, mg_id func);
/* Larger tables that are read at moving places: fetched at the kernel's entry (twin_prefetch.c). */
void mg_twin_prefetch_constants(struct mg_twin_func *f);
/* Passes the hidden argument at every call of a clone. */
enum mg_err mg_twin_rewrite_calls(struct mg_twin_func *f) MG_MUST_CHECK;
/* Appends the hidden parameter to a function, declaration or prototype; returns its var. */
mg_id mg_twin_add_param(struct mg_twin_build *b, mg_id func);

/* A variable of the kernel's in shared memory with so many bytes for each of its warps; 0: there is no room, or dynamic
 * shared memory that somebody would see move (twin_shared.c). */
mg_id mg_kernel_add_shared(struct mg_module *m, mg_id func, const char *stem, uint32_t bytes);
/* Appends a parameter to a function, declaration or prototype; returns its var. */
mg_id mg_func_add_param(struct mg_module *m, mg_id func, mg_str name, enum mg_type type);
/* Appends a register to a call's arguments. */
void mg_call_add_arg(struct mg_module *m, mg_id node, const struct mg_call *call, mg_id reg);

/* Inserts `form opnds` in front of `at` (0: at the end) as ours. Returns the node. */
mg_id mg_insert(struct mg_module *m, mg_id func, mg_id at, const char *form, const struct mg_opnd *opnds, uint32_t n);
#define MG_INSERT(m, func, at, ...) mg_insert((m), (func), (at), MG_INST(__VA_ARGS__))

#endif
