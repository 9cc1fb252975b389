/* Tools of margay run whose result is made of the records of tool trace (tool/of_trace.h). */
#ifndef MG_CLI_RUN_OF_TRACE_H
#define MG_CLI_RUN_OF_TRACE_H

#include "cli/opt.h"
#include "store/store.h"

/* Such tools are among these: puts tool trace beside them, if it is not. *keeps: it was. */
bool mg_run_of_trace(struct mg_opt_list *tools, bool *keeps);
/* When the program has ended: analyses the traces of the run's processes, each result into its process' profile, and
 * takes the traces away unless they are to be kept or hold other records. True: there are results. */
bool mg_run_analyse(const struct mg_recording *p, const struct mg_opt_list *tools, bool keeps);

#endif
