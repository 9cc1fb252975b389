/* The public library (include/margay/profile.h): a snapshot of what is committed (store/reader.c), and the processes
 * that still grow (source.h). */
#include "margay/profile.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/io.h"
#include "base/vec.h"
#include "query/source.h"
#include "report/report.h"
#include "store/live.h"
#include "store/store.h"

#define SCAN_NS 100000000u /* new processes are noticed within it */
enum { MOST_WORDS = 100 }; /* of futex_waitv */

struct mg_profile {
    char *dir;
    struct mg_recording *recording;
    MG_VEC(struct mg_profile_process) processes;
    MG_VEC(struct mg_profile_kernel) kernels;
    uint64_t version;
    void (*tell)(void *user, const struct mg_profile_launch *launch);
    void *user;
    MG_VEC(struct mg_source *) sources;
    uint64_t scanned_ns;
    bool launching; /* a launcher's program runs still: it may start processes */
};

static void say(char *error, size_t error_bytes, const char *text)
{
    if (error && error_bytes) snprintf(error, error_bytes, "%s", text);
}

/* ---- the snapshot -------------------------------------------------------------------------------------- */

static struct mg_profile_kernel describe_kernel(const struct mg_pkernel *k)
{
    struct mg_profile_kernel out = {
        .name = k->name,
        .demangled = k->demangled,
        .module = k->module,
        .launches = k->launches,
        .incomplete = k->incomplete,
        .thread_instructions = UINT64_MAX,
        .warp_instructions = UINT64_MAX,
        .time_ns = k->timed_launches ? k->time_ns : UINT64_MAX,
        .timed_launches = k->timed_launches,
        .blocks = k->n_blocks,
    };
    for (uint32_t i = 0; i < k->n_blocks; i++) {
        const struct mg_pblock *b = &k->blocks[i];
        if (b->has_threads)
            out.thread_instructions =
                (i && out.thread_instructions != UINT64_MAX ? out.thread_instructions : 0) + b->threads * b->n_insts;
        if (b->has_warps)
            out.warp_instructions =
                (i && out.warp_instructions != UINT64_MAX ? out.warp_instructions : 0) + b->warps * b->n_insts;
    }
    return out;
}

static bool same_numbers(const struct mg_profile_kernel *a, const struct mg_profile_kernel *b)
{
    return a->launches == b->launches && a->incomplete == b->incomplete &&
           a->thread_instructions == b->thread_instructions && a->warp_instructions == b->warp_instructions &&
           a->time_ns == b->time_ns && a->timed_launches == b->timed_launches && a->blocks == b->blocks;
}

/* Kernels keep their order while a profile grows: that of their first use, process by process. */
static const struct mg_profile_kernel *find_old(const struct mg_profile *p, const struct mg_profile_kernel *k)
{
    for (uint32_t i = 0; i < p->kernels.n; i++)
        if (!strcmp(p->kernels.at[i].name, k->name) && !strcmp(p->kernels.at[i].module, k->module))
            return &p->kernels.at[i];
    return NULL;
}

/* Takes the recording over; whether it differs from the one before. */
static bool replace_recording(struct mg_profile *p, struct mg_recording *r)
{
    MG_VEC(struct mg_profile_kernel) kernels = {0};
    bool changed = !p->recording || p->recording->n_launches != r->n_launches || p->kernels.n != r->n_kernels ||
                   p->processes.n != r->n_processes;
    for (uint32_t i = 0; i < r->n_kernels; i++) {
        struct mg_profile_kernel k = describe_kernel(&r->kernels[i]);
        const struct mg_profile_kernel *old = find_old(p, &k);
        bool same = old && same_numbers(old, &k);
        k.changed = same ? old->changed : p->version + 1;
        changed = changed || !same;
        *mg_vec_push(&kernels) = k;
    }
    mg_vec_release(&p->kernels);
    p->kernels.at = kernels.at, p->kernels.n = kernels.n, p->kernels.cap = kernels.cap;
    p->processes.n = 0;
    for (uint32_t i = 0; i < r->n_processes; i++) {
        const struct mg_pprocess *x = &r->processes[i];
        *mg_vec_push(&p->processes) = (struct mg_profile_process){
            x->pid, x->rank, x->exe, x->device_kind, x->device_name, !x->closed, x->exit_code};
    }
    if (p->recording) mg_recording_free(p->recording);
    p->recording = r;
    p->version += changed;
    return changed;
}

