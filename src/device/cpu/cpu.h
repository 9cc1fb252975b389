/* CPU device: kernels as x86 machine code over 32-lane vectors, on top of the emulator.
 *
 *   cpu.c      struct mg_device_ops: the emulator's device with a compiler attached
 *   tier.c     which kernels are compiled when: the emulator begins, compiler threads catch up
 *   store.c    compiled functions kept between runs; object.c loads them; library.c finds and opens the plugin
 *   lower.c    a decoded function (emu_op) as instructions whose operation and operands are known
 *   forward.c  operands that are special registers or constants, by way of a move
 *   range.c    integers between bounds: which of them are known
 *   flow.c     its blocks, which blocks may be pending where (thread frontiers), liveness
 *   shape.c    which registers are equal in all lanes or grow by a constant from lane to lane
 *   serial.c   loops that lanes go through one after the other
 *   lone.c     what one lane alone comes to
 *   region.c   what code for whole CTAs needs: its regions, which registers are the CTA's
 *   split.c    branches by thread numbers: which lanes part
 *   idle.c     warps that have nothing to do in a region
 *   tally.c    what inserted code counts, told from how often compiled code passes it
 *   enter.c    warps go from the emulator into compiled code and back
 *   plugin/    libmargay-cpu.so: struct cpu_func to machine code through LLVM's C interface
 *
 * Compiled code has the emulator's semantics to the bit: what has no vector code of its own calls the
 * emulator's function for that operation, on registers put back into the frame. Scheduling is
 * docs/schedule.md by construction: blocks lie in rank order and of the pending ones the first runs.
 * Whatever is rare (a barrier, a lane mask that is not complete, a loop's budget) leaves compiled
 * code at that operation with all registers in the frame, and the emulator goes on there.
 */
#ifndef MG_DEVICE_CPU_CPU_H
#define MG_DEVICE_CPU_CPU_H

#include "analysis/affine.h"
#include "analysis/graph.h"
#include "device/emu/emu.h"

#define CPU_MAX_BLOCKS 2048
#define CPU_MAX_OPS    6000  /* of a function, those aside that one lane comes to; more take LLVM seconds */
#define CPU_MAX_LONE   24000 /* ... and those */

/* A register's value in lane i is base + stride * i where affine; in a register of halves it is
 * base[i / 16] + stride * (i % 16). Stride 0: equal in all lanes (of a half). Of a tile, as thread numbers in blocks of
 * 8 x 8, it is base + cpu_func.tiles[tile - 1][i]; the stride is 0. */
struct cpu_shape {
    bool varying, halves;
    bool aligned; /* base is a multiple of 32 and the stride 0 or 1 */
    uint8_t tile;
    int32_t stride;
};

enum cpu_reg_kind { CPU_REG_PLAIN, CPU_REG_CONST, CPU_REG_SREG, CPU_REG_TRASH };
struct cpu_reg {
    uint32_t off;
    uint8_t cls; /* enum emu_class */
    uint8_t kind;
    uint8_t sreg, comp; /* CPU_REG_SREG */
    uint8_t settled;    /* stays in the frame, or among the linear registers, while compiled code runs */
    uint8_t lazy;       /* NaNs of arithmetic are not yet canonical: readers of bits see to it */
    struct cpu_shape shape;
    uint8_t row;   /* varying, but growing by row_step among each so many lanes, 4 to 32, if nothing wraps; 0: no */
    bool row_sure; /* ... in all lanes; else in those that wrote it last */
    int32_t row_step;
    uint32_t linear; /* 1 + place among the linear registers; 0: a vector */
    uint8_t known;   /* CPU_REG_PLAIN that is `value` wherever it is read (range.c) */
    bool cta;        /* linear, and the CTA's: what it is in warp 0 plus step * the warp's number */
    int64_t step;
    bool fixed;  /* its value in warp 0 is known: base, in lanes 0 and 16 */
    bool likely; /* of rows: if lanes lie in such, they begin at base + step * the warp's number, in lanes 0 and 16 */
    uint64_t base[2];
    bool walks; /* it grows by walk[0] from one CTA to the next in x, by walk[1] from warp to warp, wherever it is
                   read (walk.c) */
    int64_t walk[2];
    uint32_t widened; /* ... unless a word wraps that operation widened - 1 extends; 0: none may */
    uint64_t value;   /* CPU_REG_CONST, known */
};

