/* Which launches have ended. Every launch that is followed belongs to a window of its stream's lane;
 * the window's event is recorded with (or behind) each launch, so when it has passed, every launch of
 * the window that was noted before the event was looked at has ended, and so have all earlier windows.
 *
 *   lane   window [event, items] ─► window ─► open window ◄─ launches of the next half millisecond
 *
 * The drain thread polls: it sleeps between looks, longer while nothing happens, so that a launch never
 * pays for waking it. It calls the driver with our own events and stream only. */
#include "inject/nvidia/nv_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/thread.h"

#define WINDOW_NS      500000u /* launches of so long share an event */
#define TIMED_EVERY_NS 10000000u
#define BATCH_ITEMS    512u
#define TURN_ITEMS     64u   /* where ends are waited for: others are looked for in between */
#define HURRY_NS       20000 /* between looks then */
#define TURN_NS        100000
#define PICK_UP_NS     4000u /* from the return of a launch call to the start of its kernel on an idle GPU, at most */
#define LOOK_NS        100000000u /* so often check words between pieces of memory are looked at */
#define BATCH_BYTES    ((size_t)8 << 20)

/* ---- events ------------------------------------------------------------------------------------------ */

static cu_event event_take(struct mg_nv_ctx *x, bool timed)
{
    cu_event e = NULL;
    pthread_mutex_lock(&mg_nv.lock);
    if (timed && x->timed.n)
        e = x->timed.at[--x->timed.n];
    else if (!timed && x->plain.n)
        e = x->plain.at[--x->plain.n];
    pthread_mutex_unlock(&mg_nv.lock);
    if (!e) {
        int mode = mg_nv_relax();
        if (mg_nv.cuEventCreate(&e, timed ? CUEVENT_DEFAULT : CUEVENT_DISABLE_TIMING) != CUE_SUCCESS) e = NULL;
        mg_nv_unrelax(mode);
    }
    return e;
}

static void window_free(struct mg_nv_ctx *x, struct mg_nv_window *w) /* under the lock */
{
    if (w->begin) {
        *mg_vec_push(&x->timed) = w->begin;
        *mg_vec_push(&x->timed) = w->end;
    } else if (w->end) {
        *mg_vec_push(&x->plain) = w->end;
    }
    free(w);
}

/* ---- lanes --------------------------------------------------------------------------------------------- */

static uint64_t lane_key(cu_stream stream, bool per_thread)
{
    uint64_t key = (uint64_t)(uintptr_t)(stream == CU_LEGACY_STREAM ? NULL : stream);
    if ((!stream && per_thread) || stream == CU_PER_THREAD_STREAM) key = mg_mix64((uint64_t)pthread_self()) | 1;
    return key;
}

static struct mg_nv_lane *lane_get(struct mg_nv_ctx *x, uint64_t key, cu_stream stream) /* under the lock */
{
    uint64_t v;
    if (mg_map_get(&x->lanes, key, &v)) return (struct mg_nv_lane *)(uintptr_t)v;
    struct mg_nv_lane *l = calloc(1, sizeof *l);
    if (l) {
        l->stream = stream;
        mg_map_set(&x->lanes, key, (uint64_t)(uintptr_t)l);
        *mg_vec_push(&x->lane_list) = l;
    }
    return l;
}

static struct mg_nv_window *window_new(struct mg_nv_ctx *x, bool timed, uint64_t now)
{
    struct mg_nv_window *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->last = &w->first;
    w->opened_ns = now;
    w->begin = timed ? event_take(x, true) : NULL;
    w->end = event_take(x, timed);
    if (w->end && (w->begin || !timed)) return w;
    free(w);
    return NULL;
}

static void window_add(struct mg_nv_lane *l, struct mg_nv_window *w) /* under the lock */
{
    struct mg_nv_window **at = &l->first;
    while (*at) at = &(*at)->next;
    *at = w;
    l->open = w;
}

