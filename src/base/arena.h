/* Bump allocation: one arena per lifetime (module, pass scratch, session), no per-node free.
 * mg_arena_alloc never returns NULL: when memory is out the process ends. Inside an application that does not happen
 * before the reserve is used up (inproc/reserve.h). */
#ifndef MG_BASE_ARENA_H
#define MG_BASE_ARENA_H

#include "base/compiler.h"

struct mg_arena_block;
struct mg_arena {
    struct mg_arena_block *head;
    char *at, *end;
    size_t total_bytes; /* handed to malloc so far */
};
struct mg_arena_mark {
    struct mg_arena_block *head;
    char *at;
};

#define MG_ARENA_INIT                                                                                                  \
    {                                                                                                                  \
        0                                                                                                              \
    }
void mg_arena_release(struct mg_arena *a);
void *mg_arena_alloc(struct mg_arena *a, size_t bytes);  /* 16-byte aligned, not zeroed */
void *mg_arena_zalloc(struct mg_arena *a, size_t bytes); /* zeroed */
void *mg_arena_try(struct mg_arena *a, size_t bytes);    /* NULL when memory is out */
void *mg_arena_copy(struct mg_arena *a, const void *p, size_t bytes);
char *mg_arena_strndup(struct mg_arena *a, const char *s, size_t n);
char *mg_arena_printf(struct mg_arena *a, const char *fmt, ...) MG_PRINTF(2, 3);
struct mg_arena_mark mg_arena_mark(const struct mg_arena *a);
void mg_arena_rewind(struct mg_arena *a, struct mg_arena_mark m);
#define mg_arena_new(a, T)      ((T *)mg_arena_zalloc((a), sizeof(T)))
#define mg_arena_array(a, T, n) ((T *)mg_arena_zalloc((a), sizeof(T) * (size_t)(n)))

/* malloc family that ends the process with one line when memory is out. */
void *mg_xmalloc(size_t bytes);
void *mg_xcalloc(size_t n, size_t bytes);
void *mg_xrealloc(void *p, size_t bytes);
char *mg_xstrdup(const char *s);

#endif
