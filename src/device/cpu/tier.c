/* When kernels are compiled: the plugin, and what is compiled for which block shape. */
#include "device/cpu/cpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define MAX_SETS 8 /* block shapes a kernel is compiled for; further ones are emulated */

struct cpu_tier {
    void *library;
    const struct cpu_plugin *plugin;
    void *jit;
    pthread_mutex_t lock;
    bool verbose;
};

/* ---- the plugin ----------------------------------------------------------------------------------------- */

static void *try_path(const char *dir, const char *tail, char *tried, size_t bytes)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s%s", dir, tail);
    if (access(path, R_OK)) return NULL;
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!h) snprintf(tried, bytes, "%s", dlerror());
    return h;
}

static void *open_library(char *why, size_t bytes)
{
    const char *wish = getenv("MARGAY_CPU_PLUGIN");
    Dl_info info;
    char dir[PATH_MAX];
    snprintf(why, bytes, "libmargay-cpu.so is not installed: it needs llvm-19-dev when Margay is built");
    if (wish) return try_path(wish, "", why, bytes);
    if (!dladdr((void *)(uintptr_t)open_library, &info) || !realpath(info.dli_fname, dir)) {
        ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
        if (n <= 0) return NULL;
        dir[n] = 0;
    }
    char *slash = strrchr(dir, '/');
    if (slash) *slash = 0;
    void *h = try_path(dir, "/../libmargay-cpu.so", why, bytes); /* beside lib/margay/driver */
    return h ? h : try_path(dir, "/../lib/margay/libmargay-cpu.so", why, bytes);
}

bool cpu_tier_open(struct mg_device *dev, struct mg_diag *d)
{
    struct cpu_tier *t = calloc(1, sizeof *t);
    char why[600];
    if (!t) return false;
    t->library = open_library(why, sizeof why);
    cpu_plugin_fn get = NULL;
    if (t->library) {
        void *sym = dlsym(t->library, "mg_cpu_plugin");
        memcpy(&get, &sym, sizeof get);
    }
    if (get) t->plugin = get();
    if (t->plugin && t->plugin->version != CPU_PLUGIN_VERSION) {
        snprintf(why, sizeof why, "libmargay-cpu.so is of another build");
        t->plugin = NULL;
    }
    if (t->plugin) t->jit = t->plugin->open(dev->isa, why, sizeof why);
    if (!t->jit) {
        mg_diag_err(d, MG_ERR_UNSUPPORTED, "no CPU device: %s", why);
        free(t);
        return false;
    }
    t->verbose = getenv("MARGAY_CPU_VERBOSE") != NULL;
    pthread_mutex_init(&t->lock, NULL);
    dev->compiler_own = t;
    return true;
}

void cpu_tier_close(struct mg_device *dev)
{
    struct cpu_tier *t = dev->compiler_own;
    if (!t) return;
    t->plugin->close(t->jit);
    pthread_mutex_destroy(&t->lock);
    free(t); /* the library stays: LLVM does not like to be unloaded */
    dev->compiler_own = NULL;
}

/* ---- kernels -------------------------------------------------------------------------------------------- */

static void compile(struct cpu_tier *t, struct cpu_unit *u, const uint32_t dims[3])
{
    char why[600] = "";
    uint64_t start = mg_now_ns();
    u->f = cpu_lower(u->fn, dims, why, sizeof why);
    bool ok = u->f && t->plugin->compile(t->jit, u->f, &u->object, why, sizeof why);
    if (ok) atomic_store_explicit(&u->code, u->object.fn, memory_order_release);
    if (t->verbose)
        fprintf(stderr, "margay cpu: %s for %ux%ux%u: %s%s, %.1f ms\n", u->fn->code->kernel->name, dims[0], dims[1], dims[2], ok ? "compiled" : "emulated: ", ok ? "" : why,
                (double)(mg_now_ns() - start) * 1e-6);
}

struct cpu_set *cpu_tier_set(struct mg_device *dev, struct emu_code *code, const uint32_t dims[3])
{
    struct cpu_tier *t = dev->compiler_own;
    uint32_t n = 0;
    pthread_mutex_lock(&t->lock);
    struct cpu_set *s;
    for (s = code->compiled; s && memcmp(s->dims, dims, sizeof s->dims); s = s->next) n++;
    if (!s && n < MAX_SETS && (s = calloc(1, sizeof *s))) {
        memcpy(s->dims, dims, sizeof s->dims);
        s->n_units = code->funcs.n;
        s->units = calloc(s->n_units, sizeof *s->units);
        for (uint32_t i = 0; s->units && i < s->n_units; i++) {
            s->units[i].fn = code->funcs.at[i];
            compile(t, &s->units[i], dims);
        }
        if (!s->units) s->n_units = 0;
        s->next = code->compiled;
        code->compiled = s;
    }
    pthread_mutex_unlock(&t->lock);
    return s;
}

void cpu_tier_forget(struct emu_code *code)
{
    struct cpu_tier *t = code->kernel->mod->dev->compiler_own;
    for (struct cpu_set *s = code->compiled, *next; s; s = next) {
        next = s->next;
        for (uint32_t i = 0; i < s->n_units; i++) {
            if (t && atomic_load(&s->units[i].code)) t->plugin->release(t->jit, &s->units[i].object);
            cpu_func_free(s->units[i].f);
        }
        free(s->units);
        free(s);
    }
    code->compiled = NULL;
}
