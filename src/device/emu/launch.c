/* Launches: CTAs are handed out to the device's workers and the calling thread.
 *
 * A CTA belongs to the worker that started it until it ends; its shared memory is touched by that
 * thread alone. A worker whose CTA only spins (every warp gave way while waiting for memory to
 * change) turns to another one: to CTAs it suspended before and, when those spin too, to new ones.
 * A cooperative grid therefore runs with every CTA resumable; an ordinary one starts further CTAs
 * only when nothing else moves, or when they come before the one that waits (share.h).
 */
#include "device/emu/cells.h"
#include "device/emu/check.h"
#include "device/emu/defined.h"
#include "device/emu/race.h"
#include "device/emu/room.h"
#include "device/emu/share.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/io.h"
#include "base/thread.h"
#include "device/defined.h"
#include "device/mem.h"

#define ROUND_UP(x, a) (((x) + (a)-1) & ~((uint64_t)(a)-1))

#define GRID_WORKSPACE_BYTES 256
#define SMALL_SHARED         (32u << 10) /* from the heap: a mapping costs as much as a small launch */

struct emu_pool {
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    struct pool_thread {
        struct emu_pool *p;
        pthread_t id;
        uint32_t ix /* launching threads are 0 */;
    } * threads;
    uint32_t n_threads;
    struct mg_device *dev;
    MG_VEC(struct emu_launch *) launches;
    _Atomic uint32_t posted; /* grows with every launch */
    bool spins;              /* every worker has a processor */
    pid_t pid;
    bool quit;
};

/* ---- CTAs ------------------------------------------------------------------------------------ */

static void free_frames(struct emu_room *room, struct emu_frame *f)
{
    while (f) {
        struct emu_frame *n = f->next_of_warp;
        emu_defined_free(f);
        emu_room_give(room, f, sizeof *f + f->fn->frame_bytes, f->fn->n_marks ? 0 : f->fn->number);
        f = n;
    }
}

static void cta_free_one(struct emu_cta *c)
{
    for (uint32_t k = 0; k < c->warps_cap; k++) {
        struct emu_warp *w = &c->warps[k];
        free_frames(c->wk->room, w->all);
    }
    emu_check_free(c->check);
    emu_defined_cta_free(c);
    emu_room_give(c->wk->room, c->warps, c->n_warps * sizeof *c->warps, 0);
    if (c->shared_cap <= SMALL_SHARED)
        free(c->shared);
    else if (c->shared)
        munmap(c->shared, c->shared_cap);
    if (c->local) munmap(c->local, c->local_cap);
    free(c);
}

/* The first CTA of a cluster, with its peers. */
static void cta_free(struct emu_cta *c)
{
    if (c->peers && c->peers != c->self) {
        struct emu_cta **peers = c->peers;
        for (uint32_t r = 1; r < c->n_peers && peers[r]; r++) cta_free_one(peers[r]);
        free(peers);
    }
    cta_free_one(c);
}

