/* The TAUcuda interface (include/margay/tau_cuda.h).
 *
 *   begin ─► event ─► stream ... stream ─► event ─► end        a block is live from its begin to its delivery
 *   update, finalize: blocks of a stream in the order of their ends ─► nest.h ─► the profile object of (name,
 *     context,
 *   device, stream)                        exit: profile objects ─► profile.NODE.0.THREAD, a table
 *
 * Everything but the numbers of streams and threads belongs to one thread and needs no lock. */
#include "margay/tau_cuda.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <dlfcn.h>

#include "base/env.h"
#include "base/io.h"
#include "base/rank.h"
#include "tau/caller.h"
#include "tau/driver.h"
#include "tau/nest.h"
#include "tau/profile_file.h"

struct profile { /* a profile object */
    char *event, *context;
    int device, stream;
    struct tau_cuda_totals totals;
    struct spread {
        double most, least, squares;
    } wait, finalize;
};
struct block {
    struct tau_nested nested;
    uint64_t handle;
    cu_ctx ctx;
    uint32_t profile;
    uint64_t began_ns, asked_ns; /* host clock; asked: the first query that found it unfinished, 0: none */
};
struct stream {
    cu_stream handle;
    cu_ctx ctx;
    int device, number;
    uint64_t position;           /* of the last event */
    MG_VEC(struct block *) live; /* by begin */
};
struct thread {
    int number;
    bool exited;
    enum tau_cuda_status status;
    uint32_t said;
    bool no_driver; /* that there is none was said */
    uint64_t next_handle;
    MG_VEC(struct stream) streams;
    MG_VEC(struct profile) profiles;
    MG_VEC(char *) contexts; /* pushed */
    MG_VEC(struct {
        const void *at;
        char *name;
    })
    callers;
    MG_VEC(struct {
        cu_ctx ctx;
        cu_event event;
    })
    spare; /* events to use again */
};

static __thread struct thread *self;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the three below */
static int n_threads;
static MG_VEC(struct {
    cu_stream handle;
    cu_ctx ctx;
}) known_streams; /* number: place, less those of other contexts */
static char *command;
static uint64_t start_ns;
static pthread_key_t thread_key;

/* ---- errors ---------------------------------------------------------------------------------------------- */

const char *tau_cuda_status_name(enum tau_cuda_status status)
{
    static const char *const names[] = {
        [TAU_CUDA_OK] = "ok",
        [TAU_CUDA_NO_DRIVER] = "no driver",
        [TAU_CUDA_NO_CONTEXT] = "no context",
        [TAU_CUDA_UNKNOWN_HANDLE] = "unknown handle",
        [TAU_CUDA_EXITED] = "thread has exited",
        [TAU_CUDA_OTHER_CONTEXT] = "other context",
        [TAU_CUDA_STREAM_DESTROYED] = "stream destroyed",
        [TAU_CUDA_CAPTURING] = "stream is being captured",
        [TAU_CUDA_UNBALANCED_CONTEXT] = "pop without push",
        [TAU_CUDA_UNFINISHED] = "unfinished blocks",
        [TAU_CUDA_NOT_WRITTEN] = "profile not written",
        [TAU_CUDA_DRIVER_ERROR] = "driver error",
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}

enum tau_cuda_status tau_cuda_status(void)
{
    return self ? self->status : TAU_CUDA_OK;
}

enum { SAID_MOST = 20 };
static int MG_PRINTF(2, 3) fail(enum tau_cuda_status status, const char *fmt, ...)
{
    self->status = status;
    if (status == TAU_CUDA_NO_DRIVER && self->no_driver) return -1; /* said once: every call has it */
    self->no_driver |= status == TAU_CUDA_NO_DRIVER;
    if (++self->said > SAID_MOST) return -1;
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "tau_cuda: %s: %s%s\n", tau_cuda_status_name(status), text,
            self->said == SAID_MOST ? " (further errors of this thread are not printed)" : "");
    return -1;
}

/* ---- threads --------------------------------------------------------------------------------------------- */

static void write_profile(void);
static void release_thread(void);

