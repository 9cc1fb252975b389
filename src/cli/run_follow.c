/* See run_follow.h. Each tool reads the file by itself. Its steps come when the trace says that they are whole
 * (trace.whole); what all tools are done with is taken from the disk by making holes in the file, whose size stays.
 * That happens only while there is room for what comes in its place: the results, which lie in memory until the end,
 * have blocks of the disk set aside. */
#include "cli/run_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/processor.h"
#include "cli/buffer_names.h"
#include "study/cache.h"
#include "study/comm_whole.h"
#include "tool/of_trace.h"
#include "tool/spec.h"

struct task { /* of a tool */
    const struct mg_tool *tool;
    void *conf;
    struct mg_trace_reader *r;
    struct mg_accesses *from;
    uint64_t done; /* bytes of the file that it is done with */
    struct mg_comm_whole comm;
    struct mg_comm_feeder *feeder;
    struct mg_cache *cache;
    struct mg_comm_source source; /* the cache's */
};
struct mg_follow {
    char *path;
    uint32_t pid;
    const struct mg_follow_of *of;
    int fd;         /* for the claim, and for holes */
    uint64_t freed; /* up to there */
    bool has_freed, ended;
    bool stopped;             /* an error came when something was freed: what is in front of it is the result */
    int room;                 /* a file without a name, whose blocks are for the results */
    uint64_t kept;            /* bytes of it */
    struct mg_recording *now; /* the profile as it was */
    struct mg_buffer_names *names;
    struct task *tasks;
    uint32_t n_tasks;
};

const struct mg_tool *mg_follow_tool(const char *given)
{
    for (uint32_t i = 0; mg_tool_at(i); i++) {
        const struct mg_tool *t = mg_tool_at(i);
        size_t n = strlen(t->name);
        if (t->flags & MG_TOOL_OF_TRACE && !strncmp(given, t->name, n) && (!given[n] || given[n] == ',')) return t;
    }
    return NULL;
}

/* ---- what buffers are called --------------------------------------------------------------------------------- */

static bool knows_kernel(const struct mg_recording *p, const char *name)
{
    for (uint32_t i = 0; p && i < p->n_kernels; i++)
        if (!strcmp(p->kernels[i].name, name)) return true;
    return false;
}

static void let_names_go(struct mg_follow *f)
{
    if (f->names) mg_buffer_names_free(f->names);
    mg_recording_free(f->now);
    f->names = NULL;
    f->now = NULL;
}

