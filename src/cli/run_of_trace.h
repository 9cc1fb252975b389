/* Tools of margay run whose result is made of the records of tool trace (tool/of_trace.h). */
#ifndef MG_CLI_RUN_OF_TRACE_H
#define MG_CLI_RUN_OF_TRACE_H

#include "cli/opt.h"
#include "store/store.h"

/* Where such tools are among these: puts tool trace beside them, if it is not. Was it? */
bool mg_run_of_trace(struct mg_opt_list *tools);

/* A process beside the program that analyses the traces of its processes as they grow (run_follow.h). dir, tools: live
 * until the end. NULL: no such tool is among them, or it cannot be started, which was said. */
struct mg_analyst;
struct mg_analyst *mg_analyst_start(const char *dir, uint64_t run, const struct mg_opt_list *tools, bool keeps);
/* The program has ended: waits until what it left is analysed, each result in its process' profile, and its traces are
 * taken away unless they are to be kept or hold other records. all: those of other launchers of the run, too, that
 * nobody has analysed. */
void mg_analyst_finish(struct mg_analyst *a, bool all);
void mg_analyst_free(struct mg_analyst *a); /* NULL is allowed */

#endif
