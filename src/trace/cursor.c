/* Cursors: the records of all files that a query asks for, chunk by chunk. In order of time, chunks are opened when
 * their first time has come and freed behind their last record, so that memory is that of the chunks that overlap. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/load.h"

struct pending {
    uint64_t time;
    uint32_t file;
    uint64_t ix;
}; /* a chunk that is not open yet */
struct active {
    struct mg_trace_chunk *chunk;
    uint32_t file;
    uint64_t ix;
    uint32_t next;
};

struct mg_trace_cursor {
    struct mg_trace_reader *r;
    struct mg_trace_query q;
    char *kinds;
    struct pending *pending;
    uint64_t n_pending, at;     /* in the order in which they are opened */
    MG_VEC(struct active) heap; /* by the time of the next record */
    MG_VEC(int8_t) wanted;      /* kinds by ix: 1 yes, -1 no, 0 not looked at */
    struct mg_trace_record record;
    uint64_t damaged;
    char why[512];
};

static bool meets(const struct mg_trace_range *a, uint64_t first, uint64_t last)
{
    return first <= last && a->first <= last && first <= a->last;
}

static uint64_t shifted(const struct mg_trace_file *f, int key, uint64_t v)
{
    return key == MG_TRACE_KEY_TIME ? v + (uint64_t)mg_trace_shift(f, v) : v;
}

static bool may_hold(const struct mg_trace_cursor *c, const struct mg_trace_file *f, const struct mg_trace_entry *e)
{
    for (int k = 1; k < MG_TRACE_KEY_COUNT; k++) {
        const struct mg_trace_range *want = &c->q.keys[k - 1], *have = &e->keys[k - 1];
        if (!(c->q.with_keys >> k & 1)) continue;
        if (have->first > have->last || !meets(want, shifted(f, k, have->first), shifted(f, k, have->last)))
            return false;
    }
    return true;
}

static int compare_pending(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->ix < y->ix ? -1 : x->ix > y->ix;
}

static void list_pending(struct mg_trace_cursor *c)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->r->files.n; i++) n += c->r->files.at[i]->n_entries;
    c->pending = mg_xmalloc((n + 1) * sizeof *c->pending);
    for (uint32_t i = 0; i < c->r->files.n; i++) {
        const struct mg_trace_loaded *f = c->r->files.at[i];
        uint64_t before = 0;
        if (c->q.only && !c->q.only(c->q.only_user, &f->file)) continue;
        for (uint64_t ix = 0; ix < f->n_entries; ix++) {
            const struct mg_trace_range *time = &f->entries[ix].keys[MG_TRACE_KEY_TIME - 1];
            if (time->first <= time->last) before = shifted(&f->file, MG_TRACE_KEY_TIME, time->first);
            if (ix >= c->q.from_chunk && may_hold(c, &f->file, &f->entries[ix]))
                c->pending[c->n_pending++] = (struct pending){before, i, ix};
        }
    }
    if (c->q.order == MG_TRACE_BY_TIME && c->n_pending)
        qsort(c->pending, c->n_pending, sizeof *c->pending, compare_pending);
}

struct mg_trace_cursor *mg_trace_cursor_open(struct mg_trace_reader *r, const struct mg_trace_query *q)
{
    struct mg_trace_cursor *c = mg_xcalloc(1, sizeof *c);
    c->r = r;
    memcpy(&c->q, q, MG_MIN(q->size, sizeof *q));
    c->kinds = c->q.kinds ? mg_xstrdup(c->q.kinds) : NULL;
    list_pending(c);
    return c;
}

void mg_trace_cursor_close(struct mg_trace_cursor *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->heap.n; i++) mg_trace_chunk_free(c->heap.at[i].chunk);
    mg_vec_release(&c->heap);
    mg_vec_release(&c->wanted);
    free(c->pending);
    free(c->kinds);
    free(c);
}

/* ---- chunks that are open ------------------------------------------------------------------------------ */

static uint64_t next_time(const struct active *a)
{
    return shifted(&a->chunk->file->file, MG_TRACE_KEY_TIME, a->chunk->items[a->next].time);
}

static bool is_before(const struct active *a, const struct active *b)
{
    uint64_t x = next_time(a), y = next_time(b);
    if (x != y) return x < y;
    if (a->file != b->file) return a->file < b->file;
    return a->ix < b->ix;
}

