/* Growing text buffer. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

void mg_buf_release(struct mg_buf *b)
{
    free(b->at);
    *b = (struct mg_buf)MG_BUF_INIT;
}

void mg_buf_reset(struct mg_buf *b)
{
    b->n = 0;
    if (b->at) b->at[0] = 0;
}

char *mg_buf_room(struct mg_buf *b, size_t more)
{
    if (b->n + more + 1 > b->cap) {
        size_t cap = b->cap ? b->cap * 2 : 256;
        while (cap < b->n + more + 1) cap *= 2;
        b->at = mg_xrealloc(b->at, cap);
        b->cap = cap;
    }
    return b->at + b->n;
}

void mg_buf_add(struct mg_buf *b, const void *p, size_t n)
{
    char *at = mg_buf_room(b, n);
    if (n) memcpy(at, p, n);
    at[n] = 0;
    b->n += n;
}

void mg_buf_adds(struct mg_buf *b, const char *s)
{
    mg_buf_add(b, s, strlen(s));
}

void mg_buf_addc(struct mg_buf *b, char c)
{
    char *at = mg_buf_room(b, 1);
    at[0] = c;
    at[1] = 0;
    b->n++;
}

void mg_buf_addu(struct mg_buf *b, uint64_t v)
{
    char text[20];
    size_t at = sizeof text;
    do text[--at] = (char)('0' + v % 10);
    while (v /= 10);
    mg_buf_add(b, text + at, sizeof text - at);
}

void mg_buf_vprintf(struct mg_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    mg_assert(n >= 0);
    vsnprintf(mg_buf_room(b, (size_t)n), (size_t)n + 1, fmt, ap);
    b->n += (size_t)n;
}

void mg_buf_printf(struct mg_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    mg_buf_vprintf(b, fmt, ap);
    va_end(ap);
}

char *mg_buf_take(struct mg_buf *b)
{
    char *p = b->at ? b->at : mg_xcalloc(1, 1);
    *b = (struct mg_buf)MG_BUF_INIT;
    return p;
}
