/* The list of tools. */
#include "tool/tool.h"

#include <string.h>

#define TOOL(name, page) extern const struct mg_tool mg_tool_##name;
#include "tool/tools.def"
#undef TOOL

static const struct mg_tool *const tools[] = {
#define TOOL(name, page) &mg_tool_##name,
#include "tool/tools.def"
#undef TOOL
};

static const char *const pages[] = {
#define TOOL(name, page) "docs/" page ".md",
#include "tool/tools.def"
#undef TOOL
};

const char *mg_tool_page(const struct mg_tool *t)
{
    for (size_t i = 0; i < MG_COUNT_OF(tools); i++)
        if (tools[i] == t) return pages[i];
    return NULL;
}

const struct mg_tool *mg_tool_at(uint32_t ix)
{
    return ix < MG_COUNT_OF(tools) ? tools[ix] : NULL;
}

const struct mg_tool *mg_tool_find(const char *name)
{
    for (uint32_t i = 0; i < MG_COUNT_OF(tools); i++)
        if (!strcmp(tools[i]->name, name)) return tools[i];
    return NULL;
}
