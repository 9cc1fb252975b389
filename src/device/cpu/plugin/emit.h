/* Plugin, private: one function being turned into LLVM IR.
 *
 * Every block is emitted twice. In the full version all 32 lanes run: no masks, nothing pending. In
 * the partial one the running lanes are `cur`, and those waiting at block x are pend[x]. A branch
 * that splits a full warp goes over to the partial version, a join that completes it comes back.
 * Loops that lanes go through one after the other (serial.c) have a third version, for one lane.
 * Registers are allocas (a scalar or two for linear ones, a vector otherwise), which mem2reg turns
 * into values; so are cur, pend and the other state.
 */
#ifndef MG_DEVICE_CPU_EMIT_H
#define MG_DEVICE_CPU_EMIT_H

#include "device/cpu/cpu.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

typedef LLVMValueRef val;

enum { FULL, PART, LANE, SURE, VERSIONS };
struct reg_var {
    val at[2];
}; /* base of lane 0, of lane 16 (halves): allocas, places in the frame where settled */

struct ahead {
    val last, by, first, step, far;
    uint32_t lines;
}; /* ahead.c, allocas: where the access was, and how far it moved; in a loop: where the warp's first was, and
      how far from the warp's before; far: how far ahead is asked for; lines: of all warps together, 0: not bit by bit
    */
struct turn {
    uint32_t region;
    val warp, rounds, before, begins, few, worth;
}; /* by block of a loop, the region it was last emitted for; allocas: which warp was here, how often it was and the one
      before; and what follows, which accesses that no other's code leads to read, too */

struct serial_code {
    LLVMBasicBlockRef in[2], begin;
}; /* where warps begin it, from the full and the partial version, and where both go; NULL: not emitted */

struct leave {
    LLVMBasicBlockRef bb;
    uint64_t *live, *dirty;
    bool used;
}; /* over all places that leave the block */

struct emit_types { /* i*, f*, ptr: of one lane; v*: of 32 */
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr, voidt;
    LLVMTypeRef v1, v32, v64, vf32, vf64;
};

struct emit_alias {       /* metadata: what accesses belong to */
    val program, counted; /* memory of the program and nothing else; the array of counts */
    val both, nothing;    /* both; an empty node */
    unsigned invariant;   /* the kind that takes it: a load of what never changes during a call */
};

struct emit_args { /* fields of struct cpu_call, loaded at entry */
    val ops, ranges, params, shared, shared_bytes, outside, alone, n_warps;
};

struct emit_out { /* the way out: allocas, and the blocks that lead there */
    val pc, mask, next, from;
    val stop; /* 0 out, 1 barrier, 2 pause */
    LLVMBasicBlockRef done, tail;
};

struct emit_room { /* lanes.c, single.c: allocas for vectors that are read lane by lane */
    val at[3];
    val table;  /* 32 lanes of up to 32 bytes */
    bool apart; /* memory.c: an access was made of one for each lane */
    LLVMBasicBlockRef few_end;
};

struct lane_room {            /* of an operation, allocas */
    val minus, n;             /* what it may access, minus its begin */
    val rounds, word, passes; /* of CPU_COUNT: the rounds in which lanes have been here, 64 of them of this lane;
                                 how often lanes have */
    LLVMBasicBlockRef look;
};

struct emit_serial {           /* loops lane by lane (serial.c); values are allocas */
    struct serial_code *loops; /* by loop */
    val *vars;                 /* registers of the lane that runs */
    struct lane_room *rooms;   /* by operation */
    val lane, limit;           /* limit: how often it may jump back */
    val rounds, least;         /* how often it still may, the least that any may */
    val turn;                  /* the round's bit in a word */
    val passed, total, most;   /* rounds that this lane, all, and the longest have begun */
    bool sure;                 /* the code for lanes of which more is known is made */
    val all_sure, foresees;    /* it is to be run; the next lane's loads may be fetched */
    LLVMBasicBlockRef over;
};

/* nans.c: f64 arithmetic whose NaNs are looked for later */
enum nan_mode { NANS_EACH, NANS_LATER, NANS_MADE }; /* each operation looks; nobody does; there are some */
struct nan_link {
    uint32_t at, reg; /* operation, its register (from 0) */
    val result, before;
    bool covered; /* another one of the chain makes a NaN of one */
};
struct nan_chain {
    enum nan_mode mode;
    struct nan_link *links;
    uint32_t n;
    uint64_t *read, *written; /* registers */
};

struct known { /* known.c, by block */
    bool yes;
    uint32_t mask, taken;    /* lanes that come here; that take a branch where lanes part by their numbers */
    uint32_t to[2], next[2]; /* who goes to block `to` comes to `next`; of lanes that end: next[0], UINT32_MAX: none */
};

