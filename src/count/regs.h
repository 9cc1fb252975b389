/* Scheme register: one function while its counters are placed and its code is made. For the files of src/count and for
 * the sums of tools (patch/sum.c), which are kept and flushed alike. */
#ifndef MG_COUNT_REGS_H
#define MG_COUNT_REGS_H

#include "analysis/uniform.h"
#include "count/flow.h"
#include "count/schemes.h"
#include "insert/emit.h"
#include "insert/place.h"

#define MG_BANK          30 /* bits in a packed register: 6 groups of 5, each summed over a warp by itself */
#define MG_MAX_COHORTS   8  /* with counters of their own; blocks of others count warps one by one */
#define MG_BIT_BANKS     8  /* packed registers at most */
#define MG_FEW_COLUMNS   4  /* fields of a group of 2 bits each: 8 bits apart, so that each can be summed over a warp */
#define MG_FEW_GROUPS    4
#define MG_COUNTER_CELLS 32 /* 32-bit registers for other counters at most; what is left counts in local memory */

enum mg_rc_kind { /* storage classes (storage/storage.h) */
                  MG_RC_BIT,
                  MG_RC_32,
                  MG_RC_CARRY, /* 32 bits; on overflow 2^32 goes to memory at once */
                  MG_RC_64,
                  MG_RC_LOCAL,  /* a word of local memory */
                  MG_RC_FLAG,   /* at most once, when there are too many for registers: a byte of local memory */
                  MG_RC_SHARED, /* a word of the CTA's shared memory (count/shared.c) */
                  MG_RC_FEW,    /* at most MG_COUNT_FEW times: 2 bits of a packed register */
                  MG_RC_FIELD,  /* 8 bits of a register, in loops (storage/few.c); a few of one that travels with calls
                                 * (count/carry.c) */
                  MG_RC_ALONE,  /* added to memory at each event (count/alone.c) */
                  MG_RC_KINDS,
};
struct mg_rc { /* a counter of one function while it runs */
    enum mg_rc_kind kind;
    const char *why; /* it is kept so; a literal */
    mg_id reg;       /* BIT: the packed register */
    uint32_t bit;    /* BIT, FEW, FIELD: position in it */
    uint32_t width;  /* FEW, FIELD: its bits; of a field 8 where lanes are summed */
    uint32_t cell;   /* FIELD: number of the register; of any counter that travels: that in which it does */
    bool small;      /* never as much as 2^27 in a lane */
    bool real;       /* 64: the register is a double, counted up from 2^52, so that its lower bits are the count */
    bool guarded;    /* that is so because rounds are counted (mg_shared_rounds) */
    uint32_t slot;   /* among the function's counters in memory: bits first */
    mg_id from;      /* where an induction variable stood when its loop was entered */
    mg_id high;      /* carries of its steps since */
};
enum mg_warp_rule { MG_WR_NONE, MG_WR_LOWEST, MG_WR_COHORT };
struct mg_rcohort {
    uint32_t begin;
    uint32_t
        flag; /* counter that begins it; UINT32_MAX: it is the kernel's entry, which comes first where it is there */
    uint32_t at;
};
static inline bool mg_rc_is_entry(const struct mg_rcohort *q)
{
    return q->flag == UINT32_MAX;
}

struct mg_carry;

