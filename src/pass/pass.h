/* Passes: {name, scope, needs, keeps, run}. The driver computes the analyses a pass needs, drops
 * those it does not keep, verifies the module after every pass in debug builds and dumps it on
 * --dump=PASS. */
#ifndef MG_PASS_PASS_H
#define MG_PASS_PASS_H

#include "analysis/analysis.h"
#include "base/buf.h"

enum mg_analysis {
    MG_AN_CFG = 1,
    MG_AN_DOM = 2,
    MG_AN_LOOP = 4,
    MG_AN_LIVE = 8,
    MG_AN_SSA = 16,
    MG_AN_SPACE = 32,
    MG_AN_UNIFORM = 64,
    MG_AN_ALL = 127
};
enum mg_pass_scope { MG_SCOPE_IMMUTABLE, MG_SCOPE_MODULE, MG_SCOPE_KERNEL, MG_SCOPE_BLOCK };

struct mg_pass_ctx; /* module under work, analyses so far, scratch arena, diag */
struct mg_pass {
    const char *name, *summary;
    enum mg_pass_scope scope;
    unsigned needs, keeps; /* enum mg_analysis */
    enum mg_err (*run)(struct mg_pass_ctx *c, void *user, mg_id func,
                       uint32_t block); /* func, block as the scope says */
};
struct mg_module *mg_pass_module(struct mg_pass_ctx *c);
struct mg_diag *mg_pass_diag(struct mg_pass_ctx *c);
/* Analyses, computed when first asked for and kept until a pass does not keep them. MG_AN_DOM stands
 * for dominators and postdominators; SSA goes when any of CFG, DOM, LIVE goes, uniformity with CFG or LOOP. Borrowed.
 */
const struct mg_cfg *mg_pass_cfg(struct mg_pass_ctx *c, mg_id func);
const struct mg_dom *mg_pass_dom(struct mg_pass_ctx *c, mg_id func);
const struct mg_dom *mg_pass_postdom(struct mg_pass_ctx *c, mg_id func);
const struct mg_loops *mg_pass_loops(struct mg_pass_ctx *c, mg_id func);
const struct mg_live *mg_pass_live(struct mg_pass_ctx *c, mg_id func);
const struct mg_ssa *mg_pass_ssa(struct mg_pass_ctx *c, mg_id func);
const struct mg_uniform *mg_pass_uniform(struct mg_pass_ctx *c, mg_id func);
const struct mg_spaces *mg_pass_spaces(struct mg_pass_ctx *c);

struct mg_pipeline_step {
    const struct mg_pass *pass;
    void *user;
};
struct mg_pass_opts {
    size_t size;
    const char *dump; /* name of a pass, "all" or NULL: print the module after it to `dump_to` */
    struct mg_buf *dump_to;
    bool verify;       /* after each pass; on in debug builds */
    uint64_t *pass_ns; /* per step, may be NULL */
};
enum mg_err mg_pass_run(struct mg_module *m, const struct mg_pipeline_step *steps, uint32_t n,
                        const struct mg_pass_opts *opts, struct mg_diag *d) MG_MUST_CHECK;

/* Passes that stand alone (passes.def). */
const struct mg_pass *mg_pass_find(const char *name);
const struct mg_pass *mg_pass_at(uint32_t ix); /* NULL past the last */

/* ---- the twin (pass/twin.c) ------------------------------------------------------------------
 * A module that holds one kernel under its own name, clones of every function it reaches, and one
 * hidden trailing parameter: the address of the launch's context block. No address is in its
 * text: module-scope variables and native functions are read from the context block's symbol table.
 *
 *   context block (global memory)          symbol table
 *   +0  u64 counters  ──► +128             +8*i  u64 address of symbols[i] in the app's image
 *   +8  u64 symbols   ──►
 *   +16 u64 words[MG_CTX_WORDS]  what tools ask for per launch
 *   +120 u64 spoilt              0; what kernels store there when guard words beside theirs in shared memory have
 *                                changed
 *   +128 u64 counters, right behind the block: code may go there without asking  */
#define MG_CTX_COUNTERS 0
#define MG_CTX_SYMBOLS  8
#define MG_CTX_WORDS    16
#define MG_CTX_N_WORDS  13
#define MG_CTX_SPOILT   120 /* not 0: words of ours in shared memory were written by somebody else (a GPU) */
#define MG_CTX_BYTES    128

struct mg_twin_symbol {
    char *name;
    bool is_func;
}; /* owner: twin */
/* Constants whose values a launch brings along in a parameter behind the hidden one (pass/twin_const.c): bytes [from,
 * from + bytes) of the symbol's variable stand at `at` in it. Word 0 of the parameter: address of a copy, in global
 * memory, of what stands in it from `known_values` on, 0 if that is nothing; word 1 + i: address of the variable of
 * known[i]. bytes 0: that alone. */
struct mg_twin_known {
    uint32_t symbol, from, bytes, at;
};
/* The module is a clone whose ids are those of the original: an application instruction, function
 * or variable has the same id in both (parameters excepted: they move when one is added). */
