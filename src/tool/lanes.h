/* Shared by lanes.c, which counts, and lanes_report.c, which shows.
 *
 * What the block counter tells is not counted again: a block's thread entries less those of warps that were not full
 * are lanes of full warps, and threads that took a branch are thread entries of the blocks behind it, where nothing else leads there. */
#ifndef MG_TOOL_LANES_H
#define MG_TOOL_LANES_H

#include "tool/kit.h"

enum { MG_LANES_WARP = 32, MG_LANES_BINS = MG_LANES_WARP + 1 }; /* cells of a block: warp entries by active lanes; the last one holds lanes, and is filled in by the report */
enum mg_lanes_cell { MG_LC_TAKEN, MG_LC_DIVERGENT, MG_LC_COUNT }; /* of a branch; its note: block where the sides meet + 1 */
struct mg_lanes_opts { bool branches; uint64_t sample; /* one of so many launches is counted */ };

/* Where threads that take the branch at the end of block b are counted: entries of *of, taken off those of b or not.
 * preds: how many blocks lead to each. false: nowhere. */
static inline bool mg_lanes_taken(const struct mg_site_block *blocks, const uint32_t *preds, uint32_t b, uint32_t *of, bool *off)
{
    const struct mg_site_block *k = &blocks[b];
    if (k->n_succs != 2) return false;
    for (int i = 1; i >= 0; i--) { /* the target is the second */
        *of = k->succs[i], *off = !i;
        if (preds[*of] == 1) return true;
    }
    return false;
}
uint32_t *mg_lanes_preds(const struct mg_site_block *blocks, uint32_t n); /* malloc'd */

void mg_lanes_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);

#endif