int mg_profile_refresh(struct mg_profile *p, char *error, size_t error_bytes)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *r;
    enum mg_err err = mg_recording_open(p->dir, &r, &d);
    if (err) say(error, error_bytes, mg_diag_first(&d, err));
    mg_diag_release(&d);
    if (err) return -1;
    return replace_recording(p, r);
}

struct mg_profile *mg_profile_open(const char *dir, char *error, size_t error_bytes)
{
    struct mg_profile *p = calloc(1, sizeof *p);
    say(error, error_bytes, "");
    if (p) p->dir = strdup(dir);
    if (!p || !p->dir) say(error, error_bytes, "out of memory");
    if (p && p->dir && mg_profile_refresh(p, error, error_bytes) >= 0) return p;
    mg_profile_close(p);
    return NULL;
}

void mg_profile_close(struct mg_profile *p)
{
    if (!p) return;
    for (uint32_t i = 0; i < p->sources.n; i++) mg_source_free(p->sources.at[i]);
    mg_vec_release(&p->sources);
    mg_vec_release(&p->processes);
    mg_vec_release(&p->kernels);
    if (p->recording) mg_recording_free(p->recording);
    free(p->dir);
    free(p);
}

uint64_t mg_profile_version(const struct mg_profile *p)
{
    return p->version;
}
size_t mg_profile_processes(const struct mg_profile *p)
{
    return p->processes.n;
}
size_t mg_profile_kernels(const struct mg_profile *p)
{
    return p->kernels.n;
}
size_t mg_profile_launches(const struct mg_profile *p)
{
    return p->recording->n_launches;
}

const struct mg_profile_process *mg_profile_process(const struct mg_profile *p, size_t i)
{
    return i < p->processes.n ? &p->processes.at[i] : NULL;
}

const struct mg_profile_kernel *mg_profile_kernel(const struct mg_profile *p, size_t i)
{
    return i < p->kernels.n ? &p->kernels.at[i] : NULL;
}

const struct mg_profile_kernel *mg_profile_find_kernel(const struct mg_profile *p, const char *name)
{
    for (uint32_t i = 0; i < p->kernels.n; i++)
        if (!strcmp(p->kernels.at[i].name, name) || !strcmp(p->kernels.at[i].demangled, name)) return &p->kernels.at[i];
    return NULL;
}

int mg_profile_block(const struct mg_profile *p, size_t kernel, uint32_t block, struct mg_profile_block *out)
{
    if (kernel >= p->recording->n_kernels || block >= p->recording->kernels[kernel].n_blocks) return 0;
    const struct mg_pblock *b = &p->recording->kernels[kernel].blocks[block];
    *out = (struct mg_profile_block){b->function,
                                     b->file,
                                     b->line,
                                     b->ptx_line,
                                     b->n_insts,
                                     b->has_threads ? b->threads : UINT64_MAX,
                                     b->has_warps ? b->warps : UINT64_MAX};
    return 1;
}

static uint64_t sum_counts(const struct mg_pkernel *k, const uint64_t *counts, uint32_t n)
{
    if (!counts || n != k->n_blocks) return UINT64_MAX;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += counts[i] * k->blocks[i].n_insts;
    return sum;
}

