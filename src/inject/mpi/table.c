#include <stdlib.h>

#include "inject/mpi/mpi.h"

static uint32_t home(const struct mg_mpi_table *t, uint64_t key)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (t->room - 1);
}

static uint32_t find(const struct mg_mpi_table *t, uint64_t key)
{
    uint32_t i = home(t, key);
    while (t->slots[i].key && t->slots[i].key != key) i = (i + 1) & (t->room - 1);
    return i;
}

void *mg_mpi_table_get(const struct mg_mpi_table *t, uint64_t key)
{
    return t->room && key ? t->slots[find(t, key)].value : NULL;
}

static bool grow(struct mg_mpi_table *t)
{
    struct mg_mpi_table more = {.room = t->room ? 2 * t->room : 256, .n = t->n};
    if (!(more.slots = calloc(more.room, sizeof *more.slots))) return false;
    for (uint32_t i = 0; i < t->room; i++)
        if (t->slots[i].key) more.slots[find(&more, t->slots[i].key)] = t->slots[i];
    free(t->slots);
    *t = more;
    return true;
}

bool mg_mpi_table_put(struct mg_mpi_table *t, uint64_t key, void *value)
{
    if (!key || (2 * t->n >= t->room && !grow(t))) return false;
    struct mg_mpi_slot *s = &t->slots[find(t, key)];
    t->n += !s->key;
    *s = (struct mg_mpi_slot){key, value};
    return true;
}

void *mg_mpi_table_take(struct mg_mpi_table *t, uint64_t key)
{
    if (!t->room || !key) return NULL;
    uint32_t i = find(t, key), mask = t->room - 1;
    void *value = t->slots[i].value;
    if (!t->slots[i].key) return NULL;
    t->n--;
    for (uint32_t k = (i + 1) & mask; t->slots[k].key; k = (k + 1) & mask) { /* what was pushed past here moves up */
        uint32_t at = home(t, t->slots[k].key);
        if (((k - at) & mask) < ((k - i) & mask)) continue;
        t->slots[i] = t->slots[k];
        i = k;
    }
    t->slots[i] = (struct mg_mpi_slot){0, NULL};
    return value;
}
