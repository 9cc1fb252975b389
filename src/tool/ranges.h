/* The live allocations of the program as words of a launch's list (mg_patch_list), in order of their addresses, so that
 * a kernel can search them: `bounds` and the one-liners' `alloc`. They go to the kernel; records come from it. */
#ifndef MG_TOOL_RANGES_H
#define MG_TOOL_RANGES_H

#include "tool/host.h"

enum { MG_RANGE_NONE = UINT32_MAX };
/* Of each allocation its begin and bytes, and its id where `width` is 3 words and not 2. Returns how many there are, or
 * MG_RANGE_NONE: more than `most`, or nobody knows them. */
uint32_t mg_ranges_fill(const struct mg_tool_host *host, uint64_t *words, uint32_t width, uint32_t most);

#endif
