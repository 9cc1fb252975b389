/* The bytes of a trace file (docs/format-trace.md); for src/trace alone. All numbers are little-endian.
 *
 *   head, attributes │ chunk │ chunk │ ... │ index │ end
 *   chunk: mg_trace_chunk_head, then stored bytes: plain or one zstd frame, zeros up to a multiple of 8
 *   unpacked: mg_trace_sections, segments, kinds, names
 *   segment: mg_trace_segment, records; record: a word (kind 31..20, bytes of the fields 19..0), the fields */
#ifndef MG_TRACE_FORMAT_H
#define MG_TRACE_FORMAT_H

#include "base/buf.h"
#include "trace/reader.h"

#define MG_TRACE_MAGIC "MGTRACE\n"
enum {
    MG_TRACE_CHUNK_MAGIC = 0x4354474d, /* "MGTC" */
    MG_TRACE_INDEX_MAGIC = 0x4954474d, /* "MGTI" */
    MG_TRACE_END_MAGIC = 0x4554474d,   /* "MGTE" */
    MG_TRACE_MOST_CHUNK = 64 << 20,    /* unpacked; more is damage */
    MG_TRACE_MOST_ATTRIBUTES = 1 << 16,
};
enum mg_trace_encoding { MG_TRACE_PLAIN, MG_TRACE_ZSTD, MG_TRACE_ENCODING_COUNT };

struct mg_trace_file_head {
    char magic[8];
    uint32_t version, head_bytes; /* with attributes and zeros up to a multiple of 8 */
    uint32_t pid;
    int32_t rank;
    uint64_t mono_ns, real_ns;
    uint32_t attribute_bytes;
    uint32_t crc; /* of all of it, this field 0 */
};
_Static_assert(sizeof(struct mg_trace_file_head) == 48, "on disk");

struct mg_trace_chunk_head {
    uint32_t magic;
    uint16_t version, encoding;
    uint64_t number; /* in the file, from 0 */
    uint32_t packed_bytes, raw_bytes;
    uint32_t n_records, n_segments;
    uint64_t dropped, skipped; /* since the chunk before */
    struct mg_trace_range keys[MG_TRACE_INDEXED];
    uint32_t payload_crc; /* of the stored bytes, zeros included */
    uint32_t crc;         /* of what is above */
};
_Static_assert(sizeof(struct mg_trace_chunk_head) == 104, "on disk");

struct mg_trace_sections {
    uint32_t segments, kinds, names; /* bytes */
    uint32_t n_kinds, n_names;
};
_Static_assert(sizeof(struct mg_trace_sections) == 20, "on disk");
struct mg_trace_segment {
    uint32_t stream, tid, name, bytes;
};
_Static_assert(sizeof(struct mg_trace_segment) == 16, "on disk");

struct mg_trace_index_head {
    uint32_t magic, version;
    uint64_t n;
    uint32_t entries_crc, crc;
};
_Static_assert(sizeof(struct mg_trace_index_head) == 24, "on disk");
struct mg_trace_entry { /* of the index: a chunk */
    uint64_t at;
    uint32_t packed_bytes, n_records;
    struct mg_trace_range keys[MG_TRACE_INDEXED];
};
_Static_assert(sizeof(struct mg_trace_entry) == 64, "on disk");

struct mg_trace_end {
    uint32_t magic, version;
    uint64_t index_at, chunks, records, raw_bytes, dropped, skipped, lost, mono_ns, real_ns;
    uint32_t pad, crc; /* of what is above */
};
_Static_assert(sizeof(struct mg_trace_end) == 88, "on disk");

static inline uint64_t mg_trace_padded(uint64_t bytes)
{
    return (bytes + 7) & ~7ull;
}
static inline uint64_t mg_trace_stored(uint32_t packed_bytes)
{
    return sizeof(struct mg_trace_chunk_head) + mg_trace_padded(packed_bytes);
}
static inline uint32_t mg_trace_word(uint32_t kind, uint32_t bytes)
{
    return kind << 20 | bytes;
}
static inline uint32_t mg_trace_word_kind(uint32_t word)
{
    return word >> 20;
}
static inline uint32_t mg_trace_word_bytes(uint32_t word)
{
    return word & MG_TRACE_MOST_BYTES;
}

/* A number as it lies in a record, extended to 64 bits by its sign. */
uint64_t mg_trace_number_at(const uint8_t *at, enum mg_trace_type t);
bool mg_trace_is_all_ones(uint64_t v, enum mg_trace_type t);
void mg_trace_range_none(struct mg_trace_range keys[MG_TRACE_INDEXED]);
/* Widens keys by those of a record. */
void mg_trace_range_add(struct mg_trace_range keys[MG_TRACE_INDEXED], const struct mg_trace_kind *k,
                        const struct mg_trace_layout *l, const uint8_t *fields);

/* The description of a kind as it stands in a chunk: number, version, flags, fields. */
size_t mg_trace_describe(uint32_t number, const struct mg_trace_kind *k, void *out,
                         size_t room); /* bytes needed, written if they fit */
/* Reads one; what it points to is in the bytes, but for fields[], which has room for MG_TRACE_MOST_FIELDS. Bytes used,
 * 0: damaged. */
size_t mg_trace_undescribe(const uint8_t *at, size_t bytes, uint32_t *number, struct mg_trace_kind *out,
                           struct mg_trace_field *fields);

bool mg_trace_chunk_head_ok(const struct mg_trace_chunk_head *h);
void mg_trace_chunk_head_seal(struct mg_trace_chunk_head *h);

#endif
