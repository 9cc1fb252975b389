/* Which options of the driver's compiler change the code that it makes. The others are places for what it says. */
#ifndef MG_ABI_JIT_H
#define MG_ABI_JIT_H

#include <stdbool.h>

#include "abi/cu.h"

static inline bool mg_cu_jit_changes_code(int option)
{
    switch (option) {
    case CUJIT_MAX_REGISTERS:
    case CUJIT_OPTIMIZATION_LEVEL:
    case CUJIT_FTZ:
    case CUJIT_PREC_DIV:
    case CUJIT_PREC_SQRT:
    case CUJIT_FMA:
    case CUJIT_GENERATE_DEBUG_INFO:
    case CUJIT_GENERATE_LINE_INFO:
    case CUJIT_MIN_CTA_PER_SM:
        return true;
    default:
        return false;
    }
}

#endif
