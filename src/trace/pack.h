/* Chunks in the making: segments of records become the bytes of a chunk. Used by the writer thread alone. */
#ifndef MG_TRACE_PACK_H
#define MG_TRACE_PACK_H

#include <pthread.h>

#include "trace/format.h"
#include "trace/names.h"

/* Kinds of a writer by number; filled under `lock`, never changed after. */
struct mg_trace_known {
    struct mg_trace_kind kind;
    struct mg_trace_layout layout;
    uint8_t *described;
    size_t n_described;
    uint32_t n_keys, n_names;
    uint8_t key_fields[MG_TRACE_MOST_FIELDS], name_fields[MG_TRACE_MOST_FIELDS];
};
struct mg_trace_kinds {
    pthread_mutex_t lock;
    struct mg_trace_known **at; /* MG_TRACE_MOST_KINDS + 1 places, from 1 */
    _Atomic uint32_t n;
};
bool mg_trace_kinds_init(struct mg_trace_kinds *t);
void mg_trace_kinds_release(struct mg_trace_kinds *t);
uint32_t mg_trace_kinds_add(struct mg_trace_kinds *t, const struct mg_trace_kind *k); /* 0: wrong, or no room */

struct mg_trace_pack {
    struct mg_trace_kinds *kinds;
    struct mg_trace_names *names;
    uint8_t *raw;
    size_t n, cap; /* sections, then segments */
    uint32_t n_records, n_segments;
    struct mg_trace_range keys[MG_TRACE_INDEXED];
    uint32_t number;       /* of the chunk: the stamp of what it uses; from 1 */
    uint32_t *kind_stamps; /* by number */
    uint32_t *used_kinds, n_used_kinds;
    uint32_t *name_stamps, n_name_stamps;
    uint32_t *used_names, n_used_names, cap_used_names;
    const char **name_texts;
    uint32_t cap_name_texts;
    uint8_t *packed;
    size_t cap_packed;
    struct ZSTD_CCtx_s *zstd;
};
bool mg_trace_pack_init(struct mg_trace_pack *p, struct mg_trace_kinds *kinds, struct mg_trace_names *names);
void mg_trace_pack_release(struct mg_trace_pack *p);
/* Adds the records in so many bytes. Returns how many were not taken: not of their kind, or no memory. */
uint64_t mg_trace_pack_add(struct mg_trace_pack *p, uint32_t stream, uint32_t tid, uint32_t name,
                           const uint8_t *records, size_t bytes);
/* The chunk of what was added, without number and checksums; then begins the next one. *stored: zeros up to a multiple
 * of 8; owner: p. False: no memory; what was added is gone, h->n_records says how much. */
bool mg_trace_pack_end(struct mg_trace_pack *p, struct mg_trace_chunk_head *h, const void **stored);

#endif
