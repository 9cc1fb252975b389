/* The gate: a launch passes when `margay sched` has given this process a turn, credit is left, and not too much is in
 * flight. All it reads and writes is in the process' control page (include/margay/control.h), which the scheduler maps.
 *
 *   mg_gate_pass ── shut ──► sleeps on `door` ◄── scheduler: turn, credit ◄── news ── waiting, spent, idle
 *        └─ open ─► launch ─ ─ ─ mg_gate_ended: credit less, `door` for who waits ─ ─ ─ mg_gate_correct
 *
 * Nobody waits for ever: a scheduler that gives no sign of life is forgotten, and launches that wait for the end of
 * others, which does not come, pass. Does not: choose who runs, or stop a kernel. */
#include "inject/gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/processor.h"
#include "inject/hooks.h"
#include "inject/session.h"

#define LOOK_NS      20000000u   /* who sleeps looks again */
#define STOPPED_NS   500000000u  /* a scheduler that is stopped or dead, silent for so long, is gone */
#define SILENT_NS    5000000000u /* one that is not: on a busy machine it may get no processor for long */
#define PATIENCE_NS  250000000u  /* nothing has ended for so long, or for four of the longest kernels */
#define DOUBLING_NS  250000000u  /* while nothing ends twice as many pass */
#define AHEAD_NS     1000000u    /* work in flight during a turn */
#define AHEAD_GPU_NS 2000000u    /* there, ends are seen a little late */
enum { LEAST_AHEAD = 2, MOST_AHEAD = 1024, REFUSALS = 4 };

/* Launches of this thread in a row that the driver did not take; until the one that passes now. */
static __thread uint32_t refusals, refused_before;
static struct mg_control_gate none;
struct mg_control_gate *mg_gate = &none;

