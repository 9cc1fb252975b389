/* Messages of MPI: which send belongs to which receive, and which call each end is drawn at. MPI keeps the order of
 * messages between two ranks by one communicator and tag, so the n-th that was sent is the n-th that was received in
 * the order in which receives were posted. One pass over the trace counts them: an end without the other gets no arrow.
 */
#ifndef MG_EXPORT_MESSAGES_H
#define MG_EXPORT_MESSAGES_H

#include "base/map.h"
#include "base/vec.h"
#include "span/span.h"

struct mg_message_end { /* at one call: which posted it, completed it, or both */
    bool received, posts, completes;
    bool completed; /* some call did, which need not be this one */
    int32_t peer;   /* -1: no process, or not known */
    int64_t tag;
    uint64_t bytes, communicator;
    uint64_t number; /* of this end in the trace, from 1 */
    uint64_t arrow;  /* the same for both ends, below 2^63; 0: the other end is not on the time line */
    uint32_t next;   /* of the same call; 0: none */
};
struct mg_message_channel {
    uint64_t from_to, communicator, tag, n[2], met[2]; /* sent, received: all; in this pass */
};
struct mg_messages {
    struct mg_map channel_of, of_call; /* hash -> channel; process and call -> its first end */
    MG_VEC(struct mg_message_channel) channels;
    MG_VEC(struct mg_message_end) ends; /* ends[0] heads the free ones */
    MG_VEC(struct mg_message_end) taken;
    uint64_t numbers, arrows, alone; /* alone: ends without the other */
};
/* Counts the messages of a profile. */
enum mg_err mg_messages_init(struct mg_messages *m, const char *dir, struct mg_diag *d) MG_MUST_CHECK;
void mg_messages_release(struct mg_messages *m);
/* What both ends of a message have in common, for each end in order of time; 0: the other end is not on the time line.
 */
uint64_t mg_messages_arrow(struct mg_messages *m, const struct mg_span *end);
/* The same, kept for its calls. */
void mg_messages_add(struct mg_messages *m, uint32_t process, const struct mg_span *end);
/* Moves the ends of a call to m->taken, the last one first; how many. */
uint32_t mg_messages_take(struct mg_messages *m, uint32_t process, uint64_t correlation);

#endif
