/* Sorting by a number: what it belongs to is an index. Equal keys stay in their order. */
#ifndef MG_BASE_SORT_H
#define MG_BASE_SORT_H

#include "base/compiler.h"

struct mg_sort_key {
    uint64_t key;
    uint32_t ix;
};
/* room: as many again, for use inside. */
void mg_sort_keys(struct mg_sort_key *at, struct mg_sort_key *room, uint32_t n);

#endif
