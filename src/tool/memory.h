/* Shared by memory.c, which counts, and memory_report.c, which shows. */
#ifndef MG_TOOL_MEMORY_H
#define MG_TOOL_MEMORY_H

#include "tool/kit.h"

enum mg_memory_level { MG_MEMORY_FULL, MG_MEMORY_BYTES };
struct mg_memory_opts { uint32_t level; };

/* Cells of a site, level=full; level=bytes has the first alone, where the instruction is guarded. */
enum mg_memory_cell {
    MG_MC_ACCESSES,  /* of a guarded instruction; else the block's thread entries */
    MG_MC_SECTORS,   /* of requests that are neither MG_MC_SAME nor MG_MC_ALIGNED */
    MG_MC_LINES,
    MG_MC_CONFLICTS, /* shared memory: passes beyond the first of each group */
    /* Requests by the pattern of their addresses; one of them each. */
    MG_MC_SAME,      /* all lanes at one address */
    MG_MC_ALIGNED,   /* 32 lanes in order, from a multiple of 128 bytes on */
    MG_MC_UNIT,      /* lanes in order, otherwise */
    MG_MC_STRIDE_32, /* one stride between 32 lanes, up to 32 bytes */
    MG_MC_STRIDE_128,
    MG_MC_STRIDE_MORE,
    MG_MC_IRREGULAR, /* anything else, and strides of less than 32 lanes */
    MG_MC_COUNT
};
enum { MG_MC_PATTERNS = MG_MC_COUNT - MG_MC_SAME };

/* A site's note: what the instruction does. */
struct mg_memory_note { uint32_t bytes /* of a lane */, vec, space; bool reads, writes, atomic, guarded, full; };
static inline uint32_t mg_memory_pack(const struct mg_memory_note *n)
{
    return n->bytes | n->vec << 8 | n->space << 12 | (uint32_t)n->reads << 16 | (uint32_t)n->writes << 17 | (uint32_t)n->atomic << 18 | (uint32_t)n->guarded << 19 | (uint32_t)n->full << 20;
}
static inline struct mg_memory_note mg_memory_unpack(uint32_t v)
{
    return (struct mg_memory_note){.bytes = v & 255, .vec = v >> 8 & 15, .space = v >> 12 & 15, .reads = v >> 16 & 1, .writes = v >> 17 & 1, .atomic = v >> 18 & 1, .guarded = v >> 19 & 1, .full = v >> 20 & 1};
}

void mg_memory_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);

#endif
