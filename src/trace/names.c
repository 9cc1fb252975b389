/* Shared texts: an open hash of numbers. */
#include "trace/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "trace/trace.h"

#define MOST_BYTES ((size_t)64 << 20)

void mg_trace_names_init(struct mg_trace_names *t)
{
    *t = (struct mg_trace_names){0};
    pthread_mutex_init(&t->lock, NULL);
}

void mg_trace_names_release(struct mg_trace_names *t)
{
    for (uint32_t i = 0; i < t->n; i++) free(t->texts[i]);
    free(t->texts);
    free(t->slots);
    pthread_mutex_destroy(&t->lock);
}

static uint32_t slot_of(const struct mg_trace_names *t, const char *text, size_t bytes)
{
    uint32_t at = (uint32_t)mg_hash64(text, bytes, 0) & (t->n_slots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const char *have = t->texts[t->slots[at] - 1];
        if (!strncmp(have, text, bytes) && !have[bytes]) break;
    }
    return at;
}

static bool make_room(struct mg_trace_names *t)
{
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? 2 * t->cap : 64;
        char **more = realloc(t->texts, cap * sizeof *more);
        if (!more) return false;
        t->texts = more;
        t->cap = cap;
    }
    if (2 * (t->n + 1) <= t->n_slots) return true;
    uint32_t n_slots = t->n_slots ? 2 * t->n_slots : 256, *old = t->slots;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots) return false;
    t->slots = slots;
    t->n_slots = n_slots;
    for (uint32_t i = 0; i < t->n; i++) slots[slot_of(t, t->texts[i], strlen(t->texts[i]))] = i + 1;
    free(old);
    return true;
}

static uint32_t add_name(struct mg_trace_names *t, const char *text, size_t bytes)
{
    if (!make_room(t)) return 0;
    uint32_t at = slot_of(t, text, bytes);
    if (t->slots[at]) return t->slots[at];
    char *copy = t->bytes + bytes < MOST_BYTES ? malloc(bytes + 1) : NULL;
    if (!copy) return 0;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    t->bytes += bytes + 1;
    t->texts[t->n++] = copy;
    return t->slots[at] = t->n;
}

uint32_t mg_trace_names_add(struct mg_trace_names *t, const char *text)
{
    size_t bytes = text ? strnlen(text, MG_TRACE_MOST_NAME) : 0;
    if (!bytes) return 0;
    pthread_mutex_lock(&t->lock);
    uint32_t number = add_name(t, text, bytes);
    pthread_mutex_unlock(&t->lock);
    return number;
}

void mg_trace_names_find(struct mg_trace_names *t, const uint32_t *numbers, uint32_t n, const char **out)
{
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < n; i++) out[i] = numbers[i] && numbers[i] <= t->n ? t->texts[numbers[i] - 1] : NULL;
    pthread_mutex_unlock(&t->lock);
}

uint32_t mg_trace_names_count(struct mg_trace_names *t)
{
    pthread_mutex_lock(&t->lock);
    uint32_t n = t->n;
    pthread_mutex_unlock(&t->lock);
    return n;
}
