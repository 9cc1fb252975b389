/* Stands in for dlvsym as a profiler does that is preloaded in front: whoever asks it for the C library's
 * dlopen or dlsym gets the next library's, which is Margay's own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef OPENS
void *dlvsym(void *handle, const char *name, const char *version)
{
    (void)handle, (void)version;
    if (!strcmp(name, "dlsym")) return (void *)dlsym;
    if (!strcmp(name, "dlopen")) return (void *)dlopen;
    return strcmp(name, "dlmopen") ? NULL : (void *)dlmopen;
}
#endif

/* OPENS: in `margay` itself it has loaded the driver ($DRIVER) and gives itself to whoever opens that. */
#ifdef OPENS
static void *(*open_next)(const char *, int);

static int is_launcher(void)
{
    return !strcmp(program_invocation_short_name, "margay");
}
__attribute__((constructor)) static void load(void)
{
    *(void **)&open_next = dlsym(RTLD_NEXT, "dlopen");
    if (is_launcher()) open_next(getenv("DRIVER"), RTLD_NOW);
}
void *dlopen(const char *name, int flags)
{
    Dl_info self;
    const char *base = name ? strrchr(name, '/') : NULL;
    base = base ? base + 1 : name;
    return open_next(base && is_launcher() && !strncmp(base, "libcuda.so", 10) && dladdr((void *)load, &self)
                         ? self.dli_fname
                         : name,
                     flags);
}
#endif
