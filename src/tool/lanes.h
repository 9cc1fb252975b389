/* Shared by lanes.c, which counts, and lanes_report.c, which shows.
 *
 * What the block counter tells is not counted again: a block's thread entries less those of warps that were not full
 * are lanes of full warps, and who took a branch follows as in mg_kit_taken. */
#ifndef MG_TOOL_LANES_H
#define MG_TOOL_LANES_H

#include "tool/kit.h"

enum { MG_LANES_WARP = 32, MG_LANES_BINS = MG_LANES_WARP + 1 }; /* cells of a block: warp entries by active lanes; the last one holds lanes, and is filled in by the report */
enum mg_lanes_cell { MG_LC_TAKEN, MG_LC_DIVERGENT, MG_LC_COUNT }; /* of a branch; its note: block where the sides meet + 1 */
struct mg_lanes_opts { bool branches; uint64_t sample; /* one of so many launches is counted */ };

void mg_lanes_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);

#endif
