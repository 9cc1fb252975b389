/* See driver.h. */
#include "tau/driver.h"

#include <dlfcn.h>
#include <pthread.h>

static struct tau_driver calls;
static bool found;

static void find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    found = true;
#define X(name, args) found = (calls.name = (cu_result(*) args)dlsym(library, #name)) && found;
    TAU_DRIVER_CALLS(X)
#undef X
    if (found) calls.cuInit(0);
}

const struct tau_driver *tau_driver(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_driver);
    return found ? &calls : NULL;
}
