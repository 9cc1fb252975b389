/* See source.h. */
#include "query/source.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/io.h"
#include "base/processor.h"
#include "store/files.h"
#include "store/live.h"
#include "store/priv.h"

#define SWEEP_NS       50000000u   /* the database is read at most so often */
#define COMMIT_WAIT_NS 1000000000u /* what was recorded is committed by then */
enum {
    NEW_S = 10,
};

/* ---- the database -------------------------------------------------------------------------------------- */

static sqlite3_stmt *prepare(struct mg_source *s, const char *text)
{
    sqlite3_stmt *st = NULL;
    return sqlite3_prepare_v2(s->sql, text, -1, &st, NULL) == SQLITE_OK ? st : NULL;
}

/* Numbers of kernels and launches are looked up, and are no places: where they are damage, they may be anything. */
static struct mg_source_kernel *kernel_at(struct mg_source *s, uint64_t id)
{
    uint64_t at = s->kernels.n;
    if (mg_map_get(&s->kernel_of, id, &at)) return &s->kernels.at[at];
    mg_map_set(&s->kernel_of, id, at);
    *mg_vec_push(&s->kernels) = (struct mg_source_kernel){0};
    return &s->kernels.at[at];
}

static const char *kernel_name(struct mg_source *s, uint64_t id)
{
    struct mg_source_kernel *k = kernel_at(s, id);
    sqlite3_stmt *st = k->name ? NULL : prepare(s, "SELECT name FROM kernel WHERE id=?");
    if (st) {
        sqlite3_bind_int64(st, 1, (int64_t)id);
        if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0))
            k->name = strdup((const char *)sqlite3_column_text(st, 0));
        sqlite3_finalize(st);
    }
    return k->name ? k->name : "";
}

static void read_blocks(struct mg_source *s, uint64_t id, struct mg_source_kernel *k)
{
    MG_VEC(uint32_t) insts = {0};
    sqlite3_stmt *st = prepare(s, "SELECT n_insts FROM block WHERE kernel=? ORDER BY id");
    if (!st) return;
    sqlite3_bind_int64(st, 1, (int64_t)id);
    while (sqlite3_step(st) == SQLITE_ROW) *mg_vec_push(&insts) = (uint32_t)sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    k->has_blocks = insts.n > 0;
    k->n_blocks = insts.n;
    k->block_insts = insts.at;
}

/* Instructions from a column of counts; UINT64_MAX: not measured. */
static uint64_t instructions_at(struct mg_source *s, sqlite3_stmt *st, int column, uint64_t kernel)
{
    struct mg_source_kernel *k = kernel_at(s, kernel);
    const void *bytes = sqlite3_column_blob(st, column);
    if (!bytes) return UINT64_MAX;
    if (!k->has_blocks) read_blocks(s, kernel, k);
    uint64_t *counts = calloc(k->n_blocks + 1u, sizeof *counts), sum = 0;
    bool ok =
        counts && k->n_blocks && mg_counts_decode(bytes, (size_t)sqlite3_column_bytes(st, column), counts, k->n_blocks);
    for (uint32_t i = 0; ok && i < k->n_blocks; i++) sum += counts[i] * k->block_insts[i];
    free(counts);
    return ok ? sum : UINT64_MAX;
}

static bool was_told(const struct mg_source *s, uint64_t id)
{
    uint64_t bits;
    return mg_map_get(&s->told, id / 64, &bits) && bits >> id % 64 & 1;
}

/* True the first time, and for a graph's launch whenever it has more replays. */
static bool mark_told(struct mg_source *s, const struct mg_source_launch *l)
{
    uint64_t bits = 0, bit = (uint64_t)1 << l->id % 64;
    bool first = !mg_map_get(&s->told, l->id / 64, &bits) || !(bits & bit);
    if (first) mg_map_set(&s->told, l->id / 64, bits | bit);
    if (!l->graph) return first;
    uint64_t before = 0;
    if (mg_map_get(&s->replays, l->id, &before) && l->replays <= before) return false;
    mg_map_set(&s->replays, l->id, l->replays);
    return true;
}

static const char sweep_text[] =
    "SELECT id, kernel, start_ns, time_ns, replays, device, stream, ctx, ran, complete, threads, warps, graph FROM launch"
    " WHERE id>=? AND (start_ns IS NOT NULL OR ?) ORDER BY id";