enum cpu_kind {
    CPU_CALL, /* the emulator's function, on the frame */
    CPU_CTL,  /* ends a block, or EMU_CTL_SYNC: see ctl */
    CPU_NOP,
    CPU_ALU, /* op, t, key */
    CPU_MOV,
    CPU_NOT_P,
    CPU_LOW,
    CPU_ZEXT,
    CPU_SEXT,
    CPU_SEXT8,
    CPU_SEXT16,
    CPU_SEXT8H,
    CPU_PACK,
    CPU_UNPACK, /* two halves of 64 bits */
    CPU_LOAD,
    CPU_STORE,
    CPU_PARAM,
    CPU_TEXEL, /* one of device memory: its number, the object; list: channels */
    CPU_ATOM,  /* of 32 bits in shared memory, of 32 and 64 in global; sub: enum emu_atom */
    CPU_CVTA,  /* of shared memory; mode 1: .to */
    CPU_ACTIVEMASK,
    CPU_CLOCK,   /* mode 1: its upper half */
    CPU_COUNT,   /* of inserted code: counts; s[0]: a register is added */
    CPU_REQUEST, /* of inserted code: what lanes ask for at the addresses s[0], of memory `space`, `bytes` each */
    CPU_CARRIED, /* of inserted code: which values lanes carry, s[0], of `bytes`, in the order `mode`; s[1]: what they
                    did before, s[2]: if at all */
    CPU_FENCE,
    CPU_PURE, /* a call of a function of arithmetic alone (pure.c): d from list; callee: which */
};

struct cpu_inst { /* one emu_op; registers are numbers into regs plus one, 0: none */
    uint8_t kind, ctl, sub, mode;
    uint16_t op;                     /* enum mg_op */
    uint8_t t[3];                    /* enum mg_type */
    uint8_t elem, where, vec, bytes; /* memory: enum emu_elem, emu_where */
    uint8_t guard_not;
    uint8_t type;
    uint32_t key, imm;
    uint32_t d, d2, s[4], guard;
    uint32_t was[3]; /* what the operation names where forward.c has put something else into s; 0: nothing */
    int64_t off;
    uint8_t base_w, base_none, space;
    uint8_t waits;                  /* CPU_ATOM: a loop with it may wait for others */
    bool probe;                     /* inserted: may reach Margay's memory */
    uint8_t known;                  /* CPU_CALL: s and guard are read, d and d2 written, nothing else */
    const struct emu_count *counts; /* CPU_COUNT */
    uint32_t n_counts;
    uint32_t *list;
    uint32_t n_list; /* vector elements; or all registers a CPU_CALL may name */
    uint32_t cache;
    uint32_t target, fall; /* blocks */
    uint32_t callee;
};

struct cpu_block {
    uint32_t first, end;   /* operations [first, end) */
    bool entry;            /* the emulator may hand over here */
    bool merges;           /* may be pending */
    uint64_t *front;       /* blocks that may be pending while this one runs */
    uint64_t *live;        /* registers live at its start */
    uint64_t *keep;        /* registers live in a block of front: inactive lanes' values count */
    uint64_t *saved;       /* registers that count where this block is left (the plugin says) */
    uint64_t *dirty[2];    /* at its start: registers written since compiled code was entered; [1]: whole CTAs, since a
                              region began */
    uint32_t part;         /* split.c: lanes that take the branch at its end where lanes part; 0: not known */
    uint32_t few;          /* those that are likely to run it where not all do; 0: not known */
    uint32_t few_warps[2]; /* ... of warps from the first to the second */
};

