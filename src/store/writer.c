/* The writer: calls from the application's threads become rows in a queue, one thread of ours
 * writes them. All file work, opening included, is done on that thread with every signal blocked:
 * a file size limit (SIGXFSZ) then fails a write instead of killing the application. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json_read.h"
#include "base/thread.h"
#include "base/version.h"
#include "store/cells.h"
#include "store/db.h"
#include "store/live.h"
#include "store/priv.h"

/* A commit at once when the writer was idle, then as often as it costs: at most 1/COMMIT_SHARE of a
 * core, so that a process that dies without a word loses some 10 ms where commits are cheap. */
#define COMMIT_MIN_NS   10000000u
#define COMMIT_MAX_NS   250000000u
#define COMMIT_SHARE    25
#define LEAVE_WAIT_NS   1000000000u
#define QUEUE_CAP_BYTES ((size_t)64 << 20)

struct mg_store {
    struct mg_queue queue;
    struct mg_db db;
    struct mg_accounts *accounts; /* cells.c */
    struct mg_live *live;         /* NULL: none */
    uint64_t start_ns;
    pthread_t thread;
    pid_t pid; /* of the process that opened it: a forked child must not write */
    void (*say)(const char *line);
    const char *dir;      /* during open only */
    struct mg_diag *diag; /* during open only */
    enum mg_err open_err;
    bool opened;
    bool left; /* under queue.lock, as what follows: mg_store_leave was called last */
    uint32_t n_kernels, n_uses;
    uint64_t n_launches;
    uint64_t first_lost;   /* launches from this number on are not in the database; UINT64_MAX: all are */
    uint64_t lost_drops;   /* of those, the ones that the driver refused */
    uint64_t lost_replays; /* replays of nodes, besides the first, whose end was not written, and launches that nobody
                              could count */
    struct mg_row *late_drops; /* refused launches that stand in the database: taken out at the end */
    int exit_code;             /* set by close */
    char *stopped;             /* the writer's: why recording stopped */
    bool noted;                /* the writer's: the database says so */
};

enum { REPLAYS_CELL = 5 /* of the statement `done` */, LONG_JSON = 1 << 16 };

static bool is_ours(const struct mg_store *s)
{
    return s && s->pid == getpid();
}

