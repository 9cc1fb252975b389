/* The scheduler's turns, with control pages that no process has. */
#include "sched/sched.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "test.h"

static struct mg_control_page pages[2];

static void begin(struct mg_sched *s)
{
    static const char *const names[] = {"A", "B"};
    mg_sched_init(s, &mg_policy_credit);
    for (int i = 0; i < 2; i++) {
        pages[i] = (struct mg_control_page){.magic = MG_CONTROL_MAGIC};
        mg_sched_member_add(s, mg_sched_add(s, names[i], NULL, 1), (uint32_t)getpid(), &pages[i]);
    }
    mg_sched_adjust(s, mg_now_ns());
}

static void end(struct mg_sched *s)
{
    for (uint32_t i = 0; i < 2; i++) s->programs.at[i].members.n = 0; /* the pages are not mapped */
    mg_sched_release(s);
}

/* Both wait, nothing is in flight: one of them may pass. */
MG_TEST(sched_some_gate_is_open)
{
    static const double credits[] = {-1e6, -0.4, 0, 1e-9, 0.4, 0.999, 1, 1.5, 20e3};
    for (uint32_t a = 0; a < MG_COUNT_OF(credits); a++)
        for (uint32_t b = 0; b < MG_COUNT_OF(credits); b++)
            for (int holder = -1; holder < 2; holder++) {
                struct mg_sched s;
                begin(&s);
                uint64_t now = mg_now_ns();
                for (uint32_t i = 0; i < 2; i++) {
                    struct mg_sched_program *p = &s.programs.at[i];
                    p->waits = true;
                    p->wanted_ns = p->moved_ns = now;
                    p->credit_ns = credits[i ? b : a];
                }
                s.holder = s.last = holder;
                if (holder >= 0) pages[holder].gate.turn = MG_GATE_TURN; /* of all that it had this is left */
                int may_pass = 0;
                for (int look = 0; look < 2; look++) mg_sched_turns(&s, now);
                for (int i = 0; i < 2; i++)
                    may_pass += pages[i].gate.turn == MG_GATE_TURN && pages[i].gate.credit_ns > 0;
                MG_CHECK(may_pass == 1);
                end(&s);
            }
}

/* A process has one scheduler: another one neither takes it while its own lives, nor goes on turning its gate when it
 * has lost it. */
MG_TEST(sched_one_scheduler)
{
    struct mg_sched s;
    uint32_t other = (uint32_t)getppid();
    struct mg_control_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    page->magic = MG_CONTROL_MAGIC;
    mg_sched_init(&s, &mg_policy_credit);
    struct mg_sched_program *p = mg_sched_add(&s, "A", NULL, 1);
    page->gate.daemon = other;
    page->gate.beat_ns = s.now_ns + 1; /* its sign comes at this very moment */
    MG_CHECK(!mg_sched_member_add(&s, p, (uint32_t)getpid(), page));
    page->gate.beat_ns = s.now_ns - 2000000000u;
    MG_CHECK(mg_sched_member_add(&s, p, (uint32_t)getpid(), page));
    MG_CHECK_EQ(page->gate.daemon, getpid());
    struct mg_control_gate *g = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    page->gate.daemon = other;
    page->gate.beat_ns = 7;
    page->gate.turn = MG_GATE_TURN;
    *g = page->gate;
    s.programs.at[0].members.at[0].page = page;
    page = mremap(page, 0, sizeof *page, MREMAP_MAYMOVE); /* a second view, for when the scheduler has let it go */
    mg_sched_scan(&s, s.now_ns + 20000000);
    MG_CHECK_EQ(p->members.n, 0);
    MG_CHECK(!memcmp(g, &page->gate, sizeof *g));
    munmap(g, sizeof *page);
    munmap(page, sizeof *page);
    mg_sched_release(&s);
}

static double wanted[3];
static void set_rates(void *state, struct mg_policy_view *v)
{
    (void)state;
    for (uint32_t i = 0; i < v->n; i++) v->programs[i].rate_ns = wanted[i];
}

MG_TEST(sched_rates)
{
    static const struct {
        double wanted[3], rates[3];
    } cases[] = {
        {{5e6, 1e6, 2e6}, {5e6, 1e6, 2e6}},    {{NAN, -1, INFINITY}, {1e3, 1e3, 1e3}},
        {{0, 1e-300, 999}, {1e3, 1e3, 1e3}},   {{4e9, 1e9, 2e3}, {1e9, 2.5e8, 1e3}},
        {{1e300, 1e15, 1e6}, {1e9, 1e9, 1e3}},
    };
    const struct mg_policy policy = {.version = MG_POLICY_VERSION, .name = "rates", .turns = 1, .adjust = set_rates};
    for (uint32_t c = 0; c < MG_COUNT_OF(cases); c++) {
        struct mg_sched s;
        mg_sched_init(&s, &policy);
        for (int i = 0; i < 3; i++) mg_sched_add(&s, (char[]){(char)('A' + i), 0}, NULL, 1);
        memcpy(wanted, cases[c].wanted, sizeof wanted);
        mg_sched_adjust(&s, s.now_ns);
        for (int i = 0; i < 3; i++) MG_CHECK(s.views.at[i].rate_ns == cases[c].rates[i]);
        mg_sched_release(&s);
    }
}
