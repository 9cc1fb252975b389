/* Reading a profile directory: every process's database, joined into one struct in memory.
 *
 * A database may be live (its writer goes on while we read: one read transaction gives a consistent
 * state), or not ours at all: everything read is checked before it is believed. files.c opens them. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "base/io.h"
#include "store/files.h"
#include "store/read.h"
#include "store/reason.h"

/* ---- one database ---------------------------------------------------------------------------- */

enum mg_err mg_damaged(struct mg_one_db *o, const char *what)
{
    return mg_diag_err(o->r->diag, MG_ERR_INPUT, "%s is damaged: %s", o->path, what);
}

static enum mg_err sql_failed(struct mg_one_db *o)
{
    int code = sqlite3_errcode(o->sql) & 255;
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) return mg_damaged(o, sqlite3_errmsg(o->sql));
    return mg_diag_err(o->r->diag, MG_ERR_IO, "cannot read %s: %s", o->path, sqlite3_errmsg(o->sql));
}

const char *mg_text_at(struct mg_one_db *o, sqlite3_stmt *st, int col)
{
    const char *s = (const char *)sqlite3_column_text(st, col);
    return s ? mg_intern_text(&o->r->names, mg_intern_adds(&o->r->names, s)) : NULL;
}

static const char *text_or_empty(struct mg_one_db *o, sqlite3_stmt *st, int col)
{
    const char *s = mg_text_at(o, st, col);
    return s ? s : "";
}

static uint32_t u32_at(sqlite3_stmt *st, int col)
{
    return (uint32_t)sqlite3_column_int64(st, col);
}

static bool is_null(sqlite3_stmt *st, int col)
{
    return sqlite3_column_type(st, col) == SQLITE_NULL;
}

/* "a\0b\0" -> argv. */
static void argv_at(struct mg_one_db *o, sqlite3_stmt *st, int col, const char ***argv, uint32_t *argc)
{
    const char *p = sqlite3_column_blob(st, col);
    size_t bytes = (size_t)sqlite3_column_bytes(st, col);
    uint32_t n = 0, k = 0;
    for (size_t i = 0; i < bytes; i++) n += !p[i];
    *argv = mg_arena_array(&o->r->p->arena, const char *, n + 1);
    for (size_t from = 0; k < n; from += strlen((*argv)[k++]) + 1)
        (*argv)[k] = mg_arena_strndup(&o->r->p->arena, p + from, strnlen(p + from, bytes - from));
    *argc = n;
}

/* The column list for a database of this version. */
static void pick_columns(const struct mg_one_db *o, const char *columns, struct mg_buf *out)
{
    for (const char *at = columns; *at;) {
        size_t n = strcspn(at, ",");
        const char *name = at + strspn(at, " ");
        bool tagged = name[0] >= '2' && name[0] <= '9' && name[1] == ':';
        if (at != columns) mg_buf_addc(out, ',');
        if (tagged && o->version < name[0] - '0')
            mg_buf_adds(out, "NULL");
        else if (tagged)
            mg_buf_add(out, name + 2, n - (size_t)(name + 2 - at));
        else
            mg_buf_add(out, at, n);
        at += n + (at[n] == ',');
    }
}

enum mg_err mg_each_row(struct mg_one_db *o, const char *columns, const char *rest, mg_row_fn fn)
{
    struct mg_buf query = MG_BUF_INIT;
    sqlite3_stmt *st = NULL;
    enum mg_err err = MG_ERR_OK;
    mg_buf_adds(&query, "SELECT ");
    pick_columns(o, columns, &query);
    mg_buf_printf(&query, " %s", rest);
    int rc = sqlite3_prepare_v2(o->sql, query.at, -1, &st, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(st);
        if (rc == SQLITE_ROW && (err = fn(o, st)) != MG_ERR_OK) break;
        if (rc == SQLITE_DONE) break;
    }
    if (!err && rc != SQLITE_DONE) err = sql_failed(o);
    sqlite3_finalize(st);
    mg_buf_release(&query);
    return err;
}

