/* export sqlite: a database with the table `spans`, one row a span in the order of its begin, and the view `launches`,
 * one row a kernel beside the call that launched it (docs/man/export.md has the columns). What does not apply is NULL.
 */
#include <sqlite3.h>
#include <stdlib.h>

#include "export/format.h"

#define COLUMNS                                                                                                        \
    "begin_ns INTEGER, end_ns INTEGER, kind TEXT, layer TEXT, name TEXT, process INTEGER, rank INTEGER, "              \
    "thread INTEGER, device INTEGER, context INTEGER, stream INTEGER, correlation INTEGER, outer INTEGER, "            \
    "range INTEGER, launch INTEGER, replay INTEGER, bytes INTEGER, direction TEXT, class TEXT, result INTEGER, "       \
    "source TEXT, uncertainty_ns INTEGER, stack INTEGER"

static const char begin_sql[] =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
    "BEGIN; CREATE TABLE spans (id INTEGER PRIMARY KEY, " COLUMNS ");"
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, kind TEXT, process INTEGER, rank INTEGER,"
    " peer INTEGER, tag INTEGER, bytes INTEGER, communicator INTEGER, correlation INTEGER,"
    " done INTEGER, message INTEGER);"
    "CREATE TABLE memory (id INTEGER PRIMARY KEY, time_ns INTEGER, process INTEGER, rank INTEGER,"
    " device INTEGER, address INTEGER, bytes INTEGER, correlation INTEGER, in_use INTEGER);"
    "CREATE TABLE inside (id INTEGER PRIMARY KEY, begin_ns INTEGER, end_ns INTEGER, name TEXT, kernel TEXT,"
    " process INTEGER, rank INTEGER, device INTEGER, context INTEGER, stream INTEGER, launch INTEGER, replay INTEGER,"
    " sm INTEGER, cta INTEGER, warp INTEGER, lanes INTEGER, depth INTEGER, source TEXT, uncertainty_ns INTEGER,"
    " outside_ns INTEGER);"
    "CREATE TABLE frames (stack INTEGER, depth INTEGER, function TEXT, file TEXT,"
    " line INTEGER, module TEXT, address INTEGER, PRIMARY KEY (stack, depth));";
static const char insert_sql[] = "INSERT INTO spans VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
                                 " ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)";
static const char insert_message_sql[] = "INSERT INTO messages VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
static const char insert_memory_sql[] = "INSERT INTO memory VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
static const char insert_inside_sql[] = "INSERT INTO inside VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
                                        " ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
/* The view finds calls by the index; only rows of calls are in it. */
static const char end_sql[] =
    "CREATE INDEX calls ON spans (process, correlation) WHERE kind = 'api';"
    "CREATE INDEX mpi_calls ON spans (process, correlation) WHERE kind = 'mpi';"
    "CREATE INDEX both_ends ON messages (message, kind);"
    "CREATE VIEW transfers AS SELECT s.message, s.rank AS from_rank, r.rank AS to_rank, s.tag, s.communicator, s.bytes,"
    " c.begin_ns AS posted_ns, d.end_ns AS received_ns, c.name AS send, d.name AS receive"
    " FROM messages s JOIN messages r ON r.message = s.message AND r.kind = 'received'"
    " LEFT JOIN spans c ON c.process = s.process AND c.correlation = s.correlation AND c.kind = 'mpi'"
    " LEFT JOIN spans d ON d.process = r.process AND d.correlation = r.done AND d.kind = 'mpi' WHERE s.kind = 'sent';"
    "CREATE VIEW launches AS SELECT k.id, k.launch, k.replay, k.name, k.process, k.rank, c.thread, k.device, k.context,"
    " k.stream, k.correlation, k.range, c.name AS call, c.begin_ns AS call_begin_ns, c.end_ns AS call_end_ns,"
    " CASE WHEN k.source = 'none' THEN NULL ELSE k.begin_ns END AS begin_ns,"
    " CASE WHEN k.source = 'none' THEN NULL ELSE k.end_ns END AS end_ns,"
    " CASE WHEN k.source = 'none' THEN NULL ELSE k.end_ns - k.begin_ns END AS time_ns, k.source, k.uncertainty_ns"
    " FROM spans k LEFT JOIN spans c ON c.process = k.process AND c.correlation = k.correlation"
    " AND c.kind = 'api' WHERE k.kind = 'kernel';"
    "CREATE INDEX kernels ON spans (process, launch, replay) WHERE kind = 'kernel' AND source <> 'none';"
    "CREATE VIEW inside_kernels AS SELECT i.*, k.begin_ns AS kernel_begin_ns, k.end_ns AS kernel_end_ns"
    " FROM inside i LEFT JOIN spans k ON k.process = i.process AND k.launch = i.launch AND k.replay IS i.replay"
    " AND k.kind = 'kernel' AND k.source <> 'none'; COMMIT;";

