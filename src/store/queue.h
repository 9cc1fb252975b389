/* The way from any thread of the application to the writer thread: rows of bound values. A row is
 * one malloc; whoever takes it off the queue frees it. Nothing here touches a file. */
#ifndef MG_STORE_QUEUE_H
#define MG_STORE_QUEUE_H

#include <pthread.h>

#include "base/compiler.h"

enum mg_cell_kind {
    MG_CELL_null,
    MG_CELL_int,
    MG_CELL_text,
    MG_CELL_blob,
    MG_CELL_zstd /* compressed by the writer */
};
struct mg_cell {
    enum mg_cell_kind kind;
    int64_t i; /* the number, or where the bytes start in mg_row.data */
    size_t bytes;
};
struct mg_row {
    struct mg_row *next;
    uint32_t stmt, n, most; /* enum of the writer; cells used, of so many */
    size_t used, cap;       /* of data */
    char *data;             /* behind the cells */
    struct mg_cell cells[];
};

/* With the cells of its statement, and room for `bytes` of text and blobs in all; NULL when memory is out. */
struct mg_row *mg_row_new(uint32_t stmt, size_t bytes);
void mg_row_null(struct mg_row *r);
void mg_row_int(struct mg_row *r, int64_t v);
void mg_row_text(struct mg_row *r, const char *text); /* NULL: null */
void mg_row_bytes(struct mg_row *r, enum mg_cell_kind kind, const void *p, size_t bytes);
/* Writable room at the end of data, for encoders; mg_row_kept says how much was used. */
uint8_t *mg_row_room(struct mg_row *r);
void mg_row_kept(struct mg_row *r, size_t bytes);
static inline size_t mg_row_text_bytes(const char *text)
{
    return text ? __builtin_strlen(text) : 0;
}

struct mg_queue {
    pthread_mutex_t lock;
    pthread_cond_t work, drained; /* CLOCK_MONOTONIC */
    struct mg_row *head, **tail;
    size_t bytes, cap_bytes;    /* waiting; producers wait above the cap */
    uint64_t wanted, done;      /* flush tickets */
    bool idle, closing, broken; /* broken: rows are dropped */
    uint64_t last_ns;           /* of the last take */
};
bool mg_queue_init(struct mg_queue *q, size_t cap_bytes);
void mg_queue_release(struct mg_queue *q);
/* With q->lock held. Consumes the row and those chained to it, which are committed together. May wait
 * while the queue is full. False: broken, the rows stay the caller's. */
bool mg_queue_push(struct mg_queue *q, struct mg_row *r);
/* Waits for rows, a flush or the end, at most once per interval_ns unless asked; NULL with *end set
 * when closing and empty. *ticket is what mg_queue_written must be told afterwards. */
struct mg_row *mg_queue_take(struct mg_queue *q, uint64_t interval_ns, uint64_t *ticket, size_t *bytes, bool *end);
void mg_queue_written(struct mg_queue *q, uint64_t ticket, size_t bytes);
void mg_queue_flush(struct mg_queue *q);
/* For callers that may have interrupted a holder of the lock: false when it is not to be had. */
bool mg_queue_lock_soon(struct mg_queue *q, uint64_t wait_ns);
void mg_queue_flush_locked(struct mg_queue *q, uint64_t wait_ns); /* with q->lock held */
void mg_queue_break(struct mg_queue *q);

#endif
