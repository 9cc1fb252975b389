/* A chunk as a reader has it: unpacked, checked once from end to end, so that its records need no more checks. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/crc.h"
#include "trace/load.h"

static const char *read_stored(int fd, const struct mg_trace_loaded *f, uint64_t ix, struct mg_trace_chunk *c,
                               uint8_t **stored)
{
    const struct mg_trace_entry *e = &f->entries[ix];
    struct mg_trace_chunk_head *h = &c->head;
    if (!mg_trace_read_at(fd, e->at, h, sizeof *h)) return "its head is not there";
    if (!mg_trace_chunk_head_ok(h)) return "its head is damaged";
    if (h->version > MG_TRACE_VERSION || h->encoding >= MG_TRACE_ENCODING_COUNT) return "it is of a newer version";
    if (h->packed_bytes != e->packed_bytes || h->n_records != e->n_records || memcmp(h->keys, e->keys, sizeof h->keys))
        return "it is not what the index says";
    size_t bytes = mg_trace_padded(h->packed_bytes);
    *stored = mg_xmalloc(bytes);
    if (!mg_trace_read_at(fd, e->at + sizeof *h, *stored, bytes)) return "it ends too early";
    if (h->payload_crc != mg_crc32c(0, *stored, bytes)) return "its checksum is wrong";
    return NULL;
}

static const char *unpack(struct mg_trace_chunk *c, const uint8_t *stored)
{
    const struct mg_trace_chunk_head *h = &c->head;
    c->raw = mg_xmalloc(h->raw_bytes + 1);
    if (h->encoding == MG_TRACE_PLAIN) {
        if (h->packed_bytes != h->raw_bytes) return "its size is wrong";
        memcpy(c->raw, stored, h->raw_bytes);
        return NULL;
    }
    size_t n = ZSTD_decompress(c->raw, h->raw_bytes, stored, h->packed_bytes);
    return ZSTD_isError(n) || n != h->raw_bytes ? "it cannot be unpacked" : NULL;
}

static const char *read_kinds(struct mg_trace_chunk *c, struct mg_trace_seens *seens, const uint8_t *at, uint32_t bytes,
                              uint32_t n)
{
    const uint8_t *end = at + bytes;
    c->kinds = mg_xcalloc(MG_TRACE_MOST_KINDS + 1, sizeof *c->kinds);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t number;
        size_t used;
        const struct mg_trace_seen *s = mg_trace_seens_add(seens, at, (size_t)(end - at), &used, &number);
        if (!s || !number || number > MG_TRACE_MOST_KINDS || c->kinds[number]) return "a kind of records is damaged";
        c->kinds[number] = s;
        at += used;
    }
    return at == end ? NULL : "its kinds do not end where they should";
}

static int compare_texts(const void *a, const void *b)
{
    const struct mg_trace_text *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static const char *read_texts(struct mg_trace_chunk *c, const uint8_t *at, uint32_t bytes, uint32_t n)
{
    const uint8_t *end = at + bytes;
    if (n > bytes / 5) return "its texts are damaged";
    c->texts = mg_xmalloc((n + 1) * sizeof *c->texts);
    for (; c->n_texts < n; c->n_texts++) {
        const uint8_t *nul = end - at > 4 ? memchr(at + 4, 0, (size_t)(end - at - 4)) : NULL;
        struct mg_trace_text *t = &c->texts[c->n_texts];
        if (!nul) return "its texts are damaged";
        memcpy(&t->number, at, 4);
        t->text = (const char *)at + 4;
        t->bytes = (uint32_t)(nul - at - 4);
        at = nul + 1;
    }
    if (at != end) return "its texts do not end where they should";
    qsort(c->texts, n, sizeof *c->texts, compare_texts);
    return NULL;
}

const struct mg_trace_text *mg_trace_chunk_text(const struct mg_trace_chunk *c, uint32_t number)
{
    struct mg_trace_text key = {.number = number};
    return c->n_texts ? bsearch(&key, c->texts, c->n_texts, sizeof key, compare_texts) : NULL;
}

/* The first field with the key time. */
static bool find_time(const struct mg_trace_seen *s, const uint8_t *fields, uint64_t *time)
{
    for (uint32_t i = 0; i < s->kind.n_fields; i++) {
        const struct mg_trace_field *f = &s->kind.fields[i];
        if (f->key != MG_TRACE_KEY_TIME) continue;
        *time = mg_trace_number_at(fields + s->layout.offs[i], f->type);
        return !(f->flags & MG_TRACE_NULLABLE && mg_trace_is_all_ones(*time, f->type));
    }
    return false;
}

static const char *check_strictly(const struct mg_trace_chunk *c, const struct mg_trace_seen *s, const uint8_t *fields,
                                  struct mg_trace_range keys[MG_TRACE_INDEXED])
{
    mg_trace_range_add(keys, &s->kind, &s->layout, fields);
    for (uint32_t i = 0; i < s->kind.n_fields; i++) {
        if (s->kind.fields[i].type != MG_TRACE_name) continue;
        uint32_t number = (uint32_t)mg_trace_number_at(fields + s->layout.offs[i], MG_TRACE_name);
        if (number && !mg_trace_chunk_text(c, number)) return "a record names a text that is not there";
    }
    return NULL;
}

