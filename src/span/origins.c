#include "span/origins.h"

#include <string.h>

#include "base/hash.h"

uint64_t mg_origin_key(uint32_t process, uint64_t correlation)
{
    uint64_t words[] = {process, correlation};
    return mg_hash64(words, sizeof words, 1);
}

void mg_origins_add(struct mg_origins *o, const struct mg_span *call)
{
    if (call->layer != MG_LAYER_driver || call->class_ != MG_CLASS_kernel || call->result || !call->correlation) return;
    uint32_t i = o->unused.n ? o->unused.at[--o->unused.n] : o->at.n;
    if (i == o->at.n) (void)mg_vec_push(&o->at);
    o->at.at[i] = (struct mg_origin){.begin_ns = call->begin_ns,
                                     .thread = call->thread,
                                     .stack = call->stack,
                                     .many = strstr(call->name, "Graph") || strstr(call->name, "MultiDevice")};
    mg_map_set(&o->by_number, mg_origin_key(call->process, call->correlation), i);
}

bool mg_origins_take(struct mg_origins *o, const struct mg_span *kernel, struct mg_origin *call)
{
    uint64_t i, key = mg_origin_key(kernel->process, kernel->correlation);
    if (!kernel->correlation || !mg_map_get(&o->by_number, key, &i)) return false;
    *call = o->at.at[i];
    if (!call->many) {
        mg_map_del(&o->by_number, key);
        *mg_vec_push(&o->unused) = (uint32_t)i;
    }
    return true;
}

void mg_origins_release(struct mg_origins *o)
{
    mg_map_release(&o->by_number);
    mg_vec_release(&o->at);
    mg_vec_release(&o->unused);
}