static uint64_t u64_or_none(sqlite3_stmt *st, int column)
{
    return sqlite3_column_type(st, column) == SQLITE_NULL ? UINT64_MAX : (uint64_t)sqlite3_column_int64(st, column);
}

/* Launches that are committed and not told. */
static uint32_t sweep(struct mg_source *s, mg_source_fn fn, void *user)
{
    sqlite3_stmt *st = prepare(s, sweep_text);
    uint32_t n = 0;
    if (!st) return 0;
    sqlite3_bind_int64(st, 1, (int64_t)s->first_untold);
    sqlite3_bind_int64(st, 2, s->ended); /* whose end was never told: incomplete */
    while (sqlite3_step(st) == SQLITE_ROW) {
        uint64_t kernel = (uint64_t)sqlite3_column_int64(st, 1), graph = (uint64_t)sqlite3_column_int64(st, 12);
        struct mg_source_launch l = {
            .id = (uint64_t)sqlite3_column_int64(st, 0),
            .start_ns = u64_or_none(st, 2),
            .time_ns = u64_or_none(st, 3),
            .replays = (uint64_t)sqlite3_column_int64(st, 4),
            .device = (uint32_t)sqlite3_column_int64(st, 5),
            .stream = (uint64_t)sqlite3_column_int64(st, 6),
            .ctx = (uint64_t)sqlite3_column_int64(st, 7),
            .pid = s->pid,
            .instrumented = sqlite3_column_int64(st, 8) == MG_RAN_INSTRUMENTED,
            .complete = sqlite3_column_int64(st, 9) != 0,
            .graph = graph != 0,
        };
        if (!mark_told(s, &l)) continue;
        if (l.start_ns != UINT64_MAX && s->ring_start_ns)
            l.start_ns += s->ring_start_ns;
        else
            l.start_ns = UINT64_MAX;
        l.thread_instructions = instructions_at(s, st, 10, kernel);
        l.warp_instructions = instructions_at(s, st, 11, kernel);
        l.kernel = kernel_name(s, kernel);
        fn(user, &l);
        n++;
    }
    sqlite3_finalize(st);
    while (!s->replays.n && was_told(s, s->first_untold)) s->first_untold++;
    return n;
}

/* ---- the ring --------------------------------------------------------------------------------------------- */

static bool read_head(const struct mg_source *s, struct mg_live_head *h)
{
    return pread(s->ring, h, sizeof *h, 0) == sizeof *h && h->magic == MG_LIVE_MAGIC &&
           h->entry_bytes == sizeof(struct mg_live_entry) && h->pid == s->pid;
}

static void attach_ring(struct mg_source *s)
{
    struct mg_live_head h;
    struct mg_buf path = MG_BUF_INIT;
    const char *slash = strrchr(s->path, '/');
    mg_buf_printf(&path, "%.*s/live-%u.ring", (int)(slash - s->path), s->path, s->pid);
    s->ring = open(path.at, O_RDWR | O_CLOEXEC);
    if (s->ring < 0) s->ring = open(path.at, O_RDONLY | O_CLOEXEC);
    mg_buf_release(&path);
    if (s->ring >= 0 && !read_head(s, &h)) {
        close(s->ring);
        s->ring = -1;
    }
    if (s->ring < 0) return;
    s->ring_start_ns = h.start_ns;
    s->next = h.n > MG_LIVE_ENTRIES / 2 ? h.n - MG_LIVE_ENTRIES / 2 : 0;
}

static void read_names(struct mg_source *s, uint64_t used)
{
    if (used <= s->names_read || used > MG_LIVE_NAMES_BYTES) return;
    size_t bytes = (size_t)(used - s->names_read);
    char *data = malloc(bytes);
    if (data && pread(s->ring, data, bytes, (off_t)(MG_LIVE_NAMES_AT + s->names_read)) == (ssize_t)bytes)
        for (size_t at = 0; at + sizeof(struct mg_live_name) <= bytes;) {
            struct mg_live_name n;
            memcpy(&n, data + at, sizeof n);
            if (n.bytes > bytes - at - sizeof n) break;
            struct mg_source_kernel *k = kernel_at(s, n.kernel);
            if (!k->name) k->name = strndup(data + at + sizeof n, n.bytes);
            at += (sizeof n + n.bytes + 7) & ~(size_t)7;
        }
    free(data);
    s->names_read = used;
}

