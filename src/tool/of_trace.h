/* Tools whose result is an analysis of what tool trace records: communication, cache. They instrument nothing: margay
 * run puts tool trace beside them, analyses its records when the program has ended (cli/run_of_trace.c), and leaves
 * the result under tools.<name>. Here are their options, and what a report shows of the result. */
#ifndef MG_TOOL_OF_TRACE_H
#define MG_TOOL_OF_TRACE_H

#include "base/json_read.h"
#include "view/result.h"

struct mg_communication_conf {
    uint32_t entity, match; /* enum mg_comm_entity, mg_comm_match */
};
struct mg_cache_conf {
    uint64_t l1_bytes, l2_bytes, interleavings, seed;
};

/* The value that the tool left under a key, of the ix-th process; NULL: there is none. */
static inline const struct mg_jval *mg_left_value(const struct mg_tool_result *r, struct mg_arena *a, const char *key,
                                                  uint32_t ix)
{
    const char *text = r->left ? r->left(r->from, key, ix) : NULL;
    return text ? mg_jval_parse(a, text, __builtin_strlen(text)) : NULL;
}

#endif