static void thread_ends(void *thread)
{
    self = thread;
    if (!self->exited) {
        fprintf(stderr, "tau_cuda: thread %d ends without tau_cuda_exit: blocks that have not completed are left out\n",
                self->number);
        write_profile();
    }
    release_thread();
}

/* Destructors of a key do not run for the thread that ends the process. */
static void process_ends(void)
{
    if (self) thread_ends(self);
}

static void make_key(void)
{
    pthread_key_create(&thread_key, thread_ends);
    atexit(process_ends);
}

/* Is this thread measured? Its first call makes it so. */
static bool enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    if (!self) {
        struct thread *t = calloc(1, sizeof *t);
        if (!t) return false;
        pthread_mutex_lock(&lock);
        t->number = n_threads++;
        if (!start_ns) start_ns = mg_now_ns();
        pthread_mutex_unlock(&lock);
        pthread_setspecific(thread_key, t);
        self = t;
    }
    self->status = TAU_CUDA_OK;
    return true;
}

static bool enter_measured(const char *call)
{
    if (!enter()) return false;
    if (self->exited) return fail(TAU_CUDA_EXITED, "%s after tau_cuda_exit", call), false;
    if (!tau_driver()) return fail(TAU_CUDA_NO_DRIVER, "libcuda.so.1 was not found"), false;
    return true;
}