/* Where all warps of a CTA begin a region, in whole-CTA code. */
struct cpu_start {
    uint32_t block;
    uint64_t *reach;        /* blocks up to the next stop */
    uint32_t n_stops, stop; /* stops it may come to (2: several), the first of them */
    uint64_t *constant,
        *value;        /* registers that are known to hold one constant in all lanes (set), which (by register) */
    uint64_t *always;  /* blocks that every warp runs exactly once, with all lanes */
    uint64_t *idle[2]; /* blocks at whose end a warp with all lanes that takes the branch (1: does not) has nothing more
                          to do up to the stop, nor have those behind it */
    uint32_t rounds;   /* place in the array of counts: how often all warps came to a stop */
    bool fused;        /* fuse.c: one of several that each warp runs one after the other; */
    bool goes_on;      /* ... not the last of them: the next start follows */
    bool down;         /* ... from the last warp to the first */
};
/* A loop that lanes go through one after the other. */
struct cpu_serial {
    uint32_t head;
    uint64_t *blocks;
    uint64_t
        *stops; /* blocks where lanes come out, and heads inside, where they stop when they have gone round for long */
    uint64_t *in, *out; /* registers that a lane begins with, and brings to a stop */
    bool lone;          /* no loop: what one lane alone comes to (lone.c) */
    bool turns;         /* there are jumps back */
    bool tells_rounds;  /* CPU_COUNT of warps inside: which rounds lanes are in */
    uint64_t *always;   /* blocks that a lane passes in every round, the one in which it comes out included (none where
                           not all rounds begin at head) */
    struct cpu_lane_access *accesses;
    uint32_t n_accesses;                  /* to global memory, by operation */
    uint32_t *ahead, n_ahead, ahead_test; /* operations that bring one round's loads through what even loads bring, and
                                             the jump to the next */
};
/* serial_access.c: what is known of the access at operation `at`. */
struct cpu_lane_access {
    uint32_t at;
    bool aligned;
    uint32_t n_params, params[4]; /* where the parameters at these offsets are */
    bool even;
    int64_t step;          /* its address moves by step, at most once between two jumps back, and otherwise never */
    uint32_t leader;       /* 1 + the access before which whoever comes here has passed with the same register */
    uint32_t below, above; /* of a leader: so many bytes more others touch, before and behind what it does */
};
#define CPU_STOP(block, barrier) (2 * (block) + 2 + (barrier)) /* number of a stop; 0: none */

/* A CPU_COUNT, and its words in the array of counts: passes by all lanes of a warp; lanes, times of other passes; or
 * parts of a register's sum. */
enum { CPU_SITE_WORDS = 3, CPU_VALUE_WORDS = 8 };
struct cpu_site {
    uint32_t at, block, count;
    bool lanes, times; /* what is asked for */
    bool guarded;      /* rounds do not tell: under a guard, or a value */
};

/* A CPU_REQUEST, and its words in the array of counts: requests of a whole warp by the place of the first lane's
 * address in its line, in units of `bytes`; then cases. Of the first, how far lanes' addresses are from one another is
 * known: by the register's shape, or else they are in order. */
struct cpu_request {
    uint32_t at, count, n_places;
};
/* Other requests of lanes whose addresses have a known shape: from bit 0 on which lanes, from 32 on the place, from 39
 * on how far lane 16 is from lane 0, of a register of halves; and how many. */
struct cpu_case {
    uint64_t key, n;
};
enum {
    CPU_CASES = 64 /* of a request; what finds no room is looked at each time */,
    CPU_CASE_PLACE = 32,
    CPU_CASE_APART = 39
};

/* A CPU_CARRIED, and its words in the array of counts: for each lane the greatest key and the greatest complement of
 * one, in 32 or 64 bits; then MG_CR_SUMS sums of whole warps, MG_CR_VALUES left out. */
struct cpu_carried {
    uint32_t at, count, key_words;
};

struct cpu_regions { /* region.c: of whole-CTA code */
    bool wanted;     /* there is to be such code; what follows is only known then */
    bool lossy;      /* some warps may end while others go on */
    bool splits;     /* lanes may part */
    uint32_t n_warps, n_ops;
    uint32_t tail; /* lanes of the last warp, where they are not all */
    struct cpu_start *starts;
    uint32_t n_starts;
    uint32_t n_fused;   /* of these, fuse.c */
    uint32_t *start_of; /* by block: 1 + start */
    bool *paused;       /* by block: a start where warps pause */
    bool loops;         /* there are jumps back */
    bool resumes;       /* warps may come to different stops: goes on behind a barrier where they meet again */
    bool masks_settled; /* pending lanes stay in cpu_warp.masks while compiled code runs */
    bool own_sregs;     /* needs special registers that compiled code does not know itself */
};

