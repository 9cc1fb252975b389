/* The policy credit: device time in proportion to shares, among the programs that want the device. */
#include <margay/policy.h>
#include <stddef.h>

static void adjust(void *state, struct mg_policy_view *v)
{
    double sum = 0;
    (void)state;
    for (uint32_t i = 0; i < v->n; i++) sum += v->programs[i].wants ? v->programs[i].share : 0;
    for (uint32_t i = 0; i < v->n; i++) {
        struct mg_policy_program *p = &v->programs[i];
        p->rate_ns = p->share / (p->wants && sum > 0 ? sum : 1) * v->capacity * (double)v->period_ns;
    }
}

extern const struct mg_policy mg_policy_credit;
const struct mg_policy mg_policy_credit = {
    .version = MG_POLICY_VERSION, .name = "credit", .turns = 1, .adjust = adjust};
