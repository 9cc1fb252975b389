#include "export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/io.h"
#include "export/format.h"

#define DRAIN_BYTES (256u << 10)
#define TELL_EVERY  16384u /* spans between two words about progress */

static const struct mg_export_format *const formats[] = {&mg_export_perfetto, &mg_export_chrome, &mg_export_csv,
                                                         &mg_export_otf2,     &mg_export_tau,    &mg_export_sqlite};

static const struct mg_export_format *find_format(const char *name)
{
    for (size_t i = 0; i < MG_COUNT_OF(formats); i++)
        if (!strcmp(formats[i]->name, name)) return formats[i];
    return NULL;
}

const char *mg_export_summary(const char *format)
{
    const struct mg_export_format *f = find_format(format);
    return f ? f->summary : NULL;
}

bool mg_export_needs_folder(const char *format)
{
    const struct mg_export_format *f = find_format(format);
    return f && !f->file;
}

/* ---- output ---------------------------------------------------------------------------------------------- */

void mg_export_drain(struct mg_export *x)
{
    if (x->buf.n < DRAIN_BYTES) return;
    if (!x->failed && fwrite(x->buf.at, 1, x->buf.n, x->file) != x->buf.n) x->failed = errno ? errno : EIO;
    mg_buf_reset(&x->buf);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n > m && !strcmp(text + n - m, suffix);
}

/* OUT is a folder, or a file whose format says so. */
static enum mg_err choose_path(struct mg_export *x, struct mg_buf *path, struct mg_diag *d)
{
    const struct mg_export_format *f = x->format;
    const char *out = x->o->out;
    mg_buf_adds(path, out);
    bool wants_folder = !f->file || (f->suffix && !has_suffix(out, f->suffix)) || has_suffix(out, "/");
    bool is_other = f->suffix && !strncmp(out, "/dev/", 5); /* /dev/null, /dev/stdout */
    if (wants_folder && !is_other && !is_folder(out)) {
        if (mkdir(out, 0777)) return mg_diag_err(d, MG_ERR_IO, "%s: %s", out, strerror(errno));
        x->made = true;
    }
    if (f->file && is_folder(out)) mg_buf_printf(path, "/%s", f->file);
    return MG_ERR_OK;
}

static enum mg_err open_output(struct mg_export *x, struct mg_buf *path, struct mg_diag *d)
{
    if (!x->o->out) {
        if (!x->format->file) return mg_diag_err(d, MG_ERR_INPUT, "%s needs a folder to write into", x->format->name);
        x->file = stdout;
        return MG_ERR_OK;
    }
    enum mg_err err = choose_path(x, path, d);
    if (err) return err;
    x->path = path->at;
    if (!x->format->file) return MG_ERR_OK;
    err = mg_io_part_open(&x->part, x->path, d);
    x->file = x->part.file;
    return err;
}

/* A file that is not whole does not take the place of what was there. */
static enum mg_err close_output(struct mg_export *x, struct mg_diag *d, enum mg_err err)
{
    if (!x->file) return err;
    if (!err && x->buf.n && !x->failed && fwrite(x->buf.at, 1, x->buf.n, x->file) != x->buf.n)
        x->failed = errno ? errno : EIO;
    if (x->file == stdout && fflush(stdout) && !x->failed) x->failed = errno ? errno : EIO;
    if (!err && x->failed)
        err = mg_diag_err(d, MG_ERR_IO, "%s: %s", x->path ? x->path : "standard output", strerror(x->failed));
    return x->file == stdout ? err : mg_io_part_close(&x->part, err, d);
}

/* ---- names ------------------------------------------------------------------------------------------------- */

