/* Traces: what a record is. A profile directory holds one trace file a process, DIR/trace/<pid>.mgt.
 *
 *   threads ── mg_trace_put ── a buffer each ── writer thread: chunks ── file      writer.h
 *   file ── index, chunks ── cursor: records in order of file or time               reader.h
 *
 * A record has a kind; a kind has a name and typed, named fields. Every chunk of a file carries the descriptions
 * of the kinds and the texts that its records use, so that a reader of any version prints any record, and a chunk
 * that survives alone is read alone. docs/format-trace.md has the bytes. */
#ifndef MG_TRACE_TRACE_H
#define MG_TRACE_TRACE_H

#include "base/compiler.h"

enum {
    MG_TRACE_VERSION = 1,
    MG_TRACE_MOST_FIELDS = 64,           /* of a kind */
    MG_TRACE_MOST_KINDS = 4095,          /* of a file; numbered from 1 */
    MG_TRACE_MOST_BYTES = (1 << 20) - 1, /* of a record's fields */
    MG_TRACE_MOST_NAME = 4096,           /* bytes of a shared text; longer ones are cut */
};

enum mg_trace_type {
#define TYPE(name, bytes) MG_TRACE_##name,
#include "trace/types.def"
#undef TYPE
    MG_TRACE_TYPE_COUNT
};

/* Fields that the index knows: of every chunk the lowest and the highest value. A record may have several fields of
 * one key (begin and end); the first is what records are ordered by. */
enum mg_trace_key { MG_TRACE_NO_KEY, MG_TRACE_KEY_TIME, MG_TRACE_KEY_LAUNCH, MG_TRACE_KEY_CTA, MG_TRACE_KEY_COUNT };
enum { MG_TRACE_INDEXED = MG_TRACE_KEY_COUNT - 1 };

enum mg_trace_field_flags {
    MG_TRACE_NULLABLE = 1, /* all ones: not measured, printed as null, not indexed */
};
struct mg_trace_field {
    const char *name;
    enum mg_trace_type type;
    enum mg_trace_key key;
    unsigned flags;
    const char *values; /* words for the values 0, 1, ..., joined by '|'; of words: columns of a table; NULL: none */
};

enum mg_trace_kind_flags {
    MG_TRACE_SAMPLED = 1, /* the policy `sample` may leave records of this kind out */
};
struct mg_trace_kind {
    const char *name;
    unsigned version; /* of the kind: a reader that knows it by name looks at its fields' names first */
    unsigned flags;
    const struct mg_trace_field *fields;
    uint32_t n_fields;
};
#define MG_TRACE_KIND(text, table)                                                                                     \
    {                                                                                                                  \
        .name = (text), .version = 1, .fields = (table), .n_fields = MG_COUNT_OF(table)                                \
    }

/* Where the fields of a kind lie: one behind the other, little-endian, without gaps. */
struct mg_trace_layout {
    uint32_t fixed_bytes; /* of all fields but a last one of no fixed size */
    bool tail;            /* the last field takes what is left */
    uint16_t offs[MG_TRACE_MOST_FIELDS];
};
/* False: no name, no fields or too many, a name twice, an unknown type, a field of no fixed size that is not the last,
 * a key that is not of 64, 32, 16 or 8 bits. */
bool mg_trace_layout(const struct mg_trace_kind *k, struct mg_trace_layout *out);
uint32_t mg_trace_type_bytes(enum mg_trace_type t);

#endif
