/* Matching of events: what each lane began and ended, from the records of its warp. Every lane has a stack of its
 * own, since lanes that began together may part before the end. */
#include "record/event.h"

#include <stdlib.h>

#include "base/vec.h"

struct begun {
    uint32_t event;
    uint64_t inner; /* cycles of events inside it */
    const struct mg_event_record *at;
};
struct lane {
    MG_VEC(struct begun) stack;
};
struct matcher {
    struct lane lanes[32];
    struct mg_event_sums sums[MG_EVENTS_MOST];
    bool seen[MG_EVENTS_MOST];
    const struct mg_event_sinks *to;
    MG_VEC(struct mg_event_pair) pairs; /* of the warp */
};

/* Lanes that began together and end together are one pair. Those of this end stand last. */
static void add_pair(struct matcher *x, const struct mg_event_record *begin, const struct mg_event_record *end,
                     uint32_t lane, uint32_t depth)
{
    for (uint32_t i = x->pairs.n; i-- > 0 && x->pairs.at[i].end == end;) {
        if (x->pairs.at[i].begin != begin || x->pairs.at[i].depth != depth) continue;
        x->pairs.at[i].lanes |= 1u << lane;
        return;
    }
    *mg_vec_push(&x->pairs) = (struct mg_event_pair){begin, end, 1u << lane, depth};
}

static void end_lane(struct matcher *x, uint32_t lane, uint32_t event, const struct mg_event_record *r)
{
    struct lane *l = &x->lanes[lane];
    uint32_t at = l->stack.n;
    while (at && l->stack.at[at - 1].event != event) at--;
    if (!at) {
        x->sums[event].stray++;
        return;
    }
    for (; l->stack.n > at; l->stack.n--)
        x->sums[l->stack.at[l->stack.n - 1].event].open++; /* inside it, and not ended */
    const struct begun b = l->stack.at[--l->stack.n];
    uint64_t took = r->clock > b.at->clock ? r->clock - b.at->clock : 0;
    x->sums[event].inclusive += took;
    x->sums[event].exclusive += took > b.inner ? took - b.inner : 0;
    if (l->stack.n) l->stack.at[l->stack.n - 1].inner += took;
    if (x->to->pair) add_pair(x, b.at, r, lane, l->stack.n);
}

static void match_event(struct matcher *x, const struct mg_event_record *r)
{
    uint32_t event = mg_event_of(r->site), mask = r->mask;
    if (event == UINT32_MAX) return;
    x->seen[event] = true;
    if (!(r->site & 1)) {
        x->sums[event].groups++;
        x->sums[event].threads += (uint64_t)__builtin_popcount(mask);
    }
    for (uint32_t lane = 0; lane < 32; lane++) {
        if (!(mask >> lane & 1)) continue;
        if (r->site & 1)
            end_lane(x, lane, event, r);
        else
            *mg_vec_push(&x->lanes[lane].stack) = (struct begun){.event = event, .at = r};
    }
}

static int by_begin(const void *a, const void *b)
{
    const struct mg_event_pair *x = a, *y = b;
    if (x->begin->clock != y->begin->clock) return x->begin->clock < y->begin->clock ? -1 : 1;
    if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
    return x->lanes < y->lanes ? -1 : x->lanes > y->lanes;
}

static void end_warp(struct matcher *x, const struct mg_event_record *last)
{
    for (uint32_t lane = 0; lane < 32; lane++)
        for (struct lane *l = &x->lanes[lane]; l->stack.n; l->stack.n--)
            x->sums[l->stack.at[l->stack.n - 1].event].open++;
    for (uint32_t e = 0; e < MG_EVENTS_MOST; e++) {
        if (!x->seen[e]) continue;
        const struct mg_event_row row = {
            .event = e, .cta = last->where >> 5, .warp = last->where & 31, .sm = last->sm, .s = x->sums[e]};
        x->to->row(x->to->user, &row);
        x->seen[e] = false;
        x->sums[e] = (struct mg_event_sums){0};
    }
    if (x->pairs.n) qsort(x->pairs.at, x->pairs.n, sizeof *x->pairs.at, by_begin);
    for (uint32_t i = 0; i < x->pairs.n; i++) x->to->pair(x->to->user, &x->pairs.at[i]);
    x->pairs.n = 0;
}

static int by_warp(const void *a, const void *b)
{
    const struct mg_event_record *x = *(const struct mg_event_record *const *)a,
                                 *y = *(const struct mg_event_record *const *)b;
    if (x->where != y->where) return x->where < y->where ? -1 : 1;
    if (x->clock != y->clock) return x->clock < y->clock ? -1 : 1;
    return x->order != y->order ? (x->order < y->order ? -1 : 1) : (x > y) - (x < y);
}

void mg_events_match(const struct mg_event_record *r, uint64_t n, const struct mg_event_sinks *to)
{
    const struct mg_event_record **order = mg_xcalloc(n + 1, sizeof *order);
    struct matcher *x = mg_xcalloc(1, sizeof *x);
    x->to = to;
    for (uint64_t i = 0; i < n; i++) order[i] = &r[i];
    if (n) qsort(order, n, sizeof *order, by_warp);
    for (uint64_t i = 0; i < n; i++) {
        match_event(x, order[i]);
        if (i + 1 == n || order[i + 1]->where != order[i]->where) end_warp(x, order[i]);
    }
    for (uint32_t lane = 0; lane < 32; lane++) mg_vec_release(&x->lanes[lane].stack);
    mg_vec_release(&x->pairs);
    free(x);
    free(order);
}
