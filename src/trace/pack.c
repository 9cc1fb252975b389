/* Chunks in the making, see pack.h. A chunk holds what its records need: descriptions of their kinds, shared texts. */
#include "trace/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { LEVEL = 1 /* of zstd: a chunk of 1 MiB in some 2 ms */ };

/* ---- kinds --------------------------------------------------------------------------------------------- */

bool mg_trace_kinds_init(struct mg_trace_kinds *t)
{
    *t = (struct mg_trace_kinds){.at = calloc(MG_TRACE_MOST_KINDS + 1, sizeof(void *))};
    if (t->at) pthread_mutex_init(&t->lock, NULL);
    return t->at;
}

static void free_known(struct mg_trace_known *k)
{
    if (!k) return;
    free(k->described);
    free(k);
}

void mg_trace_kinds_release(struct mg_trace_kinds *t)
{
    for (uint32_t i = 1; i <= t->n; i++) free_known(t->at[i]);
    if (t->at) pthread_mutex_destroy(&t->lock);
    free(t->at);
}

/* A copy in one piece: the description's bytes, into which the texts point, and the fields behind them. */
static struct mg_trace_known *copy_kind(const struct mg_trace_kind *k)
{
    struct mg_trace_known *n = calloc(1, sizeof *n);
    if (!n || !mg_trace_layout(k, &n->layout)) goto failed;
    size_t bytes = mg_trace_describe(0, k, NULL, 0), at = mg_trace_padded(bytes);
    n->described = calloc(1, at + k->n_fields * sizeof *k->fields);
    if (!n->described) goto failed;
    n->n_described = mg_trace_describe(0, k, n->described, bytes);
    uint32_t number;
    if (!mg_trace_undescribe(n->described, bytes, &number, &n->kind,
                             (struct mg_trace_field *)(void *)(n->described + at)))
        goto failed;
    for (uint32_t i = 0; i < k->n_fields; i++) {
        if (k->fields[i].key) n->key_fields[n->n_keys++] = (uint8_t)i;
        if (k->fields[i].type == MG_TRACE_name) n->name_fields[n->n_names++] = (uint8_t)i;
    }
    return n;
failed:
    free_known(n);
    return NULL;
}

uint32_t mg_trace_kinds_add(struct mg_trace_kinds *t, const struct mg_trace_kind *k)
{
    struct mg_trace_known *copy = copy_kind(k);
    if (!copy) return 0;
    pthread_mutex_lock(&t->lock);
    uint32_t n = t->n;
    for (uint32_t i = 1; i <= n; i++) {
        const struct mg_trace_known *have = t->at[i];
        if (have->n_described != copy->n_described ||
            memcmp(have->described + 4, copy->described + 4, copy->n_described - 4))
            continue;
        pthread_mutex_unlock(&t->lock);
        free_known(copy);
        return i;
    }
    uint32_t number = n < MG_TRACE_MOST_KINDS ? n + 1 : 0;
    if (number) {
        memcpy(copy->described, &number, 4);
        t->at[number] = copy;
        t->n = number;
    }
    pthread_mutex_unlock(&t->lock);
    if (!number) free_known(copy);
    return number;
}

/* ---- assembly ------------------------------------------------------------------------------------------ */

static void begin_chunk(struct mg_trace_pack *p)
{
    p->n = sizeof(struct mg_trace_sections);
    p->n_records = p->n_segments = 0;
    p->n_used_kinds = p->n_used_names = 0;
    p->number++;
    mg_trace_range_none(p->keys);
}

bool mg_trace_pack_init(struct mg_trace_pack *p, struct mg_trace_kinds *kinds, struct mg_trace_names *names)
{
    *p = (struct mg_trace_pack){.kinds = kinds, .names = names};
    p->kind_stamps = calloc(MG_TRACE_MOST_KINDS + 1, sizeof *p->kind_stamps);
    p->used_kinds = calloc(MG_TRACE_MOST_KINDS, sizeof *p->used_kinds);
    p->zstd = ZSTD_createCCtx();
    begin_chunk(p);
    if (p->kind_stamps && p->used_kinds && p->zstd) return true;
    mg_trace_pack_release(p);
    return false;
}

void mg_trace_pack_release(struct mg_trace_pack *p)
{
    free(p->raw);
    free(p->kind_stamps);
    free(p->used_kinds);
    free(p->name_stamps);
    free(p->used_names);
    free(p->name_texts);
    free(p->packed);
    ZSTD_freeCCtx(p->zstd);
    *p = (struct mg_trace_pack){0};
}

static bool make_room(struct mg_trace_pack *p, size_t more)
{
    size_t cap = p->cap ? p->cap : 1 << 16;
    if (p->n + more <= p->cap) return true;
    while (cap < p->n + more) cap *= 2;
    uint8_t *raw = realloc(p->raw, cap);
    if (!raw) return false;
    p->raw = raw;
    p->cap = cap;
    return true;
}

/* Notes that the chunk uses a text. */
static bool use_name(struct mg_trace_pack *p, uint32_t name)
{
    if (!name) return true;
    if (name >= p->n_name_stamps) {
        uint32_t n = mg_trace_names_count(p->names) + 64;
        if (name >= n) return false;
        uint32_t *more = realloc(p->name_stamps, n * sizeof *more);
        if (!more) return false;
        memset(more + p->n_name_stamps, 0, (n - p->n_name_stamps) * sizeof *more);
        p->name_stamps = more;
        p->n_name_stamps = n;
    }
    if (p->name_stamps[name] == p->number) return true;
    if (p->n_used_names == p->cap_used_names) {
        uint32_t cap = p->cap_used_names ? 2 * p->cap_used_names : 64;
        uint32_t *more = realloc(p->used_names, cap * sizeof *more);
        if (!more) return false;
        p->used_names = more;
        p->cap_used_names = cap;
    }
    p->name_stamps[name] = p->number;
    p->used_names[p->n_used_names++] = name;
    return true;
}

