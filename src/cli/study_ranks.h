/* margay study communication as several processes, started by any launcher that numbers them (base/rank.h). */
#ifndef MG_CLI_STUDY_RANKS_H
#define MG_CLI_STUDY_RANKS_H

#include "base/diag.h"

struct mg_rank;
struct mg_comm;
/* Behind the last launch. Rank 0 adds what the others found; these hand it over, by a file beside the trace. */
enum mg_err study_join_ranks(const char *trace, const struct mg_rank *rank, struct mg_comm *c,
                             struct mg_diag *d) MG_MUST_CHECK;

#endif
