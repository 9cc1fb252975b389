/* Live allocations for kernels that search them, see ranges.h. */
#include "tool/ranges.h"

#include <stdlib.h>

struct ranges {
    uint64_t *words;
    uint32_t width, n, most;
    bool more;
};

static void add_range(const struct mg_host_allocation *a, void *user)
{
    struct ranges *r = user;
    if (r->n == r->most) {
        r->more = true;
        return;
    }
    uint64_t *to = r->words + (size_t)r->width * r->n++;
    to[0] = a->address, to[1] = a->bytes;
    if (r->width > 2) to[2] = a->id;
}

static int by_begin(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

uint32_t mg_ranges_fill(const struct mg_tool_host *host, uint64_t *words, uint32_t width, uint32_t most)
{
    struct ranges r = {.words = words, .width = width, .most = most};
    if (!host || !host->allocations) return MG_RANGE_NONE;
    host->allocations(add_range, &r);
    if (r.more) return MG_RANGE_NONE;
    qsort(words, r.n, width * sizeof *words, by_begin);
    return r.n;
}
