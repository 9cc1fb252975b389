/* NVIDIA's driver as a backend: opened by the path that the launcher found, with its own calls to
 * itself kept inside (RTLD_DEEPBIND; sanitizers cannot live with that flag). Every call is passed
 * on; nothing is instrumented through it in this version, and every launch says so. */
#include "inject/priv.h"

#include <dlfcn.h>
#include <stdlib.h>

static void *driver;

static bool open_real(const struct mg_config *c)
{
    int flags = RTLD_NOW | RTLD_LOCAL;
#ifndef MG_ASAN
    flags |= RTLD_DEEPBIND;
#endif
    driver = dlopen(c->real ? c->real : "/usr/lib/x86_64-linux-gnu/libcuda.so.1", flags);
    if (!driver)
        mg_session_say("the NVIDIA driver cannot be opened: %s", dlerror());
    return driver != NULL;
}

static void *real_symbol(const char *name)
{
    return driver ? dlsym(driver, name) : NULL;
}

const struct mg_backend mg_backend_nvidia = {
    .kind = "nvidia",
    .cannot = "nvidia device: not in this version",
    .open = open_real,
    .symbol = real_symbol,
};
