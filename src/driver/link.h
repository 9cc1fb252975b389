/* Linking PTX with PTX (link.c): for images with relocatable code, cuLink, and inject's nvJitLink. */
#ifndef MG_DRIVER_LINK_H
#define MG_DRIVER_LINK_H

#include "base/diag.h"

struct mg_text {
    const char *at;
    size_t n;
    const char *name; /* for messages, may be NULL */
};
/* Several PTX texts into one. *out is malloc'd. */
enum mg_err mg_link_texts(const struct mg_text *texts, uint32_t n, char **out, size_t *bytes, struct mg_diag *d);

#endif