struct emit_pure {          /* pure.c */
    struct pure *here;      /* a function of arithmetic alone; NULL otherwise */
    struct pure_code *code; /* by cpu_inst.callee */
    val room;               /* where arguments and result of one are, of vectors */
};
enum walk_which { WALK_ALL, WALK_SOME, WALK_KNOWN, WALKS }; /* lanes: all, some under a mask, those that are known */
struct walk_slot {
    val until; /* alloca: the check holds in CTAs whose number in x is less; NULL: not used */
    bool used;
    int64_t least;
    uint64_t span;
};
struct walk_check { /* a check that is being made */
    const struct cpu_reg *reg;
    struct walk_slot *slot;
    int64_t least, step;
    uint64_t span;
    val width; /* of the grid */
    LLVMBasicBlockRef from, on;
};
struct emit_ahead {                 /* ahead.c, walk.c: of CTAs to come */
    struct ahead *ops;              /* by operation */
    struct turn *turns;             /* by block */
    struct walk_slot *walks[WALKS]; /* by operation; NULL: none are to be used */
};

struct emit {
    struct cpu_func *f;
    LLVMContextRef c;
    LLVMModuleRef m;
    LLVMBuilderRef b;
    struct emit_types t;
    struct emit_alias alias;
    struct emit_args arg;
    struct emit_out out;
    struct emit_room room;
    struct emit_serial serial;
    struct nan_chain chain;
    struct known *known; /* by block */
    struct whole *whole; /* whole CTAs (whole.c); NULL otherwise */
    struct emit_pure pure;
    val fn, call, counts;
    val at_warp;     /* alloca: the warp that runs */
    val warp, state; /* of that warp */
    LLVMBasicBlockRef next_warp;
    struct reg_var *vars;
    LLVMBasicBlockRef *bb[VERSIONS]; /* by block; NULL: nobody goes there so far */
    uint8_t *built[VERSIONS];
    struct leave *leaves; /* by block, for both versions */
    val *pend;
    val cur, live, budget;
    /* where we are */
    int version;
    uint32_t block;
    const struct cpu_inst *in; /* NULL: a warp is coming in */
    uint32_t ix;
    val mask, lanes; /* of the running set: i32, <32 x i1>; NULL in the full version */
    uint64_t *scratch;
    /* by operation */
    val (*group)[2]; /* host pointers of the accesses that it checks */
    struct emit_ahead ahead;
    uint32_t *checked;     /* 1 + the one whose check stands for it too */
    struct bounds *bounds; /* what it may access, loaded once for all CTAs; NULL: where it is needed */
};
static inline val k32(struct emit *e, uint64_t v)
{
    return LLVMConstInt(e->t.i32, v, 0);
}
static inline val k64(struct emit *e, uint64_t v)
{
    return LLVMConstInt(e->t.i64, v, 0);
}

/* pure.c */
struct pure_code {
    val vectors, lane; /* NULL: not made */
};
struct pure {
    bool lane;
    val result; /* of vectors: where it goes */
};
void emit_pure_call(struct emit *e);
void emit_pure_end(struct emit *e); /* the operation that ends such a function */

/* values.c */
LLVMTypeRef emit_type(struct emit *e, enum emu_class c, bool vec);
val emit_int(struct emit *e, enum emu_class c, uint64_t v, bool vec);
val emit_splat(struct emit *e, val scalar);
val emit_iota(struct emit *e, LLVMTypeRef elem, int64_t step);
val emit_field(struct emit *e, LLVMTypeRef t, size_t off);
void emit_set_field(struct emit *e, size_t off, val v);
val emit_state(struct emit *e, LLVMTypeRef t, size_t off); /* of struct cpu_warp */
void emit_set_state(struct emit *e, size_t off, val v);
val emit_frame(struct emit *e); /* the warp's, its registers, linear registers and pending lanes: loaded where they are
                                   needed, most often on the way out */
val emit_regs(struct emit *e);
val emit_linear(struct emit *e);
val emit_masks(struct emit *e);
val emit_at(struct emit *e, val base, uint64_t off); /* base + off bytes */
val emit_intrinsic(struct emit *e, const char *name, LLVMTypeRef *types, unsigned n_types, val *args, unsigned n);
/* A register as the program sees its bits (NaNs canonical) or raw. half: scalar at lane 0 or 16. */
val emit_vec(struct emit *e, uint32_t reg, bool raw);
val emit_scalar(struct emit *e, uint32_t reg, int half, bool raw);
val emit_lane_offset(struct emit *e, struct cpu_shape s, LLVMTypeRef t,
                     val lane); /* how far a lane's value is from its base; NULL: not at all */
