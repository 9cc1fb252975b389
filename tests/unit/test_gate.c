/* The gate and the scheduler's turns together: programs that are simulated, with a clock of their own, launch random
 * kernels through gates that the scheduler turns. What is told is what the simulated device did, not what either side
 * counted. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "sched/sched.h"
#include "test.h"

static uint64_t clock_ns;
static uint64_t simulated_ns(void)
{
    return clock_ns;
}
#define mg_now_ns simulated_ns
#include "inject/gate.c"
#undef mg_now_ns

void *mg_slots[MG_FN_COUNT];
struct mg_session mg_session;
void mg_session_error(const char *fmt, ...)
{
    (void)fmt;
}

/* ---- programs ---------------------------------------------------------------------------------------------- */

enum mode { STREAM /* as fast as it may */, SYNC /* waits for each */, THINK /* and thinks then */, BURST };
enum { PROGRAMS = 5, IN_FLIGHT = 2048, HOST_NS = 3000, SIGNAL_NS = 60000 };

struct job {
    uint64_t length_ns, left_ns;
};
struct program {
    uint64_t apart; /* the page begins no page of the machine: the scheduler cannot unmap it */
    struct mg_control_page page;
    enum mode mode;
    uint64_t least_ns, most_ns, think_ns; /* kernels, between them in the logarithm */
    double share;                         /* 0: it is another process of the program in front of it */
    uint64_t ready_ns;                    /* when it wants to launch; UINT64_MAX: when its last one has ended */
    uint64_t burst;
    bool waits;
    uint32_t door;
    uint64_t look_ns;
    struct progress progress;
    struct stuck stuck;
    struct job jobs[IN_FLIGHT];
    uint32_t first, n;
    uint64_t stopped_until_ns;
    bool troubled; /* it is stopped, dies, has kernels of seconds */
    uint64_t work_ns, launches, asked_ns, longest_wait_ns, forced;
};
static struct program programs[PROGRAMS];
static uint32_t n_programs;
static uint64_t seed, state, idle_ns;

static uint64_t draw(uint64_t most)
{
    state = mg_mix64(state + 0x9e3779b97f4a7c15ull);
    return state % (most + 1);
}

static uint64_t draw_length(uint64_t least, uint64_t most)
{
    return (uint64_t)((double)least * pow((double)most / (double)least, (double)draw(1000000) / 1e6));
}

static void enter(struct program *p)
{
    if (p->waits) __atomic_fetch_sub(&p->page.gate.waiting, 1, __ATOMIC_SEQ_CST);
    p->waits = false;
    p->longest_wait_ns = MG_MAX(p->longest_wait_ns, clock_ns - p->asked_ns);
    mg_gate->passed++;
    uint64_t length = draw_length(p->least_ns, p->most_ns);
    p->jobs[(p->first + p->n++) % IN_FLIGHT] = (struct job){length, length};
    p->launches++;
    p->ready_ns = p->mode == STREAM                            ? clock_ns + HOST_NS
                  : p->mode == BURST && p->launches % p->burst ? clock_ns + HOST_NS
                                                               : UINT64_MAX;
}

/* As wait_for_turn does, without sleeping. */
static void try_to_enter(struct program *p)
{
    struct mg_control_gate *g = mg_gate = &p->page.gate;
    if (!p->waits) p->asked_ns = clock_ns, p->progress = (struct progress){.ended = g->ended, .since_ns = clock_ns};
    p->door = g->door;
    g->looks++;
    stuck = p->stuck;
    bool passes = may_pass(), forced = !passes && is_stuck(&p->progress);
    p->stuck = stuck;
    p->forced += forced;
    if (passes || forced) {
        enter(p);
        return;
    }
    if (!p->waits) __atomic_fetch_add(&g->waiting, 1, __ATOMIC_SEQ_CST);
    p->waits = true;
    p->look_ns = clock_ns + LOOK_NS;
    if (g->turn == MG_GATE_SHUT || !has_credit(0)) tell_scheduler(MG_GATE_WAITERS);
}

static void end_job(struct program *p)
{
    struct job *j = &p->jobs[p->first];
    mg_gate = &p->page.gate;
    p->first = (p->first + 1) % IN_FLIGHT;
    p->n--;
    p->work_ns += j->length_ns;
    if (draw(3)) {
        mg_gate_ended(j->length_ns, false);
    } else { /* its end is seen before its time is known */
        uint64_t guess = draw(1) ? MG_GATE_UNKNOWN : 1 + draw(2 * j->length_ns);
        mg_gate_correct(mg_gate_ended(guess, true), j->length_ns);
    }
    if (p->ready_ns == UINT64_MAX && !p->n)
        p->ready_ns = clock_ns + HOST_NS + (p->mode >= THINK ? p->think_ns / 2 + draw(p->think_ns) : 0);
}

