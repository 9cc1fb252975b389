#include "abi/calls.h"

#include <string.h>

#include "abi/cu.h"
#include "base/compiler.h"
#include "base/search.h"

enum {
#define CALL(base, class_, waits, opencl) call_##base,
#define ARGUMENTS(name, letters)
#define WORK(base, work, direction, size, times, unit)
#include "abi/calls.def"
#undef CALL
#undef ARGUMENTS
#undef WORK
};
static const struct mg_cu_call calls[] = {
#define CALL(base, class_, waits, opencl) {#base, MG_CLASS_##class_, MG_WAITS_##waits, opencl},
#define ARGUMENTS(name, letters)
#define WORK(base, work, direction, size, times, unit)
#include "abi/calls.def"
#undef CALL
#undef ARGUMENTS
#undef WORK
};
static const uint16_t call_of[] = {
#define ENTRY(name, base, since, per_thread) call_##base,
#include "abi/entries.def"
#undef ENTRY
};
enum {
#define ENTRY(name, base, since, per_thread) entry_##name,
#include "abi/entries.def"
#undef ENTRY
};
static const char *const arguments[] = {
#define CALL(base, class_, waits, opencl)
#define WORK(base, work, direction, size, times, unit)
#define ARGUMENTS(name, letters) [entry_##name] = letters,
#include "abi/calls.def"
#undef CALL
#undef ARGUMENTS
#undef WORK
};
_Static_assert(MG_COUNT_OF(arguments) == MG_COUNT_OF(call_of), "a row of ARGUMENTS for the last entry");

static const struct mg_call_work works[] = {
#define CALL(base, class_, waits, opencl)
#define ARGUMENTS(name, letters)
#define WORK(base, work, direction, size, times, unit)                                                                 \
    [call_##base] = {MG_DOES_##work, MG_MOVES_##direction, size, times, unit},
#include "abi/calls.def"
#undef CALL
#undef ARGUMENTS
#undef WORK
};

static const char *const classes[] = {"kernel", "copy",   "memset", "memory", "synchronisation",
                                      "event",  "stream", "graph",  "module", "other"};
_Static_assert(MG_COUNT_OF(classes) == MG_CLASS_COUNT, "ORDER CLASSES");
static const char *const waits_names[] = {"nothing", "stream", "event", "context", "copy", "pageable"};
_Static_assert(MG_COUNT_OF(waits_names) == MG_WAITS_COUNT, "ORDER WAITS");

const struct mg_cu_call *mg_call_of_entry(uint32_t entry)
{
    return &calls[call_of[entry]];
}

const struct mg_call_work *mg_call_work(uint32_t entry)
{
    uint32_t call = call_of[entry];
    return call < MG_COUNT_OF(works) && works[call].does ? &works[call] : NULL;
}

const struct mg_cu_call *mg_call_find(const char *base)
{
    uint32_t k; /* ORDER CALLS: sorted by name */
    MG_FIND_FIRST(k, MG_COUNT_OF(calls), strcmp(calls[k].base, base) < 0);
    return k < MG_COUNT_OF(calls) && !strcmp(calls[k].base, base) ? &calls[k] : NULL;
}

const char *mg_call_arguments(uint32_t entry)
{
    return arguments[entry] ? arguments[entry] : "?";
}

enum mg_call_class mg_runtime_class(const char *name)
{
    static const struct {
        const char *begin;
        enum mg_call_class class_;
    } rules[] = {
    /* the first that fits */
#define RUNTIME(begin, class_) {begin, MG_CLASS_##class_},
#include "abi/runtime_calls.def"
#undef RUNTIME
    };
    for (uint32_t i = 0; i < MG_COUNT_OF(rules); i++)
        if (!strncmp(name, rules[i].begin, strlen(rules[i].begin))) return rules[i].class_;
    return MG_CLASS_other;
}

const char *mg_call_class_name(enum mg_call_class c)
{
    return classes[c];
}

const char *mg_call_waits_name(enum mg_call_waits w)
{
    return waits_names[w];
}

int mg_call_class_find(const char *name, size_t bytes)
{
    for (int i = 0; i < MG_CLASS_COUNT; i++)
        if (strlen(classes[i]) == bytes && !memcmp(classes[i], name, bytes)) return i;
    return -1;
}