static void *map(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* x first; lanes of the last warp that the block has not go on in z. */
static void number_threads(struct emu_cta *c, const struct mg_dim3 *b)
{
    uint32_t x = 0, y = 0, z = 0;
    for (uint32_t k = 0; k < c->n_warps; k++)
        for (uint32_t i = 0; i < EMU_LANES; i++) {
            c->warps[k].tid[0][i] = x;
            c->warps[k].tid[1][i] = y;
            c->warps[k].tid[2][i] = z;
            if (++x < b->x) continue;
            x = 0;
            if (++y < b->y) continue;
            y = 0;
            z++;
        }
}

static struct emu_cta *cta_new_one(struct emu_worker *wk)
{
    struct emu_launch *l = wk->l;
    struct emu_cta *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    const struct mg_dim3 *b = &l->l->block;
    c->l = l;
    c->wk = wk;
    c->code = l->code;
    c->n_threads = b->x * b->y * b->z;
    c->n_warps = (c->n_threads + EMU_LANES - 1) / EMU_LANES;
    c->warps_cap = c->n_warps;
    c->warps = emu_room_take(wk->room, c->n_warps * sizeof *c->warps);
    if (c->warps) memset(c->warps, 0, c->n_warps * sizeof *c->warps);
    c->shared_bytes = l->shared_bytes;
    c->shared_cap = ROUND_UP(emu_own_shared_at(l->shared_bytes) + l->code->own_shared + EMU_SHARED_SLACK, 4096);
    if (c->shared_cap > SMALL_SHARED)
        c->shared = map(c->shared_cap);
    else if ((c->shared = aligned_alloc(4096, c->shared_cap)))
        memset(c->shared, 0, c->shared_cap);
    if (l->code->local_bytes) { /* an odd number of lines between threads: they must not share cache sets */
        c->local_stride = ROUND_UP(l->code->local_bytes, 64);
        if (!(c->local_stride / 64 & 1)) c->local_stride += 64;
        c->local_cap = ROUND_UP(c->local_stride * EMU_LANES * c->n_warps, 4096);
        c->local = map(c->local_cap);
    }
    bool checked = !l->dev->opts.check || ((c->check = emu_check_new(c)) && emu_defined_cta_new(c));
    if (!c->warps || !c->shared || (l->code->local_bytes && !c->local) || !checked) {
        if (!c->warps) c->warps_cap = 0;
        cta_free_one(c);
        return NULL;
    }
    for (uint32_t k = 0; k < c->n_warps; k++) {
        struct emu_warp *w = &c->warps[k];
        w->cta = c;
        w->wk = wk;
        w->ix = k;
    }
    number_threads(c, b);
    return c;
}

static struct emu_cta *cta_new(struct emu_worker *wk)
{
    uint32_t n = wk->l->cluster_ctas;
    struct emu_cta *c = cta_new_one(wk);
    if (!c) return NULL;
    c->self[0] = c;
    c->peers = c->self;
    c->n_peers = 1;
    if (n == 1) return c;
    struct emu_cta **peers = calloc(n, sizeof *peers);
    bool ok = peers != NULL;
    if (ok) {
        peers[0] = c;
        c->peers = peers;
        c->n_peers = n;
    }
    for (uint32_t r = 1; ok && r < n; r++) {
        peers[r] = cta_new_one(wk);
        ok = peers[r] != NULL;
        if (!ok) break;
        peers[r]->peers = peers;
        peers[r]->n_peers = n;
        peers[r]->rank = r;
    }
    if (ok) return c;
    cta_free(c);
    return NULL;
}

static bool cta_start_one(struct emu_cta *c, const uint32_t id[3])
{
    const struct mg_dim3 *g = &c->l->l->grid;
    memcpy(c->id, id, sizeof c->id);
    c->linear = id[0] + (uint64_t)g->x * (id[1] + (uint64_t)g->y * id[2]);
    c->n_live = c->n_warps;
    memset(c->bars, 0, sizeof c->bars);
    if (c->check) {
        emu_check_start(c->check);
        emu_defined_cta_start(c);
    }
    for (uint32_t k = 0; k < c->n_warps; k++) {
        struct emu_warp *w = &c->warps[k];
        uint32_t n = c->n_threads - k * EMU_LANES;
        w->live = n >= EMU_LANES ? UINT32_MAX : (1u << n) - 1;
        w->n_sets = 0;
        w->budget = EMU_TURN_BUDGET;
        w->suspect = w->spun = w->at_bar = w->polls = 0;
        w->arrived = w->wgmmas = w->wgmma_groups = 0;
        w->pauses = c->n_warps > 1 ? EMU_LOOP_PAUSES : 0;
        w->next_seq = 0;
        w->chance = c->l->dev->apart && !c->l->dev->compiler
                        ? (c->l->dev->apart * 0x9e3779b97f4a7c15u ^ (c->linear << 8 | k)) * 0xff51afd7ed558ccdu | 1
                        : 0;
        if (c->code->alloca_bytes) memset(w->alloca_used, 0, sizeof w->alloca_used);
        if (w->root && !w->root->mask) { /* the activation of the warp's last CTA: only the CTA's place differs */
            w->root->mask = w->live;
            w->next_seq = 1;
            emu_frame_fill_sregs(w->root);
            if (c->check) emu_defined_enter(w->root);
        } else
            w->root = emu_frame_push(w, c->code->entry, NULL, NULL, w->live);
        if (!w->root) return false;
        w->sets[w->n_sets++] = (struct emu_set){.pc = c->code->entry->entry, .frame = w->root, .mask = w->live};
    }
    return true;
}

/* Starts the CTAs of the grid's unit `linear`: one CTA, or one cluster. */
static bool cta_start(struct emu_cta *c, uint64_t linear)
{
    const struct mg_dim3 *g = &c->l->l->grid, k = c->l->cluster;
    uint64_t nx = g->x / k.x, ny = g->y / k.y;
    const uint32_t first[3] = {(uint32_t)(linear % nx) * k.x, (uint32_t)(linear / nx % ny) * k.y,
                               (uint32_t)(linear / nx / ny) * k.z};
    for (uint32_t r = 0; r < c->n_peers; r++) {
        const uint32_t id[3] = {first[0] + r % k.x, first[1] + r / k.x % k.y, first[2] + r / k.x / k.y};
        if (!cta_start_one(c->peers[r], id)) return false;
    }
    return true;
}

bool emu_cta_start(struct emu_cta *c, uint64_t linear)
{
    return cta_start(c, linear);
}

enum cta_stop { CTA_DONE, CTA_SPINS };

static bool has_ready(const struct emu_warp *w)
{
    if (w->at_bar) return false;
    for (uint32_t i = 0; i < w->n_sets; i++)
        if (w->sets[i].state == EMU_READY) return true;
    return false;
}

static void check_limits(struct emu_cta *c)
{
    struct emu_launch *l = c->l;
    struct emu_frame *f = NULL;
    const struct emu_op *op = NULL;
    int lane = 0;
    if (atomic_load_explicit(&l->stop, memory_order_relaxed)) longjmp(c->wk->out, 1);
    bool cancelled = l->l->cancel && *l->l->cancel;
    if (!cancelled && (!l->deadline_ns || mg_now_ns() < l->deadline_ns)) return;
    for (uint32_t r = 0; r < c->n_peers; r++)
        for (uint32_t k = 0; k < c->n_warps && !f; k++) {
            const struct emu_warp *w = &c->peers[r]->warps[k];
            if (w->live) f = w->sets[0].frame, op = w->sets[0].pc, lane = emu_first(w->sets[0].mask);
        }
    if (!f) return;
    if (cancelled) emu_fault(f, op, MG_FAULT_CANCELLED, lane, 0, 0, "cancelled");
    emu_fault(f, op, MG_FAULT_TIMEOUT, lane, 0, 0, "stopped after the time limit of %.3g s",
              (double)l->l->time_limit_ns * 1e-9);
}

/* Nobody can go on but those in mbarrier.try_wait, whose time is now up. */
static bool give_up_waits(struct emu_cta *c)
{
    bool woken = false;
    for (uint32_t r = 0; r < c->n_peers; r++)
        for (uint32_t k = 0; k < c->n_warps; k++)
            if (c->peers[r]->warps[k].polls) woken |= emu_wait_poll(&c->peers[r]->warps[k], true);
    return woken;
}

static enum cta_stop cta_run(struct emu_cta *c)
{
    check_limits(c);
    for (;;) {
        bool yielded = false, progress = false, spun = true;
        uint32_t n_live = 0;
        for (uint32_t r = 0; r < c->n_peers; r++) {
            struct emu_cta *one = c->peers[r];
            for (uint32_t k = 0; k < one->n_warps; k++) {
                struct emu_warp *w = &one->warps[k];
                if (!w->live) continue;
                if (w->polls) emu_wait_poll(w, false);
                if (!has_ready(w)) continue;
                if (emu_warp_run(w) == EMU_STOP_YIELD) {
                    yielded = true;
                    spun &= w->spun;
                } else
                    progress = true;
            }
            n_live += one->n_live;
        }
        if (!n_live) return CTA_DONE;
        if (!yielded && !progress) {
            if (!give_up_waits(c)) emu_deadlock(c);
            return CTA_SPINS;
        }
        if (yielded) {
            check_limits(c);
            emu_epoch(c->wk);
        }
        if (yielded && !progress && spun) return CTA_SPINS;
    }
}

/* ---- workers --------------------------------------------------------------------------------- */

static void no_memory(struct emu_launch *l)
{
    pthread_mutex_lock(&l->lock);
    if (l->fault->kind == MG_FAULT_NONE) {
        l->fault->kind = MG_FAULT_MEMORY;
        struct mg_buf b = MG_BUF_INIT;
        mg_buf_printf(&b, "kernel %s: host memory ran out for a CTA's registers, shared and local memory",
                      l->code->kernel->name);
        size_t n = MG_MIN(b.n, sizeof l->fault->text - 1);
        memcpy(l->fault->text, b.at, n);
        l->fault->text[n] = 0;
        mg_buf_release(&b);
    }
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->stop, true);
}