struct cpu_tallies { /* tally.c */
    struct cpu_site *sites;
    uint32_t n;        /* in the order of operations */
    uint32_t *site_at; /* by operation: 1 + its site, its request, its values; NULL: there are none */
    struct cpu_request *requests;
    uint32_t n_requests;
    struct cpu_carried *carried;
    uint32_t n_carried;
    uint32_t n_counts;
};

struct cpu_func {
    const struct emu_func *fn;
    uint32_t dims[3]; /* of the block it is made for */
    enum emu_isa isa;
    bool slow_gathers; /* lanes one by one take this processor less time */
    struct mg_arena arena;
    struct cpu_reg *regs;
    uint32_t n_regs;
    struct cpu_inst *insts;
    uint32_t n_insts;
    struct cpu_block *blocks;
    uint32_t n_blocks, entry;
    uint32_t *block_of; /* by operation: 1 + block that begins there, or 0 */
    uint32_t block_words, reg_words;
    struct mg_graph succ, pred; /* where control may go from the end of a block, and the reverse */
    struct mg_graph within;     /* succ without what leads on behind the stops of whole-CTA code (cpu_stop_of) */
    uint32_t n_linear;
    int32_t (*tiles)[EMU_LANES]; /* how far each lane's value is from the first one's */
    uint32_t n_tiles;
    uint32_t static_shared; /* there is at least so much shared memory */
    bool is_kernel, suspects;
    struct cpu_serial *serials;
    uint32_t n_serials;
    uint32_t *serial_of;     /* by block: 1 + the serial loop that it is in */
    uint32_t n_lone;         /* operations that one lane alone comes to */
    bool pure;               /* arithmetic alone: it never leaves, and has no frame */
    struct cpu_func **pures; /* those that it calls; owner: this one */
    uint32_t n_pures;
    struct cpu_regions region;
    struct cpu_tallies tally;
};

/* ---- between compiled code and enter.c; the plugin uses the same layout ------------------------ */

enum cpu_leave {
    CPU_DONE, /* the warp has nothing more to run here (alone), or every warp has ended or waits */
    CPU_SOME, /* whole CTAs: warps before `warp` came to stops, some to others than the first; the rest is to run */
    CPU_AT,   /* the running set of warp `warp` stands at operation pc with mask; pending ones are in its masks */
};

struct cpu_warp { /* in and out */
    struct emu_frame *frame;
    uint64_t (*linear)[2]; /* linear registers outside compiled code: their bases; vectors are in the frame */
    uint32_t *masks;       /* pending lanes by block; zeros while compiled code runs */
    uint32_t entry;        /* block where it goes on */
    uint32_t mask, live;
    uint32_t at; /* 1 + operation of the barrier it waits in */
    uint32_t pauses;
    int32_t budget;
};

/* One call runs warps warp .. n_warps - 1, each until it ends, or stops at bar.sync 0 with all its live
 * lanes or at a pause; or only the first of them (alone). */
struct cpu_host;
struct cpu_call {
    const struct emu_op *ops;
    const struct emu_range *ranges;
    const struct cpu_host *host;
    const char *params;
    char *shared;
    uint64_t shared_bytes;
    uint32_t warp, n_warps;
    uint32_t alone;   /* stops are the emulator's: CPU_AT */
    uint32_t outside; /* the warp has other sets */
    uint32_t ctaid[3], nctaid[3];
    /* whole CTAs: from `number` on, the last one is number_end - 1. On the way out number and ctaid are those of the
     * CTA it is in; all its warps were at `start`, those before `own` have come to `common` */
    uint64_t number, number_end;
    uint32_t *place;                    /* ctaid of the CTA that runs, for who asks */
    uint32_t own, start, common, turns; /* turns: pauses left */
    uint64_t (*uniform[2])[2];          /* the CTA's registers, warp 0: at start, at common */
    uint32_t resume;   /* in: 1 + place among the starts at which all warps are, with `turns` and uniform[0]; 0: they
                          begin   a CTA */
    uint64_t arena[2]; /* device memory: where it begins, bytes */
    uint32_t pc, mask; /* out, CPU_AT */
    uint32_t block;    /* out: the block it is in */
    struct cpu_warp warps[EMU_MAX_WARPS];
};
typedef uint32_t (*cpu_code_fn)(struct cpu_call *c, uint64_t *counts); /* counts: tally.c */