int mg_profile_launch(const struct mg_profile *p, size_t i, struct mg_profile_launch *out)
{
    if (i >= p->recording->n_launches) return 0;
    const struct mg_plaunch *l = &p->recording->launches[i];
    const struct mg_pkernel *k = &p->recording->kernels[l->kernel];
    *out = (struct mg_profile_launch){
        .id = l->id,
        .replay = l->graph ? l->replays : 0,
        .kernel = k->name,
        .thread_instructions = sum_counts(k, l->threads, l->n_counts),
        .warp_instructions = sum_counts(k, l->warps, l->n_counts),
        .start_ns = UINT64_MAX,
        .time_ns = l->timed ? l->time_ns : UINT64_MAX,
        .stream = l->stream,
        .context = l->ctx,
        .device = l->device,
        .pid = p->recording->processes[l->process].pid,
        .instrumented = l->ran == MG_RAN_INSTRUMENTED,
        .complete = l->complete,
    };
    return 1;
}

char *mg_profile_json(const struct mg_profile *p)
{
    struct mg_report_opts o = {.size = sizeof o};
    struct mg_buf b = MG_BUF_INIT;
    mg_report_json(p->recording, &o, &b);
    return mg_buf_take(&b);
}

/* ---- launches as they end ---------------------------------------------------------------------------------- */

int mg_profile_subscribe(struct mg_profile *p, void (*tell)(void *user, const struct mg_profile_launch *launch),
                         void *user)
{
    p->tell = tell;
    p->user = user;
    return 0;
}

static void tell_launch(void *user, const struct mg_source_launch *l)
{
    struct mg_profile *p = user;
    struct mg_profile_launch out = {
        .id = l->id,
        .replay = l->graph ? l->replays : 0,
        .kernel = l->kernel,
        .thread_instructions = l->thread_instructions,
        .warp_instructions = l->warp_instructions,
        .start_ns = l->start_ns,
        .time_ns = l->time_ns,
        .told_ns = l->told_ns,
        .stream = l->stream,
        .context = l->ctx,
        .device = l->device,
        .pid = l->pid,
        .instrumented = l->instrumented,
        .complete = l->complete,
    };
    if (p->tell) p->tell(p->user, &out);
}

static bool is_known(const struct mg_profile *p, const char *path)
{
    for (uint32_t i = 0; i < p->sources.n; i++)
        if (!strcmp(p->sources.at[i]->path, path)) return true;
    return false;
}

/* Databases that have come since the last time. */
static void scan(struct mg_profile *p)
{
    DIR *d = opendir(p->dir);
    p->launching = false;
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, "profile.db") && fnmatch("profile-*.db", e->d_name, 0) &&
            fnmatch("run-*.db", e->d_name, 0))
            continue;
        struct mg_buf path = MG_BUF_INIT;
        struct mg_source *s = NULL;
        mg_buf_printf(&path, "%s/%s", p->dir, e->d_name);
        if (!is_known(p, path.at) && !mg_source_open(path.at, &s, &p->launching, NULL) && s)
            *mg_vec_push(&p->sources) = s;
        mg_buf_release(&path);
    }
    if (d) closedir(d);
    p->scanned_ns = mg_now_ns();
}

static bool all_ended(const struct mg_profile *p)
{
    for (uint32_t i = 0; i < p->sources.n; i++)
        if (!p->sources.at[i]->ended) return false;
    return !p->launching;
}

struct waiter {
    uint64_t value, address;
    uint32_t flags, reserved;
}; /* struct futex_waitv */
enum { WAIT_32_SHARED = 2 };

static void *word_page(const uint32_t *word)
{
    return (void *)((uintptr_t)word & ~(uintptr_t)(MG_LIVE_HEAD_BYTES - 1));
}

