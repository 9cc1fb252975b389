/* Tools as the command line names them: "NAME[,options]", NAME one of tools.def or the path of a shared
 * object; several joined by ';', where ';' and '\' inside one are written "\;" and "\\". */
#ifndef MG_TOOL_SPEC_H
#define MG_TOOL_SPEC_H

#include "base/buf.h"
#include "tool/tool.h"

struct mg_tool_spec {
    char *name, *args, *path;
    const struct mg_tool *tool;
    void *library;
}; /* path: NULL for tools.def */
/* Opens a shared object where the name holds a '/' or ends in ".so". Its code stays loaded until closed. */
enum mg_err mg_tool_spec_open(const char *spec, struct mg_tool_spec *out, struct mg_diag *d) MG_MUST_CHECK;
/* A tool by its parts, as a profile records them. */
enum mg_err mg_tool_spec_find(const char *name, const char *path, struct mg_tool_spec *out,
                              struct mg_diag *d) MG_MUST_CHECK;
/* tool.configure with these options, on a GPU (gpu_sm != 0) with the tool's own for a GPU in front. A tool
 * without configure takes none. */
enum mg_err mg_tool_configure(const struct mg_tool *tool, const char *args, uint32_t gpu_sm, void **conf,
                              struct mg_diag *d) MG_MUST_CHECK;
void mg_tool_spec_close(struct mg_tool_spec *t);
/* The next of a joined list as heap text, *at behind it; NULL: out of memory. */
char *mg_tool_spec_next(const char **at);
bool mg_tool_spec_lists(const char *list, const char *name); /* does a joined list name this tool? */
void mg_tool_spec_join(struct mg_buf *list, const char *spec);

#endif