static enum mg_err read_process(struct mg_one_db *o, sqlite3_stmt *st)
{
    if (o->process != UINT32_MAX) return mg_damaged(o, "two process rows");
    o->process = o->r->processes.n;
    struct mg_pprocess *p = mg_vec_push(&o->r->processes);
    *p = (struct mg_pprocess){.path = o->path,
                              .pid = u32_at(st, 0),
                              .ppid = u32_at(st, 1),
                              .rank = sqlite3_column_int(st, 2),
                              .exe = text_or_empty(o, st, 3),
                              .device_kind = text_or_empty(o, st, 5),
                              .device_name = text_or_empty(o, st, 6),
                              .sms = u32_at(st, 7),
                              .sm = u32_at(st, 8),
                              .properties = text_or_empty(o, st, 9),
                              .tools = text_or_empty(o, st, 10),
                              .start_unix_ns = (uint64_t)sqlite3_column_int64(st, 11),
                              .exit_code = is_null(st, 12) ? -1 : sqlite3_column_int(st, 12),
                              .closed = sqlite3_column_int(st, 13) != 0,
                              .run = (uint64_t)sqlite3_column_int64(st, 14),
                              .host = mg_text_at(o, st, 15),
                              .version = mg_text_at(o, st, 16)};
    argv_at(o, st, 4, &p->argv, &p->argc);
    if (o->version < 6) mg_scope_parse(p);
    return MG_ERR_OK;
}

static enum mg_err read_run(struct mg_one_db *o, sqlite3_stmt *st)
{
    uint64_t id = (uint64_t)sqlite3_column_int64(st, 3);
    if (o->r->run && id != o->r->run) return MG_ERR_OK;
    struct mg_prun *run = mg_vec_push(&o->r->runs);
    *run =
        (struct mg_prun){.run = id, .pid = u32_at(st, 0), .exit_code = is_null(st, 2) ? -1 : sqlite3_column_int(st, 2)};
    argv_at(o, st, 1, &run->argv, &run->argc);
    return MG_ERR_OK;
}

static mg_str kernel_key(struct mg_reading *r, const char *module, const char *name, uint32_t n_blocks)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_buf_printf(&text, "%s\n%s\n", module, name);
    if (n_blocks) mg_buf_addu(&text, n_blocks);
    mg_str str = mg_intern_add(&r->names, text.at, text.n);
    mg_buf_release(&text);
    return str;
}

/* The joined kernel of (module, name). One whose blocks are not known joins any of that name; only
 * when two processes know different blocks (two versions of margay) do they stay apart. */
static uint32_t merged_kernel(struct mg_one_db *o, const char *module, const char *name, uint32_t n_blocks)
{
    struct mg_reading *r = o->r;
    mg_str any = kernel_key(r, module, name, 0), exact = kernel_key(r, module, name, n_blocks);
    uint64_t ix;
    if (mg_map_get(&r->kernel_of, exact, &ix)) return (uint32_t)ix;
    if (!mg_map_get(&r->kernel_of, any, &ix) || r->kernels.at[ix].n_blocks) {
        ix = r->kernels.n;
        *mg_vec_push(&r->kernels) = (struct mg_pkernel){.id = (uint32_t)ix, .regs_native = -1, .regs_instrumented = -1};
        if (!mg_map_get(&r->kernel_of, any, NULL)) mg_map_set(&r->kernel_of, any, ix);
    }
    mg_map_set(&r->kernel_of, exact, ix);
    return (uint32_t)ix;
}

static const char *demangled(struct mg_one_db *o, const char *name)
{
    char *text = mg_demangle(name);
    const char *kept = text ? mg_intern_text(&o->r->names, mg_intern_adds(&o->r->names, text)) : name;
    free(text);
    return kept;
}

