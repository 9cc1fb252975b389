/* A policy: shares of instructions instead of device time. A program whose instructions take longer gets more time.
 *   cc -shared -fPIC -Iinclude -o instructions.so examples/policies/instructions.c
 *   margay sched --policy ./instructions.so --share A=50,B=50 -- A: ./app -- B: ./app */
#include <margay/policy.h>

/* Device time of an instruction so far; 1 until it is known. */
static double ns_each(const struct mg_policy_program *p)
{
    return p->instructions ? (double)p->device_ns / (double)p->instructions : 1;
}

static void adjust(void *state, struct mg_policy_view *v)
{
    double wanted = 0;
    (void)state;
    for (uint32_t i = 0; i < v->n; i++)
        if (!v->programs[i].instructions) { /* some program has no counts yet: shares of time until then */
            for (i = 0; i < v->n; i++)
                v->programs[i].rate_ns = v->programs[i].share * v->capacity * (double)v->period_ns;
            return;
        }
    for (uint32_t i = 0; i < v->n; i++)
        wanted += v->programs[i].wants ? v->programs[i].share * ns_each(&v->programs[i]) : 0;
    for (uint32_t i = 0; i < v->n; i++) {
        struct mg_policy_program *p = &v->programs[i];
        double weight = p->wants && wanted > 0 ? p->share * ns_each(p) / wanted : p->share;
        p->rate_ns = weight * v->capacity * (double)v->period_ns;
    }
}

const struct mg_policy mg_policy = {.version = MG_POLICY_VERSION, .name = "instructions", .turns = 1, .adjust = adjust};
