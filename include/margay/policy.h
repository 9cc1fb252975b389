/* Policies of `margay sched` from one C file (docs/howto-write-a-policy.md):
 *
 *   #include <margay/policy.h>
 *   static void adjust(void *state, struct mg_policy_view *v)
 *   {
 *       for (uint32_t i = 0; i < v->n; i++) v->programs[i].rate_ns = v->programs[i].share * v->capacity * v->period_ns;
 *   }
 *   const struct mg_policy mg_policy = {.version = MG_POLICY_VERSION, .name = "mine", .turns = 1, .adjust = adjust};
 *
 *   cc -shared -fPIC -o mine.so mine.c          margay sched --policy ./mine.so ...
 *
 * The scheduler calls adjust every 50 ms, on one thread. It gives each program `rate_ns` of device time as credit each
 * period. Programs take turns at the device while they have credit; what a program uses beyond its credit it owes. When
 * nobody who wants the device has credit left, the next period begins. */
#ifndef MARGAY_POLICY_H
#define MARGAY_POLICY_H

#include <stdint.h>

#define MG_POLICY_VERSION 1
struct mg_policy_program {
    const char *name;
    double share;     /* asked for with --share; all shares sum up to 1 */
    int32_t priority; /* asked for with --priority: whoever waits with a higher one goes first */
    uint32_t wants;   /* 1: it has used the device, or waited for it, since the last call */
    uint64_t device_ns, launches, longest_ns; /* so far: device time, launches that have ended, their longest kernel */
    uint64_t instructions;                    /* of threads, so far; 0: no tool counts them */
    uint64_t last_device_ns, last_instructions; /* since the last call */
    double rate_ns; /* out: device time per period; the value of the last call stands in it */
};
struct mg_policy_view {
    uint64_t now_ns, period_ns;
    double capacity; /* device time that passes per time while programs compete: 1 of one GPU, more of several
                        processors */
    struct mg_policy_program *programs;
    uint32_t n;
};
struct mg_policy {
    uint32_t version; /* MG_POLICY_VERSION */
    const char *name;
    uint32_t turns; /* 0: all gates stay open; 1: programs take turns */
    void *state;
    void (*adjust)(void *state, struct mg_policy_view *v); /* may be NULL where turns is 0 */
};

#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
extern const struct mg_policy mg_policy; /* what a policy's file defines */

#endif
