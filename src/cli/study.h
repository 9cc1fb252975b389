/* The studies of `margay study`: one function each in study_<name>.c, listed in cmd_study.c. argv[0] is the study's
 * name. */
#ifndef MG_CLI_STUDY_H
#define MG_CLI_STUDY_H

#include "base/diag.h"

int study_communication(int argc, char **argv);
int study_subset(int argc, char **argv);
int study_ctas(int argc, char **argv);
int study_predict(int argc, char **argv);
int study_cache(int argc, char **argv);
int study_overview(int argc, char **argv);

/* The trace file of a process; of a run of one process none has to be named (0). */
struct mg_trace_reader;
struct mg_diag;
enum mg_err study_find_file(const struct mg_trace_reader *r, uint64_t process, uint32_t *file, struct mg_diag *d);

#endif
