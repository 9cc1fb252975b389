/* When kernels are compiled: the plugin, and what is compiled for which block shape.
 *
 * A launch asks for its kernel's code and goes on at once in the emulator; a thread of ours compiles,
 * and warps go over to compiled code at their next entry (enter.c). Small kernels that are launched
 * once never wait for LLVM. MARGAY_CPU_TIER=sync makes the launch wait, for tests and measurements.
 */
#include "device/cpu/cpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define MAX_SETS 8 /* block shapes a kernel is compiled for; further ones are emulated */

struct cpu_job { struct cpu_set *set; const struct emu_code *code; };
struct cpu_tier {
    void *library;
    const struct cpu_plugin *plugin;
    void *jit;
    pthread_mutex_t lock;
    pthread_cond_t more, idle;
    MG_VEC(struct cpu_job) jobs;  /* waiting, first in first out */
    const struct emu_code *busy;  /* being compiled */
    pthread_t thread; bool started, quit, sync, verbose;
    pid_t pid;
};

/* ---- the plugin ----------------------------------------------------------------------------------------- */

#ifdef MG_ASAN /* its runtime does not allow RTLD_DEEPBIND */
#define OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL)
#else
#define OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
#endif

static void *try_path(const char *dir, const char *tail, char *tried, size_t bytes)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s%s", dir, tail);
    if (access(path, R_OK)) return NULL;
    void *h = dlopen(path, OPEN_FLAGS);
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

static void stop_thread(struct cpu_tier *t)
{
    if (!t->started || t->pid != getpid()) return;
    pthread_mutex_lock(&t->lock);
    t->quit = true;
    t->started = false;
    pthread_cond_broadcast(&t->more);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
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
    const char *tier = getenv("MARGAY_CPU_TIER");
    t->sync = tier && !strcmp(tier, "sync");
    t->verbose = getenv("MARGAY_CPU_VERBOSE") != NULL;
    t->pid = getpid();
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->more, NULL);
    pthread_cond_init(&t->idle, NULL);
    dev->compiler_own = t;
    return true;
}

void cpu_tier_close(struct mg_device *dev)
{
    struct cpu_tier *t = dev->compiler_own;
    if (!t) return;
    dev->compiler_own = NULL;
    stop_thread(t);
    t->plugin->close(t->jit);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->more);
    pthread_cond_destroy(&t->idle);
    mg_vec_release(&t->jobs);
    free(t); /* the library stays: LLVM does not like to be unloaded */
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

/* The kernel itself first: callees go on in the emulator until their turn comes. */
static void compile_set(struct cpu_tier *t, struct cpu_set *s)
{
    for (uint32_t i = 0; i < s->n_units && !t->quit; i++) compile(t, &s->units[i], s->dims);
}

static void *compile_jobs(void *arg)
{
    struct cpu_tier *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->quit) {
        if (!t->jobs.n) {
            pthread_cond_wait(&t->more, &t->lock);
            continue;
        }
        struct cpu_job j = t->jobs.at[0];
        memmove(t->jobs.at, t->jobs.at + 1, --t->jobs.n * sizeof *t->jobs.at);
        t->busy = j.code;
        pthread_mutex_unlock(&t->lock);
        compile_set(t, j.set);
        pthread_mutex_lock(&t->lock);
        t->busy = NULL;
        pthread_cond_broadcast(&t->idle);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static bool start_thread(struct cpu_tier *t)
{
    sigset_t all, old; /* the application's signals are not for our threads */
    if (t->started || t->quit) return t->started && t->pid == getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    t->started = !pthread_create(&t->thread, NULL, compile_jobs, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return t->started;
}

struct cpu_set *cpu_tier_set(struct mg_device *dev, struct emu_code *code, const uint32_t dims[3])
{
    struct cpu_tier *t = dev->compiler_own;
    uint32_t n = 0;
    if (!t) return NULL;
    pthread_mutex_lock(&t->lock);
    struct cpu_set *s;
    for (s = code->compiled; s && memcmp(s->dims, dims, sizeof s->dims); s = s->next) n++;
    if (!s && n < MAX_SETS && (s = calloc(1, sizeof *s))) {
        memcpy(s->dims, dims, sizeof s->dims);
        pthread_mutex_lock(&code->kernel->lock); /* indirect calls add functions while others run */
        s->n_units = code->funcs.n;
        s->units = calloc(s->n_units, sizeof *s->units);
        if (!s->units) s->n_units = 0;
        for (uint32_t i = 0; i < s->n_units; i++) s->units[i].fn = code->funcs.at[i];
        pthread_mutex_unlock(&code->kernel->lock);
        s->next = code->compiled;
        code->compiled = s;
        if (t->sync) compile_set(t, s);
        else if (start_thread(t)) {
            *mg_vec_push(&t->jobs) = (struct cpu_job){s, code};
            pthread_cond_signal(&t->more);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return s && s->n_units ? s : NULL;
}

void cpu_tier_forget(struct emu_code *code)
{
    struct cpu_tier *t = code->kernel->mod->dev->compiler_own;
    if (t) {
        pthread_mutex_lock(&t->lock);
        for (uint32_t i = 0; i < t->jobs.n;)
            if (t->jobs.at[i].code == code) memmove(&t->jobs.at[i], &t->jobs.at[i + 1], (--t->jobs.n - i) * sizeof *t->jobs.at);
            else i++;
        while (t->busy == code && t->pid == getpid()) pthread_cond_wait(&t->idle, &t->lock);
        pthread_mutex_unlock(&t->lock);
    }
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
