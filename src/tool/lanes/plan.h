/* lanes: which blocks of a function have to ask who is there, and which follow from others.
 *
 *   entry    entered by the warp as it was at the kernel's entry (analysis/uniform.h): asked once there
 *   same     always entered by the lanes that entered another block, together: costs nothing
 *   follows  every lane that enters another block enters this one once before it enters that one again: compares
 *            the lanes with those that were there; differences alone are counted
 *   asks     all others: partial warps are counted by active lanes, in loops of one block when they change
 *
 * Where a varying branch ends a block, one of its successors that asks can tell whether the branch split its warp:
 * whoever is there is compared with whoever came to the branch. */
#ifndef MG_TOOL_LANES_PLAN_H
#define MG_TOOL_LANES_PLAN_H

#include "analysis/uniform.h"
#include "patch/patch.h"

enum mg_lanes_ask { MG_LANES_ASKS, MG_LANES_ENTRY, MG_LANES_SAME, MG_LANES_FOLLOWS };
struct mg_lanes_block {
    enum mg_lanes_ask ask;
    uint32_t of;      /* SAME, FOLLOWS: which block */
    mg_id behind;     /* the barrier that it begins with: who is let go by it entered the block; 0: none */
    uint32_t tells;   /* ASKS: of the branch at the end of this block, whether it splits; MG_NO_BLOCK: of none */
    uint32_t enters;  /* with tells, where that branch leads back: the other predecessor; else MG_NO_BLOCK */
    bool varies;      /* it ends in a guarded bra whose lanes may disagree */
    uint32_t told_by; /* of its branch; MG_NO_BLOCK: has to be asked */
    uint32_t mask;    /* with told_by: at its end stand the lanes that entered this block; MG_NO_BLOCK: the kernel */
    bool sides;     /* with told_by: its branch counts who goes there, and on the other way where that has at_branch */
    bool at_branch; /* ASKS: does not, as that branch has counted its lanes */
    uint32_t out;   /* ASKS: a loop by itself of whose rounds lanes tell at this block, where they come out; it
                       does not ask. MG_NO_BLOCK: none such */
    bool repeats;   /* ASKS, tells, enters: the head of a loop, most rounds of which begin with the lanes of the one
                       before */
    bool runs; /* ASKS: a loop by itself, which most rounds go through with the lanes of the round before: rounds are
                  counted until these change */
};
struct mg_lanes_plan {
    struct mg_lanes_block *blocks;
    uint32_t n_blocks;
    struct mg_dom *post;
    bool asks_often; /* it has blocks in loops that are entered as the kernel is */
    bool busy;       /* a kernel with so many blocks outside of loops that ask that words near the threads pay */
};

struct mg_lanes_plan *mg_lanes_plan_new(struct mg_patch *p, uint32_t func_ix);
void mg_lanes_plan_free(struct mg_lanes_plan *l);

#endif
