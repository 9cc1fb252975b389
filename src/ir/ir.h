/* The one IR: PTX-shaped, complete enough to be printed back as PTX that assembles to the same
 * machine code, packed enough to be walked at memory speed.
 *
 *   module ── items (text order at module scope) ── functions, variables, debug sections, ...
 *     function ── body: a doubly linked list of nodes in text order
 *       node = instruction | label | scope open/close | declaration | .loc | .pragma | target list
 *         instruction ── form (opcode + modifiers) ── guard ── operands (a run in module->opnds)
 *
 * Everything is named by a 32-bit id into an array of the module; id 0 is always "none" and every
 * array's element 0 is a dummy. The arrays move when they grow: keep ids, never pointers, across
 * any call that may add. Control flow, dominators, liveness and so on are not stored here: they
 * are separate results indexed by these ids (analysis/).
 * Inserted nodes carry MG_NF_META and `origin`, so that no counter and no tool ever sees them as
 * the application's.
 */
#ifndef MG_IR_IR_H
#define MG_IR_IR_H

#include "base/diag.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "isa/isa.h"

typedef uint32_t mg_id;

/* ---- operands ------------------------------------------------------------------------------ */

enum mg_opnd_kind {
    MG_OPND_none,
    MG_OPND_reg,   /* id = reg; sub = component of a vector register (1=.x 2=.y 3=.z 4=.w) or 0;
                    * val = constant added to it: "%r1+4" outside brackets, which ptxas accepts (rare) */
    MG_OPND_imm,   /* val = integer bits; sub = MG_IMM_* (how it was written) */
    MG_OPND_f32,   /* val = float bits, written 0f........ */
    MG_OPND_f64,   /* val = double bits; sub 0: written 0d, 1: written as a decimal literal whose text is id (mg_str) */
    MG_OPND_sreg,  /* id = enum mg_sreg; sub = component 1..4 or 0 */
    MG_OPND_var,   /* id = var: its address (mov d, v), or a param/retval passed to a call; val = byte offset (v+4) */
    MG_OPND_func,  /* id = func */
    MG_OPND_label, /* id = label */
    MG_OPND_addr,  /* [base + val]; sub = kind of base (reg, var, imm, none: absolute), id = reg/var.
                    * n & 7: the base is that component of a vector register (1..4).
                    * n & MG_ADDR_ZERO: written "+0"; ptxas without optimisation emits an add for it */
    MG_OPND_vec,   /* {a, b, ...}: id = first operand in module->opnds, n = count */
    MG_OPND_list,  /* (a, b, ...) of a call, same layout as vec */
    MG_OPND_tensor, /* [a, {x, y}] or [a, b, {x, y}]: same layout as vec; elements: addresses without brackets
                       (reg/var), then a vec ... */
    MG_OPND_pair,   /* d|p: same layout as vec with n = 2 */
    MG_OPND_not,    /* !p: id = reg */
    MG_OPND_sink,   /* _ */
    MG_OPND_sym,    /* a name nothing declares: id = mg_str, kept verbatim; sub 1: an unknown special register */
    MG_OPND_neg,    /* -r or a unary minus kept on a register (video instructions): id = reg, sub = selector */
    MG_OPND_sel,    /* r.b0 .. r.h1 (video selectors): id = reg, sub = MG_SEL_* */
    MG_OPND_target, /* name of a .branchtargets / .calltargets / .callprototype: id = target list */
    MG_OPND_KIND_COUNT
};
#define MG_ADDR_ZERO 0x8000u
enum mg_imm_style {
    MG_IMM_DEC,
    MG_IMM_HEX,
    MG_IMM_UNSIGNED /* 1U */,
    MG_IMM_HEX_UNSIGNED,
    MG_IMM_OCT,
    MG_IMM_BIN,
    MG_IMM_NEG /* val holds the negated value, printed with '-' */,
    MG_IMM_WIDE /* 128-bit: id = mg_str of the text */
};
enum mg_sel { MG_SEL_none, MG_SEL_b0, MG_SEL_b1, MG_SEL_b2, MG_SEL_b3, MG_SEL_h0, MG_SEL_h1, MG_SEL_neg = 16 };