static const char *read_segment(struct mg_trace_chunk *c, uint32_t head_at, uint32_t bytes, unsigned flags,
                                struct mg_trace_range keys[MG_TRACE_INDEXED])
{
    uint32_t at = head_at + (uint32_t)sizeof(struct mg_trace_segment), end = at + bytes;
    const struct mg_trace_range *range = &c->head.keys[MG_TRACE_KEY_TIME - 1];
    uint64_t before = range->first <= range->last ? range->first : 0;
    while (at < end) {
        uint32_t word;
        if (end - at < sizeof word) return "a segment is damaged";
        memcpy(&word, c->raw + at, sizeof word);
        uint32_t n = mg_trace_word_bytes(word), left = end - at - (uint32_t)sizeof word;
        const struct mg_trace_seen *s =
            mg_trace_word_kind(word) <= MG_TRACE_MOST_KINDS ? c->kinds[mg_trace_word_kind(word)] : NULL;
        if (!s || n > left) return "a record is damaged";
        if (s->layout.tail ? n < s->layout.fixed_bytes : n != s->layout.fixed_bytes)
            return "a record has not the size of its kind";
        const uint8_t *fields = c->raw + at + sizeof word;
        if (c->n_items == c->head.n_records) return "it has more records than it says";
        struct mg_trace_item *item = &c->items[c->n_items++];
        *item = (struct mg_trace_item){.at = at, .segment = head_at};
        item->has_time = find_time(s, fields, &item->time);
        if (!item->has_time) item->time = before;
        before = item->time;
        const char *why = flags & MG_TRACE_STRICT ? check_strictly(c, s, fields, keys) : NULL;
        if (why) return why;
        at += (uint32_t)sizeof word + n;
    }
    return NULL;
}

static const char *read_sections(struct mg_trace_chunk *c, struct mg_trace_seens *seens, unsigned flags)
{
    struct mg_trace_sections s;
    struct mg_trace_range keys[MG_TRACE_INDEXED];
    uint32_t bytes = c->head.raw_bytes, n_segments = 0;
    if (bytes < sizeof s) return "it is too small";
    memcpy(&s, c->raw, sizeof s);
    if ((uint64_t)s.segments + s.kinds + s.names + sizeof s != bytes) return "its sections are damaged";
    if (c->head.n_records > s.segments / 5) return "it has fewer records than it says";
    uint32_t at = sizeof s, end = at + s.segments;
    const char *why = read_kinds(c, seens, c->raw + end, s.kinds, s.n_kinds);
    if (!why) why = read_texts(c, c->raw + end + s.kinds, s.names, s.n_names);
    c->items = mg_xmalloc((c->head.n_records + 1) * sizeof *c->items);
    mg_trace_range_none(keys);
    for (; !why && at < end; n_segments++) {
        struct mg_trace_segment g;
        if (end - at < sizeof g) return "a segment is damaged";
        memcpy(&g, c->raw + at, sizeof g);
        if (g.bytes > end - at - sizeof g) return "a segment is damaged";
        if (flags & MG_TRACE_STRICT && g.name && !mg_trace_chunk_text(c, g.name))
            return "a stream names a text that is not there";
        why = read_segment(c, at, g.bytes, flags, keys);
        at += (uint32_t)sizeof g + g.bytes;
    }
    if (why) return why;
    if (c->n_items != c->head.n_records || n_segments != c->head.n_segments) return "it has fewer records than it says";
    if (flags & MG_TRACE_STRICT && memcmp(keys, c->head.keys, sizeof keys))
        return "its keys are not those of its records";
    return NULL;
}

struct mg_trace_chunk *mg_trace_chunk_read(struct mg_trace_seens *kinds, const struct mg_trace_loaded *f, uint64_t ix,
                                           unsigned flags, const char **why)
{
    struct mg_trace_chunk *c = mg_xcalloc(1, sizeof *c);
    uint8_t *stored = NULL;
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    c->file = f;
    *why = fd < 0 ? "its file cannot be opened" : read_stored(fd, f, ix, c, &stored);
    if (fd >= 0) close(fd);
    if (!*why) *why = unpack(c, stored);
    if (!*why) *why = read_sections(c, kinds, flags);
    free(stored);
    if (!*why) return c;
    mg_trace_chunk_free(c);
    return NULL;
}

void mg_trace_chunk_free(struct mg_trace_chunk *c)
{
    if (!c) return;
    free(c->raw);
    free(c->kinds);
    free(c->texts);
    free(c->items);
    free(c);
}

static int compare_items(const void *a, const void *b)
{
    const struct mg_trace_item *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

void mg_trace_chunk_sort(struct mg_trace_chunk *c)
{
    uint32_t i = 1;
    while (i < c->n_items && c->items[i - 1].time <= c->items[i].time) i++;
    if (i < c->n_items) qsort(c->items, c->n_items, sizeof *c->items, compare_items);
}

void mg_trace_chunk_record(const struct mg_trace_chunk *c, const struct mg_trace_item *i, struct mg_trace_record *out)
{
    struct mg_trace_segment g;
    uint32_t word;
    memcpy(&g, c->raw + i->segment, sizeof g);
    memcpy(&word, c->raw + i->at, sizeof word);
    const struct mg_trace_seen *s = c->kinds[mg_trace_word_kind(word)];
    *out = (struct mg_trace_record){
        .kind = &s->kind,
        .layout = &s->layout,
        .kind_ix = s->ix,
        .fields = c->raw + i->at + sizeof word,
        .bytes = mg_trace_word_bytes(word),
        .time = i->time + (i->has_time || i->time ? (uint64_t)mg_trace_shift(&c->file->file, i->time) : 0),
        .has_time = i->has_time,
        .file = &c->file->file,
        .stream = g.stream,
        .tid = g.tid,
        .chunk = c};
}