struct queue {
    struct emu_cta *head, *tail;
    uint32_t n;
};

static void push(struct queue *q, struct emu_cta *c)
{
    c->next = NULL;
    if (q->tail)
        q->tail->next = c;
    else
        q->head = c;
    q->tail = c;
    q->n++;
}

static MG_NOINLINE struct emu_cta *pop(struct queue *q)
{
    struct emu_cta *c = q->head;
    if (!c) return NULL;
    q->head = c->next;
    if (!q->head) q->tail = NULL;
    q->n--;
    return c;
}

/* CTAs that come before the suspended one may be what it waits for: they begin at once while few are suspended. */
#define FEW_SUSPENDED 4

static bool take_lower(struct emu_worker *wk, const struct queue *suspended, struct emu_share *s)
{
    struct emu_launch *l = wk->l;
    if (!suspended->n || suspended->n >= FEW_SUSPENDED || l->n_spans == 1 ||
        emu_spans_lowest(l) > suspended->head->linear)
        return false;
    *s = (struct emu_share){0};
    return emu_share_take(l, wk->home, s);
}

static void waits_for_others(struct emu_launch *l)
{
    atomic_store_explicit(&l->in_order, true, memory_order_relaxed);
    atomic_store_explicit(&l->code->in_order, true, memory_order_relaxed);
}

