/* Interned strings: equal text, equal id; id 0 is the empty string. Ids are dense and stable. */
#ifndef MG_BASE_INTERN_H
#define MG_BASE_INTERN_H

#include "base/arena.h"

typedef uint32_t mg_str;

struct mg_intern {
    struct mg_arena text;
    struct mg_intern_entry *entries; /* by id */
    uint32_t n, cap;
    uint32_t *slots; /* open hash of ids, power of two */
    uint32_t n_slots;
};
struct mg_intern_entry {
    const char *s; /* NUL-terminated */
    uint32_t len, hash;
};
void mg_intern_init(struct mg_intern *t);
void mg_intern_release(struct mg_intern *t);
mg_str mg_intern_add(struct mg_intern *t, const char *s, size_t len);
mg_str mg_intern_adds(struct mg_intern *t, const char *s);
mg_str mg_intern_find(const struct mg_intern *t, const char *s, size_t len); /* 0 when absent */
static inline const char *mg_intern_text(const struct mg_intern *t, mg_str id)
{
    return t->entries[id].s;
}
static inline uint32_t mg_intern_len(const struct mg_intern *t, mg_str id)
{
    return t->entries[id].len;
}

#endif
