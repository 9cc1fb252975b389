/* Slots for single CTAs: a launch has a fixed number of them, larger grids are sampled evenly. CTA i has slot
 * i >> shift where the low `shift` bits of i are 0; the kernel gets the mask of these bits as a per-launch word. */
#ifndef MG_PATCH_CTA_SLOT_H
#define MG_PATCH_CTA_SLOT_H

#include "patch/patch.h"

uint32_t mg_cta_slot_shift(const uint32_t grid[3], uint64_t slots);
/* Code that finds this CTA's slot (b32). mask: b32, of fewer than 32 bits. Returns the label to place behind the code
 * that uses the slot: CTAs without one jump there. */
mg_id mg_cta_slot_find(struct mg_code_at *at, mg_id mask, mg_id *slot);

#endif
