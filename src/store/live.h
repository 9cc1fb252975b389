/* Launches as they end, for readers in other processes: a ring in a file beside the database, DIR/live-<pid>.ring,
 * shared
 * through the page cache. The writer never waits for a reader and makes one system call only where a reader sleeps.
 *
 *   header   one page: struct mg_live_head
 *   ring     MG_LIVE_ENTRIES entries; entry i of the process' launches is at i % MG_LIVE_ENTRIES
 *   names    kernels: number, length, name; appended, never changed
 *
 * Readers (src/query) read with pread, so a file that is cut off gives an error and no signal. They sleep on `wake`.
 * A reader that is overtaken finds entries with higher sequence numbers, and reads the database instead. */
#ifndef MG_STORE_LIVE_H
#define MG_STORE_LIVE_H

#include "base/compiler.h"

#define MG_LIVE_MAGIC 0x3145564c4947524dull /* "MRGILVE1" */
enum {
    MG_LIVE_ENTRIES = 1 << 15,
    MG_LIVE_HEAD_BYTES = 4096,
    MG_LIVE_NAMES_BYTES = 1 << 20,
};
struct mg_live_head {
    uint64_t magic; /* written last */
    uint32_t pid, entry_bytes;
    uint64_t start_ns;   /* CLOCK_MONOTONIC of the process' first CUDA call: what start_ns of entries is added to */
    uint64_t n;          /* entries written so far */
    uint64_t names_used; /* bytes */
    uint32_t wake;       /* futex: grows when there is something new and somebody sleeps */
    uint32_t sleepers;   /* set by readers before they sleep, cleared by the writer */
    uint32_t closed;     /* the process has ended its recording */
    uint32_t dropped;    /* launches that are not in the ring: memory was out */
};
enum { MG_LIVE_INSTRUMENTED = 1, MG_LIVE_COMPLETE = 2, MG_LIVE_GRAPH = 4 };
struct mg_live_entry {
    uint64_t sequence;                               /* its number plus 1, written last; 0 while it changes */
    uint64_t launch;                                 /* number in the process */
    uint64_t replays;                                /* graph nodes: how many the sums below are of; 1 else */
    uint64_t thread_instructions, warp_instructions; /* UINT64_MAX: not measured */
    uint64_t start_ns, time_ns;                      /* start since head.start_ns; time UINT64_MAX: not measured */
    uint64_t told_ns;                                /* CLOCK_MONOTONIC when it was written */
    uint64_t stream, ctx;
    uint32_t kernel, device, flags, unused;
    uint64_t spare[4];
};
_Static_assert(sizeof(struct mg_live_entry) == 128, "the file's format");
struct mg_live_name {
    uint32_t kernel, bytes;
}; /* then so many bytes, padded to 8 */
static inline uint64_t mg_live_entry_at(uint64_t i)
{
    return MG_LIVE_HEAD_BYTES + i % MG_LIVE_ENTRIES * sizeof(struct mg_live_entry);
}
#define MG_LIVE_NAMES_AT (MG_LIVE_HEAD_BYTES + (uint64_t)MG_LIVE_ENTRIES * sizeof(struct mg_live_entry))
#define MG_LIVE_BYTES    (MG_LIVE_NAMES_AT + MG_LIVE_NAMES_BYTES)

struct mg_live;
struct mg_store_kernel;
struct mg_store_launch;
struct mg_store_done;
/* NULL: there is no room for it; readers then learn of launches from the database. Any thread may call the others. */
struct mg_live *mg_live_open(const char *dir, uint32_t pid, uint64_t start_ns);
void mg_live_kernel(struct mg_live *l, uint32_t id,
                    const struct mg_store_kernel *k); /* again once its blocks are known */
void mg_live_launch(struct mg_live *l, uint64_t id, const struct mg_store_launch *launch);
void mg_live_drop(struct mg_live *l, uint64_t id);
void mg_live_done(struct mg_live *l, uint64_t id, const struct mg_store_done *done);
void mg_live_wake(struct mg_live *l);
void mg_live_close(struct mg_live *l); /* and removes the file; who has it open reads on */
/* Removes the rings of processes that are no more. */
void mg_live_sweep(const char *dir);

#endif
