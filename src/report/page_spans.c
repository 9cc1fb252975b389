/* The time line for the page: rows (a thread's calls by layer, a stream's work, a kind of event inside a device's
 * kernels), each a list of spans in order. Events of many warps overlap: those that do are one span, for how many.
 *
 * Memory and page are bounded: when there are too many spans, neighbours of a row that lie within `resolution_ns`
 * become one, which says how many it stands for; the resolution doubles until all fit. One pass over the files. */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "report/page.h"
#include "span/span.h"

enum { SPANS_AT_MOST = 200000, ROWS_AT_MOST = 200 };

struct item {
    uint64_t begin_ns, end_ns;
    mg_str name;
    uint32_t n; /* spans it stands for */
};
enum row_kind { ROW_HOST, ROW_WORK, ROW_INSIDE };
struct row_key {
    uint32_t process, thread, device, layer;
    uint64_t context, stream;
    enum row_kind kind;
    mg_str event; /* of ROW_INSIDE */
};
struct row {
    struct row_key key;
    int32_t rank;
    MG_VEC(struct item) items;
};
struct spans {
    struct mg_intern names;
    MG_VEC(struct row) rows;
    uint64_t n_items, n_spans, left_out, first_ns, last_ns, resolution_ns;
};

static struct row *row_of(struct spans *x, const struct mg_span *s)
{
    bool host = s->kind == MG_SPAN_CALL || s->kind == MG_SPAN_MARK || s->kind == MG_SPAN_MPI;
    struct row_key key = {.process = s->process, .kind = host ? ROW_HOST : ROW_WORK};
    if (host)
        key.thread = s->thread, key.layer = s->layer;
    else
        key.device = s->device;
    if (s->kind == MG_SPAN_INSIDE)
        key.kind = ROW_INSIDE, key.event = mg_intern_adds(&x->names, s->name);
    else if (!host)
        key.context = s->context, key.stream = s->stream;
    for (uint32_t i = 0; i < x->rows.n; i++) {
        const struct row_key *k = &x->rows.at[i].key;
        if (k->kind == key.kind && k->process == key.process && k->thread == key.thread && k->layer == key.layer &&
            k->device == key.device && k->context == key.context && k->stream == key.stream && k->event == key.event)
            return &x->rows.at[i];
    }
    if (x->rows.n == ROWS_AT_MOST) return NULL;
    struct row *r = mg_vec_push(&x->rows);
    *r = (struct row){.key = key, .rank = s->rank};
    return r;
}

/* Both are short, and lie within the resolution: one block of the picture. */
static bool may_join(const struct spans *x, const struct row *r, const struct item *a, uint64_t begin_ns,
                     uint64_t end_ns)
{
    if (r->key.kind == ROW_INSIDE && begin_ns <= a->end_ns) return true;
    return x->resolution_ns && MG_MAX(a->end_ns, end_ns) - a->begin_ns <= x->resolution_ns &&
           begin_ns - a->begin_ns <= x->resolution_ns;
}

static void add_item(struct spans *x, struct row *r, struct item next)
{
    struct item *last = r->items.n ? &r->items.at[r->items.n - 1] : NULL;
    if (last && may_join(x, r, last, next.begin_ns, next.end_ns)) {
        last->end_ns = MG_MAX(last->end_ns, next.end_ns);
        if (last->name != next.name) last->name = 0;
        last->n += next.n;
        return;
    }
    *mg_vec_push(&r->items) = next;
    x->n_items++;
}

static void coarsen(struct spans *x)
{
    x->resolution_ns = MG_MAX(2 * x->resolution_ns, (x->last_ns - x->first_ns) / (8 * SPANS_AT_MOST) + 1);
    x->n_items = 0;
    for (uint32_t i = 0; i < x->rows.n; i++) {
        struct row *r = &x->rows.at[i];
        uint32_t n = r->items.n;
        r->items.n = 0;
        for (uint32_t k = 0; k < n; k++) add_item(x, r, r->items.at[k]); /* never ahead of what is read */
    }
}

static void add_span(struct spans *x, const struct mg_span *s)
{
    struct row *r = row_of(x, s);
    if (!x->n_spans++) x->first_ns = s->begin_ns;
    x->first_ns = MG_MIN(x->first_ns, s->begin_ns);
    x->last_ns = MG_MAX(x->last_ns, MG_MAX(s->begin_ns, s->end_ns));
    if (!r) {
        x->left_out++;
        return;
    }
    add_item(x, r,
             (struct item){s->begin_ns, MG_MAX(s->begin_ns, s->end_ns),
                           mg_intern_adds(&x->names, s->name ? s->name : ""), 1});
    while (x->n_items > SPANS_AT_MOST && x->resolution_ns < UINT64_MAX / 4) coarsen(x);
}

