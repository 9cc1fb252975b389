/* Storage classes: where a counter of one function is kept while the function runs. The plan (kinds.c) asks them one
 * by one, in the order of storage.c; the first that may hold a counter gets it. Code is emitted in front of f->x.at.
 * Not for other folders. docs/howto-add-a-storage-class.md goes through the members.
 *
 *     holds    planning: may this class hold the counter as things stand, and why
 *     event    one event is counted; add: several
 *     begin    what counters of the class share is 0 again; clear: one counter. At the function's entry, and in front
 *              of a call that may end the lane
 *     lane     flush, lane by lane: what this lane has counted
 *     part     flush, by warps, for classes in registers: flush.c sums them, up to 32 counters at once
 *     flush    flush, by warps, for classes in memory: all counters of the class
 */
#ifndef MG_COUNT_STORAGE_H
#define MG_COUNT_STORAGE_H

#include "count/regs.h"

struct mg_kinds { /* planning: while the counters of one function get their classes */
    struct mg_rfunc *f;
    const bool *guarded;   /* by counter: 32 bits do, since rounds of its loop are counted */
    bool saved;            /* bits lie in saved banks (saved.c): those that found no place there are not packed */
    bool shares, in_loops; /* counters may lie in shared memory; all of them do, as words of their loops: what happens
                            * once has its class before that is known */
    uint32_t cells, most;  /* 32-bit registers given out so far; as many as are good for the kernel */
    uint32_t wanted;       /* as many as the counters of no bit would take */
    uint32_t need;         /* of the counter at hand: 1, 2, or 0 where it lives while nothing else does */
};

struct mg_flush {                /* a flush by warps, of the lanes that are in it */
    mg_id base, mask, rank, out; /* address of the counters; lanes, place among them; label behind */
    const uint64_t *set;         /* counters that may have counted; NULL: all */
};

struct mg_storage {
    const char *name; /* in plans */
    bool in_memory;   /* it has no register */
    bool packed;      /* it shares its register with others */
    bool wide;        /* its register has 64 bits */
    bool leaves;      /* in memory: lanes may leave the flush in its code, so it comes behind the others */
    bool alike;       /* CTA 0 may add such counters for all CTAs (by_register.c) */
    const char *(*holds)(const struct mg_kinds *k,
                         const struct mg_wanted *w); /* why; NULL: it may not. NULL: carry.c alone decides */
    void (*take)(struct mg_kinds *k, const struct mg_wanted *w); /* it is in this class from now on */
    void (*event)(struct mg_rfunc *f, uint32_t counter);         /* for lanes with x's guard */
    void (*add)(struct mg_rfunc *f, uint32_t counter, mg_id d, bool wide,
                struct mg_spot s);                   /* a register of 32 bits, 64 if wide; NULL: never asked */
    void (*begin)(struct mg_rfunc *f, bool at_call); /* before any clear; of classes in memory behind them all */
    void (*clear)(struct mg_rfunc *f, const struct mg_rc *c, bool at_call); /* NULL: begin does it, or nothing has to */
    /* p = it is not 0, for this lane; returns what to add to memory. NULL: warps add such counters. */
    struct mg_opnd (*lane)(struct mg_rfunc *f, const struct mg_rc *c, mg_id p);
    void (*part)(struct mg_rfunc *f, const struct mg_rc *c, mg_id d); /* d = what this lane adds to a sum of 32 bits */
    /* The register in which the counter lies, and where in it (c->bit). NULL: one of its own, or carry.c's. */
    mg_id (*reg)(struct mg_rfunc *f, struct mg_rc *c);
    /* A register that is not 0 where the counter (packed), or any of the class (in memory: c is NULL) has counted; 0:
     * there is none. NULL: not packed; in memory: nothing tells, and every flush looks there. */
    mg_id (*told)(const struct mg_rfunc *f, const struct mg_rc *c);
    /* In memory: may any have counted, by the set? NULL: where a counter of the class is in it. */
    bool (*any)(const struct mg_rfunc *f, const uint64_t *set);
    void (*flush)(struct mg_rfunc *f,
                  const struct mg_flush *w); /* in memory; NULL: nothing is left to add at the end */
};

extern const struct mg_storage mg_storage_bit, mg_storage_32, mg_storage_carry, mg_storage_64, mg_storage_local,
    mg_storage_flag, mg_storage_shared, mg_storage_few, mg_storage_field, mg_storage_alone;
const struct mg_storage *mg_storage_of(const struct mg_rc *c);
const struct mg_storage *mg_storage_at(uint32_t kind); /* NULL: there are no more */
/* For `told` of a packed class: the register itself. */
mg_id mg_storage_register(const struct mg_rfunc *f, const struct mg_rc *c);
/* May any counter of the class be in memory, to be flushed? set: as in mg_flush. */
bool mg_storage_any(const struct mg_rfunc *f, enum mg_rc_kind kind, const uint64_t *set);
/* Gives the counter its class, and why. */
void mg_storage_choose(struct mg_kinds *k, const struct mg_wanted *w);
extern uint32_t mg_storage_unasked; /* tests: bit i: the class of kind i is not asked */

/* Does it count how often a loop that waits for an mbarrier goes around (kinds.c)? */
bool mg_kinds_waits_on(const struct mg_rfunc *f, uint32_t counter);
/* Are its events counted in doubles? */
bool mg_kinds_in_reals(const struct mg_rfunc *f, uint32_t counter);

/* Fields of a packed register: adds d of 32 bits, or takes it off. */
void mg_few_add(struct mg_rfunc *f, uint32_t counter, mg_id d, bool wide, bool minus);
/* Parts of flushes by warps (flush.c): d = sum of s over the lanes of the mask (0: a whole warp); p = it holds in any
 * of those in the flush. p = this is the lowest of the lanes here now; returns them (round: of the loop that we are in;
 * 0: none). */
void mg_flush_sum(struct mg_rfunc *f, mg_id d, mg_id s, mg_id mask);
void mg_flush_any(struct mg_rfunc *f, mg_id p);
mg_id mg_flush_lowest(struct mg_rfunc *f, mg_id p, mg_id round);
enum { MG_FLUSH_MASK, MG_FLUSH_RANK, MG_FLUSH_LANES, MG_FLUSH_SHIFT, MG_FLUSH_VALUE }; /* mg_rc_t32 */

#endif
