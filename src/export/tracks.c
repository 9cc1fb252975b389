#include "export/tracks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void mg_tracks_release(struct mg_tracks *t)
{
    for (uint32_t i = 1; i < t->at.n; i++) {
        mg_vec_release(&t->at.at[i]->ends);
        free(t->at.at[i]);
    }
    mg_vec_release(&t->at);
    mg_vec_release(&t->processes);
    mg_map_release(&t->rows);
    mg_map_release(&t->process_of);
}

uint32_t mg_tracks_process(struct mg_tracks *t, const struct mg_span *p)
{
    uint64_t v, key = (uint64_t)p->process << 32 | (uint32_t)p->rank;
    if (mg_map_get(&t->process_of, key, &v)) return (uint32_t)v;
    mg_map_set(&t->process_of, key, t->processes.n);
    *mg_vec_push(&t->processes) = (struct mg_track_process){.pid = p->process, .rank = p->rank};
    return t->processes.n - 1;
}

static struct mg_track_key key_of(struct mg_tracks *t, const struct mg_span *p)
{
    struct mg_track_key k = {.process = mg_tracks_process(t, p)};
    if (p->kind == MG_SPAN_MARK && p->mark == MG_MARK_STARTED) {
        k.kind = MG_TRACK_RANGES;
    } else if (p->kind == MG_SPAN_CALL || p->kind == MG_SPAN_MARK || p->kind == MG_SPAN_MPI) {
        k.kind = MG_TRACK_THREAD;
        k.thread = p->thread;
    } else if (p->kind == MG_SPAN_INSIDE) {
        k.kind = MG_TRACK_WARPS;
        k.thread = p->sm;
        k.device = p->device;
    } else {
        k.kind = p->source == MG_SOURCE_none ? MG_TRACK_UNTIMED : MG_TRACK_STREAM;
        k.device = p->device;
        k.context = p->context;
        k.stream = p->stream;
    }
    return k;
}

static bool is_same(const struct mg_track_key *a, const struct mg_track_key *b)
{
    return a->kind == b->kind && a->process == b->process && a->thread == b->thread && a->device == b->device &&
           a->context == b->context && a->stream == b->stream;
}

static struct mg_track *add_row(struct mg_tracks *t, const struct mg_track_key *k, uint32_t row)
{
    if (!t->at.n) *mg_vec_push(&t->at) = NULL;
    struct mg_track *r = mg_xcalloc(1, sizeof *r);
    r->key = *k;
    r->id = t->at.n;
    r->row = row;
    r->fresh = true;
    *mg_vec_push(&t->at) = r;
    return r;
}

static struct mg_track *first_row(struct mg_tracks *t, const struct mg_track_key *k)
{
    uint64_t words[] = {(uint64_t)k->kind << 32 | k->process, (uint64_t)k->thread << 32 | k->device, k->context,
                        k->stream};
    uint64_t v, at = mg_hash64(words, sizeof words, 1);
    for (; mg_map_get(&t->rows, at, &v); at++)
        if (is_same(&t->at.at[v]->key, k)) return t->at.at[v];
    struct mg_track *r = add_row(t, k, 0);
    mg_map_set(&t->rows, at, r->id);
    return r;
}

/* May the span lie here? Work of a stream stands side by side, all else may nest. */
static bool has_room(struct mg_track *r, uint64_t begin_ns, uint64_t end_ns, uint64_t warp)
{
    while (r->ends.n && r->ends.at[r->ends.n - 1] <= begin_ns) r->ends.n--;
    if (!r->ends.n) return true;
    return r->key.kind != MG_TRACK_STREAM && r->warp == warp && r->ends.at[r->ends.n - 1] >= end_ns;
}

/* Whose events nest: 0 of all but what a kernel began. */
static uint64_t warp_of(const struct mg_span *p)
{
    uint64_t words[] = {p->launch, p->replay, p->cta << 5 | p->warp};
    return p->kind == MG_SPAN_INSIDE ? mg_hash64(words, sizeof words, 1) : 0;
}

struct mg_track *mg_tracks_find(struct mg_tracks *t, const struct mg_span *p, uint64_t end_ns)
{
    struct mg_track_key k = key_of(t, p);
    struct mg_track *r = first_row(t, &k);
    uint64_t warp = warp_of(p);
    while (!has_room(r, p->begin_ns, end_ns, warp)) {
        if (!r->next) {
            struct mg_track *more = add_row(t, &k, r->row + 1);
            r->next = more->id;
        }
        r = t->at.at[r->next];
    }
    r->warp = warp;
    *mg_vec_push(&r->ends) = end_ns;
    return r;
}