bool emit_is_linear(struct emit *e, uint32_t reg);
bool emit_is_vec(struct emit *e, uint32_t reg); /* in this version */
int emit_parts(struct emit *e, uint32_t reg);   /* else: scalars that it has */
/* Writes a register in the active lanes (active: <32 x i1> or NULL for those that run). */
void emit_set_vec(struct emit *e, uint32_t reg, val v, val active);
void emit_set_scalar(struct emit *e, uint32_t reg, int half, val v, val guard);
void emit_spill(struct emit *e, uint32_t reg);                               /* to the frame */
void emit_reload(struct emit *e, uint32_t reg, val lane, val low, val high); /* from it */
val emit_linear_place(struct emit *e, const struct cpu_reg *r, int half);
val emit_slot(struct emit *e, uint32_t reg); /* its address in the frame */
val emit_canon(struct emit *e, val bits);
val emit_canon_seldom(struct emit *e, val bits); /* of a warp that most likely has no NaN */
/* Code for where some lane holds a NaN, which is seldom: between the two the builder stands there. usual, seldom: what
 * comes of it without and with NaNs. 32: of a warp's f32, with AVX2 */
struct nan_case {
    LLVMBasicBlockRef before, nans, on;
};
void emit_begin_nans32(struct emit *e, struct nan_case *c, val x);
val emit_end_nans(struct emit *e, const struct nan_case *c, val usual, val seldom);
val emit_mask(struct emit *e);               /* of the running set as i32 */
val emit_lanes(struct emit *e);              /* as <32 x i1>; NULL: all */
val emit_lanes_of(struct emit *e, val bits); /* bits of an i32 as lanes */
val emit_guard(struct emit *e);              /* the instruction's guard as <32 x i1>, NULL: none */
val emit_guard_scalar(struct emit *e);
val emit_active(struct emit *e); /* lanes that run and whose guard holds; NULL: all */
LLVMBasicBlockRef emit_block(struct emit *e, const char *name);
void emit_save(struct emit *e, uint32_t reg);
void emit_restore(struct emit *e, uint32_t reg);

/* approx.c: vectors or scalars. emit_approx, _double, _quotient: with AVX2; emit_rounded: MXCSR's rounding, with
 * AVX-512 vectors; with AVX2 none of quotients */
val emit_approx_double(struct emit *e, enum mg_op op, bool ftz, val x);
val emit_approx(struct emit *e, enum mg_op op, bool ftz, val x);
void emit_approx_quotient(struct emit *e, bool full, bool ftz, val *x);
val emit_rounded(struct emit *e, enum mg_op op, unsigned mode, const val *x);
val emit_smaller_or_greater(struct emit *e, bool greater, const val *x);
val emit_flushed(struct emit *e, val x);
val emit_flushed_result(struct emit *e, enum mg_op op, val x, val y, val z);
/* memory.c: the program's addresses, zero-extended; are all (active) lanes in [lo, lo + size) and aligned? */
val emit_address(struct emit *e, const struct cpu_inst *in, bool vec, int half);
val emit_narrow(struct emit *e, val many);
val emit_all_inside(struct emit *e, val many, val lo, val limit, uint32_t bytes, val lanes);
/* ahead.c: what the linear access at p touches the next time is fetched */
void emit_ahead(struct emit *e, uint32_t moves, const val *p, unsigned n, uint64_t bytes);
void emit_ahead_row(struct emit *e, val p);
void emit_ahead_start(struct emit *e, uint32_t which, LLVMBasicBlockRef bb);
/* tally.c */
void emit_count(struct emit *e);
void emit_count_round(struct emit *e); /* all warps have come to a stop */
void emit_count_lanes(struct emit *e, uint32_t ix, val lanes,
                      val times); /* so many lanes of the warp have passed operation ix, so often together; lane by
                                     lane, added when the loop is left */
void emit_tally(struct emit *e, val at, val v); /* v is added to a word of the array of counts */
void emit_request(struct emit *e);              /* request.c */
void emit_carried(struct emit *e);              /* carried.c */
LLVMTypeRef emit_mem_type(struct emit *e, unsigned bytes);
val emit_extended(struct emit *e, const struct cpu_inst *in, val v,
                  bool vec); /* from the memory's element to the register's lane */
