/* The formats of trace/memtrace.h: a folder with a file for each stream. */
#include <inttypes.h>
#include <string.h>

#include "base/vec.h"
#include "export/accesses.h"
#include "trace/memtrace.h"

enum { MOST_NAME = UINT16_MAX };

struct stream {
    uint32_t device;
    uint64_t context, stream;
    FILE *f;
    struct mg_io_part part;
    char name[80];
};
struct writer {
    struct mg_accesses *a;
    const struct mg_convert_opts *o;
    struct mg_converted *sums;
    bool is_thesis;
    MG_VEC(struct stream) streams;
    struct mg_memtrace_record run;
    uint32_t n_run; /* of accesses that follow each other, not written yet */
};

static struct stream *find_stream(struct writer *w, const struct mg_trace_step *s, struct mg_diag *d)
{
    for (uint32_t i = 0; i < w->streams.n; i++) {
        struct stream *t = &w->streams.at[i];
        if (t->device == s->device && t->context == s->context && t->stream == s->stream) return t;
    }
    struct stream t = {.device = s->device, .context = s->context, .stream = s->stream};
    snprintf(t.name, sizeof t.name, "device-%u-context-%" PRIu64 "-stream-%" PRIu64 ".trace", s->device, s->context,
             s->stream);
    if (mg_convert_create(&t.part, w->o->out, t.name, d)) return NULL;
    t.f = t.part.file;
    if (w->is_thesis)
        fputs("\x18\n", t.f);
    else
        fwrite(mg_memtrace_head, 1, MG_MEMTRACE_HEAD, t.f);
    w->sums->bytes += w->is_thesis ? 2 : MG_MEMTRACE_HEAD;
    *mg_vec_push(&w->streams) = t;
    return &w->streams.at[w->streams.n - 1];
}

/* Is a modifier of this name in an instruction's dotted text? */
static bool has_word(const char *op, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = op; (at = strchr(at, '.'));) {
        at++;
        if (!strncmp(at, word, n) && (at[n] == '.' || !at[n])) return true;
    }
    return false;
}

static uint32_t type_of(const struct mg_access_site *s, bool is_thesis)
{
    if (s->kind != MG_ACCESS_ATOMIC) return (s->kind == MG_ACCESS_STORE ? 1u : 0u) + is_thesis;
    for (uint32_t i = 0; is_thesis && i < MG_MEMTRACE_ATOMICS; i++)
        if (has_word(s->op, mg_memtrace_atomics[i])) return 3 + i;
    return is_thesis ? 3 : 2;
}

static void put_bytes(struct writer *w, FILE *f, const void *p, size_t n)
{
    fwrite(p, 1, n, f);
    w->sums->bytes += n;
}

static void put_run(struct writer *w, FILE *f)
{
    uint8_t bytes[1 + MG_MEMTRACE_RECORD + 2] = {w->n_run == 1 ? MG_MEMTRACE_ONE : MG_MEMTRACE_RUN};
    if (!w->n_run) return;
    mg_memtrace_pack(&w->run, bytes + 1);
    bytes[1 + MG_MEMTRACE_RECORD] = (uint8_t)w->n_run;
    bytes[2 + MG_MEMTRACE_RECORD] = (uint8_t)(w->n_run >> 8);
    put_bytes(w, f, bytes, w->n_run == 1 ? 1 + MG_MEMTRACE_RECORD : sizeof bytes);
    w->n_run = 0;
}

static bool follows(const struct writer *w, const struct mg_memtrace_record *r)
{
    const struct mg_memtrace_record *q = &w->run;
    return w->n_run && w->n_run < UINT16_MAX && q->sm == r->sm && q->type == r->type && q->size == r->size &&
           !memcmp(q->cta, r->cta, sizeof r->cta) && r->address == q->address + (uint64_t)q->size * w->n_run;
}

static void put_record(struct writer *w, FILE *f, const struct mg_memtrace_record *r)
{
    uint8_t bytes[MG_MEMTRACE_RECORD];
    if (w->is_thesis) {
        mg_memtrace_pack(r, bytes);
        put_bytes(w, f, bytes, MG_MEMTRACE_RECORD);
        return;
    }
    if (!follows(w, r)) {
        put_run(w, f);
        w->run = *r;
    }
    w->n_run++;
}

static void put_head(struct writer *w, FILE *f, const char *kernel)
{
    size_t n = strlen(kernel);
    n = n > MOST_NAME ? MOST_NAME : n;
    if (w->is_thesis) {
        put_bytes(w, f, kernel, n);
        put_bytes(w, f, "\n", 1);
        return;
    }
    const uint8_t head[3] = {MG_MEMTRACE_KERNEL, (uint8_t)n, (uint8_t)(n >> 8)};
    put_bytes(w, f, head, sizeof head);
    put_bytes(w, f, kernel, n);
}

static enum mg_err put_launch(void *user, const struct mg_trace_step *s, struct mg_diag *d)
{
    static const uint8_t zeros[MG_MEMTRACE_RECORD];
    struct writer *w = user;
    const struct mg_trace_access *a;
    struct stream *t = find_stream(w, s, d);
    if (!t) return MG_ERR_IO;
    put_head(w, t->f, s->name);
    mg_accesses_begin(w->a, s);
    while ((a = mg_accesses_next(w->a))) {
        struct mg_memtrace_record r = {.sm = a->sm, .type = type_of(a->site, w->is_thesis), .size = a->site->bytes};
        if (!r.size) continue;
        mg_convert_cta(s, a->cta, r.cta);
        w->sums->accesses++;
        for (uint32_t m = a->mask; m; m &= m - 1) {
            r.address = a->address[__builtin_ctz(m)];
            put_record(w, t->f, &r);
            w->sums->lanes++;
        }
    }
    put_run(w, t->f);
    if (w->is_thesis) put_bytes(w, t->f, zeros, MG_MEMTRACE_RECORD);
    return MG_ERR_OK;
}

static enum mg_err write_all(struct mg_accesses *a, const struct mg_convert_opts *o, struct mg_converted *out,
                             bool is_thesis, struct mg_diag *d)
{
    struct writer w = {.a = a, .o = o, .sums = out, .is_thesis = is_thesis};
    enum mg_err err = mg_convert_make_folder(o->out, d);
    if (!err) err = mg_convert_each(a, o, out, false, put_launch, &w, d);
    for (uint32_t i = 0; i < w.streams.n; i++) err = mg_convert_finish(&w.streams.at[i].part, err, d);
    mg_vec_release(&w.streams);
    return err;
}

static enum mg_err write_thesis(struct mg_accesses *a, const struct mg_convert_opts *o, struct mg_converted *out,
                                struct mg_diag *d)
{
    return write_all(a, o, out, true, d);
}

static enum mg_err write_successor(struct mg_accesses *a, const struct mg_convert_opts *o, struct mg_converted *out,
                                   struct mg_diag *d)
{
    return write_all(a, o, out, false, d);
}

const struct mg_convert_format mg_convert_thesis = {
    "thesis", "24 bytes a lane, a file a stream: the tracer of Rieber's thesis", true, write_thesis};
const struct mg_convert_format mg_convert_cudamemtrace = {
    "cudamemtrace", "version 3 of cuda-memtrace: runs of a CTA's accesses, a file a stream", true, write_successor};