struct mg_opnd {  /* 16 bytes */
    uint8_t kind; /* enum mg_opnd_kind */
    uint8_t sub;
    uint16_t n;
    mg_id id;
    uint64_t val;
};
_Static_assert(sizeof(struct mg_opnd) == 16, "operands are walked by the million");

/* ---- nodes --------------------------------------------------------------------------------- */

enum mg_node_kind {
    MG_NODE_none,
    MG_NODE_inst,   /* ref = form */
    MG_NODE_label,  /* ref = label */
    MG_NODE_open,   /* { */
    MG_NODE_close,  /* } */
    MG_NODE_decl,   /* ref = decl: .reg or a variable declared in the body */
    MG_NODE_loc,    /* ref = loc */
    MG_NODE_pragma, /* ref = mg_str, text between the quotes */
    MG_NODE_target, /* ref = target list: name: .branchtargets ... */
    MG_NODE_raw,    /* ref = mg_str: a directive kept verbatim */
    MG_NODE_KIND_COUNT
};
enum mg_node_flags {
    MG_NF_GUARD_NOT = 1, /* @!p */
    MG_NF_META = 2,      /* inserted by us, invisible to every counter */
    MG_NF_PROBE =
        4, /* inserted by us, as devices see it: survives printing (mg_module.marked), may reach Margay's memory */
};

struct mg_node {   /* 32 bytes */
    uint8_t kind;  /* enum mg_node_kind */
    uint8_t flags; /* enum mg_node_flags */
    uint16_t n_opnds;
    uint32_t ref;     /* what the kind says */
    mg_id guard;      /* predicate register, 0 = none */
    mg_id opnd;       /* first operand in module->opnds */
    mg_id prev, next; /* neighbours in the body, 0 = end */
    uint32_t line;    /* PTX line, 0 = synthetic */
    mg_id origin;     /* application instruction this one observes or stems from; 0 = itself */
};
_Static_assert(sizeof(struct mg_node) == 32, "nodes are walked by the million");

/* ---- things named by ids ------------------------------------------------------------------- */

struct mg_reg {
    mg_str name;     /* of the declaration: "%r" for %r<100> */
    uint32_t number; /* 57 for %r57 of %r<100>; UINT32_MAX when the name has no number part */
    uint8_t type;    /* enum mg_type */
    uint8_t vec;     /* 0, 2, 4 */
    mg_id func;      /* 0: declared at module scope */
    mg_id decl;
};

enum mg_link { MG_LINK_none, MG_LINK_extern, MG_LINK_visible, MG_LINK_weak, MG_LINK_common };

enum mg_init_kind {
    MG_INIT_int,
    MG_INIT_f32,
    MG_INIT_f64,
    MG_INIT_sym /* id = var or func, val = offset */,
    MG_INIT_generic /* generic(sym)+val */,
    MG_INIT_mask /* mask(sym): id, val = mask, off */,
    MG_INIT_open /* { */,
    MG_INIT_close /* } */,
    MG_INIT_unresolved /* id = mg_str */
};
struct mg_init { /* one token of an initialiser, braces included */
    uint8_t kind;
    uint8_t is_func; /* sym: id names a function */
    uint8_t style;   /* enum mg_imm_style; for f64: 1 = decimal text in id */
    uint8_t pad;
    mg_id id;
    int64_t val;
    int64_t off;
};