void emit_bounds(struct emit *e, const struct cpu_inst *in, val *lo, val *size); /* what the operation may access */
void emit_keep_bounds(struct emit *e);                                           /* of all operations, in variables */
void emit_look_up_bounds(struct emit *e); /* the emulator has done the operation */
val emit_host_pointer(struct emit *e, const struct cpu_inst *in, val at);
val emit_joined(struct emit *e, val *rows, unsigned n); /* n vectors one behind the other, n a power of 2 */
val emit_lanes_from(struct emit *e, val v, unsigned first, unsigned n); /* n lanes of it */
val emit_program(struct emit *e, val access); /* it is one of the program's: nothing of ours lies there */
val emit_counted(struct emit *e, val access); /* of the array of counts: nothing else lies there */
val emit_op_address(struct emit *e);          /* the emulator's operation */
/* single.c: what others may access at the same time, by one move a lane */
bool emit_is_single(const struct cpu_inst *in);
val emit_single(struct emit *e, val access,
                unsigned bytes); /* it is one lane's, of so many bytes, or many lanes' side by side */
void emit_lane_get(struct emit *e, val p, val *elements);
void emit_lane_put(struct emit *e, val p, const val *elements);
void emit_lanes_apart(struct emit *e, val at, val *elements); /* of 16 bytes and more, anywhere; elements: vectors */
void emit_texel(struct emit *e);                              /* texel.c */
val emit_masked(struct emit *e, const char *name, LLVMTypeRef *types, val args[4], unsigned align); /* memory.c */
/* exchange.c: operations of a warp. active: who takes part, as bits, not none. false: no code */
bool emit_exchange(struct emit *e, val active);
val emit_first_lane(struct emit *e, val mask);                     /* the lowest in the mask */
val emit_of_first(struct emit *e, val vec, val mask, val *differ); /* its value; differ: another one has another */
/* rows.c */
val emit_narrow_rows(struct emit *e, val at, unsigned row, unsigned step, val lanes, val *bases);
val emit_places_hold(struct emit *e, val lanes, val *bases);
/* stored.c: rows of n lanes in shared memory, one or two. place: where they are in warp 0, `step` from there in the
 * next one; at: in the one that runs. They lie inside in every warp. */
val emit_load_as_stored(struct emit *e, const val *at, const int64_t *place, unsigned rows, int64_t step, unsigned n);
/* walk.c: from the register's base on, in lane 0, `span` bytes from `least` on are to be inside, at multiples of align.
 * Behind emit_walk_begin, if it says so, the builder stands where that is to be found out for the running warp;
 * emit_walk_end takes what was found, the bases (two: of halves) and what may be accessed, and returns whether it
 * holds. */
bool emit_walk_begin(struct emit *e, struct walk_check *w, enum walk_which which, uint32_t reg, int64_t least,
                     uint64_t span, uint32_t align);
val emit_walk_end(struct emit *e, const struct walk_check *w, val ok, const val *base, unsigned n, val lo, val size);
void emit_walk_new(struct emit *e);
void emit_walk_row(struct emit *e, LLVMBasicBlockRef bb); /* at bb another row of the grid begins */
/* pieces.c: rows in shared memory, loaded and stored as whole vectors at multiples of their size. Of the lanes given,
 * which are active and lie inside; others have any value, or keep theirs. */
bool emit_in_pieces(struct emit *e, const struct cpu_inst *in);
val emit_load_pieces(struct emit *e, uint32_t lanes);
void emit_store_pieces(struct emit *e, val v, uint32_t lanes);
/* serial.c */
bool emit_lone(struct emit *e); /* the emulator's function for one lane that came here alone; false: has code */
LLVMBasicBlockRef emit_serial_entry(struct emit *e, int version, uint32_t loop);
/* A variable for what one lane has in the register; must: of no matter */
void emit_lane_needs(void *e, uint32_t r);
void emit_lane_needs_def(void *e, uint32_t r, bool must);
bool emit_serials(struct emit *e, bool *any); /* those that have been asked for */
void emit_lane_memory(struct emit *e);
void emit_lane_end(struct emit *e);
void emit_lane_pass(struct emit *e); /* CPU_COUNT: the lane was here */
/* lanes.c */
void emit_atomic(struct emit *e);
bool emit_is_live_after(struct emit *e, uint32_t reg); /* the instruction */
struct lane_loop {
    LLVMBasicBlockRef head, on;
    val mask;
};
val emit_begin_lanes(struct emit *e, struct lane_loop *l, val mask);
void emit_end_lanes(struct emit *e, struct lane_loop *l);
val emit_room(struct emit *e, unsigned use);
val emit_lane_of(struct emit *e, LLVMTypeRef t, val array, val lane);
struct lane_addresses {
    val many, first;
    int64_t step;
    val index;
    unsigned scale;
}; /* many NULL: lane i's is first + step * i; with indices, of 32 bits and a sign: first + scale * index[i] */
/* index.c */
bool emit_find_index(struct emit *e, struct lane_addresses *at, bool *sign);
val emit_index_inside(struct emit *e, const struct lane_addresses *at, bool sign, val lo, val size, unsigned bytes,
                      val lanes);
