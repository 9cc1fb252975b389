/* Orders of plain numbers, for qsort. */
#ifndef MG_BASE_ORDER_H
#define MG_BASE_ORDER_H

#include <stdint.h>

#define MG_ORDER(name, type)                                                                                           \
    static inline int name(const void *a, const void *b)                                                               \
    {                                                                                                                  \
        type x = *(const type *)a, y = *(const type *)b;                                                               \
        return x < y ? -1 : x > y;                                                                                     \
    }
MG_ORDER(mg_by_u32, uint32_t)
MG_ORDER(mg_by_u64, uint64_t)
MG_ORDER(mg_by_double, double)
#undef MG_ORDER

#endif