static void work_loop(struct emu_worker *wk, struct queue *suspended)
{
    struct emu_launch *l = wk->l;
    struct emu_share mine = {0}, lower = {0};
    uint64_t spins = 0;
    while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
        struct emu_cta *c = NULL;
        bool may = !suspended->n || spins >= suspended->n + (l->l->cooperative ? 0 : 16);
        struct emu_share *from = lower.at < lower.end || take_lower(wk, suspended, &lower)           ? &lower
                                 : may && (mine.at < mine.end || emu_share_take(l, wk->home, &mine)) ? &mine
                                                                                                     : NULL;
        if (from) {
            c = wk->idle;
            if (c)
                wk->idle = c->next;
            else
                c = cta_new(wk);
            wk->cta = c;
            int how = EMU_CTA_NOT;
            if (c && l->compiled) {
                emu_epoch(wk);
                how = l->dev->compiler->cta(c, &from->at, from->end);
            }
            if (!c || (how == EMU_CTA_NOT && !cta_start(c, from->at))) {
                no_memory(l);
                return;
            }
            spins = 0;
            if (how == EMU_CTA_RAN) {
                from->at = from->end;
                wk->cta = NULL;
                c->next = wk->idle;
                wk->idle = c;
                continue;
            }
            from->at++;
        }
        if (!c) c = pop(suspended);
        if (!c) return;
        wk->cta = c;
        emu_epoch(wk);
        enum cta_stop r = cta_run(c);
        wk->cta = NULL;
        if (r == CTA_DONE) {
            c->next = wk->idle;
            wk->idle = c;
            spins = 0;
        } else {
            waits_for_others(l);
            push(suspended, c);
            if (++spins > suspended->n) sched_yield();
        }
    }
}