/* Rows as a reader looks for them: process after process, calls above the work that they made. */
static int by_key(const void *a, const void *b)
{
    const struct row_key *x = &((const struct row *)a)->key, *y = &((const struct row *)b)->key;
    uint64_t u[] = {x->process, x->kind, x->thread, x->layer, x->device, x->context, x->stream, x->event};
    uint64_t v[] = {y->process, y->kind, y->thread, y->layer, y->device, y->context, y->stream, y->event};
    for (size_t i = 0; i < MG_COUNT_OF(u); i++)
        if (u[i] != v[i]) return u[i] < v[i] ? -1 : 1;
    return 0;
}

/* {"process", ..., "spans": [begin after the one before, duration, name, how many, ...]} */
static void write_row(struct mg_json *j, const struct spans *x, const struct row *r, const char *thread_name)
{
    uint64_t before = x->first_ns;
    mg_json_obj(j);
    mg_json_key_u64(j, "process", r->key.process);
    mg_json_key(j, "rank");
    if (r->rank < 0)
        mg_json_null(j);
    else
        mg_json_i64(j, r->rank);
    mg_json_key_bool(j, "work", r->key.kind != ROW_HOST);
    if (r->key.kind == ROW_INSIDE) {
        mg_json_key_u64(j, "device", r->key.device);
        mg_json_key_str(j, "event", mg_intern_text(&x->names, r->key.event));
    } else if (r->key.kind == ROW_WORK) {
        mg_json_key_u64(j, "device", r->key.device);
        mg_json_key_u64(j, "context", r->key.context);
        mg_json_key_u64(j, "stream", r->key.stream);
    } else {
        mg_json_key_u64(j, "thread", r->key.thread);
        mg_json_key_str(j, "thread_name", thread_name);
        mg_json_key_str(j, "layer", mg_span_layer_name((enum mg_span_layer)r->key.layer));
    }
    mg_json_key(j, "spans");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->items.n; i++) {
        const struct item *s = &r->items.at[i];
        mg_json_u64(j, s->begin_ns - before);
        mg_json_u64(j, s->end_ns - s->begin_ns);
        mg_json_u64(j, s->name);
        mg_json_u64(j, s->n);
        before = s->begin_ns;
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

static void write_spans(struct mg_json *j, const struct spans *x, const struct mg_spans *from)
{
    mg_json_obj(j);
    mg_json_key_u64(j, "length_ns", x->last_ns - x->first_ns);
    mg_json_key_u64(j, "spans", x->n_spans);
    mg_json_key_u64(j, "left_out", x->left_out);
    mg_json_key_u64(j, "resolution_ns", x->resolution_ns);
    mg_json_key(j, "names"); /* 0: spans of several names */
    mg_json_arr(j);
    mg_json_str(j, "");
    for (mg_str i = 1; i < x->names.n; i++) mg_json_str(j, mg_intern_text(&x->names, i));
    mg_json_end(j, ']');
    mg_json_key(j, "rows");
    mg_json_arr(j);
    for (uint32_t i = 0; i < x->rows.n; i++)
        write_row(j, x, &x->rows.at[i],
                  mg_spans_thread_name(from, x->rows.at[i].key.process, x->rows.at[i].key.thread));
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

bool mg_page_spans(const struct mg_page *g, struct mg_json *j)
{
    struct spans x = {0};
    struct mg_span_query q = {.size = sizeof q, .kinds = UINT32_MAX & ~(1u << MG_SPAN_MESSAGE | 1u << MG_SPAN_MEMORY)};
    struct mg_spans *from = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    mg_intern_init(&x.names);
    if (mg_spans_open(g->p->dir, &q, &from, &d)) from = NULL;
    mg_diag_release(&d);
    for (const struct mg_span *s; from && (s = mg_spans_next(from));) add_span(&x, s);
    if (x.rows.n) qsort(x.rows.at, x.rows.n, sizeof *x.rows.at, by_key);
    if (x.n_spans) write_spans(j, &x, from);
    if (from) mg_spans_close(from);
    for (uint32_t i = 0; i < x.rows.n; i++) mg_vec_release(&x.rows.at[i].items);
    mg_vec_release(&x.rows);
    mg_intern_release(&x.names);
    return x.n_spans != 0;
}
