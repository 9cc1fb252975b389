/* PTX as tables, no logic: opcodes, modifiers, types, state spaces, special registers.
 *
 * An instruction's dotted text ("ld.global.nc.v4.f32") is a *form*: the stem is an opcode of
 * ops.def, each following word a modifier of mods.def (types are modifiers too). A module interns
 * its forms (struct mg_form), so an instruction holds one small id and every fact about its text
 * is looked up once. Words the tables do not know keep their text and get no id: such a form is
 * carried verbatim and reported, it never breaks a module.
 */
#ifndef MG_ISA_ISA_H
#define MG_ISA_ISA_H

#include "base/compiler.h"

enum mg_op { /* MG_OP_add, MG_OP_ld, ... one row of ops.def each; 0 = unknown opcode */
             MG_OP_none,
#define OP(name, flags) MG_OP_##name,
#include "isa/ops.def"
#undef OP
             MG_OP_COUNT
};

enum mg_op_flags {
    MG_OPF_ENDS_BLOCK = 1,  /* bra brx call ret exit trap: what follows starts a new block */
    MG_OPF_READS = 2,       /* reads memory */
    MG_OPF_WRITES = 4,      /* writes memory */
    MG_OPF_ATOMIC = 8,      /* atom, red */
    MG_OPF_CONVERGENT = 16, /* meaning depends on which lanes run it together */
    MG_OPF_BARRIER = 32,    /* CTA or cluster barrier */
    MG_OPF_NO_DST = 64,     /* first operand is a source (st, red, bar, bra, ...) */
    MG_OPF_FLOAT = 128,     /* computes floating point for some types */
    MG_OPF_TWO_DST = 256,   /* may have a second destination: d|p */
    MG_OPF_OURS = 512,      /* no PTX: stands in a pragma of a marked text */
    MG_OPF_HIDDEN = 1024,   /* its result depends on what is no operand: carry flag, stack */
    MG_OPF_VIDEO = 2048,    /* has a second operation: vadd.u32.u32.u32.add */
};

enum mg_type {
    MG_TYPE_none,
#define TYPE(name, bits, kind) MG_TYPE_##name,
#include "isa/types.def"
#undef TYPE
    MG_TYPE_COUNT
};

enum mg_type_kind {
    MG_TK_NONE,
    MG_TK_UINT,
    MG_TK_SINT,
    MG_TK_BITS,
    MG_TK_FLOAT,
    MG_TK_PRED,
    MG_TK_OPAQUE,
    MG_TK_PACKED
};

enum mg_space {
    MG_SPACE_generic, /* 0: none named */
    MG_SPACE_reg,
    MG_SPACE_sreg,
    MG_SPACE_const,
    MG_SPACE_global,
    MG_SPACE_local,
    MG_SPACE_param,
    MG_SPACE_shared,
    MG_SPACE_tex,
    MG_SPACE_COUNT
};

enum mg_mod_class {
    MG_MC_NONE,
    MG_MC_TYPE,
    MG_MC_SPACE,
    MG_MC_VEC,
    MG_MC_ROUND,
    MG_MC_CMP,
    MG_MC_BOOL,
    MG_MC_ATOM,
    MG_MC_SEM /* weak relaxed acquire ... volatile */,
    MG_MC_SCOPE,
    MG_MC_CACHE,
    MG_MC_SHAPE,
    MG_MC_GEOM /* 1d 2d a2d cube ... */,
    MG_MC_OTHER
};

enum mg_mod { /* MG_MOD_global, MG_MOD_f32, MG_MOD_rn ...; 0 = unknown word.
               * Text that is no C identifier: "::" becomes "__", '.'-separated parts are separate
               * modifiers, a leading digit gets "n" in front: L2::128B = MG_MOD_L2__128B, 2d = MG_MOD_n2d */
              MG_MOD_none,
#define MOD(name, text, class, value) MG_MOD_##name,
#include "isa/mods.def"
#undef MOD
              MG_MOD_COUNT
};

enum mg_sreg {
    MG_SREG_none,
#define SREG(name, text, type, comps) MG_SREG_##name,
#include "isa/sregs.def"
#undef SREG
    MG_SREG_COUNT
};

#define MG_FORM_MAX_MODS 20
struct mg_form {   /* one distinct instruction text of a module; owner: module arena */
    uint32_t text; /* mg_str of the whole dotted text; never empty */
    uint16_t op;   /* enum mg_op */
    uint8_t n_mods;
    uint8_t n_types;
    uint8_t types[4];                /* enum mg_type in text order; cvt.f32.s32 = {f32, s32} */
    uint8_t space;                   /* enum mg_space of the first state space named; generic when none */
    uint8_t vec;                     /* 0 (scalar), 2, 4 or 8 */
    uint8_t unknown;                 /* the opcode or a modifier is not in the tables */
    uint8_t rounding;                /* enum mg_mod of the first rounding modifier, or 0 */
    uint16_t op_flags;               /* enum mg_op_flags refined by the modifiers (cp.async reads and writes) */
    uint16_t mods[MG_FORM_MAX_MODS]; /* enum mg_mod, 0 = unknown word */
};
static inline bool mg_form_has(const struct mg_form *f, enum mg_mod m)
{
    for (unsigned i = 0; i < f->n_mods; i++)
        if (f->mods[i] == m) return true;
    return false;
}

/* Fills f (all but text) from dotted text. Never fails: unknown words set f->unknown. */
void mg_form_parse(struct mg_form *f, const char *text, size_t len);

const char *mg_op_name(enum mg_op op);
enum mg_op mg_op_find(const char *s, size_t len);
unsigned mg_op_flags(enum mg_op op);
bool mg_op_is_plain(enum mg_op op); /* arithmetic whose result follows from its operands, common to all types */
const char *mg_mod_text(enum mg_mod m);
enum mg_mod mg_mod_find(const char *s, size_t len);
enum mg_mod_class mg_mod_class(enum mg_mod m);
enum mg_space mg_mod_space(enum mg_mod m); /* of a modifier of class SPACE; generic for others */
const char *mg_type_name(enum mg_type t);  /* "f32" */
unsigned mg_type_bits(enum mg_type t);     /* 1 for pred, 0 for opaque */
enum mg_type_kind mg_type_kind(enum mg_type t);
enum mg_type mg_type_find(const char *s, size_t len);
const char *mg_space_name(enum mg_space s);           /* "global", "" for generic */
const char *mg_sreg_text(enum mg_sreg r);             /* "%tid" */
enum mg_sreg mg_sreg_find(const char *s, size_t len); /* with the '%' */
enum mg_type mg_sreg_type(enum mg_sreg r);

#endif
