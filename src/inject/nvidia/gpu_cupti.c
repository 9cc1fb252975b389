/* Times of device work from CUPTI (timeline, source=cupti): kernels, copies and memsets are recorded without events of
 * ours; their records wait here until CUPTI has told when they ran (cupti_join.h). Threads of the application leave
 * what they have in an inbox; one thread of ours joins it with what CUPTI hands over. CUPTI's clock is set to ours by
 * its own callback, once a process. CUPTI itself is opened here; whoever uses it already is left alone. */
#include "inject/nvidia/gpu_cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/calls.h"
#include "abi/cupti.h"
#include "base/io.h"
#include "base/thread.h"
#include "inject/nvidia/cupti_join.h"
#include "inject/session.h"

enum { IDS = 2048, MANY = 8192 }; /* functions of the driver; works that wake the thread */
#define BUFFER_BYTES ((size_t)1 << 20)
#define FLUSH_MS     200u
#define LAST_MS      5000u /* the end waits so long for CUPTI */

static struct {
#define CUPTI(name, arguments) int(*name) arguments;
    CUPTI_FUNCTIONS(CUPTI)
#undef CUPTI
} cupti;
static const int kinds[] = {CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_MEMCPY, CUPTI_KIND_MEMSET, CUPTI_KIND_PEER};
static uint8_t work_of_id[IDS]; /* of CUPTI's numbers of the driver's functions: enum mg_span_work */

/* What has come since the thread of ours looked last. */
struct filled { /* a buffer of CUPTI's */
    uint8_t *buffer;
    size_t bytes;
    uint64_t seen_ns;
};
struct inbox {
    MG_VEC(struct mg_join_call) calls;
    MG_VEC(struct mg_record_work) works;
    MG_VEC(struct filled) buffers;
};
static struct inbox inbox;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the inbox and what follows: never held for long */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool ending, ended;
static pthread_mutex_t joining = PTHREAD_MUTEX_INITIALIZER; /* of the join, and what is taken out for it */
static struct mg_join join;
static struct inbox taken;
static uint64_t dropped;

static enum mg_span_work work_of(uint32_t entry)
{
    const struct mg_call_work *w = mg_call_work(entry);
    if (w) return w->does == MG_DOES_copy ? MG_WORK_copy : w->does == MG_DOES_memset ? MG_WORK_memset : MG_WORK_COUNT;
    return mg_call_of_entry(entry)->class_ == MG_CLASS_kernel ? MG_WORK_kernel : MG_WORK_COUNT;
}

/* ---- what CUPTI hands over ------------------------------------------------------------------------------ */

static void wait_for_the_last(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LAST_MS / 1000;
    pthread_mutex_lock(&lock);
    ending = true;
    pthread_cond_broadcast(&changed);
    while (!ended && !pthread_cond_timedwait(&changed, &lock, &until)) continue;
    pthread_mutex_unlock(&lock);
}

static void finish_early(void)
{
    if (mg_inside || (uint32_t)getpid() != mg_session.pid) return;
    mg_inside++;
    mg_session.backend->drain(MG_SESSION_DRAIN_NS);
    wait_for_the_last();
    mg_inside--;
}

/* CUPTI is gone before the session ends: what exit() calls is called last come first, so this asks in front of CUPTI's
 * own, which is there when CUPTI has begun, or else when it first wants room. */
static void ask_before_it_goes(void)
{
    atexit(finish_early);
}

static void request(uint8_t **buffer, size_t *bytes, size_t *most)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_before_it_goes);
    *buffer = malloc(BUFFER_BYTES);
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *most = 0;
}

static uint32_t word_at(const void *record, size_t at)
{
    uint32_t v;
    memcpy(&v, (const char *)record + at, sizeof v);
    return v;
}

static void take_work(const struct filled *f, const void *record, enum mg_span_work work, size_t correlation_at)
{
    struct mg_join_activity a = {
        .number = word_at(record, correlation_at), .work = (uint8_t)work, .seen_ns = f->seen_ns};
    memcpy(&a.start_ns, (const char *)record + CUPTI_WORK_START, sizeof a.start_ns);
    memcpy(&a.stop_ns, (const char *)record + CUPTI_WORK_END, sizeof a.stop_ns);
    if (a.start_ns) mg_join_activity(&join, &a); /* else CUPTI has no time */
}