struct database {
    sqlite3 *db;
    sqlite3_stmt *insert, *message, *memory, *inside;
    bool failed;
};

static enum mg_err fail(struct mg_export *x, struct mg_diag *d)
{
    struct database *s = x->state;
    return mg_diag_err(d, MG_ERR_IO, "%s: SQLite: %s", x->path, sqlite3_errmsg(s->db));
}

static enum mg_err open_sqlite(struct mg_export *x, struct mg_diag *d)
{
    if (!x->path) return mg_diag_err(d, MG_ERR_INPUT, "sqlite needs a file to write into (-o FILE)");
    struct database *s = x->state = mg_xcalloc(1, sizeof *s);
    bool ok = !sqlite3_open(mg_io_part_path(&x->part), &s->db) && !sqlite3_exec(s->db, begin_sql, NULL, NULL, NULL) &&
              !sqlite3_prepare_v2(s->db, insert_sql, -1, &s->insert, NULL) &&
              !sqlite3_prepare_v2(s->db, insert_message_sql, -1, &s->message, NULL) &&
              !sqlite3_prepare_v2(s->db, insert_memory_sql, -1, &s->memory, NULL) &&
              !sqlite3_prepare_v2(s->db, insert_inside_sql, -1, &s->inside, NULL);
    return ok ? MG_ERR_OK : fail(x, d);
}

static void bind_number(sqlite3_stmt *q, int at, bool has, uint64_t v)
{
    if (has && v != MG_SPAN_NONE)
        sqlite3_bind_int64(q, at, (sqlite3_int64)v);
    else
        sqlite3_bind_null(q, at);
}

static void bind_text(sqlite3_stmt *q, int at, bool has, const char *text)
{
    if (has)
        sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(q, at);
}

static void write_inside(struct database *s, const struct mg_span *p)
{
    const uint64_t places[] = {p->device, p->context, p->stream, p->launch, p->replay,
                               p->sm,     p->cta,     p->warp,   p->lanes,  p->depth};
    sqlite3_stmt *q = s->inside;
    int at = 7;
    bind_number(q, 1, true, p->begin_ns);
    bind_number(q, 2, true, p->end_ns);
    bind_text(q, 3, true, p->name);
    bind_text(q, 4, true, p->kernel);
    bind_number(q, 5, true, p->process);
    bind_number(q, 6, p->rank >= 0, (uint64_t)p->rank);
    for (size_t i = 0; i < MG_COUNT_OF(places); i++) bind_number(q, at++, true, places[i]);
    bind_text(q, at++, true, mg_span_source_name(p->source));
    bind_number(q, at++, mg_export_has_uncertainty(p), p->uncertainty_ns);
    bind_number(q, at, true, p->payload);
    s->failed = sqlite3_step(q) != SQLITE_DONE;
    if (!s->failed) sqlite3_reset(q);
}

static void write_span(struct mg_export *x, const struct mg_span *p)
{
    struct database *s = x->state;
    sqlite3_stmt *q = s->insert;
    bool work = mg_export_is_work(p), call = p->kind == MG_SPAN_CALL || p->kind == MG_SPAN_MPI;
    if (s->failed) return;
    if (p->kind == MG_SPAN_INSIDE) {
        write_inside(s, p);
        return;
    }
    bind_number(q, 1, true, p->begin_ns);
    bind_number(q, 2, true, p->end_ns);
    bind_text(q, 3, true, p->kind == MG_SPAN_CALL ? "api" : mg_span_kind_name(p->kind));
    bind_text(q, 4, !work, mg_span_layer_name(p->layer));
    bind_text(q, 5, true, mg_export_name(x, p));
    bind_number(q, 6, true, p->process);
    bind_number(q, 7, p->rank >= 0, (uint64_t)p->rank);
    bind_number(q, 8, !work, p->thread);
    bind_number(q, 9, work, p->device);
    bind_number(q, 10, work || call, p->context);
    bind_number(q, 11, work || call, p->stream);
    bind_number(q, 12, p->correlation != 0, p->correlation);
    bind_number(q, 13, p->outer != 0, p->outer);
    bind_number(q, 14, p->range != 0, p->range);
    bind_number(q, 15, true, p->launch);
    bind_number(q, 16, true, p->replay);
    bind_number(q, 17, true, p->bytes);
    bind_text(q, 18, p->kind == MG_SPAN_COPY, mg_span_direction_name(p->direction));
    bind_text(q, 19, call, mg_call_class_name(p->class_));
    if (call)
        sqlite3_bind_int(q, 20, p->result);
    else
        sqlite3_bind_null(q, 20);
    bind_text(q, 21, true, mg_span_source_name(p->source));
    bind_number(q, 22, mg_export_has_uncertainty(p), p->uncertainty_ns);
    bind_number(q, 23, p->stack != UINT32_MAX, p->stack);
    s->failed = sqlite3_step(q) != SQLITE_DONE;
    if (!s->failed) sqlite3_reset(q); /* after a failure the message stays */
}