const char *mg_export_name(struct mg_export *x, const struct mg_span *p)
{
    if (p->kind != MG_SPAN_KERNEL || !x->o->demangle) return p->name;
    uint64_t v, key = (uint64_t)(uintptr_t)p->name;
    if (!mg_map_get(&x->demangled, key, &v)) {
        v = (uint64_t)(uintptr_t)mg_demangle(p->name);
        mg_map_set(&x->demangled, key, v);
    }
    return v ? (const char *)(uintptr_t)v : p->name;
}

void mg_export_stack(struct mg_export *x, const struct mg_span *p, struct mg_buf *out)
{
    if (p->stack != UINT32_MAX) mg_stack_print(mg_spans_stacks(x->spans), p->stack, out);
}

void mg_export_process_name(const struct mg_track_process *p, struct mg_buf *out)
{
    if (p->rank >= 0) mg_buf_printf(out, "rank %d, ", p->rank);
    mg_buf_printf(out, "process %u", p->pid);
}

void mg_export_track_name(struct mg_export *x, struct mg_track *t, struct mg_buf *out)
{
    const struct mg_track_key *k = &t->key;
    const char *name = NULL;
    if (k->kind == MG_TRACK_THREAD)
        name = mg_spans_thread_name(x->spans, x->tracks.processes.at[k->process].pid, k->thread);
    t->named = name != NULL;
    if (name)
        mg_buf_adds(out, name);
    else if (k->kind == MG_TRACK_THREAD)
        mg_buf_printf(out, "thread %u", k->thread);
    else if (k->kind == MG_TRACK_RANGES)
        mg_buf_adds(out, "ranges");
    else if (k->kind == MG_TRACK_WARPS)
        mg_buf_printf(out, "multiprocessor %u", k->thread);
    else if (k->context)
        mg_buf_printf(out, "context %llu, stream %llu", (unsigned long long)k->context, (unsigned long long)k->stream);
    else
        mg_buf_printf(out, "stream %llu", (unsigned long long)k->stream);
    if (k->kind == MG_TRACK_UNTIMED) mg_buf_adds(out, ", untimed");
    if (t->row) mg_buf_printf(out, " (%u)", t->row + 1);
}

void mg_export_name_threads(struct mg_export *x, void (*describe)(struct mg_export *x, struct mg_track *t))
{
    for (uint32_t i = 1; i < x->tracks.at.n; i++) {
        struct mg_track *t = x->tracks.at.at[i];
        uint32_t pid = x->tracks.processes.at[t->key.process].pid;
        if (t->key.kind == MG_TRACK_THREAD && !t->named && mg_spans_thread_name(x->spans, pid, t->key.thread))
            describe(x, t);
    }
}

/* ---- the run ------------------------------------------------------------------------------------------------- */

static uint64_t count_records(const struct mg_spans *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < mg_spans_n_processes(s); i++) n += mg_spans_process(s, i).records;
    return n;
}

uint32_t mg_export_messages(struct mg_export *x, const struct mg_span *call)
{
    if (call->kind != MG_SPAN_MPI || !x->messages.numbers) return 0;
    return mg_messages_take(&x->messages, mg_tracks_process(&x->tracks, call), call->correlation);
}

static void write_one(struct mg_export *x, const struct mg_span *p)
{
    if (p->kind == MG_SPAN_MEMORY && x->format->memory)
        x->format->memory(x, p, mg_memory_add(&x->memory, p));
    else if (p->kind == MG_SPAN_MESSAGE && x->format->message)
        x->format->message(x, p, mg_messages_arrow(&x->messages, p));
    else if (p->kind == MG_SPAN_MESSAGE)
        mg_messages_add(&x->messages, mg_tracks_process(&x->tracks, p), p);
    else
        x->format->span(x, p);
}

/* Work of unknown time begins when its call does, and stands behind it, whichever was recorded first. */
static void write_waiting(struct mg_export *x)
{
    for (uint32_t k = 0; k < x->waiting.n; k++) write_one(x, &x->waiting.at[k]);
    x->waiting.n = 0;
}
static void write_in_order(struct mg_export *x, const struct mg_span *p)
{
    if (x->waiting.n && x->waiting.at[0].begin_ns != p->begin_ns) write_waiting(x);
    if (mg_export_is_work(p) && p->source == MG_SOURCE_none)
        *mg_vec_push(&x->waiting) = *p;
    else
        write_one(x, p);
}

