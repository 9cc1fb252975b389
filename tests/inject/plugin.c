/* A plugin that opens the driver itself; the client opens it with RTLD_DEEPBIND, so that its dlopen is
 * the C library's own. */
#define _GNU_SOURCE
#include <dlfcn.h>
void *plugin_open(const char *name);
void *plugin_find(void *handle, const char *name);
void *plugin_open(const char *name)
{
    return dlopen(name, RTLD_NOW);
}
void *plugin_find(void *handle, const char *name)
{
    return dlsym(handle, name);
}
