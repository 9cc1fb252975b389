/* Rows between the application's threads and the writer. */
#include "store/queue.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "store/db.h"

struct mg_row *mg_row_new(uint32_t stmt, size_t bytes)
{
    uint32_t most = mg_stmt_cells(stmt);
    struct mg_row *r = malloc(sizeof *r + most * sizeof r->cells[0] + bytes);
    if (!r) return NULL;
    r->next = NULL;
    r->stmt = stmt;
    r->n = 0;
    r->most = most;
    r->used = 0;
    r->cap = bytes;
    r->data = (char *)&r->cells[most];
    return r;
}

static struct mg_cell *next_cell(struct mg_row *r, enum mg_cell_kind kind)
{
    mg_assert(r->n < r->most);
    struct mg_cell *c = &r->cells[r->n++];
    *c = (struct mg_cell){.kind = kind};
    return c;
}

void mg_row_null(struct mg_row *r)
{
    next_cell(r, MG_CELL_null);
}

void mg_row_int(struct mg_row *r, int64_t v)
{
    next_cell(r, MG_CELL_int)->i = v;
}

void mg_row_bytes(struct mg_row *r, enum mg_cell_kind kind, const void *p, size_t bytes)
{
    struct mg_cell *c = next_cell(r, kind);
    mg_assert(bytes <= r->cap - r->used);
    c->i = (int64_t)r->used;
    c->bytes = bytes;
    if (bytes) memcpy(r->data + r->used, p, bytes);
    r->used += bytes;
}

void mg_row_text(struct mg_row *r, const char *text)
{
    if (text)
        mg_row_bytes(r, MG_CELL_text, text, strlen(text));
    else
        mg_row_null(r);
}

uint8_t *mg_row_room(struct mg_row *r)
{
    return (uint8_t *)r->data + r->used;
}

void mg_row_kept(struct mg_row *r, size_t bytes)
{
    struct mg_cell *c = next_cell(r, MG_CELL_blob);
    mg_assert(bytes <= r->cap - r->used);
    c->i = (int64_t)r->used;
    c->bytes = bytes;
    r->used += bytes;
}

bool mg_queue_init(struct mg_queue *q, size_t cap_bytes)
{
    pthread_condattr_t attr;
    *q = (struct mg_queue){.cap_bytes = cap_bytes};
    q->tail = &q->head;
    if (pthread_mutex_init(&q->lock, NULL)) return false;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->work, &attr);
    pthread_cond_init(&q->drained, &attr);
    pthread_condattr_destroy(&attr);
    return true;
}

static void free_rows(struct mg_row *r)
{
    while (r) {
        struct mg_row *next = r->next;
        free(r);
        r = next;
    }
}

void mg_queue_release(struct mg_queue *q)
{
    free_rows(q->head);
    pthread_cond_destroy(&q->work);
    pthread_cond_destroy(&q->drained);
    pthread_mutex_destroy(&q->lock);
}

static size_t weight(const struct mg_row *r)
{
    return sizeof *r + r->most * sizeof r->cells[0] + r->cap;
}

bool mg_queue_push(struct mg_queue *q, struct mg_row *r)
{
    while (q->bytes > q->cap_bytes && !q->broken) {
        pthread_cond_signal(&q->work);
        pthread_cond_wait(&q->drained, &q->lock);
    }
    if (q->broken) return false;
    *q->tail = r;
    for (; r; r = r->next) {
        q->tail = &r->next;
        q->bytes += weight(r);
    }
    if (q->idle || q->bytes > q->cap_bytes / 2) {
        q->idle = false;
        pthread_cond_signal(&q->work);
    }
    return true;
}

static void wait_until(struct mg_queue *q, uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    pthread_cond_timedwait(&q->work, &q->lock, &t);
}

struct mg_row *mg_queue_take(struct mg_queue *q, uint64_t interval_ns, uint64_t *ticket, size_t *bytes, bool *end)
{
    pthread_mutex_lock(&q->lock);
    while (!q->head && !q->closing && q->wanted == q->done) {
        q->idle = true;
        pthread_cond_wait(&q->work, &q->lock);
    }
    q->idle = false;
    while (!q->closing && q->wanted == q->done && q->bytes <= q->cap_bytes / 2 &&
           mg_now_ns() < q->last_ns + interval_ns)
        wait_until(q, q->last_ns + interval_ns);
    q->last_ns = mg_now_ns();
    struct mg_row *rows = q->head;
    *ticket = q->wanted;
    *bytes = q->bytes;
    *end = !rows && q->closing;
    q->head = NULL;
    q->tail = &q->head;
    pthread_mutex_unlock(&q->lock);
    return rows;
}

void mg_queue_written(struct mg_queue *q, uint64_t ticket, size_t bytes)
{
    pthread_mutex_lock(&q->lock);
    q->bytes -= bytes;
    q->done = ticket;
    pthread_cond_broadcast(&q->drained);
    pthread_mutex_unlock(&q->lock);
}

void mg_queue_flush(struct mg_queue *q)
{
    pthread_mutex_lock(&q->lock);
    uint64_t mine = ++q->wanted;
    pthread_cond_signal(&q->work);
    while (q->done < mine && !q->broken) pthread_cond_wait(&q->drained, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

bool mg_queue_lock_soon(struct mg_queue *q, uint64_t wait_ns)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t ns = (uint64_t)t.tv_nsec + wait_ns;
    t.tv_sec += (time_t)(ns / 1000000000u);
    t.tv_nsec = (long)(ns % 1000000000u);
    return !pthread_mutex_timedlock(&q->lock, &t);
}

void mg_queue_flush_locked(struct mg_queue *q, uint64_t wait_ns)
{
    uint64_t mine = ++q->wanted, until = mg_now_ns() + wait_ns;
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
    pthread_cond_signal(&q->work);
    while (q->done < mine)
        if (pthread_cond_timedwait(&q->drained, &q->lock, &t)) break;
}

void mg_queue_break(struct mg_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->broken = true;
    pthread_cond_broadcast(&q->drained);
    pthread_mutex_unlock(&q->lock);
}
