/* The whole analysis of a process' trace, with all that is printed of it: for `margay study communication` and the tool
 * communication. */
#ifndef MG_STUDY_COMM_WHOLE_H
#define MG_STUDY_COMM_WHOLE_H

#include "study/comm_print.h"

#define MG_COMM_H200                                                                                                   \
    {                                                                                                                  \
        .memory_gbs = 4800, .link_gbs = 450, .latency_us = 5                                                           \
    } /* on NVLink */
struct mg_comm_whole {
    struct mg_comm *comm;
    struct mg_comm_source source;
    struct mg_comm_metrics metrics;
    struct mg_comm_advice advice;
    mg_comm_scales scales;
    struct mg_comm_study study; /* of all that */
};
/* Zero in front: launches and host events of the trace; then, once other ranks' parts were added, all that follows from
 * them. To be released after an error, too. */
enum mg_err mg_comm_whole_feed(struct mg_comm_whole *w, struct mg_trace_reader *r, uint32_t file,
                               const struct mg_comm_opts *o, struct mg_diag *d) MG_MUST_CHECK;
void mg_comm_whole_finish(struct mg_comm_whole *w, const struct mg_comm_link *link);
void mg_comm_whole_release(struct mg_comm_whole *w);

#endif
