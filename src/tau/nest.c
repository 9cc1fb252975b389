/* See nest.h. */
#include "tau/nest.h"

#include <string.h>

void tau_nested_release(struct tau_nested *b)
{
    mg_vec_release(&b->inside);
}

/* Adds an interval that ends behind all others: what lies inside of it goes, what overlaps it is merged with it. */
static void add_interval(struct tau_intervals *v, struct tau_interval x)
{
    for (; v->n && v->at[v->n - 1].end > x.begin; v->n--) {
        const struct tau_interval *e = &v->at[v->n - 1];
        if (x.begin < e->begin) continue;
        double overlap_us = e->begin_us + e->len_us - x.begin_us;
        if (overlap_us < 0) overlap_us = 0;
        x.covered_us += e->covered_us - overlap_us;
        x.len_us = x.begin_us + x.len_us - e->begin_us;
        x.begin_us = e->begin_us;
        x.begin = e->begin;
    }
    *mg_vec_push(v) = x;
}

/* Two last entries become one: no later interval can overlap one of them alone. */
static void fold_last(struct tau_nested *b)
{
    if (b->inside.n < 2) return;
    struct tau_interval *e = &b->inside.at[b->inside.n - 2], x = e[1];
    if (e->begin < b->fence) return;
    e->end = x.end;
    e->len_us = x.begin_us + x.len_us - e->begin_us;
    e->covered_us += x.covered_us;
    b->inside.n--;
}

static int compare_ends(const void *a, const void *b)
{
    uint64_t x = ((const struct tau_interval *)a)->end, y = ((const struct tau_interval *)b)->end;
    return (x > y) - (x < y);
}

/* The union of what has closed inside live[at]: its own list, and those of younger blocks that are still open. */
static double covered_inside(struct tau_nested *const *live, uint32_t n, uint32_t at)
{
    struct tau_intervals found = {0}, apart = {0};
    for (uint32_t i = at; i < n && live[i]->begin < live[at]->end; i++)
        for (uint32_t k = 0; k < live[i]->inside.n; k++) *mg_vec_push(&found) = live[i]->inside.at[k];
    if (found.n) qsort(found.at, found.n, sizeof *found.at, compare_ends);
    for (uint32_t i = 0; i < found.n; i++) add_interval(&apart, found.at[i]);
    double sum_us = 0;
    for (uint32_t i = 0; i < apart.n; i++) sum_us += apart.at[i].covered_us;
    mg_vec_release(&found);
    mg_vec_release(&apart);
    return sum_us;
}

void tau_nest_close(struct tau_nested *const *live, uint32_t n, uint32_t at, tau_elapsed_fn elapsed, void *user)
{
    struct tau_nested *b = live[at];
    for (uint32_t i = 0; i < n && live[i]->begin < b->end; i++) {
        struct tau_nested *l = live[i];
        if (!l->placed)
            l->begin_us = i ? live[i - 1]->begin_us + elapsed(user, live[i - 1]->begin_event, l->begin_event) : 0;
        l->placed = true;
        if (i > at) l->fence = b->end;
    }
    b->inclusive_us = elapsed(user, b->begin_event, b->end_event);
    b->exclusive_us = b->inclusive_us - covered_inside(live, n, at);
    if (b->exclusive_us < 0) b->exclusive_us = 0; /* children's events are rounded one by one */
    if (!at) return;
    struct tau_nested *parent = live[at - 1];
    parent->children++;
    add_interval(&parent->inside,
                 (struct tau_interval){b->begin, b->end, b->begin_us, b->inclusive_us, b->inclusive_us});
    if (at + 1 == n || live[at + 1]->begin > b->end) fold_last(parent);
}