struct cpu_host { /* what compiled code calls */
    void (*sync)(const struct emu_op *op, char *regs, uint32_t mask);
    uint64_t (*clock)(void);
};

/* ---- the plugin ------------------------------------------------------------------------------- */

#define CPU_PLUGIN_VERSION                                                                                             \
    ((uint32_t)(16 + sizeof(struct cpu_func) * 16 + sizeof(struct cpu_reg) * 8192 +                                    \
                sizeof(struct cpu_call) * 1048576)) /* both sides have the same structs */
#define CPU_SYMBOL "mg_warps"                       /* of the object's function: a cpu_code_fn */
struct cpu_plugin {
    uint32_t version;
    const char *llvm;
    /* For one thread at a time; several may be open. */
    void *(*open)(enum emu_isa isa, char *why, size_t why_bytes);
    /* An ELF object, malloc'd: code for warps, or for whole CTAs. It depends on the function as lowered alone and holds
     * no address of this process. False with CPU_NEVER for bytes: the same function is refused each time. */
    bool (*compile)(void *jit, struct cpu_func *f, bool whole, void **object, size_t *bytes, char *why,
                    size_t why_bytes);
    void (*close)(void *jit);
};
typedef const struct cpu_plugin *(*cpu_plugin_fn)(void); /* exported as mg_cpu_plugin */

enum { CPU_NEVER = 1 };

/* object.c */
struct cpu_object { /* one compiled function, ready to run */
    cpu_code_fn fn;
    void *image;
    size_t bytes;
};
bool cpu_object_load(const void *data, size_t bytes, struct cpu_object *out, char *why, size_t why_bytes);
void cpu_object_free(struct cpu_object *o);

/* uses.c */
uint32_t cpu_reg_at(const struct cpu_func *f, uint32_t off); /* number + 1; 0: none */
enum cpu_kind
cpu_lowered_kind(unsigned opcode); /* lower.c: of an operation of emu/operations.def, CPU_CALL: no code of its own */
bool cpu_has_code(unsigned opcode, enum emu_isa isa); /* of a row of arithmetic, in any circumstances */
struct cpu_func *cpu_lower(const struct emu_func *fn, const uint32_t dims[3], char *why, size_t why_bytes);
struct cpu_func *cpu_lower_pure(const struct emu_func *fn, const uint32_t dims[3]); /* all registers stay in code */
void cpu_func_free(struct cpu_func *f);
/* pure.c: `in` is the call of operation ix; false: not of a function of arithmetic alone */
bool cpu_lower_pure_call(struct cpu_func *f, uint32_t ix, struct cpu_inst *in);
bool cpu_calls_pure(const struct cpu_func *f, const struct emu_func *fn);
/* uses.c: calls fn for every register that an instruction reads or writes. A write that keeps lanes (guarded,
 * CPU_CALL) also counts as a read; must: written in all active lanes, whatever was there. */
void cpu_each_use(const struct cpu_func *f, const struct cpu_inst *in, void (*fn)(void *, uint32_t reg), void *user);
void cpu_each_def(const struct cpu_func *f, const struct cpu_inst *in, void (*fn)(void *, uint32_t reg, bool must),
                  void *user);
bool cpu_defines(const struct cpu_func *f, const struct cpu_inst *in, uint32_t reg); /* numbers plus one */
bool cpu_constant_of(const struct cpu_func *f, uint32_t reg,
                     int64_t *out);               /* number plus one; the constant it always holds */
bool cpu_counts_warps(const struct cpu_inst *in); /* is it a CPU_COUNT that does? */
bool cpu_is_move(const struct cpu_inst *in);
bool cpu_is_canonical(const struct cpu_inst *in); /* an approximate function: a NaN of f32 is the canonical one */
bool cpu_in_rows(const struct cpu_func *f,
                 const struct cpu_inst *in); /* do lanes access what lies in a row, or at one place, by cpu_reg.row? */