static cu_result record(const struct mg_nv_launch *l, cu_event e)
{
    return (l->per_thread ? mg_nv.cuEventRecord_ptsz : mg_nv.cuEventRecord)(e, l->stream);
}

bool mg_nv_launch_begin(struct mg_nv_launch *l)
{
    l->event = NULL;
    l->window = NULL;
    l->ctx = mg_nv_ctx_current();
    if (!l->ctx) return false;
    struct mg_nv_ctx *x = l->ctx;
    uint64_t now = mg_now_ns(), key = lane_key(l->stream, l->per_thread);
    pthread_mutex_lock(&mg_nv.lock);
    l->lane = lane_get(x, key, l->stream);
    bool timed = l->lane && l->may_time && (l->wants_time || now - l->lane->timed_ns > TIMED_EVERY_NS);
    struct mg_nv_window *w = l->lane ? l->lane->open : NULL;
    if (w && !timed && !l->only_timed && !w->begin && (now - w->opened_ns < WINDOW_NS || !(w->n + w->pins))) {
        if (!(w->n + w->pins)) w->opened_ns = now;
        w->pins++;
        l->window = w;
    }
    if (timed) l->lane->timed_ns = now;
    pthread_mutex_unlock(&mg_nv.lock);
    if (!l->lane || (l->only_timed && !timed)) return false;
    if (!l->window) {
        if (!(w = window_new(x, timed, now))) return false;
        w->pins = 1;
        pthread_mutex_lock(&mg_nv.lock);
        window_add(l->lane, w);
        pthread_mutex_unlock(&mg_nv.lock);
        l->window = w;
        if (timed && record(l, w->begin) != CUE_SUCCESS) { /* no harm: the launch will say what is wrong */
            mg_nv_launch_end(l, false, NULL, NULL, NULL);
            return false;
        }
    }
    if (!l->plain && !l->window->begin) l->event = l->window->end;
    if (l->window->begin) l->window->called_ns = mg_now_ns();
    return true;
}

void mg_nv_launch_end(struct mg_nv_launch *l, bool taken, struct mg_nv_slot *slot, mg_nv_done_fn fn, void *user)
{
    struct mg_nv_window *w = l->window;
    struct mg_nv_item *it = taken ? calloc(1, sizeof *it) : NULL;
    if (w->begin) w->launched_ns = mg_now_ns();
    bool marked = taken && (l->event || record(l, w->end) == CUE_SUCCESS);
    if (it)
        *it = (struct mg_nv_item){.slot = slot, .fn = fn, .user = user, .seen = l->seen, .timed = w->begin && marked};
    pthread_mutex_lock(&mg_nv.lock);
    w->pins--;
    if (it) {
        *w->last = it;
        w->last = &it->next;
        w->n++;
        __atomic_add_fetch(&l->ctx->pending, 1, __ATOMIC_RELAXED);
    }
    if (!marked && w->begin && l->lane->open == w)
        l->lane->open = NULL; /* never recorded: its event must not be asked for new work */
    pthread_mutex_unlock(&mg_nv.lock);
    if (it && !__atomic_load_n(&mg_nv.thread_started, __ATOMIC_ACQUIRE)) mg_nv_thread_start();
}

bool mg_nv_ctx_is_idle(struct mg_nv_ctx *x)
{
    struct mg_nv_busy busy = mg_nv_is_busy(x, NULL, false);
    return !busy.same && !busy.other;
}

struct mg_nv_busy mg_nv_is_busy(struct mg_nv_ctx *x, cu_stream stream, bool per_thread)
{
    struct mg_nv_busy busy = {0};
    struct pair {
        cu_event e;
        bool same;
    };
    MG_VEC(struct pair) ask = {0};
    pthread_mutex_lock(&mg_nv.lock);
    struct mg_nv_lane *mine = lane_get(x, lane_key(stream, per_thread), stream);
    for (uint32_t i = 0; i < x->lane_list.n; i++) {
        const struct mg_nv_lane *l = x->lane_list.at[i];
        const struct mg_nv_window *last = NULL;
        for (const struct mg_nv_window *w = l->first; w; w = w->next) {
            if (w->n) last = w;
            if (w->pins && l != mine) busy.other = true;
        }
        if (last) *mg_vec_push(&ask) = (struct pair){last->end, l == mine};
    }
    pthread_mutex_unlock(&mg_nv.lock);
    for (uint32_t i = 0; i < ask.n; i++)
        if (mg_nv.cuEventQuery(ask.at[i].e) == CUE_NOT_READY) *(ask.at[i].same ? &busy.same : &busy.other) = true;
    mg_vec_release(&ask);
    return busy;
}

