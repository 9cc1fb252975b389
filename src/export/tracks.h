/* Where spans are drawn. Spans of one track nest: what would cross another span gets a further row. */
#ifndef MG_EXPORT_TRACKS_H
#define MG_EXPORT_TRACKS_H

#include "base/map.h"
#include "base/vec.h"
#include "span/span.h"

enum mg_track_kind {
    MG_TRACK_THREAD, /* calls, pushed ranges and instants of a thread */
    MG_TRACK_RANGES, /* ranges that begin and end on any thread of a process */
    MG_TRACK_STREAM, /* work of a stream */
    MG_TRACK_WARPS, /* what kernels began and ended on a multiprocessor, whose number is `thread`: one warp at a time */
    MG_TRACK_UNTIMED /* work of a device that has no times, at the time of its call */
};
struct mg_track_key {
    enum mg_track_kind kind;
    uint32_t process; /* index into the processes */
    uint32_t thread, device;
    uint64_t context, stream;
};
struct mg_track {
    struct mg_track_key key;
    uint32_t id, row;      /* row 0 is the first of its key */
    uint32_t next;         /* id of the key's next row, 0: none */
    bool fresh;            /* nobody has seen it before: describe it and clear this */
    bool named;            /* described with a thread's own name */
    uint64_t warp;         /* of MG_TRACK_WARPS: whose spans are open */
    MG_VEC(uint64_t) ends; /* of the spans that are open, the innermost last */
};
struct mg_track_process {
    uint32_t pid;
    int32_t rank;
    uint32_t n_devices;
};
struct mg_tracks {
    MG_VEC(struct mg_track *) at; /* at[0] is none */
    MG_VEC(struct mg_track_process) processes;
    struct mg_map rows, process_of;
};
void mg_tracks_release(struct mg_tracks *t);
/* The track of a span, open for it: spans come by their begins. end_ns: where it will be drawn to end. */
struct mg_track *mg_tracks_find(struct mg_tracks *t, const struct mg_span *p, uint64_t end_ns);
uint32_t mg_tracks_process(struct mg_tracks *t, const struct mg_span *p);

#endif
