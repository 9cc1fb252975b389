#include "export/arrows.h"

#include <stdlib.h>

#include "base/arena.h"

void mg_arrows_release(struct mg_arrows *a)
{
    free(a->calls);
    mg_map_release(&a->at);
}

static uint64_t key_of(uint32_t process, uint64_t correlation)
{
    return (uint64_t)(process + 1) << 44 | (correlation & ((1ull << 44) - 1));
}

static bool may_enqueue(const struct mg_span *p)
{
    static const uint32_t classes = 1u << MG_CLASS_kernel | 1u << MG_CLASS_copy | 1u << MG_CLASS_memset |
                                    1u << MG_CLASS_memory | 1u << MG_CLASS_graph;
    return p->kind == MG_SPAN_CALL && p->layer == MG_LAYER_driver && p->correlation && classes >> p->class_ & 1;
}

/* Empties the slot that comes next. */
static struct mg_arrow_call free_slot(struct mg_arrows *a)
{
    struct mg_arrow_call *slot = &a->calls[a->next], was = *slot;
    if (was.key) mg_map_del(&a->at, was.key);
    *slot = (struct mg_arrow_call){0};
    return was;
}

bool mg_arrows_add(struct mg_arrows *a, uint32_t process, const struct mg_span *p, uint32_t track,
                   struct mg_arrow_call *gone)
{
    if (!may_enqueue(p)) return false;
    if (!a->calls) a->calls = mg_xcalloc(MG_ARROWS, sizeof *a->calls);
    *gone = free_slot(a);
    uint64_t key = key_of(process, p->correlation);
    a->calls[a->next] = (struct mg_arrow_call){
        .key = key,
        .begin_ns = p->begin_ns,
        .end_ns = p->end_ns,
        .correlation = p->correlation,
        .name = p->name,
        .track = track,
        .stack = p->stack,
        .result = p->result,
        .class_ = (uint8_t)p->class_,
    };
    mg_map_set(&a->at, key, a->next);
    a->next = (a->next + 1) % MG_ARROWS;
    return true;
}

struct mg_arrow_call *mg_arrows_call(struct mg_arrows *a, uint32_t process, const struct mg_span *p)
{
    uint64_t at;
    if (!p->correlation || !mg_map_get(&a->at, key_of(process, p->correlation), &at)) return NULL;
    struct mg_arrow_call *c = &a->calls[at];
    c->n_work++;
    return c;
}

bool mg_arrows_next(struct mg_arrows *a, struct mg_arrow_call *out)
{
    for (uint32_t i = 0; a->calls && i < MG_ARROWS; i++, a->next = (a->next + 1) % MG_ARROWS) {
        *out = free_slot(a);
        if (out->key) return true;
    }
    return false;
}