void emu_room_put(struct mg_device *dev, uint32_t worker, struct emu_room *r)
{
    struct emu_room *old = atomic_exchange(&dev->rooms[worker % dev->n_workers], r);
    if (old) emu_room_release(old);
    free(old);
}

static struct emu_room *take_room(struct mg_device *dev, uint32_t worker)
{
    struct emu_room *r = atomic_exchange(&dev->rooms[worker % dev->n_workers], NULL);
    return r ? r : calloc(1, sizeof *r);
}

/* Which part this worker begins with by habit. Where workers are as many as processors it is the processor's: the
 * system may have given them to the threads the other way round. */
static uint32_t habit(const struct mg_device *dev, uint32_t worker)
{
    int cpu = dev->n_workers > 1 && dev->n_workers >= dev->n_cpus ? sched_getcpu() : -1;
    return cpu >= 0 ? (uint32_t)cpu : worker;
}

/* One thread's share of a launch. */
static void run_share(struct emu_launch *l, uint32_t ix)
{
    struct emu_worker *wk = calloc(1, sizeof *wk);
    struct queue suspended = {0}, *q = &suspended;
    if (wk) {
        *wk = (struct emu_worker){
            .l = l, .dev = l->dev, .ix = ix, .n_ranges = l->code->n_caches, .room = take_room(l->dev, ix)};
        wk->ranges = calloc(wk->n_ranges + 1, sizeof *wk->ranges);
    }
    if (!wk || !wk->ranges || !wk->room || !emu_cells_begin(wk)) {
        no_memory(l);
        if (wk) free(wk->ranges);
        if (wk) emu_room_put(l->dev, ix, wk->room);
        free(wk);
        return;
    }
#if defined(__x86_64__)
    unsigned mxcsr = _mm_getcsr();
    _mm_setcsr(0x1f80); /* programs built with -ffast-math leave flush-to-zero on in their threads */
#endif
    emu_ranges_begin(wk);
    wk->home = emu_span_claim(l, habit(l->dev, ix));
    if (!setjmp(wk->out)) work_loop(wk, q);
#if defined(__x86_64__)
    _mm_setcsr(mxcsr);
#endif
    if (wk->cta) cta_free(wk->cta);
    for (struct emu_cta *c; (c = pop(q));) cta_free(c);
    while (wk->idle) {
        struct emu_cta *c = wk->idle;
        wk->idle = c->next;
        cta_free(c);
    }
    emu_ranges_end(wk);
    if (wk->rotated) atomic_store(&l->rotated, true);
    atomic_fetch_add(&l->warp_insts, wk->warp_insts);
    atomic_fetch_add(&l->thread_insts, wk->thread_insts);
    if (wk->compiled) wk->dev->compiler->worker_end(wk);
    emu_cells_end(wk);
    if (wk->found) emu_check_worker_end(wk);
    mg_map_release(&wk->origins);
    mg_map_release(&wk->kept);
    mg_map_release(&wk->stores);
    emu_room_put(l->dev, ix, wk->room);
    free(wk->ranges);
    free(wk);
}

/* Who helps with launches tells all its processor time since it last did: what it looked out for work is in it, too. */
static void work(struct emu_launch *l, uint32_t ix)
{
    static _Thread_local uint64_t told_ns;
    if (ix && l->l->busy && !told_ns) told_ns = mg_thread_ns();
    run_share(l, ix);
    uint64_t now = ix && l->l->busy ? mg_thread_ns() : 0;
    atomic_fetch_add(&l->busy_ns, now ? now - told_ns : 0);
    told_ns = now;
}