/* ---- draining -------------------------------------------------------------------------------------------- */

struct batch {
    struct mg_nv_ctx *x;
    struct mg_nv_item **items;
    uint32_t n, most;
    size_t bytes;
};

/* An idle GPU passes the begin event long before the launch reaches it. Its kernel begins after the call began and some
 * microseconds after it returned at the latest. */
static void wait_for_launch(const struct mg_nv_window *w, struct mg_clock_span *s)
{
    uint64_t end_ns = s->start_ns + s->length_ns, first_ns = MG_MAX(s->start_ns, w->called_ns),
             last_ns = MG_MIN(w->launched_ns + PICK_UP_NS, end_ns);
    if (s->start_ns >= w->launched_ns || first_ns >= last_ns) return;
    uint64_t start_ns = MG_MAX(w->launched_ns + PICK_UP_NS / 4, first_ns);
    if (start_ns >= last_ns) start_ns = first_ns + (last_ns - first_ns) / 2; /* it ended before the call did */
    s->uncertainty_ns =
        MG_MAX(s->uncertainty_ns, last_ns - s->start_ns); /* as wide as if the event were all there is */
    s->start_ns = start_ns;
    s->length_ns = end_ns - start_ns;
}

/* Launches of a lane run one after the other: none begins before the one in front has ended. Where their bounds overlap
 * the later one begins at that end, and is as far off as either. */
static void time_window(struct mg_nv_ctx *x, struct mg_nv_lane *l, const struct mg_nv_window *w, struct mg_nv_item *it)
{
    uint64_t seen_ns = mg_now_ns();
    struct mg_clock_span *s = &it->span;
    it->timed = it->timed && mg_nv_bases_place(&x->bases, w->begin, w->end, w->opened_ns, seen_ns, s);
    if (!it->timed) return;
    uint64_t end_uncertainty_ns = s->uncertainty_ns;
    wait_for_launch(w, s);
    if (s->start_ns < l->ended_ns && l->ended_ns - s->start_ns <= s->uncertainty_ns + l->end_uncertainty_ns) {
        end_uncertainty_ns = MG_MAX(end_uncertainty_ns, l->end_uncertainty_ns);
        s->uncertainty_ns = MG_MAX(s->uncertainty_ns, end_uncertainty_ns);
        s->start_ns = l->ended_ns;
    }
    l->ended_ns = s->start_ns + s->length_ns;
    l->end_uncertainty_ns = end_uncertainty_ns;
}

static bool batch_full(const struct batch *b)
{
    return b->n >= b->most || b->bytes >= BATCH_BYTES;
}

/* Moves n items of a window to the batch, fewer when it is full. */
static void take_items(struct batch *b, struct mg_nv_window *w, uint32_t n) /* under the lock */
{
    for (; n && !batch_full(b); n--) {
        struct mg_nv_item *it = w->first;
        if (!(w->first = it->next)) w->last = &w->first;
        w->n--;
        b->items[b->n++] = it;
        if (it->slot) b->bytes += mg_nv_slot_stride(it->slot);
    }
}

