/* Processes of scheduled programs: their control pages, what they have used, and how their gates are turned. */
#include "sched/sched.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"

#define ALIVE_NS 200000000u /* a thread in front of a gate looks every 20 ms */
#define HUNG_NS  1000000000 /* a scheduler that gave no sign for so long loses its processes to another one */

/* ---- pages ------------------------------------------------------------------------------------------------- */

static struct mg_control_page *map_page(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool whole = fd >= 0 && !fstat(fd, &st) && st.st_size >= (off_t)sizeof(struct mg_control_page);
    void *p =
        whole ? mmap(NULL, sizeof(struct mg_control_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (p == MAP_FAILED) return NULL;
    struct mg_control_page *page = p;
    if (__atomic_load_n(&page->magic, __ATOMIC_ACQUIRE) == MG_CONTROL_MAGIC) return page;
    munmap(p, sizeof *page);
    return NULL;
}

void mg_sched_page_free(struct mg_control_page *page)
{
    if (page) munmap(page, sizeof *page);
}

struct mg_control_page *mg_sched_page(long pid, char *dir, size_t room)
{
    char path[64], line[PATH_MAX + 256];
    struct mg_control_page *page = NULL;
    snprintf(path, sizeof path, "/proc/%ld/maps", pid);
    FILE *f = fopen(path, "re");
    while (f && !page && fgets(line, sizeof line, f)) {
        char *name = strrchr(line, '/');
        if (!name || strncmp(name, "/ctl.", 5)) continue;
        line[strcspn(line, "\n")] = 0;
        page = map_page(strchr(line, '/'));
        *name = 0;
        if (dir) snprintf(dir, room, "%s", strchr(line, '/'));
    }
    if (f) fclose(f);
    return page;
}

/* ---- gates ------------------------------------------------------------------------------------------------- */

static void wake(struct mg_control_gate *g)
{
    __atomic_fetch_add(&g->door, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&g->waiting, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &g->door, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Whoever has credit left, be it less than a nanosecond, finds some: else nobody would give more. */
static int64_t credit_of(double ns)
{
    return (int64_t)ceil(ns);
}

void mg_sched_hear(struct mg_sched_program *p, enum mg_gate_listens what)
{
    for (uint32_t i = 0; i < p->members.n; i++)
        __atomic_store_n(&p->members.at[i].page->gate.listens, what, __ATOMIC_SEQ_CST);
}

void mg_sched_turn(struct mg_sched_program *p, enum mg_gate_turn turn, double credit_ns)
{
    for (uint32_t i = 0; i < p->members.n; i++) {
        struct mg_control_gate *g = &p->members.at[i].page->gate;
        if (turn == MG_GATE_TURN) __atomic_store_n(&g->credit_ns, credit_of(credit_ns), __ATOMIC_SEQ_CST);
        __atomic_store_n(&g->turn, turn, __ATOMIC_SEQ_CST);
        if (turn != MG_GATE_SHUT) wake(g);
    }
}

static bool has_tool(const struct mg_control_page *p, const char *name)
{
    uint32_t n = __atomic_load_n(&p->n_tools, __ATOMIC_ACQUIRE);
    for (uint32_t t = 0; t < n && t < MG_CONTROL_TOOLS; t++)
        if (!strncmp(p->tools[t], name, sizeof p->tools[t])) return true;
    return false;
}

bool mg_sched_attach(const struct mg_sched *s, struct mg_sched_member *m, bool on)
{
    const char *tool = on && !has_tool(m->page, s->attach_name) ? s->attach : s->attach_name;
    if (mg_control_tool_in(m->page, tool, on)) return false;
    m->watched = on;
    return true;
}

void mg_sched_leave(const struct mg_sched *s, struct mg_sched_program *p, struct mg_sched_member *m)
{
    struct mg_control_gate *g = &m->page->gate;
    uint32_t ours = (uint32_t)getpid();
    if (m->watched) mg_sched_attach(s, m, false);
    if (__atomic_compare_exchange_n(&g->daemon, &ours, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
        __atomic_store_n(&g->turn, MG_GATE_OPEN, __ATOMIC_SEQ_CST);
        wake(g);
    }
    mg_sched_page_free(m->page);
    m->page = NULL;
    for (uint32_t i = p->times.n; i-- > 0;)
        if (p->times.at[i].pid == m->pid && p->times.at[i].until_ns == UINT64_MAX)
            p->times.at[i].until_ns = mg_now_ns();
}

/* ---- who is there ------------------------------------------------------------------------------------------ */

bool mg_sched_member_add(struct mg_sched *s, struct mg_sched_program *p, uint32_t pid, struct mg_control_page *page)
{
    struct mg_control_gate *g = &page->gate;
    uint64_t now = s->now_ns;
    uint32_t held = __atomic_load_n(&g->daemon, __ATOMIC_SEQ_CST);
    bool other = held && held != (uint32_t)getpid() && mg_process_is_alive(held) &&
                 (int64_t)(now - __atomic_load_n(&g->beat_ns, __ATOMIC_SEQ_CST)) < HUNG_NS;
    if (other || p->members.n >= MG_SCHED_MEMBERS) return false;
    __atomic_store_n(&g->beat_ns, now, __ATOMIC_SEQ_CST);
    if (!__atomic_compare_exchange_n(&g->daemon, &held, (uint32_t)getpid(), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return false; /* another one was faster */
    *mg_vec_push(&p->members) = (struct mg_sched_member){
        .pid = pid,
        .page = page,
        .looked_ns = now,
        .device_ns = g->device_ns,
        .passed = g->passed,
        .ended = g->ended,
        .waited_ns = g->waited_ns,
        .forced = g->forced,
    };
    *mg_vec_push(&p->times) = (struct mg_sched_time){pid, now, UINT64_MAX};
    bool has_turn = s->holder >= 0 && &s->programs.at[s->holder] == p && !s->closing;
    __atomic_store_n(&g->dropped, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&g->credit_ns, has_turn ? credit_of(p->credit_ns) : 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&g->turn,
                     !s->policy->turns ? MG_GATE_OPEN
                     : has_turn        ? MG_GATE_TURN
                                       : MG_GATE_SHUT,
                     __ATOMIC_SEQ_CST);
    wake(g);
    if (!s->begin_ns) s->begin_ns = now;
    return true;
}

bool mg_sched_knows(const struct mg_sched *s, uint32_t pid)
{
    for (uint32_t i = 0; i < s->programs.n; i++)
        for (uint32_t k = 0; k < s->programs.at[i].members.n; k++)
            if (s->programs.at[i].members.at[k].pid == pid) return true;
    return false;
}

static void scan_directory(struct mg_sched *s, struct mg_sched_program *p)
{
    DIR *d = p->dir ? opendir(p->dir) : NULL;
    for (const struct dirent *e; d && (e = readdir(d));) {
        unsigned pid;
        int end = 0;
        if (sscanf(e->d_name, "ctl.%u%n", &pid, &end) != 1 || e->d_name[end] || mg_sched_knows(s, pid) ||
            !mg_process_is_alive(pid))
            continue;
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", p->dir, e->d_name) >= (int)sizeof path) continue;
        struct mg_control_page *page = map_page(path);
        if (page && (page->gate.dropped || !mg_sched_member_add(s, p, pid, page))) mg_sched_page_free(page);
    }
    if (d) closedir(d);
}

/* It has not become another program, which has a page of its own. */
static bool is_itself(const struct mg_sched_member *m)
{
    return mg_process_is_alive(m->pid) && __atomic_load_n(&m->page->magic, __ATOMIC_ACQUIRE) == MG_CONTROL_MAGIC;
}

/* Who has gone, was dropped, went to another scheduler while we hung, or believed us dead (it is taken again). */
static void check_members(const struct mg_sched *s, struct mg_sched_program *p, uint64_t now)
{
    for (uint32_t i = 0; i < p->members.n;) {
        struct mg_sched_member *m = &p->members.at[i];
        uint32_t nobody = 0, dropped = __atomic_load_n(&m->page->gate.dropped, __ATOMIC_SEQ_CST),
                 daemon = __atomic_load_n(&m->page->gate.daemon, __ATOMIC_SEQ_CST);
        if (is_itself(m) && !dropped && (!daemon || daemon == (uint32_t)getpid())) {
            __atomic_store_n(&m->page->gate.beat_ns, now, __ATOMIC_SEQ_CST);
            p->lapses += __atomic_compare_exchange_n(&m->page->gate.daemon, &nobody, (uint32_t)getpid(), false,
                                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
            i++;
            continue;
        }
        mg_sched_read(p, now);
        mg_sched_leave(s, p, m);
        p->members.at[i] = p->members.at[--p->members.n];
    }
}

void mg_sched_scan(struct mg_sched *s, uint64_t now)
{
    for (uint32_t i = 0; i < s->programs.n; i++) {
        struct mg_sched_program *p = &s->programs.at[i];
        check_members(s, p, now);
        if (!p->adopted) scan_directory(s, p);
    }
}

/* ---- what they have used -------------------------------------------------------------------------------------- */

static uint64_t since(uint64_t *old, const uint64_t *word)
{
    uint64_t now = __atomic_load_n(word, __ATOMIC_SEQ_CST), more = now > *old ? now - *old : 0;
    *old = now;
    return more;
}

/* A launch that the driver refused takes its pass back: what is in flight never counts below none. */
static int64_t read_member(struct mg_sched_program *p, struct mg_sched_member *m, uint64_t now)
{
    struct mg_control_gate *g = &m->page->gate;
    bool flew = m->passed > m->ended; /* then what passes behind it does not show that anything moves */
    uint64_t ended = since(&m->ended, &g->ended), passed = since(&m->passed, &g->passed);
    uint64_t device_ns = __atomic_load_n(&g->device_ns, __ATOMIC_SEQ_CST),
             longest = __atomic_load_n(&g->longest_ns, __ATOMIC_RELAXED);
    int64_t used = (int64_t)(device_ns - m->device_ns); /* less than none where an estimate was too high */
    m->device_ns = device_ns;
    uint32_t looks = __atomic_load_n(&g->looks, __ATOMIC_RELAXED);
    p->use.device_ns += (uint64_t)used;
    p->use.launches += ended;
    p->use.waited_ns += since(&m->waited_ns, &g->waited_ns);
    p->use.forced += since(&m->forced, &g->forced);
    p->use.longest_ns = MG_MAX(p->use.longest_ns, longest);
    p->flying += m->passed > m->ended ? m->passed - m->ended : 0;
    p->moved |= ended || (passed && !flew);
    if (looks != m->looks) m->looked_ns = now;
    m->looks = looks;
    p->waits |= __atomic_load_n(&g->waiting, __ATOMIC_SEQ_CST) && now - m->looked_ns < ALIVE_NS;
    return used;
}

void mg_sched_read(struct mg_sched_program *p, uint64_t now)
{
    int64_t used = 0;
    p->flying = 0;
    p->waits = p->moved = false;
    for (uint32_t i = 0; i < p->members.n; i++) used += read_member(p, &p->members.at[i], now);
    p->credit_ns -= (double)used;
    if (p->moved) p->moved_ns = now, p->stalled_ns = 0;
    bool works = p->waits || p->flying;
    if (works || p->moved) p->wanted_ns = now;
    if (works || p->moved || !p->idle_ns) p->idle_ns = works ? 0 : now;
}
