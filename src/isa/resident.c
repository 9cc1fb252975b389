#include "isa/resident.h"

#include <stddef.h>

#include "base/compiler.h"

static const struct mg_sm_limits limits[] = {
    {70, 64, 32, 98304},  {75, 32, 16, 65536},  {80, 64, 32, 167936},  {86, 48, 16, 102400},  {87, 48, 16, 167936},
    {89, 48, 24, 102400}, {90, 64, 32, 233472}, {100, 64, 32, 233472}, {120, 48, 24, 102400},
};

const struct mg_sm_limits *mg_sm_limits(uint32_t sm)
{
    const struct mg_sm_limits *found = limits;
    for (size_t i = 0; i < MG_COUNT_OF(limits) && limits[i].sm <= sm; i++) found = &limits[i];
    return found;
}

uint32_t mg_resident_ctas(const struct mg_sm_limits *of, uint32_t warps, uint32_t registers, uint64_t shared_bytes,
                          const char **limit)
{
    uint32_t most = of->warps / MG_MAX(warps, 1u);
    *limit = "threads";
    if (of->ctas < most) most = of->ctas, *limit = "CTAs";
    if (registers) { /* given out to warps by 256 */
        uint32_t by_registers = 65536 / ((registers * 32 + 255) / 256 * 256) / MG_MAX(warps, 1u);
        if (by_registers < most) most = by_registers, *limit = "registers";
    }
    uint64_t each = shared_bytes ? shared_bytes + 1024 : 0; /* the system's part */
    if (each && of->shared_bytes / each < most) most = (uint32_t)(of->shared_bytes / each), *limit = "shared memory";
    return MG_MAX(most, 1u);
}