static uint32_t tell_entry(struct mg_source *s, const struct mg_live_entry *e, mg_source_fn fn, void *user)
{
    struct mg_source_launch l = {
        .id = e->launch,
        .replays = e->replays,
        .thread_instructions = e->thread_instructions,
        .warp_instructions = e->warp_instructions,
        .start_ns = s->ring_start_ns + e->start_ns,
        .time_ns = e->time_ns,
        .told_ns = e->told_ns,
        .stream = e->stream,
        .ctx = e->ctx,
        .device = e->device,
        .pid = s->pid,
        .instrumented = e->flags & MG_LIVE_INSTRUMENTED,
        .complete = e->flags & MG_LIVE_COMPLETE,
        .graph = e->flags & MG_LIVE_GRAPH,
    };
    if (!mark_told(s, &l)) return 0;
    l.kernel = kernel_name(s, e->kernel);
    fn(user, &l);
    return 1;
}

enum { BATCH = 256 };
static uint32_t read_ring(struct mg_source *s, mg_source_fn fn, void *user)
{
    struct mg_live_head h;
    struct mg_live_entry *e = malloc(BATCH * sizeof *e);
    uint32_t n = 0;
    if (!e || !read_head(s, &h)) { /* cut off, or written over: the database has all */
        free(e);
        s->behind_until_ns = mg_now_ns() + COMMIT_WAIT_NS;
        return 0;
    }
    read_names(s, h.names_used);
    if (h.n - s->next > MG_LIVE_ENTRIES - BATCH) {
        s->behind_until_ns = mg_now_ns() + COMMIT_WAIT_NS;
        s->next = h.n - MG_LIVE_ENTRIES / 2;
    }
    while (s->next < h.n) {
        uint64_t slot = s->next % MG_LIVE_ENTRIES, most = MG_MIN(MG_MIN(h.n - s->next, BATCH), MG_LIVE_ENTRIES - slot);
        ssize_t bytes = (ssize_t)(most * sizeof *e);
        if (pread(s->ring, e, (size_t)bytes, (off_t)mg_live_entry_at(s->next)) != bytes) break;
        struct mg_live_head after; /* an entry that was written over while it was read is at least a round old now */
        if (!read_head(s, &after)) break;
        for (uint64_t i = 0; i < most; i++)
            if (e[i].sequence == s->next + i + 1 && after.n < s->next + i + MG_LIVE_ENTRIES)
                n += tell_entry(s, &e[i], fn, user);
            else
                s->behind_until_ns = mg_now_ns() + COMMIT_WAIT_NS;
        s->next += most;
    }
    if (h.dropped || s->next < h.n) s->behind_until_ns = mg_now_ns() + COMMIT_WAIT_NS;
    s->ended = s->ended || (h.closed && s->next == h.n);
    free(e);
    return n;
}

/* ---- telling ---------------------------------------------------------------------------------------------- */

static bool database_closed(struct mg_source *s)
{
    sqlite3_stmt *st = prepare(s, "SELECT closed FROM process");
    bool closed = st && sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return closed;
}

/* A database that is being written has one. */
static bool has_log(const struct mg_source *s)
{
    char path[4200];
    return snprintf(path, sizeof path, "%s-wal", s->path) < (int)sizeof path && !access(path, F_OK);
}

uint32_t mg_source_tell(struct mg_source *s, mg_source_fn fn, void *user)
{
    uint64_t now = mg_now_ns();
    bool ended = s->ended;
    if (s->ring < 0) attach_ring(s);
    uint32_t n = s->ring >= 0 ? read_ring(s, fn, user) : 0;
    if (!s->ended && now - s->seen_ns >= SWEEP_NS) {
        s->ended = !mg_process_is_alive(s->pid);
        s->seen_ns = now;
    }
    bool due = s->ring < 0 || now < s->behind_until_ns || !s->swept_ns;
    if ((s->ended && !ended) || (!ended && due && now - s->swept_ns >= SWEEP_NS)) {
        if (s->ring < 0 && (database_closed(s) || !has_log(s))) s->ended = true;
        s->swept_ns = now;
        n += sweep(s, fn, user);
    }
    return n;
}

