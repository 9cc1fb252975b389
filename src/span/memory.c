#include "span/memory.h"

#include <stdlib.h>

#include "base/hash.h"

void mg_memory_release(struct mg_memory *m)
{
    mg_vec_release(&m->devices);
    mg_vec_release(&m->blocks);
    mg_vec_release(&m->unused);
    mg_map_release(&m->by_address);
}

static uint32_t device_of(struct mg_memory *m, const struct mg_span *p)
{
    for (uint32_t i = 0; i < m->devices.n; i++)
        if (m->devices.at[i].process == p->process && m->devices.at[i].device == p->device) return i;
    *mg_vec_push(&m->devices) = (struct mg_memory_device){.rank = p->rank, .process = p->process, .device = p->device};
    return m->devices.n - 1;
}

static uint32_t release(struct mg_memory *m, uint64_t key, bool counts)
{
    uint64_t at;
    if (!mg_map_get(&m->by_address, key, &at)) return UINT32_MAX;
    const struct mg_memory_block *b = &m->blocks.at[at];
    struct mg_memory_device *d = &m->devices.at[b->device];
    d->in_use -= b->bytes;
    d->frees += counts;
    mg_map_del(&m->by_address, key);
    *mg_vec_push(&m->unused) = (uint32_t)at;
    return b->device;
}

uint32_t mg_memory_add(struct mg_memory *m, const struct mg_span *p)
{
    uint64_t words[] = {p->process, p->payload}, key = mg_hash64(words, sizeof words, 7);
    if (p->bytes == MG_SPAN_NONE) return release(m, key, true);
    release(m, key, false); /* its context is gone, and the address is given again */
    uint32_t device = device_of(m, p), at = m->unused.n ? m->unused.at[--m->unused.n] : m->blocks.n;
    if (at == m->blocks.n) (void)mg_vec_push(&m->blocks);
    m->blocks.at[at] = (struct mg_memory_block){.bytes = p->bytes, .device = device};
    mg_map_set(&m->by_address, key, at);
    struct mg_memory_device *d = &m->devices.at[device];
    d->in_use += p->bytes;
    d->most = MG_MAX(d->most, d->in_use);
    d->allocations++;
    return device;
}
