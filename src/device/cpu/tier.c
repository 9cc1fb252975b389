/* When kernels are compiled, and by whom.
 *
 * A launch begins in the emulator at once. When a kernel has been emulated for a while (1 ms, more for large
 * ones, which take LLVM longer), this launch and earlier ones together, its functions go into the queue, and threads of
 * ours take them: from the store where they were compiled in an earlier run, from LLVM otherwise. Warps go over to
 * compiled code at their next entry (enter.c), CTAs that have not begun run in it from the start. Kernels that are
 * launched once for a moment never see LLVM.
 *
 * MARGAY_CPU_TIER=sync compiles before a launch begins, a number is that while in milliseconds, for tests
 * and measurements.
 * MARGAY_CPU_VERBOSE says what was compiled. MARGAY_CPU_STORE=off leaves the store alone,
 * MARGAY_CPU_WHOLE=off runs CTAs warp by warp.
 */
#include "device/cpu/cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/io.h"
#include "base/thread.h"

#define MAX_SETS    8 /* block shapes a kernel is compiled for; further ones are emulated */
#define MAX_THREADS 8

struct cpu_job {
    struct cpu_set *set;
    uint32_t unit;
    uint64_t due_ns;
};
struct compiler { /* one thread of ours; or the launching one (sync) */
    struct cpu_tier *t;
    void *jit;                 /* opened when first needed */
    const struct emu_code *of; /* being compiled */
    pthread_t thread;
};
struct cpu_tier {
    struct mg_device *dev;
    struct cpu_library library;
    pthread_mutex_t lock;
    pthread_cond_t more, idle;
    MG_VEC(struct cpu_job) jobs; /* in the order of their due times */
    struct compiler threads[MAX_THREADS], here;
    uint32_t n_threads, max_threads, n_busy;
    bool quit, sync, verbose, store, whole, fixed_delay;
    uint64_t delay_ns;
    pid_t pid;
};

/* ---- compiling ------------------------------------------------------------------------------------------ */

static bool make_object(struct compiler *c, struct cpu_func *f, bool whole, void **object, size_t *bytes, bool *stored,
                        char *why, size_t why_bytes)
{
    struct cpu_tier *t = c->t;
    *stored = t->store && cpu_store_find(f, whole, t->library.maker, object, bytes);
    if (*stored && *bytes == CPU_NEVER) snprintf(why, why_bytes, "%s, as in a run before", (char *)*object);
    if (*stored) return *bytes != CPU_NEVER;
    const struct cpu_plugin *p = cpu_library_open(&t->library);
    if (!p) {
        snprintf(why, why_bytes, "%s", t->library.why);
        return false;
    }
    if (!c->jit && !(c->jit = p->open(t->dev->isa, why, why_bytes))) return false;
    bool ok = p->compile(c->jit, f, whole, object, bytes, why, why_bytes);
    if (t->store && (ok || *bytes == CPU_NEVER)) cpu_store_keep(f, whole, t->library.maker, ok ? *object : why, *bytes);
    return ok;
}

static bool compile_one(struct compiler *c, struct cpu_unit *u, bool whole, struct cpu_object *out)
{
    char why[600] = "";
    void *object = NULL;
    size_t bytes = 0;
    bool stored = false;
    uint64_t start = mg_now_ns();
    bool ok = make_object(c, u->f, whole, &object, &bytes, &stored, why, sizeof why) &&
              cpu_object_load(object, bytes, out, why, sizeof why);
    free(object);
    if (c->t->verbose)
        fprintf(stderr, "margay cpu: %s for %ux%ux%u, %s: %s%s, %.1f ms\n", u->fn->code->kernel->name, u->f->dims[0],
                u->f->dims[1], u->f->dims[2], whole ? "whole CTAs" : "warps",
                !ok      ? "emulated: "
                : stored ? "from the store"
                         : "compiled",
                ok ? "" : why, (double)(mg_now_ns() - start) * 1e-6);
    return ok;
}

/* Code for whole CTAs first: often it is all that runs. */
static void compile(struct compiler *c, struct cpu_set *s, uint32_t ix)
{
    struct cpu_unit *u = &s->units[ix], *kernel = &s->units[0];
    char why[600] = "";
    if (ix && atomic_load_explicit(&kernel->code, memory_order_acquire) && cpu_calls_pure(kernel->f, u->fn)) return;
    u->f = cpu_lower(u->fn, s->dims, why, sizeof why);
    if (!u->f) {
        if (c->t->verbose) fprintf(stderr, "margay cpu: %s: emulated: %s\n", u->fn->code->kernel->name, why);
        return;
    }
    if (u->f->region.wanted && c->t->whole && compile_one(c, u, true, &u->whole_object))
        atomic_store_explicit(&u->whole, u->whole_object.fn, memory_order_release);
    if (compile_one(c, u, false, &u->object)) atomic_store_explicit(&u->code, u->object.fn, memory_order_release);
}

