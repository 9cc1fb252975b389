#include "study/cache_buffers.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"

enum { NO_ROW = UINT32_MAX, NAMES = 240 };

void mg_cache_buffers_release(struct mg_cache_buffers *b)
{
    mg_vec_release(&b->live);
    mg_map_release(&b->told);
    mg_vec_release(&b->pairs);
}

/* The first live allocation that ends behind the address. */
static uint32_t find_live(const struct mg_cache_buffers *b, uint64_t address)
{
    uint32_t low = 0, high = b->live.n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (b->live.at[mid].end <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void remove_live(struct mg_cache_buffers *b, uint32_t at)
{
    memmove(&b->live.at[at], &b->live.at[at + 1], (b->live.n - at - 1) * sizeof *b->live.at);
    b->live.n--;
}

void mg_cache_buffers_step(struct mg_cache_buffers *b, const struct mg_trace_step *s)
{
    uint32_t at = find_live(b, s->dst);
    if (s->kind != MG_STEP_ALLOC && s->kind != MG_STEP_FREE) return;
    if (s->kind == MG_STEP_FREE) {
        if (at < b->live.n && b->live.at[at].first == s->dst) remove_live(b, at);
        return;
    }
    uint64_t number = b->n_allocations++, end = s->dst + s->bytes;
    if (end <= s->dst) return;
    while (at < b->live.n && b->live.at[at].first < end) remove_live(b, at); /* their frees were not seen */
    (void)mg_vec_push(&b->live);
    memmove(&b->live.at[at + 1], &b->live.at[at], (b->live.n - at - 1) * sizeof *b->live.at);
    b->live.at[at] = (struct mg_cache_live){s->dst, end, NO_ROW, number, s->name};
}

/* Until the end its name is the place. */
static uint32_t find_place(struct mg_cache_result *r, const char *named)
{
    for (uint32_t i = 0; i < r->buffers.n; i++) {
        const struct mg_cache_buffer *x = &r->buffers.at[i];
        if (x->number == MG_CACHE_NO_ALLOCATION && (named ? x->name && !strcmp(x->name, named) : !x->name)) return i;
    }
    *mg_vec_push(&r->buffers) =
        (struct mg_cache_buffer){.number = MG_CACHE_NO_ALLOCATION, .name = named ? mg_xstrdup(named) : NULL};
    return r->buffers.n - 1;
}

/* An allocation has the names of all instructions that reach it. */
static void add_name(struct mg_cache_buffer *x, const char *named)
{
    size_t n = named ? strlen(named) : 0, used = x->name ? strlen(x->name) : 0;
    if (!n || used + n > NAMES) return;
    if (x->name && mg_names_have(x->name, ';', named)) return;
    x->name = mg_xrealloc(x->name, used + n + 3);
    if (used) memcpy(x->name + used, "; ", 2), used += 2;
    memcpy(x->name + used, named, n + 1);
}

static uint32_t find_row(struct mg_cache_buffers *b, struct mg_cache_result *r, uint64_t address, uint32_t site)
{
    uint32_t at = b->last;
    if (at >= b->live.n || address < b->live.at[at].first || address >= b->live.at[at].end) at = find_live(b, address);
    if (at == b->live.n || address < b->live.at[at].first) return find_place(r, r->sites.at[site].place);
    struct mg_cache_live *l = &b->live.at[b->last = at];
    if (l->row == NO_ROW) {
        l->row = r->buffers.n;
        *mg_vec_push(&r->buffers) =
            (struct mg_cache_buffer){.number = l->number, .bytes = l->end - l->first, .call = mg_xstrdup(l->call)};
    }
    return l->row;
}

uint32_t mg_cache_buffers_find(struct mg_cache_buffers *b, struct mg_cache_result *r, uint64_t address, uint32_t site)
{
    uint32_t row = find_row(b, r, address, site);
    uint64_t pair = (uint64_t)row << 32 | site;
    if (pair + 1 != b->last_told && !mg_map_get(&b->told, pair, NULL)) {
        *mg_vec_push(&b->pairs) = pair;
        mg_map_set(&b->told, pair, 1);
    }
    b->last_told = pair + 1;
    return row;
}

static int by_number(const void *a, const void *b)
{
    const struct mg_cache_buffer *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->name && y->name ? strcmp(x->name, y->name) : (x->name != NULL) - (y->name != NULL);
}

void mg_cache_buffers_finish(const struct mg_cache_buffers *b, struct mg_cache_result *r)
{
    for (uint32_t i = 0; i < r->buffers.n; i++) {
        free(r->buffers.at[i].name); /* the place */
        r->buffers.at[i].name = NULL;
    }
    for (uint32_t i = 0; i < b->pairs.n; i++)
        add_name(&r->buffers.at[b->pairs.at[i] >> 32], r->sites.at[(uint32_t)b->pairs.at[i]].buffer);
    qsort(r->buffers.at, r->buffers.n, sizeof *r->buffers.at, by_number);
}
