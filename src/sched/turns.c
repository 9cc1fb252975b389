/* Who has the device. One program at a time has the turn: its gates are open while its credit lasts, and the next one's
 * turn begins when its work has ended. So the device time of a launch is its own, also where the device is shared by
 * slices of time.
 *
 *   nobody ── choose ──► turn ── spent, idle, nothing moves, a higher priority waits ──► closing ── its work ended ──►
 * nobody
 *
 * Credits: a turn ends when the credit is used up; what is used beyond it is owed. When nobody who waits has credit, as
 * many periods' worth is given to all as it takes. So device time follows the rates of the policy over any longer time,
 * whatever the kernels' lengths are, and no time of the device is kept for who does not want it. */
#include "sched/sched.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

#define ACTIVE_NS          50000000u  /* who wanted the device so lately has a share of it */
#define GRACE_NS           300000u    /* a program may think so long between two launches */
#define STALL_NS           250000000u /* nothing has moved for so long, on a machine with time for it */
#define STARVED_NS         700000000u /* on one without */
#define RETRY_NS           1000000000u
#define DRAIN_NS           200000000u /* a turn's last work is waited for so long, or for two of its longest kernels */
#define SOLO_NS            4e9        /* credit of who has the device alone, until somebody else comes */
#define CONTENDED_SLEEP_NS 4000000u
#define DRAIN_SLEEP_NS     1000000u
#define SAVED_PERIODS      2   /* credit that can be saved up */
#define AHEAD_PERIODS      0.1 /* how far in front somebody who had yielded must be to get the turn at once */

static struct mg_sched_program *holder_of(struct mg_sched *s)
{
    return s->holder >= 0 ? &s->programs.at[s->holder] : NULL;
}

static double rate_of(const struct mg_sched *s, uint32_t i)
{
    return i < s->views.n ? s->views.at[i].rate_ns : 1e6;
}

/* ---- choosing ---------------------------------------------------------------------------------------------- */

/* Nothing of it has moved in its last turn: it is passed over for a while. */
static bool is_stalled(const struct mg_sched *s, const struct mg_sched_program *p)
{
    return p->stalled_ns && s->now_ns - p->stalled_ns < RETRY_NS;
}

/* Its next launch may come at once. */
static bool has_paused(const struct mg_sched *s, const struct mg_sched_program *p)
{
    return p->idle_ns && s->now_ns - p->idle_ns >= GRACE_NS;
}

static bool may_run(const struct mg_sched *s, uint32_t i)
{
    const struct mg_sched_program *p = &s->programs.at[i];
    bool works = (int)i == s->holder && !s->closing && !has_paused(s, p); /* it may go on without a gap */
    return p->members.n && (p->waits || works);
}

/* Programs that are stalled come last. */
static bool is_candidate(const struct mg_sched *s, uint32_t i)
{
    bool others = false;
    for (uint32_t k = 0; k < s->programs.n && is_stalled(s, &s->programs.at[i]); k++)
        others |= may_run(s, k) && !is_stalled(s, &s->programs.at[k]);
    return may_run(s, i) && !others;
}

static int32_t highest_priority(const struct mg_sched *s)
{
    int32_t highest = INT32_MIN;
    for (uint32_t i = 0; i < s->programs.n; i++)
        if (is_candidate(s, i)) highest = MG_MAX(highest, s->programs.at[i].priority);
    return highest;
}

static bool is_active(const struct mg_sched_program *p, uint64_t now)
{
    return p->members.n && p->wanted_ns && now - p->wanted_ns < ACTIVE_NS;
}

/* What is in flight when the turn of another one begins is charged at its end. */
static bool runs_beside(const struct mg_sched *s, uint32_t i)
{
    return s->programs.at[i].flying && (int)i != s->holder;
}

/* What can be saved up. An idle program gives its share away: that pays what it owes, and no more. One whose kernel
 * takes long beside the turns of others will be charged for all of it, so until then it saves what it would have had.
 */
static double most_credit(const struct mg_sched *s, uint32_t i, uint64_t now)
{
    const struct mg_sched_program *p = &s->programs.at[i];
    if (!is_active(p, now)) return 0;
    return fmax(p->credit_ns,
                SAVED_PERIODS * rate_of(s, i) + (runs_beside(s, i) ? 2.0 * (double)p->use.longest_ns : 0));
}

