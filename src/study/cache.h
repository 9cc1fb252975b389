/* A model of a GPU's caches over a trace (facts of public simulators; docs/studies/cache.md has every assumption).
 *
 *   accesses of a launch ── by SM, in several orders ── L1 of the SM ── what misses ── L2
 *
 * Requests, sectors and first touches do not depend on the order. What hits does: each figure has the least and the
 * most over the orders and over stores that do or do not make room for their line in L1. */
#ifndef MG_STUDY_CACHE_H
#define MG_STUDY_CACHE_H

#include "base/json.h"
#include "study/comm_feed.h"
#include "study/dram.h"

enum { MG_CACHE_SIZES = 32 /* from 4 KiB on, two for each doubling */, MG_CACHE_MOST_SEEDS = 64 };
#define MG_CACHE_NO_ALLOCATION UINT64_MAX
uint64_t mg_cache_size(uint32_t ix);

struct mg_cache_opts {
    size_t size;
    uint64_t l1_bytes; /* of an SM, with what is shared memory */
    uint64_t l2_bytes;
    uint64_t interleavings, seed; /* of the warps of a multiprocessor, at random: from so many seeds, the first one */
    /* What the buffer is called that an instruction accesses; NULL: not known. NULL: nobody knows. place: what of that
     * an instruction's first access tells already; memory of no allocation is told apart by it. buffer: asked when all
     * is over, with kernel, function and ptx_line of s alone. */
    const char *(*place)(void *buffers, const struct mg_access_site *s);
    const char *(*buffer)(void *buffers, const struct mg_access_site *s);
    void *buffers;
    uint64_t first, end; /* launches from first up to end - 1; end 0: all */
    mg_dram_fn *memory;  /* what misses L2, of all of l2_bytes, and what it writes back; NULL: nobody asks */
    void *user;
};
struct mg_cache_span {
    uint64_t least, most;
};
struct mg_cache_counts {
    uint64_t load_requests, store_requests, atomic_requests; /* of warps, one for each access of lanes */
    uint64_t load_sectors, store_sectors, atomic_sectors;    /* of 32 bytes, once a request */
    uint64_t first_sectors;       /* read or written for the first time in the launch by its SM */
    struct mg_cache_span l1_hits; /* sectors of loads */
};
struct mg_cache_kernel {
    char *name;
    uint64_t launches;
    struct mg_cache_counts counts;
    struct mg_cache_span sizes[MG_CACHE_SIZES]; /* sectors of loads that an L1 of this size would hit */
};
struct mg_cache_part {                /* what a line of the source, or a buffer, has of all this */
    uint64_t requests[3], sectors[3]; /* by enum mg_access_kind: loads, stores, atomics */
    /* Sectors of loads that look into L1: there, touched for the first time in the launch by the multiprocessor, gone
     * for want of room. */
    struct mg_cache_span l1_hits, l1_first, l1_capacity;
    uint64_t l2_sectors, l2_first;             /* as traced; l2_first: of all launches */
    uint64_t l2_guess;                         /* hits, the best guess */
    struct mg_cache_span l2_hits, l2_capacity; /* capacity: touched before, gone for want of room */
};
struct mg_cache_site {                                    /* an instruction */
    char *kernel, *function, *file, *op, *place, *buffer; /* place, buffer: see the options; NULL: not known */
    uint32_t line, ptx_line;
    uint8_t kind;  /* enum mg_access_kind */
    uint64_t hits; /* L1, in the order of the trace, stores make no room */
    struct mg_cache_part part;
};
struct mg_cache_buffer {
    uint64_t number, bytes; /* which allocation of the trace, from 0; MG_CACHE_NO_ALLOCATION: in none */
    char *call, *name;      /* what made it; what it is called, NULL: not known */
    struct mg_cache_part part;
};
struct mg_cache_l2 {
    uint64_t sectors, first, load_sectors, guess, load_guess;
    struct mg_cache_span hits, load_hits;       /* load_hits, load_guess: of load_sectors */
    struct mg_cache_span sizes[MG_CACHE_SIZES]; /* one cache; least: sectors are fetched alone, most: 64 bytes are */
};
struct mg_cache_result { /* owner: the mg_cache */
    struct mg_cache_opts opts;
    MG_VEC(struct mg_cache_kernel) kernels;
    MG_VEC(struct mg_cache_site) sites;
    MG_VEC(struct mg_cache_buffer) buffers; /* that were accessed */
    struct mg_cache_l2 l2;                  /* of three machines: docs/studies/cache.md */
    uint64_t lines;                         /* of 128 bytes: the working set of all launches, as L2 sees it */
    bool knows_sm;
};
struct mg_cache;
struct mg_cache *mg_cache_new(const struct mg_cache_opts *o);
void mg_cache_free(struct mg_cache *c);
enum mg_err mg_cache_feed(struct mg_cache *c, struct mg_trace_reader *r, uint32_t file, struct mg_comm_source *source,
                          struct mg_diag *d) MG_MUST_CHECK;
/* The same step by step, in order; source is zero in front, and finished by steps_end. */
enum mg_err mg_cache_step(struct mg_cache *c, struct mg_accesses *from, const struct mg_trace_step *s,
                          struct mg_comm_source *source, struct mg_diag *d) MG_MUST_CHECK;
void mg_cache_steps_end(const struct mg_accesses *from, struct mg_comm_source *source);
const struct mg_cache_result *mg_cache_finish(struct mg_cache *c);
uint64_t
mg_cache_json_most(const struct mg_cache *c); /* bytes that the result takes as JSON, so far: rather too many */
const char *const *mg_cache_assumptions(void);
void mg_cache_print_json(const struct mg_cache_result *r, const struct mg_comm_source *source, struct mg_json *j);
void mg_cache_print_csv(const struct mg_cache_result *r, struct mg_buf *out); /* instructions and buffers */
void mg_cache_print_text(const struct mg_cache_result *r, const struct mg_comm_source *source, struct mg_buf *out);

#endif