/* Until a writer has something, or for ns. Kernels before 5.16 cannot wait for several words: there, a millisecond. */
static void sleep_for(struct mg_profile *p, uint64_t ns)
{
    struct waiter words[MOST_WORDS];
    uint32_t n = 0, value = 0;
    bool idle = true, all_armed = true;
    for (uint32_t i = 0; i < p->sources.n && idle; i++) {
        uint32_t *word = NULL;
        struct mg_source *s = p->sources.at[i];
        idle = mg_source_arm(s, &word, &value);
        if (word && n < MOST_WORDS)
            words[n++] = (struct waiter){value, (uintptr_t)word, WAIT_32_SHARED, 0};
        else if (word)
            munmap(word_page(word), MG_LIVE_HEAD_BYTES), all_armed = false;
        else if (!s->ended)
            all_armed = false;
    }
    if (!all_armed) ns = MG_MIN(ns, 1000000u); /* a ring that cannot be slept on is looked at every ms */
    uint64_t until = mg_now_ns() + ns;
    struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    bool slept = idle && n && (syscall(SYS_futex_waitv, words, n, 0, &at, CLOCK_MONOTONIC) >= 0 || errno != ENOSYS);
    struct timespec brief = {0, (long)MG_MIN(ns, 1000000u)};
    if (idle && !slept) nanosleep(&brief, NULL);
    for (uint32_t i = 0; i < n; i++) munmap(word_page((uint32_t *)(uintptr_t)words[i].address), MG_LIVE_HEAD_BYTES);
}

int mg_profile_wait(struct mg_profile *p, int timeout_ms)
{
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : mg_now_ns() + (uint64_t)timeout_ms * 1000000u;
    for (;;) {
        uint64_t now = mg_now_ns();
        if (now - p->scanned_ns >= SCAN_NS) scan(p);
        uint32_t n = 0;
        bool ended = all_ended(p);
        for (uint32_t i = 0; i < p->sources.n; i++) n += mg_source_tell(p->sources.at[i], tell_launch, p);
        if (n) return (int)n;
        if (ended && all_ended(p)) {
            scan(p);
            if (all_ended(p)) return -1;
            continue;
        }
        if (now >= until) return 0;
        sleep_for(p, MG_MIN(until - now, SCAN_NS));
    }
}

/* ---- from inside ---------------------------------------------------------------------------------------------- */

/* Where this process records: a program may clear its environment, but its control page stays mapped. */
static bool find_own_directory(char *dir, size_t room)
{
    char line[PATH_MAX + 256], page[32];
    const char *given = mg_env(MG_ENV_DIR);
    if (given) return (size_t)snprintf(dir, room, "%s", given) < room;
    snprintf(page, sizeof page, "/ctl.%d\n", (int)getpid());
    FILE *f = fopen("/proc/self/maps", "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        char *path = strchr(line, '/'), *name = path ? strrchr(path, '/') : NULL;
        found = name && !strcmp(name, page);
        if (found) *name = 0, found = (size_t)snprintf(dir, room, "%s", path) < room;
    }
    if (f) fclose(f);
    return found;
}

int mg_profile_of_kernel(const char *kernel, struct mg_profile_kernel *out)
{
    static _Thread_local char *name;
    char dir[PATH_MAX];
    struct mg_profile p = {.dir = dir};
    int result = -1;
    *out = (struct mg_profile_kernel){
        .thread_instructions = UINT64_MAX, .warp_instructions = UINT64_MAX, .time_ns = UINT64_MAX};
    if (!find_own_directory(dir, sizeof dir)) return -1;
    scan(&p);
    for (uint32_t i = 0; i < p.sources.n; i++) {
        struct mg_source_sums sums;
        if (p.sources.at[i]->pid == (uint32_t)getpid() && result && mg_source_sum(p.sources.at[i], kernel, &sums)) {
            free(name);
            name = sums.name;
            *out = (struct mg_profile_kernel){.name = name,
                                              .demangled = name,
                                              .module = "",
                                              .launches = sums.launches,
                                              .incomplete = sums.incomplete,
                                              .thread_instructions = sums.thread_instructions,
                                              .warp_instructions = sums.warp_instructions,
                                              .time_ns = sums.time_ns,
                                              .timed_launches = sums.timed,
                                              .blocks = sums.n_blocks};
            result = 0;
        }
        mg_source_free(p.sources.at[i]);
    }
    mg_vec_release(&p.sources);
    return result;
}
