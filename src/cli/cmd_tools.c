/* margay tools: what `-t` takes. The list is tools.def's; nothing is loaded. */
#include <stdio.h>

#include "cli/cli.h"
#include "tool/tool.h"

static const struct mg_opt_page page = {"tools", "[OPTIONS]", "list the tools and their options", NULL};

int cmd_tools(int argc, char **argv)
{
    bool verbose = false;
    struct mg_buf out = MG_BUF_INIT;
    const struct mg_tool *t;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {MG_OPT_FLAG('v', "verbose", &verbose, "with the options of each"), MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes no operand, not '%s'", argv[0]);
    for (uint32_t i = 0; (t = mg_tool_at(i)); i++) {
        mg_buf_printf(&out, "%-10s %s\n", t->name, t->summary);
        for (const struct mg_tool_opt *o = t->opts; verbose && o && o->key; o++) mg_buf_printf(&out, "    %s=%-14s %s\n", o->key, o->value, o->help);
    }
    status = mg_cli_out(&out);
    mg_buf_release(&out);
    return status;
}