static void take_record(const struct filled *f, const void *record)
{
    switch (word_at(record, 0)) {
    case CUPTI_KIND_CONCURRENT_KERNEL:
        take_work(f, record, MG_WORK_kernel, CUPTI_KERNEL_CORRELATION);
        break;
    case CUPTI_KIND_MEMCPY:
        take_work(f, record, MG_WORK_copy, CUPTI_MEMORY_CORRELATION);
        break;
    case CUPTI_KIND_MEMSET:
        take_work(f, record, MG_WORK_memset, CUPTI_MEMORY_CORRELATION);
        break;
    case CUPTI_KIND_PEER:
        take_work(f, record, MG_WORK_copy, CUPTI_PEER_CORRELATION);
        break;
    }
}

/* CUPTI may hold a lock of its own here. */
static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    size_t n = 0;
    (void)bytes;
    if (!cupti.cuptiActivityGetNumDroppedRecords(context, stream, &n))
        __atomic_add_fetch(&dropped, n, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    bool keep = valid && !ended;
    if (keep) *mg_vec_push(&inbox.buffers) = (struct filled){buffer, valid, mg_now_ns()};
    pthread_mutex_unlock(&lock);
    if (!keep) free(buffer);
}

/* Calls first: each was told before its work began. The lock `joining` is held. */
static void take_all(void)
{
    pthread_mutex_lock(&lock);
    struct inbox t = inbox;
    inbox = taken;
    pthread_mutex_unlock(&lock);
    for (uint32_t i = 0; i < t.calls.n; i++) mg_join_call(&join, &t.calls.at[i]);
    for (uint32_t i = 0; i < t.works.n; i++)
        if (!mg_join_work(&join, &t.works.at[i])) join.emit(join.user, &t.works.at[i]);
    for (uint32_t i = 0; i < t.buffers.n; i++) {
        const struct filled *f = &t.buffers.at[i];
        for (void *record = NULL; !cupti.cuptiActivityGetNextRecord(f->buffer, f->bytes, &record);)
            take_record(f, record);
        free(f->buffer);
    }
    t.calls.n = t.works.n = t.buffers.n = 0;
    taken = t;
}

/* ---- the thread that asks for it ---------------------------------------------------------------------------- */

/* Inside of the driver, in a call of the application's or in one of ours for it. */
static void called(void *user, int domain, uint32_t id, const void *data)
{
    const struct cupti_callback *c = data;
    const struct mg_call_frame *f = mg_calls_recorded();
    (void)user;
    if (domain != CUPTI_DOMAIN_DRIVER || id >= IDS || c->leaves || !f || work_of(f->entry) != work_of_id[id]) return;
    pthread_mutex_lock(&lock);
    if (!ended)
        *mg_vec_push(&inbox.calls) =
            (struct mg_join_call){f->begin_ns, f->correlation, c->correlation, work_of_id[id], false};
    pthread_mutex_unlock(&lock);
}

/* The last of it: what comes later is not taken. */
static void finish(void)
{
    pthread_mutex_lock(&joining);
    take_all();
    pthread_mutex_lock(&lock);
    bool was = ended;
    ended = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (!was) take_all();
    if (!was) mg_join_finish(&join);
    pthread_mutex_unlock(&joining);
}

static bool wait_for_more(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += FLUSH_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    while (!ending && inbox.works.n < MANY && !pthread_cond_timedwait(&changed, &lock, &until)) continue;
    bool end = ending;
    pthread_mutex_unlock(&lock);
    return !end;
}

static void *flush(void *arg)
{
    mg_inside++;
    while (wait_for_more()) {
        cupti.cuptiActivityFlushAll(0);
        pthread_mutex_lock(&joining);
        take_all();
        mg_join_sweep(&join, mg_now_ns());
        pthread_mutex_unlock(&joining);
    }
    for (size_t i = 0; i < MG_COUNT_OF(kinds); i++) cupti.cuptiActivityDisable(kinds[i]);
    cupti.cuptiActivityFlushAll(CUPTI_FLUSH_FORCED);
    finish();
    return arg;
}

/* ---- begin and end ----------------------------------------------------------------------------------------- */

static bool find_functions(void *lib)
{
    const struct {
        const char *name;
        void *at;
    } functions[] = {
#define CUPTI(name, arguments) {#name, &cupti.name},
        CUPTI_FUNCTIONS(CUPTI)
#undef CUPTI
    };
    for (size_t i = 0; i < MG_COUNT_OF(functions); i++) {
        void *f = dlsym(lib, functions[i].name);
        memcpy(functions[i].at, &f, sizeof f);
        if (!f) return false;
    }
    return true;
}