/* p: the first of them. */
static enum mg_err write_spans(struct mg_export *x, const struct mg_span *p, struct mg_diag *d)
{
    struct mg_span_process first = mg_spans_process(x->spans, 0);
    x->base_ns = p->begin_ns;
    x->base_unix_ns = first.start_unix_ns + (p->begin_ns - first.start_ns);
    enum mg_err err = x->format->open(x, d);
    uint64_t all = count_records(x->spans);
    for (; !err && p && !x->failed; p = mg_spans_next(x->spans)) {
        write_in_order(x, p);
        if (x->file) mg_export_drain(x);
        if (++x->result.spans % TELL_EVERY == 0 && x->o->progress)
            x->o->progress(x->o->ctx, x->result.spans, MG_MAX(all, x->result.spans));
    }
    if (!err) write_waiting(x);
    return err || x->failed ? err : x->format->close(x, d);
}

static void release(struct mg_export *x)
{
    if (x->format->release) x->format->release(x);
    uint64_t key, v;
    for (uint32_t i = 0; mg_map_next(&x->demangled, &i, &key, &v);) free((void *)(uintptr_t)v);
    mg_map_release(&x->demangled);
    mg_tracks_release(&x->tracks);
    mg_arrows_release(&x->arrows);
    mg_messages_release(&x->messages);
    mg_memory_release(&x->memory);
    mg_buf_release(&x->buf);
    mg_buf_release(&x->text);
    mg_vec_release(&x->waiting);
    mg_spans_close(x->spans);
}

enum mg_err mg_export(const char *format, const char *dir, const struct mg_export_opts *o, struct mg_export_result *r,
                      struct mg_diag *d)
{
    struct mg_export x = {.format = find_format(format), .o = o};
    if (!x.format) return mg_diag_err(d, MG_ERR_NOT_FOUND, "no form %.100s", format);
    const struct mg_export_format *f = x.format;
    struct mg_span_query q = {.size = sizeof q, .kinds = UINT32_MAX};
    if (!f->messages) q.kinds &= ~(1u << MG_SPAN_MESSAGE);
    if (!f->memory) q.kinds &= ~(1u << MG_SPAN_MEMORY);
    if (!f->inside) q.kinds &= ~(1u << MG_SPAN_INSIDE);
    struct mg_diag none = MG_DIAG_INIT;
    enum mg_err err = mg_spans_open(dir, &q, &x.spans, &none);
    if (!err && x.format->messages) err = mg_messages_init(&x.messages, dir, &none);
    if (err) mg_diag_err(d, err, "%s (a time line needs margay run -t timeline)", mg_diag_first(&none, err));
    mg_diag_release(&none);
    if (err) {
        mg_spans_close(x.spans);
        mg_messages_release(&x.messages);
        return err;
    }
    struct mg_buf path = MG_BUF_INIT;
    const struct mg_span *p = mg_spans_next(x.spans); /* before a file of the user's is written over */
    if (!p)
        err = mg_diag_err(d, MG_ERR_INPUT, "the profile has no time line that can be read (margay run -t timeline)");
    if (!err) err = open_output(&x, &path, d);
    if (!err) {
        err = write_spans(&x, p, d);
        err = close_output(&x, d, err);
    }
    const char *why;
    x.result.damaged = mg_spans_damaged(x.spans, &why);
    x.result.messages = x.messages.arrows;
    x.result.lone_messages = x.messages.alone;
    *r = x.result;
    release(&x);
    if (err && x.made) rmdir(o->out); /* where nothing was left in it */
    mg_buf_release(&path);
    return err;
}