/* Parts of a function's counting, by storage class and by what is counted. */
struct mg_rc_packed {
    mg_id *banks;
    uint32_t n_banks; /* registers of bits */
    mg_id few;
    uint32_t n_few; /* the first words are fields of that register */
    mg_id fields;   /* the first register of fields of 8 bits */
    uint32_t n_fields;
    bool *in_loop;          /* by loop: fields count what happens there and in no loop inside */
    uint32_t *cuts, n_cuts; /* blocks at whose head the register of bits is saved (saved.c) */
    uint32_t saved_off;     /* of saved banks in local memory */
    mg_id saved_at;         /* register: 4 times the number of the one at hand */
};
struct mg_rc_local {
    mg_id var, reg;            /* the array, its address */
    uint32_t n_words, n_bytes; /* of 64 bits; for what happens at most once */
    mg_id flagged;             /* not 0: some byte is set; 0: there are none */
};
struct mg_rc_shared {
    uint32_t n, slot;
    mg_id var;    /* words in shared memory, slot of the first; variable */
    mg_id base;   /* a register with their address; 0: there is none */
    bool arrives; /* only the last to leave drain them */
    bool all;     /* nothing is counted elsewhere, and not much */
    struct mg_rrange {
        uint32_t loop, first, n;
    } * ranges;
    uint32_t n_ranges; /* not NULL: each word of those is some loop's (loop.c) */
};
struct mg_rc_lone { /* one lane's work (alone.c) */
    bool is;
    mg_id base, one; /* events; their copy of the counters, what they add */
};
struct mg_rc_calls { /* counters of callees that arrive here, and its own that travel (carry.c) */
    struct mg_rsource {
        uint32_t func, counter;
    } * sources;
    uint32_t n_sources;
    bool settles;                 /* what callees send back goes to memory behind each call, not at the end */
    bool carried;                 /* its counters travel to its callers */
    bool adds;                    /* and come with what earlier activations have counted */
    bool *back;                   /* block -> its call may come back to this function; NULL: none */
    uint32_t sent_at, context_at; /* where counters begin in what it sends back, where the context's address lies */
    mg_id spill;                  /* the function that empties its fields; 0: not needed so far */
    bool counted;                 /* it is entered by calls that are counted */
    uint32_t *callers, n_callers;
};
struct mg_rc_warps {
    enum mg_warp_rule *rule;
    uint32_t *counter; /* by block */
    struct mg_rcohort *cohorts;
    uint32_t n_cohorts;
    bool ballot;                        /* no activemask */
    mg_id mask, below, lt, low, always; /* of the lowest active lane */
};
struct mg_rc_live { /* what may have been counted where (live.c, leave.c) */
    uint64_t **sets;
    uint32_t n_words; /* block -> set of counters that may not be 0 at its end */
    double *lanes,
        *zero; /* block -> expected at its end: lanes, those of them that have counted nothing; NULL: not asked yet */
    bool *may_leave; /* block -> its call may end the lane */
};

struct mg_rfunc {
    struct mg_emit x;
    const struct mg_counter_opts *o;
    struct mg_counter_layout *layout;
    struct mg_count_plan *plan;
    struct mg_placer place;
    struct mg_rc *counters;
    uint32_t n, n_measured;   /* measured ones first, then those of warps, then those that callees send back */
    uint32_t n_bits, n_words; /* slots: bits, then registers, then local memory (words, bytes), shared memory, */
    uint32_t n_others;        /* then other classes in memory */
    uint32_t at;              /* counter of slot 0 */
    bool alike;               /* every CTA counts as much: CTA 0 alone adds to memory */
    bool sync, redux;         /* what the PTX may use: warp operations with a mask; redux */
    struct mg_rc_packed packed;
    struct mg_rc_local local;
    struct mg_rc_shared shared;
    struct mg_rc_lone lone;
    struct mg_rc_calls calls;
    struct mg_rc_warps warps;
    struct mg_rc_live live;
    struct {
        mg_id b32[10], b64[6], p[5], base, saved[3], saved_base, sums[8];
    } t; /* temporaries of flushes */
};

bool mg_rc_in_memory(const struct mg_rc *c);
/* Slots of the function's counters in memory. */
static inline uint32_t mg_rc_slots(const struct mg_rfunc *f)
{
    return f->n_bits + f->n_words + f->local.n_words + f->local.n_bytes + f->shared.n + f->n_others;
}
/* Parts of flushes (count/count.c): temporaries by number; labels and branches in front of x.at. */
mg_id mg_rc_temp(struct mg_rfunc *f, mg_id *at, const char *name, enum mg_type type);
mg_id mg_rc_t32(struct mg_rfunc *f, unsigned i);
mg_id mg_rc_t64(struct mg_rfunc *f, unsigned i);
mg_id mg_rc_tp(struct mg_rfunc *f, unsigned i);
struct mg_opnd mg_rc_pair(struct mg_rfunc *f, mg_id low, mg_id high); /* of 64 bits, from two registers of 32 */
mg_id mg_rc_label(struct mg_rfunc *f);
void mg_rc_put_label(struct mg_rfunc *f, mg_id label);
void mg_rc_branch(struct mg_rfunc *f, mg_id p, bool not_p, mg_id label);
/* d = 1, which ptxas cannot know. */
void mg_rc_one(struct mg_rfunc *f, mg_id d);
/* i = this thread's number in its CTA, n = how many there are. */
void mg_rc_number_threads(struct mg_rfunc *f, mg_id i, mg_id n);
/* Does the node stand in a scope, whose labels cannot be seen from behind the body? */
bool mg_rc_in_scope(const struct mg_rfunc *f, mg_id node);
/* Address of the function's counters in this multiprocessor's copy. */
void mg_rc_address(struct mg_rfunc *f, mg_id base);
/* d = where this multiprocessor's copy of the counters begins, in words, + n (another register than d; 0: none). */
void mg_rc_copy(struct mg_rfunc *f, mg_id d, mg_id n);
/* d = the mask, each lane of which is in it, as a number that differs by lane for all that ptxas can know (t: any
 * register but the mask). */