static bool wants_help(struct emu_launch *l)
{
    return !atomic_load(&l->stop) && emu_spans_left(l) && atomic_load(&l->joined) < l->n_ctas;
}

static void relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#endif
}

/* Waking a thread takes longer than many a launch (milliseconds in some virtual machines), and launches come in rows:
 * who has worked looks out for the next one for a while before sleeping, but no longer than it worked. */
#define SPIN_NS   100000
#define LINGER_NS 1000000 /* more of it, while nobody else wants the processor */
static void look_out(struct emu_pool *p, uint32_t posted, uint64_t worked_ns)
{
    uint64_t from = mg_now_ns();
    for (unsigned k = 1; atomic_load_explicit(&p->posted, memory_order_acquire) == posted; k++) {
        relax();
        if (k % 16) continue;
        uint64_t past = mg_now_ns() - from;
        if (past >= MG_MIN(worked_ns, LINGER_NS)) return;
        if (past >= SPIN_NS) sched_yield();
    }
}

/* Until nobody works on the launch any more, which nobody joins now. */
static void wait_for_workers(struct emu_pool *p, struct emu_launch *l)
{
    uint64_t until = mg_now_ns() + SPIN_NS;
    for (unsigned k = 1; p->spins && atomic_load(&l->working); k++) {
        relax();
        if (k % 16 == 0 && mg_now_ns() >= until) break;
    }
    pthread_mutex_lock(&p->lock); /* the last one may still hold it */
    while (atomic_load(&l->working)) pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

/* The system may wake a worker on the processor of the thread that launches, which then stands still for a whole launch
 * though others are idle. No thread stays bound. */
static void step_aside(int launcher)
{
    cpu_set_t all, others;
    if (launcher < 0 || sched_getcpu() != launcher || sched_getaffinity(0, sizeof all, &all)) return;
    others = all;
    CPU_CLR(launcher, &others);
    if (!CPU_COUNT(&others) || sched_setaffinity(0, sizeof others, &others)) return;
    sched_setaffinity(0, sizeof all, &all);
}

static void *pool_thread(void *arg)
{
    const struct pool_thread *t = arg;
    struct emu_pool *p = t->p;
    uint64_t worked_ns = 0;
    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        struct emu_launch *l = NULL;
        for (uint32_t i = 0; i < p->launches.n && !l; i++)
            if (wants_help(p->launches.at[i])) l = p->launches.at[i];
        if (!l && worked_ns && p->spins) {
            uint32_t posted = atomic_load(&p->posted);
            pthread_mutex_unlock(&p->lock);
            look_out(p, posted, worked_ns);
            pthread_mutex_lock(&p->lock);
            worked_ns = 0;
            continue;
        }
        if (!l) {
            pthread_cond_wait(&p->more, &p->lock);
            continue;
        }
        atomic_fetch_add(&l->joined, 1);
        atomic_fetch_add(&l->working, 1);
        pthread_mutex_unlock(&p->lock);
        if (p->dev->n_workers <= p->dev->n_cpus) step_aside(l->cpu);
        worked_ns = mg_now_ns();
        work(l, t->ix);
        worked_ns = mg_now_ns() - worked_ns;
        pthread_mutex_lock(&p->lock);
        atomic_fetch_sub(&l->working, 1);
        pthread_cond_broadcast(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static struct emu_pool *pool_get(struct mg_device *dev)
{
    pthread_mutex_lock(&dev->lock);
    struct emu_pool *p = dev->pool;
    if (!p && dev->n_workers > 1 && (p = calloc(1, sizeof *p))) {
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->more, NULL);
        pthread_cond_init(&p->done, NULL);
        p->dev = dev;
        p->pid = getpid();
        p->spins = dev->n_cpus >= dev->n_workers;
        p->threads = calloc(dev->n_workers, sizeof *p->threads);
        for (uint32_t i = 0; p->threads && i + 1 < dev->n_workers; i++) {
            struct pool_thread *t = &p->threads[p->n_threads];
            *t = (struct pool_thread){.p = p, .ix = p->n_threads + 1};
            if (mg_thread_start(pool_thread, t, 0, &t->id)) p->n_threads++;
        }
        dev->pool = p;
    }
    pthread_mutex_unlock(&dev->lock);
    return p && p->pid == getpid() ? p : NULL;
}

void emu_pool_free(struct mg_device *dev)
{
    struct emu_pool *p = dev->pool;
    if (!p) return;
    dev->pool = NULL;
    if (p->pid != getpid()) return; /* a forked child has no such threads */
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < p->n_threads; i++) pthread_join(p->threads[i].id, NULL);
    mg_vec_release(&p->launches);
    free(p->threads);
    free(p);
}

/* ---- launch ---------------------------------------------------------------------------------- */

static bool refuse(struct mg_fault *fault, enum mg_fault_kind kind, const struct mg_dkernel *k, const char *why)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_printf(&b, "kernel %s: %s", k->name, why);
    fault->kind = kind;
    size_t n = MG_MIN(b.n, sizeof fault->text - 1);
    memcpy(fault->text, b.at, n);
    fault->text[n] = 0;
    mg_buf_release(&b);
    return false;
}

