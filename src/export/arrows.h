/* Calls whose work may still come. Work begins later than its call, so an arrow's tail is looked up when its head is
 * met. The last MG_ARROWS calls that may enqueue work are kept. */
#ifndef MG_EXPORT_ARROWS_H
#define MG_EXPORT_ARROWS_H

#include "base/map.h"
#include "span/span.h"

#define MG_ARROWS (1u << 17)

struct mg_arrow_call {
    uint64_t key; /* 0: free */
    uint64_t begin_ns, end_ns, correlation;
    const char *name;
    uint32_t track, stack;
    int32_t result;
    uint8_t class_;
    uint32_t n_work; /* pieces that came */
    uint64_t flow;   /* the format's own */
};
struct mg_arrows {
    struct mg_arrow_call *calls; /* a ring */
    uint32_t next;
    struct mg_map at; /* key -> index */
};
void mg_arrows_release(struct mg_arrows *a);
/* Keeps a call. True: it may enqueue work; *gone: the call whose place it took, key 0: none. */
bool mg_arrows_add(struct mg_arrows *a, uint32_t process, const struct mg_span *call, uint32_t track,
                   struct mg_arrow_call *gone);
/* The call that enqueued this work; NULL: not kept. */
struct mg_arrow_call *mg_arrows_call(struct mg_arrows *a, uint32_t process, const struct mg_span *work);
/* Takes the oldest call out; false: there is none. */
bool mg_arrows_next(struct mg_arrows *a, struct mg_arrow_call *out);

#endif