/* flow.c */
bool cpu_find_blocks(struct cpu_func *f, char *why, size_t why_bytes);
void cpu_find_fronts(struct cpu_func *f);
void cpu_forward(struct cpu_func *f);     /* forward.c */
void cpu_find_ranges(struct cpu_func *f); /* range.c */
void cpu_find_live(struct cpu_func *f);
void cpu_find_dirty(struct cpu_func *f);
void cpu_find_settled(struct cpu_func *f);
void cpu_dirty_at(const struct cpu_func *f, bool whole, uint32_t b, uint32_t ix, uint64_t *out);
/* Registers live before operation ix of block b. */
void cpu_live_at(const struct cpu_func *f, uint32_t b, uint32_t ix, uint64_t *out);
void cpu_find_region_ways(struct cpu_func *f); /* f->within, once it is known where whole-CTA code stops */
bool cpu_plain_barrier(const struct cpu_func *f, const struct cpu_inst *in); /* uses.c: bar.sync 0 of all */
uint32_t cpu_stop_of(const struct cpu_func *f,
                     uint32_t b); /* uses.c: where whole-CTA code stops at the end of block b; 0: nowhere */
/* serial.c; with shapes known so far. false: there are none */
bool cpu_find_serials(struct cpu_func *f);
struct cpu_serial *cpu_add_serial(struct cpu_func *f, uint32_t head, const uint64_t *blocks, bool lone);
bool cpu_has_lane_code(const struct cpu_inst *in);
void cpu_find_lone(struct cpu_func *f);            /* lone.c; among the serials */
uint32_t cpu_count_lone(const struct cpu_func *f); /* how many operations those will have */
/* serial_access.c */
void cpu_find_lane_accesses(struct cpu_func *f, struct cpu_serial *s, uint32_t most);
void cpu_find_lane_ahead(struct cpu_func *f, struct cpu_serial *s);
/* region.c */
void cpu_find_regions(struct cpu_func *f);
/* What a special register has in lanes 0 and 16 of warp 0, if that is known, and how it grows from warp to warp. */
struct mg_affine cpu_special(const struct cpu_func *f, const struct cpu_reg *r, bool *fixed, uint64_t base[2]);
/* What the operation makes of known values in lanes 0 and 16; false: not said here. */
bool cpu_evaluate(const struct cpu_func *f, const struct cpu_inst *in, uint64_t s[3][2], uint64_t out[2]);
/* split.c */
void cpu_find_splits(struct cpu_func *f);
bool cpu_branch_lanes(const struct cpu_func *f, uint32_t b, uint32_t warp,
                      uint32_t *lanes); /* who takes the branch at the block's end; false: not known */
/* idle.c */
bool cpu_only_computes(const struct cpu_inst *in); /* it writes registers alone (or counts), from what registers hold */
void cpu_find_idle(struct cpu_func *f);
/* fuse.c */
void cpu_find_fused(struct cpu_func *f);
/* walk.c */
void cpu_find_walks(struct cpu_func *f);
/* tally.c */
void cpu_find_tallies(struct cpu_func *f);
bool cpu_is_placed(const struct cpu_func *f,
                   const struct cpu_inst *in); /* CPU_REQUEST: is the shape known, but for halves? */
void cpu_tally_leave(const struct cpu_func *f, const struct cpu_call *call, uint64_t *counts);
void cpu_tally_flush(const struct cpu_func *f, const uint64_t *counts, struct emu_worker *wk);
/* shape.c */
void cpu_find_shapes(struct cpu_func *f);
/* What arithmetic makes of sources that are equal in all, or grow by a constant (of lanes, of warps: whoever asks). */
struct mg_affine cpu_affine_of(const struct cpu_func *f, const struct cpu_inst *in, const struct mg_affine s[3]);
bool cpu_uniform_guard(const struct cpu_func *f, const struct cpu_inst *in); /* uses.c */
/* enter.c */
extern const struct emu_compiler cpu_compiler;
void cpu_enter_free(struct emu_worker *wk);

struct cpu_unit { /* one function, for one block shape */
    const struct emu_func *fn;
    struct cpu_func *f;
    struct cpu_object object, whole_object;
    _Atomic(cpu_code_fn) code, whole; /* NULL: not ready */
};
struct cpu_set { /* a kernel's functions for one block shape */
    uint32_t dims[3];
    struct cpu_unit *units;
    uint32_t n_units;
    struct cpu_set *next;
    struct emu_code *of;
    uint32_t running;     /* launches, under the tier's lock as what follows */
    uint64_t emulated_ns; /* spent in launches that have ended */
    bool asked;           /* its units are in the queue, or were */
};
/* tier.c: the device's compiler threads, and what they made. */
bool cpu_tier_open(struct mg_device *dev, struct mg_diag *d);
void cpu_tier_close(struct mg_device *dev);
/* A launch begins, and ends. NULL when nothing is or will be compiled for it. */
struct cpu_set *cpu_tier_begin(struct emu_launch *l);
void cpu_tier_end(struct emu_launch *l);
void cpu_tier_forget(struct emu_code *code);