static void begin_periods(struct mg_sched *s, double periods, uint64_t now)
{
    for (uint32_t i = 0; i < s->programs.n; i++)
        s->programs.at[i].credit_ns =
            fmin(s->programs.at[i].credit_ns + periods * rate_of(s, i), most_credit(s, i, now));
}

/* As many periods begin as it takes until a candidate has credit. */
static void refill(struct mg_sched *s, int32_t priority, uint64_t now)
{
    double periods = INFINITY;
    for (uint32_t i = 0; i < s->programs.n; i++)
        if (is_candidate(s, i) && s->programs.at[i].priority == priority)
            periods = fmin(periods, floor(fmax(-s->programs.at[i].credit_ns, 0) / rate_of(s, i)) + 1);
    if (periods < INFINITY) begin_periods(s, periods, now);
}

/* Of those of the highest priority that wait and have credit: the last holder, else who has most. -1: nobody waits. */
static int choose(struct mg_sched *s, uint64_t now)
{
    int32_t priority = highest_priority(s);
    for (int round = 0; round < 2; round++) {
        int best = -1;
        double most = 0;
        for (uint32_t i = 0; i < s->programs.n; i++) {
            const struct mg_sched_program *p = &s->programs.at[i];
            if (!is_candidate(s, i) || p->priority != priority || p->credit_ns <= 0) continue;
            double periods = p->credit_ns / rate_of(s, i);
            if ((int)i == s->last) return (int)i;
            if (periods > most) best = (int)i, most = periods;
        }
        if (best >= 0) return best;
        refill(s, priority, now);
    }
    return -1;
}

/* ---- turns --------------------------------------------------------------------------------------------------- */

static bool somebody_else_waits(const struct mg_sched *s)
{
    for (uint32_t i = 0; i < s->programs.n; i++)
        if ((int)i != s->holder && s->programs.at[i].waits && !is_stalled(s, &s->programs.at[i])) return true;
    return false;
}

/* Has nobody else wanted the device lately? One that is stalled uses it while it has work in flight. */
static bool is_alone(const struct mg_sched *s, int i, uint64_t now)
{
    for (uint32_t k = 0; k < s->programs.n; k++) {
        const struct mg_sched_program *p = &s->programs.at[k];
        if ((int)k != i && is_active(p, now) && (p->flying || !is_stalled(s, p))) return false;
    }
    return true;
}

static void begin_turn(struct mg_sched *s, int i, uint64_t now)
{
    struct mg_sched_program *p = &s->programs.at[i];
    s->holder = s->last = i;
    s->closing = false;
    s->solo = is_alone(s, i, now);
    s->turns++;
    if (!p->flying) p->credit_ns = fmin(p->credit_ns, SAVED_PERIODS * rate_of(s, (uint32_t)i));
    p->yielded = false;
    p->moved_ns = now;
    p->idle_ns = 0;
    if (!s->solo) mg_sched_hear(p, MG_GATE_IDLERS); /* it may have done its work before the next look */
    mg_sched_turn(p, MG_GATE_TURN, s->solo ? SOLO_NS : p->credit_ns);
}

static void close_turn(struct mg_sched *s, uint64_t now)
{
    s->closing = true;
    s->closing_ns = now;
    mg_sched_turn(holder_of(s), MG_GATE_SHUT, 0);
}

static bool has_drained(const struct mg_sched *s, const struct mg_sched_program *p, uint64_t now)
{
    uint64_t patience = p->stalled_ns ? 0 : MG_MIN(MG_MAX(2 * p->use.longest_ns, DRAIN_NS / 10), DRAIN_NS);
    return !p->flying || now - s->closing_ns >= patience;
}

/* Time alone is not charged: nobody wanted it. */
static void watch_solo(struct mg_sched *s, struct mg_sched_program *p, uint64_t now)
{
    double rate = rate_of(s, (uint32_t)s->holder);
    bool alone = is_alone(s, s->holder, now);
    begin_periods(s, fmax(0, 1 - p->credit_ns / rate), now);
    p->credit_ns = rate;
    if (!alone || !s->solo || __atomic_load_n(&p->members.at[0].page->gate.credit_ns, __ATOMIC_SEQ_CST) < SOLO_NS / 2)
        mg_sched_turn(p, MG_GATE_TURN, alone ? SOLO_NS : rate);
    if (!alone) mg_sched_hear(p, MG_GATE_IDLERS);
    s->solo = alone;
}