static void write_message(struct mg_export *x, const struct mg_span *p, uint64_t arrow)
{
    struct database *s = x->state;
    sqlite3_stmt *q = s->message;
    if (s->failed) return;
    bind_text(q, 1, true, p->name);
    bind_number(q, 2, true, p->process);
    bind_number(q, 3, p->rank >= 0, (uint64_t)p->rank);
    bind_number(q, 4, p->peer >= 0, (uint64_t)p->peer);
    sqlite3_bind_int64(q, 5, p->tag);
    bind_number(q, 6, true, p->bytes);
    bind_number(q, 7, true, p->communicator);
    bind_number(q, 8, p->correlation != 0, p->correlation);
    bind_number(q, 9, p->outer != 0, p->outer);
    bind_number(q, 10, arrow != 0, arrow);
    s->failed = sqlite3_step(q) != SQLITE_DONE;
    if (!s->failed) sqlite3_reset(q);
}

static void write_memory(struct mg_export *x, const struct mg_span *p, uint32_t device)
{
    struct database *s = x->state;
    sqlite3_stmt *q = s->memory;
    bool known = device != UINT32_MAX;
    if (s->failed) return;
    bind_number(q, 1, true, p->begin_ns);
    bind_number(q, 2, true, p->process);
    bind_number(q, 3, p->rank >= 0, (uint64_t)p->rank);
    bind_number(q, 4, known, known ? x->memory.devices.at[device].device : 0);
    bind_number(q, 5, true, p->payload);
    bind_number(q, 6, true, p->bytes);
    bind_number(q, 7, p->correlation != 0, p->correlation);
    bind_number(q, 8, known, known ? x->memory.devices.at[device].in_use : 0);
    s->failed = sqlite3_step(q) != SQLITE_DONE;
    if (!s->failed) sqlite3_reset(q);
}

/* Depth 0 is the innermost frame. */
static bool write_stacks(struct mg_export *x)
{
    struct database *s = x->state;
    struct mg_stacks *stacks = mg_spans_stacks(x->spans);
    sqlite3_stmt *q = NULL;
    bool ok = !sqlite3_prepare_v2(s->db, "INSERT INTO frames VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", -1, &q, NULL);
    for (uint32_t i = 0, n; ok && i < stacks->at.n; i++) {
        const struct mg_frame *f = mg_stacks_frames(stacks, i, &n);
        for (uint32_t k = 0; ok && k < n; k++) {
            const struct mg_symbol *y = f[k].symbol;
            bind_number(q, 1, true, i);
            bind_number(q, 2, true, k);
            bind_text(q, 3, y->function, y->function);
            bind_text(q, 4, y->file, y->file);
            bind_number(q, 5, y->file, y->line);
            bind_text(q, 6, f[k].path, f[k].path);
            bind_number(q, 7, true, f[k].address);
            ok = sqlite3_step(q) == SQLITE_DONE && !sqlite3_reset(q);
        }
    }
    sqlite3_finalize(q);
    return ok;
}

static enum mg_err close_sqlite(struct mg_export *x, struct mg_diag *d)
{
    struct database *s = x->state;
    if (s->failed || !write_stacks(x) || sqlite3_exec(s->db, end_sql, NULL, NULL, NULL)) return fail(x, d);
    return MG_ERR_OK;
}

static void release(struct mg_export *x)
{
    struct database *s = x->state;
    if (!s) return;
    sqlite3_finalize(s->insert);
    sqlite3_finalize(s->message);
    sqlite3_finalize(s->memory);
    sqlite3_finalize(s->inside);
    sqlite3_close(s->db);
    free(s);
}

const struct mg_export_format mg_export_sqlite = {
    .name = "sqlite",
    .summary = "every span as a row of a SQLite database",
    .file = "spans.db",
    .messages = true,
    .inside = true,
    .memory = write_memory,
    .message = write_message,
    .suffix = ".db",
    .open = open_sqlite,
    .span = write_span,
    .close = close_sqlite,
    .release = release,
};
