/* Kernels that are likely to be launched soon are assembled before they are: when the first kernel of an image is
 * wanted, others of it follow, side by side, on threads of ours, into the cache; their launches find them there, or
 * wait for who is at it (nv_jit.c).
 *
 *   a kernel's first launch ─► the maker: texts one after the other, as for any launch ─► a thread for each: cuLink
 *
 * Bounds: the program keeps a processor; texts under way, and those that were assembled and not asked for, have so many
 * bytes together, and what a program uses of them it may have once more. A text that the cache has says that the
 * program has run before: nothing is done then. Nothing is loaded, and no call of the driver's is made but the
 * linker's.
 *
 * The linker cannot be stopped. A process that exits beside it crashes in three of eight cases (H200, CUDA 13.0: what
 * the compiler's destructors free is in use), so exit waits for what is under way, by a handler that runs before those
 * destructors: registered when the compiler is there. Ways out without handlers wait for nothing. The primary context
 * may be reset beside it; others are not destroyed before it is done. */
#include "inject/nvidia/gpu.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/thread.h"
#include "base/vec.h"
#include "inject/hooks.h"
#include "inject/images.h"
#include "inject/session.h"
#include "inject/twin.h"

#define MOST_THREADS 16u
#define MOST_KERNELS 64u         /* of an image: those of fewest instructions, */
#define LEAST_INSTS  16u         /* with so many at least */
#define MOST_BYTES   (4u << 20)  /* of text: under way at once; assembled for nobody */
#define LEAST_BYTES  (16u << 10) /* shorter texts are assembled in no time; those of smaller kernels mostly are */
#define MOST_TEXT    (3u << 19)  /* of one: who leaves may have to wait for it */
#define LEAVE_S      60          /* so long at most */

struct user { /* a thread of ours that has made a context its own */
    struct user *next;
    cu_ctx ctx;
};
struct order { /* an image, held, whose kernels are wanted */
    struct user user;
    struct order *next;
    struct mg_img *im;
    const char *asked; /* the kernel that is launched */
    uint32_t set;
    bool over; /* its context ends */
};
struct work {
    struct user user;
    char *name, *text;
    size_t bytes;
    struct mg_nv_jit jit;
};
struct kernel {
    uint32_t text, n_insts;
    mg_id id;
};
typedef MG_VEC(struct kernel) kernel_list;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct order *orders, *current;
static struct user *users;
static bool has_maker;
static bool stopped; /* atomic: signal handlers set it, too */
static uint32_t n_running;
static uint64_t bytes_running, bytes_begun;

static bool is_stopped(void)
{
    return __atomic_load_n(&stopped, __ATOMIC_RELAXED);
}

/* False: the context has gone. */
static bool enter(struct user *u)
{
    if (MG_REAL_AS(cuCtxSetCurrent, cu_ctx)(u->ctx) == CUE_SUCCESS) return true;
    MG_REAL_AS(cuCtxSetCurrent, cu_ctx)(NULL);
    return false;
}

static void add_user(struct user *u) /* under the lock */
{
    u->next = users;
    users = u;
}

static void drop_user(struct user *u) /* under the lock */
{
    struct user **at = &users;
    while (*at != u) at = &(*at)->next;
    *at = u->next;
    pthread_cond_broadcast(&change);
}

/* ---- assembling -------------------------------------------------------------------------------------------- */

static void work_free(struct work *w)
{
    free(w->name);
    free(w->text);
    free(w);
}

/* It was begun, and is over. */
static void work_end(struct work *w)
{
    pthread_mutex_lock(&lock);
    n_running--;
    bytes_running -= w->bytes;
    drop_user(&w->user);
    pthread_mutex_unlock(&lock);
    work_free(w);
}

static void *assemble(void *arg)
{
    struct work *w = arg;
    mg_inside++;
    mg_thread_name("margay-ahead");
    mg_capture_relax();
    if (enter(&w->user)) {
        uint64_t start = mg_now_ns();
        mg_nv_compile_ahead(w->text, w->bytes, &w->jit);
        mg_gpu_assembly_say(w->name ? w->name : "", w->bytes, start, "ahead");
        MG_REAL_AS(cuCtxSetCurrent, cu_ctx)(NULL);
    }
    work_end(w);
    return NULL;
}

