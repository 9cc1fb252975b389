/* Shared by lanes.c, which counts, and tool/lanes/report.c, which shows.
 *
 * Cells of a block hold lanes: those of its entries with so many active lanes, so that warp entries are the cell's
 * share. What the block counter tells is not counted again: a block's thread entries less those of warps that were not
 * full are lanes of full warps, and who took a branch follows as in mg_kit_taken. */
#ifndef MG_TOOL_LANES_H
#define MG_TOOL_LANES_H

#include "view/kit.h"

enum { MG_LANES_WARP = 32, MG_LANES_BINS = MG_LANES_WARP + 1 }; /* cells of a block, by active lanes */
/* Note of a block's site: MG_LN_KINDS * block + kind. */
enum mg_lanes_note {
    MG_LN_OWN,     /* its cells are all there is to it */
    MG_LN_SAME,    /* no cells: entered as that block is */
    MG_LN_FOLLOWS, /* cells: what is to be added to that block's, modulo 2^64 */
    MG_LN_TELLS, /* twice as many cells: the second half, entries of warps that the branch at the end of that block has
                    just split */
    MG_LN_KINDS
};
/* Sites of instructions under a guard have MG_LANES_BINS cells, those of branches MG_LC_COUNT. */
enum mg_lanes_cell {
    MG_LC_TAKEN,
    MG_LC_DIVERGENT /* where no block tells */,
    MG_LC_COUNT
}; /* of a branch; its note: block where the sides meet + 1 */
struct mg_lanes_opts {
    bool branches, guards;
    uint64_t sample; /* one of so many launches is counted */
};

void mg_lanes_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);

#endif
