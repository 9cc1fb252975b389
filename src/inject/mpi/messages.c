/* Messages: what a call sent, and what it received by the status that MPI gave. Where the program ignores the status
 * the call gets one of ours. What a request stands for is kept from the call that made it to the one that completes it,
 * so that a receive is counted from where it was posted: that order decides which message it gets.
 *
 * A record's time is 1 ns before the call that posted the operation: in order of time it stands in front of that call,
 * and of the one that completes it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "inject/mpi/mpi.h"

enum { FEW = 64, STATUS_BYTES = 24 /* Open MPI; of MPICH and its like 20 */ };
struct pending {
    struct mg_record_message m;
    uint64_t handle, communicator; /* handles */
    bool kept, started, cancelled;
    bool claimed; /* a call asks or waits for it, which may hand its handle to another thread before we know */
};
struct waited { /* what a call asks for or waits for, as it stood before */
    uint32_t n;
    bool few;            /* in the thread's own */
    struct pending **of; /* of each request; NULL: not known */
    uint8_t *statuses;   /* where the call leaves them */
};
static __thread struct {
    bool taken;
    struct pending *of[FEW];
    uint8_t statuses[FEW * STATUS_BYTES];
    struct waited waited;
} own;
static struct mg_mpi_table requests, matched; /* handles -> struct pending */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { AT_HANDLE = MG_MPI_STATE, AT_STATUS, AT_WAITED };

static void put(const struct mg_record_message *m)
{
    mg_mpi.link->put(MG_LINK_MESSAGE, m, NULL, 0);
}

/* ---- before a call ------------------------------------------------------------------------------------------- */

static uint64_t *argument(uint64_t *registers, uint64_t *stack, int at)
{
    return at < 6 ? &registers[at] : &stack[at - 6];
}

static bool is_ignored(uint64_t status) /* MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE */
{
    return status <= 1;
}

static void give_status(struct mg_call_frame *f, uint64_t *word)
{
    if (is_ignored(*word) && !own.taken) {
        own.taken = true;
        *word = (uint64_t)(uintptr_t)own.statuses;
    }
    f->args[AT_STATUS] = *word;
}

static struct waited *take_waited(uint32_t n)
{
    if (n <= FEW && !own.taken) {
        own.taken = true;
        own.waited = (struct waited){n, true, own.of, own.statuses};
        return &own.waited;
    }
    struct waited *w = malloc(sizeof *w + (size_t)n * (sizeof *w->of + STATUS_BYTES));
    if (!w) return NULL;
    *w = (struct waited){n, false, (struct pending **)(void *)(w + 1), NULL};
    w->statuses = (uint8_t *)(w->of + n);
    return w;
}

/* Where the statuses stand among a call's arguments, behind the request or requests. */
static int status_at(enum mg_mpi_role role, int at)
{
    switch (role) {
    case MG_MPI_ROLE_WAIT:
    case MG_MPI_ROLE_WAIT_ALL:
        return at + 1;
    case MG_MPI_ROLE_TEST_ANY:
    case MG_MPI_ROLE_WAIT_SOME:
        return at + 3;
    default:
        return at + 2;
    }
}

static void keep_requests(struct mg_call_frame *f, const struct mg_mpi_row *r, uint64_t *registers, uint64_t *stack)
{
    bool one = r->role == MG_MPI_ROLE_WAIT || r->role == MG_MPI_ROLE_TEST || r->role == MG_MPI_ROLE_START;
    uint64_t count = one ? 1 : (uint32_t)f->args[r->at - 1];
    struct waited *w = count && count <= INT32_MAX ? take_waited((uint32_t)count) : NULL;
    f->args[AT_WAITED] = (uint64_t)(uintptr_t)w;
    if (!w) return;
    const void *at = (const void *)(uintptr_t)f->args[r->at];
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < w->n; i++) {
        struct pending *p = mg_mpi_table_get(&requests, mg_mpi_handle_at(at, i));
        w->of[i] = p && !p->claimed ? p : NULL;
        if (w->of[i]) p->claimed = true;
    }
    pthread_mutex_unlock(&lock);
    if (r->role == MG_MPI_ROLE_START || r->role == MG_MPI_ROLE_START_ALL) return;
    uint64_t *word = argument(registers, stack, status_at(r->role, r->at));
    if (is_ignored(*word))
        *word = (uint64_t)(uintptr_t)w->statuses;
    else
        w->statuses = (uint8_t *)(uintptr_t)*word;
}

static void give_waited(const struct mg_call_frame *f)
{
    struct waited *w = (struct waited *)(uintptr_t)f->args[AT_WAITED];
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; w && i < w->n; i++)
        if (w->of[i]) w->of[i]->claimed = false;
    pthread_mutex_unlock(&lock);
    if (w && w->few)
        own.taken = false;
    else
        free(w);
}