/* At exit, and before a context is destroyed: under the lock, until no thread is in it (NULL: in any). */
static void wait_for(cu_ctx ctx)
{
    struct timespec now, say;
    clock_gettime(CLOCK_REALTIME, &now);
    say = (struct timespec){now.tv_sec + 1, now.tv_nsec};
    for (bool said = false;;) {
        const struct user *u = users;
        while (u && ctx && u->ctx != ctx) u = u->next;
        if (!u) return;
        struct timespec end = {now.tv_sec + LEAVE_S, now.tv_nsec};
        if (!pthread_cond_timedwait(&change, &lock, said ? &end : &say)) continue;
        if (said) return;
        said = true;
        mg_session_say(
            "waits for the driver's assembler, which cannot be stopped; what it makes is kept for other runs");
    }
}

static void wait_at_exit(void)
{
    if ((uint32_t)getpid() != mg_session.pid) return; /* a fork has none of our threads */
    mg_gpu_ahead_stop();
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&change);
    wait_for(NULL);
    pthread_mutex_unlock(&lock);
}

/* The compiler is there, and exit will wait for it. */
static bool is_armed(void)
{
    static bool armed; /* of the maker alone */
    if (!armed) {
        mg_nv_load_linker();
        armed = !atexit(wait_at_exit);
    }
    return armed;
}

/* Begins when there is room for it. */
static void begin(struct order *o, struct work *w)
{
    uint32_t most = MG_MIN(mg_thread_cpus() - 1, MOST_THREADS);
    pthread_mutex_lock(&lock);
    while (!is_stopped() && !o->over && n_running && (n_running >= most || bytes_running + w->bytes > MOST_BYTES))
        pthread_cond_wait(&change, &lock);
    bool may = !is_stopped() && !o->over && bytes_begun + w->bytes <= MOST_BYTES + 2 * mg_nv_ahead_used();
    if (may) {
        w->user.ctx = o->user.ctx;
        add_user(&w->user);
        n_running++;
        bytes_running += w->bytes;
        bytes_begun += w->bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!may)
        work_free(w);
    else if (!mg_thread_start(assemble, w, 0, NULL))
        work_end(w);
}

/* ---- texts --------------------------------------------------------------------------------------------------- */

static uint32_t registers_of(const struct mg_ptx *p, const char *kernel)
{
    for (uint32_t k = 0; k < p->n_registers; k++)
        if (!strcmp(p->registers[k].kernel, kernel)) return p->registers[k].n;
    return 0;
}

/* False: that is enough of them. The cache has this one, and so it will have others; or it is far too short. */
static bool make(struct order *o, const struct kernel *k)
{
    const struct mg_module *m = o->im->ptx[k->text].m;
    const char *name = mg_name(m, m->funcs.at[k->id].name);
    struct mg_body *b = mg_twin_ahead(o->im, k->text, k->id, o->set, registers_of(&o->im->ptx[k->text], name));
    struct work *w = b ? calloc(1, sizeof *w) : NULL;
    if (w && !mg_gpu_text_ahead(b, &w->text, &w->jit)) free(w), w = NULL;
    if (b) mg_twin_ahead_free(b);
    if (!w) return true;
    w->bytes = strlen(w->text);
    w->name = strdup(name);
    bool more = w->bytes >= LEAST_BYTES / 2 && !mg_nv_is_compiled(w->text, w->bytes, &w->jit);
    if (more && w->bytes >= LEAST_BYTES && w->bytes <= MOST_TEXT && is_armed())
        begin(o, w);
    else
        work_free(w);
    return more;
}

static int by_size(const void *a, const void *b)
{
    const struct kernel *x = a, *y = b;
    if (x->n_insts != y->n_insts) return x->n_insts < y->n_insts ? -1 : 1;
    return x->text != y->text ? (x->text < y->text ? -1 : 1) : x->id < y->id ? -1 : 1;
}

