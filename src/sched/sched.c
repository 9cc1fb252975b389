/* The scheduler's life: what one look does, in which order, and how it sleeps. */
#include "sched/sched.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

#define SCAN_NS     20000000u
#define OVER_POINTS 0.05       /* beyond its share by so much, */
#define OVER_NS     500000000u /* in so long: the tool of --attach is switched on */
enum { MOST_WORDS = 128 };

bool mg_sched_is_name(const char *text, size_t n)
{
    return n > 0 && n < 31 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") >= n;
}

void mg_sched_init(struct mg_sched *s, const struct mg_policy *policy)
{
    *s = (struct mg_sched){
        .policy = policy, .holder = -1, .last = -1, .capacity = 1, .socket = -1, .now_ns = mg_now_ns()};
}

struct mg_sched_program *mg_sched_add(struct mg_sched *s, const char *name, const char *dir, double share)
{
    struct mg_sched_program *p = mg_vec_push(&s->programs);
    *p = (struct mg_sched_program){.name = strdup(name), .dir = dir ? strdup(dir) : NULL, .share = share, .status = -1};
    return p;
}

void mg_sched_let_go(struct mg_sched *s)
{
    uint64_t now = mg_now_ns();
    for (uint32_t i = 0; i < s->programs.n; i++) {
        struct mg_sched_program *p = &s->programs.at[i];
        mg_sched_read(p, now);
        while (p->members.n) mg_sched_leave(s, p, &p->members.at[--p->members.n]);
    }
}

void mg_sched_forget_last(struct mg_sched *s)
{
    struct mg_sched_program *p = &s->programs.at[--s->programs.n];
    mg_vec_release(&p->members);
    mg_vec_release(&p->times);
    mg_sched_counts_free(p->counts);
    free(p->attach_error);
    free(p->name);
    free(p->dir);
}

void mg_sched_release(struct mg_sched *s)
{
    mg_sched_let_go(s);
    while (s->programs.n) mg_sched_forget_last(s);
    mg_sched_deafen(s);
    free(s->socket_path);
    mg_vec_release(&s->programs);
    mg_vec_release(&s->views);
    mg_vec_release(&s->sample_ns);
    mg_vec_release(&s->samples);
    mg_vec_release(&s->sample_programs);
}

/* Before they are looked at, so that no news is slept over. */
static void prick_ears(struct mg_sched *s)
{
    bool closing = s->closing, idlers = s->holder >= 0 && (closing || !s->solo);
    for (uint32_t i = 0; i < s->programs.n; i++) {
        struct mg_sched_program *p = &s->programs.at[i];
        for (uint32_t k = 0; k < p->members.n; k++)
            p->members.at[k].news = __atomic_load_n(&p->members.at[k].page->gate.news, __ATOMIC_SEQ_CST);
        mg_sched_hear(p, idlers && (int)i == s->holder && !p->idle_ns ? MG_GATE_IDLERS : MG_GATE_WAITERS);
    }
}

/* ---- the tool for who exceeds its share ------------------------------------------------------------------- */

/* Each process until it has heard of it: somebody else may be asking for a tool this very moment. */
static void switch_tools(const struct mg_sched *s, struct mg_sched_program *p)
{
    for (uint32_t k = 0; k < p->members.n; k++) {
        struct mg_sched_member *m = &p->members.at[k];
        const struct mg_control_page *page = m->page;
        if (m->watched != p->watched) mg_sched_attach(s, m, p->watched);
        bool answered =
            __atomic_load_n(&page->answered, __ATOMIC_ACQUIRE) == __atomic_load_n(&page->asked, __ATOMIC_ACQUIRE);
        if (m->watched && answered && page->answer[0] && !p->attach_error)
            p->attach_error = strndup(page->answer, sizeof page->answer);
    }
}

/* Every half second in which the device was used: who has had more than its share of it? */
static void watch_shares(struct mg_sched *s, uint64_t now)
{
    double used = 0, wanted = 0;
    for (uint32_t i = 0; i < s->views.n; i++) {
        struct mg_sched_program *p = &s->programs.at[i];
        switch_tools(s, p);
        used += (double)(int64_t)(p->use.device_ns - p->over_use_ns);
        wanted += s->views.at[i].wants ? s->views.at[i].share : 0;
    }
    if (now - s->over_from_ns < OVER_NS || used <= 0) return;
    s->over_from_ns = now;
    for (uint32_t i = 0; i < s->views.n; i++) {
        struct mg_sched_program *p = &s->programs.at[i];
        const struct mg_policy_program *v = &s->views.at[i];
        bool over = v->wants && wanted > v->share &&
                    (double)(int64_t)(p->use.device_ns - p->over_use_ns) / used > v->share / wanted + OVER_POINTS;
        p->attached += over && !p->watched;
        p->watched = over;
        p->over_use_ns = p->use.device_ns;
        switch_tools(s, p);
    }
}

/* ---- looking, sleeping -------------------------------------------------------------------------------------- */

static void adjust(struct mg_sched *s, uint64_t now)
{
    for (uint32_t i = 0; i < s->programs.n; i++) mg_sched_count(&s->programs.at[i], false);
    mg_sched_adjust(s, now);
    mg_sched_sample(s, now);
    if (s->attach) watch_shares(s, now);
}

uint64_t mg_sched_step(struct mg_sched *s, uint64_t now)
{
    s->now_ns = now;
    if (now - s->scanned_ns >= SCAN_NS) {
        mg_sched_scan(s, now);
        mg_sched_answer(s);
        s->scanned_ns = now;
    }
    prick_ears(s);
    for (uint32_t i = 0; i < s->programs.n; i++) mg_sched_read(&s->programs.at[i], now);
    if (now - s->adjusted_ns >= MG_SCHED_ADJUST_NS) adjust(s, now);
    uint64_t sleep_ns = mg_sched_turns(s, now),
             until_adjust = MG_SCHED_ADJUST_NS - MG_MIN(now - s->adjusted_ns, MG_SCHED_ADJUST_NS);
    return MG_MIN(sleep_ns, MG_MAX(until_adjust, 100000u));
}

struct waiter {
    uint64_t value, address;
    uint32_t flags, reserved;
}; /* struct futex_waitv */
enum { WAIT_32_SHARED = 2 };

void mg_sched_sleep(struct mg_sched *s, uint64_t ns)
{
    struct waiter words[MOST_WORDS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->programs.n; i++)
        for (uint32_t k = 0; k < s->programs.at[i].members.n && n < MOST_WORDS; k++) {
            struct mg_sched_member *m = &s->programs.at[i].members.at[k];
            words[n++] = (struct waiter){m->news, (uintptr_t)&m->page->gate.news, WAIT_32_SHARED, 0};
        }
    uint64_t until = mg_now_ns() + ns;
    struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    if (n && (syscall(SYS_futex_waitv, words, n, 0, &at, CLOCK_MONOTONIC) >= 0 || errno != ENOSYS)) return;
    if (n) /* kernels before 5.16 */
        ns = MG_MIN(ns, 500000u);
    nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}, NULL);
}