static enum mg_err read_kernel(struct mg_one_db *o, sqlite3_stmt *st)
{
    if (sqlite3_column_int64(st, 0) != (int64_t)o->kernels.n) return mg_damaged(o, "kernel ids are not dense");
    const char *name = text_or_empty(o, st, 1), *module = text_or_empty(o, st, 3);
    bool has_sites = sqlite3_column_int(st, 7) != 0;
    int64_t blocks = sqlite3_column_int64(st, 8);
    if (blocks < 0 || blocks > INT32_MAX) return mg_damaged(o, "too many blocks");
    uint32_t ix = merged_kernel(o, module, name, (uint32_t)blocks);
    struct mg_pkernel *k = &o->r->kernels.at[ix];
    k->name = name;
    k->module = module;
    if (!k->demangled) k->demangled = mg_text_at(o, st, 2);
    if (!k->demangled) k->demangled = demangled(o, name);
    if (!is_null(st, 4)) k->regs_native = sqlite3_column_int(st, 4);
    if (!is_null(st, 5)) k->regs_instrumented = sqlite3_column_int(st, 5);
    k->regs_estimated = sqlite3_column_int(st, 6) != 0;
    k->has_sites |= has_sites;
    if (!is_null(st, 9)) k->built_unix_ns = MG_MAX(k->built_unix_ns, (uint64_t)sqlite3_column_int64(st, 9));
    if (!k->blocks && blocks) {
        k->n_blocks = (uint32_t)blocks;
        k->blocks = mg_arena_array(&o->r->p->arena, struct mg_pblock, blocks);
        for (uint32_t i = 0; i < k->n_blocks; i++) k->blocks[i].id = UINT32_MAX; /* not read yet */
    }
    *mg_vec_push(&o->kernels) = ix;
    *mg_vec_push(&o->n_blocks) = (uint32_t)blocks;
    return MG_ERR_OK;
}

/* "1 2 5" -> ids below limit. */
static bool parse_succs(struct mg_one_db *o, const char *text, uint32_t limit, struct mg_pblock *b)
{
    uint32_t n = 0, *at = mg_arena_array(&o->r->p->arena, uint32_t, strlen(text) / 2 + 1);
    b->succs = at;
    while (*text) {
        char *end;
        unsigned long v = strtoul(text, &end, 10);
        if (end == text || (*end && *end != ' ') || v >= limit) return false;
        at[n++] = (uint32_t)v;
        text = *end ? end + 1 : end;
    }
    b->n_succs = n;
    return true;
}

/* "add.s32 3 0;bra 1 1" -> opcodes with how many and how many guarded. */
static bool parse_ops(struct mg_one_db *o, const char *text, struct mg_pblock *b)
{
    uint32_t n = *text != 0;
    for (const char *c = text; *c; c++) n += *c == ';';
    struct mg_site_op *ops = mg_arena_array(&o->r->p->arena, struct mg_site_op, n + 1);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t len = strcspn(text, " ;");
        char *end;
        if (!len || text[len] != ' ') return false;
        ops[i].op = mg_intern_text(&o->r->names, mg_intern_add(&o->r->names, text, len));
        ops[i].n = (uint32_t)strtoul(text + len, &end, 10);
        ops[i].n_guarded = (uint32_t)strtoul(end, &end, 10);
        if (*end && *end != ';') return false;
        sum += ops[i].n;
        text = *end ? end + 1 : end;
    }
    b->ops = ops;
    b->n_ops = n;
    return sum == b->n_insts;
}