struct mg_var { /* a variable of any space but .reg, a parameter or a return parameter */
    mg_str name;
    uint8_t space;   /* enum mg_space */
    uint8_t type;    /* enum mg_type */
    uint8_t vec;     /* 0, 2, 4, 8 */
    uint8_t link;    /* enum mg_link */
    uint32_t align;  /* 0 = natural */
    uint32_t n_dims; /* 0: scalar; dims[i] = 0: unsized ([]) */
    uint64_t *dims;  /* owner: module arena */
    uint64_t count;  /* declared as name<count>: this var stands for name0..; 0 otherwise */
    mg_id func;      /* function whose body or parameter list declares it; 0 = module scope */
    mg_id first_init;
    uint32_t n_inits; /* run in module->inits */
    mg_id first_attr;
    uint32_t n_attrs; /* strings of .attribute(...) in module->strs */
    uint8_t is_ptr, ptr_space;
    uint16_t ptr_flags; /* kernel parameter attributes .ptr .space; ptr_flags: bank + 1 of PTX 1.x .const[bank] */
    uint32_t ptr_align;
    uint8_t is_param, is_ret, managed,
        is_reg_param; /* is_reg_param: .reg parameter of a PTX 1.x/2.x .func; its register is `reg` */
    uint8_t is_added; /* a twin's, not the program's */
    mg_id reg;
    uint32_t line;
    mg_id def; /* the definition of this name: itself, or a later var when this one is .extern; module scope only */
};
uint64_t mg_var_bytes(const struct mg_var *v); /* 0 for unsized */
uint32_t mg_var_align(const struct mg_var *v); /* natural alignment when none was written */

struct mg_decl {   /* one declaration statement: `.reg .b32 %r<9>, %x;` or `.shared .align 4 .b8 s[16];` */
    uint8_t space; /* MG_SPACE_reg: regs [first, first + n) in groups; else vars [first, first + n) */
    uint8_t type, vec, pad;
    mg_id first;
    uint32_t n;
    mg_id first_group;
    uint32_t n_groups; /* reg declarations: module->groups */
};
struct mg_reg_group { /* `%r<100>` = 100 registers from first_reg, or one plain name (count 0) */
    mg_str name;
    mg_id first_reg;
    uint32_t count; /* 0: a single register without number */
};

struct mg_label {
    mg_str name;
    mg_id func;
    mg_id node;
    uint8_t targeted; /* some branch or branch table names it */
};
struct mg_loc {
    uint32_t file, line, col;
    mg_str function;
    uint32_t function_off;
    uint32_t inl_file, inl_line, inl_col;
    uint8_t has_inlined;
    mg_str raw; /* rest kept verbatim, 0 = none */
};
struct mg_file {
    uint32_t index;
    mg_str path;
    uint64_t time, size;
    uint8_t has_time;
};

enum mg_target_kind { MG_TARGET_branch, MG_TARGET_call, MG_TARGET_proto };
struct mg_target {
    uint8_t kind;
    mg_str name;
    mg_id func;
    mg_id first_opnd;
    uint32_t n_opnds; /* labels or functions */
    mg_id proto;      /* MG_TARGET_proto: a mg_func holding the parameter lists, kind MG_FUNC_proto */
};

enum mg_func_kind { MG_FUNC_none, MG_FUNC_entry, MG_FUNC_func, MG_FUNC_proto };
struct mg_directive {
    mg_str text; /* whole text with its dot: ".maxntid 256, 1, 1" */
};
struct mg_func {
    mg_str name;
    uint8_t kind;    /* enum mg_func_kind */
    uint8_t link;    /* enum mg_link */
    uint8_t defined; /* has a body */
    uint8_t noreturn;
    uint8_t stays; /* of our own: its calls are to stay calls */
    mg_id first_ret;
    uint32_t n_rets; /* vars */
    mg_id first_param;
    uint32_t n_params; /* vars */
    mg_id first_directive;
    uint32_t n_directives; /* performance directives, in text order */
    mg_id first_attr;
    uint32_t n_attrs;
    mg_id first_node, last_node; /* body, without the outer braces */
    mg_id def;     /* a declaration: the id of the definition in this module, or 0; a definition: itself */
    mg_id decl_of; /* a later declaration: first func entry of that name */
    uint32_t n_insts;
    uint32_t line, end_line;
    uint32_t maxntid[3], reqntid[3], minnctapersm, maxnreg, maxnctapersm,
        cluster[3];       /* parsed from the directives, 0 = not given */
    uint64_t param_bytes; /* entries: size of the parameter block with PTX layout rules */
};
/* Byte offset of each parameter of an entry in its parameter block. */
uint64_t mg_func_param_offset(const struct mg_func *f, const struct mg_var *vars, uint32_t ix);

