/* Files and chunks as a reader holds them; for src/trace alone. */
#ifndef MG_TRACE_LOAD_H
#define MG_TRACE_LOAD_H

#include "base/map.h"
#include "base/vec.h"
#include "trace/format.h"

/* ---- kinds of a reader ----------------------------------------------------------------------------------- */

struct mg_trace_seen { /* a kind, once for all equal descriptions */
    struct mg_trace_kind kind;
    struct mg_trace_layout layout;
    uint32_t ix;
    size_t n_described;
    uint8_t *described; /* without the number; the texts and, behind them, the fields */
};
struct mg_trace_seens {
    MG_VEC(struct mg_trace_seen *) at;
    struct mg_map by_hash;
};
/* NULL: the description is damaged, or there are too many. *bytes: what it takes. */
const struct mg_trace_seen *mg_trace_seens_add(struct mg_trace_seens *t, const uint8_t *described, size_t most,
                                               size_t *bytes, uint32_t *number);
void mg_trace_seens_release(struct mg_trace_seens *t);

/* ---- files ------------------------------------------------------------------------------------------------- */

struct mg_trace_loaded { /* a file and its index */
    struct mg_trace_file file;
    char *path;
    char *attributes;
    struct mg_trace_entry *entries;
    uint64_t n_entries, room; /* room: of those that are scanned */
    uint64_t index_at;        /* where chunks end */
    bool repeated;            /* a chunk stands behind one of a higher number, or its own: the content is there twice */
    bool growing;             /* its process writes it: see mg_trace_grow */
    uint64_t next_at, next_number; /* where the next chunk begins, if it is growing, and its number */
};
struct mg_trace_reader {
    MG_VEC(struct mg_trace_loaded *) files;
    struct mg_trace_seens kinds;
};
/* Reads the head and the index, or makes the index. An error: no such file, no trace, of a newer version. */
enum mg_err mg_trace_load(const char *path, struct mg_trace_loaded **out, struct mg_diag *d) MG_MUST_CHECK;
void mg_trace_loaded_free(struct mg_trace_loaded *f);
/* The file as far as its process has written it; MG_ERR_NOT_FOUND: not even its head. Then what was written since: more
 * entries. ended: the process writes no more: what is no chunk now is damaged, and the sums of its end are read. */
enum mg_err mg_trace_load_growing(const char *path, struct mg_trace_loaded **out, struct mg_diag *d) MG_MUST_CHECK;
void mg_trace_grow(struct mg_trace_loaded *f, bool ended);
/* The first n entries are not needed any more, nor their chunks. */
void mg_trace_forget(struct mg_trace_loaded *f, uint64_t n);

/* ---- chunks ------------------------------------------------------------------------------------------------ */

struct mg_trace_item {
    uint64_t time;
    uint32_t at;
    uint32_t segment;
    bool has_time;
}; /* a record: where its word lies, and its segment */
struct mg_trace_text {
    uint32_t number, bytes;
    const char *text;
};
struct mg_trace_chunk {
    const struct mg_trace_loaded *file;
    struct mg_trace_chunk_head head;
    uint8_t *raw;
    const struct mg_trace_seen **kinds; /* by number */
    struct mg_trace_text *texts;
    uint32_t n_texts; /* by number */
    struct mg_trace_item *items;
    uint32_t n_items;
};
enum { MG_TRACE_STRICT = 1 /* also what reading does not need: unknown texts, keys that the index does not hold */ };
/* Reads and checks a chunk: NULL, and why not. */
struct mg_trace_chunk *mg_trace_chunk_read(struct mg_trace_seens *kinds, const struct mg_trace_loaded *f, uint64_t ix,
                                           unsigned flags, const char **why);
void mg_trace_chunk_free(struct mg_trace_chunk *c);
void mg_trace_chunk_sort(struct mg_trace_chunk *c); /* by time; those of equal time as they were written */
/* The record of an item. */
void mg_trace_chunk_record(const struct mg_trace_chunk *c, const struct mg_trace_item *i, struct mg_trace_record *out);
const struct mg_trace_text *mg_trace_chunk_text(const struct mg_trace_chunk *c,
                                                uint32_t number); /* NULL: it has none */

/* Bytes of a file at a place; false: they are not there. */
bool mg_trace_read_at(int fd, uint64_t at, void *out, size_t bytes);

#endif
