/* The session: from the first CUDA call of a process to its end (session.c, leave.c, slots.c). */
#ifndef MG_INJECT_SESSION_H
#define MG_INJECT_SESSION_H

#include <pthread.h>

#include "inject/backend.h"
#include "inject/config.h"
#include "store/store.h"

#define MG_MAX_USES 32
struct mg_use { /* a tool of the session (tools.c) */
    const struct mg_tool *tool;
    void *conf;
    char *name, *args, *path; /* path: of its shared object, NULL: built in */
    uint32_t store_id;
    uint32_t one_of; /* launches of a kernel it looks at one of; 1: at all */
};
struct mg_session {
    struct mg_config config;
    const struct mg_backend *backend;
    struct mg_store *store;          /* NULL: nothing is recorded */
    struct mg_use uses[MG_MAX_USES]; /* tools; only ever added to */
    uint32_t n_uses;
    const char *cannot;       /* why nothing can be instrumented; NULL: it can */
    bool active;              /* launches are looked at */
    int32_t rank;             /* of the process in a parallel program, -1: none */
    uint32_t pid;             /* of the process that opened the profile */
    uint64_t start_ns;        /* mg_now_ns at the first CUDA call */
    uint32_t sm;              /* 90 */
    pthread_mutex_t lock;     /* the maps of images.c, kernels.c and streams.c */
    pthread_rwlock_t closing; /* read: a launch or its end talks to the store; write: the session ends */
    uint32_t generation;      /* grows when a context dies: twins loaded before are dead */
    struct {
        uint64_t parse, analyse, instrument, print, jit, load;
    } ns;                /* for --stats; under the lock of twin.c, jit atomic */
    uint32_t n_twins;    /* texts made */
    uint64_t n_launches; /* looked at so far, for --launches */
    uint64_t n_missed;   /* launches since memory ran out; atomic */
};
extern struct mg_session mg_session;
/* A bit of enum mg_backend_caps; none before the first CUDA call. */
static inline bool mg_session_can(unsigned cap)
{
    return mg_session.backend && mg_session.backend->caps & cap;
}

void mg_session_begin(void);      /* at cuInit, after the driver's: opens DIR */
void mg_session_end(void);        /* at process end; later calls pass straight through */
void mg_leave_watch_main(void);   /* leave.c: the calling thread, if it is the main one, may end by pthread_exit */
void mg_session_exit(int status); /* the same, when the status is known */
#define MG_SESSION_DRAIN_NS 2000000000u /* where all ends: launches that run are waited for so long */
/* The process may end now, or become another program: what has ended so far goes to disk, with this
 * status (-1: none). When it does not end after all, recording goes on. May be called by a signal
 * handler; waits up to drain_ns for launches that run. */
void mg_session_leave(int status, uint64_t drain_ns);
/* Memory ran out (base/inproc/reserve.h): nothing more is recorded, and the rest of the run is native. Says so once. */
bool mg_session_is_short(void);
/* Is there memory for so large a step? False: it is short from now on. */
bool mg_session_has_memory(size_t bytes);
void mg_session_miss(void); /* a launch that is not recorded for that reason */
/* One line on stderr, "margay: " in front; nothing with -q. */
void mg_session_say(const char *fmt, ...) MG_PRINTF(1, 2);
void mg_session_say_line(const char *line);
void mg_session_error(const char *fmt, ...) MG_PRINTF(1, 2); /* with -q, too */
/* Does a kernel's name match a glob (mg_name_matches); without one every name does. */
bool mg_kernel_matches(const char *glob, const char *name);

#endif