/* Who had given its turn away since it had nothing to launch, and is back with more credit than the holder. */
static bool is_overtaken(const struct mg_sched *s, const struct mg_sched_program *h)
{
    double left = h->credit_ns / rate_of(s, (uint32_t)s->holder);
    for (uint32_t i = 0; i < s->programs.n; i++) {
        const struct mg_sched_program *p = &s->programs.at[i];
        if ((int)i != s->holder && p->waits && !is_stalled(s, p) &&
            (p->priority > h->priority ||
             (p->yielded && p->priority == h->priority && p->credit_ns / rate_of(s, i) > left + AHEAD_PERIODS)))
            return true;
    }
    return false;
}

/* Nothing of it moves, though it gets the processors that it wants: it is stopped, or a kernel takes long. Who gets
 * none is waited for a little longer. */
static bool has_stalled(struct mg_sched_program *p, uint64_t now)
{
    struct mg_processor busy = {0};
    if (now - p->moved_ns <= STALL_NS / 2) {
        p->still_ns = 0;
        return false;
    }
    for (uint32_t i = 0; i < p->members.n; i++) mg_processor_add(p->members.at[i].pid, &busy);
    if (!p->still_ns) p->still_ns = now, p->still = busy;
    return (double)(now - p->still_ns) * mg_processor_part(&p->still, &busy) > STALL_NS / 2.0 ||
           now - p->moved_ns > STARVED_NS;
}

static void watch_turn(struct mg_sched *s, uint64_t now)
{
    struct mg_sched_program *p = holder_of(s);
    bool others = somebody_else_waits(s);
    if (s->solo || is_alone(s, s->holder, now)) {
        watch_solo(s, p, now);
    } else if (others && has_paused(s, p)) {
        p->yielded = true;
        close_turn(s, now);
    } else if (others && (p->flying || p->waits) && has_stalled(p, now)) {
        p->stalled_ns = now;
        close_turn(s, now);
    } else if (is_overtaken(s, p)) {
        close_turn(s, now);
    } else if (p->credit_ns <= 0) {
        int next = choose(s, now);
        if (next == s->holder)
            mg_sched_turn(p, MG_GATE_TURN, p->credit_ns);
        else if (next >= 0)
            close_turn(s, now);
    } else if (p->members.n > 1 || (p->waits && !p->flying)) {
        mg_sched_turn(p, MG_GATE_TURN, p->credit_ns); /* all spend it; or what was charged too much has come back */
    }
}

/* What passes while programs compete tells how much device time a period has. */
static void note_contention(struct mg_sched *s, bool contended, uint64_t now)
{
    uint64_t use = 0;
    for (uint32_t i = 0; i < s->programs.n; i++) use += s->programs.at[i].use.device_ns;
    if (contended && s->contended_from_ns) {
        s->contended_ns += now - s->contended_from_ns;
        s->contended_use_ns += (int64_t)(use - s->polled_ns);
    }
    s->contended_from_ns = contended ? now : 0;
    s->polled_ns = use;
    if (s->contended_ns < MG_SCHED_ADJUST_NS) return;
    double seen = (double)s->contended_use_ns / (double)s->contended_ns;
    s->capacity = fmin(fmax(0.75 * s->capacity + 0.25 * seen, 0.25), 1024);
    s->contended_ns = s->contended_use_ns = 0;
}

/* ---- one look ------------------------------------------------------------------------------------------------- */

static uint64_t look_at_turn(struct mg_sched *s, uint64_t now)
{
    if (s->holder >= 0 && !holder_of(s)->members.n) s->holder = -1, s->closing = false;
    if (s->holder >= 0 && !s->closing) watch_turn(s, now);
    if (s->closing && has_drained(s, holder_of(s), now)) s->holder = -1, s->closing = false;
    if (s->holder < 0) {
        int next = choose(s, now);
        if (next >= 0) begin_turn(s, next, now);
    }
    bool contended = s->holder >= 0 && somebody_else_waits(s);
    note_contention(s, contended, now);
    if (s->closing) return DRAIN_SLEEP_NS;
    if (contended && holder_of(s)->idle_ns) return GRACE_NS;
    return contended ? CONTENDED_SLEEP_NS : MG_SCHED_PERIOD_NS;
}

uint64_t mg_sched_turns(struct mg_sched *s, uint64_t now)
{
    s->now_ns = now;
    return s->policy->turns ? look_at_turn(s, now) : MG_SCHED_PERIOD_NS;
}
