/* --check: undefined values (docs/checks.md). A shadow step before each instruction of the program
 * works out which bits of its results nobody has given a value.
 *
 *   defined_decode.c   puts the steps in; numbers a function's registers ("marks")
 *   defined.c          steps of arithmetic: lane masks as long as all is defined, bits where it is not
 *   defined_bits.c     one lane of an instruction that is exact bit by bit
 *   defined_mem.c      loads, stores, atomics; shared and local memory; calls
 *   defined_warp.c     shuffles, votes, match, redux
 *   defined_report.c   findings in words
 *   device/defined.c   global memory
 *
 * Of each register a mask says which lanes hold undefined bits at all. Only these lanes have bits (1:
 * undefined) and an origin: the register that was never written, or the load that brought them. Memory
 * is kept the other way round, 1: defined, so that fresh pages need no filling.
 *
 * Nothing of this exists in a launch without --check.
 */
#ifndef MG_DEVICE_EMU_DEFINED_H
#define MG_DEVICE_EMU_DEFINED_H

#include "device/emu/emu.h"

struct emu_mark {
    uint32_t some;  /* lanes with undefined bits */
    uint32_t fresh; /* of these: never written in this activation; all bits, no entry in bits and origin */
};
struct emu_shade {          /* of one frame; owner: the frame */
    struct emu_mark *marks; /* by number; 0: always defined */
    uint64_t (*bits)[EMU_LANES];
    uint32_t (*origin)[EMU_LANES];
};

/* Where an undefined value came from: space and the register's id or the load's site. */
enum emu_origin { EMU_ORIGIN_NONE, EMU_ORIGIN_REGISTER, EMU_ORIGIN_LOCAL, EMU_ORIGIN_SHARED, EMU_ORIGIN_GLOBAL };
#define EMU_ORIGIN(space, what) ((uint32_t)(space) << 29 | (what))
#define EMU_ORIGIN_SPACE(o)     ((o) >> 29)
#define EMU_ORIGIN_WHAT(o)      ((o)&0x1fffffff)

/* What an undefined value did; emu_found.misuse of MG_FINDING_UNINIT. */
enum emu_use { EMU_USE_BRANCH, EMU_USE_ADDRESS, EMU_USE_ATOMIC, EMU_USE_COPIED, EMU_USE_COUNT };

enum emu_exact {             /* how results' bits follow from sources' */
                 EMU_EX_ANY, /* any undefined bit makes all undefined */
                 EMU_EX_MOVE,
                 EMU_EX_AND,
                 EMU_EX_OR,
                 EMU_EX_XOR,
                 EMU_EX_NOT,
                 EMU_EX_LOP3,
                 EMU_EX_SHL,
                 EMU_EX_SHR,
                 EMU_EX_SHF,
                 EMU_EX_PRMT,
                 EMU_EX_BFE,
                 EMU_EX_BFI,
                 EMU_EX_SELECT,
                 EMU_EX_PACK,
                 EMU_EX_UNPACK,
                 EMU_EX_SETP,
                 EMU_EX_CONVERT,
                 EMU_EX_HALVES,
                 EMU_EX_BREV,
};
struct emu_def_opnd {   /* a source or destination */
    uint32_t mark, off; /* off: in the register file; 0: an immediate */
    uint8_t cls, bits;  /* enum emu_class; of the register (64 where it is wider) */
    uint8_t flip;       /* !p */
    uint64_t value;     /* immediate */
};
enum { EMU_DEF_MOST = 12 };
struct emu_def { /* owner: code */
    struct emu_def_opnd src[EMU_DEF_MOST], dst[EMU_DEF_MOST];
    uint32_t n_src, n_dst, imm;
    uint8_t exact, type, from; /* enum emu_exact; enum mg_type; of cvt: the source's */
    uint16_t cmp, op;          /* setp: enum mg_mod; warp operations: enum mg_op */
    uint8_t bool_op;           /* setp: 1 and, 2 or, 3 xor */
    uint8_t use;               /* checks: enum emu_use */
    uint8_t sext;
};

/* defined.c */
void emu_defined_enter(struct emu_frame *f); /* an activation begins: nothing is written */
void emu_defined_free(struct emu_frame *f);
uint64_t emu_defined_get(const struct emu_frame *f, const struct emu_def_opnd *s, uint32_t lane,
                         uint32_t *origin); /* undefined bits */
void emu_defined_put(struct emu_frame *f, const struct emu_def_opnd *d, uint32_t lane, uint64_t bits, uint32_t origin);
void emu_defined_clear(struct emu_frame *f, uint32_t mark, uint32_t mask);
uint64_t emu_defined_value(const struct emu_frame *f, const struct emu_def_opnd *s, uint32_t lane);
void emu_defined_told(struct emu_frame *f, const struct emu_op *op, enum emu_use use, uint32_t lane, uint32_t times,
                      uint32_t origin, uint32_t bytes, uint8_t store);
/* Lanes of mask in which the operand is undefined are told of, and count as defined from then on. */
void emu_defined_use(struct emu_frame *f, const struct emu_op *op, const struct emu_def_opnd *s, enum emu_use use,
                     uint32_t mask, uint32_t bytes);

/* defined_bits.c */
void emu_defined_lane(const struct emu_def *d, struct emu_frame *f, uint32_t lane);

/* defined_mem.c */
void emu_defined_written(struct emu_frame *f, uint64_t host,
                         uint64_t bytes); /* by an operation that is not looked at */
void emu_defined_arg(const struct emu_arg *a, struct emu_frame *from, struct emu_frame *to, uint32_t mask);
void emu_defined_activation(struct emu_frame *f); /* its local variables hold nothing */
bool emu_defined_cta_new(struct emu_cta *c);
void emu_defined_cta_free(struct emu_cta *c);
void emu_defined_cta_start(struct emu_cta *c);

/* defined_warp.c */
void emu_defined_sync(const struct emu_part *parts, uint32_t n, uint32_t lanes); /* before values are exchanged */

/* defined_report.c */
struct emu_found;
void emu_defined_describe(struct emu_launch *l, const struct emu_found *x, struct mg_finding *f);

void emu_defined_unseen(struct emu_launch *l,
                        struct mg_launch_stats *stats); /* instructions of the kernel that are not looked at */

/* defined_decode.c */
struct decoder;
struct mg_form;
struct mg_opnd;
void dec_defined(struct decoder *d, mg_id node); /* before the instruction is decoded */
/* A load, store or atomic, as `access` has it: where; values from; to (NULL: no result). */
void dec_defined_access(struct decoder *d, const struct emu_op *access, const struct mg_form *f,
                        const struct mg_opnd *where, const struct mg_opnd *from, uint32_t n_from,
                        const struct mg_opnd *to);
const struct emu_def *dec_defined_warp(struct decoder *d, const struct mg_form *f, const struct mg_opnd *o,
                                       uint32_t n); /* for emu_op.ext */
void dec_defined_results(struct decoder *d, const struct emu_call *call);
void dec_defined_end(struct decoder *d); /* the function is decoded */

#endif
