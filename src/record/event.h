/* Events: begin and end of something that a kernel does, recorded in a frame (frame.h) by the lanes that come by
 * together, then matched thread by thread, on the host. Used by the tool `events`, which looks for the markers of
 * include/margay/event.h, and by `expr`, whose one-liners and probes in C say where.
 *
 *   analyze     mg_events_reserve ── a frame
 *   instrument  mg_event_write    ── a record; a site and two tables for each name that is new
 *   read        mg_events_read    ── records are matched: entries of the tables
 *   profile     mg_events_profile ── tables and JSON
 *
 * A site of an event has its name as `op`; its tables are filled by the host alone. */
#ifndef MG_RECORD_EVENT_H
#define MG_RECORD_EVENT_H

#include "patch/launch.h"
#include "record/frame.h"
#include "view/result.h"

enum {
    MG_EVENTS_MOST = 256 /* names in a kernel */,
    MG_EVENT_RECORDS = 1 << 14,
    MG_EVENT_MOST_RECORDS = 1 << 20,
    MG_EVENT_MOST_STAGED = 32 /* of a warp */,
    MG_EVENT_NAME = 64
};

struct mg_events {
    struct mg_patch *p;
    uint32_t records, staged, n;
    bool global; /* records have %globaltimer, one clock of all multiprocessors, in place of %clock64 */
    const char *names[MG_EVENTS_MOST];
    struct mg_frame_code frame;
}; /* while one kernel is instrumented */
void mg_events_reserve(struct mg_patch *p, uint32_t records);
/* node: of the program's, whose place is the event's when its name is new; 0: none. */
void mg_event_write(struct mg_events *e, struct mg_code_at *at, const char *name, bool end, mg_id node);
void mg_events_end(struct mg_events *e); /* behind all of them */

/* ---- matching --------------------------------------------------------------------------------------------- */

struct mg_event_sums {
    uint64_t groups;               /* times that lanes came to its beginning together */
    uint64_t threads;              /* threads that began it */
    uint64_t inclusive, exclusive; /* cycles (or ns) from begin to end, summed over threads; without events inside */
    uint64_t stray;                /* threads that came to an end without a begin */
    uint64_t open;                 /* threads that began it and never ended it */
};
struct mg_event_row {
    uint32_t event, warp, sm;
    uint64_t cta;
    struct mg_event_sums s;
};
/* The site of a record: event number and which end; UINT32_MAX: of none. */
static inline uint32_t mg_event_site(uint32_t event, bool end)
{
    return (event + 1) << 1 | end;
}
static inline uint32_t mg_event_of(uint32_t site)
{
    return site >> 1 && site >> 1 <= MG_EVENTS_MOST ? (site >> 1) - 1 : UINT32_MAX;
}
struct mg_event_record {
    uint64_t clock, where /* CTA << 5 | warp */;
    uint32_t sm, mask, site;
    uint32_t order; /* of records of a warp at one time: as mg_frame_read numbers them */
};
struct mg_event_pair { /* a begin and an end, of the lanes that came to both together */
    const struct mg_event_record *begin, *end;
    uint32_t lanes, depth; /* depth: events around it */
};
/* Calls row for each warp and event that it has, pair (NULL: not wanted) for each begin that was ended, by warp, in the
 * order of their begins, the outer ones first. Records of one warp are taken in the order of their clocks. */
struct mg_event_sinks {
    void (*row)(void *user, const struct mg_event_row *row);
    void (*pair)(void *user, const struct mg_event_pair *pair);
    void *user;
};
void mg_events_match(const struct mg_event_record *r, uint64_t n, const struct mg_event_sinks *to);

/* Are pairs of the launch on the time line (mg_inside), if it records any? */
struct mg_region;
bool mg_events_are_inside(const struct mg_region *g);

/* ---- in a tool -------------------------------------------------------------------------------------------- */

/* Matches what the launch has written since the list was read last, into the tables; while it runs: into JSON,
 * which the caller frees. */
char *mg_events_read(const struct mg_tool_launch *l, const struct mg_tool_list *list);
/* Tables "events", "events_sms", "events_warps" and JSON members of an open object. False: no kernel has events. */
bool mg_events_profile(const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j);

#endif
