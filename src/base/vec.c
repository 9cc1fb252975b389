/* Growth of the arrays of vec.h. */
#include "base/vec.h"

void *mg_vec_grow(void *at, uint32_t *cap, uint32_t need, size_t elem_bytes)
{
    uint64_t room = *cap ? (uint64_t)*cap + *cap / 2 : 16;
    if (room < need) room = need;
    if (room > UINT32_MAX) room = UINT32_MAX;
    mg_assert(room >= need);
    *cap = (uint32_t)room;
    return mg_xrealloc(at, (size_t)room * elem_bytes);
}
