/* The LD_AUDIT library of `margay run --audit`: every search of the dynamic loader for the driver
 * ends in libmargay, also where preloading does not reach: absolute paths and "libcuda.so" inside
 * plugins opened with RTLD_DEEPBIND. It lives in its own namespace and knows the launcher's
 * environment only: MARGAY_SHIM (our libcuda), MARGAY_CUDART (our runtime, software devices only)
 * and MARGAY_REAL (the driver that our libcuda itself opens). Symbol bindings are not audited, so
 * calls cost nothing. */
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned la_version(unsigned version);
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag);

unsigned la_version(unsigned version)
{
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

static int is_library(const char *name, const char *want)
{
    const char *base = strrchr(name, '/');
    size_t n = strlen(want);
    base = base ? base + 1 : name;
    return !strncmp(base, want, n) && (!base[n] || base[n] == '.');
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    (void)cookie;
    const char *real = getenv("MARGAY_REAL"), *to = NULL;
    if (flag == LA_SER_ORIG && !(real && !strcmp(name, real))) {
        if (is_library(name, "libcuda.so"))
            to = getenv("MARGAY_SHIM");
        else if (is_library(name, "libcudart.so.13"))
            to = getenv("MARGAY_CUDART");
    }
    return (char *)(to ? to : name);
}
