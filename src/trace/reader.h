/* Reading traces: the files of a profile directory, whole, growing, torn or damaged. Memory is that of the indexes and
 * of the chunks that a cursor has open: one, or in order of time as many as overlap in time.
 *
 *   struct mg_trace_reader *r;
 *   if (mg_trace_reader_open(dir, &r, &diag)) ...;
 *   struct mg_trace_query q = {.size = sizeof q, .order = MG_TRACE_BY_TIME};
 *   struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
 *   const struct mg_trace_record *rec;
 *   while ((rec = mg_trace_next(c))) ...;
 *   mg_trace_cursor_close(c);
 *   mg_trace_reader_free(r);
 */
#ifndef MG_TRACE_READER_H
#define MG_TRACE_READER_H

#include "base/buf.h"
#include "base/diag.h"
#include "trace/trace.h"

struct mg_trace_reader;
struct mg_trace_cursor;

/* Of one chunk or of several: first > last: no record has the key. */
struct mg_trace_range {
    uint64_t first, last;
};

/* How times of a file get onto the clock of the base: rank 0's file where clocks were measured, else the first. */
enum mg_trace_clock_source { MG_TRACE_SAME_CLOCK, MG_TRACE_TIME_OF_DAY, MG_TRACE_MESSAGES };
struct mg_trace_clock { /* offsets to the base at up to two times; between them a straight line */
    unsigned n;
    uint64_t at_ns[2], uncertainty_ns[2];
    int64_t offset_ns[2];
};

struct mg_trace_file { /* owner: the reader */
    const char *path;
    uint32_t version, pid;
    int32_t rank;                          /* -1 none */
    uint64_t start_mono_ns, start_real_ns; /* two clocks, read together */
    uint64_t end_mono_ns;                  /* 0 when not closed */
    const char *attributes;                /* "key=value\n" ... */
    bool closed;                           /* the end and the index are there; else the index was rebuilt */
    bool bad_header; /* its process is known from its name alone, its rank, clocks and attributes are not */
    uint64_t bytes, raw_bytes, chunks, records, dropped, skipped, lost; /* as struct mg_trace_counts has them */
    uint64_t damaged_bytes;                                             /* that belong to no chunk; a torn end, too */
    struct mg_trace_range keys[MG_TRACE_INDEXED];                       /* by enum mg_trace_key - 1, as in the file */
    enum mg_trace_clock_source clock_source;
    int64_t shift_ns;            /* added to times of another host or boot than the base's; without `clock` */
    struct mg_trace_clock clock; /* that was measured */
};
/* What a file's times get. */
int64_t mg_trace_shift(const struct mg_trace_file *f, uint64_t time_ns);
/* path: a profile directory, its folder trace, or one file. Damage is no error where something can be read: see
 * mg_trace_file and mg_trace_verify. */
enum mg_err mg_trace_reader_open(const char *path, struct mg_trace_reader **out, struct mg_diag *d) MG_MUST_CHECK;
/* One file whose process runs, for mg_accesses_follow. MG_ERR_NOT_FOUND: it has no head yet. */
enum mg_err mg_trace_reader_follow(const char *path, struct mg_trace_reader **out, struct mg_diag *d) MG_MUST_CHECK;
void mg_trace_reader_free(struct mg_trace_reader *r);
uint32_t mg_trace_n_files(const struct mg_trace_reader *r);
const struct mg_trace_file *mg_trace_file(const struct mg_trace_reader *r, uint32_t ix);
/* Value of an attribute of the file, up to the line's end; NULL: it has none. */
const char *mg_trace_attribute(const struct mg_trace_file *f, const char *key, size_t *bytes);

/* Reads all bytes of all files and adds a line to d for each damage: MG_ERR_OK, or MG_ERR_INPUT. */
enum mg_err mg_trace_verify(struct mg_trace_reader *r, struct mg_diag *d) MG_MUST_CHECK;

enum mg_trace_order { MG_TRACE_BY_FILE, MG_TRACE_BY_TIME };
struct mg_trace_query { /* a record is given if all of it holds */
    size_t size;        /* sizeof this struct */
    enum mg_trace_order order;
    const char *kinds;  /* names joined by ','; NULL: all */
    unsigned with_keys; /* bit enum mg_trace_key: only records that have the key, in keys[key - 1] */
    struct mg_trace_range keys[MG_TRACE_INDEXED]; /* of a record with begin and end: that meet the range */
    bool (*only)(void *user, const struct mg_trace_file *f);
    void *only_user;     /* files; NULL: all */
    uint64_t from_chunk; /* of each file: chunks from this number on */
};
struct mg_trace_cursor *mg_trace_cursor_open(struct mg_trace_reader *r, const struct mg_trace_query *q);
void mg_trace_cursor_close(struct mg_trace_cursor *c);

struct mg_trace_record {
    const struct mg_trace_kind *kind; /* equal descriptions are one pointer in a reader */
    const struct mg_trace_layout *layout;
    uint32_t kind_ix; /* dense number of the kind in the reader, from 0 */
    const uint8_t *fields;
    uint32_t bytes;
    uint64_t time; /* the first field with the key time, shifted; of a record without: the one's before */
    bool has_time;
    const struct mg_trace_file *file;
    uint32_t stream;   /* number in its file */
    uint32_t tid;      /* of the stream's thread */
    const void *chunk; /* for mg_trace_text */
};
/* NULL at the end. The record lives until the next call. */
const struct mg_trace_record *mg_trace_next(struct mg_trace_cursor *c);
/* Chunks that the cursor left out since they are damaged, and the first one's cause (NULL: none). */
uint64_t mg_trace_damaged(const struct mg_trace_cursor *c, const char **why);

/* Index of a field; UINT32_MAX: the kind has none of this name. Keep it by kind_ix. */
uint32_t mg_trace_field_ix(const struct mg_trace_kind *k, const char *name);
/* A field of fixed size, extended to 64 bits by its sign; times are shifted. ix UINT32_MAX: 0. */
uint64_t mg_trace_u64(const struct mg_trace_record *r, uint32_t ix);
double mg_trace_f64(const struct mg_trace_record *r, uint32_t ix);
bool mg_trace_is_null(const struct mg_trace_record *r, uint32_t ix); /* nullable and not measured, or no such field */
/* Text of a field of type name or text, bytes of `bytes` and `words`; *bytes long, not always with a NUL. */
const char *mg_trace_text(const struct mg_trace_record *r, uint32_t ix, uint32_t *bytes);
/* "kind field=value ..." and a JSON object with the members kind, pid, stream, time_ns and fields. */
void mg_trace_print(const struct mg_trace_record *r, struct mg_buf *out);
void mg_trace_print_json(const struct mg_trace_record *r, struct mg_buf *out);

#endif