enum mg_item_kind {
    MG_ITEM_none,
    MG_ITEM_func,
    MG_ITEM_decl,
    MG_ITEM_file,
    MG_ITEM_section,
    MG_ITEM_alias,
    MG_ITEM_pragma,
    MG_ITEM_loc,
    MG_ITEM_raw
};
struct mg_item {
    uint8_t kind;
    uint8_t flags;
    mg_id id; /* func, decl, file, section, alias, str */
};
struct mg_section {
    mg_str name;
    mg_id first_line;
    uint32_t n_lines; /* module->strs: one string per line, tokens joined */
};
struct mg_alias {
    mg_id from, to; /* funcs */
};

struct mg_module {
    struct mg_arena arena;
    struct mg_intern names;
    char *file;  /* for messages; may be NULL */
    char id[33]; /* mg_text_id of the text it was parsed from */
    uint16_t version_major, version_minor;
    mg_str target;        /* whole operand list of .target: "sm_90a, debug" */
    uint16_t sm;          /* 90 for sm_90a; 10 for compute_10 */
    char sm_suffix;       /* 'a', 'f' or 0 */
    uint8_t address_size; /* 32 or 64. Texts without the directive get 64: the ISA says 32, but the driver and
                           * ptxas take the host's size, and has_address_size is 0 */
    uint8_t has_address_size;
    uint8_t debug;
    struct mg_map *fused; /* of a twin: sums -> products as in the kernel (analysis/contract.h); NULL: none sought */
    bool marked;          /* the text says which lines were inserted (MG_NF_PROBE): ptx/ptx.h */
    MG_VEC(struct mg_item) items;
    MG_VEC(struct mg_func) funcs;
    MG_VEC(struct mg_var) vars;
    MG_VEC(struct mg_reg) regs;
    MG_VEC(struct mg_reg_group) groups;
    MG_VEC(struct mg_decl) decls;
    MG_VEC(struct mg_label) labels;
    MG_VEC(struct mg_target) targets;
    MG_VEC(struct mg_node) nodes;
    MG_VEC(struct mg_opnd) opnds;
    MG_VEC(struct mg_init) inits;
    MG_VEC(struct mg_loc) locs;
    MG_VEC(struct mg_file) files;
    MG_VEC(struct mg_section) sections;
    MG_VEC(struct mg_alias) aliases;
    MG_VEC(mg_str) strs;
    MG_VEC(struct mg_directive) directives;
    MG_VEC(struct mg_form) forms;  /* [0] dummy; interned by text */
    struct mg_map form_by_text;    /* mg_str -> form id */
    uint32_t n_unknown_forms;      /* forms with an unknown word */
    uint32_t n_unknown_directives; /* kept as raw text */
    uint32_t n_unknown_sregs;      /* operands that look like special registers and are not in the tables */
    uint32_t n_insts;
    int32_t n_holds; /* owners beyond the first; atomic */
};

struct mg_module *mg_module_new(void);
void mg_module_free(struct mg_module *m); /* by its last owner */
/* One owner more: each frees it once, and none changes it. */
struct mg_module *mg_module_hold(const struct mg_module *m);

/* ---- reading ------------------------------------------------------------------------------- */

static inline const char *mg_name(const struct mg_module *m, mg_str s)
{
    return mg_intern_text(&m->names, s);
}
static inline const struct mg_form *mg_node_form(const struct mg_module *m, const struct mg_node *n)
{
    return &m->forms.at[n->ref];
}
mg_id mg_module_find_func(const struct mg_module *m,
                          const char *name); /* the definition when there is one; 0 when absent */
mg_id mg_module_find_var(const struct mg_module *m, const char *name); /* module scope */
const char *mg_module_path(const struct mg_module *m, uint32_t index); /* of the source file that .loc numbers so */
#define MG_EACH_NODE(m, f, id) for (mg_id id = (f)->first_node; id; id = (m)->nodes.at[id].next)
/* "%r57" of a register. */
void mg_reg_text(const struct mg_module *m, mg_id reg, struct mg_buf *out);

