/* Kinds of records: where their fields lie, their description as bytes, and reading it back. */
#include <string.h>

#include "base/crc.h"
#include "trace/format.h"

static const uint8_t type_bytes[] = {
#define TYPE(name, bytes) bytes,
#include "trace/types.def"
#undef TYPE
};
_Static_assert(MG_COUNT_OF(type_bytes) == MG_TRACE_TYPE_COUNT, "one row a type");

uint32_t mg_trace_type_bytes(enum mg_trace_type t)
{
    return (unsigned)t < MG_TRACE_TYPE_COUNT ? type_bytes[t] : 0;
}

static bool may_be_key(enum mg_trace_type t)
{
    return t == MG_TRACE_u8 || t == MG_TRACE_u16 || t == MG_TRACE_u32 || t == MG_TRACE_u64 || t == MG_TRACE_time;
}

bool mg_trace_layout(const struct mg_trace_kind *k, struct mg_trace_layout *out)
{
    uint32_t at = 0;
    *out = (struct mg_trace_layout){0};
    if (!k->name || !k->name[0] || !k->n_fields || k->n_fields > MG_TRACE_MOST_FIELDS) return false;
    for (uint32_t i = 0; i < k->n_fields; i++) {
        const struct mg_trace_field *f = &k->fields[i];
        if (!f->name || !f->name[0] || (unsigned)f->type >= MG_TRACE_TYPE_COUNT) return false;
        if ((unsigned)f->key >= MG_TRACE_KEY_COUNT || (f->key && !may_be_key(f->type))) return false;
        for (uint32_t j = 0; j < i; j++)
            if (!strcmp(f->name, k->fields[j].name)) return false;
        out->offs[i] = (uint16_t)at;
        uint32_t bytes = mg_trace_type_bytes(f->type);
        out->tail = !bytes;
        if (out->tail && i + 1 < k->n_fields) return false;
        at += bytes;
    }
    out->fixed_bytes = at;
    return true;
}

uint64_t mg_trace_number_at(const uint8_t *at, enum mg_trace_type t)
{
    uint64_t v = 0;
    memcpy(&v, at, mg_trace_type_bytes(t));
    return t == MG_TRACE_i32 ? (uint64_t)(int64_t)(int32_t)v : v;
}

bool mg_trace_is_all_ones(uint64_t v, enum mg_trace_type t)
{
    uint32_t bytes = mg_trace_type_bytes(t);
    return bytes && !(~v << (64 - 8 * bytes));
}

void mg_trace_range_none(struct mg_trace_range keys[MG_TRACE_INDEXED])
{
    for (int i = 0; i < MG_TRACE_INDEXED; i++) keys[i] = (struct mg_trace_range){UINT64_MAX, 0};
}

void mg_trace_range_add(struct mg_trace_range keys[MG_TRACE_INDEXED], const struct mg_trace_kind *k,
                        const struct mg_trace_layout *l, const uint8_t *fields)
{
    for (uint32_t i = 0; i < k->n_fields; i++) {
        const struct mg_trace_field *f = &k->fields[i];
        if (!f->key) continue;
        uint64_t v = mg_trace_number_at(fields + l->offs[i], f->type);
        if (f->flags & MG_TRACE_NULLABLE && mg_trace_is_all_ones(v, f->type)) continue;
        struct mg_trace_range *r = &keys[f->key - 1];
        r->first = MG_MIN(r->first, v);
        r->last = MG_MAX(r->last, v);
    }
}

/* ---- descriptions -------------------------------------------------------------------------------------- */

/* u32 number, u16 version, u8 fields, u8 flags, name; then of each field u8 type, u8 bytes, u8 key, u8 flags, name,
 * values. Texts end in NUL; no values: the empty text. */
enum { KIND_HEAD = 8, FIELD_HEAD = 4 };

struct bytes {
    uint8_t *at;
    size_t n, room;
};

static void add_bytes(struct bytes *b, const void *p, size_t n)
{
    if (b->n + n <= b->room) memcpy(b->at + b->n, p, n);
    b->n += n;
}

