/* Hash map from uint64 to uint64: linear probing, backward-shift deletion. */
#include "base/map.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/hash.h"

void mg_map_release(struct mg_map *m)
{
    free(m->slots);
    free(m->used);
    *m = (struct mg_map)MG_MAP_INIT;
}

static uint32_t slot_of(const struct mg_map *m, uint64_t key)
{
    uint32_t at = (uint32_t)mg_mix64(key) & (m->cap - 1);
    while (m->used[at] && m->slots[2 * (size_t)at] != key) at = (at + 1) & (m->cap - 1);
    return at;
}

bool mg_map_get(const struct mg_map *m, uint64_t key, uint64_t *value)
{
    if (!m->n) return false;
    uint32_t at = slot_of(m, key);
    if (!m->used[at]) return false;
    if (value) *value = m->slots[2 * (size_t)at + 1];
    return true;
}

static void grow(struct mg_map *m)
{
    struct mg_map old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->slots = mg_xmalloc((size_t)m->cap * 16);
    m->used = mg_xcalloc(m->cap, 1);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (!old.used[i]) continue;
        uint32_t at = slot_of(m, old.slots[2 * (size_t)i]);
        m->used[at] = 1;
        m->slots[2 * (size_t)at] = old.slots[2 * (size_t)i];
        m->slots[2 * (size_t)at + 1] = old.slots[2 * (size_t)i + 1];
    }
    free(old.slots);
    free(old.used);
}

void mg_map_set(struct mg_map *m, uint64_t key, uint64_t value)
{
    if ((m->n + 1) * 4 > m->cap * 3) grow(m);
    uint32_t at = slot_of(m, key);
    if (!m->used[at]) {
        m->used[at] = 1;
        m->slots[2 * (size_t)at] = key;
        m->n++;
    }
    m->slots[2 * (size_t)at + 1] = value;
}

bool mg_map_del(struct mg_map *m, uint64_t key)
{
    if (!m->n) return false;
    uint32_t at = slot_of(m, key);
    if (!m->used[at]) return false;
    m->n--;
    for (uint32_t next = (at + 1) & (m->cap - 1);; next = (next + 1) & (m->cap - 1)) {
        if (!m->used[next]) break;
        uint32_t home = (uint32_t)mg_mix64(m->slots[2 * (size_t)next]) & (m->cap - 1);
        if (((next - home) & (m->cap - 1)) < ((next - at) & (m->cap - 1))) continue;
        m->slots[2 * (size_t)at] = m->slots[2 * (size_t)next];
        m->slots[2 * (size_t)at + 1] = m->slots[2 * (size_t)next + 1];
        at = next;
    }
    m->used[at] = 0;
    return true;
}

bool mg_map_next(const struct mg_map *m, uint32_t *i, uint64_t *key, uint64_t *value)
{
    for (; *i < m->cap; ++*i) {
        if (!m->used[*i]) continue;
        if (key) *key = m->slots[2 * (size_t)*i];
        if (value) *value = m->slots[2 * (size_t)*i + 1];
        ++*i;
        return true;
    }
    return false;
}