val emit_index_pointer(struct emit *e, const struct lane_addresses *at, val index);
void emit_gather_index(struct emit *e, const struct lane_addresses *at, unsigned bytes, val lanes, val v, val *loaded);
LLVMBasicBlockRef emit_few(struct emit *e, LLVMTypeRef t, const struct lane_addresses *at, val lanes, val value,
                           val *loaded);

/* alu.c, memory.c, call.c, control.c */
bool emit_alu(struct emit *e);
bool emit_move(struct emit *e);
void emit_memory(struct emit *e);
void emit_call(struct emit *e);
/* The emulator's function where not `ok`. Result: where both go on; code that follows is that of the other way. */
LLVMBasicBlockRef emit_call_unless(struct emit *e, val ok);
val emit_clock(struct emit *e);       /* the host's, of 64 bits; loads and stores stay on their side of it */
val emit_active_bits(struct emit *e); /* of the lanes that take part, a word */
void emit_sync(struct emit *e);
void emit_end(struct emit *e);
void emit_leave(struct emit *e);
void emit_usually(struct emit *e, val cond, LLVMBasicBlockRef usual, LLVMBasicBlockRef rare); /* branches */
void emit_leave_if(struct emit *e, val cond); /* the emulator does this operation when cond holds */

/* nans.c: before each operation of a block, and before it is left; the result of one that goes on with the chain */
void emit_step_chain(struct emit *e);
void emit_end_chain(struct emit *e);
void emit_link_chain(struct emit *e, val result);
bool emit_chain_new(struct emit *e);
void emit_chain_free(struct emit *e);
bool emit_may_leave(struct emit *e); /* memory.c: may the load have to leave the code? */

/* known.c */
void emit_find_known(struct emit *e, uint32_t start, uint32_t mask);
uint32_t emit_known_lanes(const struct emit *e);
LLVMBasicBlockRef emit_known_block(struct emit *e, uint32_t b);
LLVMBasicBlockRef emit_known_target(struct emit *e, uint32_t to, bool *waits);

bool emit_few_lanes(struct emit *e, uint32_t b, bool *done); /* few.c */

/* emit.c */
bool emit_instruction(struct emit *e);
LLVMBasicBlockRef emit_target(struct emit *e, int version, uint32_t b); /* where block b begins */
bool emit_begin(struct emit *e, LLVMModuleRef m, struct cpu_func *f, const char *name);
bool emit_begin_in(struct emit *e, LLVMModuleRef m, struct cpu_func *f, val fn); /* fn: a declaration */
void emit_slots(struct emit *e);                                                 /* variables */
void emit_state_vars(struct emit *e);                                            /* ... and what is loaded once */
void emit_place(struct emit *e);                                                 /* of the warp at_warp */
void emit_clear(struct emit *e);       /* nothing of the warp before is left */
void emit_clear_place(struct emit *e); /* ... but its registers */
bool emit_bodies(struct emit *e);      /* every block that has been asked for */
void emit_leave_blocks(struct emit *e);
void emit_finish(struct emit *e);

/* whole.c */
/* The warp has come to a stop, with all its lanes when at a barrier. */
void emit_stop(struct emit *e, bool barrier, uint32_t next);
/* ... to one that whole-CTA code does not see to: it goes on from block `next` elsewhere. */
void emit_pass_on(struct emit *e, uint32_t next);
bool emit_unsaved(struct emit *e,
                  uint32_t r); /* register r (from 0) may lie nowhere but in a variable, though not written here */
uint32_t emit_region(struct emit *e);     /* the start of what is being emitted */
bool emit_never_all(struct emit *e);      /* no warp has all lanes */
void emit_ended(struct emit *e);          /* no lane goes on */
void emit_idle(struct emit *e, int side); /* all lanes take the branch at the block's end (1: do not): are the warps
                                             behind this one to be left out? */
val emit_ctaid(struct emit *e, unsigned comp);
void emit_tell_place(struct emit *e); /* the emulator may ask for the CTA's place */
val emit_turns(struct emit *e);
val emit_warp_number(struct emit *e); /* 64 bits, other than that of the warp before */

#define emit_is(e, k) ((e)->f->isa >= (k))

#endif