static enum mg_err read_block(struct mg_one_db *o, sqlite3_stmt *st)
{
    int64_t local = sqlite3_column_int64(st, 0), id = sqlite3_column_int64(st, 1);
    if (local < 0 || local >= o->kernels.n) return mg_damaged(o, "a block of no kernel");
    struct mg_pkernel *k = &o->r->kernels.at[o->kernels.at[local]];
    if (id < 0 || id >= k->n_blocks) return mg_damaged(o, "block ids are not dense");
    struct mg_pblock *b = &k->blocks[id];
    if (b->id != UINT32_MAX) return MG_ERR_OK; /* the same kernel of another process */
    *b = (struct mg_pblock){.id = (uint32_t)id,
                            .function = text_or_empty(o, st, 2),
                            .label = text_or_empty(o, st, 3),
                            .ptx_line = u32_at(st, 4),
                            .file = mg_text_at(o, st, 5),
                            .line = u32_at(st, 6),
                            .n_insts = u32_at(st, 7),
                            .timing = mg_text_at(o, st, 10),
                            .apart =
                                sqlite3_column_type(st, 11) == SQLITE_NULL ? -1 : sqlite3_column_int64(st, 11) != 0};
    if (!parse_succs(o, text_or_empty(o, st, 8), k->n_blocks, b)) return mg_damaged(o, "a block's successors");
    if (!parse_ops(o, text_or_empty(o, st, 9), b)) return mg_damaged(o, "a block's opcodes");
    return MG_ERR_OK;
}

static struct mg_plaunch *new_launch(struct mg_reading *r)
{
    if (r->n_launches == r->cap_launches) {
        r->cap_launches = r->cap_launches ? r->cap_launches * 2 : 64;
        r->launches = mg_xrealloc(r->launches, r->cap_launches * sizeof *r->launches);
    }
    return &r->launches[r->n_launches++];
}

static enum mg_err counts_at(struct mg_one_db *o, sqlite3_stmt *st, int col, uint32_t n, const uint64_t **out)
{
    *out = NULL;
    if (is_null(st, col)) return MG_ERR_OK;
    uint64_t *v = mg_arena_array(&o->r->p->arena, uint64_t, n + 1);
    if (!mg_counts_decode(sqlite3_column_blob(st, col), (size_t)sqlite3_column_bytes(st, col), v, n))
        return mg_damaged(o, "a launch's block counts");
    *out = v;
    return MG_ERR_OK;
}

static enum mg_err read_launch(struct mg_one_db *o, sqlite3_stmt *st)
{
    int64_t local = sqlite3_column_int64(st, 0), ran = sqlite3_column_int64(st, 16);
    if (local < 0 || local >= o->kernels.n) return mg_damaged(o, "a launch of no kernel");
    if (ran < 0 || ran >= MG_RAN_COUNT) return mg_damaged(o, "how a launch ran");
    struct mg_plaunch *l = new_launch(o->r);
    *l = (struct mg_plaunch){.id = o->r->n_launches - 1,
                             .process = o->process,
                             .kernel = o->kernels.at[local],
                             .static_shared_bytes = u32_at(st, 10),
                             .dyn_shared_bytes = u32_at(st, 11),
                             .device = u32_at(st, 12),
                             .stream = (uint64_t)sqlite3_column_int64(st, 13),
                             .ctx = (uint64_t)sqlite3_column_int64(st, 14),
                             .graph = (uint64_t)sqlite3_column_int64(st, 15),
                             .ran = (enum mg_ran)ran,
                             .reason = mg_text_at(o, st, 17),
                             .cooperative = sqlite3_column_int(st, 18) != 0,
                             .complete = sqlite3_column_int(st, 20) != 0,
                             .why = mg_text_at(o, st, 21),
                             .start_ns = (uint64_t)sqlite3_column_int64(st, 22),
                             .time_ns = (uint64_t)sqlite3_column_int64(st, 23),
                             .timed = !is_null(st, 23),
                             .replays = (uint64_t)sqlite3_column_int64(st, 24),
                             .schedule_dependent = is_null(st, 27) ? -1 : sqlite3_column_int(st, 27) != 0,
                             .tools = (uint64_t)sqlite3_column_int64(st, 28)};
    if (l->timed && (sqlite3_column_type(st, 23) != SQLITE_INTEGER || sqlite3_column_int64(st, 23) < 0))
        return mg_damaged(o, mg_arena_printf(&o->r->p->arena, "the time of launch %lld is %s, no count of nanoseconds",
                                             (long long)sqlite3_column_int64(st, 29),
                                             (const char *)sqlite3_column_text(st, 23)));
    l->repeat = mg_reason_find(l->reason) == MG_REASON_repeat;
    mg_map_set(&o->launches, (uint64_t)sqlite3_column_int64(st, 29), l->id);
    for (int i = 0; i < 3; i++) {
        l->grid[i] = u32_at(st, 1 + i);
        l->block[i] = u32_at(st, 4 + i);
        l->cluster[i] = u32_at(st, 7 + i);
    }
    if (!mg_args_decode(sqlite3_column_blob(st, 19), (size_t)sqlite3_column_bytes(st, 19), &o->r->p->arena, &l->args,
                        &l->n_args))
        return mg_damaged(o, "a launch's arguments");
    enum mg_err err = counts_at(o, st, 25, o->n_blocks.at[local], &l->threads);
    if (!err) err = counts_at(o, st, 26, o->n_blocks.at[local], &l->warps);
    l->n_counts = l->threads || l->warps ? o->n_blocks.at[local] : 0;
    return err;
}