/* A kernel is in the profile soon after its first launch; a process that has ended tells no more. */
static const char *find_place(void *follow, const struct mg_access_site *s)
{
    struct mg_follow *f = follow;
    for (bool more = true; more && !knows_kernel(f->now, s->kernel);) {
        struct mg_diag d = MG_DIAG_INIT;
        more = !f->ended && mg_process_is_alive(f->pid);
        let_names_go(f);
        if (!mg_recording_open_run(f->of->dir, f->of->run, &f->now, &d)) f->names = mg_buffer_names_open(NULL, f->now);
        mg_diag_release(&d);
        if (more && !knows_kernel(f->now, s->kernel)) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return f->names ? mg_buffer_names_place(f->names, s) : NULL;
}

static const char *find_name(void *follow, const struct mg_access_site *s)
{
    return mg_buffer_names_find(((struct mg_follow *)follow)->names, s);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static enum mg_err open_task(struct mg_follow *f, struct task *t, const char *given, struct mg_diag *d)
{
    const char *args = strchr(given, ',');
    t->tool = mg_follow_tool(given);
    enum mg_err err = mg_tool_configure(t->tool, args ? args + 1 : "", 0, &t->conf, d);
    if (!err) err = mg_trace_reader_follow(f->path, &t->r, d);
    if (!err) err = mg_accesses_follow(t->r, &t->from, d);
    if (err) return err;
    if (!strcmp(t->tool->name, "cache")) {
        const struct mg_cache_conf *c = t->conf;
        const struct mg_cache_opts o = {.size = sizeof o,
                                        .l1_bytes = c->l1_bytes,
                                        .l2_bytes = c->l2_bytes,
                                        .interleavings = c->interleavings,
                                        .seed = c->seed,
                                        .place = find_place,
                                        .buffer = find_name,
                                        .buffers = f};
        t->cache = mg_cache_new(&o);
    } else {
        const struct mg_communication_conf *c = t->conf;
        const struct mg_comm_opts o = {
            .size = sizeof o, .entity = (enum mg_comm_entity)c->entity, .match = (enum mg_comm_match)c->match};
        t->comm.comm = mg_comm_new(&o);
        t->feeder = mg_comm_feeder_new(t->from, t->comm.comm, &t->comm.source);
    }
    return MG_ERR_OK;
}

static void close_task(struct task *t)
{
    mg_comm_feeder_end(t->feeder);
    mg_comm_whole_release(&t->comm);
    mg_cache_free(t->cache);
    mg_accesses_close(t->from);
    mg_trace_reader_free(t->r);
    if (t->conf) t->tool->release(t->conf);
}

enum mg_err mg_follow_open(const char *path, uint32_t pid, const struct mg_follow_of *of, struct mg_follow **out,
                           struct mg_diag *d)
{
    struct mg_follow *f = mg_xcalloc(1, sizeof *f);
    enum mg_err err = MG_ERR_OK;
    f->path = mg_xstrdup(path);
    f->pid = pid;
    f->of = of;
    f->room = -1;
    f->fd = open(path, O_RDWR | O_CLOEXEC);
    f->tasks = mg_xcalloc(of->tools->n + 1, sizeof *f->tasks);
    if (f->fd < 0)
        err = mg_diag_err(d, MG_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    else if (flock(f->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        err = mg_diag_err(d, MG_ERR_NOT_FOUND, "%s is followed by another one", path);
    for (uint32_t i = 0; i < of->tools->n && !err; i++)
        if (mg_follow_tool(of->tools->at[i])) err = open_task(f, &f->tasks[f->n_tasks++], of->tools->at[i], d);
    *out = err ? NULL : f;
    if (err) mg_follow_close(f);
    return err;
}

void mg_follow_close(struct mg_follow *f)
{
    if (!f) return;
    for (uint32_t i = 0; i < f->n_tasks; i++) close_task(&f->tasks[i]);
    let_names_go(f);
    if (f->fd >= 0) close(f->fd);
    if (f->room >= 0) close(f->room);
    free(f->tasks);
    free(f->path);
    free(f);
}

const char *mg_follow_path(const struct mg_follow *f)
{
    return f->path;
}

uint32_t mg_follow_pid(const struct mg_follow *f)
{
    return f->pid;
}

bool mg_follow_stop(struct mg_follow *f)
{
    return f->stopped = f->has_freed;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static enum mg_err go(const struct mg_follow *f, struct task *t, bool ended, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    uint64_t n = 1, done;
    while (n && !err) {
        const struct mg_trace_step *s = mg_accesses_more(t->from, ended, &n, &done);
        t->done = MG_MAX(t->done, done);
        for (uint64_t i = 0; i < n && !err; i++) {
            if (*f->of->given_up) return mg_diag_err(d, MG_ERR_STATE, "%s: the analysis was interrupted", f->path);
            err = t->cache ? mg_cache_step(t->cache, t->from, &s[i], &t->source, d)
                           : mg_comm_feeder_step(t->feeder, &s[i], d);
        }
    }
    return err;
}

/* Blocks for this many bytes, of the same disk; at most half of what it has goes, since the program needs some, too. */
static bool set_aside(struct mg_follow *f, uint64_t bytes)
{
    struct statvfs disk;
    if (fstatvfs(f->fd, &disk) || bytes - f->kept > (uint64_t)disk.f_bavail * disk.f_frsize / 2) return false;
    if (f->room < 0) {
        struct mg_buf path = MG_BUF_INIT;
        mg_buf_printf(&path, "%s-room", f->path);
        f->room = open(path.at, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (f->room >= 0) unlink(path.at);
        mg_buf_release(&path);
    }
    if (f->room < 0) return false;
    bool got = !posix_fallocate(f->room, 0, (off_t)bytes);
    if (got)
        f->kept = bytes;
    else if (ftruncate(f->room, (off_t)f->kept)) /* a part of them */
        f->kept = 0;
    return got;
}

/* The profile's own pages, and what the store does not compress; the rest, names and numbers, is at least so much
 * smaller there. */
enum { PROFILE_BYTES = 512 << 10, COMPRESSED = 4 };
/* Is there room for the results as they are? For more than that, where the disk has it, so that they can grow. */
static bool has_room(struct mg_follow *f)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->n_tasks; i++)
        bytes += f->tasks[i].cache ? mg_cache_json_most(f->tasks[i].cache) : mg_comm_json_most(f->tasks[i].comm.comm);
    bytes = PROFILE_BYTES + bytes / COMPRESSED;
    return bytes <= f->kept || set_aside(f, bytes + bytes / 2) || set_aside(f, bytes);
}

/* The head stays, and what shares a page of the file with it or with what is still wanted. */
static void free_disk(struct mg_follow *f)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t done = UINT64_MAX;
    for (uint32_t i = 0; i < f->n_tasks; i++) done = MG_MIN(done, f->tasks[i].done);
    if (!f->of->frees || !f->n_tasks || !done) return;
    if (!f->freed) f->freed = (done + page - 1) & ~(page - 1); /* where the first chunk begins */
    done &= ~(page - 1);
    if (done <= f->freed || !has_room(f)) return;
    f->has_freed |=
        !fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)f->freed, (off_t)(done - f->freed));
    f->freed = done;
}

enum mg_err mg_follow_go(struct mg_follow *f, bool ended, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    f->ended = ended;
    if (f->stopped) return err;
    for (uint32_t i = 0; i < f->n_tasks && !err; i++) err = go(f, &f->tasks[i], ended, d);
    if (!err) free_disk(f);
    return err;
}

static enum mg_err store(struct task *t, bool stopped, const char *db, struct mg_diag *d)
{
    const struct mg_comm_link link = MG_COMM_H200;
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &text, 0);
    if (t->cache) {
        mg_cache_steps_end(t->from, &t->source);
        t->source.is_partial |= stopped;
        mg_cache_print_json(mg_cache_finish(t->cache), &t->source, &j);
    } else {
        mg_comm_feeder_end(t->feeder);
        t->feeder = NULL;
        t->comm.source.is_partial |= stopped;
        mg_comm_whole_finish(&t->comm, &link);
        mg_comm_print_json(&t->comm.study, &j);
    }
    enum mg_err err = mg_store_results(db, t->tool->name, text.at, d);
    mg_buf_release(&text);
    return err;
}

enum mg_err mg_follow_store(struct mg_follow *f, const struct mg_recording *p, const char *db, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    let_names_go(f);
    f->names = mg_buffer_names_open(NULL, p);
    if (f->room >= 0) close(f->room);
    f->room = -1;
    if (f->has_freed && !unlink(f->path) && ftruncate(f->fd, 0)) { /* nobody can read it any more */
    }
    for (uint32_t i = 0; i < f->n_tasks && !err; i++) err = store(&f->tasks[i], f->stopped, db, d);
    return err;
}