static uint32_t load(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
static uint64_t load64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static void wake(uint32_t *word)
{
    int saved = errno;
    __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    errno = saved;
}

static void sleep_at_door(uint32_t seen)
{
    struct timespec t = {.tv_nsec = LOOK_NS};
    syscall(SYS_futex, &mg_gate->door, FUTEX_WAIT, seen, &t, NULL, 0);
}

/* Wakes the scheduler where it sleeps and wants to hear of this. */
static void tell_scheduler(enum mg_gate_listens what)
{
    uint32_t listens = load(&mg_gate->listens);
    if (listens < (uint32_t)what || !__atomic_compare_exchange_n(&mg_gate->listens, &listens, MG_GATE_DEAF, false,
                                                                 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    wake(&mg_gate->news);
}

void mg_gate_begin(struct mg_control_gate *gate, uint32_t scheduler)
{
    gate->beat_ns = mg_now_ns(); /* it has so long to find us */
    gate->daemon = scheduler;
    mg_gate = gate;
}

/* ---- may a launch pass? ------------------------------------------------------------------------------------ */

static uint64_t in_flight(void)
{
    uint64_t ended = load64(&mg_gate->ended), passed = load64(&mg_gate->passed);
    return passed > ended ? passed - ended : 0;
}

static uint64_t most_ahead(void)
{
    uint64_t typical = load64(&mg_gate->typical_ns),
             room = mg_session_can(MG_BACKEND_HARDWARE) ? AHEAD_GPU_NS : AHEAD_NS;
    uint64_t n = typical ? room / typical : LEAST_AHEAD;
    return n < LEAST_AHEAD ? LEAST_AHEAD : n > MOST_AHEAD ? MOST_AHEAD : n;
}

static bool has_credit(uint64_t flying)
{
    int64_t credit = __atomic_load_n(&mg_gate->credit_ns, __ATOMIC_SEQ_CST);
    return credit > 0 && (uint64_t)credit > flying * load64(&mg_gate->typical_ns);
}

/* A thread that launches on in a context that is broken uses no device time: a turn is nothing to it but to others. */
static bool may_pass(void)
{
    uint32_t turn = load(&mg_gate->turn);
    if (turn == MG_GATE_OPEN || refusals >= REFUSALS) return true;
    uint64_t flying = in_flight();
    return turn == MG_GATE_TURN && flying < most_ahead() && has_credit(flying);
}

/* A scheduler that has died, is stopped or hangs is forgotten: the gate is open until another one comes, or this one
 * goes on. */
static bool has_scheduler(void)
{
    uint32_t daemon = load(&mg_gate->daemon);
    if (!daemon) return false;
    uint64_t beat_ns = load64(&mg_gate->beat_ns), now = mg_now_ns(); /* in this order: a sign may come in between */
    uint64_t silent_ns = now > beat_ns ? now - beat_ns : 0;
    bool gone = silent_ns >= SILENT_NS ||
                (silent_ns >= STOPPED_NS && (mg_process_is_stopped(daemon) || !mg_process_is_alive(daemon)));
    if (!gone && !(kill((pid_t)daemon, 0) && errno == ESRCH)) return true;
    if (__atomic_compare_exchange_n(&mg_gate->daemon, &daemon, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        mg_session_error("the scheduler, process %u, gives no sign of life: launches go on without it", daemon);
    return false;
}

/* Does what is in flight not end, perhaps since it waits for what waits here? Then launches pass until something ends:
 * one at first, as a kernel may just be longer than all before it, and more the longer nothing ends. Half of the
 * patience is time, the other half time in which the process got the processors that it wanted. */
struct progress {
    uint64_t ended, since_ns;
    uint64_t busy_from_ns; /* 0: half of it is not over */
    uint64_t next_ns;      /* when /proc is read again: it takes some microseconds a thread */
    struct mg_processor busy_from;
};
static bool has_patience(struct progress *p, uint64_t patience_ns, uint64_t now)
{
    struct mg_processor busy = {0};
    if (now - p->since_ns <= patience_ns / 2 || now < p->next_ns) return true;
    p->next_ns = now + patience_ns / 2 + 1;
    mg_processor_add((uint32_t)getpid(), &busy);
    if (!p->busy_from_ns) p->busy_from_ns = now, p->busy_from = busy;
    return (double)(now - p->busy_from_ns) * mg_processor_part(&p->busy_from, &busy) <= (double)patience_ns / 2;
}
static struct stuck {
    uint64_t ended; /* launches that had ended by then; UINT64_MAX: never */
    uint64_t since_ns;
    uint64_t passed;             /* launches, since */
} stuck = {.ended = UINT64_MAX}; /* atomic */

static bool may_follow_stuck(uint64_t ended, uint64_t now)
{
    uint64_t doublings = (now - load64(&stuck.since_ns)) / DOUBLING_NS;
    uint64_t most = doublings < 10 ? 1u << doublings : MOST_AHEAD;
    if (load64(&stuck.ended) != ended || load64(&stuck.passed) >= most) return false;
    __atomic_fetch_add(&stuck.passed, 1, __ATOMIC_SEQ_CST);
    return true;
}

static bool is_stuck(struct progress *p)
{
    uint64_t ended = load64(&mg_gate->ended), now = mg_now_ns(), longest = 4 * load64(&mg_gate->longest_ns);
    uint64_t flying = in_flight();
    if (ended != p->ended || !flying) *p = (struct progress){.ended = ended, .since_ns = now};
    if (flying && load64(&stuck.ended) == ended) return may_follow_stuck(ended, now);
    if (has_patience(p, longest > PATIENCE_NS ? longest : PATIENCE_NS, now)) return false;
    __atomic_store_n(&stuck.passed, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&stuck.since_ns, now, __ATOMIC_SEQ_CST);
    __atomic_store_n(&stuck.ended, ended, __ATOMIC_SEQ_CST);
    return may_follow_stuck(ended, now);
}

static void wait_for_turn(void)
{
    int saved = errno;
    uint64_t from_ns = mg_now_ns();
    struct progress p = {.ended = load64(&mg_gate->ended), .since_ns = from_ns};
    __atomic_fetch_add(&mg_gate->waiting, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        uint32_t door = load(&mg_gate->door);
        __atomic_fetch_add(&mg_gate->looks, 1, __ATOMIC_RELAXED);
        if (may_pass() || !has_scheduler()) break;
        if (is_stuck(&p)) {
            __atomic_fetch_add(&mg_gate->forced, 1, __ATOMIC_RELAXED);
            break;
        }
        if (load(&mg_gate->turn) == MG_GATE_SHUT || !has_credit(0)) tell_scheduler(MG_GATE_WAITERS);
        sleep_at_door(door);
    }
    __atomic_fetch_sub(&mg_gate->waiting, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&mg_gate->waited_ns, mg_now_ns() - from_ns, __ATOMIC_RELAXED);
    errno = saved;
}

bool mg_gate_pass(void)
{
    if (MG_UNLIKELY(!may_pass())) wait_for_turn();
    refused_before = refusals;
    refusals = 0;
    __atomic_fetch_add(&mg_gate->passed, 1, __ATOMIC_SEQ_CST);
    return true;
}

/* ---- ends ---------------------------------------------------------------------------------------------------- */

/* Lets in who waits, half of what may be in flight at a time: they sleep less often so. */
static void look_at_door(void)
{
    uint64_t flying = in_flight();
    if (load(&mg_gate->waiting) && load(&mg_gate->turn) && flying <= most_ahead() / 2 && has_credit(flying))
        wake(&mg_gate->door);
}

void mg_gate_undo(bool refused)
{
    if (refused) refusals = MG_MIN(refused_before + 1, REFUSALS);
    __atomic_fetch_sub(&mg_gate->passed, 1, __ATOMIC_SEQ_CST);
    look_at_door();
}

static bool spend(uint64_t ns)
{
    __atomic_fetch_add(&mg_gate->device_ns, ns, __ATOMIC_RELAXED);
    return __atomic_sub_fetch(&mg_gate->credit_ns, (int64_t)ns, __ATOMIC_SEQ_CST) <= 0;
}

/* Launches of late count for an eighth each. */
static void note_launch(uint64_t ns)
{
    uint64_t typical = load64(&mg_gate->typical_ns);
    __atomic_store_n(&mg_gate->typical_ns, typical ? typical - typical / 8 + ns / 8 : ns, __ATOMIC_RELAXED);
}

static void note_longest(uint64_t ns)
{
    uint64_t longest = load64(&mg_gate->longest_ns);
    while (ns > longest &&
           !__atomic_compare_exchange_n(&mg_gate->longest_ns, &longest, ns, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void note_kernel(uint64_t ns)
{
    note_launch(ns);
    note_longest(ns);
}

/* Kernels of graphs that have ended since a graph did. */
static uint64_t graph_ns; /* atomic */

void mg_gate_charge(uint64_t device_ns)
{
    if (!mg_gate_is_on()) return;
    note_longest(device_ns);
    __atomic_fetch_add(&graph_ns, device_ns, __ATOMIC_RELAXED);
    if (spend(device_ns)) tell_scheduler(MG_GATE_WAITERS);
}

uint64_t mg_gate_ended(uint64_t device_ns, bool estimated)
{
    bool known = device_ns != MG_GATE_UNKNOWN;
    if (known && !estimated) note_kernel(device_ns);
    uint64_t typical_ns = load64(&mg_gate->typical_ns), ns = known ? device_ns : typical_ns ? typical_ns : 1;
    bool spent = spend(ns);
    __atomic_fetch_add(&mg_gate->ended, 1, __ATOMIC_SEQ_CST);
    look_at_door();
    if (spent)
        tell_scheduler(MG_GATE_WAITERS);
    else if (!in_flight())
        tell_scheduler(MG_GATE_IDLERS);
    return ns;
}

void mg_gate_correct(uint64_t charged_ns, uint64_t device_ns)
{
    if (!mg_gate_is_on()) return;
    note_kernel(device_ns);
    if (spend(device_ns - charged_ns)) tell_scheduler(MG_GATE_WAITERS);
    look_at_door(); /* credit may have come back */
}

bool mg_gate_has_turns(void)
{
    return mg_gate_is_on() && load(&mg_gate->turn) != MG_GATE_OPEN;
}

bool mg_gate_hurries(void)
{
    uint64_t flying = in_flight();
    return flying && mg_gate_has_turns() &&
           (load(&mg_gate->turn) == MG_GATE_SHUT || flying <= most_ahead() / 2 || !has_credit(flying));
}

static void followed(void *user)
{
    uint64_t ns = __atomic_exchange_n(&graph_ns, 0, __ATOMIC_RELAXED);
    (void)user;
    if (ns) note_launch(ns);
    __atomic_fetch_add(&mg_gate->ended, 1, __ATOMIC_SEQ_CST);
    look_at_door();
    if (!in_flight()) tell_scheduler(MG_GATE_IDLERS);
}

void mg_gate_follow(cu_stream stream, bool per_thread)
{
    void *entry = mg_slots[per_thread ? MG_FN_cuLaunchHostFunc_ptsz : MG_FN_cuLaunchHostFunc];
    if (((cu_result(*)(cu_stream, void (*)(void *), void *))entry)(stream, followed, NULL) != CUE_SUCCESS)
        followed(NULL);
}