void mg_func_regs(const struct mg_module *m, mg_id func, mg_id *lo, mg_id *hi); /* declared there: from lo up to hi */
/* Registers an instruction reads and writes (guard, address bases, vector elements and call lists
 * included). Fills ids[] up to cap and returns how many there are. */
uint32_t mg_node_uses(const struct mg_module *m, mg_id node, mg_id *ids, uint32_t cap);
uint32_t mg_node_defs(const struct mg_module *m, mg_id node, mg_id *ids, uint32_t cap);

/* Gives every register that the instruction reads or writes the one that the functions answer for it: the
 * guard, bases of addresses and components of vectors included. */
struct mg_reg_renamer {
    mg_id (*use)(mg_id reg, void *user), (*def)(mg_id reg, void *user);
    void *user;
};
void mg_node_rename(struct mg_module *m, mg_id node, const struct mg_reg_renamer *r);

/* ---- building and editing (ir/build.c, ir/edit.c) ------------------------------------------- */

mg_id mg_form_intern(struct mg_module *m, const char *text, size_t len);
mg_id mg_module_add_reg(
    struct mg_module *m, mg_id func, const char *name,
    enum mg_type type); /* adds the .reg declaration at the head of the body; the name is made unique */
mg_id mg_module_add_regs(struct mg_module *m, mg_id func, const char *prefix, enum mg_type type,
                         uint32_t count); /* prefix<count>; first id, consecutive */
/* A variable of ours in shared memory, STEM and its number: n elements, 0: a scalar; align 0: natural. In front of what
 * the function declares; func 0: of module scope. */
mg_id mg_module_add_shared(struct mg_module *m, mg_id func, const char *stem, enum mg_type type, uint32_t align,
                           uint64_t n);
void mg_module_add_item(struct mg_module *m,
                        struct mg_item item); /* in front of the first function, so that every body sees it */
mg_id mg_module_add_label(struct mg_module *m, mg_id func, const char *name);
mg_id mg_opnd_alloc(struct mg_module *m, uint32_t n); /* n fresh consecutive operands */
/* New unlinked instruction with operands copied in. Both mark it MG_NF_META and MG_NF_PROBE: clear the flags
 * of one that takes an application instruction's place. */
mg_id mg_node_new(struct mg_module *m, const char *form, const struct mg_opnd *opnds, uint32_t n);
mg_id mg_node_new_kind(struct mg_module *m, enum mg_node_kind kind, uint32_t ref);
void mg_node_insert_before(struct mg_module *m, mg_id func, mg_id at, mg_id node); /* at = 0: at the end */
void mg_node_insert_after(struct mg_module *m, mg_id func, mg_id at, mg_id node);  /* at = 0: at the head */
void mg_node_remove(struct mg_module *m, mg_id func, mg_id node);

static inline struct mg_opnd mg_o_reg(mg_id r)
{
    return (struct mg_opnd){.kind = MG_OPND_reg, .id = r};
}
static inline struct mg_opnd mg_o_imm(int64_t v)
{
    return (struct mg_opnd){.kind = MG_OPND_imm, .val = (uint64_t)v};
}
static inline struct mg_opnd mg_o_f32(float v)
{
    union {
        float f;
        uint32_t bits;
    } u = {v};
    return (struct mg_opnd){.kind = MG_OPND_f32, .val = u.bits};
}
static inline struct mg_opnd mg_o_sreg(enum mg_sreg s, uint8_t comp)
{
    return (struct mg_opnd){.kind = MG_OPND_sreg, .id = s, .sub = comp};
}
static inline struct mg_opnd mg_o_addr_reg(mg_id r, int64_t off)
{
    return (struct mg_opnd){.kind = MG_OPND_addr, .sub = MG_OPND_reg, .id = r, .val = (uint64_t)off};
}
static inline struct mg_opnd mg_o_addr_var(mg_id v, int64_t off)
{
    return (struct mg_opnd){.kind = MG_OPND_addr, .sub = MG_OPND_var, .id = v, .val = (uint64_t)off};
}
static inline struct mg_opnd mg_o_var(mg_id v)
{
    return (struct mg_opnd){.kind = MG_OPND_var, .id = v};
}
static inline struct mg_opnd mg_o_func(mg_id f)
{
    return (struct mg_opnd){.kind = MG_OPND_func, .id = f};
}
static inline struct mg_opnd mg_o_label(mg_id l)
{
    return (struct mg_opnd){.kind = MG_OPND_label, .id = l};
}
static inline struct mg_opnd mg_o_not(mg_id r)
{
    return (struct mg_opnd){.kind = MG_OPND_not, .id = r};
}

