/* The plugin and with it LLVM: found by its place beside ours, opened when the first function is to be
 * compiled and not before, in a namespace of its own; never closed, which LLVM does not like. */
#include "device/cpu/cpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "cpu_maker.h"

#ifdef MG_SANITIZER /* their runtimes do not allow RTLD_DEEPBIND */
#define OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL)
#else
#define OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
#endif

static bool is_there(struct cpu_library *lib, const char *dir, const char *tail)
{
    int n = snprintf(lib->path, sizeof lib->path, "%s%s", dir, tail);
    return n < (int)sizeof lib->path && !access(lib->path, R_OK);
}

static bool find_path(struct cpu_library *lib)
{
    const char *wish = mg_env(MG_ENV_CPU_PLUGIN);
    Dl_info info;
    char dir[PATH_MAX];
    if (wish) return is_there(lib, wish, "");
    if (!dladdr((void *)(uintptr_t)find_path, &info) || !realpath(info.dli_fname, dir)) {
        ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
        if (n <= 0) return false;
        dir[n] = 0;
    }
    char *slash = strrchr(dir, '/');
    if (slash) *slash = 0;
    return is_there(lib, dir, "/../libmargay-cpu.so") /* beside lib/margay/driver */ ||
           is_there(lib, dir, "/../lib/margay/libmargay-cpu.so");
}

bool cpu_library_find(struct cpu_library *lib, char *why, size_t why_bytes)
{
    if (!find_path(lib)) {
        snprintf(why, why_bytes, "libmargay-cpu.so is not installed: it needs llvm-19-dev when Margay is built");
        return false;
    }
    const char *passes = mg_env(MG_ENV_CPU_PASSES), *level = mg_env(MG_ENV_CPU_CODEGEN);
    snprintf(lib->maker, sizeof lib->maker, CPU_MAKER " %.40s %.8s", passes ? passes : "", level ? level : "");
    pthread_mutex_init(&lib->lock, NULL);
    return true;
}

/* A library that is opened while the process ends would initialise again what has ended already: nothing is
 * opened any more once our own end has come, which waits for what is being opened. */
static atomic_bool ending;
static atomic_int opener; /* the process one of whose threads is opening it: a fork's child waits for nobody */

__attribute__((destructor)) static void open_no_more(void)
{
    atomic_store(&ending, true);
    while (atomic_load(&opener) == getpid()) usleep(1000);
}

const struct cpu_plugin *cpu_library_open(struct cpu_library *lib)
{
    pthread_mutex_lock(&lib->lock);
    atomic_store(&opener, getpid());
    if (!lib->plugin && atomic_load(&ending))
        snprintf(lib->why, sizeof lib->why, "the process ends");
    else if (!lib->plugin && !lib->failed) {
        void *h = dlopen(lib->path, OPEN_FLAGS), *sym = h ? dlsym(h, "mg_cpu_plugin") : NULL;
        cpu_plugin_fn get;
        memcpy(&get, &sym, sizeof get);
        if (!sym)
            snprintf(lib->why, sizeof lib->why, "%s", dlerror());
        else
            lib->plugin = get();
        if (lib->plugin && lib->plugin->version != CPU_PLUGIN_VERSION) {
            snprintf(lib->why, sizeof lib->why, "%.300s is of another build", lib->path);
            lib->plugin = NULL;
        }
        lib->failed = !lib->plugin;
    }
    atomic_store(&opener, 0);
    pthread_mutex_unlock(&lib->lock);
    return lib->plugin;
}