void mg_mpi_before(struct mg_call_frame *f, const struct mg_mpi_row *r, uint64_t *registers, uint64_t *stack)
{
    f->args[AT_WAITED] = f->args[AT_STATUS] = 0;
    switch ((enum mg_mpi_role)r->role) {
    case MG_MPI_ROLE_RECEIVE:
    case MG_MPI_ROLE_SEND_RECEIVE:
        give_status(f, argument(registers, stack, r->at));
        break;
    case MG_MPI_ROLE_RECEIVE_MATCHED:
        give_status(f, argument(registers, stack, r->at + 1)); /* fall through */
    case MG_MPI_ROLE_START_MATCHED:
    case MG_MPI_ROLE_FREE:
    case MG_MPI_ROLE_CANCEL:
    case MG_MPI_ROLE_UNMAKE:
        f->args[AT_HANDLE] = mg_mpi_handle_at((const void *)(uintptr_t)f->args[r->at], 0);
        break;
    case MG_MPI_ROLE_FINISH:
        mg_mpi_align_clocks(true);
        break;
    case MG_MPI_ROLE_START:
    case MG_MPI_ROLE_START_ALL:
    case MG_MPI_ROLE_WAIT:
    case MG_MPI_ROLE_WAIT_ALL:
    case MG_MPI_ROLE_WAIT_ANY:
    case MG_MPI_ROLE_WAIT_SOME:
    case MG_MPI_ROLE_TEST:
    case MG_MPI_ROLE_TEST_ALL:
    case MG_MPI_ROLE_TEST_ANY:
        keep_requests(f, r, registers, stack);
        break;
    default:
        break;
    }
}

/* ---- what was sent and received ---------------------------------------------------------------------------- */

uint64_t mg_mpi_bytes(uint64_t count, uint64_t type)
{
    int size = 0;
    if (mg_mpi.type_size(mg_mpi_handle(type), &size) || size < 0) return MG_MPI_NONE;
    return (uint64_t)(uint32_t)count * (uint32_t)size;
}

static struct mg_record_message sent(const struct mg_call_frame *f, const struct mg_mpi_row *r, uint64_t begin_ns)
{
    uint64_t communicator = mg_mpi_handle(f->args[r->communicator]);
    return (struct mg_record_message){
        .time = begin_ns - 1,
        .correlation = f->correlation,
        .communicator = mg_mpi_communicator(communicator),
        .bytes = mg_mpi_bytes(f->args[r->count], f->args[r->type]),
        .tag = (int64_t)(int)f->args[r->tag],
        .peer = (uint32_t)mg_mpi_world_rank(communicator, (int)f->args[r->peer]),
        .kind = MG_MESSAGE_SENT,
    };
}

/* The part of a receive that its status tells. False: there was no message. */
static bool read_status(struct mg_record_message *m, uint64_t communicator, const void *status)
{
    const int *s = status;
    int source = s[mg_mpi.ints ? 2 : 0], tag = s[mg_mpi.ints ? 3 : 1];
    int64_t bytes = 0;
    m->kind = MG_MESSAGE_RECEIVED;
    m->tag = tag;
    m->peer = (uint32_t)mg_mpi_world_rank(communicator, source);
    m->bytes = mg_mpi.elements(status, mg_mpi.byte, &bytes) || bytes < 0 ? MG_MPI_NONE : (uint64_t)bytes;
    return source >= 0;
}

