/* Induction variables: registers that one instruction of a loop steps by a constant, so that how far
 * they moved while the loop ran tells how often that instruction ran; and loops that provably end
 * within 2^32 rounds, because such a register is compared in every round.
 *
 * "Round" = one execution of the loop's header. "Run" = from entering the loop until leaving it. */
#ifndef MG_ANALYSIS_INDVAR_H
#define MG_ANALYSIS_INDVAR_H

#include "analysis/analysis.h"
#include "analysis/dom.h"
#include "analysis/loop.h"

enum mg_iv_last {
    MG_IV_MAYBE,
    MG_IV_ALWAYS, /* its block runs in every round, the one in which the loop is left included */
    MG_IV_NEVER,  /* not in the round in which the loop is left */
};
struct mg_iv {
    uint32_t loop;
    uint32_t block; /* whose executions step it, once each; in the loop, in no inner one */
    mg_id reg;
    mg_id step; /* add or sub reg, reg, constant; 0: the register is stepped by way of another one */
    bool down;  /* steps by -(1 << shift), else by 1 << shift */
    uint8_t shift;
    uint8_t bits; /* of the register: 32 or 64 */
    enum mg_iv_last last;
    bool own; /* no register of the function's: who counts steps one of its own at the block's head */
};
/* How long one run of a loop can be. */
enum mg_trips {
    MG_TRIPS_ANY,     /* nothing is known */
    MG_TRIPS_LIMITED, /* at most 2^bits rounds, at most 2^bits - 1 of them followed by another */
    MG_TRIPS_BELOW,   /* fewer than 2^bits rounds */
};
struct mg_ivs {
    struct mg_iv *list;
    uint32_t n;         /* in the order of their loops */
    uint8_t *trips;     /* loop -> enum mg_trips */
    uint8_t *trip_bits; /* loop -> bits of the bound, at most 32 */
    uint64_t *exact;    /* loop -> rounds of every run, known beforehand; 0: not known */
    bool carry_used;    /* the function's own code keeps something in the carry flag */
    uint32_t *latch;    /* loop -> its only block with an edge to the header; MG_NO_BLOCK: several, or irreducible */
};
struct mg_ivs *mg_ivs_new(const struct mg_cfg *c, const struct mg_dom *d, const struct mg_loops *l);
void mg_ivs_free(struct mg_ivs *v);
/* Of what happens once in a round of the loop (MG_NO_LOOP: of none), how often, all loops around it taken together: at
 * most 2^bits times, fewer where `below`. False: it is not known. */
bool mg_ivs_most(const struct mg_ivs *v, const struct mg_loops *l, uint32_t loop, unsigned *bits, bool *below);

#endif