/* What has ended in one lane. False: the context is broken. */
static bool collect_lane(struct batch *b, struct mg_nv_lane *l)
{
    struct mg_nv_ctx *x = b->x;
    for (;;) {
        pthread_mutex_lock(&mg_nv.lock);
        struct mg_nv_window *w = l->first;
        while (w && !w->n && !w->pins && w != l->open) { /* spent */
            l->first = w->next;
            window_free(x, w);
            w = l->first;
        }
        uint32_t n = w ? w->n : 0;
        pthread_mutex_unlock(&mg_nv.lock);
        if (!n || batch_full(b)) return true;
        cu_result rc = x->error ? x->error : mg_nv.cuEventQuery(w->end);
        if (rc == CUE_NOT_READY) return true;
        if (rc != CUE_SUCCESS && !x->error) x->error = rc;
        if (!x->error && w->begin)
            time_window(x, l, w, w->first); /* the only item of its window; nobody else changes it */
        uint32_t from = b->n;
        pthread_mutex_lock(&mg_nv.lock);
        take_items(b, w, n);
        bool stays = w->n || w->pins || w == l->open;
        pthread_mutex_unlock(&mg_nv.lock);
        for (uint32_t i = from; i < b->n; i++)
            if (b->items[i]->seen)
                b->items[i]->seen(b->items[i]->user, b->items[i]->timed ? b->items[i]->span.length_ns : 0);
        if (stays && !x->error) return true;
        if (stays) return false;
    }
}

static int by_address(const void *a, const void *b)
{
    const struct mg_nv_slot *x = *(struct mg_nv_slot *const *)a, *y = *(struct mg_nv_slot *const *)b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Copies the slots to staging, in order of address; offs[i]: where slot i lies. */
static bool fetch(struct mg_nv_ctx *x, struct mg_nv_slot **slots, size_t *offs, uint32_t n)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        offs[i] = bytes;
        bytes += mg_nv_slot_stride(slots[i]);
    }
    bool ok = mg_nv_staging(x, bytes);
    for (uint32_t i = 0, k; i < n && ok; i = k) {
        size_t stride = mg_nv_slot_stride(slots[i]);
        for (k = i + 1; k < n && slots[k]->chunk == slots[i]->chunk && slots[k]->ix == slots[i]->ix + (k - i);) k++;
        ok = mg_nv.cuMemcpyDtoHAsync_v2((char *)x->staging + offs[i], slots[i]->at, (k - i) * stride, x->copy) ==
             CUE_SUCCESS;
    }
    return mg_nv_copies_wait(x) && ok;
}

static uint64_t *body_of(const struct mg_nv_ctx *x, struct mg_nv_slot **slots, const size_t *offs, uint32_t n,
                         struct mg_nv_slot *slot)
{
    struct mg_nv_slot **at = n ? bsearch(&slot, slots, n, sizeof *slots, by_address) : NULL;
    return at ? (uint64_t *)(void *)((char *)x->staging + offs[at - slots] + mg_nv_slot_head(slot)) : NULL;
}

bool mg_nv_slots_read(struct mg_nv_slot **slots, uint32_t n,
                      void (*fn)(void *user, struct mg_nv_slot *slot, uint64_t *body, bool spoilt), void *user)
{
    struct mg_nv_ctx *x = n ? mg_nv_slot_ctx(slots[0]) : NULL;
    size_t *offs = calloc(n + 1, sizeof *offs);
    bool ok = offs != NULL;
    qsort(slots, n, sizeof *slots, by_address);
    for (uint32_t i = 0, k; i < n && ok; i = k) {
        size_t bytes = 0;
        for (k = i; k < n && (k == i || bytes < BATCH_BYTES); k++) bytes += mg_nv_slot_stride(slots[k]);
        pthread_mutex_lock(&x->copying);
        bool pushed = !x->error && mg_nv.cuCtxPushCurrent_v2(x->ctx) == CUE_SUCCESS;
        ok = pushed && fetch(x, slots + i, offs, k - i);
        for (uint32_t j = i; j < k && ok; j++) {
            char *at = (char *)x->staging + offs[j - i];
            fn(user, slots[j], (uint64_t *)(void *)(at + mg_nv_slot_head(slots[j])),
               x->spoilt || !mg_nv_slot_is_whole(slots[j], at));
        }
        cu_ctx was;
        if (pushed) mg_nv.cuCtxPopCurrent_v2(&was);
        pthread_mutex_unlock(&x->copying);
    }
    free(offs);
    return ok;
}