bool mg_source_arm(struct mg_source *s, uint32_t **word, uint32_t *value)
{
    struct mg_live_head h;
    *word = NULL;
    if (s->ended || s->ring < 0 || !read_head(s, &h)) return true;
    uint32_t one = 1, before = h.wake; /* what is written from here on changes it, or is in the n below */
    if (pwrite(s->ring, &one, sizeof one, offsetof(struct mg_live_head, sleepers)) != sizeof one) return true;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!read_head(s, &h) || h.n != s->next || h.closed) return false;
    void *page = mmap(NULL, MG_LIVE_HEAD_BYTES, PROT_READ, MAP_SHARED, s->ring, 0);
    if (page == MAP_FAILED) return true;
    *word = &((struct mg_live_head *)page)->wake;
    *value = before;
    return true;
}

/* ---- sums, opening ------------------------------------------------------------------------------------------ */

static void add_measured(uint64_t *sum, uint64_t v)
{
    if (v != UINT64_MAX) *sum = *sum == UINT64_MAX ? v : *sum + v;
}

bool mg_source_sum(struct mg_source *s, const char *kernel, struct mg_source_sums *sums)
{
    *sums = (struct mg_source_sums){
        .thread_instructions = UINT64_MAX, .warp_instructions = UINT64_MAX, .time_ns = UINT64_MAX};
    sqlite3_stmt *names = prepare(s, "SELECT id, name FROM kernel ORDER BY id");
    while (names && sqlite3_step(names) == SQLITE_ROW) {
        uint64_t id = (uint64_t)sqlite3_column_int64(names, 0);
        const char *name = (const char *)sqlite3_column_text(names, 1);
        if (!name || !mg_name_matches(kernel, name) || (sums->name && strcmp(sums->name, name))) continue;
        if (!sums->name) sums->name = strdup(name);
        sqlite3_stmt *st = prepare(s, "SELECT complete, time_ns, threads, warps FROM launch WHERE kernel=?");
        if (!st) break;
        sqlite3_bind_int64(st, 1, (int64_t)id);
        while (sqlite3_step(st) == SQLITE_ROW) {
            sums->launches++;
            if (!sqlite3_column_int64(st, 0)) {
                sums->incomplete++;
                continue;
            }
            add_measured(&sums->thread_instructions, instructions_at(s, st, 2, id));
            add_measured(&sums->warp_instructions, instructions_at(s, st, 3, id));
            add_measured(&sums->time_ns, u64_or_none(st, 1));
            sums->timed += u64_or_none(st, 1) != UINT64_MAX;
        }
        sqlite3_finalize(st);
        sums->n_blocks = kernel_at(s, id)->n_blocks;
    }
    sqlite3_finalize(names);
    return sums->name != NULL;
}

/* A database without any row: one that was made a moment ago and is about to get its first. */
static bool is_new(const struct mg_source *s)
{
    struct stat st;
    return !stat(s->path, &st) && time(NULL) - st.st_mtime < NEW_S;
}

/* A launcher's database has no row of a process. */
static bool read_process(struct mg_source *s, bool *launching)
{
    sqlite3_stmt *st = prepare(s, "SELECT pid, closed FROM process");
    bool found = st && sqlite3_step(st) == SQLITE_ROW;
    if (found) s->pid = (uint32_t)sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    if (found) return true;
    st = prepare(s, "SELECT pid, exit IS NULL FROM run");
    bool any = false;
    for (; st && sqlite3_step(st) == SQLITE_ROW; any = true)
        *launching |= sqlite3_column_int64(st, 1) && mg_process_is_alive((uint32_t)sqlite3_column_int64(st, 0));
    sqlite3_finalize(st);
    *launching |= !any && is_new(s);
    return false;
}

enum mg_err mg_source_open(const char *path, struct mg_source **out, bool *launching, struct mg_diag *d)
{
    struct mg_source *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return mg_diag_err(d, MG_ERR_NO_MEMORY, "%s: out of memory", path);
    s->ring = -1;
    s->path = strdup(path);
    enum mg_err err = mg_dbfile_open(&s->sql, path, s->copy, d);
    if (err || !read_process(s, launching)) {
        mg_source_free(s);
        return err;
    }
    *out = s;
    return MG_ERR_OK;
}

void mg_source_free(struct mg_source *s)
{
    if (!s) return;
    sqlite3_close(s->sql);
    mg_dbfile_done(s->copy);
    if (s->ring >= 0) close(s->ring);
    for (uint32_t i = 0; i < s->kernels.n; i++) free(s->kernels.at[i].name), free(s->kernels.at[i].block_insts);
    mg_vec_release(&s->kernels);
    mg_map_release(&s->kernel_of);
    mg_map_release(&s->told);
    mg_map_release(&s->replays);
    free(s->path);
    free(s);
}