static void received(const struct mg_call_frame *f, uint64_t communicator, uint64_t begin_ns, const void *status)
{
    struct mg_record_message m = {.time = begin_ns - 1,
                                  .correlation = f->correlation,
                                  .done = f->correlation,
                                  .communicator = mg_mpi_communicator(communicator)};
    if (!is_ignored((uint64_t)(uintptr_t)status) && read_status(&m, communicator, status)) put(&m);
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

/* What its place was taken from was complete at once, as requests are that share a handle. */
static void keep(struct mg_mpi_table *t, uint64_t handle, const struct pending *p)
{
    struct pending *copy = malloc(sizeof *copy);
    pthread_mutex_lock(&lock);
    struct pending *old = mg_mpi_table_get(t, handle);
    if (copy) *copy = *p;
    if (copy) copy->handle = handle;
    bool ok = copy && mg_mpi_table_put(t, handle, copy);
    if (old && old->claimed) old = NULL; /* whoever asks for it knows it is complete */
    pthread_mutex_unlock(&lock);
    if (old && ok && old->started && old->m.kind == MG_MESSAGE_SENT) put(&old->m);
    if (ok)
        free(old);
    else
        free(copy);
    if (!ok && p->started && p->m.kind == MG_MESSAGE_SENT) put(&p->m);
}

static void started(const struct mg_call_frame *f, const struct mg_mpi_row *r, uint64_t begin_ns, bool sends,
                    bool persistent)
{
    struct pending p = {.kept = persistent, .started = !persistent};
    uint64_t communicator = mg_mpi_handle(f->args[r->communicator]);
    p.communicator = communicator;
    p.m = sends ? sent(f, r, begin_ns)
                : (struct mg_record_message){.time = begin_ns - 1,
                                             .correlation = f->correlation,
                                             .communicator = mg_mpi_communicator(communicator),
                                             .kind = MG_MESSAGE_RECEIVED};
    if (sends && !persistent && (int)f->args[r->peer] < 0) { /* to no process: there is no request */
        put(&p.m);
        return;
    }
    keep(&requests, mg_mpi_handle_at((const void *)(uintptr_t)f->args[r->at], 0), &p);
}

static void matched_one(const struct mg_call_frame *f, const struct mg_mpi_row *r, uint64_t begin_ns)
{
    bool found = r->role == MG_MPI_ROLE_MATCH || *(const int *)(uintptr_t)f->args[r->at - 1];
    struct pending p = {.started = true, .communicator = mg_mpi_handle(f->args[r->communicator])};
    if (!found) return;
    p.m = (struct mg_record_message){.time = begin_ns - 1,
                                     .correlation = f->correlation,
                                     .communicator = mg_mpi_communicator(p.communicator),
                                     .kind = MG_MESSAGE_RECEIVED};
    keep(&matched, mg_mpi_handle_at((const void *)(uintptr_t)f->args[r->at], 0), &p);
}

static struct pending *take(struct mg_mpi_table *t, uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct pending *p = mg_mpi_table_take(t, handle);
    pthread_mutex_unlock(&lock);
    return p;
}

static void start_kept(const struct mg_call_frame *f, uint64_t begin_ns)
{
    const struct waited *w = (const struct waited *)(uintptr_t)f->args[AT_WAITED];
    for (uint32_t i = 0; w && i < w->n; i++) {
        struct pending *p = w->of[i];
        if (!p || !p->kept) continue;
        p->started = true;
        p->m.time = begin_ns - 1;
        p->m.correlation = f->correlation;
    }
}

static void write_completed(struct pending *p, uint64_t correlation, const void *status)
{
    int cancelled = 0;
    if (p->cancelled && status) mg_mpi.cancelled(status, &cancelled);
    p->m.done = correlation;
    bool is_message = p->m.kind == MG_MESSAGE_SENT || (status && read_status(&p->m, p->communicator, status));
    if (is_message && !cancelled) put(&p->m);
}

static void completed(const struct mg_call_frame *f, struct waited *w, uint32_t ix, const void *status)
{
    struct pending *p = w->of[ix];
    if (!p || !p->started) return;
    write_completed(p, f->correlation, status);
    if (p->kept) {
        p->started = p->cancelled = false;
        return;
    }
    w->of[ix] = NULL;
    pthread_mutex_lock(&lock);
    if (mg_mpi_table_get(&requests, p->handle) == p) mg_mpi_table_take(&requests, p->handle);
    pthread_mutex_unlock(&lock);
    free(p);
}

static void waited_for(const struct mg_call_frame *f, const struct mg_mpi_row *r)
{
    struct waited *w = (struct waited *)(uintptr_t)f->args[AT_WAITED];
    size_t step = mg_mpi.ints ? 20 : STATUS_BYTES;
    const int *first = (const int *)(uintptr_t)f->args[r->at + 1]; /* flag, index, or number of indices */
    if (!w) return;
    switch ((enum mg_mpi_role)r->role) {
    case MG_MPI_ROLE_TEST:
    case MG_MPI_ROLE_TEST_ALL:
        if (!*first) return; /* fall through */
    case MG_MPI_ROLE_WAIT:
    case MG_MPI_ROLE_WAIT_ALL:
        for (uint32_t i = 0; i < w->n; i++) completed(f, w, i, w->statuses + i * step);
        return;
    case MG_MPI_ROLE_TEST_ANY:
        if (!*(const int *)(uintptr_t)f->args[r->at + 2]) return; /* fall through */
    case MG_MPI_ROLE_WAIT_ANY:
        if (*first >= 0 && (uint32_t)*first < w->n) completed(f, w, (uint32_t)*first, w->statuses);
        return;
    default:
        break;
    }
    const int *indices = (const int *)(uintptr_t)f->args[r->at + 2];
    for (int i = 0; i < *first; i++)
        if (indices[i] >= 0 && (uint32_t)indices[i] < w->n)
            completed(f, w, (uint32_t)indices[i], w->statuses + (size_t)i * step);
}

/* A send whose request is given up is sent all the same. */
static void forget(uint64_t handle)
{
    struct pending *p = take(&requests, handle);
    if (p && p->started && p->m.kind == MG_MESSAGE_SENT) put(&p->m);
    free(p);
}

static void finish(void)
{
    for (uint32_t i = 0; i < requests.room; i++) {
        const struct pending *p = requests.slots[i].value;
        if (p && p->started && p->m.kind == MG_MESSAGE_SENT) put(&p->m);
    }
}

static void cancel(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct pending *p = mg_mpi_table_get(&requests, handle);
    if (p) p->cancelled = true;
    pthread_mutex_unlock(&lock);
}

static void received_matched(const struct mg_call_frame *f, const struct mg_mpi_row *r)
{
    struct pending *p = take(&matched, f->args[AT_HANDLE]);
    if (!p) return;
    if (r->role == MG_MPI_ROLE_RECEIVE_MATCHED && !is_ignored(f->args[AT_STATUS]))
        write_completed(p, f->correlation, (const void *)(uintptr_t)f->args[AT_STATUS]);
    if (r->role == MG_MPI_ROLE_START_MATCHED)
        keep(&requests, mg_mpi_handle_at((const void *)(uintptr_t)f->args[r->at + 1], 0), p);
    free(p);
}

/* ---- after a call -------------------------------------------------------------------------------------------- */

static void write_messages(const struct mg_call_frame *f, const struct mg_mpi_row *r, uint64_t begin_ns)
{
    struct mg_record_message m;
    enum mg_mpi_role role = (enum mg_mpi_role)r->role;
    if (role == MG_MPI_ROLE_SEND || role == MG_MPI_ROLE_SEND_RECEIVE) {
        m = sent(f, r, begin_ns);
        m.done = f->correlation;
        put(&m);
    }
    if (role == MG_MPI_ROLE_RECEIVE || role == MG_MPI_ROLE_SEND_RECEIVE)
        received(f, mg_mpi_handle(f->args[r->communicator]), begin_ns, (const void *)(uintptr_t)f->args[AT_STATUS]);
}

void mg_mpi_after(struct mg_call_frame *f, const struct mg_mpi_row *r, int result, uint64_t begin_ns)
{
    enum mg_mpi_role role = (enum mg_mpi_role)r->role;
    bool sends = role == MG_MPI_ROLE_START_SEND || role == MG_MPI_ROLE_KEEP_SEND;
    bool persistent = role == MG_MPI_ROLE_KEEP_SEND || role == MG_MPI_ROLE_KEEP_RECEIVE;
    if (result) role = MG_MPI_ROLE_NONE;
    if (role >= MG_MPI_ROLE_WAIT && role <= MG_MPI_ROLE_TEST_ANY) waited_for(f, r);
    if (role == MG_MPI_ROLE_START || role == MG_MPI_ROLE_START_ALL) start_kept(f, begin_ns);
    if (sends || persistent || role == MG_MPI_ROLE_START_RECEIVE)
        if (!result) started(f, r, begin_ns, sends, persistent);
    if (role == MG_MPI_ROLE_FREE) forget(f->args[AT_HANDLE]);
    if (role == MG_MPI_ROLE_CANCEL) cancel(f->args[AT_HANDLE]);
    if (role == MG_MPI_ROLE_MATCH || role == MG_MPI_ROLE_MATCH_NOW) matched_one(f, r, begin_ns);
    if (role == MG_MPI_ROLE_RECEIVE_MATCHED || role == MG_MPI_ROLE_START_MATCHED) received_matched(f, r);
    if (role == MG_MPI_ROLE_UNMAKE) mg_mpi_unmade(f->args[AT_HANDLE]);
    if (role == MG_MPI_ROLE_BEGIN) mg_mpi_align_clocks(false);
    if (role == MG_MPI_ROLE_FINISH) finish();
    if (role == MG_MPI_ROLE_MAKE || role == MG_MPI_ROLE_MAKE_APART)
        mg_mpi_made(mg_mpi_handle(f->args[r->communicator]),
                    mg_mpi_handle_at((const void *)(uintptr_t)f->args[r->at], 0), r->tag < 0 ? 0 : f->args[r->tag],
                    role == MG_MPI_ROLE_MAKE_APART);
    if (!result) write_messages(f, r, begin_ns);
    if (f->args[AT_STATUS] == (uint64_t)(uintptr_t)own.statuses) own.taken = false;
    give_waited(f);
}