void mg_nv_slots_recycle(struct mg_nv_slot **slots, uint32_t n)
{
    struct mg_nv_ctx *x = n ? mg_nv_slot_ctx(slots[0]) : NULL;
    if (!x || x->error) return;
    qsort(slots, n, sizeof *slots, by_address);
    pthread_mutex_lock(&x->copying);
    cu_ctx was;
    if (mg_nv.cuCtxPushCurrent_v2(x->ctx) == CUE_SUCCESS) {
        mg_nv_slots_restore(x, slots, n);
        mg_nv.cuCtxPopCurrent_v2(&was);
    }
    pthread_mutex_unlock(&x->copying);
}

static void hand_over(struct batch *b)
{
    struct mg_nv_ctx *x = b->x;
    struct mg_nv_slot **slots = calloc(b->n + 1, sizeof *slots);
    size_t *offs = calloc(b->n + 1, sizeof *offs);
    uint32_t n = 0;
    for (uint32_t i = 0; slots && i < b->n; i++)
        if (b->items[i]->slot) slots[n++] = b->items[i]->slot;
    if (n) qsort(slots, n, sizeof *slots, by_address);
    pthread_mutex_lock(&x->copying);
    if (!x->error && mg_now_ns() - x->looked_ns > LOOK_NS) {
        x->looked_ns = mg_now_ns();
        mg_nv_look_around(x, false);
    }
    bool ok = slots && offs && !x->error && (!n || fetch(x, slots, offs, n));
    if (!ok && !x->error && n)
        x->error = mg_nv.cuEventQuery(x->copied) == CUE_SUCCESS ? CUE_OUT_OF_MEMORY : CUE_UNKNOWN;
    for (uint32_t i = 0; i < b->n; i++) {
        struct mg_nv_item *it = b->items[i];
        struct mg_nv_done d = {.error = x->error,
                               .timed = it->timed && !x->error,
                               .start_ns = it->span.start_ns,
                               .time_ns = it->span.length_ns,
                               .uncertainty_ns = it->span.uncertainty_ns};
        if (ok && it->slot) d.body = body_of(x, slots, offs, n, it->slot);
        d.spoilt = d.body && (x->spoilt || !mg_nv_slot_is_whole(it->slot, (char *)d.body - mg_nv_slot_head(it->slot)));
        it->fn(it->user, &d);
        free(it);
    }
    if (ok && n) mg_nv_slots_restore(x, slots, n);
    pthread_mutex_unlock(&x->copying);
    pthread_mutex_lock(&mg_nv.lock);
    __atomic_sub_fetch(&x->pending, b->n, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&mg_nv.lock);
    free(slots);
    free(offs);
}

static bool takes_turns(void)
{
    return mg_nv.config.takes_turns && mg_nv.config.takes_turns();
}

/* Everything of one context that has ended by now. True: something had. */
static bool drain_ctx(struct mg_nv_ctx *x)
{
    struct mg_nv_item *items[BATCH_ITEMS];
    bool any = false;
    if (!x->error && __atomic_load_n(&x->pending, __ATOMIC_RELAXED)) mg_nv_bases_refresh(&x->bases);
    for (;;) {
        struct batch b = {.x = x, .items = items, .most = takes_turns() ? TURN_ITEMS : BATCH_ITEMS};
        pthread_mutex_lock(&mg_nv.lock);
        uint32_t n_lanes = x->pending ? x->lane_list.n : 0;
        pthread_mutex_unlock(&mg_nv.lock);
        for (uint32_t i = 0; i < n_lanes && !batch_full(&b); i++) {
            pthread_mutex_lock(&mg_nv.lock);
            struct mg_nv_lane *l = x->lane_list.at[i];
            pthread_mutex_unlock(&mg_nv.lock);
            collect_lane(&b, l);
        }
        if (!b.n) return any;
        hand_over(&b);
        any = true;
    }
}