/* ---- the queue ------------------------------------------------------------------------------------------ */

static void wait_until(struct cpu_tier *t, uint64_t due_ns)
{
    struct timespec at = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
    pthread_cond_timedwait(&t->more, &t->lock, &at);
}

static void *compile_jobs(void *arg)
{
    struct compiler *c = arg;
    struct cpu_tier *t = c->t;
    pthread_mutex_lock(&t->lock);
    while (!t->quit) {
        if (!t->jobs.n) {
            pthread_cond_wait(&t->more, &t->lock);
            continue;
        }
        struct cpu_job j = t->jobs.at[0];
        if (j.due_ns > mg_now_ns()) {
            wait_until(t, j.due_ns);
            continue;
        }
        memmove(t->jobs.at, t->jobs.at + 1, --t->jobs.n * sizeof *t->jobs.at);
        c->of = j.set->of;
        t->n_busy++;
        pthread_mutex_unlock(&t->lock);
        compile(c, j.set, j.unit);
        pthread_mutex_lock(&t->lock);
        t->n_busy--;
        c->of = NULL;
        pthread_cond_broadcast(&t->idle);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* One more thread where all have work. */
static void add_thread(struct cpu_tier *t)
{
    if (t->quit || t->pid != getpid() || t->n_threads == t->max_threads || t->n_threads > t->n_busy + t->jobs.n - 1)
        return;
    struct compiler *c = &t->threads[t->n_threads];
    c->t = t;
    if (mg_thread_start(compile_jobs, c, 0, &c->thread)) t->n_threads++;
}

/* The kernel itself first: callees go on in the emulator until their turn comes. */
static void ask(struct cpu_tier *t, struct cpu_set *s, uint64_t due_ns)
{
    s->asked = true;
    for (uint32_t i = 0; i < s->n_units; i++) {
        uint32_t at = t->jobs.n;
        mg_vec_push(&t->jobs);
        for (; at && t->jobs.at[at - 1].due_ns > due_ns; at--) t->jobs.at[at] = t->jobs.at[at - 1];
        t->jobs.at[at] = (struct cpu_job){s, i, due_ns};
        add_thread(t);
    }
    pthread_cond_broadcast(&t->more);
}

/* Takes jobs of a set (or of all sets of some code) back. */
static bool withdraw(struct cpu_tier *t, const struct cpu_set *s, const struct emu_code *of, uint64_t due_after_ns)
{
    uint32_t n = 0, before = t->jobs.n;
    for (uint32_t i = 0; i < before; i++) {
        const struct cpu_job *j = &t->jobs.at[i];
        if ((j->set != s && j->set->of != of) || j->due_ns <= due_after_ns) t->jobs.at[n++] = *j;
    }
    t->jobs.n = n;
    return n < before;
}

/* How long a kernel is emulated before it is compiled: about the share of the compiler's time that pays in
 * the end. Compiling takes 10 ms for 100 operations, seconds for 1,000. */
static uint64_t patience(const struct cpu_tier *t, const struct cpu_set *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n_units; i++) n += s->units[i].fn->n_ops;
    return t->fixed_delay ? t->delay_ns : 1000000u + 200u * n * n;
}

/* ---- launches ------------------------------------------------------------------------------------------- */

static struct cpu_set *set_of(struct emu_code *code, const uint32_t dims[3])
{
    uint32_t n = 0;
    struct cpu_set *s;
    for (s = code->compiled; s; s = s->next, n++)
        if (!memcmp(s->dims, dims, sizeof s->dims)) return s;
    if (n == MAX_SETS || !(s = calloc(1, sizeof *s))) return NULL;
    memcpy(s->dims, dims, sizeof s->dims);
    s->of = code;
    pthread_mutex_lock(&code->kernel->lock); /* indirect calls add functions while others run */
    s->n_units = code->funcs.n;
    s->units = calloc(s->n_units, sizeof *s->units);
    for (uint32_t i = 0; s->units && i < s->n_units; i++) s->units[i].fn = code->funcs.at[i];
    pthread_mutex_unlock(&code->kernel->lock);
    if (!s->units) {
        free(s);
        return NULL;
    }
    s->next = code->compiled;
    code->compiled = s;
    return s;
}

struct cpu_set *cpu_tier_begin(struct emu_launch *l)
{
    const uint32_t dims[3] = {l->l->block.x, l->l->block.y, l->l->block.z};
    struct cpu_tier *t = l->dev->compiler_own;
    pthread_mutex_lock(&t->lock);
    struct cpu_set *s = set_of(l->code, dims);
    if (s) s->running++;
    if (s && !s->asked && t->sync) {
        s->asked = true;
        t->here.t = t;
        for (uint32_t i = 0; i < s->n_units; i++) compile(&t->here, s, i);
    } else if (s && !s->asked)
        ask(t, s, mg_now_ns() + (s->emulated_ns < patience(t, s) ? patience(t, s) - s->emulated_ns : 0));
    pthread_mutex_unlock(&t->lock);
    return s;
}

void cpu_tier_end(struct emu_launch *l)
{
    struct cpu_tier *t = l->dev->compiler_own;
    struct cpu_set *s = l->compiled;
    uint64_t now = mg_now_ns();
    pthread_mutex_lock(&t->lock);
    s->running--;
    s->emulated_ns += now - l->start_ns;
    if (!s->running && s->emulated_ns < patience(t, s) && withdraw(t, s, NULL, now)) s->asked = false;
    pthread_mutex_unlock(&t->lock);
}

static bool is_busy_with(const struct cpu_tier *t, const struct emu_code *code)
{
    for (uint32_t i = 0; i < t->n_threads; i++)
        if (t->threads[i].of == code) return true;
    return false;
}

void cpu_tier_forget(struct emu_code *code)
{
    struct cpu_tier *t = code->kernel->mod->dev->compiler_own;
    if (t) {
        pthread_mutex_lock(&t->lock);
        withdraw(t, NULL, code, 0);
        while (is_busy_with(t, code) && t->pid == getpid()) pthread_cond_wait(&t->idle, &t->lock);
        pthread_mutex_unlock(&t->lock);
    }
    for (struct cpu_set *s = code->compiled, *next; s; s = next) {
        next = s->next;
        for (uint32_t i = 0; i < s->n_units; i++) {
            cpu_object_free(&s->units[i].object);
            cpu_object_free(&s->units[i].whole_object);
            cpu_func_free(s->units[i].f);
        }
        free(s->units);
        free(s);
    }
    code->compiled = NULL;
}

/* ---- start and end -------------------------------------------------------------------------------------- */

bool cpu_tier_open(struct mg_device *dev, struct mg_diag *d)
{
    struct cpu_tier *t = calloc(1, sizeof *t);
    char why[400] = "host memory ran out";
    if (!t || !cpu_library_find(&t->library, why, sizeof why)) {
        mg_diag_err(d, MG_ERR_UNSUPPORTED, "no CPU device: %s", why);
        free(t);
        return false;
    }
    const char *tier = mg_env(MG_ENV_CPU_TIER);
    t->dev = dev;
    t->sync = mg_env_is(MG_ENV_CPU_TIER, "sync");
    t->fixed_delay = tier && !t->sync;
    if (t->fixed_delay) t->delay_ns = strtoul(tier, NULL, 10) * 1000000u;
    t->store = !mg_env_is(MG_ENV_CPU_STORE, "off");
    t->whole = !mg_env_is(MG_ENV_CPU_WHOLE, "off");
    t->verbose = mg_env_is(MG_ENV_CPU_VERBOSE, "1");
    t->max_threads = MG_MIN(MG_MAX(dev->n_workers / 2, 1), MAX_THREADS);
    t->pid = getpid();
    pthread_condattr_t clock; /* mg_now_ns */
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->more, &clock);
    pthread_cond_init(&t->idle, NULL);
    pthread_condattr_destroy(&clock);
    dev->compiler_own = t;
    return true;
}

void cpu_tier_close(struct mg_device *dev)
{
    struct cpu_tier *t = dev->compiler_own;
    if (!t) return;
    dev->compiler_own = NULL;
    if (t->pid == getpid()) { /* a forked child has no such threads */
        pthread_mutex_lock(&t->lock);
        t->quit = true;
        pthread_cond_broadcast(&t->more);
        pthread_mutex_unlock(&t->lock);
        for (uint32_t i = 0; i < t->n_threads; i++) pthread_join(t->threads[i].thread, NULL);
    }
    for (uint32_t i = 0; i < t->n_threads; i++)
        if (t->threads[i].jit) t->library.plugin->close(t->threads[i].jit);
    if (t->here.jit) t->library.plugin->close(t->here.jit);
    pthread_mutex_destroy(&t->library.lock);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->more);
    pthread_cond_destroy(&t->idle);
    mg_vec_release(&t->jobs);
    free(t);
}