/* ---- the device and the clock ------------------------------------------------------------------------------- */

/* All that have work share the device in equal parts. */
static uint64_t until_end(const struct program *p, uint32_t busy)
{
    return p->n ? p->jobs[p->first].left_ns * busy : UINT64_MAX;
}

static uint32_t busy_programs(void)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < n_programs; i++) busy += programs[i].n > 0;
    return busy;
}

static void pass_time(uint64_t ns)
{
    uint32_t busy = busy_programs();
    bool wanted = false;
    for (uint32_t i = 0; i < n_programs; i++) {
        struct program *p = &programs[i];
        struct job *j = &p->jobs[p->first];
        if (p->n) j->left_ns -= MG_MIN(j->left_ns, ns / busy);
        wanted |= p->waits;
    }
    if (!busy && wanted) idle_ns += ns;
    clock_ns += ns;
}

static void act(struct program *p)
{
    if (clock_ns < p->stopped_until_ns) return;
    while (p->n && !p->jobs[p->first].left_ns) end_job(p);
    bool woken = p->waits && (p->door != p->page.gate.door || clock_ns >= p->look_ns);
    if (woken || (!p->waits && clock_ns >= p->ready_ns)) try_to_enter(p);
}

static uint64_t next_of(const struct program *p, uint32_t busy)
{
    if (clock_ns < p->stopped_until_ns) return p->stopped_until_ns;
    uint64_t ends = until_end(p, busy), at = ends == UINT64_MAX ? ends : clock_ns + ends;
    if (p->waits && p->door != p->page.gate.door) return clock_ns;
    return MG_MIN(at, p->waits ? p->look_ns : p->ready_ns);
}

static uint64_t wake_scheduler(const struct mg_sched *s, uint64_t at)
{
    for (uint32_t i = 0; i < s->programs.n; i++)
        for (uint32_t k = 0; k < s->programs.at[i].members.n; k++) {
            const struct mg_sched_member *m = &s->programs.at[i].members.at[k];
            if (m->news != m->page->gate.news) at = MG_MIN(at, clock_ns + draw(SIGNAL_NS));
        }
    return at;
}

static void run(struct mg_sched *s, uint64_t until_ns)
{
    uint64_t look_ns = clock_ns;
    bool told = false;
    while (clock_ns < until_ns) {
        uint32_t busy = busy_programs();
        uint64_t next = look_ns;
        for (uint32_t i = 0; i < n_programs; i++) next = MG_MIN(next, next_of(&programs[i], busy));
        if (next > clock_ns) pass_time(next - clock_ns);
        for (uint32_t i = 0; i < n_programs; i++) act(&programs[i]);
        if (clock_ns >= look_ns) look_ns = clock_ns + mg_sched_step(s, clock_ns), told = false;
        uint64_t woken_ns = told ? look_ns : wake_scheduler(s, look_ns);
        told |= woken_ns != look_ns;
        look_ns = woken_ns;
    }
}

static pid_t sleeper; /* a process that is stopped and wants no processor */
static void begin(struct mg_sched *s)
{
    static const char *const names[PROGRAMS] = {"A", "B", "C", "D", "E"};
    clock_ns = mg_now_ns();
    idle_ns = 0;
    sleeper = fork();
    if (!sleeper) raise(SIGSTOP);
    waitpid(sleeper, NULL, WUNTRACED);
    mg_sched_init(s, &mg_policy_credit);
    for (uint32_t i = 0; i < n_programs; i++) {
        struct program *p = &programs[i];
        p->page.magic = MG_CONTROL_MAGIC;
        p->stuck.ended = UINT64_MAX;
        p->ready_ns = clock_ns + draw(1000000);
        mg_gate_begin(&p->page.gate, (uint32_t)getpid());
        struct mg_sched_program *q =
            p->share > 0 ? mg_sched_add(s, names[i], NULL, p->share) : &s->programs.at[s->programs.n - 1];
        mg_sched_member_add(s, q, (uint32_t)sleeper, &p->page);
    }
}

static void end(struct mg_sched *s)
{
    for (uint32_t i = 0; i < s->programs.n; i++) s->programs.at[i].members.n = 0; /* the pages are not mapped */
    mg_sched_release(s);
    kill(sleeper, SIGKILL);
    waitpid(sleeper, NULL, 0);
}

