/* Exact instruction counts of a program, launch by launch as they end, from its growing profile (margay/profile.h). */
#include "sched/sched.h"

#include <stdlib.h>

#include "base/io.h"
#include "base/map.h"
#include "margay/profile.h"

#define LAST_MS 200

struct mg_sched_counts {
    struct mg_profile *profile;
    struct mg_sched_program *to; /* for the time of a call */
    struct mg_map of_node;       /* a graph's kernel: instructions told so far */
    uint64_t until_ns;           /* for the time of a call: what ends later does not count, */
    bool beyond;                 /* and has been met */
};

static void tell(void *user, const struct mg_profile_launch *l)
{
    struct mg_sched_counts *c = user;
    uint64_t key = (uint64_t)l->pid << 40 | l->id, before = 0;
    c->beyond |= l->told_ns > c->until_ns;
    if (l->thread_instructions == UINT64_MAX || l->told_ns > c->until_ns) return;
    if (l->replay && mg_map_get(&c->of_node, key, &before) && l->thread_instructions < before) return;
    if (l->replay) mg_map_set(&c->of_node, key, l->thread_instructions);
    c->to->use.instructions += l->thread_instructions - before;
    c->to->counted = true;
}

void mg_sched_count(struct mg_sched_program *p, bool all)
{
    char error[200];
    if (!p->dir || (!p->members.n && !all)) return;
    if (!p->counts && !(p->counts = calloc(1, sizeof *p->counts))) return;
    struct mg_sched_counts *c = p->counts;
    if (!c->profile && (c->profile = mg_profile_open(p->dir, error, sizeof error)))
        mg_profile_subscribe(c->profile, tell, c);
    c->to = p;
    c->until_ns = all ? mg_now_ns() : UINT64_MAX; /* a guest may launch for ever */
    if (c->profile)
        while (mg_profile_wait(c->profile, all ? LAST_MS : 0) > 0 && all && !c->beyond) {
        }
}

void mg_sched_counts_free(struct mg_sched_counts *c)
{
    if (!c) return;
    mg_profile_close(c->profile);
    mg_map_release(&c->of_node);
    free(c);
}
