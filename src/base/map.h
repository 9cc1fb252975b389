/* Hash map from uint64 to uint64. Pointers and ids fit; keys of text go through an intern table. */
#ifndef MG_BASE_MAP_H
#define MG_BASE_MAP_H

#include "base/compiler.h"

struct mg_map {
    uint64_t *slots; /* pairs key, value */
    uint8_t *used;
    uint32_t n, cap; /* cap is a power of two */
};
#define MG_MAP_INIT                                                                                                    \
    {                                                                                                                  \
        0                                                                                                              \
    }
void mg_map_release(struct mg_map *m);
bool mg_map_get(const struct mg_map *m, uint64_t key, uint64_t *value); /* value may be NULL */
void mg_map_set(struct mg_map *m, uint64_t key, uint64_t value);
bool mg_map_del(struct mg_map *m, uint64_t key);
/* for (uint32_t i = 0; mg_map_next(&m, &i, &k, &v);) in no useful order: sort before printing. */
bool mg_map_next(const struct mg_map *m, uint32_t *i, uint64_t *key, uint64_t *value);

#endif
