/* The trace of one process, analysed by tools whose result is made of it (tool/of_trace.h) while the process writes it.
 * What is analysed leaves the disk, if nobody else wants it. */
#ifndef MG_CLI_RUN_FOLLOW_H
#define MG_CLI_RUN_FOLLOW_H

#include <signal.h>

#include "cli/opt.h"
#include "store/store.h"
#include "tool/tool.h"

struct mg_follow_of {
    const char *dir; /* the profile */
    uint64_t run;
    const struct mg_opt_list *tools;
    bool frees;                            /* nobody else wants the records */
    const volatile sig_atomic_t *given_up; /* set: by the user */
};
struct mg_follow;
/* A tool of that kind by its -t; NULL: it is none. */
const struct mg_tool *mg_follow_tool(const char *given);
/* A file that another margay run follows, or without a head yet: MG_ERR_NOT_FOUND. */
enum mg_err mg_follow_open(const char *path, uint32_t pid, const struct mg_follow_of *of, struct mg_follow **out,
                           struct mg_diag *d) MG_MUST_CHECK;
void mg_follow_close(struct mg_follow *f);
const char *mg_follow_path(const struct mg_follow *f);
uint32_t mg_follow_pid(const struct mg_follow *f);
/* What came since; ended: the process writes no more. */
enum mg_err mg_follow_go(struct mg_follow *f, bool ended, struct mg_diag *d) MG_MUST_CHECK;
/* Behind the last step: the results go to the process' database. */
enum mg_err mg_follow_store(struct mg_follow *f, const struct mg_recording *p, const char *db,
                            struct mg_diag *d) MG_MUST_CHECK;
/* After an error: false where the file is whole; else it is analysed no further, and the results are of what was. */
bool mg_follow_stop(struct mg_follow *f);

#endif
