/* Texts that many records share, numbered from 1. Any thread; nothing here aborts when memory is out. */
#ifndef MG_TRACE_NAMES_H
#define MG_TRACE_NAMES_H

#include <pthread.h>

#include "base/compiler.h"

struct mg_trace_names {
    pthread_mutex_t lock;
    char **texts; /* by number - 1 */
    uint32_t n, cap;
    uint32_t *slots, n_slots; /* numbers by hash; a power of two */
    size_t bytes;
};
void mg_trace_names_init(struct mg_trace_names *t);
void mg_trace_names_release(struct mg_trace_names *t);
uint32_t mg_trace_names_add(struct mg_trace_names *t, const char *text); /* 0: no memory, or the empty text */
/* The texts of n numbers; NULL for one that was never given. Owner: the table. */
void mg_trace_names_find(struct mg_trace_names *t, const uint32_t *numbers, uint32_t n, const char **out);
uint32_t mg_trace_names_count(struct mg_trace_names *t);

#endif
