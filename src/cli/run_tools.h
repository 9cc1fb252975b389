/* run_tools.c: for cmd_run.c. */
#ifndef MG_CLI_RUN_TOOLS_H
#define MG_CLI_RUN_TOOLS_H

#include "base/buf.h"
#include "base/diag.h"
#include "cli/opt.h"

/* 0, or an exit status after a message. otherwise: the tool when none is given. native: nothing is
 * instrumented. out: MARGAY_TOOLS, to be freed. */
int mg_run_tools(const struct mg_opt_page *page, const struct mg_opt_list *given, const char *otherwise, bool *native,
                 char **out);
/* One tool, as option gave it: opened, configured, and put behind the list. 0, or an exit status after a message.
 * flags: of the tool, MG_TOOL_NATIVE where it instruments nothing; name: to be freed. */
int mg_run_tool(const struct mg_opt_page *page, const char *option, const char *given, struct mg_buf *list,
                unsigned *flags, char **name);
/* False: this -t is a shared object, and its code ended the process it was tried in; why says how. */
bool mg_run_tool_opens(const char *given, char why[100]);
/* run_weights.c: in the options of blocks, a profile after weights= becomes a file of its block counts. */
enum mg_err mg_run_weights(char **args, struct mg_diag *d) MG_MUST_CHECK;

/* Puts the tool expr with these one-liners and a probe in C (NULL: none) behind the tools. 0, or an exit status after
 * messages. */
int mg_run_expr(const struct mg_opt_page *page, const char *probe, const struct mg_opt_list *one_liners,
                struct mg_opt_list *tools);

/* Puts the tools of the rules in the place of `-t advise` (report/advice). */
void mg_run_expand(struct mg_opt_list *tools);

#endif