/* Launches that stand in the profile, but whose end does not, because recording had stopped by then. */
static void tell_missing_ends(struct mg_one_db *o, const char *reason)
{
    const char *why = NULL;
    for (uint64_t i = o->r->n_launches; i && o->r->launches[i - 1].process == o->process; i--) {
        struct mg_plaunch *l = &o->r->launches[i - 1];
        if (l->complete || l->why) continue;
        if (!why) why = mg_arena_printf(&o->r->p->arena, "its end was not written: %s", reason);
        l->why = why;
        l->unended = true;
    }
}

static enum mg_err read_unknown(struct mg_one_db *o, sqlite3_stmt *st)
{
    struct mg_punknown u = {text_or_empty(o, st, 0), text_or_empty(o, st, 2), (uint64_t)sqlite3_column_int64(st, 1),
                            false};
    u.not_written =
        !strcmp(u.what, MG_STORE_NOT_WRITTEN) ||
        (!strcmp(u.what, "launch") && !strncmp(u.reason, "recording stopped: ", 19)); /* as older writers said it */
    *mg_vec_push(&o->r->unknowns) = u;
    if (u.not_written) tell_missing_ends(o, u.reason);
    return MG_ERR_OK;
}

/* NULL: damaged. */
static const char *unpack(struct mg_one_db *o, const void *packed, size_t bytes)
{
    enum { MOST_RATIO = 1 << 16 /* more than a compressor reaches */ };
    unsigned long long n = bytes ? ZSTD_getFrameContentSize(packed, bytes) : ZSTD_CONTENTSIZE_ERROR;
    if (n >= INT32_MAX || n / MOST_RATIO > bytes) return NULL; /* unknown and wrong sizes are larger */
    char *text = mg_arena_alloc(&o->r->p->arena, (size_t)n + 1);
    if (ZSTD_decompress(text, (size_t)n, packed, bytes) != n) return NULL;
    text[n] = 0;
    return text;
}

static enum mg_err read_tool(struct mg_one_db *o, sqlite3_stmt *st)
{
    const char *json = is_null(st, 3) ? text_or_empty(o, st, 2)
                                      : unpack(o, sqlite3_column_blob(st, 3), (size_t)sqlite3_column_bytes(st, 3));
    if (!json) return mg_damaged(o, "a tool's result");
    struct mg_ptool *t = mg_vec_push(&o->r->tools);
    *t = (struct mg_ptool){text_or_empty(o, st, 0), text_or_empty(o, st, 1), json, o->process};
    if (o->version >= 6 && !strcmp(t->tool, "margay") && !strcmp(t->key, "scope"))
        mg_scope_read(&o->r->processes.at[o->process], t->json);
    return MG_ERR_OK;
}

static enum mg_err no_view(struct mg_one_db *o, sqlite3_stmt *st)
{
    (void)st;
    return mg_damaged(o, "its schema holds more than tables");
}

