/* How memory's code is written: shared by tool/memory/count.c and tool/memory/lanes.c. */
#ifndef MG_TOOL_MEMORY_CODE_H
#define MG_TOOL_MEMORY_CODE_H

#include "tool/memory/memory.h"

#define R               mg_o_reg
#define I               mg_o_imm
#define EMIT(form, ...) MG_CODE(q->at, form, __VA_ARGS__)

enum { ALL = 31 };

static inline mg_id reg32(struct mg_memory_request *q)
{
    return mg_code_temp(q->at, MG_TYPE_b32);
}
static inline mg_id reg64(struct mg_memory_request *q)
{
    return mg_code_temp(q->at, MG_TYPE_b64);
}
static inline mg_id pred(struct mg_memory_request *q)
{
    return mg_code_temp(q->at, MG_TYPE_pred);
}

/* The lanes that run this, for instructions that wait for them. Asked again after each jump, which costs one vote: of a
 * register that was written in front of it the assembler does not know that it is one number in all of them, and finds
 * out each time, for five times that. */
static inline struct mg_opnd mask_of(struct mg_memory_request *q)
{
    return q->mask.kind == MG_OPND_imm ? q->mask : R(mg_value_active(q->at));
}

static inline int64_t log2_of(uint32_t v)
{
    int64_t n = 0;
    while (v > 1) v >>= 1, n++;
    return n;
}

static inline bool has_sectors(const struct mg_memory_request *q)
{
    return q->space == MG_SPACE_global || q->space == MG_SPACE_generic;
}

static inline void jump(struct mg_memory_request *q, mg_id p, bool negated, mg_id to)
{
    if (p) mg_code_push_guard(q->at, p, negated);
    EMIT("bra.uni", mg_o_label(to));
    if (p) mg_code_pop_guard(q->at);
}

/* Two operands as one: {a, b} or a|b. */
static inline struct mg_opnd pair_of(struct mg_memory_request *q, enum mg_opnd_kind kind, mg_id a, mg_id b)
{
    mg_id pair = mg_opnd_alloc(q->m, 2);
    q->m->opnds.at[pair] = R(a), q->m->opnds.at[pair + 1] = R(b);
    return (struct mg_opnd){.kind = kind, .id = pair, .n = 2};
}

/* The two halves of a value of 64 bits. */
static inline void split(struct mg_memory_request *q, mg_id v, mg_id *lo, mg_id *hi)
{
    *lo = reg32(q), *hi = reg32(q);
    EMIT("mov.b64", pair_of(q, MG_OPND_vec, *lo, *hi), v);
}

/* The lowest of the lanes that make the access, where p (0: no such condition) holds. */
static inline mg_id lowest(struct mg_memory_request *q, mg_id p)
{
    mg_id below = reg32(q), one = pred(q);
    EMIT("and.b32", below, q->active, mg_value_lt(q->at));
    if (p)
        EMIT("setp.eq.and.u32", one, below, 0, p);
    else
        EMIT("setp.eq.u32", one, below, 0);
    if (q->makes) EMIT("and.pred", one, one, q->makes);
    return one;
}

/* ---- lane against lane (tool/memory/lanes.c) ------------------------------------------------------------------- */

/* Where the next lane below is that makes the access; first: there is none. */
mg_id mg_memory_before(struct mg_memory_request *q, mg_id *first);
/* Sectors and lines of any lanes, by that; of lanes that are some of 32 neighbours in order. */
void mg_memory_sectors(struct mg_memory_request *q, mg_id before, mg_id first, mg_id sectors, mg_id lines);
/* The same of all 32, of which it is known where the lane before is; lane 0: itself. */
void mg_memory_sectors_of_all(struct mg_memory_request *q, mg_id before, mg_id sectors, mg_id lines);
void mg_memory_sectors_in_order(struct mg_memory_request *q, mg_id sectors, mg_id lines);
/* Passes beyond the first of each group of lanes that is served together. */
void mg_memory_conflicts(struct mg_memory_request *q, mg_id total);
/* Each lane's rivals: which lanes of the mask ask for the same bank in the same group, itself included. */
void mg_memory_rivals(struct mg_memory_request *q, mg_id rivals, struct mg_opnd mask);
/* The same as conflicts, from how many different words each lane's bank is asked for. */
void mg_memory_passes(struct mg_memory_request *q, mg_id words, mg_id total);

/* ---- parts of a request (tool/memory/count.c) ---------------------------------------------------------------------
 */

/* here, active, full; jumps to `none` where no lane makes the access. */
mg_id mg_memory_ask_lanes(struct mg_memory_request *q, mg_id none);
/* Are lanes in order: do their addresses agree, less what neighbours are apart? That difference in *from, which is the
 * low half of the first lane's address. Only lanes of the mask run this. */
mg_id mg_memory_in_order(struct mg_memory_request *q, mg_id *from);
/* strip = 1 in the lane of the pattern, whose slot is in a register, 0 elsewhere. */
void mg_memory_set_pattern(struct mg_memory_request *q, mg_id strip, struct mg_opnd slot);
/* The same of a cell, added to the strip; of places, by the first lane's address. */
void mg_memory_add_pattern(struct mg_memory_request *q, mg_id strip, uint32_t cell);
void mg_memory_add_place(struct mg_memory_request *q, mg_id from);
/* Sectors and lines of 32 lanes that are one step apart, other than 0. from: low half of lane 0's address. */
void mg_memory_add_step(struct mg_memory_request *q, mg_id strip, mg_id from, int64_t step);
void mg_memory_classify_full(struct mg_memory_request *q, mg_id strip, mg_id from, mg_id unit);
/* Counts by the class, if these are all of its lanes; else jumps to `slow`. */
void mg_memory_count_by_class(struct mg_memory_request *q, const struct mg_memory_class *k, mg_id slow);
/* Counts any of its lanes that are in order, or alike, and goes to done; not: falls through. */
void mg_memory_count_part(struct mg_memory_request *q, const struct mg_memory_class *k, mg_id done);
/* All of it at the spot. */
void mg_memory_count_here(struct mg_memory_request *q, const struct mg_memory_class *k);
/* before, first: of mg_memory_before; 0: not known. */
void mg_memory_follow_one(struct mg_memory_request *q, mg_id full, const struct mg_memory_group *g, mg_id before,
                          mg_id first);

/* The lowest of the lanes that make the access, where p (0: no such condition) holds, adds 1 to a sum of that cell;
 * UINT32_MAX: in memory. */
void mg_memory_add_one(struct mg_memory_request *q, uint32_t cell, uint32_t sum, mg_id p);
/* The same where p holds, which all lanes here agree on; then goes to done. */
void mg_memory_add_one_and_go(struct mg_memory_request *q, uint32_t cell, uint32_t sum, mg_id p, mg_id done);

/* The others of a group, where 32 lanes are in step: then jumps to done. */
void mg_memory_follow_step(struct mg_memory_request *q, const struct mg_memory_group *g,
                           const struct mg_memory_follower *f, uint32_t n, mg_id done);

/* ---- with calls (tool/memory/called.c) ------------------------------------------------------------------------------
 */

void mg_memory_count_away(struct mg_memory_request *q); /* whatever it is; some lane makes it */
void mg_memory_count_called(struct mg_memory_request *q, const struct mg_memory_class *k);
void mg_memory_follow_called(struct mg_memory_request *q, mg_id slot);
void mg_memory_classify_called(struct mg_memory_request *q, mg_id strip, mg_id ordered);

#endif
