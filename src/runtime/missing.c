/* One weak definition for every exported name: it answers cudaErrorNotSupported and names the call
 * once. Where the runtime implements a name, the strong definition of another file replaces it. So
 * every program that links or looks up a public name finds it, and none is answered silently. */
#include "runtime/priv.h"

#define RT_EXPORT(name)                                                                                                \
    __attribute__((weak)) RT_VISIBLE cudaError_t name(void);                                                           \
    __attribute__((weak)) RT_VISIBLE cudaError_t name(void)                                                            \
    {                                                                                                                  \
        return mg_rt_missing(#name);                                                                                   \
    }
#include "runtime/exports.def"
