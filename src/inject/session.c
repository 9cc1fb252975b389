/* One session a process: from the first successful cuInit, when DIR is opened, to the end of the
 * process, when what is still queued is written. A forked child has none (CUDA does not survive a
 * fork); an exec'd one begins its own. Without MARGAY_DIR the library is a plain libcuda.so.1 and
 * nothing here runs.
 * Ends by itself in every case but a kill: exit() (its status is remembered), quick_exit, and the ways
 * of leave.c; what a kill leaves behind is what the store committed until then. */
#include "inject/session.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "base/inproc/reserve.h"
#include "base/io.h"
#include "base/json.h"
#include "base/rank.h"
#include "inject/backend.h"
#include "inject/capture/capture.h"
#include "inject/channels.h"
#include "inject/findings.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/select.h"
#include "inject/steps.h"
#include "inject/timeline.h"
#include "inject/tools.h"
#include "inject/tracefile.h"
#include "inject/verify.h"
#include "inject/waits.h"

#define RAN_OUT  "memory ran out: nothing more is recorded, and the rest of the run is native"
#define FLUSH_NS 500000000u /* reached only where the thread that drains waits for a lock of the one that ends */

struct mg_session mg_session = {.lock = PTHREAD_MUTEX_INITIALIZER, .closing = PTHREAD_RWLOCK_INITIALIZER};
__thread int mg_inside;

static int exit_status = -1;

/* ---- what to look at ---------------------------------------------------------------------------- */

bool mg_kernel_matches(const char *glob, const char *name)
{
    return !glob || mg_name_matches(glob, name);
}

/* ---- begin ---------------------------------------------------------------------------------------- */

static void read_device(struct mg_store_process *p, char name[256])
{
    int dev = 0, v = 0, minor = 0;
    name[0] = 0;
    MG_REAL_AS(cuDeviceGet, cu_device *, int)(&dev, 0);
    MG_REAL_AS(cuDeviceGetName, char *, int, cu_device)(name, 256, dev);
    cu_result (*attr)(int *, int, cu_device) = MG_REAL_AS(cuDeviceGetAttribute, int *, int, cu_device);
    if (attr(&v, CUDEV_MULTIPROCESSOR_COUNT, dev) == CUE_SUCCESS) p->sms = (uint32_t)v;
    if (attr(&v, CUDEV_COMPUTE_CAPABILITY_MAJOR, dev) == CUE_SUCCESS &&
        attr(&minor, CUDEV_COMPUTE_CAPABILITY_MINOR, dev) == CUE_SUCCESS)
        p->sm = (uint32_t)(v * 10 + minor);
    p->device_name = name;
}

static void note_exit(int status, void *user)
{
    (void)user;
    exit_status = status & 255;
    struct mg_session *s = &mg_session;
    mg_capture_end();
    if (!s->active || !mg_session_can(MG_BACKEND_HARDWARE) || (uint32_t)getpid() != s->pid) return;
    mg_inside++; /* later NVIDIA's driver has left, too */
    s->backend->drain(MG_SESSION_DRAIN_NS);
    mg_inside--;
}
static void leave_child(void)
{
    mg_session.active = false;
    mg_store_forked(mg_session.store);
    mg_session.store = NULL;
    mg_capture.on = false; /* the file is the parent's */
    mg_timeline_forked();
    mg_steps_end();
    mg_tracefile_forked();
}

static void open_profile(struct mg_session *s)
{
    char device[256], exe[4096] = "";
    s->rank = mg_rank_read(mg_config_env).rank;
    static char cmdline[65536]; /* the store copies it; static: a stack may be small */
    const char *argv[1024];
    struct mg_store_process p = {
        .run = s->config.run,
        .pid = (uint32_t)getpid(),
        .ppid = (uint32_t)getppid(),
        .rank = s->rank,
        .exe = exe,
        .argv = argv,
        .device_kind = s->backend->kind(&s->config),
        .properties = s->config.properties ? s->config.properties : "h200",
        .tools = s->config.tools ? s->config.tools : "none",
    };
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = 0;
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t bytes = f ? fread(cmdline, 1, sizeof cmdline - 1, f) : 0;
    if (f) fclose(f);
    cmdline[bytes] = 0;
    for (size_t at = 0; at < bytes && p.argc < MG_COUNT_OF(argv); at += strlen(cmdline + at) + 1)
        argv[p.argc++] = cmdline + at;
    read_device(&p, device);
    s->sm = p.sm;
    s->pid = p.pid;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    p.start_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - (mg_now_ns() - s->start_ns);
    struct mg_diag d = MG_DIAG_INIT;
    p.start_ns = s->start_ns;
    enum mg_err err = mg_store_open(s->config.dir, &p, mg_session_say_line, &s->store, &d);
    if (err) {
        s->store = NULL;
        if (s->config.scheduler)
            mg_session_error("nothing is recorded, and launches go on without the scheduler: %s",
                             mg_diag_first(&d, err));
        else
            mg_session_error("nothing is recorded: %s", mg_diag_first(&d, err));
    }
    mg_diag_release(&d);
}

