/* Exact instruction counts of a program, launch by launch as they end, from its growing profile (margay/profile.h). */
#include "sched/sched.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/map.h"
#include "margay/profile.h"

#define LAST_MS 200

struct mg_sched_counts {
    char *dir;
    struct mg_profile *profile;
    struct mg_sched_program *to; /* for the time of a call */
    struct mg_map of_node;       /* a graph's kernel: instructions told so far */
    uint64_t until_ns;           /* for the time of a call: what ends later does not count, */
    bool beyond;                 /* and has been met */
    struct mg_sched_counts *next;
};

/* A guest's launches count while it is scheduled. Those of the scheduler's own programs all wait for it. */
static bool counts_for(const struct mg_sched_program *p, const struct mg_profile_launch *l)
{
    uint64_t ended_ns = l->told_ns ? l->told_ns : l->start_ns != UINT64_MAX ? l->start_ns + l->time_ns : 0;
    for (uint32_t i = p->times.n; i-- > 0 && p->adopted;) {
        const struct mg_sched_time *t = &p->times.at[i];
        if (t->pid == l->pid && t->from_ns <= ended_ns && ended_ns <= t->until_ns) return true;
    }
    return !p->adopted;
}

static void tell(void *user, const struct mg_profile_launch *l)
{
    struct mg_sched_counts *c = user;
    uint64_t key = (uint64_t)l->pid << 40 | l->id, before = 0;
    c->beyond |= l->told_ns > c->until_ns;
    if (l->thread_instructions == UINT64_MAX || l->told_ns > c->until_ns) return;
    if (l->replay && mg_map_get(&c->of_node, key, &before) && l->thread_instructions < before) return;
    if (l->replay) mg_map_set(&c->of_node, key, l->thread_instructions);
    if (!counts_for(c->to, l)) return;
    c->to->use.instructions += l->thread_instructions - before;
    c->to->counted = true;
}

static void count(struct mg_sched_counts *c, struct mg_sched_program *p, bool all)
{
    char error[200];
    if (!c->profile && (c->profile = mg_profile_open(c->dir, error, sizeof error)))
        mg_profile_subscribe(c->profile, tell, c);
    c->to = p;
    c->until_ns = all ? mg_now_ns() : UINT64_MAX; /* a guest may launch for ever */
    if (c->profile)
        while (mg_profile_wait(c->profile, all ? LAST_MS : 0) > 0 && all && !c->beyond) {
        }
}

void mg_sched_count(struct mg_sched_program *p, bool all)
{
    if (!p->dir || (!p->members.n && !all)) return;
    if (!p->counts) mg_sched_counts_add(p, p->dir);
    for (struct mg_sched_counts *c = p->counts; c; c = c->next) count(c, p, all);
}

void mg_sched_counts_add(struct mg_sched_program *p, const char *dir)
{
    struct mg_sched_counts **at = &p->counts;
    while (*at && strcmp((*at)->dir, dir)) at = &(*at)->next;
    if (*at) return;
    *at = mg_xcalloc(1, sizeof **at);
    (*at)->dir = strdup(dir);
}

void mg_sched_counts_free(struct mg_sched_counts *c)
{
    while (c) {
        struct mg_sched_counts *next = c->next;
        mg_profile_close(c->profile);
        mg_map_release(&c->of_node);
        free(c->dir);
        free(c);
        c = next;
    }
}
