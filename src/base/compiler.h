/* Compiler attributes, the only place that spells them. */
#ifndef MG_BASE_COMPILER_H
#define MG_BASE_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MG_PRINTF(fmt_ix, arg_ix) __attribute__((format(printf, fmt_ix, arg_ix)))
#define MG_MUST_CHECK             __attribute__((warn_unused_result))
#define MG_NORETURN               __attribute__((noreturn))
#define MG_INLINE                 inline __attribute__((always_inline))
#define MG_NOINLINE               __attribute__((noinline))
#define MG_HIDDEN                 __attribute__((visibility("hidden")))
#define MG_EXPORT                 __attribute__((visibility("default")))
#define MG_UNUSED                 __attribute__((unused))
#define MG_LIKELY(x)              __builtin_expect(!!(x), 1)
#define MG_UNLIKELY(x)            __builtin_expect(!!(x), 0)
#define MG_COUNT_OF(a)            (sizeof(a) / sizeof((a)[0]))
#define MG_MIN(a, b)              ((a) < (b) ? (a) : (b))
#define MG_MAX(a, b)              ((a) > (b) ? (a) : (b))

/* Our own bug: say where and abort. Input errors never come here. */
MG_NORETURN void mg_panic(const char *file, int line, const char *what);
#define mg_assert(c)     (MG_LIKELY(c) ? (void)0 : mg_panic(__FILE__, __LINE__, #c))
#define mg_unreachable() mg_panic(__FILE__, __LINE__, "unreachable")

#endif