static void begin(void)
{
    struct mg_session *s = &mg_session;
    if (!s->config.dir) return;
    mg_inside++;
    open_profile(s);
    if (s->store) {
        mg_select_begin();
        mg_tools_begin();
        mg_timeline_begin();
        on_exit(note_exit, NULL);
        at_quick_exit(mg_session_end);
        pthread_atfork(NULL, NULL, leave_child);
        mg_leave_watch_main();
        s->active = true;
        mg_capture_begin();
    }
    mg_inside--;
}

void mg_session_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    mg_timeline_begin_source();
}

/* ---- memory --------------------------------------------------------------------------------------- */

bool mg_session_is_short(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (MG_LIKELY(!mg_memory_is_short())) return false;
    if (mg_session.active && !atomic_flag_test_and_set(&said)) mg_session_say(RAN_OUT);
    return true;
}

bool mg_session_has_memory(size_t bytes)
{
    return !mg_memory_is_short() && mg_memory_has(bytes);
}

void mg_session_miss(void)
{
    __atomic_fetch_add(&mg_session.n_missed, 1, __ATOMIC_RELAXED);
}

/* ---- end -------------------------------------------------------------------------------------------- */

static void write_stats(struct mg_session *s)
{
    uint64_t ended, timed, executed = mg_kernel_executed(&ended, &timed);
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &b, 0);
    mg_json_obj(&j);
    const struct {
        const char *key;
        uint64_t value;
    } fields[] = {
        {"kernels", s->n_twins},
        {"launches", ended},
        {"timed", timed},
        {"parse_ns", s->ns.parse},
        {"analyse_ns", s->ns.analyse},
        {"instrument_ns", s->ns.instrument},
        {"print_ns", s->ns.print},
        {"jit_ns", s->ns.jit},
        {"load_ns", s->ns.load},
        {"execute_ns", executed},
        {"total_ns", mg_now_ns() - s->start_ns},
    };
    for (size_t k = 0; k < MG_COUNT_OF(fields); k++) {
        mg_json_key(&j, fields[k].key);
        mg_json_u64(&j, fields[k].value);
    }
    mg_json_end(&j, '}');
    mg_store_tool_json(s->store, "margay", "stats", b.at);
    mg_buf_release(&b);
}

void mg_session_end(void)
{
    struct mg_session *s = &mg_session;
    static atomic_flag ended = ATOMIC_FLAG_INIT;
    if (!s->store || (uint32_t)getpid() != s->pid || atomic_flag_test_and_set(&ended)) return;
    mg_capture_end();
    mg_inside++;
    s->backend->drain(MG_SESSION_DRAIN_NS);
    if (s->config.witness) mg_witness_end();
    s->active = false;
    mg_channels_end();
    mg_tools_end(); /* they may leave results */
    pthread_rwlock_wrlock(&s->closing);
    if (s->config.stats) write_stats(s);
    mg_waits_write();
    if (s->config.verify) mg_verify_tell();
    if (mg_session_is_short() && s->n_missed)
        mg_store_unknown(s->store, "launch", s->n_missed, mg_reason_text(MG_REASON_memory_ran_out));
    mg_kernel_tell_other_calls();
    mg_kernel_tell_other_ptx();
    mg_findings_write();
    mg_timeline_end();
    mg_steps_end();
    mg_tracefile_end();
    struct mg_store *store = s->store;
    s->store = NULL;
    pthread_rwlock_unlock(&s->closing);
    mg_store_close(store, exit_status);
    mg_select_end();
    mg_inside--;
}

void mg_session_leave(int status, uint64_t drain_ns)
{
    struct mg_session *s = &mg_session;
    if (!s->active || mg_inside || (uint32_t)getpid() != s->pid) return;
    mg_capture_end();
    mg_inside++;
    if (drain_ns)
        s->backend->drain(drain_ns);
    else
        s->backend->flush(FLUSH_NS);
    mg_timeline_flush();
    if (!pthread_rwlock_tryrdlock(&s->closing)) {
        if (s->store) mg_store_leave(s->store, status);
        mg_tracefile_leave();
        pthread_rwlock_unlock(&s->closing);
    }
    mg_inside--;
}

void mg_session_exit(int status)
{
    if ((uint32_t)getpid() != mg_session.pid) /* a vforked child shares our memory */
        return;
    exit_status = status & 255;
    mg_session_end();
}

__attribute__((destructor)) static void end_at_exit(void)
{
    mg_session_end();
}
