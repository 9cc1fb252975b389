#include <stdlib.h>
#include <string.h>

#include "study/reuse.h"

enum { LEAST = 1 << 12 };

void mg_reuse_release(struct mg_reuse *r)
{
    mg_map_release(&r->at);
    mg_vec_release(&r->lines);
    free(r->tree);
    free(r->owner);
    free(r->direct);
    memset(r, 0, sizeof *r);
}

static void forget(struct mg_reuse *r)
{
    for (uint32_t i = 0; i < r->lines.n && r->direct; i++) r->direct[r->lines.at[i].number] = 0;
    r->lines.n = 0;
    r->now = 0;
    if (r->cap) memset(r->tree, 0, ((size_t)r->cap + 1) * sizeof *r->tree);
}

void mg_reuse_reset(struct mg_reuse *r)
{
    mg_map_release(&r->at);
    r->at = (struct mg_map)MG_MAP_INIT;
    forget(r);
    free(r->direct);
    r->direct = NULL;
    r->n_direct = 0;
}

void mg_reuse_reset_numbered(struct mg_reuse *r, uint32_t n)
{
    if (!r->direct) mg_reuse_reset(r);
    forget(r);
    if (r->direct && n <= r->n_direct) return;
    free(r->direct);
    r->direct = mg_xcalloc((size_t)n + 1, sizeof *r->direct);
    r->n_direct = n;
}

/* Its index; false: it is new, and gets the next one. */
static bool find_line(struct mg_reuse *r, uint64_t line, uint32_t *ix)
{
    uint64_t at = r->lines.n;
    bool known = r->direct ? r->direct[line] != 0 : mg_map_get(&r->at, line, &at);
    if (known && r->direct) at = r->direct[line] - 1;
    *ix = (uint32_t)at;
    if (known) return true;
    if (r->direct)
        r->direct[line] = *ix + 1;
    else
        mg_map_set(&r->at, line, at);
    *mg_vec_push(&r->lines) = (struct mg_reuse_line){
        .number = line, .epoch = r->epoch, .most = {MG_REUSE_FIRST, MG_REUSE_FIRST, MG_REUSE_FIRST, MG_REUSE_FIRST}};
    return false;
}

static void add(struct mg_reuse *r, uint32_t time, uint32_t by)
{
    for (uint32_t i = time + 1; i <= r->cap; i += i & -i) r->tree[i] += by;
}

/* Lines whose last access stands before that time. */
static uint32_t before(const struct mg_reuse *r, uint32_t time)
{
    uint32_t n = 0;
    for (uint32_t i = time; i; i -= i & -i) n += r->tree[i];
    return n;
}

/* Gives the lines times 0, 1, ... anew, in their order, with room behind them. */
static void renumber(struct mg_reuse *r)
{
    uint32_t n = 0, cap = MG_MAX(r->lines.n * 2, (uint32_t)LEAST), *owner = mg_xmalloc((size_t)cap * sizeof *owner);
    for (uint32_t t = 0; t < r->now; t++) {
        uint32_t ix = r->owner[t];
        if (!ix || r->lines.at[ix - 1].time != t) continue;
        r->lines.at[ix - 1].time = n;
        owner[n++] = ix;
    }
    free(r->owner);
    free(r->tree);
    r->owner = owner;
    r->cap = cap;
    r->now = n;
    r->tree = mg_xcalloc((size_t)cap + 1, sizeof *r->tree);
    for (uint32_t i = 1; i <= cap; i++) { /* the first n times are taken */
        uint32_t low = i - (i & -i);
        r->tree[i] = MG_MIN(i, n) - MG_MIN(low, n);
    }
}

void mg_reuse_invalidate(struct mg_reuse *r)
{
    r->epoch++;
}

uint32_t mg_reuse_access(struct mg_reuse *r, uint64_t line, unsigned sectors, uint32_t distance[MG_REUSE_SECTORS])
{
    uint32_t ix, d = MG_REUSE_FIRST;
    if (r->now == r->cap) renumber(r);
    if (find_line(r, line, &ix)) {
        uint32_t time = r->lines.at[ix].time;
        d = r->lines.n - before(r, time + 1);
        add(r, time, UINT32_MAX); /* minus 1 */
    }
    struct mg_reuse_line *l = &r->lines.at[ix];
    l->time = r->now++;
    r->owner[l->time] = ix + 1;
    add(r, l->time, 1);
    for (int i = 0; i < MG_REUSE_SECTORS; i++) {
        if (l->most[i] != MG_REUSE_FIRST && d > l->most[i]) l->most[i] = d;
        if (l->most[i] != MG_REUSE_FIRST && l->epoch != r->epoch) l->most[i] = MG_REUSE_LOST;
        if (!(sectors >> i & 1)) continue;
        distance[i] = l->most[i];
        l->most[i] = 0;
    }
    l->epoch = r->epoch;
    return d;
}
