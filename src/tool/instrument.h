/* Runs tools over the twin of a kernel. */
#ifndef MG_TOOL_INSTRUMENT_H
#define MG_TOOL_INSTRUMENT_H

#include "patch/layout.h"
#include "tool/tool.h"

#define MG_DUMP_PLAN "plan" /* for mg_pass_opts.dump: prints how blocks are counted, as comments of PTX */

struct mg_tool_use {
    const struct mg_tool *tool;
    const void *conf;
};
/* Runs all tools over the twin, each a pass that is verified and dumped like any other. A tool that
 * fails leaves the kernel to the others: reason in its region. Error: none of them stands, or the
 * module is broken. The layout is the caller's, to be released in any case. */
enum mg_err mg_tools_instrument(const struct mg_tool_use *uses, uint32_t n, const struct mg_sites *sites,
                                struct mg_twin *twin, const struct mg_tools_opts *o, struct mg_layout *layout,
                                struct mg_diag *d) MG_MUST_CHECK;

#endif
