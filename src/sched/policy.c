/* Policies: the two that are built in, and shared objects. What a policy sees, and what becomes of its answer. */
#include "sched/sched.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_RATE_NS 1e3
#define MOST_RATE_NS  1e9

const struct mg_policy *mg_sched_policy(const char *name, struct mg_diag *d)
{
    if (!strcmp(name, "credit")) return &mg_policy_credit;
    if (!strcmp(name, "none")) return &mg_policy_none;
    if (!strchr(name, '/') && !strstr(name, ".so")) {
        mg_diag_err(d, MG_ERR_INPUT, "there is no policy '%s': credit, none, or the path of a shared object", name);
        return NULL;
    }
    char *path = strchr(name, '/') ? strdup(name) : NULL;
    if (!path && asprintf(&path, "./%s", name) < 0) path = NULL;
    void *so = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct mg_policy *p = so ? dlsym(so, "mg_policy") : NULL;
    if (!p)
        mg_diag_err(d, MG_ERR_INPUT, "%s: %s", name, so ? "defines no mg_policy" : dlerror());
    else if (p->version != MG_POLICY_VERSION)
        mg_diag_err(d, MG_ERR_INPUT, "%s: made for version %u of policies, this is %u", name, p->version,
                    MG_POLICY_VERSION);
    else if (!p->name)
        mg_diag_err(d, MG_ERR_INPUT, "%s: its policy has no name", name);
    else if (p->turns && !p->adjust)
        mg_diag_err(d, MG_ERR_INPUT, "%s: a policy with turns needs adjust", name);
    else {
        free(path);
        return p;
    }
    free(path);
    return NULL;
}

static double sum_of_shares(const struct mg_sched *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->programs.n; i++) sum += s->programs.at[i].share;
    return sum > 0 ? sum : 1;
}

static void describe(const struct mg_sched_program *p, double sum, uint64_t since_ns, struct mg_policy_program *v)
{
    uint64_t device = v->device_ns, instructions = v->instructions;
    v->name = p->name;
    v->share = p->share / sum;
    v->priority = p->priority;
    v->wants = p->wanted_ns >= since_ns && p->members.n;
    v->device_ns = p->use.device_ns;
    v->launches = p->use.launches;
    v->longest_ns = p->use.longest_ns;
    v->instructions = p->use.instructions;
    v->last_device_ns = v->device_ns > device ? v->device_ns - device : 0; /* charged too much before */
    v->last_instructions = v->instructions - instructions;
}

/* A policy that errs shuts nobody out for ever, and nobody's round of turns takes longer than a second. */
static void bound_rates(struct mg_sched *s)
{
    double most = 0;
    for (uint32_t i = 0; i < s->views.n; i++) {
        double *rate = &s->views.at[i].rate_ns;
        *rate = isfinite(*rate) ? fmin(fmax(*rate, LEAST_RATE_NS), 1e15) : LEAST_RATE_NS;
        most = fmax(most, *rate);
    }
    for (uint32_t i = 0; i < s->views.n && most > MOST_RATE_NS; i++)
        s->views.at[i].rate_ns = fmax(s->views.at[i].rate_ns * (MOST_RATE_NS / most), LEAST_RATE_NS);
}

void mg_sched_adjust(struct mg_sched *s, uint64_t now_ns)
{
    double sum = sum_of_shares(s);
    while (s->views.n < s->programs.n) *mg_vec_push(&s->views) = (struct mg_policy_program){0};
    for (uint32_t i = 0; i < s->programs.n; i++) describe(&s->programs.at[i], sum, s->adjusted_ns, &s->views.at[i]);
    struct mg_policy_view v = {now_ns, MG_SCHED_PERIOD_NS, s->capacity, s->views.at, s->views.n};
    if (s->policy->adjust) s->policy->adjust(s->policy->state, &v);
    bound_rates(s);
    s->adjusted_ns = now_ns;
}
