/* The analysis over several processes: each takes every launch and its own share of memory's pages (mg_comm_opts.rank,
 * ranks); what it found in that is its part, as bytes, which one of them adds to its own. */
#ifndef MG_STUDY_COMM_PART_H
#define MG_STUDY_COMM_PART_H

#include "base/buf.h"
#include "study/comm.h"

/* The same number for all parts of an analysis, behind the last launch. */
uint64_t mg_comm_part_of(const struct mg_comm *c);
/* In place of mg_comm_finish. */
void mg_comm_part_print(struct mg_comm *c, struct mg_buf *out);
/* Before mg_comm_finish. An error: the bytes are no part of an analysis of the same launches; c is unchanged. */
enum mg_err mg_comm_part_add(struct mg_comm *c, const void *bytes, size_t n, struct mg_diag *d) MG_MUST_CHECK;

#endif
