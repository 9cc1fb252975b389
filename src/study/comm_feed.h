/* From a process' trace into the analysis of communication. */
#ifndef MG_STUDY_COMM_FEED_H
#define MG_STUDY_COMM_FEED_H

#include "study/comm.h"
#include "trace/access.h"

struct mg_comm_source {          /* what the trace is of, and what it lacks */
    uint64_t launches, untraced; /* untraced: ran native, what they wrote is not known */
    uint64_t graph_copies;       /* copies and memsets that a graph recorded and whose runs are not in the trace */
    uint64_t array_copies;       /* with an array on a side */
    uint64_t host_bytes;         /* mapped or managed memory: the host may write it unseen */
    uint64_t damaged;
    bool is_partial;      /* accesses were dropped or left out */
    uint64_t unseen;      /* lanes that ran instructions which reach global memory where nobody looks: textures ... */
    char unseen_ops[240]; /* which: ", " between them, ", ..." where there are more */
};
/* Is it an access of such an instruction? Counted then. */
bool mg_comm_note_unseen(struct mg_comm_source *s, const struct mg_trace_access *x);
struct mg_json;
void mg_comm_print_unseen(const struct mg_comm_source *s, struct mg_json *j); /* members of an open object */
/* Launches and host events as they come: each step of `from`, in order; new_ zeroes out, end writes what is left of it.
 */
struct mg_comm_feeder;
struct mg_comm_feeder *mg_comm_feeder_new(struct mg_accesses *from, struct mg_comm *to, struct mg_comm_source *out);
enum mg_err mg_comm_feeder_step(struct mg_comm_feeder *f, const struct mg_trace_step *s,
                                struct mg_diag *d) MG_MUST_CHECK;
void mg_comm_feeder_end(struct mg_comm_feeder *f);
/* The file's launches and host events, in their order. */
enum mg_err mg_comm_feed(struct mg_trace_reader *r, uint32_t file, struct mg_comm *c, struct mg_comm_source *out,
                         struct mg_diag *d) MG_MUST_CHECK;

#endif