void mg_rc_own(struct mg_rfunc *f, mg_id d, mg_id mask, mg_id t);
/* What a counter of 64 bits is set to for none; makes plain numbers of those of the set that are doubles, in front of
 * x.at. */
int64_t mg_rc_zero(const struct mg_rc *c);
void mg_rc_unreal(struct mg_rfunc *f, const uint64_t *set);
/* A loop over the local array: offset in t64(1), address in t64(2); returns its label. */
mg_id mg_rc_begin_locals(struct mg_rfunc *f);
void mg_rc_end_locals(struct mg_rfunc *f, mg_id again, uint32_t n_words);
/* Counter c of this lane to [base + 8 * slot], for lanes with the guard. */
void mg_rc_add_lane(struct mg_rfunc *f, const struct mg_rc *c, mg_id base, mg_id guard);
/* All counters in the set of this lane, for lanes with the guard (0: all). */
void mg_rc_add_all(struct mg_rfunc *f, const uint64_t *set, mg_id guard);
/* Is this lane the cohort's first? Of the kernel's entry: of a warp that is not whole. */
mg_id mg_rc_lead(struct mg_rfunc *f, const struct mg_rcohort *q);
/* Where this warp is not whole, what its first lane has counted, to the counters of the entry's cohort. */
void mg_rc_add_partial(struct mg_rfunc *f, const uint64_t *set, const struct mg_rcohort *q);
/* Cohorts but the kernel's entry. */
uint32_t mg_rc_n_led(const struct mg_rfunc *f);

/* Where lanes leave (count/leave.c). Is it worth asking first whether anything was counted by those that leave by the
 * block? */
bool mg_leave_may_be_zero(struct mg_rfunc *f, uint32_t block);
/* A rare block that leads to where the kernel leaves: natively an exit with a guard jumps over it. The flush behind it
 * would have ptxas make guarded instructions of it, which every warp pays for; it makes none of a block with a fence.
 */
void mg_leave_keep_rare(struct mg_rfunc *f, uint32_t block);

/* Kernels that are one lane's work (count/alone.c): sets f->lone.is; code at the entry, at an event (with x's guard)
 * and in front of a block that leaves. */
void mg_alone_plan(struct mg_rfunc *f);
void mg_alone_begin(struct mg_rfunc *f);
void mg_alone_end(struct mg_rfunc *f, uint32_t block);

/* Saved banks of bits (count/saved.c): gives bits their slots and marks them taken; false: not worth it here. */
bool mg_saved_plan(struct mg_rfunc *f, bool *taken);
/* The cuts. Before any other code at the heads of blocks. */
void mg_saved_emit(struct mg_rfunc *f);

/* How much shared memory has to be declared for so many bytes of it; 0: there is no room. */
uint32_t mg_shared_room(const struct mg_module *m, uint32_t bytes);
uint32_t mg_shared_whole(uint32_t bytes); /* as many as leave what lies behind aligned as ever */
/* A variable of so many words in shared memory. */
mg_id mg_shared_declare(struct mg_module *m, mg_id func, uint32_t words);
/* Counters in shared memory, and those of 32 bits whose rounds are counted (count/shared.c). May the function have
 * any; is there room for the former; may this one be among them? */
bool mg_shared_may(const struct mg_rfunc *f);
bool mg_shared_has_room(const struct mg_rfunc *f);
#define MG_SHARED_FEW 96 /* words that a warp clears and looks at all at once */
bool mg_shared_takes(const struct mg_rfunc *f, uint32_t counter);
/* The innermost loop in which the counter's code stands: of an induction variable, that around its own. */
uint32_t mg_shared_loop(const struct mg_rfunc *f, uint32_t counter);
/* Code: an event; zeroes at the entry; what keeps words from overflowing; lanes of the mask add all words to
 * memory, each a part (mine: a predicate that tells who counts, or 0). */
