/* Interned strings. */
#include "base/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static uint32_t hash_of(const char *s, size_t len)
{
    return (uint32_t)mg_hash64(s, len, 0);
}

static void rehash(struct mg_intern *t, uint32_t n_slots)
{
    free(t->slots);
    t->slots = mg_xcalloc(n_slots, sizeof *t->slots);
    t->n_slots = n_slots;
    for (uint32_t id = 1; id < t->n; id++) {
        uint32_t at = t->entries[id].hash & (n_slots - 1);
        while (t->slots[at]) at = (at + 1) & (n_slots - 1);
        t->slots[at] = id;
    }
}

void mg_intern_init(struct mg_intern *t)
{
    *t = (struct mg_intern){0};
    t->cap = 64;
    t->entries = mg_xcalloc(t->cap, sizeof *t->entries);
    t->entries[0].s = "";
    t->n = 1;
    rehash(t, 128);
}

void mg_intern_release(struct mg_intern *t)
{
    mg_arena_release(&t->text);
    free(t->entries);
    free(t->slots);
    *t = (struct mg_intern){0};
}

mg_str mg_intern_find(const struct mg_intern *t, const char *s, size_t len)
{
    if (!len) return 0;
    uint32_t h = hash_of(s, len);
    for (uint32_t at = h & (t->n_slots - 1); t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const struct mg_intern_entry *e = &t->entries[t->slots[at]];
        if (e->hash == h && e->len == len && !memcmp(e->s, s, len)) return t->slots[at];
    }
    return 0;
}

mg_str mg_intern_add(struct mg_intern *t, const char *s, size_t len)
{
    if (!len) return 0;
    uint32_t h = hash_of(s, len), at = h & (t->n_slots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const struct mg_intern_entry *e = &t->entries[t->slots[at]];
        if (e->hash == h && e->len == len && !memcmp(e->s, s, len)) return t->slots[at];
    }
    if (t->n == t->cap) {
        t->cap *= 2;
        t->entries = mg_xrealloc(t->entries, t->cap * sizeof *t->entries);
    }
    t->entries[t->n] = (struct mg_intern_entry){mg_arena_strndup(&t->text, s, len), (uint32_t)len, h};
    t->slots[at] = t->n++;
    mg_str id = t->n - 1;
    if (t->n * 2 > t->n_slots) rehash(t, t->n_slots * 2);
    return id;
}

mg_str mg_intern_adds(struct mg_intern *t, const char *s)
{
    return mg_intern_add(t, s, strlen(s));
}