/* The copy that the program has loaded, else what the loader finds, else a toolkit's. */
static void *open_library(void)
{
    static const char *const names[] = {"libcupti.so.13",
                                        "libcupti.so.12",
                                        "libcupti.so",
                                        "/usr/local/cuda/lib64/libcupti.so",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                                        "/usr/local/cuda/targets/x86_64-linux/lib/libcupti.so"};
    void *lib = NULL;
    for (int loaded = 1; loaded >= 0; loaded--)
        for (size_t i = 0; i < MG_COUNT_OF(names) && !lib; i++)
            lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | (loaded ? RTLD_NOLOAD : 0));
    return lib;
}

static bool is_known(uint32_t version)
{
    return (version >= CUPTI_OLDEST && version <= CUPTI_NEWEST_OF_12) ||
           (version >= CUPTI_OF_13 && version < CUPTI_AFTER_13);
}

/* Of functions that have the device do something that is timed. */
static bool watch_calls(void *subscriber)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < IDS; id++) {
        const char *name = NULL;
        int entry = !cupti.cuptiGetCallbackName(CUPTI_DOMAIN_DRIVER, id, &name) && name ? mg_cu_entry_find(name) : -1;
        work_of_id[id] = (uint8_t)(entry < 0 ? MG_WORK_COUNT : work_of((uint32_t)entry));
        if (work_of_id[id] == MG_WORK_COUNT) continue;
        if (cupti.cuptiEnableCallback(1, subscriber, CUPTI_DOMAIN_DRIVER, id)) return false;
        n++;
    }
    return n != 0;
}

static const char *start(void)
{
    static void *subscriber;
    uint32_t version = 0;
    void *lib = open_library();
    if (!lib) return "libcupti.so is not here";
    if (!find_functions(lib)) return "this libcupti.so lacks a function";
    if (cupti.cuptiGetVersion(&version) || !is_known(version)) return "the layout of this CUPTI's records is not known";
    int rc = cupti.cuptiSubscribe(&subscriber, called, NULL);
    if (rc == CUPTI_ERROR_SUBSCRIBED) return "another tool has subscribed to CUPTI";
    if (rc) return "CUPTI cannot be used here";
    if (!watch_calls(subscriber) || cupti.cuptiActivityRegisterTimestampCallback(mg_now_ns) ||
        cupti.cuptiActivityRegisterCallbacks(request, complete))
        return "CUPTI takes no callbacks";
    for (size_t i = 0; i < MG_COUNT_OF(kinds); i++)
        if (cupti.cuptiActivityEnable(kinds[i])) return "CUPTI does not record here";
    return mg_thread_start(flush, NULL, 0, NULL) ? NULL : "there is no thread for it";
}

bool mg_cupti_begin(void (*emit)(void *user, const struct mg_record_work *r))
{
    join.emit = emit;
    mg_inside++;
    const char *why = start();
    if (!why) ask_before_it_goes();
    mg_inside--;
    if (why) mg_session_say("source=cupti: %s: device work is timed by events", why);
    return !why;
}

void mg_cupti_end(void)
{
    wait_for_the_last();
    bool late = !ended;
    finish();
    if (late) mg_session_say("source=cupti: CUPTI did not end in time: its last records are lost");
    if (dropped || join.odd)
        mg_session_say("source=cupti: CUPTI dropped %llu records, and %llu had times that cannot be",
                       (unsigned long long)dropped, (unsigned long long)join.odd);
}

/* ---- calls and work -------------------------------------------------------------------------------------------- */

void mg_cupti_failed(const struct mg_call_frame *f)
{
    if (work_of(f->entry) == MG_WORK_COUNT) return;
    pthread_mutex_lock(&lock);
    if (!ended) *mg_vec_push(&inbox.calls) = (struct mg_join_call){.correlation = f->correlation, .failed = true};
    pthread_mutex_unlock(&lock);
}

bool mg_cupti_work(const struct mg_record_work *r)
{
    pthread_mutex_lock(&lock);
    bool held = !ended;
    if (held) *mg_vec_push(&inbox.works) = *r;
    if (held && inbox.works.n == MANY) pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return held;
}
