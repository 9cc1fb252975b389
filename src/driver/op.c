/* What each op does when its turn comes: runs on a worker thread, or on the caller's when nothing
 * precedes it, never under the lock. After a context has failed its work is skipped, as on a GPU. */
#include "driver/priv.h"

#include "device/defined.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/io.h"
#include "base/thread.h"

void mg_work_release(struct mg_work *op)
{
    if (op->kind == MG_OPK_KERNEL) {
        free(op->u.kernel.params);
        mg_note_unref(op->u.kernel.life);
    } else if (op->kind == MG_OPK_COPY)
        free(op->u.copy.staged);
    else if (op->kind == MG_OPK_MEMOPS)
        free(op->u.memops.at);
    else if (op->kind == MG_OPK_ALLOC)
        free(op->u.mem.params);
    else if (op->kind == MG_OPK_COND)
        mg_cond_unref(op->u.cond);
    op->kind = MG_OPK_EMPTY;
}

static void *copy_of(const void *p, size_t bytes, bool *ok)
{
    if (!p) return NULL;
    void *c = malloc(bytes ? bytes : 1);
    if (c)
        memcpy(c, p, bytes);
    else
        *ok = false;
    return c;
}

bool mg_work_clone(struct mg_work *out, const struct mg_work *op)
{
    bool ok = true;
    *out = *op;
    if (op->kind == MG_OPK_KERNEL)
        out->u.kernel.params = copy_of(op->u.kernel.params, op->u.kernel.param_bytes, &ok);
    else if (op->kind == MG_OPK_MEMOPS)
        out->u.memops.at = copy_of(op->u.memops.at, op->u.memops.n * sizeof *op->u.memops.at, &ok);
    else if (op->kind == MG_OPK_ALLOC)
        out->u.mem.params = copy_of(op->u.mem.params, sizeof *op->u.mem.params, &ok);
    if (ok && op->kind == MG_OPK_KERNEL && op->u.kernel.life) atomic_fetch_add(&op->u.kernel.life->refs, 1);
    if (op->kind == MG_OPK_COND) mg_cond_ref(op->u.cond);
    if (op->kind == MG_OPK_COPY) out->u.copy.staged = NULL; /* graphs never hold a snapshot */
    return ok;
}

/* ---- kernels ------------------------------------------------------------------------------------- */

/* ORDER FAULT */
static const int fault_results[] = {
    [MG_FAULT_NONE] = CUE_SUCCESS,
    [MG_FAULT_ADDRESS] = CUE_ILLEGAL_ADDRESS,
    [MG_FAULT_MISALIGNED] = CUE_MISALIGNED_ADDRESS,
    [MG_FAULT_TRAP] = CUE_LAUNCH_FAILED,
    [MG_FAULT_ASSERT] = CUE_ASSERT,
    [MG_FAULT_DEADLOCK] = CUE_LAUNCH_FAILED,
    [MG_FAULT_TIMEOUT] = CUE_LAUNCH_TIMEOUT,
    [MG_FAULT_UNSUPPORTED] = CUE_NOT_SUPPORTED,
    [MG_FAULT_BAD_CALL] = CUE_INVALID_PC,
    [MG_FAULT_STACK] = CUE_LAUNCH_FAILED,
    [MG_FAULT_MEMORY] = CUE_OUT_OF_MEMORY,
    [MG_FAULT_CANCELLED] = CUE_LAUNCH_FAILED,
};
_Static_assert(MG_COUNT_OF(fault_results) == MG_FAULT_COUNT, "ORDER FAULT");

cu_result mg_fault_result(enum mg_fault_kind k)
{
    return k < MG_FAULT_COUNT ? fault_results[k] : CUE_UNKNOWN;
}