void mg_shared_clear(struct mg_rfunc *f);
void mg_shared_rounds(struct mg_rfunc *f);
/* Lanes of the mask leave (whole: all of a warp); goes to out unless they are the last of their CTA to do so. */
void mg_shared_leave(struct mg_rfunc *f, bool whole, mg_id mask, mg_id rank, mg_id out);
/* Do all lanes that leave drain words? After mg_rc_find_live. */
bool mg_rc_all_drain(const struct mg_rfunc *f);
/* The same for a whole warp in a function that counts nowhere else; goes to out where there is nothing. */
void mg_shared_drain_all(struct mg_rfunc *f, struct mg_rrange r, mg_id mask, mg_id out);
void mg_shared_drain(struct mg_rfunc *f, struct mg_rrange r, mg_id base, mg_id mask, mg_id rank, mg_id mine);
#define MG_SHARED_GUARD 0x5a17b10c /* what stands beside words of ours in shared memory */
static inline struct mg_rrange mg_shared_whole_range(const struct mg_rfunc *f)
{
    return (struct mg_rrange){.loop = UINT32_MAX, .n = f->shared.n};
}
/* Zeroes in front of x.at, by all threads of the CTA. */
void mg_shared_clear_range(struct mg_rfunc *f, struct mg_rrange r);
/* Words of loops that may not run: can these counters be such; gives them slots from the first on; code; where a
 * counter's loop has its words. */
bool mg_loop_words_may(const struct mg_rfunc *f, uint32_t counter, bool *asked);
void mg_loop_words_place(struct mg_rfunc *f, uint32_t slot);
void mg_loop_words_emit(struct mg_rfunc *f);
struct mg_rrange mg_loop_words_of(const struct mg_rfunc *f, uint32_t loop);
/* This lane's and its whole warp's drain, or that of what is there of it; temporaries and the copy's address as the
 * flush has them (count/flush.c). */
void mg_rc_drain_range(struct mg_rfunc *f, struct mg_rrange r);
/* In front of x.at, of a function that settles: what callees send back is set to 0; is added to memory. */
void mg_rc_clear_sources(struct mg_rfunc *f);
void mg_rc_settle(struct mg_rfunc *f);
/* Code for lanes with the predicate, rarely run: out of the way, behind the body, where its labels can be seen from
 * there. */
struct mg_apart {
    mg_id at, back;
    bool inside;
};
struct mg_apart mg_rc_begin_apart(struct mg_rfunc *f, mg_id p);
void mg_rc_end_apart(struct mg_rfunc *f, struct mg_apart a);
void mg_rc_end_apart_at(struct mg_rfunc *f, struct mg_apart a, mg_id done); /* goes on at that label, put further on */
/* In front of x.at: lanes for which p holds drain. */
void mg_rc_drain_apart(struct mg_rfunc *f, struct mg_rrange r, mg_id p);

/* ---- counters that travel with calls (count/carry.c) --------------------------------------------- */

struct mg_cell {
    uint32_t func;
    enum mg_type type;
}; /* a register of this function's counters; UINT32_MAX: bits of several */
/* The plan of a function, as comments (dump.c). */
void mg_count_dump(const struct mg_rfunc *f, const char *function, struct mg_buf *out);

