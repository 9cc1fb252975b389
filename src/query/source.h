/* One process of a profile directory, while it grows: its database and its ring (store/live.h). */
#ifndef MG_QUERY_SOURCE_H
#define MG_QUERY_SOURCE_H

#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"

struct sqlite3;
struct mg_source_kernel {
    char *name;
    uint32_t *block_insts;
    uint32_t n_blocks;
    bool has_blocks;
};
struct mg_source {
    char *path; /* of the database */
    struct sqlite3 *sql;
    char copy[64]; /* store/files.h: where the database had to be copied to */
    uint32_t pid;
    int ring; /* descriptor, -1: none */
    uint64_t ring_start_ns;
    uint64_t next; /* entry of the ring */
    uint64_t names_read;
    uint64_t behind_until_ns; /* entries were missed: until then the database is searched for them */
    bool ended;               /* the process records no more */
    uint64_t swept_ns;        /* when the database was last read */
    uint64_t seen_ns;         /* when its process was last looked for */
    uint64_t first_untold;    /* launches below it are told, and no graph's */
    struct mg_map told;       /* launch / 64 -> a bit each */
    struct mg_map replays;    /* launch of a graph -> replays told */
    MG_VEC(struct mg_source_kernel) kernels;
    struct mg_map kernel_of; /* its number -> its place */
};
struct mg_source_launch {
    uint64_t id, replays, thread_instructions, warp_instructions, start_ns, time_ns, told_ns, stream, ctx;
    const char *kernel;
    uint32_t device, pid;
    bool instrumented, complete, graph;
};
typedef void (*mg_source_fn)(void *user, const struct mg_source_launch *l);

/* A launcher's record is no source: *out NULL then, *launching tells whether what it started runs still. */
enum mg_err mg_source_open(const char *path, struct mg_source **out, bool *launching, struct mg_diag *d) MG_MUST_CHECK;
void mg_source_free(struct mg_source *s);
/* Tells what is new; how many launches. */
uint32_t mg_source_tell(struct mg_source *s, mg_source_fn fn, void *user);
/* Asks the writer to wake sleepers; false: there is something new already. *word, *value: what to sleep on; NULL:
 * nothing. */
bool mg_source_arm(struct mg_source *s, uint32_t **word, uint32_t *value);
/* Sums of one kernel, by any of its names (base/demangle.h), over the launches that are committed. False: none such. */
struct mg_source_sums {
    uint64_t launches, incomplete, thread_instructions, warp_instructions, time_ns, timed;
    char *name;
    uint32_t n_blocks;
};
bool mg_source_sum(struct mg_source *s, const char *kernel, struct mg_source_sums *sums);

#endif