static void swap(struct active *a, struct active *b)
{
    struct active t = *a;
    *a = *b;
    *b = t;
}

static void sift_down(struct mg_trace_cursor *c)
{
    for (uint32_t i = 0, least = 0;; i = least) {
        for (uint32_t k = 2 * i + 1; k <= 2 * i + 2 && k < c->heap.n; k++)
            if (is_before(&c->heap.at[k], &c->heap.at[least])) least = k;
        if (least == i) return;
        swap(&c->heap.at[i], &c->heap.at[least]);
    }
}

static void open_next(struct mg_trace_cursor *c)
{
    struct pending p = c->pending[c->at++];
    const struct mg_trace_loaded *f = c->r->files.at[p.file];
    const char *why;
    struct mg_trace_chunk *chunk = mg_trace_chunk_read(&c->r->kinds, f, p.ix, 0, &why);
    if (!chunk) {
        if (!c->damaged++)
            snprintf(c->why, sizeof c->why, "%s: chunk %llu at byte %llu: %s", f->path, (unsigned long long)p.ix,
                     (unsigned long long)f->entries[p.ix].at, why);
        return;
    }
    if (!chunk->n_items) {
        mg_trace_chunk_free(chunk);
        return;
    }
    if (c->q.order == MG_TRACE_BY_TIME) mg_trace_chunk_sort(chunk);
    *mg_vec_push(&c->heap) = (struct active){chunk, p.file, p.ix, 0};
    for (uint32_t i = c->heap.n - 1; i && is_before(&c->heap.at[i], &c->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&c->heap.at[i], &c->heap.at[(i - 1) / 2]);
}

/* Opens what has to be open before the next record is given. */
static void open_due(struct mg_trace_cursor *c)
{
    while (c->at < c->n_pending) {
        bool due =
            !c->heap.n || (c->q.order == MG_TRACE_BY_TIME && c->pending[c->at].time <= next_time(&c->heap.at[0]));
        if (!due) return;
        open_next(c);
    }
}

/* ---- records ------------------------------------------------------------------------------------------- */

static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; *at;) {
        size_t word = strcspn(at, ",");
        if (word == n && !memcmp(at, name, n)) return true;
        at += word + (at[word] == ',');
    }
    return false;
}

static bool is_wanted_kind(struct mg_trace_cursor *c, const struct mg_trace_record *r)
{
    if (!c->kinds) return true;
    while (c->wanted.n <= r->kind_ix) *mg_vec_push(&c->wanted) = 0;
    int8_t *w = &c->wanted.at[r->kind_ix];
    if (!*w) *w = is_listed(c->kinds, r->kind->name) ? 1 : -1;
    return *w > 0;
}

static bool is_wanted(struct mg_trace_cursor *c, const struct mg_trace_record *r)
{
    struct mg_trace_range have[MG_TRACE_INDEXED];
    if (!is_wanted_kind(c, r)) return false;
    if (!c->q.with_keys) return true;
    mg_trace_range_none(have);
    mg_trace_range_add(have, r->kind, r->layout, r->fields);
    for (int k = 1; k < MG_TRACE_KEY_COUNT; k++) {
        const struct mg_trace_range *want = &c->q.keys[k - 1], *h = &have[k - 1];
        if (!(c->q.with_keys >> k & 1)) continue;
        if (h->first > h->last || !meets(want, shifted(r->file, k, h->first), shifted(r->file, k, h->last)))
            return false;
    }
    return true;
}

const struct mg_trace_record *mg_trace_next(struct mg_trace_cursor *c)
{
    for (;;) {
        if (c->heap.n && c->heap.at[0].next == c->heap.at[0].chunk->n_items) { /* its last record was given */
            mg_trace_chunk_free(c->heap.at[0].chunk);
            c->heap.at[0] = c->heap.at[--c->heap.n];
            sift_down(c);
        }
        open_due(c);
        if (!c->heap.n) return NULL;
        struct active *a = &c->heap.at[0];
        const struct mg_trace_chunk *chunk = a->chunk;
        mg_trace_chunk_record(chunk, &chunk->items[a->next++], &c->record);
        if (a->next < chunk->n_items) sift_down(c);
        if (is_wanted(c, &c->record)) return &c->record;
    }
}

uint64_t mg_trace_damaged(const struct mg_trace_cursor *c, const char **why)
{
    *why = c->damaged ? c->why : NULL;
    return c->damaged;
}