struct mg_carry {
    uint32_t n; /* functions */
    const struct mg_sites *s;
    bool *calls;     /* [i * n + j]: i calls j by name */
    bool *carried;   /* by function */
    bool *cyclic;    /* it may call itself, perhaps through others */
    uint32_t *times; /* entered at most so often by a thread of the kernel; UINT32_MAX: no bound */
    bool *few;       /* by function: others than recursive ones enter it a few times at most */
    bool *through;   /* [i * n + j]: counters of j pass through i */
    struct mg_cell *cells;
    uint32_t n_cells;
    uint32_t n_bits;       /* given out in cell 0, which is there if there are any */
    bool *without_context; /* by function: it has no use for the context's address */
    mg_id *regs;           /* [i * n_cells + cell], 0: does not pass through i */
};
/* Which functions can send their counters to their callers. NULL: none. */
struct mg_carry *mg_carry_new(const struct mg_sites *s, const struct mg_twin *t, const bool *may_exit);
void mg_carry_free(struct mg_carry *y);
/* Blocks whose call may come back to the function before it returns. NULL: none; to be freed. */
bool *mg_carry_cycles(const struct mg_carry *y, uint32_t func);
/* Of planned functions: settles which counters travel, and in what. */
void mg_carry_assign(struct mg_carry *y, struct mg_rfunc *funcs, const uint32_t *order);
/* Of a function whose counters do not travel: lists those that come to it, gives it registers. */
void mg_carry_receive(struct mg_carry *y, struct mg_rfunc *funcs, uint32_t func);
/* Code: parameters and registers at the entry, what is sent back at a return, checks of fields. */
void mg_carry_enter(struct mg_carry *y, struct mg_rfunc *f);
void mg_carry_return(struct mg_carry *y, struct mg_rfunc *f, mg_id at);
void mg_carry_check(struct mg_carry *y, struct mg_rfunc *f);
/* All calls in a function of those whose counters travel. After everything else in it. */
void mg_carry_calls(struct mg_carry *y, struct mg_rfunc *funcs, uint32_t func);

/* Counter number k of what is counted at most once: its bit in a packed register. */
static inline uint32_t mg_rc_bit(uint32_t k)
{
    return k % MG_BANK % 5 * 6 + k % MG_BANK / 5;
}
/* Of a counter that counts few: its field. */
static inline uint32_t mg_rc_few(uint32_t k)
{
    return k % MG_FEW_COLUMNS * 8 + k / MG_FEW_COLUMNS * 2;
}
static inline bool mg_rc_in(const uint64_t *set, uint32_t i)
{
    return !set || (set[i / 64] >> i % 64 & 1);
}
/* Counts one event at the spot. */
void mg_rc_event(struct mg_rfunc *f, uint32_t counter, struct mg_spot s);
/* All code of a counter that an induction variable measures (count/iv.c). */
void mg_rc_iv(struct mg_rfunc *f, uint32_t counter);
/* Zeroes at the entry; set NULL: all. */
void mg_rc_clear(struct mg_rfunc *f, const uint64_t *set);
/* In front of x.at, for lanes with the guard: adds the counters in the set to memory, by one reduction
 * a warp; or lane by lane without a branch, where there must be none. look: asks first whether any lane has counted
 * anything. */
void mg_rc_flush(struct mg_rfunc *f, const uint64_t *set, mg_id guard, bool guard_not, bool look);
void mg_rc_flush_lanes(struct mg_rfunc *f, const uint64_t *set);
/* Code that counts the rounds of loops in which fields count, and empties these in time (count/spill.c). */
void mg_rc_fields_rounds(struct mg_rfunc *f);
/* In front of x.at: fields that could not take another 127 events go to memory (count/spill.c). */
void mg_rc_spill_fields(struct mg_rfunc *f, struct mg_carry *y);
/* A counter that wants a place (count/kinds.c). rare: not in an innermost loop; loop: the innermost one in which it
 * counts at most one event a round, MG_NO_LOOP: there is none; few, field: a small field, one of 8 bits is for it. */
struct mg_wanted {
    enum mg_count_width width;
    bool rare, few, field;
    double events;
    uint32_t counter, loop;
};
/* Gives each counter its kind and slot. */
void mg_rc_assign_kinds(struct mg_rfunc *f, const struct mg_wanted *all);
/* Has the plan counters with conditions, and so many others that there is no register for them? */
bool mg_rc_goes_to_shared(const struct mg_rfunc *f);
/* An addition of doubles is one instruction, and on devices that compute with them at half the speed of floats it runs
 * beside the integers of a loop; 64 bits of integers take two. */
bool mg_rc_reals_are_fast(uint32_t sm);
/* Which counters may have counted, by block (count/live.c). */
void mg_rc_find_live(struct mg_rfunc *f);
/* Behind loops in which a register is zero it becomes zero once more: none has to hold that zero in the loop. */
void mg_rc_renew_zeroes(struct mg_rfunc *f);
/* The array for counters in local memory. */
void mg_rc_add_local_array(struct mg_rfunc *f);
/* Registers of all counters, whose kinds and slots are known. shared: the packed register that callees know; 0: none.
 */
void mg_rc_assign_registers(struct mg_rfunc *f, mg_id shared);
mg_id mg_rc_temp64(struct mg_rfunc *f);

#endif
