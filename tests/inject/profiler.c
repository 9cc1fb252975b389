/* Stands in for dlvsym as a profiler does that is preloaded in front: whoever asks it for the C library's
 * dlopen or dlsym gets the next library's, which is Margay's own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

void *dlvsym(void *handle, const char *name, const char *version)
{
    (void)handle, (void)version;
    if (!strcmp(name, "dlsym"))
        return (void *)dlsym;
    if (!strcmp(name, "dlopen"))
        return (void *)dlopen;
    return strcmp(name, "dlmopen") ? NULL : (void *)dlmopen;
}
