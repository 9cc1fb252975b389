/* A tool in a shared object of its own. One line behind its struct makes it one:
 *
 *   static const struct mg_tool mine = {...};
 *   MG_TOOL_PLUGIN(mine)
 *
 * `margay run -t ./mine.so[,options]` opens it. Linked into the program or preloaded (LD_PRELOAD) it
 * announces itself instead and runs with its default options whenever the program runs under Margay.
 * It is linked with libmargay-core.so, of which margay opens its own (a tool is some 15 KB then), or holds
 * a copy, libmargay-core.a (-fvisibility=hidden -Wl,--exclude-libs,ALL): for tools in the program or preloaded.
 * The stamp tells the headers and the core that it was built with; another margay refuses it by name. */
#ifndef MG_TOOL_PLUGIN_H
#define MG_TOOL_PLUGIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MG_TOOL_STAMP
#include "margay-stamp.h" /* made by the build */
#endif
#include "tool/tool.h"

#define MG_TOOL_CORE "libmargay-core.so" /* its file and SONAME end with ".", 12 digits of the stamp */

/* Tools that announced themselves: "pid:address of struct mg_tool_plugin,..." */
#define MG_TOOL_HERE "MARGAY_TOOLS_HERE"
struct mg_tool_plugin {
    const char *stamp;
    const struct mg_tool *tool;
};

static inline void mg_tool_announce(const struct mg_tool_plugin *p)
{
    char text[1024], pid[24];
    const char *was = getenv(MG_TOOL_HERE);
    int n = snprintf(pid, sizeof pid, "%ld:", (long)getpid());
    bool ours = was && !strncmp(was, pid, (size_t)n); /* else it is the parent's */
    n = snprintf(text, sizeof text, "%s%s%p", ours ? was : pid, ours ? "," : "", (const void *)p);
    if (n > 0 && n < (int)sizeof text) setenv(MG_TOOL_HERE, text, 1);
}

#define MG_TOOL_PLUGIN(TOOL)                                                                                           \
    __attribute__((visibility("default"))) extern const struct mg_tool *const mg_tool;                                 \
    __attribute__((visibility("default"))) extern const char mg_tool_stamp[];                                          \
    const struct mg_tool *const mg_tool = &(TOOL);                                                                     \
    const char mg_tool_stamp[] = MG_TOOL_STAMP;                                                                        \
    __attribute__((constructor)) static void announce_tool(void)                                                       \
    {                                                                                                                  \
        static const struct mg_tool_plugin here = {mg_tool_stamp, &(TOOL)};                                            \
        mg_tool_announce(&here);                                                                                       \
    }

#endif