/* False: the record is not one of its kind. */
static bool use_record(struct mg_trace_pack *p, uint32_t number, const uint8_t *fields, uint32_t bytes)
{
    if (!number || number > p->kinds->n) return false;
    const struct mg_trace_known *k = p->kinds->at[number];
    const struct mg_trace_field *f = k->kind.fields;
    if (k->layout.tail ? bytes < k->layout.fixed_bytes : bytes != k->layout.fixed_bytes) return false;
    if (f[k->kind.n_fields - 1].type == MG_TRACE_words && (bytes - k->layout.fixed_bytes) % 8) return false;
    for (uint32_t i = 0; i < k->n_names; i++) {
        uint32_t name;
        memcpy(&name, fields + k->layout.offs[k->name_fields[i]], sizeof name);
        if (!use_name(p, name)) return false;
    }
    if (k->n_keys) mg_trace_range_add(p->keys, &k->kind, &k->layout, fields);
    if (p->kind_stamps[number] != p->number) {
        p->kind_stamps[number] = p->number;
        p->used_kinds[p->n_used_kinds++] = number;
    }
    return true;
}

uint64_t mg_trace_pack_add(struct mg_trace_pack *p, uint32_t stream, uint32_t tid, uint32_t name,
                           const uint8_t *records, size_t bytes)
{
    uint64_t lost = 0;
    struct mg_trace_segment head = {stream, tid, name, 0};
    bool room = make_room(p, sizeof head + bytes) && use_name(p, name);
    uint8_t *start = room ? p->raw + p->n : NULL, *to = room ? start + sizeof head : NULL;
    for (size_t at = 0, all; at < bytes; at += all) {
        uint32_t word;
        memcpy(&word, records + at, sizeof word);
        all = sizeof word + mg_trace_word_bytes(word);
        if (!room || !use_record(p, mg_trace_word_kind(word), records + at + sizeof word, mg_trace_word_bytes(word))) {
            lost++;
            continue;
        }
        memcpy(to, records + at, all);
        to += all;
        p->n_records++;
    }
    if (!room || to == start + sizeof head) return lost;
    head.bytes = (uint32_t)(to - start - sizeof head);
    memcpy(start, &head, sizeof head);
    p->n += sizeof head + head.bytes;
    p->n_segments++;
    return lost;
}

/* Behind the segments: the descriptions of the kinds, and the texts with their numbers. */
static bool add_sections(struct mg_trace_pack *p)
{
    struct mg_trace_sections s = {.segments = (uint32_t)(p->n - sizeof s), .n_kinds = p->n_used_kinds};
    for (uint32_t i = 0; i < p->n_used_kinds; i++) {
        const struct mg_trace_known *k = p->kinds->at[p->used_kinds[i]];
        if (!make_room(p, k->n_described)) return false;
        memcpy(p->raw + p->n, k->described, k->n_described);
        p->n += k->n_described;
        s.kinds += (uint32_t)k->n_described;
    }
    if (p->cap_name_texts < p->n_used_names) {
        const char **more = realloc(p->name_texts, p->cap_used_names * sizeof *more);
        if (!more) return false;
        p->name_texts = more;
        p->cap_name_texts = p->cap_used_names;
    }
    mg_trace_names_find(p->names, p->used_names, p->n_used_names, p->name_texts);
    for (uint32_t i = 0; i < p->n_used_names; i++) {
        const char *text = p->name_texts[i] ? p->name_texts[i] : "";
        size_t bytes = 4 + strlen(text) + 1;
        if (!make_room(p, bytes)) return false;
        memcpy(p->raw + p->n, &p->used_names[i], 4);
        memcpy(p->raw + p->n + 4, text, bytes - 4);
        p->n += bytes;
        s.names += (uint32_t)bytes;
        s.n_names++;
    }
    memcpy(p->raw, &s, sizeof s);
    return true;
}

bool mg_trace_pack_end(struct mg_trace_pack *p, struct mg_trace_chunk_head *h, const void **stored)
{
    *h =
        (struct mg_trace_chunk_head){.encoding = MG_TRACE_ZSTD, .n_records = p->n_records, .n_segments = p->n_segments};
    memcpy(h->keys, p->keys, sizeof h->keys);
    bool ok = make_room(p, 0) && add_sections(p);
    size_t room = ok ? ZSTD_compressBound(p->n) + 8 : 0;
    if (ok && room > p->cap_packed) {
        free(p->packed);
        p->packed = malloc(room);
        p->cap_packed = p->packed ? room : 0;
        ok = p->packed;
    }
    if (ok) {
        size_t n = ZSTD_compressCCtx(p->zstd, p->packed, p->cap_packed - 8, p->raw, p->n, LEVEL);
        if (ZSTD_isError(n)) { /* no memory for its tables */
            h->encoding = MG_TRACE_PLAIN;
            memcpy(p->packed, p->raw, n = p->n);
        }
        memset(p->packed + n, 0, 8);
        h->packed_bytes = (uint32_t)n;
        h->raw_bytes = (uint32_t)p->n;
        *stored = p->packed;
    }
    begin_chunk(p);
    return ok;
}