static struct mg_row *exit_row(int exit_code, bool closed)
{
    struct mg_row *r = mg_row_new(MG_STMT_exit, 0);
    if (!r) return NULL;
    if (exit_code < 0)
        mg_row_null(r);
    else
        mg_row_int(r, exit_code);
    mg_row_int(r, closed);
    return r;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void free_rows(struct mg_row *rows)
{
    while (rows) {
        struct mg_row *next = rows->next;
        free(rows);
        rows = next;
    }
}

/* Under queue.lock, in the order of the rows: launches and their ends that will not be written, so that
 * what is in the database and what is missing add up. */
static void lose_launch(struct mg_store *s, uint64_t id)
{
    s->first_lost = MG_MIN(s->first_lost, id);
}

static void lose_row(struct mg_store *s, const struct mg_row *r)
{
    uint64_t id = r->n ? (uint64_t)r->cells[0].i : 0;
    if (r->stmt == MG_STMT_launch) lose_launch(s, id);
    if (r->stmt == MG_STMT_done) s->lost_replays += (uint64_t)r->cells[REPLAYS_CELL].i - 1;
    if (r->stmt == MG_STMT_unknown) s->lost_replays += (uint64_t)r->cells[1].i;
    if (r->stmt != MG_STMT_drop) return;
    if (id >= s->first_lost) {
        s->lost_drops++;
        return;
    }
    struct mg_row *keep = mg_row_new(MG_STMT_drop, 0);
    if (!keep) return;
    mg_row_int(keep, (int64_t)id);
    keep->next = s->late_drops;
    s->late_drops = keep;
}

static void lose_rows(struct mg_store *s, const struct mg_row *rows)
{
    pthread_mutex_lock(&s->queue.lock);
    for (; rows; rows = rows->next) lose_row(s, rows);
    pthread_mutex_unlock(&s->queue.lock);
}

/* How many launches are missing, and why: at once when recording stops, while there is room, and again at
 * the end, when the number is known. */
static void note_lost(struct mg_store *s, struct mg_row *end)
{
    char why[1000];
    snprintf(why, sizeof why, "recording stopped: %s", s->stopped ? s->stopped : "out of memory");
    struct mg_row *r =
        mg_row_new(s->noted ? MG_STMT_not_written : MG_STMT_unknown, strlen(why) + sizeof MG_STORE_NOT_WRITTEN);
    if (!r || !s->db.sql) {
        free(r);
        return;
    }
    pthread_mutex_lock(&s->queue.lock);
    uint64_t n = (s->first_lost < s->n_launches ? s->n_launches - s->first_lost : 0) - s->lost_drops + s->lost_replays;
    struct mg_row *drops = s->late_drops;
    s->late_drops = NULL;
    pthread_mutex_unlock(&s->queue.lock);
    if (!s->noted) mg_row_text(r, MG_STORE_NOT_WRITTEN);
    mg_row_int(r, (int64_t)n);
    if (!s->noted) mg_row_text(r, why);
    struct mg_row **tail = &r->next;
    for (*tail = drops; *tail; tail = &(*tail)->next) {
    }
    *tail = end;
    enum mg_err err = mg_db_write(&s->db, r, NULL);
    if (err) {
        mg_db_make_room(&s->db);
        err = mg_db_write(&s->db, r, NULL);
    }
    s->noted |= !err;
    *tail = NULL;
    free_rows(r);
}

static void note_left(struct mg_store *s)
{
    pthread_mutex_lock(&s->queue.lock);
    struct mg_row *end = s->left ? exit_row(s->exit_code, true) : NULL;
    pthread_mutex_unlock(&s->queue.lock);
    note_lost(s, end);
    free(end);
}

/* rows: those that could not be written */
static void stop_recording(struct mg_store *s, const struct mg_row *rows, const struct mg_diag *d, enum mg_err err)
{
    char line[5000];
    mg_queue_break(&s->queue);
    lose_rows(s, rows);
    s->stopped = strdup(mg_diag_first(d, err));
    note_lost(s, NULL);
    snprintf(line, sizeof line, "%s; recording stops, what was recorded before stays readable", mg_diag_first(d, err));
    if (s->say) s->say(line);
}

static void *write_all(void *arg)
{
    struct mg_store *s = arg;
    enum mg_err err = MG_ERR_OK;
    mg_thread_name("margay profile");
    s->open_err = mg_db_claim(&s->db, s->dir, (uint32_t)s->pid, s->diag);
    if (!s->open_err) s->live = mg_live_open(s->dir, (uint32_t)s->pid, s->start_ns);
    pthread_mutex_lock(&s->queue.lock);
    s->opened = true;
    pthread_cond_broadcast(&s->queue.drained);
    pthread_mutex_unlock(&s->queue.lock);
    if (s->open_err) return NULL;
    uint64_t told = 0;
    for (uint64_t interval = COMMIT_MIN_NS;;) {
        uint64_t ticket;
        size_t bytes;
        bool end;
        struct mg_row *rows = mg_queue_take(&s->queue, interval, &ticket, &bytes, &end);
        uint64_t start = mg_now_ns();
        if (!err && rows) mg_accounts_rows(s->accounts, rows);
        if (rows && !err) {
            struct mg_diag d = MG_DIAG_INIT;
            err = mg_db_write(&s->db, rows, &d);
            if (err) stop_recording(s, rows, &d, err);
            mg_diag_release(&d);
        } else if (err) {
            lose_rows(s, rows);
            if (ticket != told) note_left(s); /* the process may leave now */
        }
        told = ticket;
        free_rows(rows);
        interval = MG_MIN(MG_MAX((mg_now_ns() - start) * COMMIT_SHARE, COMMIT_MIN_NS), COMMIT_MAX_NS);
        mg_queue_written(&s->queue, ticket, bytes);
        if (end) break;
    }
    if (err || s->queue.broken) {
        struct mg_row *end = exit_row(s->exit_code, true);
        note_lost(s, end);
        free(end);
    }
    mg_db_close(&s->db, true);
    free(s->stopped);
    return NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void push(struct mg_store *s, struct mg_row *r)
{
    if (!r) {
        s->queue.broken = true;
        if (s->say) s->say("out of memory; recording stops, what was recorded before stays readable");
        return;
    }
    if (s->left) { /* it went on: an exec that failed, a handler that returned */
        struct mg_row *back = exit_row(-1, false);
        s->left = false;
        if (back && !mg_queue_push(&s->queue, back)) free(back);
    }
    if (mg_queue_push(&s->queue, r)) return;
    for (const struct mg_row *lost = r; lost; lost = lost->next) lose_row(s, lost);
    free_rows(r);
}

static void lock_push(struct mg_store *s, struct mg_row *r)
{
    pthread_mutex_lock(&s->queue.lock);
    push(s, r);
    pthread_mutex_unlock(&s->queue.lock);
}

static size_t argv_bytes(const char *const *argv, uint32_t argc)
{
    size_t n = 0;
    for (uint32_t i = 0; i < argc; i++) n += strlen(argv[i]) + 1;
    return n;
}

static void row_argv(struct mg_row *r, const char *const *argv, uint32_t argc)
{
    char *at = (char *)mg_row_room(r), *from = at;
    for (uint32_t i = 0; i < argc; i++) {
        size_t n = strlen(argv[i]) + 1;
        memcpy(at, argv[i], n);
        at += n;
    }
    mg_row_kept(r, (size_t)(at - from));
}

static struct mg_row *process_row(const struct mg_store_process *p)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1)) host[0] = 0;
    struct mg_row *r = mg_row_new(
        MG_STMT_process, argv_bytes(p->argv, p->argc) + mg_row_text_bytes(p->exe) + mg_row_text_bytes(p->device_kind) +
                             mg_row_text_bytes(p->device_name) + mg_row_text_bytes(p->properties) +
                             mg_row_text_bytes(p->tools) + mg_row_text_bytes(host) + mg_row_text_bytes(MG_VERSION));
    if (!r) return NULL;
    mg_row_int(r, p->pid);
    mg_row_int(r, p->ppid);
    mg_row_int(r, p->rank);
    mg_row_text(r, p->exe);
    row_argv(r, p->argv, p->argc);
    mg_row_text(r, p->device_kind);
    mg_row_text(r, p->device_name);
    mg_row_int(r, p->sms);
    mg_row_int(r, p->sm);
    mg_row_text(r, p->properties);
    mg_row_text(r, p->tools);
    mg_row_int(r, (int64_t)p->start_unix_ns);
    if (p->run)
        mg_row_int(r, (int64_t)p->run);
    else
        mg_row_null(r);
    mg_row_text(r, *host ? host : NULL);
    mg_row_text(r, MG_VERSION);
    return r;
}

