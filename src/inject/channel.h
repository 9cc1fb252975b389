/* Channels inside inject: what channel.c (launches, memory, ends) and channel_flow.c (threads that carry and read
 * pages) share. */
#ifndef MG_INJECT_CHANNEL_H
#define MG_INJECT_CHANNEL_H

#include "inject/channels.h"
#include "record/channel.h"

struct mg_chan_piece { /* of a page */
    struct mg_chan *chan;
    uint32_t ring, number;     /* which of the ring's pages */
    const uint8_t *at;         /* the page */
    uint32_t to;               /* bytes of it that are there */
    bool last;                 /* no more comes of it now, nor of pages before it */
    uint32_t page;             /* to give back when it is read; UINT32_MAX: none */
    struct mg_chan_copy *copy; /* to let go then */
};
struct mg_chan_reading {               /* of a ring, by who reads its share */
    uint32_t number, from;             /* what comes next */
    uint32_t left, left_from;          /* a page that others went before, and where its rest begins */
    MG_VEC(struct mg_chan_piece) held; /* pages behind one that is still out, in order */
    uint64_t read;                     /* atomic: number and from, of who looks how far it is */
};
struct mg_chan {
    struct mg_chan *next;
    const struct mg_channel_io *io;
    void *where;
    uint32_t use; /* of the session */
    uint32_t n_pages, n_rings, queue;
    uint64_t control, pool;         /* in the device's memory */
    uint8_t *mirror;                /* the pool as the host has it */
    volatile uint64_t *free, *done; /* the queues */
    uint32_t n_given, n_done;       /* entries of the queues: n_given atomic, n_done the carrier's */
    uint32_t n_fresh; /* pages that were ever given: where the host has the same memory, more only when those are not
                         enough */
    uint32_t seen;
    uint64_t seen_ns; /* n_given when that was looked at last, and since when it is */
    struct {
        uint32_t at;
        bool back;
    } * pages; /* entry of the free queue that last gave it; has it come back? */
    struct mg_chan_reading *rings;
    pthread_mutex_t carrying; /* held while the carrier is at it; before mg_chans.lock */
    /* the carrier's */
    struct {
        uint32_t number, to;
    } * told; /* by ring: what was read of the page that it has */
    uint64_t dropped;
    uint64_t *until; /* by ring: how far it has to be read, as `read` has it (channel_mark.c) */
    /* under mg_chans.lock */
    uint32_t active;  /* launches */
    uint32_t nodes;   /* of them what graphs hold, which run now and then */
    uint64_t idle_ns; /* when the last one ended */
    bool dirty, wanted, closing, gone, none /* there was no memory for it */;
};

struct mg_chan_sums {
    uint64_t bytes, pages, dropped, lost, damaged, late, first_ns, last_ns /* when pages were read */;
    bool any;
};
struct mg_chans {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct mg_chan *first; /* only ever added to */
    uint32_t n_readers,
        n_shares;      /* threads; parts of the rings, each read by one of them at a time: the workers of tools */
    uint32_t n_pieces; /* not read yet; atomic */
    bool ending;       /* launches that nobody will end keep no channel any more */
    bool jumped;       /* atomic: pages of a ring were read before one in front of them */
    struct mg_chan_sums sums[MG_MAX_USES];
};
extern struct mg_chans mg_chans;

const struct mg_stream_launch *mg_chan_launch(const struct mg_stream *s, uint32_t number);
uint64_t mg_chan_patience(void);                     /* as the user wants it */
void mg_chan_give(struct mg_chan *c, uint32_t page); /* to the device */
void mg_chan_give_fresh(struct mg_chan *c, uint32_t n);
bool mg_chan_start(void); /* the threads; under the lock */

/* ---- the carrier's ---------------------------------------------------------------------------------------- */

/* The page that a ring fills; UINT32_MAX: none. A full one comes through the queue, and may be another ring's by now.
 */
static inline uint32_t mg_chan_page_of(const struct mg_channel_ring *r)
{
    return (uint32_t)r->now < MG_CHANNEL_ROOM ? (uint32_t)(r->now >> 32) : UINT32_MAX;
}
static inline uint64_t mg_chan_place(uint32_t number, uint32_t from)
{
    return (uint64_t)number << 32 | from;
}
/* A copy of a page's beginning to the reader. fetched: the host's copy of the page has it; last: no more comes of it
 * now, nor of pages before it. */
bool mg_chan_tell_page(struct mg_chan *c, uint32_t page, uint32_t to, bool fetched, bool last);
void mg_chan_mark(void);     /* channel_mark.c: now and then */
bool mg_chan_has_mark(void); /* one is under way */

#endif
