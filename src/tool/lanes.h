/* Shared by lanes.c, which counts, and lanes_report.c, which shows. */
#ifndef MG_TOOL_LANES_H
#define MG_TOOL_LANES_H

#include "tool/kit.h"

enum { MG_LANES_WARP = 32, MG_LANES_BINS = MG_LANES_WARP + 1 }; /* cells of a block: warp entries by active lanes; the last one holds lanes */
enum mg_lanes_cell { MG_LC_TAKEN, MG_LC_DIVERGENT, MG_LC_COUNT }; /* of a branch; its note: block where the sides meet + 1 */
struct mg_lanes_opts { bool branches; uint64_t sample; /* one of so many launches is counted */ };

void mg_lanes_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);

#endif