enum mg_err mg_store_open(const char *dir, const struct mg_store_process *p, void (*say)(const char *line),
                          struct mg_store **out, struct mg_diag *d)
{
    struct mg_store *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s || !(s->accounts = mg_accounts_new()) || !mg_queue_init(&s->queue, QUEUE_CAP_BYTES)) {
        if (s) mg_accounts_free(s->accounts);
        free(s);
        return mg_diag_err(d, MG_ERR_NO_MEMORY, "cannot create %s: out of memory", dir);
    }
    s->pid = getpid();
    s->start_ns = p->start_ns;
    s->first_lost = UINT64_MAX;
    s->say = say;
    s->dir = dir;
    s->diag = d;
    if (!mg_thread_start(write_all, s, (size_t)1 << 20, &s->thread)) {
        mg_queue_release(&s->queue);
        mg_accounts_free(s->accounts);
        free(s);
        return mg_diag_err(d, MG_ERR_NO_MEMORY, "cannot create %s: no thread for the writer", dir);
    }
    pthread_mutex_lock(&s->queue.lock);
    while (!s->opened) pthread_cond_wait(&s->queue.drained, &s->queue.lock);
    enum mg_err err = s->open_err;
    if (!err) push(s, process_row(p));
    pthread_mutex_unlock(&s->queue.lock);
    if (err) {
        pthread_join(s->thread, NULL);
        mg_queue_release(&s->queue);
        mg_accounts_free(s->accounts);
        free(s);
        return err;
    }
    *out = s;
    return MG_ERR_OK;
}