/* True: nothing is left to wait for. only: NULL for every context. */
bool mg_nv_drain_pass(struct mg_nv_ctx *only)
{
    bool idle = true;
    pthread_mutex_lock(&mg_nv.draining);
    if (mg_nv.config.pass_begins) mg_nv.config.pass_begins();
    pthread_mutex_lock(&mg_nv.lock);
    struct mg_nv_ctx *x = mg_nv.contexts;
    pthread_mutex_unlock(&mg_nv.lock);
    for (; x; x = x->next) { /* new ones are added in front */
        if ((only && x != only) || !__atomic_load_n(&x->pending, __ATOMIC_RELAXED)) continue;
        bool live = x->error != CUE_CONTEXT_IS_DESTROYED && mg_nv.cuCtxPushCurrent_v2(x->ctx) == CUE_SUCCESS;
        if (!live && !x->error) x->error = CUE_CONTEXT_IS_DESTROYED;
        drain_ctx(x);
        cu_ctx was;
        if (live) mg_nv.cuCtxPopCurrent_v2(&was);
        idle &= !__atomic_load_n(&x->pending, __ATOMIC_RELAXED);
    }
    if (mg_nv.config.pass_ends) mg_nv.config.pass_ends();
    pthread_mutex_unlock(&mg_nv.draining);
    return idle;
}

void mg_nv_collect(void)
{
    int mode = mg_nv_relax();
    mg_nv_drain_pass(NULL);
    mg_nv_unrelax(mode);
}

bool mg_nv_drain(uint64_t timeout_ns)
{
    uint64_t end = mg_now_ns() + timeout_ns;
    int mode = mg_nv_relax();
    bool idle;
    while (!(idle = mg_nv_drain_pass(NULL)) && mg_now_ns() < end) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    pthread_mutex_lock(&mg_nv.lock);
    struct mg_nv_ctx *x = mg_nv.contexts;
    pthread_mutex_unlock(&mg_nv.lock);
    for (; x && idle; x = x->next) mg_nv_look_at_all(x);
    mg_nv_unrelax(mode);
    return idle;
}

/* ---- the thread -------------------------------------------------------------------------------------------- */

static uint64_t begun, finished; /* looks of the thread */

static void *drain_for_ever(void *arg)
{
    (void)arg;
    if (mg_nv.config.thread_begins) mg_nv.config.thread_begins();
    mg_nv_relax();
    mg_thread_name("margay drain");
    prctl(PR_SET_TIMERSLACK, 1000L); /* of this thread: it sleeps for so short */
    for (long sleep_ns = 200000;;) {
        uint64_t look = __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
        sleep_ns = mg_nv_drain_pass(NULL) ? MG_MIN(sleep_ns * 2, 4000000) : 200000;
        if (takes_turns()) sleep_ns = mg_nv.config.is_hurried() ? HURRY_NS : TURN_NS;
        __atomic_store_n(&finished, look, __ATOMIC_SEQ_CST);
        nanosleep(&(struct timespec){.tv_nsec = sleep_ns}, NULL);
    }
    return NULL;
}

void mg_nv_flush(uint64_t timeout_ns)
{
    uint64_t end = mg_now_ns() + timeout_ns, look = __atomic_load_n(&begun, __ATOMIC_SEQ_CST) + 1;
    while (__atomic_load_n(&mg_nv.thread_started, __ATOMIC_ACQUIRE) &&
           __atomic_load_n(&finished, __ATOMIC_SEQ_CST) < look && mg_now_ns() < end)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

void mg_nv_thread_start(void)
{
    static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&starting);
    if (!mg_nv.thread_started) {
        bool ok = mg_thread_start(drain_for_ever, NULL, (size_t)512 << 10, NULL);
        if (!ok && mg_nv.config.say)
            mg_nv.config.say("no thread to collect counts with: they are collected when the program ends");
        __atomic_store_n(&mg_nv.thread_started, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&starting);
}
