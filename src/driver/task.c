/* The queue of work: tasks, the edges between them, and the threads that run them.
 *
 * A task becomes ready when everything it waits for has ended. Ready tasks that do something are
 * taken by worker threads, first come first served; a worker is started whenever a task is ready
 * and none is idle, up to a bound for kernels and copies and without one for work that may block
 * for as long as it likes (functions of the application, waits for a value): so one stream can
 * never starve another. Tasks that do nothing (joins, event records) end where they become ready.
 */
#include "driver/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/thread.h"

enum { WORKERS_MAX = 128, IDLE_SECONDS = 20 };

static struct mg_task *ready_head, **ready_tail = &ready_head;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static uint32_t n_ready, n_idle, n_workers, n_blocking, n_live, n_waiters;

struct mg_task *mg_task_new(struct CUctx_st *ctx, struct mg_work *op)
{
    struct mg_task *t = calloc(1, sizeof *t);
    if (!t) {
        mg_work_release(op);
        return NULL;
    }
    t->refs = 1;
    t->n_deps = 1; /* until submitted */
    t->ctx = ctx;
    t->op = *op;
    return t;
}

void mg_task_unref(struct mg_task *t)
{
    if (!t || --t->refs) return;
    mg_work_release(&t->op);
    mg_vec_release(&t->after);
    free(t);
}

void mg_task_wait_for(struct mg_task *t, struct mg_task *dep)
{
    if (!dep || dep->done || dep == t) return;
    *mg_vec_push(&dep->after) = t;
    t->n_deps++;
}

static bool does_nothing(const struct mg_task *t)
{
    return t->op.kind == MG_OPK_EMPTY || t->op.kind == MG_OPK_RECORD || t->op.kind == MG_OPK_WAIT;
}

static bool may_block(const struct mg_task *t)
{
    return t->op.kind == MG_OPK_HOST || t->op.kind == MG_OPK_CALLBACK || t->op.kind == MG_OPK_MEMOPS ||
           t->op.kind == MG_OPK_COND;
}

static void *worker(void *arg);

static void start_worker(bool blocking)
{
    if (!mg_thread_start(worker, NULL, 0, NULL)) return;
    n_workers++;
    n_blocking += blocking;
}

/* Ends t and everything that becomes ready by it and does nothing. At most one ready task is given
 * back to be run by the caller (a worker); the others are queued. */
static struct mg_task *finish(struct mg_task *t, bool take_one)
{
    struct mg_task *mine = NULL, *todo = t;
    t->next = NULL;
    while (todo) {
        struct mg_task *d = todo;
        todo = d->next;
        d->next = NULL;
        if (!d->end_ns) d->start_ns = d->end_ns = mg_now_ns();
        __atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
        n_live--;
        if (d->mark.last) mg_watch_replayed(&d->mark);
        for (uint32_t i = 0; i < d->after.n; i++) {
            struct mg_task *s = d->after.at[i];
            if (--s->n_deps) continue;
            if (does_nothing(s)) {
                s->next = todo;
                todo = s;
            } else if (take_one && !mine && !may_block(s)) {
                mine = s;
            } else {
                s->next = NULL;
                *ready_tail = s;
                ready_tail = &s->next;
                n_ready++;
                if (n_idle >= n_ready)
                    pthread_cond_signal(&work);
                else if (may_block(s) || n_workers < WORKERS_MAX + n_blocking)
                    start_worker(may_block(s));
            }
        }
        mg_vec_release(&d->after);
        mg_task_unref(d); /* the queue's own reference */
    }
    if (n_waiters) pthread_cond_broadcast(&mg_drv.changed);
    return mine;
}

static void run(struct mg_task *t)
{
    mg_unlock();
    mg_work_run(t->ctx, &t->op, &t->mark, &t->start_ns, &t->end_ns);
    mg_lock();
}

_Thread_local bool mg_task_is_worker;

static void *worker(void *arg)
{
    (void)arg;
    mg_thread_name("margay worker");
    mg_task_is_worker = true;
    mg_lock();
    for (;;) {
        if (!ready_head) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += IDLE_SECONDS;
            n_idle++;
            int e = pthread_cond_timedwait(&work, &mg_drv.lock, &until);
            n_idle--;
            if (e == ETIMEDOUT && !ready_head) break;
            continue;
        }
        struct mg_task *t = ready_head;
        ready_head = t->next;
        if (!ready_head) ready_tail = &ready_head;
        n_ready--;
        while (t) {
            run(t);
            t = finish(t, true);
        }
    }
    n_workers--;
    mg_unlock();
    return NULL;
}

static void submit(struct mg_task *t)
{
    n_live++;
    mg_task_ref(t); /* dropped when it has ended */
}

void mg_task_submit(struct mg_task *t)
{
    submit(t);
    if (--t->n_deps) return;
    if (does_nothing(t)) {
        finish(t, false);
        return;
    }
    t->next = NULL;
    *ready_tail = t;
    ready_tail = &t->next;
    n_ready++;
    if (n_idle >= n_ready)
        pthread_cond_signal(&work);
    else if (may_block(t) || n_workers < WORKERS_MAX + n_blocking)
        start_worker(may_block(t));
    if (!n_workers) { /* no thread to be had: run it here rather than never */
        ready_head = NULL;
        ready_tail = &ready_head;
        n_ready = 0;
        run(t);
        finish(t, false);
    }
}

void mg_task_submit_here(struct mg_task *t)
{
    if (t->n_deps > 1) {
        mg_task_submit(t);
        mg_task_await(t);
        return;
    }
    submit(t);
    t->n_deps = 0;
    if (!does_nothing(t)) run(t);
    finish(t, false);
}

void mg_task_await(struct mg_task *t)
{
    n_waiters++;
    while (!t->done) pthread_cond_wait(&mg_drv.changed, &mg_drv.lock);
    n_waiters--;
}

void mg_tasks_drain(uint64_t timeout_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns % 1000000000u;
    until.tv_sec += (time_t)(timeout_ns / 1000000000u + ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    mg_lock();
    n_waiters++;
    while (n_live && pthread_cond_timedwait(&mg_drv.changed, &mg_drv.lock, &until) != ETIMEDOUT) {
    }
    n_waiters--;
    mg_unlock();
}
