/* Options as a command line has them: "key=value,key=value", a tool's name in front or none. */
#ifndef MG_BASE_OPTION_H
#define MG_BASE_OPTION_H

#include <stddef.h>
#include <string.h>

/* The first value of the key in `bytes` of text, *n bytes of it; NULL: it is not there, and *n says nothing. */
static inline const char *mg_option_value(const char *text, size_t bytes, const char *key, size_t *n)
{
    const char *end = text + bytes;
    size_t k = strlen(key);
    *n = 0;
    for (const char *at = text; at < end; at += *n + 1) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        *n = (size_t)((comma ? comma : end) - at);
        if (*n <= k || memcmp(at, key, k) || at[k] != '=') continue;
        *n -= k + 1;
        return at + k + 1;
    }
    return NULL;
}

#endif
