/* Which of two codes a launch runs, native or twin, as far as the user chose: the switch that
 * `margay ctl` and <margay/control.h> turn, --launches, and --native-times, which lets the launches of
 * a kernel and shape take turns. What it needs to know of earlier launches is kept here.
 * Not here: whether a twin can be had at all (kernels.c). */
#include "inject/select.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/map.h"
#include "inject/choice.h"
#include "inject/gate.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/session.h"
#include "inject/tools.h"
#include "margay/control.h"

enum { PAGE = 4096 };
_Static_assert(sizeof(struct mg_control_page) <= PAGE, "one page");

struct shape { /* launches of one kernel with one geometry */
    uint64_t n, turn;
    uint64_t equal, counts; /* the last so many had counts of this hash */
};
static struct mg_choice choice;
static struct mg_control_page nobody = {.on = 1}, *page = &nobody;
static char page_path[PATH_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t granting = PTHREAD_MUTEX_INITIALIZER;
static struct mg_map shapes;                /* under lock */
static enum mg_select_turn forced;          /* of the next launch; --verify lets through one at a time */
static uint64_t n_timed, timed_ns, n_ended; /* instrumented launches */

/* A tool that somebody wants to be added. */
static void grant_wish(void)
{
    if (__atomic_load_n(&page->asked, __ATOMIC_ACQUIRE) == __atomic_load_n(&page->answered, __ATOMIC_RELAXED)) return;
    char wish[sizeof page->wish];
    pthread_mutex_lock(&granting);
    uint32_t asked = __atomic_load_n(&page->asked, __ATOMIC_ACQUIRE);
    if (asked != page->answered) {
        memcpy(wish, page->wish, sizeof wish);
        wish[sizeof wish - 1] = 0;
        page->answer[0] = 0;
        mg_tools_add(wish, page->answer, sizeof page->answer);
        __atomic_store_n(&page->answered, asked, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&granting);
}

/* The page of a process of this number that is no more, since it became another program, or was killed. Who has it
 * mapped sees that, and keeps his memory. */
static void retire_page(void)
{
    uint64_t magic = 0;
    int fd = open(page_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool ours = fd >= 0 && pread(fd, &magic, sizeof magic, 0) == sizeof magic && magic == MG_CONTROL_MAGIC;
    magic = 0;
    if (ours && pwrite(fd, &magic, sizeof magic, 0) != sizeof magic)
        mg_session_say("%s of an earlier process stays", page_path);
    if (fd >= 0) close(fd);
    unlink(page_path);
}

void mg_select_begin(void)
{
    const struct mg_session *s = &mg_session;
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_choice_parse(s->config.launches, &choice, &d))
        mg_session_say("--launches %s; every launch is taken", mg_diag_first(&d, MG_ERR_INPUT));
    mg_diag_release(&d);
    snprintf(page_path, sizeof page_path, "%s/ctl.%d", s->config.dir, (int)getpid());
    retire_page();
    int fd = open(page_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void *p = fd >= 0 && !posix_fallocate(fd, 0, PAGE) ? /* a hole would be a bus error on a full disk */ mmap(
                                                             NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                                       : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (p == MAP_FAILED && fd >= 0) unlink(page_path);
    if (p == MAP_FAILED) { /* it cannot be switched then; `margay ctl` says so */
        if (s->config.scheduler) mg_session_error("no room for %s: launches go on without the scheduler", page_path);
        return;
    }
    page = p;
    *page = (struct mg_control_page){.on = 1, .pid = (uint32_t)getpid(), .run = s->config.run};
    mg_gate_begin(&page->gate, s->config.scheduler);
    __atomic_store_n(&page->magic, MG_CONTROL_MAGIC, __ATOMIC_RELEASE); /* who finds it finds all of it */
}

void mg_select_opening(const char *path)
{
    size_t n = strlen(path), most = sizeof page->opening - 1;
    snprintf(page->opening, sizeof page->opening, "%s", n > most ? path + n - most : path);
}

void mg_select_enter(uint32_t tool, enum mg_control_call call)
{
    __atomic_store_n(&page->doing[tool], (uint8_t)call, __ATOMIC_RELAXED);
    __atomic_fetch_add(&page->inside[tool], 1, __ATOMIC_RELAXED);
}

void mg_select_leave(uint32_t tool)
{
    __atomic_fetch_sub(&page->inside[tool], 1, __ATOMIC_RELAXED);
}

void mg_select_end(void)
{
    if (page != &nobody) unlink(page_path);
}

uint32_t mg_select_tools(void)
{
    grant_wish();
    return ~__atomic_load_n(&page->tools_off, __ATOMIC_ACQUIRE);
}

bool mg_select_is_on(uint32_t tool)
{
    return __atomic_load_n(&page->on, __ATOMIC_ACQUIRE) &&
           !(__atomic_load_n(&page->tools_off, __ATOMIC_ACQUIRE) >> tool & 1);
}

void mg_select_name(uint32_t at, const char *name)
{
    snprintf(page->tools[at], sizeof page->tools[at], "%s", name);
}

void mg_select_known(uint32_t at)
{
    __atomic_store_n(&page->n_tools, at + 1, __ATOMIC_RELEASE);
}

static struct shape *find_shape(const struct mg_code *code, const struct mg_shape *s) /* under lock */
{
    struct {
        const void *code;
        unsigned n[7];
    } key;
    memset(&key, 0, sizeof key); /* padding is hashed as well */
    key.code = code;
    memcpy(key.n, s->grid, sizeof s->grid);
    memcpy(key.n + 3, s->block, sizeof s->block);
    key.n[6] = s->shared_bytes;
    uint64_t id = mg_hash64(&key, sizeof key, 0), at = 0;
    if (!mg_map_get(&shapes, id, &at)) {
        at = (uint64_t)(uintptr_t)calloc(1, sizeof(struct shape));
        if (at) mg_map_set(&shapes, id, at);
    }
    return (struct shape *)(uintptr_t)at;
}

void mg_select_taken(void)
{
    __atomic_fetch_add(&page->taken, 1, __ATOMIC_RELAXED);
}

void mg_select_force(enum mg_select_turn turn)
{
    forced = turn;
}

enum mg_reason mg_select_why_not(const struct mg_run *r, uint64_t number)
{
    if (forced) return forced == MG_TURN_NATIVE ? MG_REASON_repeat : MG_REASON_none;
    const struct mg_session *s = &mg_session;
    enum mg_reason why;
    __atomic_fetch_add(&page->launches, 1, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&page->on, __ATOMIC_ACQUIRE)) return MG_REASON_switched_off;
    if (r->node || (!s->config.launches && !s->config.native_times)) {
        __atomic_fetch_add(&page->selected, 1, __ATOMIC_RELAXED);
        return MG_REASON_none;
    }
    pthread_mutex_lock(&lock);
    struct shape none = {0},
                 *h = choice.by_kernel || s->config.native_times ? find_shape(r->inst->code, &r->shape) : NULL;
    if (!h) h = &none;
    struct mg_choice_facts f = {
        .number = number,
        .earlier = h->n++,
        .equal = h->equal,
        .elapsed_ns = mg_now_ns() - s->start_ns,
        .instrumented_ns = n_timed ? (uint64_t)((double)timed_ns / (double)n_timed * (double)n_ended) : 0,
    };
    why = mg_choice_why_not(&choice, &f);
    if (!why && s->config.native_times && h->turn++ % 2) why = MG_REASON_native_times;
    pthread_mutex_unlock(&lock);
    if (!why) __atomic_fetch_add(&page->selected, 1, __ATOMIC_RELAXED);
    return why;
}

void mg_select_ended(const struct mg_run *r, uint64_t hash, bool timed, uint64_t time_ns)
{
    if (r->ran != MG_RAN_INSTRUMENTED || (choice.budget < 0 && !choice.steady)) return;
    pthread_mutex_lock(&lock);
    n_ended++;
    if (timed) {
        n_timed++;
        timed_ns += time_ns;
    }
    struct shape *h = choice.steady ? find_shape(r->inst->code, &r->shape) : NULL;
    if (h) {
        h->equal = h->equal && h->counts == hash ? h->equal + 1 : 1;
        h->counts = hash;
    }
    pthread_mutex_unlock(&lock);
}