struct mg_twin {
    struct mg_module *m;     /* owner: twin */
    mg_id kernel;            /* in m and in the original */
    uint32_t threads;        /* of a CTA of the launch that it is made for; 0: not known. Its maker's to set */
    uint64_t ctas;           /* of that launch; 0: not known */
    uint32_t registers;      /* of a thread of the native code, */
    uint32_t most_registers; /* with which as many of that launch's CTAs fit at once as natively; 0: not known */
    bool must_fit;           /* it may need that */
    uint32_t fewer;          /* registers to have where a later launch needs room for more CTAs; 0: as it is */
    bool fitted;             /* its text would be another one for another launch, or with more known of it */
    bool keeps_lanes;        /* lanes meet in it where they meet natively: which ones run together is told of it */
    mg_id ctx_param;         /* var: hidden parameter of the kernel */
    bool has_cells;          /* its text says where the launch's cells are: mg_twin_has_cells */
    uint32_t ctx_offset;     /* its byte offset in the parameter block */
    struct mg_twin_symbol *symbols;
    uint32_t n_symbols;
    struct mg_twin_known *known;
    uint32_t n_known, known_bytes; /* bytes of the parameter; 0: there is none */
    uint32_t known_offset, known_values;
    mg_id known_param;
    struct mg_twin_known_reg {
        mg_id reg;
        uint32_t table;
        int64_t off;
    } * known_regs;
    uint32_t n_known_regs; /* hold the variables' addresses */
    mg_id *known_loads;
    uint32_t n_known_loads;
    mg_id *funcs;
    uint32_t n_funcs; /* kernel first, then clones in text order */
    mg_id *ctx_reg;   /* per function: .u64 register that holds the context block's address */
    mg_id *entry_at;  /* per function: entry code of tools goes in front of this node (0: at the end);
                       * ctx_reg is loaded before it */
    mg_id *closing;   /* per function: the ret that tools put behind a body that runs off its end; 0: none */
    mg_id *native_calls;
    mg_id *native_guards;
    uint32_t n_native_calls; /* calls of functions without a clone, and
                              * the predicate that tells which lanes make them */
};
/* Fails with MG_ERR_UNSUPPORTED (reason in d) when the kernel cannot have a twin alone: sampler
 * references, device-side launches. The handle of a texture or surface reference is read from its variable. */
enum mg_err mg_twin_new(const struct mg_module *m, mg_id kernel, struct mg_twin **out, struct mg_diag *d) MG_MUST_CHECK;
enum mg_twin_flags {
    MG_TWIN_LAUNCHES = 1,  /* the device sees to launches that kernels make: they are no reason to refuse */
    MG_TWIN_CONSTANTS = 2, /* loads of constants may be rewritten for speed: nobody looks at them in the twin */
    MG_TWIN_ADDRESSES = 8, /* launches may bring along addresses of variables */
    MG_TWIN_ONE_TABLE =
        4, /* but only where no address may be of one table or another: tables lie elsewhere among each other then */
};
bool mg_kernel_launches(const struct mg_module *m,
                        mg_id kernel); /* launches kernels itself, or holds the address of one */
enum mg_err mg_twin_new_as(const struct mg_module *m, mg_id kernel, unsigned flags, struct mg_twin **out,
                           struct mg_diag *d) MG_MUST_CHECK;
/* Bytes of shared memory that the twin's functions and the module as a whole declare; kernels that it has not
 * count nothing. *dynamic: some of it gets its size at the launch. */
uint64_t mg_twin_shared_bytes(const struct mg_module *m, bool *dynamic);
/* Aligns those of whole 16 bytes by 16, so that they may be read by fours. */
void mg_twin_align_shared(struct mg_module *m);
/* Has products and sums, between which inserted code lies, computed as one where the assembler does so natively, and
 * keeps loops rolled that are natively: behind what tools insert, in front of what moves code. */
void mg_twin_contract(struct mg_twin *t);
/* What a GPU asks of a twin, before tools insert code: calls of native functions trap (nobody makes them), shared
 * variables are aligned, lanes of a warp come together in front of barriers of the whole CTA. */
void mg_twin_for_gpu(struct mg_twin *t);
/* Keeps the assembler from a step that fails beside code of ours that waits for lanes (pass/twin_tests.c). */
void mg_twin_hide_zeros(struct mg_twin *t);
/* Takes the hidden parameter from functions that do not need it (pass/twin_ctx.c). This and what follows stand
 * behind everything that tools do with the twin. */
void mg_twin_drop_contexts(struct mg_twin *t);
/* Puts small functions where they are called (pass/twin_inline.c): sites, nodes and lists of functions know nothing
 * of the copies. */
void mg_twin_inline(struct mg_twin *t);
/* The same in a module as it is loaded, for a compiler of ours: larger functions, which stay. calls_arithmetic: it has
 * functions for those of arithmetic alone, of which the larger ones are called. */
void mg_module_inline(struct mg_module *m, bool calls_arithmetic);
/* An access that goes astray below the kernel's shared memory, into words of ours, has the address that it has natively
 * (pass/twin_window.c). */
void mg_twin_keep_window(struct mg_twin *t);
/* Makes the body that reads constants from the parameter, beside that which reads them in memory (pass/twin_const.c).
 */
void mg_twin_split_constants(struct mg_twin *t);
/* Tells the device where cell 0 of each launch is, once: right behind the context block. For devices that take probes
 * by what they mean (docs/counters.md, "What probes mean"). */
void mg_twin_has_cells(struct mg_twin *t);
void mg_twin_free(struct mg_twin *t);

#endif