static int64_t pragma_at(struct mg_one_db *o, const char *pragma)
{
    sqlite3_stmt *st = NULL;
    int64_t v = -1;
    if (sqlite3_prepare_v2(o->sql, pragma, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return v;
}

static enum mg_err check_complete(struct mg_one_db *o)
{
    for (uint32_t i = 0; i < o->kernels.n; i++) {
        struct mg_pkernel *k = &o->r->kernels.at[o->kernels.at[i]];
        for (uint32_t b = 0; b < k->n_blocks; b++)
            if (k->blocks[b].id == UINT32_MAX) return mg_damaged(o, "a kernel's blocks are missing");
    }
    return MG_ERR_OK;
}

/* Of this run, when one was asked for? Nothing in it says so: only its time does. */
static void count_empty(struct mg_one_db *o)
{
    struct stat st;
    bool later = !stat(o->path, &st) &&
                 mg_io_written_ns(&st) + 20000000u >= o->r->run; /* files have the time of the last tick */
    const char *base = strrchr(o->path, '/');
    bool launcher = base && !strncmp(base, "/run-", 5);
    if (launcher || (o->r->run && !later)) return;
    o->r->p->n_empty++;
    if (!o->r->run)
        *mg_vec_push(&o->r->empty) =
            mg_arena_printf(&o->r->p->arena, "%s is empty: nothing of its process was recorded", o->path);
}

static enum mg_err read_tables(struct mg_one_db *o)
{
    sqlite3_exec(o->sql, "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", NULL, NULL, NULL);
    if (sqlite3_exec(o->sql, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) return sql_failed(o);
    int64_t version = pragma_at(o, "PRAGMA user_version"), app = pragma_at(o, "PRAGMA application_id");
    if (version < 0 || app < 0) return sql_failed(o);
    if (!version && !app &&
        (!pragma_at(o, "PRAGMA page_count") ||
         !pragma_at(o, "SELECT count(*) FROM sqlite_schema"))) { /* claimed, nothing written yet */
        count_empty(o);
        return MG_ERR_OK;
    }
    if (app != MG_STORE_APP_ID) return mg_diag_err(o->r->diag, MG_ERR_INPUT, "%s is no margay profile", o->path);
    if (version > MG_STORE_VERSION)
        return mg_diag_err(o->r->diag, MG_ERR_INPUT,
                           "%s was written by a newer margay (profile version %lld, this one reads up to %d)", o->path,
                           (long long)version, MG_STORE_VERSION);
    o->version = version;
    enum mg_err err = mg_each_row(
        o, "1",
        "FROM sqlite_schema WHERE type NOT IN ('table','index') OR (type='index' AND name NOT LIKE 'sqlite_autoindex%') LIMIT 1",
        no_view);
    if (!err) err = mg_each_row(o, "pid, argv, exit, 2:id", "FROM run ORDER BY pid", read_run);
    if (!err)
        err = mg_each_row(
            o,
            "pid, ppid, rank, exe, argv, device_kind, device_name, sms, sm, properties, tools, start_unix_ns, exit, closed, 2:run, 5:host, 5:version",
            "FROM process", read_process);
    if (!err && o->process == UINT32_MAX) count_empty(o);
    if (err || o->process == UINT32_MAX) return err;
    if (o->r->run && o->r->processes.at[o->process].run != o->r->run) { /* of another run: as if it were not there */
        o->r->processes.n--;
        return MG_ERR_OK;
    }
    if (!err)
        err = mg_each_row(o,
                          "id, name, demangled, module, regs_native, regs_instrumented, regs_estimated, has_sites,"
                          " (SELECT count(*) FROM block b WHERE b.kernel=k.id), 8:built_unix_ns",
                          "FROM kernel k ORDER BY id", read_kernel);
    if (!err)
        err =
            mg_each_row(o, "kernel, id, function, label, ptx_line, file, line, n_insts, succs, ops, 4:timing, 9:apart",
                        "FROM block ORDER BY kernel, id", read_block);
    if (!err) err = check_complete(o);
    if (!err)
        err = mg_each_row(
            o,
            "kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y, cluster_z, static_shared, dyn_shared,"
            " device, stream, ctx, graph, ran, reason, cooperative, args, complete, why, start_ns, time_ns, replays, threads, warps,"
            " 2:schedule_dependent, 3:tools, id",
            "FROM launch ORDER BY id", read_launch);
    if (!err) err = mg_each_row(o, "what, n, reason", "FROM unknown", read_unknown);
    if (!err) err = mg_each_row(o, "tool, key, json, 7:json_zstd", "FROM tool ORDER BY tool, key", read_tool);
    if (!err && version >= 3) err = mg_read_regions(o);
    return err;
}

static enum mg_err read_database(struct mg_reading *r, const char *path)
{
    char tmp[MG_FILE_TMP];
    struct mg_one_db o = {.r = r, .path = path, .process = UINT32_MAX};
    enum mg_err err = mg_dbfile_open(&o.sql, path, tmp, r->diag);
    if (err) return err;
    err = read_tables(&o);
    sqlite3_close(o.sql);
    mg_dbfile_done(tmp);
    mg_vec_release(&o.kernels);
    mg_vec_release(&o.n_blocks);
    mg_vec_release(&o.uses);
    mg_map_release(&o.regions);
    mg_map_release(&o.launches);
    return err;
}

/* ---- the directory ---------------------------------------------------------------------------------- */

/* Everything but the files marked in bad[]; *failed: the file that brought an error. */
static enum mg_err read_files(const char *dir, uint64_t run, const struct mg_dbfile *files, uint32_t n, const bool *bad,
                              struct mg_recording **out, uint32_t *failed, struct mg_diag *d)
{
    struct mg_recording *p = mg_xcalloc(1, sizeof *p);
    struct mg_reading r = {.p = p, .run = run, .diag = d};
    enum mg_err err = MG_ERR_OK;
    mg_intern_init(&r.names);
    p->dir = mg_arena_strndup(&p->arena, dir, strlen(dir));
    for (uint32_t i = 0; i < n && !err; i++) {
        if (bad[i]) continue;
        err = read_database(&r, mg_arena_strndup(&p->arena, files[i].path, strlen(files[i].path)));
        *failed = i;
    }
    p->names = r.names;
    p->runs = r.runs.at, p->n_runs = r.runs.n;
    p->processes = r.processes.at, p->n_processes = r.processes.n;
    p->kernels = r.kernels.at, p->n_kernels = r.kernels.n;
    p->launches = r.launches, p->n_launches = r.n_launches;
    p->unknowns = r.unknowns.at, p->n_unknowns = r.unknowns.n;
    p->tools = r.tools.at, p->n_tools = r.tools.n;
    mg_regions_done(&r);
    p->uses = r.uses.at, p->n_uses = r.uses.n;
    p->regions = r.regions.at, p->n_regions = r.regions.n;
    p->launch_cells = r.launch_cells.at, p->n_launch_cells = r.launch_cells.n;
    p->damaged = r.empty.n ? mg_arena_copy(&p->arena, r.empty.at, r.empty.n * sizeof *r.empty.at) : NULL,
    p->n_damaged = r.empty.n;
    mg_vec_release(&r.empty);
    mg_map_release(&r.kernel_of);
    if (err)
        mg_recording_free(p);
    else
        *out = p;
    return err;
}

/* A database that cannot be read is left out and everything read again without it: half of one must
 * leave nothing behind. It is an error when none that holds a process remains. */
enum mg_err mg_recording_open_run(const char *dir, uint64_t run, struct mg_recording **out, struct mg_diag *d)
{
    struct mg_arena arena = MG_ARENA_INIT;
    struct mg_dbfile *files = NULL;
    struct mg_recording *p = NULL;
    uint32_t n = 0, n_bad = 0, at = 0;
    MG_VEC(const char *) lines = {0};
    *out = NULL;
    enum mg_err err = mg_dbfiles_list(dir, &arena, &files, &n, d), first = MG_ERR_OK;
    bool *bad = err ? NULL : mg_xcalloc(n, sizeof *bad);
    while (!err && !p) {
        struct mg_diag why = MG_DIAG_INIT;
        enum mg_err e = read_files(dir, run, files, n, bad, &p, &at, &why);
        if (e) {
            const char *text = mg_diag_first(&why, e);
            if (!n_bad++) first = e;
            *mg_vec_push(&lines) = mg_arena_strndup(&arena, text, strlen(text));
            bad[at] = true;
        }
        mg_diag_release(&why);
    }
    if (p && n_bad && !p->n_processes) {
        err = mg_diag_err(d, first, "%s", lines.at[0]);
        mg_recording_free(p);
    } else if (p) {
        for (uint32_t i = 0; i < p->n_damaged; i++) *mg_vec_push(&lines) = p->damaged[i];
        p->damaged = mg_arena_array(&p->arena, const char *, lines.n + 1);
        for (p->n_damaged = 0; p->n_damaged < lines.n; p->n_damaged++)
            p->damaged[p->n_damaged] =
                mg_arena_strndup(&p->arena, lines.at[p->n_damaged], strlen(lines.at[p->n_damaged]));
        mg_recording_sum(p);
        mg_timing_resolve(p);
        *out = p;
    }
    mg_vec_release(&lines);
    free(bad);
    free(files);
    mg_arena_release(&arena);
    return err;
}

enum mg_err mg_recording_open(const char *dir, struct mg_recording **out, struct mg_diag *d)
{
    return mg_recording_open_run(dir, 0, out, d);
}

void mg_recording_free(struct mg_recording *p)
{
    if (!p) return;
    free(p->runs);
    free(p->processes);
    free(p->kernels);
    free(p->launches);
    free(p->unknowns);
    free(p->tools);
    for (uint32_t i = 0; i < p->n_regions; i++) {
        for (uint32_t t = 0; t < p->regions[i].n_tables; t++) free((void *)(uintptr_t)p->regions[i].tables[t].words);
    }
    free(p->uses);
    free(p->regions);
    free(p->launch_cells);
    mg_intern_release(&p->names);
    mg_arena_release(&p->arena);
    free(p);
}

char *mg_recording_module(const char *dir, const char *id, size_t *bytes)
{
    struct mg_arena arena = MG_ARENA_INIT;
    struct mg_dbfile *files = NULL;
    uint32_t n = 0;
    char *text = NULL;
    enum mg_err err = mg_dbfiles_list(dir, &arena, &files, &n, NULL);
    for (uint32_t i = 0; !err && i < n && !text; i++) {
        sqlite3 *sql;
        sqlite3_stmt *st = NULL;
        char tmp[MG_FILE_TMP];
        if (mg_dbfile_open(&sql, files[i].path, tmp, NULL)) continue;
        if (sqlite3_prepare_v2(sql, "SELECT bytes, ptx_zstd FROM module WHERE id=?", -1, &st, NULL) == SQLITE_OK &&
            sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
            int64_t want = sqlite3_column_int64(st, 0);
            if (want >= 0 && want < INT32_MAX) {
                text = mg_xmalloc((size_t)want + 1);
                size_t got = ZSTD_decompress(text, (size_t)want, sqlite3_column_blob(st, 1),
                                             (size_t)sqlite3_column_bytes(st, 1));
                if (ZSTD_isError(got) || got != (size_t)want) {
                    free(text);
                    text = NULL;
                } else {
                    text[want] = 0;
                    *bytes = got;
                }
            }
        }
        sqlite3_finalize(st);
        sqlite3_close(sql);
        mg_dbfile_done(tmp);
    }
    free(files);
    mg_arena_release(&arena);
    return text;
}
