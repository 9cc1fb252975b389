/* Waiting until a context is at rest, with a limit: cuCtxSynchronize has none, so a thread of its own makes
 * that call, and may be left behind. For --verify: a kernel that waits for what its launching thread
 * does next would never end otherwise. And what keeps a stream back, for --repeat. */
#include "inject/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/io.h"
#include "base/thread.h"
#include "inject/backend.h"
#include "inject/hooks.h"
#include "inject/session.h"
#include "inject/twin.h"

#define WAIT_NVIDIA_NS 10000000000u
#define WAIT_OWN_NS    60000000000u
#define WAIT_SHARED_NS 1000000000u /* handed memory of the host, it may wait for the host */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    cu_ctx ctx;
    cu_result rc;
    bool done;
    int refs;
};
static struct waiter *stuck; /* one that we stopped waiting for; one launch at a time comes here */

static void waiter_drop(struct waiter *w) /* under its lock, which it releases */
{
    bool last = --w->refs == 0;
    pthread_mutex_unlock(&w->lock);
    if (last) {
        pthread_cond_destroy(&w->ended);
        pthread_mutex_destroy(&w->lock);
        free(w);
    }
}

static void *synchronise(void *arg)
{
    struct waiter *w = arg;
    mg_inside++;
    mg_capture_relax();
    cu_result rc = MG_REAL_AS(cuCtxSetCurrent, cu_ctx)(w->ctx);
    if (rc == CUE_SUCCESS) rc = MG_REAL_AS(cuCtxSynchronize, void)();
    pthread_mutex_lock(&w->lock);
    w->rc = rc;
    w->done = true;
    pthread_cond_signal(&w->ended);
    waiter_drop(w);
    return NULL;
}

static uint64_t processor_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Everything of the current context has ended: *rc is what the driver says then. False: it has not. */
bool mg_settle(cu_result *rc, bool shared)
{
    struct waiter *w = calloc(1, sizeof *w);
    bool hardware = mg_session_can(MG_BACKEND_HARDWARE);
    uint64_t limit = shared ? WAIT_SHARED_NS : hardware ? WAIT_NVIDIA_NS : WAIT_OWN_NS;
    uint64_t begin = mg_now_ns(), used = processor_ns();
    struct timespec until;
    if (!w) return false;
    *w = (struct waiter){.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER, .refs = 2};
    MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&w->ctx);
    clock_gettime(CLOCK_REALTIME, &until);
    if (!mg_thread_start(synchronise, w, 0, NULL)) {
        w->refs = 1;
        pthread_mutex_lock(&w->lock);
        waiter_drop(w);
        return false;
    }
    pthread_mutex_lock(&w->lock);
    do {
        until.tv_sec += (time_t)(limit / 1000000000u);
        while (!w->done && pthread_cond_timedwait(&w->ended, &w->lock, &until) != ETIMEDOUT) {
        }
    } while (!w->done && !hardware && !mg_settle_is_over(limit, mg_now_ns() - begin, processor_ns() - used));
    bool done = w->done;
    *rc = w->rc;
    if (done) {
        waiter_drop(w);
    } else {
        stuck = w;
        pthread_mutex_unlock(&w->lock);
    }
    return done;
}

bool mg_settle_is_stuck(void)
{
    if (!stuck) return false;
    pthread_mutex_lock(&stuck->lock);
    if (!stuck->done) {
        pthread_mutex_unlock(&stuck->lock);
        return true;
    }
    waiter_drop(stuck);
    stuck = NULL;
    return false;
}

/* ---- a stream that is held --------------------------------------------------------------------------------------- */

#define HOLD_NS 100000000u /* a stream that cannot wait for us, or does not run, is not kept longer */

static bool hold_over;

static void wait_for_end(void *user)
{
    (void)user;
    for (uint64_t until = mg_now_ns() + HOLD_NS;
         !__atomic_load_n(&hold_over, __ATOMIC_ACQUIRE) && mg_now_ns() < until;) {
    }
}

bool mg_hold_begin(cu_stream stream, bool per_thread)
{
    void *entry = mg_slots[per_thread ? MG_FN_cuLaunchHostFunc_ptsz : MG_FN_cuLaunchHostFunc];
    __atomic_store_n(&hold_over, false, __ATOMIC_RELEASE);
    return entry &&
           ((cu_result(*)(cu_stream, void (*)(void *), void *))entry)(stream, wait_for_end, NULL) == CUE_SUCCESS;
}

void mg_hold_end(void)
{
    __atomic_store_n(&hold_over, true, __ATOMIC_RELEASE);
}