static bool prepare(struct mg_device *dev, const struct mg_launch *l, struct emu_launch *e, struct mg_fault *fault)
{
    uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    if (!emu_kernel_code(l->kernel, fault)) return false;
    if (!threads || threads > EMU_MAX_WARPS * EMU_LANES)
        return refuse(fault, MG_FAULT_UNSUPPORTED, l->kernel, "a CTA has 1 to 1024 threads");
    struct mg_dim3 k = {MG_MAX(l->cluster.x, 1), MG_MAX(l->cluster.y, 1), MG_MAX(l->cluster.z, 1)};
    uint64_t per_cluster = (uint64_t)k.x * k.y * k.z;
    if (per_cluster > EMU_MAX_CLUSTER || l->grid.x % k.x || l->grid.y % k.y || l->grid.z % k.z)
        return refuse(fault, MG_FAULT_UNSUPPORTED, l->kernel, "a cluster has at most 16 CTAs and divides the grid");
    struct emu_code *code = l->kernel->code;
    e->dev = dev;
    e->l = l;
    e->code = code;
    e->fault = fault;
    e->cluster = k;
    e->cluster_ctas = (uint32_t)per_cluster;
    e->n_ctas = (uint64_t)l->grid.x * l->grid.y * l->grid.z / per_cluster;
    e->id = atomic_fetch_add(&dev->launches, 1) + 1;
    e->dyn_at = (uint32_t)ROUND_UP(code->static_shared, MG_MAX(code->shared_align, 16));
    e->shared_bytes =
        (uint32_t)ROUND_UP(l->dyn_shared_bytes ? e->dyn_at + (uint64_t)l->dyn_shared_bytes : code->static_shared,
                           dev->opts.check ? 1 : 128);
    e->param_bytes = l->kernel->param_bytes;
    e->params = aligned_alloc(64, ROUND_UP(e->param_bytes + 16, 64));
    if (!e->params) return refuse(fault, MG_FAULT_MEMORY, l->kernel, "host memory ran out");
    memset(e->params, 0, ROUND_UP(e->param_bytes + 16, 64));
    if (l->params) memcpy(e->params, l->params, MG_MIN(l->param_bytes, e->param_bytes));
    if (l->cooperative) {
        e->grid_workspace = mg_mem_alloc(GRID_WORKSPACE_BYTES, 0, MG_ALLOC_RUNTIME);
        if (!e->grid_workspace)
            return refuse(fault, MG_FAULT_MEMORY, l->kernel, "no device memory for the grid's barrier");
        memset((void *)e->grid_workspace, 0, GRID_WORKSPACE_BYTES);
    }
    e->trace = atomic_load(&dev->trace);
    e->observe = e->trace || dev->opts.count_positions;
    bool ordered = !dev->compiler || e->observe || dev->opts.check || l->cooperative || per_cluster > 1 ||
                   atomic_load_explicit(&code->in_order, memory_order_relaxed);
    if (!emu_spans_init(e, ordered)) return refuse(fault, MG_FAULT_MEMORY, l->kernel, "host memory ran out");
    if (dev->compiler) dev->compiler->begin(e);
    e->start_ns = mg_now_ns();
    e->deadline_ns = l->time_limit_ns ? e->start_ns + l->time_limit_ns : 0;
    pthread_mutex_init(&e->lock, NULL);
    return true;
}