static void set_error(struct CUctx_st *ctx, cu_result r)
{
    cu_result none = CUE_SUCCESS;
    __atomic_compare_exchange_n(&ctx->error, &none, r, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

enum { MOST_LINES = 20 };

/* One line each, the first ones of the process. */
static void say_findings(const struct mg_launch_stats *stats)
{
    static _Atomic uint32_t said;
    static _Atomic bool full;
    if (stats->race_full && !atomic_exchange(&full, true))
        mg_say(
            "--check: races on global memory: 4 GiB of shadow or 4,194,304 CTAs of a launch are used up, the rest is not looked at");
    for (uint32_t i = 0; i < stats->n_findings; i++) {
        if (!stats->findings[i].first || stats->findings[i].kind == MG_FINDING_NOTE) continue;
        uint32_t n = atomic_fetch_add(&said, 1);
        if (n < MOST_LINES)
            mg_say_of_kernel(stats->findings[i].text);
        else if (n == MOST_LINES)
            mg_say("--check: more findings are in the profile");
    }
}

/* This thread's processor time for a launch: where it is one of the queue's, all since the launch before. */
static _Thread_local uint64_t
    told_ns; /* until then; 0: the launch before told nothing, or this thread ran code of the application's since */
static uint64_t own_busy_ns(uint64_t from_ns)
{
    uint64_t now = mg_thread_ns(), since = mg_task_is_worker && told_ns ? told_ns : from_ns;
    told_ns = now;
    return now - since;
}

/* A kernel of a graph's node runs, perhaps beside another replay of it: what both count stands in one place. */
static void note_begins(struct mg_note_life *life)
{
    if (!life) return;
    pthread_mutex_lock(&life->lock);
    life->running++;
    pthread_mutex_unlock(&life->lock);
}

static void note_ends(const struct mg_kernel_op *k, struct mg_launch_done *done)
{
    if (k->life) pthread_mutex_lock(&k->life->lock);
    done->others = k->life && --k->life->running > 0;
    if (k->note) k->note(k->note_user, done);
    if (k->life) pthread_mutex_unlock(&k->life->lock);
}

static void run_kernel(struct CUctx_st *ctx, const struct mg_kernel_op *k, const struct mg_work_mark *m,
                       uint64_t *start_ns, uint64_t *end_ns)
{
    struct mg_launch l = {
        .kernel = k->func->dk,
        .grid = k->grid,
        .block = k->block,
        .cluster = k->cluster,
        .dyn_shared_bytes = k->shared_bytes,
        .params = k->params,
        .param_bytes = k->param_bytes,
        .cooperative = k->cooperative,
        .time_limit_ns = mg_drv.config.time_limit_ns,
        .cancel = &mg_drv.cancel,
        .busy = mg_drv.config.wants_busy && mg_drv.config.wants_busy(),
    };
    struct mg_launch_done done = {.mark = *m};
    struct mg_launch_stats stats = {0};
    uint64_t from_ns = l.busy ? mg_thread_ns() : 0;
    if (!l.busy) told_ns = 0;
    note_begins(k->life);
    done.cuda_error = __atomic_load_n(&ctx->error, __ATOMIC_ACQUIRE);
    done.start_ns = done.end_ns = mg_now_ns();
    if (!done.cuda_error) {
        mg_drv.ops->launch(mg_drv.device, &l, &stats, &done.fault);
        if (stats.start_ns) done.start_ns = stats.start_ns;
        done.end_ns = stats.end_ns ? stats.end_ns : mg_now_ns();
        done.busy_ns = l.busy ? stats.busy_ns + own_busy_ns(from_ns) : 0;
        done.cuda_error = mg_fault_result(done.fault.kind);
        if (done.cuda_error) {
            if (done.fault.text[0] && done.fault.kind != MG_FAULT_CANCELLED) mg_say_of_kernel(done.fault.text);
            set_error(ctx, done.cuda_error);
        }
        done.schedule_dependent = stats.schedule_dependent;
        done.strays = stats.strays;
        done.n_strays = stats.n_strays;
        for (uint32_t i = 0; i < stats.n_strays; i++)
            if (stats.strays[i].first) mg_say_of_kernel(stats.strays[i].text);
        done.findings = stats.findings;
        done.n_findings = stats.n_findings;
        done.unseen = stats.unseen;
        done.n_unseen = stats.n_unseen;
        say_findings(&stats);
    } else {
        done.fault.kind = MG_FAULT_CANCELLED;
    }
    note_ends(k, &done);
    free(stats.strays);
    free(stats.findings);
    free(stats.unseen);
    *start_ns = done.start_ns;
    *end_ns = done.end_ns;
}

/* ---- copies and fills ------------------------------------------------------------------------------ */

/* --check: what of it was undefined is so at its destination; on the host's side that is told. */
static void copy_defined(const struct mg_copy_op *c)
{
    if (!mg_defined_on) return;
    bool to_host = mg_ptr_pageable((uintptr_t)c->dst) || !mg_ptr_is_device_only((uintptr_t)c->dst);
    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++)
            mg_defined_copy((uintptr_t)c->dst + z * c->dst_slice + y * c->dst_pitch,
                            (uintptr_t)c->src + z * c->src_slice + y * c->src_pitch, c->width, to_host);
    for (const char *text; to_host && (text = mg_defined_said());) mg_say_of_kernel(text);
}

/* Pages that nobody has touched, as of a result's new array, at once: each by a fault of its own takes twice as long.
 * What cannot be had so, the copy itself comes to. */
static void make_present(uint8_t *at, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    const size_t page = 4096;
    uint8_t *first = (uint8_t *)(((uintptr_t)at + page - 1) & ~(page - 1)), there = 1;
    uint8_t *end = (uint8_t *)((uintptr_t)(at + bytes) & ~(page - 1));
    int saved = errno;
    if (first < end && !mincore(end - page, page, &there) && !(there & 1))
        madvise(first, (size_t)(end - first), MADV_POPULATE_WRITE);
    errno = saved;
#else
    (void)at, (void)bytes;
#endif
}

static void copy_row(uint8_t *to, const uint8_t *from, size_t n)
{
    enum { PIECE = 1 << 20 };
    bool apart = to + n <= from || from + n <= to;
    for (; n >= 2 * PIECE && apart; to += PIECE, from += PIECE, n -= PIECE) {
        make_present(to, PIECE);
        memcpy(to, from, PIECE);
    }
    memmove(to, from, n);
}

void mg_copy_run(const struct mg_copy_op *c)
{
    if (!c->width) return;
    copy_defined(c);
    if (c->height * c->depth == 1) {
        copy_row(c->dst, c->src, c->width);
        return;
    }
    bool packed = c->dst_pitch == c->width && c->src_pitch == c->width;
    for (size_t z = 0; z < c->depth; z++) {
        uint8_t *d = c->dst + z * c->dst_slice;
        const uint8_t *s = c->src + z * c->src_slice;
        if (packed) {
            memmove(d, s, c->width * c->height);
            continue;
        }
        for (size_t y = 0; y < c->height; y++) memmove(d + y * c->dst_pitch, s + y * c->src_pitch, c->width);
    }
}

static void fill_row(uint8_t *p, uint32_t value, uint32_t element, size_t n)
{
    if (element == 1) {
        memset(p, (int)(value & 0xff), n);
    } else if (element == 2) {
        uint16_t v = (uint16_t)value;
        for (size_t i = 0; i < n; i++) memcpy(p + 2 * i, &v, 2);
    } else {
        for (size_t i = 0; i < n; i++) memcpy(p + 4 * i, &value, 4);
    }
}

static void run_fill(const struct mg_fill_op *f)
{
    for (size_t y = 0; y < f->height; y++)
        mg_defined_set((uintptr_t)f->dst + y * f->pitch, f->width * f->element_bytes);
    for (size_t y = 0; y < f->height; y++) fill_row(f->dst + y * f->pitch, f->value, f->element_bytes, f->width);
}

/* ---- stream memory operations ----------------------------------------------------------------------- */

static bool reached(uint64_t at, uint64_t want, unsigned how, bool wide)
{
    switch (how & 3) {
    case CUWAIT_GEQ:
        return wide ? (int64_t)(at - want) >= 0 : (int32_t)((uint32_t)at - (uint32_t)want) >= 0;
    case CUWAIT_EQ:
        return at == want;
    case CUWAIT_AND:
        return (at & want) != 0;
    default:
        return (wide ? ~(at | want) : (uint32_t) ~(at | want)) != 0;
    }
}

static void run_memop(const union cu_memop_params *p)
{
    void *at = (void *)(uintptr_t)p->value.address;
    if (p->operation == CUMEMOP_WRITE32 || p->operation == CUMEMOP_WRITE64)
        mg_defined_set(p->value.address, p->operation == CUMEMOP_WRITE32 ? 4 : 8);
    switch (p->operation) {
    case CUMEMOP_WRITE32:
        __atomic_store_n((uint32_t *)at, p->value.value.v32, __ATOMIC_SEQ_CST);
        break;
    case CUMEMOP_WRITE64:
        __atomic_store_n((uint64_t *)at, p->value.value.v64, __ATOMIC_SEQ_CST);
        break;
    case CUMEMOP_WAIT32:
    case CUMEMOP_WAIT64: {
        bool wide = p->operation == CUMEMOP_WAIT64;
        struct timespec nap = {0, 20000};
        for (unsigned i = 0; !mg_drv.cancel; i++) {
            uint64_t v = wide ? __atomic_load_n((uint64_t *)at, __ATOMIC_SEQ_CST)
                              : __atomic_load_n((uint32_t *)at, __ATOMIC_SEQ_CST);
            if (reached(v, wide ? p->value.value.v64 : p->value.value.v32, p->value.flags, wide)) break;
            if (i > 100) nanosleep(&nap, NULL);
        }
        break;
    }
    default:
        break; /* barriers: every op here is a full one */
    }
}

void mg_work_run(struct CUctx_st *ctx, const struct mg_work *op, const struct mg_work_mark *m, uint64_t *start_ns,
                 uint64_t *end_ns)
{
    if (op->kind == MG_OPK_KERNEL) {
        run_kernel(ctx, &op->u.kernel, m, start_ns, end_ns);
        return;
    }
    *start_ns = mg_now_ns();
    cu_result error = __atomic_load_n(&ctx->error, __ATOMIC_ACQUIRE);
    switch (op->kind) {
    case MG_OPK_COPY:
        if (!error) mg_copy_run(&op->u.copy);
        break;
    case MG_OPK_FILL:
        if (!error) run_fill(&op->u.fill);
        break;
    case MG_OPK_HOST:
        mg_print_flush();
        if (!error) op->u.host.fn(op->u.host.user);
        break;
    case MG_OPK_CALLBACK:
        mg_print_flush();
        op->u.callback.fn(op->u.callback.stream, error, op->u.callback.user);
        break;
    case MG_OPK_MEMOPS:
        for (uint32_t i = 0; !error && i < op->u.memops.n; i++) run_memop(&op->u.memops.at[i]);
        break;
    case MG_OPK_FREE:
        mg_dalloc_free(op->u.mem.ptr);
        break;
    case MG_OPK_COND:
        if (!error) mg_cond_run(ctx, op->u.cond, m);
        break;
    default:
        break;
    }
    if (op->kind == MG_OPK_HOST || op->kind == MG_OPK_CALLBACK) told_ns = 0; /* the application's time */
    *end_ns = mg_now_ns();
    if (!error) mg_watch_ended(op, m, *start_ns, *end_ns);
}