/* An instruction of ours as it is written: its form and up to seven operands. A register is its mg_id, a number an int
 * or an int64_t, all else a struct mg_opnd; an unsigned number would be taken for a register: mg_o_imm(n). Three
 * arguments: the form, the operands, how many. */
static inline struct mg_opnd mg_o_opnd(struct mg_opnd o)
{
    return o;
}
#define MG_O(x)                                  _Generic((x), mg_id : mg_o_reg, int : mg_o_imm, int64_t : mg_o_imm, struct mg_opnd : mg_o_opnd)(x)
#define MG_O1(x)                                 MG_O(x)
#define MG_O2(x, ...)                            MG_O(x), MG_O1(__VA_ARGS__)
#define MG_O3(x, ...)                            MG_O(x), MG_O2(__VA_ARGS__)
#define MG_O4(x, ...)                            MG_O(x), MG_O3(__VA_ARGS__)
#define MG_O5(x, ...)                            MG_O(x), MG_O4(__VA_ARGS__)
#define MG_O6(x, ...)                            MG_O(x), MG_O5(__VA_ARGS__)
#define MG_O7(x, ...)                            MG_O(x), MG_O6(__VA_ARGS__)
#define MG_I0(form)                              (form), NULL, 0
#define MG_I1(form, ...)                         (form), (const struct mg_opnd[]){MG_O1(__VA_ARGS__)}, 1
#define MG_I2(form, ...)                         (form), (const struct mg_opnd[]){MG_O2(__VA_ARGS__)}, 2
#define MG_I3(form, ...)                         (form), (const struct mg_opnd[]){MG_O3(__VA_ARGS__)}, 3
#define MG_I4(form, ...)                         (form), (const struct mg_opnd[]){MG_O4(__VA_ARGS__)}, 4
#define MG_I5(form, ...)                         (form), (const struct mg_opnd[]){MG_O5(__VA_ARGS__)}, 5
#define MG_I6(form, ...)                         (form), (const struct mg_opnd[]){MG_O6(__VA_ARGS__)}, 6
#define MG_I7(form, ...)                         (form), (const struct mg_opnd[]){MG_O7(__VA_ARGS__)}, 7
#define MG_NINTH(a, b, c, d, e, f, g, h, i, ...) i
#define MG_INST(...)                             MG_NINTH(__VA_ARGS__, MG_I7, MG_I6, MG_I5, MG_I4, MG_I3, MG_I2, MG_I1, MG_I0, )(__VA_ARGS__)

/* Checks what every pass must leave true (ids in range, lists consistent, labels placed once,
 * guards are predicates, declared before use). */
enum mg_err mg_module_verify(const struct mg_module *m, struct mg_diag *d) MG_MUST_CHECK;
/* Makes the module what it would be had it been printed and parsed: functions and variables of module scope that no
 * item names are defined no more, and inserted nodes are the module's own (MG_NF_PROBE alone stays). For devices. */
void mg_module_finish(struct mg_module *m);
/* Deep copy of the whole module; ids stay equal. */
struct mg_module *mg_module_clone(const struct mg_module *m);
/* The same with the bodies of some functions alone (keep[id]); the others are there without. */
struct mg_module *mg_module_clone_part(const struct mg_module *m, const bool *keep);

#endif
