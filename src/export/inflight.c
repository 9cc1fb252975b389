#include "export/inflight.h"

void mg_inflight_release(struct mg_inflight *f)
{
    mg_vec_release(&f->heap);
    mg_vec_release(&f->values);
}

/* At one time what ends comes first. */
static bool is_before(const struct mg_inflight_change *a, const struct mg_inflight_change *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->by < b->by;
}

static void swap(struct mg_inflight_change *a, struct mg_inflight_change *b)
{
    struct mg_inflight_change was = *a;
    *a = *b;
    *b = was;
}

void mg_inflight_add(struct mg_inflight *f, uint32_t counter, uint64_t time_ns, int32_t by)
{
    while (f->values.n <= counter) *mg_vec_push(&f->values) = 0;
    uint32_t i = f->heap.n;
    *mg_vec_push(&f->heap) = (struct mg_inflight_change){MG_MAX(time_ns, f->last_ns), counter, by};
    for (struct mg_inflight_change *h = f->heap.at; i && is_before(&h[i], &h[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&h[i], &h[(i - 1) / 2]);
}

static void sink_first(struct mg_inflight *f)
{
    struct mg_inflight_change *h = f->heap.at;
    for (uint32_t i = 0, least;; i = least) {
        least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < f->heap.n; child++)
            if (is_before(&h[child], &h[least])) least = child;
        if (least == i) return;
        swap(&h[i], &h[least]);
    }
}

bool mg_inflight_next(struct mg_inflight *f, bool all, uint64_t *time_ns, uint32_t *counter, int64_t *value)
{
    if (!f->heap.n || (!all && f->heap.n <= MG_INFLIGHT_MOST)) return false;
    struct mg_inflight_change c = f->heap.at[0];
    f->heap.at[0] = f->heap.at[--f->heap.n];
    sink_first(f);
    f->last_ns = c.time_ns;
    f->values.at[c.counter] += c.by;
    *time_ns = c.time_ns;
    *counter = c.counter;
    *value = f->values.at[c.counter];
    return true;
}
