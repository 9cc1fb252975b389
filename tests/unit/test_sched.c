/* The scheduler's turns, with control pages that no process has. */
#include "sched/sched.h"

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