static void describe_failure(const struct mg_sched *s, uint64_t length_ns)
{
    fprintf(stderr, "seed %llu, %.3f s, %llu turns, the device idle for %.1f %%\n", (unsigned long long)seed,
            (double)length_ns / 1e9, (unsigned long long)s->turns, 100 * (double)idle_ns / (double)length_ns);
    for (uint32_t i = 0; i < n_programs; i++) {
        const struct program *p = &programs[i];
        fprintf(
            stderr,
            "  %u: mode %d, kernels %llu to %llu ns, share %.1f, work %.2f %%, %llu launches, waited %.1f ms at most, %llu forced\n",
            i, p->mode, (unsigned long long)p->least_ns, (unsigned long long)p->most_ns, p->share,
            100 * (double)p->work_ns / (double)length_ns, (unsigned long long)p->launches,
            (double)p->longest_wait_ns / 1e6, (unsigned long long)p->forced);
    }
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

struct sums {
    double shares, work, longest_ns, round_ns; /* round: one kernel of each */
};

static struct sums draw_programs(bool mixed)
{
    struct sums all = {0};
    n_programs = 2 + (uint32_t)draw(PROGRAMS - 2);
    for (uint32_t i = 0; i < n_programs; i++) {
        struct program *p = &programs[i];
        uint64_t least = draw_length(5000, 20000000), most = draw(1) ? least : draw_length(least, 20000000);
        *p = (struct program){.mode = mixed && i ? (enum mode)draw(BURST) : STREAM,
                              .least_ns = least,
                              .most_ns = most,
                              .think_ns = draw_length(20000, 300000000),
                              .burst = 1 + draw(50),
                              .share = (double)(1 + draw(9))};
        all.shares += p->share;
        all.longest_ns = fmax(all.longest_ns, (double)most);
        all.round_ns += (double)most;
    }
    return all;
}

static void simulate(uint64_t length_ns, struct sums *all,
                     bool (*is_right)(const struct program *, const struct sums *))
{
    struct mg_sched s;
    bool ok = true;
    begin(&s);
    run(&s, clock_ns + length_ns);
    for (uint32_t i = 0; i < n_programs; i++) all->work += (double)programs[i].work_ns;
    for (uint32_t i = 0; i < n_programs; i++) ok &= is_right(&programs[i], all);
    if (!ok) describe_failure(&s, length_ns);
    MG_CHECK(ok);
    end(&s);
}

/* Nobody waits longer than some rounds take, and nobody is let pass though its gate is shut, but for a kernel that
 * takes longer than all before it. */
static bool waits_for_turns(const struct program *p, const struct sums *all)
{
    return (double)p->forced <= all->longest_ns / PATIENCE_NS &&
           (double)p->longest_wait_ns < 4 * all->round_ns * all->shares / p->share + 200e6;
}

static bool has_its_share(const struct program *p, const struct sums *all)
{
    double share = p->share / all->shares, off = fabs((double)p->work_ns - share * all->work);
    return off < 2.5 * all->longest_ns / fmin(share, 1 - share) + 25e6 && waits_for_turns(p, all);
}

/* All want the device all the time. */
MG_TEST(gate_model_shares)
{
    for (seed = 1; seed <= 20; seed++) {
        state = seed;
        struct sums all = draw_programs(false);
        simulate(4000000000u, &all, has_its_share);
        MG_CHECK(idle_ns < 4000000000u / 50);
    }
}

/* Whoever wants the device all the time, one launch after the other or many at once, has no less than anybody else,
 * each by its share. */
static bool is_second_to_none(const struct program *p, const struct sums *all)
{
    bool ok = true;
    for (uint32_t i = 0; i < n_programs && p->mode <= SYNC; i++) {
        const struct program *q = &programs[i];
        ok &= (double)q->work_ns / q->share <
              (double)p->work_ns / p->share + (3 * all->longest_ns + 25e6) / fmin(p->share, q->share) * all->shares;
    }
    return ok && waits_for_turns(p, all);
}

MG_TEST(gate_model_mixed)
{
    for (seed = 1; seed <= 30; seed++) {
        state = seed + 1000;
        struct sums all = draw_programs(true);
        simulate(5000000000u, &all, is_second_to_none);
    }
}

static void add(enum mode mode, uint64_t least_ns, uint64_t most_ns, uint64_t think_ns, struct sums *all)
{
    programs[n_programs++] =
        (struct program){.mode = mode, .least_ns = least_ns, .most_ns = most_ns, .think_ns = think_ns, .share = 1};
    all->shares += 1;
    all->longest_ns = fmax(all->longest_ns, (double)most_ns);
    all->round_ns += (double)most_ns;
}

static struct sums begin_two(enum mode mode, uint64_t least_ns, uint64_t most_ns, uint64_t think_ns)
{
    struct sums all = {0};
    state = seed = 1;
    n_programs = 0;
    add(STREAM, 1000000, 1000000, 0, &all);
    add(mode, least_ns, most_ns, think_ns, &all);
    return all;
}

/* Who thinks between short kernels gives the device back when it has thought for longer than a turn waits for it. */
MG_TEST(gate_model_thinking)
{
    struct sums all = begin_two(THINK, 60000, 60000, 10000000);
    simulate(5000000000u, &all, is_second_to_none);
    MG_CHECK(programs[1].launches > 200);
    MG_CHECK(idle_ns < programs[1].launches * 600000);
}

/* What a program owes it pays while it idles: one that asks for less than its share is not kept waiting. */
MG_TEST(gate_model_debts)
{
    struct sums all = begin_two(THINK, 200000000, 200000000, 1000000000);
    simulate(20000000000u, &all, is_second_to_none);
    MG_CHECK(programs[1].launches > 12);
    MG_CHECK(programs[1].longest_wait_ns < 50000000);
}

/* Beside kernels of seconds others have their turns, and both their halves in the end. */
MG_TEST(gate_model_seconds)
{
    for (int mixed = 0; mixed < 3; mixed++) {
        struct sums all = begin_two(mixed == 2 ? STREAM : SYNC, mixed ? 1000 : 2000000000, 2000000000, 0);
        simulate(60000000000u, &all, has_its_share);
        MG_CHECK(programs[0].longest_wait_ns < 600000000);
    }
}

/* Who is between two launches as the scheduler looks does not let others off what they owe. */
MG_TEST(gate_model_gaps)
{
    for (int think = 0; think < 2; think++) {
        struct sums all = {0};
        state = seed = 1;
        n_programs = 0;
        add(think ? THINK : SYNC, 20000, 20000, 10000, &all);
        add(SYNC, 20000000, 20000000, 0, &all);
        simulate(10000000000u, &all, has_its_share);
    }
}

/* All processes of a program have its share together. */
MG_TEST(gate_model_processes)
{
    for (seed = 1; seed <= 5; seed++) {
        struct mg_sched s;
        uint64_t longest = 0;
        double work = 0;
        state = seed + 3000;
        n_programs = 4;
        for (uint32_t i = 0; i < n_programs; i++) {
            uint64_t most = draw_length(20000, 10000000);
            programs[i] = (struct program){
                .mode = (enum mode)draw(SYNC), .least_ns = draw_length(5000, most), .most_ns = most, .share = i < 2};
            longest = MG_MAX(longest, most);
        }
        begin(&s);
        run(&s, clock_ns + 10000000000u);
        for (uint32_t i = 0; i < n_programs; i++) work += (double)programs[i].work_ns;
        bool ok = fabs(2 * (double)programs[0].work_ns - work) < 6 * (double)longest + 50e6;
        for (uint32_t i = 0; i < n_programs; i++) ok &= !programs[i].forced && programs[i].longest_wait_ns < 500000000;
        if (!ok) describe_failure(&s, 10000000000u);
        MG_CHECK(ok);
        end(&s);
    }
}

/* It becomes another program; what it had in flight is gone. */
static void become_another(struct mg_sched *s, uint32_t i)
{
    struct program *p = &programs[i];
    p->page.magic = 0;
    p->waits = false;
    p->n = 0;
    mg_sched_scan(s, clock_ns);
    memset(&p->page, 0, sizeof p->page);
    p->page.magic = MG_CONTROL_MAGIC;
    p->ready_ns = clock_ns;
    mg_gate_begin(&p->page.gate, (uint32_t)getpid());
    mg_sched_member_add(s, &s->programs.at[i], (uint32_t)sleeper, &p->page);
}

static void trouble(struct mg_sched *s)
{
    uint32_t i = n_programs - 1 - (uint32_t)draw(1);
    struct program *p = &programs[i];
    uint64_t what = draw(3);
    p->troubled = true;
    if (what == 0) p->stopped_until_ns = clock_ns + draw_length(10000000, 2000000000);
    if (what == 1) become_another(s, i);
    if (what >= 2 && p->n && p->n < IN_FLIGHT) {
        struct job *last = &p->jobs[(p->first + p->n - 1) % IN_FLIGHT];
        last->length_ns = last->left_ns = draw_length(100000000, 5000000000);
    }
}

/* Whatever others do, nobody stands still for a second who has a share. */
MG_TEST(gate_model_trouble)
{
    for (seed = 1; seed <= 20; seed++) {
        if (!mg_test_takes((unsigned)seed)) continue;
        struct mg_sched s;
        state = seed + 2000;
        n_programs = 4;
        for (uint32_t i = 0; i < n_programs; i++) {
            uint64_t most = draw_length(20000, 5000000);
            programs[i] = (struct program){
                .mode = (enum mode)draw(SYNC), .least_ns = draw_length(5000, most), .most_ns = most, .share = 1};
        }
        begin(&s);
        uint64_t end_ns = clock_ns + 15000000000u;
        while (clock_ns < end_ns) {
            run(&s, clock_ns + draw_length(20000000, 1000000000));
            trouble(&s);
        }
        bool ok = true;
        for (uint32_t i = 0; i < 2; i++)
            ok &= programs[i].longest_wait_ns < 1000000000 && programs[i].launches > 100 && !programs[i].forced;
        if (!ok) describe_failure(&s, 15000000000u);
        MG_CHECK(ok);
        end(&s);
    }
}

/* One gate, without a model around it. */
static void begin_alone(struct mg_control_gate *gate)
{
    *gate = (struct mg_control_gate){0};
    clock_ns = mg_now_ns();
    mg_gate_begin(gate, (uint32_t)getpid());
}

/* The scheduler's sign of life may come between two looks at the clock. */
MG_TEST(gate_sign_of_life_from_the_future)
{
    struct mg_control_gate gate;
    begin_alone(&gate);
    gate.beat_ns = clock_ns + 1;
    MG_CHECK(has_scheduler());
    MG_CHECK_EQ(gate.daemon, getpid());
}

static void *try_alone(void *passes)
{
    *(bool *)passes = may_pass();
    return NULL;
}

/* The thread whose launches are refused passes; others of its process wait, and so does it when one was taken. */
MG_TEST(gate_refused_thread)
{
    struct mg_control_gate gate;
    bool passes = true;
    pthread_t id;
    begin_alone(&gate);
    gate.turn = MG_GATE_OPEN;
    for (int i = 0; i < REFUSALS; i++) mg_gate_pass(), mg_gate_undo(true);
    gate.turn = MG_GATE_SHUT;
    MG_CHECK(may_pass());
    pthread_create(&id, NULL, try_alone, &passes);
    pthread_join(id, NULL);
    MG_CHECK(!passes);
    mg_gate_pass(); /* this one is taken */
    MG_CHECK(!may_pass());
    MG_CHECK_EQ(gate.passed, 1);
}

/* A graph is one launch, and takes as long as all of its kernels. */
MG_TEST(gate_graph_is_one_launch)
{
    struct mg_control_gate gate;
    begin_alone(&gate);
    gate.turn = MG_GATE_TURN;
    gate.credit_ns = 10000000;
    for (int launch = 0; launch < 2; launch++) {
        mg_gate_pass();
        for (int node = 0; node < 1000; node++) mg_gate_charge(2000);
        followed(NULL);
        MG_CHECK_EQ(gate.typical_ns, 2000000);
    }
    MG_CHECK_EQ(gate.longest_ns, 2000);
    MG_CHECK_EQ(gate.device_ns, 4000000);
    MG_CHECK_EQ(gate.credit_ns, 6000000);
    for (int launch = 0; launch < 2; launch++) MG_CHECK(may_pass()), gate.passed++;
    MG_CHECK(!may_pass());
}

/* Credit that comes back lets in who waits. */
MG_TEST(gate_correction_opens)
{
    struct mg_control_gate gate;
    begin_alone(&gate);
    gate.turn = MG_GATE_TURN;
    gate.credit_ns = 1000000;
    mg_gate_pass();
    uint64_t charged_ns = mg_gate_ended(2000000, true);
    MG_CHECK(!may_pass());
    gate.waiting = 1;
    uint32_t door = gate.door;
    mg_gate_correct(charged_ns, 300000);
    MG_CHECK(may_pass());
    MG_CHECK(gate.door != door);
    MG_CHECK_EQ(gate.credit_ns, 700000);
}
