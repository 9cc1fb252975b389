/* Growable array on the heap: `MG_VEC(struct foo) v = {0}; *mg_vec_push(&v) = x; v.at[i]; v.n`.
 * Elements move when it grows: keep indices, not pointers. */
#ifndef MG_BASE_VEC_H
#define MG_BASE_VEC_H

#include <stdlib.h>

#include "base/arena.h"

#define MG_VEC(T)                                                                                                      \
    struct {                                                                                                           \
        T *at;                                                                                                         \
        uint32_t n, cap;                                                                                               \
    }
void *mg_vec_grow(void *at, uint32_t *cap, uint32_t need, size_t elem_bytes);
#define mg_vec_reserve(v, need)                                                                                        \
    ((need) <= (v)->cap ? (void)0 : (void)((v)->at = mg_vec_grow((v)->at, &(v)->cap, (need), sizeof *(v)->at)))
/* Address of a new last element, not initialised. */
#define mg_vec_push(v)    (mg_vec_reserve((v), (v)->n + 1), &(v)->at[(v)->n++])
#define mg_vec_release(v) (free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

#endif
