/* What `margay run` says at its end of what the library left in the profile as tool "margay". */
#ifndef MG_CLI_RUN_TELL_H
#define MG_CLI_RUN_TELL_H

#include "store/store.h"

/* --verify: one line on what was compared (not when quiet), one on the first difference. True: there is one. */
bool mg_run_tell_verify(const struct mg_recording *p, bool quiet);

/* --stats: where the time went, step by step. */
void mg_run_tell_stats(const struct mg_recording *p);

#endif