static void list_kernels(const struct order *o, kernel_list *all)
{
    for (uint32_t t = 0; t < o->im->n_ptx; t++) {
        const struct mg_module *m = mg_twin_parsed(o->im, t);
        for (mg_id f = 1; m && f < m->funcs.n; f++) {
            const struct mg_func *fn = &m->funcs.at[f];
            const char *name = mg_name(m, fn->name);
            if (fn->kind == MG_FUNC_entry && fn->defined && fn->n_insts >= LEAST_INSTS && strcmp(name, o->asked) &&
                mg_kernel_matches(mg_session.config.kernel_glob, name))
                *mg_vec_push(all) = (struct kernel){t, fn->n_insts, f};
        }
    }
    if (all->n) qsort(all->at, all->n, sizeof *all->at, by_size);
    all->n = MG_MIN(all->n, MOST_KERNELS);
}

/* The largest first: it takes longest. */
static void serve(struct order *o)
{
    kernel_list all = {0};
    if (!enter(&o->user)) return;
    list_kernels(o, &all);
    for (uint32_t k = all.n; k-- > 0 && make(o, &all.at[k]);) {
        pthread_mutex_lock(&lock);
        bool over = is_stopped() || o->over;
        pthread_mutex_unlock(&lock);
        if (over) break;
    }
    mg_vec_release(&all);
    MG_REAL_AS(cuCtxSetCurrent, cu_ctx)(NULL);
}

static void *make_all(void *none)
{
    (void)none;
    mg_inside++;
    mg_thread_name("margay-ahead");
    mg_capture_relax();
    pthread_mutex_lock(&lock);
    while (orders && !is_stopped()) {
        struct order *o = current = orders;
        orders = o->next;
        add_user(&o->user);
        pthread_mutex_unlock(&lock);
        serve(o);
        mg_img_unref(o->im);
        pthread_mutex_lock(&lock);
        current = NULL;
        drop_user(&o->user);
        free(o);
    }
    has_maker = false;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- orders --------------------------------------------------------------------------------------------------- */

static void add(struct mg_img *im, const char *asked, cu_ctx ctx, uint32_t set)
{
    struct order *o = calloc(1, sizeof *o), **last = &orders;
    if (!o) return;
    pthread_mutex_lock(&mg_session.lock);
    im->refs++;
    pthread_mutex_unlock(&mg_session.lock);
    *o = (struct order){.user.ctx = ctx, .im = im, .asked = asked, .set = set};
    pthread_mutex_lock(&lock);
    while (*last) last = &(*last)->next;
    *last = o;
    if (!has_maker) has_maker = mg_thread_start(make_all, NULL, 0, NULL);
    pthread_mutex_unlock(&lock);
}

void mg_gpu_ahead(struct mg_body *b)
{
    const struct mg_session *s = &mg_session;
    struct mg_img *im = b->inst->code->im;
    cu_ctx ctx = NULL;
    if (s->config.eager || s->cannot || im->linked || !im->n_ptx || mg_thread_cpus() < 2) return;
    if (__atomic_exchange_n(&im->ahead, b->variant->set, __ATOMIC_RELAXED) == b->variant->set) return;
    if (MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&ctx) != CUE_SUCCESS || !ctx) return;
    add(im, b->inst->code->name, ctx, b->variant->set);
}

void mg_gpu_ahead_leave(void *ctx, bool destroyed)
{
    pthread_mutex_lock(&lock);
    for (struct order *o = orders; o; o = o->next) o->over |= o->user.ctx == ctx;
    if (current) current->over |= current->user.ctx == ctx;
    pthread_cond_broadcast(&change);
    if (destroyed) wait_for(ctx);
    pthread_mutex_unlock(&lock);
}

void mg_gpu_ahead_stop(void)
{
    __atomic_store_n(&stopped, true, __ATOMIC_RELAXED);
}