void tau_cuda_init(int argc, char **argv)
{
    if (!enter_measured("tau_cuda_init")) return;
    pthread_mutex_lock(&lock);
    if (!command && argc > 0 && argv) {
        struct mg_buf b = MG_BUF_INIT;
        for (int i = 0; i < argc && argv[i]; i++) {
            if (i) mg_buf_addc(&b, ' ');
            mg_buf_adds(&b, argv[i]);
        }
        command = mg_buf_take(&b);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- contexts of the host ----------------------------------------------------------------------------------- */

void tau_cuda_context_push(const char *name)
{
    if (enter()) *mg_vec_push(&self->contexts) = strdup(name ? name : "");
}

void tau_cuda_context_pop(void)
{
    if (!enter()) return;
    if (!self->contexts.n)
        fail(TAU_CUDA_UNBALANCED_CONTEXT, "tau_cuda_context_pop");
    else
        free(self->contexts.at[--self->contexts.n]);
}

/* The timer that TAU has running on this thread; NULL: TAU is not loaded, or none runs. */
static const char *tau_timer(void)
{
    static void *(*current)(void);
    static const char *(*name)(void *);
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    static bool looked;
    pthread_mutex_lock(&once);
    if (!looked) {
        current = (void *(*)(void))dlsym(RTLD_DEFAULT, "Tau_query_current_event");
        name = (const char *(*)(void *))dlsym(RTLD_DEFAULT, "Tau_query_event_name");
        looked = true;
    }
    pthread_mutex_unlock(&once);
    void *event = current && name ? current() : NULL;
    return event ? name(event) : NULL;
}

static const char *caller_name(const void *at)
{
    for (uint32_t i = 0; i < self->callers.n; i++)
        if (self->callers.at[i].at == at) return self->callers.at[i].name;
    char *name = tau_function_at(at);
    mg_vec_reserve(&self->callers, self->callers.n + 1);
    self->callers.at[self->callers.n].at = at;
    self->callers.at[self->callers.n].name = name ? name : strdup("unknown");
    return self->callers.at[self->callers.n++].name;
}

static const char *host_context(const void *caller)
{
    const char *timer = tau_timer();
    if (timer) return timer;
    return self->contexts.n ? self->contexts.at[self->contexts.n - 1] : caller_name(caller);
}

/* ---- streams and events ------------------------------------------------------------------------------------- */

/* Streams are numbered in the order of their first use, in each context; the default stream is 0. */
static int stream_number(cu_ctx ctx, cu_stream handle)
{
    if (!handle || handle == CU_LEGACY_STREAM) return 0;
    pthread_mutex_lock(&lock);
    int number = 0;
    uint32_t i = 0;
    for (; i < known_streams.n; i++) {
        if (known_streams.at[i].ctx != ctx) continue;
        number++;
        if (known_streams.at[i].handle == handle) break;
    }
    if (i == known_streams.n) {
        mg_vec_reserve(&known_streams, i + 1);
        known_streams.at[i].handle = handle;
        known_streams.at[i].ctx = ctx;
        known_streams.n++;
        number++;
    }
    pthread_mutex_unlock(&lock);
    return number;
}

/* The current context; a program that has made no CUDA call yet gets its first device's primary one, as the runtime
 * would make it. */
static cu_ctx current_context(void)
{
    const struct tau_driver *d = tau_driver();
    cu_ctx ctx = NULL;
    cu_device device;
    if (!d->cuCtxGetCurrent(&ctx) && ctx) return ctx;
    if (d->cuDeviceGet(&device, 0) || d->cuDevicePrimaryCtxRetain(&ctx, device) || d->cuCtxSetCurrent(ctx)) return NULL;
    return ctx;
}

static struct stream *find_stream(cu_stream handle, cu_ctx ctx)
{
    if (handle == CU_LEGACY_STREAM) handle = NULL;
    for (uint32_t i = 0; i < self->streams.n; i++)
        if (self->streams.at[i].handle == handle && self->streams.at[i].ctx == ctx) return &self->streams.at[i];
    return NULL;
}

static struct stream *add_stream(cu_stream handle, cu_ctx ctx)
{
    cu_device device = 0;
    tau_driver()->cuCtxGetDevice(&device);
    struct stream *s = mg_vec_push(&self->streams);
    *s = (struct stream){.handle = handle == CU_LEGACY_STREAM ? NULL : handle,
                         .ctx = ctx,
                         .device = device,
                         .number = stream_number(ctx, handle)};
    return s;
}

static cu_result get_event(cu_ctx ctx, cu_event *event)
{
    for (uint32_t i = self->spare.n; i-- > 0;)
        if (self->spare.at[i].ctx == ctx) {
            *event = self->spare.at[i].event;
            self->spare.at[i] = self->spare.at[--self->spare.n];
            return CUE_SUCCESS;
        }
    return tau_driver()->cuEventCreate(event, 0);
}

static void recycle_event(cu_ctx ctx, cu_event event)
{
    mg_vec_reserve(&self->spare, self->spare.n + 1);
    self->spare.at[self->spare.n].ctx = ctx;
    self->spare.at[self->spare.n++].event = event;
}

/* May an event be recorded there? Says why not. */
static bool may_record(cu_stream stream, cu_ctx ctx)
{
    const struct tau_driver *d = tau_driver();
    int capturing = 0;
    cu_ctx owner = ctx;
    cu_result r = stream ? d->cuStreamGetCtx(stream, &owner) : CUE_SUCCESS;
    if (!r && owner != ctx)
        return fail(TAU_CUDA_OTHER_CONTEXT, "the stream belongs to another context than the current one"), false;
    if (!r) r = d->cuStreamIsCapturing(stream, &capturing);
    if (capturing || r == CUE_STREAM_CAPTURE_IMPLICIT)
        return fail(TAU_CUDA_CAPTURING, "events in a graph have no time of their own"), false;
    if (r == CUE_INVALID_HANDLE || r == CUE_CONTEXT_IS_DESTROYED)
        return fail(TAU_CUDA_STREAM_DESTROYED, "the driver does not know the stream (%d)", r), false;
    if (r) return fail(TAU_CUDA_DRIVER_ERROR, "cuStreamIsCapturing returned %d", r), false;
    return true;
}

static uint32_t find_profile(const char *event, const char *context, const struct stream *s)
{
    for (uint32_t i = 0; i < self->profiles.n; i++) {
        const struct profile *p = &self->profiles.at[i];
        if (p->device == s->device && p->stream == s->number && !strcmp(p->event, event) &&
            !strcmp(p->context, context))
            return i;
    }
    struct profile *p = mg_vec_push(&self->profiles);
    *p = (struct profile){.event = strdup(event), .context = strdup(context), .device = s->device, .stream = s->number};
    return self->profiles.n - 1;
}

#undef tau_cuda_stream_begin
void *tau_cuda_stream_begin(const char *event, cudaStream_t stream)
{
    if (!enter_measured("tau_cuda_stream_begin")) return NULL;
    cu_ctx ctx = current_context();
    if (!ctx) return fail(TAU_CUDA_NO_CONTEXT, "no device has a context"), NULL;
    if (!may_record(stream, ctx)) return NULL;
    const char *context = host_context((const char *)__builtin_return_address(0) - 1);
    struct stream *s = find_stream(stream, ctx);
    if (!s) s = add_stream(stream, ctx);
    cu_event begin, end;
    cu_result r = get_event(ctx, &begin);
    if (r) return fail(TAU_CUDA_DRIVER_ERROR, "cuEventCreate returned %d", r), NULL;
    if ((r = get_event(ctx, &end)))
        return recycle_event(ctx, begin), fail(TAU_CUDA_DRIVER_ERROR, "cuEventCreate returned %d", r), NULL;
    struct block *b = calloc(1, sizeof *b);
    b->handle = ++self->next_handle;
    b->ctx = ctx;
    b->profile = find_profile(event ? event : "", context, s);
    b->nested.begin_event = begin;
    b->nested.end_event = end;
    b->began_ns = mg_now_ns();
    if ((r = tau_driver()->cuEventRecord(begin, stream))) {
        recycle_event(ctx, begin), recycle_event(ctx, end);
        free(b);
        return fail(r == CUE_INVALID_HANDLE ? TAU_CUDA_STREAM_DESTROYED : TAU_CUDA_DRIVER_ERROR,
                    "cuEventRecord returned %d", r),
               NULL;
    }
    b->nested.begin = ++s->position;
    *mg_vec_push(&s->live) = b;
    return (void *)(uintptr_t)b->handle;
}

void tau_cuda_stream_end(void *handle)
{
    if (!enter_measured("tau_cuda_stream_end")) return;
    struct stream *s = NULL;
    struct block *b = NULL;
    for (uint32_t i = 0; i < self->streams.n && !b; i++) {
        s = &self->streams.at[i];
        for (uint32_t k = s->live.n; k-- > 0 && !b;)
            if (s->live.at[k]->handle == (uintptr_t)handle && !s->live.at[k]->nested.end) b = s->live.at[k];
    }
    if (!b) {
        fail(TAU_CUDA_UNKNOWN_HANDLE, "tau_cuda_stream_end(%p): no block of this thread that has begun and not ended",
             handle);
        return;
    }
    cu_ctx ctx = NULL;
    if (tau_driver()->cuCtxGetCurrent(&ctx) || ctx != b->ctx) {
        fail(TAU_CUDA_OTHER_CONTEXT, "\"%s\" began in another CUDA context", self->profiles.at[b->profile].event);
        return;
    }
    if (!may_record(s->handle, ctx)) return;
    cu_result r = tau_driver()->cuEventRecord(b->nested.end_event, s->handle);
    if (r)
        fail(r == CUE_INVALID_HANDLE ? TAU_CUDA_STREAM_DESTROYED : TAU_CUDA_DRIVER_ERROR, "cuEventRecord returned %d",
             r);
    else
        b->nested.end = ++s->position;
}

/* ---- delivery --------------------------------------------------------------------------------------------------- */

static double elapsed_us(void *user, void *from, void *to)
{
    float ms = 0;
    cu_result r = tau_driver()->cuEventElapsedTime(&ms, from, to);
    if (r) *(cu_result *)user = r;
    return (double)ms * 1000;
}

static void add_sample(struct spread *s, double us, bool first)
{
    if (first || us > s->most) s->most = us;
    if (first || us < s->least) s->least = us;
    s->squares += us * us;
}

static void count_block(const struct block *b, uint64_t now_ns)
{
    struct profile *p = &self->profiles.at[b->profile];
    double wait_us = b->asked_ns ? (double)(now_ns - b->asked_ns) / 1000 : 0;
    double finalize_us = (double)(now_ns - b->began_ns) / 1000;
    bool first = !p->totals.calls++;
    p->totals.children += b->nested.children;
    p->totals.inclusive_us += b->nested.inclusive_us;
    p->totals.exclusive_us += b->nested.exclusive_us;
    p->totals.wait_us += wait_us;
    p->totals.finalize_us += finalize_us;
    add_sample(&p->wait, wait_us, first);
    add_sample(&p->finalize, finalize_us, first);
}

/* The next block of the stream to complete: the one that ended first. */
static uint32_t first_ended(const struct stream *s)
{
    uint32_t at = s->live.n;
    for (uint32_t i = 0; i < s->live.n; i++)
        if (s->live.at[i]->nested.end && (at == s->live.n || s->live.at[i]->nested.end < s->live.at[at]->nested.end))
            at = i;
    return at;
}

static void remove_block(struct stream *s, uint32_t at)
{
    struct block *b = s->live.at[at];
    recycle_event(b->ctx, b->nested.begin_event);
    recycle_event(b->ctx, b->nested.end_event);
    tau_nested_release(&b->nested);
    memmove(s->live.at + at, s->live.at + at + 1, (--s->live.n - at) * sizeof *s->live.at);
    free(b);
}

/* Delivers what has completed. wait: all that has ended. Returns how many; -1: an error. */
static int deliver(struct stream *s, bool wait)
{
    const struct tau_driver *d = tau_driver();
    int n = 0;
    for (uint32_t at; (at = first_ended(s)) < s->live.n; n++) {
        struct block *b = s->live.at[at];
        cu_result r = d->cuEventQuery(b->nested.end_event);
        if (r == CUE_NOT_READY) {
            uint64_t now_ns = mg_now_ns();
            for (uint32_t i = 0; i < s->live.n; i++)
                if (s->live.at[i]->nested.end && !s->live.at[i]->asked_ns) s->live.at[i]->asked_ns = now_ns;
            if (!wait) return n;
            r = d->cuEventSynchronize(b->nested.end_event);
        }
        if (r)
            return fail(TAU_CUDA_DRIVER_ERROR, "\"%s\": its end event returned %d", self->profiles.at[b->profile].event,
                        r);
        MG_VEC(struct tau_nested *) live = {0};
        for (uint32_t i = 0; i < s->live.n; i++) *mg_vec_push(&live) = &s->live.at[i]->nested;
        uint64_t now_ns = mg_now_ns();
        cu_result failed = CUE_SUCCESS;
        tau_nest_close(live.at, live.n, at, elapsed_us, &failed);
        mg_vec_release(&live);
        if (failed)
            fail(TAU_CUDA_DRIVER_ERROR, "\"%s\": cuEventElapsedTime returned %d", self->profiles.at[b->profile].event,
                 failed);
        else
            count_block(b, now_ns);
        remove_block(s, at);
    }
    return n;
}

/* The queries below are legal in any state of a capture: our events are not part of one. */
static int exchange_capture_mode(int mode)
{
    tau_driver()->cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}
enum { CAPTURE_RELAXED = 2 };

static int deliver_stream(cudaStream_t stream, bool wait, const char *call)
{
    if (!enter_measured(call)) return -1;
    cu_ctx ctx = NULL;
    if (tau_driver()->cuCtxGetCurrent(&ctx) || !ctx) return 0;
    struct stream *s = find_stream(stream, ctx);
    if (!s) return 0;
    int mode = exchange_capture_mode(CAPTURE_RELAXED), n = deliver(s, wait);
    exchange_capture_mode(mode);
    return n;
}

static int deliver_all(struct tau_cuda_event *events, int room, bool wait, const char *call)
{
    if (!enter_measured(call)) return -1;
    if (events && room < (int)self->streams.n) return (int)self->streams.n;
    int mode = exchange_capture_mode(CAPTURE_RELAXED);
    bool failed = false;
    for (uint32_t i = 0; i < self->streams.n; i++) {
        struct stream *s = &self->streams.at[i];
        int n = deliver(s, wait);
        failed = failed || n < 0;
        if (events) events[i] = (struct tau_cuda_event){s->device, s->number, n < 0 ? 0 : n};
    }
    exchange_capture_mode(mode);
    return failed ? -1 : (int)self->streams.n;
}

#undef tau_cuda_update_stream
#undef tau_cuda_finalize_stream
int tau_cuda_update_stream(cudaStream_t stream)
{
    return deliver_stream(stream, false, "tau_cuda_update_stream");
}
int tau_cuda_finalize_stream(cudaStream_t stream)
{
    return deliver_stream(stream, true, "tau_cuda_finalize_stream");
}
int tau_cuda_update_all(struct tau_cuda_event *events, int room)
{
    return deliver_all(events, room, false, "tau_cuda_update_all");
}
int tau_cuda_finalize_all(struct tau_cuda_event *events, int room)
{
    return deliver_all(events, room, true, "tau_cuda_finalize_all");
}

int tau_cuda_query(const char *event, const char *context, int device, int stream, struct tau_cuda_totals *totals)
{
    struct tau_cuda_totals sum = {0};
    int n = 0;
    if (!enter()) return -1;
    for (uint32_t i = 0; i < self->profiles.n; i++) {
        const struct profile *p = &self->profiles.at[i];
        if ((event && strcmp(event, p->event)) || (context && strcmp(context, p->context))) continue;
        if ((device >= 0 && device != p->device) || (stream >= 0 && stream != p->stream)) continue;
        n++;
        sum.calls += p->totals.calls;
        sum.children += p->totals.children;
        sum.inclusive_us += p->totals.inclusive_us;
        sum.exclusive_us += p->totals.exclusive_us;
        sum.wait_us += p->totals.wait_us;
        sum.finalize_us += p->totals.finalize_us;
    }
    if (totals) *totals = sum;
    return n;
}

/* ---- the end of a thread ---------------------------------------------------------------------------------------- */

static const char *environment(const char *name)
{
    return getenv(name);
}

/* MPI rank; 0 for a program that is none of a parallel run. */
static uint32_t rank(void)
{
    struct mg_rank r = mg_rank_read(environment);
    return r.rank < 0 ? 0 : (uint32_t)r.rank;
}

static void profile_folder(struct mg_buf *path)
{
    const char *folder = getenv("PROFILEDIR"), *dir = mg_env(MG_ENV_DIR);
    if (folder && *folder)
        mg_buf_adds(path, folder);
    else if (dir && *dir)
        mg_buf_printf(path, "%s/tau", dir);
    else
        mg_buf_addc(path, '.');
    mkdir(path->at, 0777);
}

static void make_file(struct tau_file *f, struct mg_buf *names)
{
    static const char *const parts[] = {"wait", "finalize"};
    *f = (struct tau_file){.node = rank(), .thread = (uint32_t)self->number};
    f->functions = calloc(self->profiles.n + 1u, sizeof *f->functions);
    f->events = calloc(2u * self->profiles.n + 1u, sizeof *f->events);
    f->metadata = calloc(4, sizeof *f->metadata);
    double run_us = (double)(mg_now_ns() - start_ns) / 1000;
    f->functions[f->n_functions++] = (struct tau_function){".TAU application", "TAU_DEFAULT", 1, 0, run_us, run_us};
    for (uint32_t i = 0; i < self->profiles.n; i++) {
        const struct profile *p = &self->profiles.at[i];
        if (!p->totals.calls) continue;
        size_t at = names->n;
        mg_buf_printf(names, "%s (C-[%s]#D-%d#S-%d)", p->event, p->context, p->device, p->stream);
        char *name = strdup(names->at + at);
        const struct tau_cuda_totals *t = &p->totals;
        f->functions[f->n_functions++] =
            (struct tau_function){name, "TAU_CUDA", t->calls, t->children, t->exclusive_us, t->inclusive_us};
        for (int k = 0; k < 2; k++) {
            const struct spread *s = k ? &p->finalize : &p->wait;
            at = names->n;
            mg_buf_printf(names, "%s : %s", name, parts[k]);
            f->events[f->n_events++] = (struct tau_user_event){strdup(names->at + at),
                                                               t->calls,
                                                               s->most,
                                                               s->least,
                                                               (k ? t->finalize_us : t->wait_us) / (double)t->calls,
                                                               s->squares};
        }
    }
    f->functions[0].children = f->n_functions - 1; /* names whose blocks all are unfinished are left out */
    f->metadata[f->n_metadata++] = (struct tau_metadata){"Metric Name", "TIME"};
    f->metadata[f->n_metadata++] = (struct tau_metadata){"Interface", "TAUcuda"};
    if (command) f->metadata[f->n_metadata++] = (struct tau_metadata){"Command Line", command};
}

static void release_file(struct tau_file *f)
{
    for (uint32_t i = 1; i < f->n_functions; i++) free((char *)f->functions[i].name);
    for (uint32_t i = 0; i < f->n_events; i++) free((char *)f->events[i].name);
    free(f->metadata);
    tau_file_release(f);
}

static void print_table(const struct tau_file *f)
{
    const char *choice = getenv("TAU_CUDA_TABLE");
    if (f->n_functions < 2 || (choice && !strcmp(choice, "0"))) return;
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_printf(&b, "tau_cuda: thread %u, times in microseconds\n%10s %15s %15s %15s %15s  event\n", f->thread,
                  "calls", "inclusive", "exclusive", "wait", "finalize");
    for (uint32_t i = 1; i < f->n_functions; i++) {
        const struct tau_function *x = &f->functions[i];
        const struct tau_user_event *e = &f->events[2 * (i - 1)];
        mg_buf_printf(&b, "%10llu %15.4f %15.4f %15.4f %15.4f  %s\n", (unsigned long long)x->calls, x->inclusive_us,
                      x->exclusive_us, e[0].mean * (double)e[0].n, e[1].mean * (double)e[1].n, x->name);
    }
    fwrite(b.at, 1, b.n, stderr);
    mg_buf_release(&b);
}

static void write_profile(void)
{
    struct mg_buf path = MG_BUF_INIT, text = MG_BUF_INIT, names = MG_BUF_INIT;
    struct tau_file f;
    make_file(&f, &names);
    tau_file_print(&f, &text);
    profile_folder(&path);
    mg_buf_printf(&path, "/profile.%u.0.%u", f.node, f.thread);
    if (mg_io_write(path.at, text.at, text.n, NULL)) fail(TAU_CUDA_NOT_WRITTEN, "%s: %s", path.at, strerror(errno));
    print_table(&f);
    release_file(&f);
    mg_buf_release(&path), mg_buf_release(&text), mg_buf_release(&names);
}

static void release_thread(void)
{
    for (uint32_t i = 0; i < self->streams.n; i++) {
        struct stream *s = &self->streams.at[i];
        while (s->live.n) remove_block(s, s->live.n - 1);
        mg_vec_release(&s->live);
    }
    for (uint32_t i = 0; i < self->profiles.n; i++)
        free(self->profiles.at[i].event), free(self->profiles.at[i].context);
    for (uint32_t i = 0; i < self->contexts.n; i++) free(self->contexts.at[i]);
    for (uint32_t i = 0; i < self->callers.n; i++) free(self->callers.at[i].name);
    mg_vec_release(&self->streams), mg_vec_release(&self->profiles), mg_vec_release(&self->contexts);
    mg_vec_release(&self->callers), mg_vec_release(&self->spare);
    free(self);
    self = NULL;
}

void tau_cuda_exit(void)
{
    if (!enter()) return;
    if (self->exited) {
        fail(TAU_CUDA_EXITED, "a second tau_cuda_exit of this thread");
        return;
    }
    if (tau_driver()) deliver_all(NULL, 0, true, "tau_cuda_exit");
    uint32_t unfinished = 0;
    for (uint32_t i = 0; i < self->streams.n; i++) unfinished += self->streams.at[i].live.n;
    write_profile();
    self->exited = true;
    for (; self->spare.n; self->spare.n--) tau_driver()->cuEventDestroy_v2(self->spare.at[self->spare.n - 1].event);
    if (unfinished) fail(TAU_CUDA_UNFINISHED, "%u blocks were begun and have not ended; they are left out", unfinished);
}