void mg_store_close(struct mg_store *s, int exit_code)
{
    if (!is_ours(s)) return;
    struct mg_row *r = exit_row(exit_code, true);
    pthread_mutex_lock(&s->queue.lock);
    s->exit_code = exit_code;
    if (r && !mg_queue_push(&s->queue, r)) free(r);
    s->queue.closing = true;
    pthread_cond_signal(&s->queue.work);
    pthread_mutex_unlock(&s->queue.lock);
    pthread_join(s->thread, NULL);
    mg_live_close(s->live); /* the database is whole */
    mg_queue_release(&s->queue);
    mg_accounts_free(s->accounts);
    free(s);
}

void mg_store_forked(struct mg_store *s)
{
    if (s) mg_db_forked(&s->db);
}

void mg_store_flush(struct mg_store *s)
{
    if (is_ours(s)) mg_queue_flush(&s->queue);
}

void mg_store_leave(struct mg_store *s, int exit_code)
{
    if (!is_ours(s) || !mg_queue_lock_soon(&s->queue, LEAVE_WAIT_NS)) return;
    struct mg_row *r = exit_row(exit_code, true);
    s->exit_code = exit_code;
    s->left = r != NULL;
    if (r && !mg_queue_push(&s->queue, r)) free(r);
    mg_queue_flush_locked(&s->queue, LEAVE_WAIT_NS); /* once recording has stopped: for the note of what is missing */
    pthread_mutex_unlock(&s->queue.lock);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void row_regs(struct mg_row *r, int32_t regs)
{
    if (regs < 0)
        mg_row_null(r);
    else
        mg_row_int(r, regs);
}

static void row_time(struct mg_row *r, uint64_t unix_ns)
{
    if (unix_ns)
        mg_row_int(r, (int64_t)unix_ns);
    else
        mg_row_null(r);
}

static struct mg_row *block_row(const struct mg_site_block *b)
{
    size_t succs_bytes = (size_t)b->n_succs * 11, ops_bytes = 0;
    for (uint32_t i = 0; i < b->n_ops; i++) ops_bytes += strlen(b->ops[i].op) + 24;
    struct mg_row *r = mg_row_new(MG_STMT_block, mg_row_text_bytes(b->function) + mg_row_text_bytes(b->label) +
                                                     mg_row_text_bytes(b->file) + mg_row_text_bytes(b->timing) +
                                                     succs_bytes + ops_bytes + 2);
    if (!r) return NULL;
    mg_row_int(r, 0);
    mg_row_int(r, b->id);
    mg_row_text(r, b->function);
    mg_row_text(r, b->label);
    mg_row_int(r, b->ptx_line);
    mg_row_text(r, b->file);
    mg_row_int(r, b->line);
    mg_row_int(r, b->n_insts);
    char *at = (char *)mg_row_room(r);
    size_t n = 0;
    for (uint32_t i = 0; i < b->n_succs; i++) n += (size_t)snprintf(at + n, 12, i ? " %u" : "%u", b->succs[i]);
    mg_row_kept(r, n);
    r->cells[r->n - 1].kind = MG_CELL_text;
    at = (char *)mg_row_room(r);
    n = 0;
    for (uint32_t i = 0; i < b->n_ops; i++)
        n += (size_t)snprintf(at + n, r->cap - r->used - n, "%s%s %u %u", i ? ";" : "", b->ops[i].op, b->ops[i].n,
                              b->ops[i].n_guarded);
    mg_row_kept(r, n);
    r->cells[r->n - 1].kind = MG_CELL_text;
    mg_row_text(r, b->timing);
    mg_row_int(r, b->apart);
    return r;
}

/* The blocks' rows as a chain; false when memory is out. The kernel's id is filled in later. */
static bool block_rows(const struct mg_sites *sites, struct mg_row **first)
{
    struct mg_row **tail = first;
    for (uint32_t i = 0; i < sites->n_blocks; i++) {
        if (!(*tail = block_row(&sites->blocks[i]))) return false;
        tail = &(*tail)->next;
    }
    return true;
}

/* The kernel and its blocks go in one chain: no reader ever sees the one without the others. */
uint32_t mg_store_kernel(struct mg_store *s, const struct mg_store_kernel *k)
{
    if (!is_ours(s)) return 0;
    struct mg_row *r = mg_row_new(MG_STMT_kernel, mg_row_text_bytes(k->name) + mg_row_text_bytes(k->demangled) +
                                                      mg_row_text_bytes(k->module));
    if (r) {
        mg_row_int(r, 0); /* the id, below */
        mg_row_text(r, k->name ? k->name : "");
        mg_row_text(r, k->demangled);
        mg_row_text(r, k->module ? k->module : "");
        row_regs(r, k->regs_native);
        row_regs(r, k->regs_instrumented);
        mg_row_int(r, k->regs_estimated);
        mg_row_int(r, k->sites != NULL);
        row_time(r, k->built_unix_ns);
    }
    if (r && k->sites && !block_rows(k->sites, &r->next)) {
        free_rows(r);
        r = NULL;
    }
    pthread_mutex_lock(&s->queue.lock);
    uint32_t id = s->n_kernels++;
    for (struct mg_row *row = r; row; row = row->next) row->cells[0].i = id;
    push(s, r);
    pthread_mutex_unlock(&s->queue.lock);
    mg_live_kernel(s->live, id, k);
    return id;
}

void mg_store_kernel_found(struct mg_store *s, uint32_t kernel, const struct mg_store_kernel *k)
{
    if (!is_ours(s)) return;
    struct mg_row *r = mg_row_new(MG_STMT_kernel_found, mg_row_text_bytes(k->module));
    if (r) {
        mg_row_int(r, 0); /* the id, below */
        mg_row_text(r, k->module ? k->module : "");
        row_regs(r, k->regs_instrumented);
        mg_row_int(r, k->sites != NULL);
        row_time(r, k->built_unix_ns);
    }
    if (r && k->sites && !block_rows(k->sites, &r->next)) {
        free_rows(r);
        r = NULL;
    }
    for (struct mg_row *row = r; row; row = row->next) row->cells[0].i = kernel;
    lock_push(s, r);
    mg_live_kernel(s->live, kernel, k);
}

void mg_store_module(struct mg_store *s, const char *id, const char *ptx, size_t bytes)
{
    if (!is_ours(s)) return;
    struct mg_row *r = mg_row_new(MG_STMT_module, strlen(id) + bytes);
    if (r) {
        mg_row_text(r, id);
        mg_row_int(r, (int64_t)bytes);
        mg_row_bytes(r, MG_CELL_zstd, ptx, bytes);
    }
    lock_push(s, r);
}

/* ---- launches -------------------------------------------------------------------------------- */

static void row_dim(struct mg_row *r, const uint32_t v[3])
{
    for (int i = 0; i < 3; i++) mg_row_int(r, v[i]);
}

uint64_t mg_store_launch(struct mg_store *s, const struct mg_store_launch *l)
{
    if (!is_ours(s)) return 0;
    struct mg_row *r = mg_row_new(MG_STMT_launch, mg_row_text_bytes(l->reason) + mg_args_bound(l->args, l->n_args));
    if (r) {
        mg_row_int(r, 0); /* the id, below */
        mg_row_int(r, l->kernel);
        row_dim(r, l->grid);
        row_dim(r, l->block);
        row_dim(r, l->cluster);
        mg_row_int(r, l->static_shared_bytes);
        mg_row_int(r, l->dyn_shared_bytes);
        mg_row_int(r, l->device);
        mg_row_int(r, (int64_t)l->stream);
        mg_row_int(r, (int64_t)l->ctx);
        mg_row_int(r, (int64_t)l->graph);
        mg_row_int(r, l->ran);
        mg_row_text(r, l->reason);
        mg_row_int(r, l->cooperative);
        mg_row_int(r, (int64_t)l->tools);
        mg_row_kept(r, mg_args_encode(l->args, l->n_args, mg_row_room(r)));
    }
    pthread_mutex_lock(&s->queue.lock);
    uint64_t id = s->n_launches++;
    if (r) r->cells[0].i = (int64_t)id;
    push(s, r);
    if (s->queue.broken) lose_launch(s, id);
    pthread_mutex_unlock(&s->queue.lock);
    mg_live_launch(s->live, id, l);
    return id;
}

void mg_store_launch_drop(struct mg_store *s, uint64_t launch)
{
    if (!is_ours(s)) return;
    struct mg_row *r = mg_row_new(MG_STMT_drop, 0);
    if (r) mg_row_int(r, (int64_t)launch);
    lock_push(s, r);
    mg_live_drop(s->live, launch);
}

static void row_counts(struct mg_row *r, const uint64_t *v, uint32_t n)
{
    if (v)
        mg_row_kept(r, mg_counts_encode(v, n, mg_row_room(r)));
    else
        mg_row_null(r);
}

void mg_store_launch_done(struct mg_store *s, uint64_t launch, const struct mg_store_done *done)
{
    if (!is_ours(s)) return;
    size_t counts = (size_t)((done->threads != NULL) + (done->warps != NULL)) * mg_counts_bound(done->n_blocks);
    struct mg_row *r = mg_row_new(MG_STMT_done, mg_row_text_bytes(done->why) + counts);
    if (r) {
        mg_row_int(r, (int64_t)launch);
        mg_row_int(r, done->complete);
        mg_row_text(r, done->why);
        mg_row_int(r, (int64_t)done->start_ns);
        if (done->timed)
            mg_row_int(r, (int64_t)done->time_ns);
        else
            mg_row_null(r);
        mg_row_int(r, done->replays ? (int64_t)done->replays : 1);
        row_counts(r, done->threads, done->n_blocks);
        row_counts(r, done->warps, done->n_blocks);
        if (done->schedule_dependent < 0)
            mg_row_null(r);
        else
            mg_row_int(r, done->schedule_dependent);
    }
    lock_push(s, r);
    mg_live_done(s->live, launch, done);
}

void mg_store_unknown(struct mg_store *s, const char *what, uint64_t n, const char *reason)
{
    if (!is_ours(s)) return;
    struct mg_row *r = mg_row_new(MG_STMT_unknown, mg_row_text_bytes(what) + mg_row_text_bytes(reason));
    if (r) {
        mg_row_text(r, what);
        mg_row_int(r, (int64_t)n);
        mg_row_text(r, reason);
    }
    lock_push(s, r);
}

/* "key": value, compressed where it is long. */
static struct mg_row *tool_row(const char *tool, const char *key, size_t n_key, const char *value, size_t n_value)
{
    struct mg_row *r = mg_row_new(MG_STMT_tool, strlen(tool) + n_key + n_value);
    if (!r) return NULL;
    mg_row_text(r, tool);
    mg_row_bytes(r, MG_CELL_text, key, n_key);
    mg_row_bytes(r, MG_CELL_text, value, n_value < LONG_JSON ? n_value : 0);
    if (n_value < LONG_JSON)
        mg_row_null(r);
    else
        mg_row_bytes(r, MG_CELL_zstd, value, n_value);
    return r;
}

void mg_store_tool_json(struct mg_store *s, const char *tool, const char *key, const char *json)
{
    if (!is_ours(s)) return;
    lock_push(s, tool_row(tool, key, strlen(key), json, strlen(json)));
}

/* ---- tools ---------------------------------------------------------------------------------------- */

uint32_t mg_store_use(struct mg_store *s, const char *name, const char *args, const char *path)
{
    if (!is_ours(s)) return 0;
    struct mg_row *r = mg_row_new(MG_STMT_use, strlen(name) + strlen(args) + mg_row_text_bytes(path));
    if (r) {
        mg_row_int(r, 0); /* the id, below */
        mg_row_text(r, name);
        mg_row_text(r, args);
        mg_row_text(r, path);
    }
    pthread_mutex_lock(&s->queue.lock);
    uint32_t id = s->n_uses++;
    if (r) r->cells[0].i = id;
    push(s, r);
    pthread_mutex_unlock(&s->queue.lock);
    return id;
}

/* The region and its sites are committed together. */
struct mg_account *mg_store_region(struct mg_store *s, const struct mg_store_region *r)
{
    if (!is_ours(s)) return NULL;
    struct mg_row *rows = mg_region_rows(r);
    struct mg_account *a = rows ? mg_account_new(s->accounts, r) : NULL;
    lock_push(s, rows);
    return a;
}

/* ---- of a process that is no more ---------------------------------------------------------------- */

/* Writes these rows, and frees them; NULL: there was no memory for them. */
static enum mg_err write_rows(const char *path, struct mg_row *rows, struct mg_diag *d)
{
    struct mg_db *db = malloc(sizeof *db);
    enum mg_err err = db && rows ? mg_db_open(db, path, d) : mg_diag_err(d, MG_ERR_NO_MEMORY, "out of memory");
    if (!err) {
        err = mg_db_write(db, rows, d);
        mg_db_close(db, true);
    }
    free_rows(rows);
    free(db);
    return err;
}

enum mg_err mg_store_missing(const char *path, uint64_t n, const char *reason, struct mg_diag *d)
{
    struct mg_row *r = mg_row_new(MG_STMT_unknown, strlen(reason) + sizeof MG_STORE_NOT_WRITTEN);
    if (r) {
        mg_row_text(r, MG_STORE_NOT_WRITTEN);
        mg_row_int(r, (int64_t)n);
        mg_row_text(r, reason);
    }
    return write_rows(path, r, d);
}

enum mg_err mg_store_results(const char *path, const char *tool, const char *object, struct mg_diag *d)
{
    struct mg_row *first = NULL, **last = &first;
    const char *at = strchr(object, '{');
    for (at = at ? strchr(at, '"') : NULL; at; at = at && *at == ',' ? strchr(at, '"') : NULL) {
        const char *key = at + 1, *end = mg_json_skip(at), *value = end ? end + 1 : NULL;
        at = value ? mg_json_skip(value) : NULL;
        if (!at || !(*last = tool_row(tool, key, (size_t)(end - 1 - key), value, (size_t)(at - value)))) {
            free_rows(first); /* all, or none */
            first = NULL;
            break;
        }
        last = &(*last)->next;
    }
    return write_rows(path, first, d);
}

/* ---- the launcher's record --------------------------------------------------------------------- */

enum mg_err mg_store_run(const char *dir, uint64_t run, uint32_t pid, const char *const *argv, uint32_t argc,
                         int exit_code, struct mg_diag *d)
{
    char path[4096];
    struct mg_db *db = malloc(sizeof *db);
    struct mg_row *r = mg_row_new(MG_STMT_run, argv_bytes(argv, argc));
    enum mg_err err =
        db && r ? mg_db_make_dir(dir, d) : mg_diag_err(d, MG_ERR_NO_MEMORY, "cannot create %s: out of memory", dir);
    if (!err && snprintf(path, sizeof path, "%s/run-%llu.db", dir, (unsigned long long)run) >= (int)sizeof path - 8)
        err = mg_diag_err(d, MG_ERR_IO, "cannot create %s/run-%llu.db: %s", dir, (unsigned long long)run,
                          strerror(ENAMETOOLONG));
    if (!err) err = mg_db_open(db, path, d);
    if (!err) {
        mg_row_int(r, pid);
        row_argv(r, argv, argc);
        if (exit_code < 0)
            mg_row_null(r);
        else
            mg_row_int(r, exit_code);
        mg_row_int(r, (int64_t)run);
        err = mg_db_write(db, r, d);
        mg_db_close(db, true);
    }
    free(r);
    free(db);
    if (exit_code >= 0) mg_live_sweep(dir);
    return err;
}