void emu_grid_run(struct mg_device *dev, const struct mg_launch *l, struct mg_launch_stats *stats,
                  struct mg_fault *fault, struct emu_kids *kids)
{
    struct mg_fault none;
    bool full = false;
    struct emu_launch *e = calloc(1, sizeof *e);
    if (!fault) fault = &none;
    if (stats) stats->findings = NULL, stats->n_findings = 0, stats->unseen = NULL, stats->n_unseen = 0;
    memset(fault, 0, sizeof *fault);
    if (!e) {
        refuse(fault, MG_FAULT_MEMORY, l->kernel, "host memory ran out");
    } else if (prepare(dev, l, e, fault)) {
        bool shared = e->n_ctas > 1 && dev->n_workers > 1 && dev->n_cpus != 1; /* nobody can help on one processor */
        struct emu_pool *p = shared ? pool_get(dev) : NULL;
        atomic_store(&e->joined, 1);
        if (dev->opts.check) mg_defined_enter();
        if (p) {
            e->cpu = sched_getcpu();
            pthread_mutex_lock(&p->lock);
            *mg_vec_push(&p->launches) = e;
            atomic_fetch_add(&p->posted, 1);
            if (e->n_ctas == 2)
                pthread_cond_signal(&p->more);
            else
                pthread_cond_broadcast(&p->more);
            pthread_mutex_unlock(&p->lock);
        }
        work(e, 0);
        if (p) {
            pthread_mutex_lock(&p->lock);
            for (uint32_t i = 0; i < p->launches.n; i++)
                if (p->launches.at[i] == e) {
                    memmove(&p->launches.at[i], &p->launches.at[i + 1], (p->launches.n - i - 1) * sizeof e);
                    p->launches.n--;
                    break;
                }
            pthread_mutex_unlock(&p->lock);
            wait_for_workers(p, e);
        }
        if (dev->compiler) dev->compiler->end(e);
        if (dev->opts.check) mg_defined_leave();
        emu_print_flush(dev);
        if (e->grid_workspace) mg_mem_free(e->grid_workspace);
        if (e->found) emu_check_launch_end(e, stats);
        if (stats && dev->opts.check) emu_defined_unseen(e, stats);
        full = e->race && atomic_load(&e->race->full);
        emu_race_free(e->race);
    }
    if (stats) {
        stats->start_ns = e ? e->start_ns : 0;
        stats->end_ns = mg_now_ns();
        stats->busy_ns = e ? atomic_load(&e->busy_ns) : 0;
        stats->warp_instructions = e ? atomic_load(&e->warp_insts) : 0;
        stats->thread_instructions = e ? atomic_load(&e->thread_insts) : 0;
        stats->schedule_dependent = e && atomic_load(&e->rotated);
        stats->race_full = full;
        if (!stats->start_ns) stats->start_ns = stats->end_ns;
        stats->strays = e ? e->strays.at : NULL;
        stats->n_strays = e ? e->strays.n : 0;
    } else if (e) {
        mg_vec_release(&e->strays);
    }
    if (e) {
        *kids = (struct emu_kids){e->children, e->n_children};
        emu_spans_release(e);
        free(e->params);
        free(e);
    }
}