static void add_text(struct bytes *b, const char *s)
{
    add_bytes(b, s ? s : "", strlen(s ? s : "") + 1);
}

size_t mg_trace_describe(uint32_t number, const struct mg_trace_kind *k, void *out, size_t room)
{
    struct bytes b = {out, 0, room};
    uint16_t version = (uint16_t)k->version;
    uint8_t counts[2] = {(uint8_t)k->n_fields, (uint8_t)k->flags};
    add_bytes(&b, &number, 4);
    add_bytes(&b, &version, 2);
    add_bytes(&b, counts, 2);
    add_text(&b, k->name);
    for (uint32_t i = 0; i < k->n_fields; i++) {
        const struct mg_trace_field *f = &k->fields[i];
        uint8_t head[FIELD_HEAD] = {(uint8_t)f->type, (uint8_t)mg_trace_type_bytes(f->type), (uint8_t)f->key,
                                    (uint8_t)f->flags};
        add_bytes(&b, head, sizeof head);
        add_text(&b, f->name);
        add_text(&b, f->values);
    }
    return b.n;
}

/* A type that a newer writer knew: read as a number of its size, or as bytes. */
static enum mg_trace_type known_type(uint8_t type, uint8_t bytes)
{
    if (type < MG_TRACE_TYPE_COUNT) return mg_trace_type_bytes(type) == bytes ? type : MG_TRACE_TYPE_COUNT;
    switch (bytes) {
    case 0:
        return MG_TRACE_bytes;
    case 1:
        return MG_TRACE_u8;
    case 2:
        return MG_TRACE_u16;
    case 4:
        return MG_TRACE_u32;
    case 8:
        return MG_TRACE_hex;
    default:
        return MG_TRACE_TYPE_COUNT;
    }
}

/* The text at *at, which then stands behind it; NULL: no NUL before the end. */
static const char *next_text(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *s = *at, *nul = s < end ? memchr(s, 0, (size_t)(end - s)) : NULL;
    if (!nul) return NULL;
    *at = nul + 1;
    return (const char *)s;
}

size_t mg_trace_undescribe(const uint8_t *at, size_t bytes, uint32_t *number, struct mg_trace_kind *out,
                           struct mg_trace_field *fields)
{
    const uint8_t *start = at, *end = at + bytes;
    uint16_t version;
    if (bytes < KIND_HEAD) return 0;
    memcpy(number, at, 4);
    memcpy(&version, at + 4, 2);
    *out = (struct mg_trace_kind){.version = version, .flags = at[7], .fields = fields, .n_fields = at[6]};
    at += KIND_HEAD;
    out->name = next_text(&at, end);
    if (!out->name || out->n_fields > MG_TRACE_MOST_FIELDS) return 0;
    for (uint32_t i = 0; i < out->n_fields; i++) {
        if (end - at < FIELD_HEAD) return 0;
        fields[i] = (struct mg_trace_field){.type = known_type(at[0], at[1]), .key = at[2], .flags = at[3]};
        if (fields[i].key >= MG_TRACE_KEY_COUNT) fields[i].key = MG_TRACE_NO_KEY;
        at += FIELD_HEAD;
        fields[i].name = next_text(&at, end);
        fields[i].values = fields[i].name ? next_text(&at, end) : NULL;
        if (!fields[i].values) return 0;
        if (!fields[i].values[0]) fields[i].values = NULL;
    }
    return (size_t)(at - start);
}

/* ---- heads of chunks ----------------------------------------------------------------------------------- */

bool mg_trace_chunk_head_ok(const struct mg_trace_chunk_head *h)
{
    return h->magic == MG_TRACE_CHUNK_MAGIC && h->crc == mg_crc32c(0, h, offsetof(struct mg_trace_chunk_head, crc)) &&
           h->packed_bytes && h->raw_bytes <= MG_TRACE_MOST_CHUNK && h->packed_bytes <= MG_TRACE_MOST_CHUNK + (1 << 20);
}

void mg_trace_chunk_head_seal(struct mg_trace_chunk_head *h)
{
    h->crc = mg_crc32c(0, h, offsetof(struct mg_trace_chunk_head, crc));
}
