/* Bump allocation and the malloc family that does not return NULL. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mg_arena_block {
    struct mg_arena_block *next;
    size_t bytes;
};
#define BLOCK_HEAD ((sizeof(struct mg_arena_block) + 15) & ~(size_t)15)

void mg_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "margay: internal error: %s:%d: %s\n", file, line, what);
    abort();
}

static MG_NORETURN void out_of_memory(void)
{
    fputs("margay: out of memory\n", stderr);
    abort();
}

void mg_arena_release(struct mg_arena *a)
{
    for (struct mg_arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *a = (struct mg_arena)MG_ARENA_INIT;
}

void *mg_arena_try(struct mg_arena *a, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes <= (size_t)(a->end - a->at)) {
        void *p = a->at;
        a->at += bytes;
        return p;
    }
    size_t grow = a->total_bytes / 2;
    size_t room = MG_MAX(bytes, MG_MIN(MG_MAX(grow, 4096), (size_t)1 << 20));
    struct mg_arena_block *b = malloc(BLOCK_HEAD + room);
    if (!b) return NULL;
    b->next = a->head;
    b->bytes = room;
    a->head = b;
    a->total_bytes += BLOCK_HEAD + room;
    char *base = (char *)b + BLOCK_HEAD;
    a->at = base + bytes;
    a->end = base + room;
    return base;
}

void *mg_arena_alloc(struct mg_arena *a, size_t bytes)
{
    void *p = mg_arena_try(a, bytes);
    if (!p) out_of_memory();
    return p;
}

void *mg_arena_zalloc(struct mg_arena *a, size_t bytes)
{
    return memset(mg_arena_alloc(a, bytes), 0, bytes);
}

void *mg_arena_copy(struct mg_arena *a, const void *p, size_t bytes)
{
    void *q = mg_arena_alloc(a, bytes);
    if (bytes) memcpy(q, p, bytes);
    return q;
}

char *mg_arena_strndup(struct mg_arena *a, const char *s, size_t n)
{
    char *q = mg_arena_alloc(a, n + 1);
    if (n) memcpy(q, s, n);
    q[n] = 0;
    return q;
}

char *mg_arena_printf(struct mg_arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    mg_assert(n >= 0);
    char *q = mg_arena_alloc(a, (size_t)n + 1);
    vsnprintf(q, (size_t)n + 1, fmt, again);
    va_end(again);
    return q;
}

struct mg_arena_mark mg_arena_mark(const struct mg_arena *a)
{
    return (struct mg_arena_mark){a->head, a->at};
}

void mg_arena_rewind(struct mg_arena *a, struct mg_arena_mark m)
{
    while (a->head != m.head) {
        struct mg_arena_block *b = a->head;
        a->head = b->next;
        a->total_bytes -= BLOCK_HEAD + b->bytes;
        free(b);
    }
    a->at = m.at;
    a->end = a->head ? (char *)a->head + BLOCK_HEAD + a->head->bytes : NULL;
}

void *mg_xmalloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p) out_of_memory();
    return p;
}

void *mg_xcalloc(size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes ? bytes : 1);
    if (!p) out_of_memory();
    return p;
}

void *mg_xrealloc(void *p, size_t bytes)
{
    p = realloc(p, bytes ? bytes : 1);
    if (!p) out_of_memory();
    return p;
}

char *mg_xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(mg_xmalloc(n), s, n);
}