/* store.c: compiled functions kept between runs */
/* What is kept is an object, or why there is none: a text, CPU_NEVER for bytes. */
bool cpu_store_find(struct cpu_func *f, bool whole, const char *maker, void **object, size_t *bytes);
void cpu_store_keep(const struct cpu_func *f, bool whole, const char *maker, const void *object, size_t bytes);

/* library.c: libmargay-cpu.so, found when the device opens and opened when something is to be compiled */
struct cpu_library {
    char path[4096];
    char maker[128];                 /* which one it is, for the store */
    const struct cpu_plugin *plugin; /* NULL: not opened */
    pthread_mutex_t lock;
    bool failed;
    char why[400];
};
bool cpu_library_find(struct cpu_library *lib, char *why, size_t why_bytes);
const struct cpu_plugin *cpu_library_open(struct cpu_library *lib); /* NULL: lib->why */

/* Passes of the site that the region's rounds tell. */
static inline bool cpu_site_always(const struct cpu_func *f, uint32_t start, const struct cpu_site *s)
{
    return !s->guarded && mg_has(f->region.starts[start].always, s->block);
}

/* Does a .sync operation have code? The others are calls of the emulator. */
static inline bool cpu_sync_has_code(uint32_t sub)
{
    return sub <= EMU_SYNC_ELECT; /* the enum has those with code first */
}
static inline bool cpu_is_integer(unsigned t) /* of 32 and 64 bits */
{
    return t == MG_TYPE_u32 || t == MG_TYPE_s32 || t == MG_TYPE_b32 || t == MG_TYPE_u64 || t == MG_TYPE_s64 ||
           t == MG_TYPE_b64;
}
static inline bool cpu_is_constant(const struct cpu_reg *r)
{
    return r->kind == CPU_REG_CONST || r->known;
}
/* Lanes that warp k of a CTA begins with. */
static inline uint32_t cpu_lanes_of(const struct cpu_regions *r, uint32_t k)
{
    return r->tail && k + 1 == r->n_warps ? r->tail : UINT32_MAX;
}
static inline uint64_t cpu_access_bytes(const struct cpu_inst *in)
{
    return (uint64_t)in->bytes * in->vec;
}
static inline bool cpu_is_uniform(struct cpu_shape s)
{
    return !s.varying && !s.halves && !s.stride && !s.tile;
}
/* How far a lane's value is from its base, of a register that does not vary; and the least and the most of that among
 * lanes. */
static inline int64_t cpu_lane_offset(const struct cpu_func *f, struct cpu_shape s, uint32_t lane)
{
    return s.tile ? f->tiles[s.tile - 1][lane] : (int64_t)s.stride * (s.halves ? lane & 15 : lane);
}
static inline void cpu_lane_span(const struct cpu_func *f, struct cpu_shape s, uint32_t lanes, int64_t *least,
                                 int64_t *most)
{
    *least = INT64_MAX, *most = INT64_MIN;
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        int64_t off = cpu_lane_offset(f, s, i);
        if (!(lanes >> i & 1)) continue;
        *least = MG_MIN(*least, off);
        *most = MG_MAX(*most, off);
    }
}
/* The thread's number in the block, in x, y or z, of the one that is number t in line. */
static inline uint32_t cpu_tid_of(const struct cpu_func *f, uint32_t t, unsigned comp)
{
    uint32_t x = f->dims[0], y = f->dims[1];
    if (y == 1 && f->dims[2] == 1) return comp ? 0 : t;
    return comp == 0 ? t % x : comp == 1 ? t / x % y : t / x / y;
}
static inline uint32_t cpu_warps_of(const uint32_t dims[3])
{
    return (uint32_t)(((uint64_t)dims[0] * dims[1] * dims[2] + 31) / 32);
}

#endif
