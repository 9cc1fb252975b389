/* Matching of events: what each lane began and ended, from the records of its warp. Every lane has a stack of its
 * own, since lanes that began together may part before the end. */
#include "record/event.h"

#include <stdlib.h>

#include "base/vec.h"

struct begun {
    uint32_t event;
    uint64_t clock, inner; /* cycles of events inside it */
};
struct lane {
    MG_VEC(struct begun) stack;
};
struct matcher {
    struct lane lanes[32];
    struct mg_event_sums sums[MG_EVENTS_MOST];
    bool seen[MG_EVENTS_MOST];
};

static void end_lane(struct matcher *x, struct lane *l, uint32_t event, uint64_t clock)
{
    uint32_t at = l->stack.n;
    while (at && l->stack.at[at - 1].event != event) at--;
    if (!at) {
        x->sums[event].stray++;
        return;
    }
    for (; l->stack.n > at; l->stack.n--)
        x->sums[l->stack.at[l->stack.n - 1].event].open++; /* inside it, and not ended */
    const struct begun b = l->stack.at[--l->stack.n];
    uint64_t took = clock > b.clock ? clock - b.clock : 0;
    x->sums[event].inclusive += took;
    x->sums[event].exclusive += took > b.inner ? took - b.inner : 0;
    if (l->stack.n) l->stack.at[l->stack.n - 1].inner += took;
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
            end_lane(x, &x->lanes[lane], event, r->clock);
        else
            *mg_vec_push(&x->lanes[lane].stack) = (struct begun){.event = event, .clock = r->clock};
    }
}

static void end_warp(struct matcher *x, const struct mg_event_record *last,
                     void (*fn)(void *user, const struct mg_event_row *row), void *user)
{
    for (uint32_t lane = 0; lane < 32; lane++)
        for (struct lane *l = &x->lanes[lane]; l->stack.n; l->stack.n--)
            x->sums[l->stack.at[l->stack.n - 1].event].open++;
    for (uint32_t e = 0; e < MG_EVENTS_MOST; e++) {
        if (!x->seen[e]) continue;
        fn(user, &(struct mg_event_row){
                     .event = e, .cta = last->where >> 5, .warp = last->where & 31, .sm = last->sm, .s = x->sums[e]});
        x->seen[e] = false;
        x->sums[e] = (struct mg_event_sums){0};
    }
}

static int by_warp(const void *a, const void *b)
{
    const struct mg_event_record *x = *(const struct mg_event_record *const *)a,
                                 *y = *(const struct mg_event_record *const *)b;
    if (x->where != y->where) return x->where < y->where ? -1 : 1;
    if (x->clock != y->clock) return x->clock < y->clock ? -1 : 1;
    return (x > y) - (x < y);
}

void mg_events_match(const struct mg_event_record *r, uint64_t n,
                     void (*fn)(void *user, const struct mg_event_row *row), void *user)
{
    const struct mg_event_record **order = mg_xcalloc(n + 1, sizeof *order);
    struct matcher *x = mg_xcalloc(1, sizeof *x);
    for (uint64_t i = 0; i < n; i++) order[i] = &r[i];
    if (n) qsort(order, n, sizeof *order, by_warp);
    for (uint64_t i = 0; i < n; i++) {
        match_event(x, order[i]);
        if (i + 1 == n || order[i + 1]->where != order[i]->where) end_warp(x, order[i], fn, user);
    }
    for (uint32_t lane = 0; lane < 32; lane++) mg_vec_release(&x->lanes[lane].stack);
    free(x);
    free(order);
}
