#include "inject/covered.h"

#include <string.h>

static void replace(struct mg_covered *c, uint32_t first, uint32_t past, struct mg_covered_span by)
{
    memmove(&c->at[first + 1], &c->at[past], (c->n - past) * sizeof *c->at);
    c->at[first] = by;
    c->n = c->n + 1 - (past - first);
}

uint64_t mg_covered_add(struct mg_covered *c, uint64_t begin, uint64_t end)
{
    if (begin >= end) return 0;
    uint32_t past = c->n;
    while (past && c->at[past - 1].begin > end) past--;
    uint32_t first = past; /* from here to past they meet it */
    uint64_t known = 0;
    struct mg_covered_span all = {begin, end};
    while (first && c->at[first - 1].end >= begin) {
        const struct mg_covered_span *s = &c->at[--first];
        known += MG_MIN(s->end, end) - MG_MAX(s->begin, begin);
        all = (struct mg_covered_span){MG_MIN(all.begin, s->begin), MG_MAX(all.end, s->end)};
    }
    if (first == past && c->n == MG_COVERED_SPANS) { /* no room: the oldest is forgotten */
        if (!first) return end - begin;
        memmove(&c->at[0], &c->at[1], --c->n * sizeof *c->at);
        first--, past--;
    }
    replace(c, first, past, all);
    return end - begin - known;
}
