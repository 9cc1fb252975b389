/* What all software devices share: names of faults. */
#include "device/device.h"

/* ORDER FAULT: device.h */
static const char *const fault_texts[] = {
    "no fault",
    "access outside live allocations",
    "misaligned access",
    "trap",
    "assertion failed",
    "deadlock",
    "time limit",
    "unsupported instruction",
    "call of no function",
    "stack exhausted",
    "out of memory",
    "cancelled",
};
_Static_assert(MG_COUNT_OF(fault_texts) == MG_FAULT_COUNT, "ORDER FAULT");

const char *mg_finding_kind_text(enum mg_finding_kind k)
{
    static const char *const texts[] = {"none", "race", "uninitialised", "barrier", "note"};
    _Static_assert(MG_COUNT_OF(texts) == MG_FINDING_COUNT, "a word for each");
    return (unsigned)k < MG_FINDING_COUNT ? texts[k] : "unknown";
}

const char *mg_fault_kind_text(enum mg_fault_kind k)
{
    return (unsigned)k < MG_FAULT_COUNT ? fault_texts[k] : "unknown fault";
}
