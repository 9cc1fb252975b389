/* Growing text or byte buffer. at[n] is always 0 once anything was added. */
#ifndef MG_BASE_BUF_H
#define MG_BASE_BUF_H

#include <stdarg.h>

#include "base/compiler.h"

struct mg_buf {
    char *at;
    size_t n, cap;
};
#define MG_BUF_INIT                                                                                                    \
    {                                                                                                                  \
        0                                                                                                              \
    }
void mg_buf_release(struct mg_buf *b);
void mg_buf_reset(struct mg_buf *b);              /* empty, keeps memory */
char *mg_buf_room(struct mg_buf *b, size_t more); /* at least `more` writable bytes at the end */
void mg_buf_add(struct mg_buf *b, const void *p, size_t n);
void mg_buf_adds(struct mg_buf *b, const char *s);
void mg_buf_addc(struct mg_buf *b, char c);
void mg_buf_addu(struct mg_buf *b, uint64_t v); /* decimal */
void mg_buf_printf(struct mg_buf *b, const char *fmt, ...) MG_PRINTF(2, 3);
void mg_buf_vprintf(struct mg_buf *b, const char *fmt, va_list ap);
char *mg_buf_take(struct mg_buf *b); /* malloc'd text, the buffer is empty after */

#endif
