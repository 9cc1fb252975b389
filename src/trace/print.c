/* Records as they are asked for by name: fields, texts, a line of text, a JSON object. Needs no knowledge of a kind. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "trace/load.h"

uint32_t mg_trace_field_ix(const struct mg_trace_kind *k, const char *name)
{
    for (uint32_t i = 0; i < k->n_fields; i++)
        if (!strcmp(k->fields[i].name, name)) return i;
    return UINT32_MAX;
}

static uint64_t stored(const struct mg_trace_record *r, uint32_t ix)
{
    return ix < r->kind->n_fields ? mg_trace_number_at(r->fields + r->layout->offs[ix], r->kind->fields[ix].type) : 0;
}

bool mg_trace_is_null(const struct mg_trace_record *r, uint32_t ix)
{
    if (ix >= r->kind->n_fields) return true;
    const struct mg_trace_field *f = &r->kind->fields[ix];
    return f->flags & MG_TRACE_NULLABLE && mg_trace_is_all_ones(stored(r, ix), f->type);
}

uint64_t mg_trace_u64(const struct mg_trace_record *r, uint32_t ix)
{
    uint64_t v = stored(r, ix);
    bool shift = ix < r->kind->n_fields && r->kind->fields[ix].type == MG_TRACE_time && !mg_trace_is_null(r, ix);
    return shift ? v + (uint64_t)mg_trace_shift(r->file, v) : v;
}

double mg_trace_f64(const struct mg_trace_record *r, uint32_t ix)
{
    uint64_t v = mg_trace_u64(r, ix);
    double d;
    if (ix >= r->kind->n_fields) return 0;
    memcpy(&d, &v, sizeof d);
    switch (r->kind->fields[ix].type) {
    case MG_TRACE_f64:
        return d;
    case MG_TRACE_i32:
    case MG_TRACE_i64:
        return (double)(int64_t)v;
    default:
        return (double)v;
    }
}

const char *mg_trace_text(const struct mg_trace_record *r, uint32_t ix, uint32_t *bytes)
{
    *bytes = 0;
    if (ix >= r->kind->n_fields) return "";
    if (r->kind->fields[ix].type == MG_TRACE_name) {
        const struct mg_trace_text *t = mg_trace_chunk_text(r->chunk, (uint32_t)stored(r, ix));
        *bytes = t ? t->bytes : 0;
        return t ? t->text : "";
    }
    if (mg_trace_type_bytes(r->kind->fields[ix].type)) return "";
    *bytes = r->bytes - r->layout->fixed_bytes;
    return (const char *)r->fields + r->layout->fixed_bytes;
}

/* ---- printing ------------------------------------------------------------------------------------------ */

/* A field of words is a table where it names columns: so many words are a row. */
static uint32_t n_columns(const struct mg_trace_field *f)
{
    uint32_t n = f->values != NULL;
    for (const char *c = f->values ? f->values : ""; *c; c++) n += *c == '|';
    return n;
}

/* The word for a value, of words joined by '|'; NULL: there is none. */
static const char *value_word(const char *words, uint64_t v, size_t *bytes)
{
    for (; words; words = strchr(words, '|') ? strchr(words, '|') + 1 : NULL, v--) {
        *bytes = strcspn(words, "|");
        if (!v) return *bytes ? words : NULL;
    }
    return NULL;
}

static void print_quoted(struct mg_buf *out, const char *s, size_t n)
{
    mg_buf_addc(out, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            mg_buf_printf(out, "\\%c", c);
        else if (c < 32 || c == 127)
            mg_buf_printf(out, "\\x%02x", c);
        else
            mg_buf_addc(out, (char)c);
    }
    mg_buf_addc(out, '"');
}

static void print_bytes(struct mg_buf *out, const char *s, uint32_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < n; i++) {
        mg_buf_addc(out, digits[(unsigned char)s[i] >> 4]);
        mg_buf_addc(out, digits[s[i] & 15]);
    }
}

static uint64_t word_of(const char *s, uint32_t i)
{
    uint64_t v;
    memcpy(&v, s + 8 * (size_t)i, 8);
    return v;
}

static void print_field(const struct mg_trace_record *r, uint32_t ix, struct mg_buf *out)
{
    const struct mg_trace_field *f = &r->kind->fields[ix];
    uint64_t v = mg_trace_u64(r, ix);
    uint32_t n;
    size_t word_bytes;
    const char *text = mg_trace_text(r, ix, &n),
               *word = f->type == MG_TRACE_words ? NULL : value_word(f->values, v, &word_bytes);
    mg_buf_printf(out, " %s=", f->name);
    if (mg_trace_is_null(r, ix)) {
        mg_buf_adds(out, "null");
        return;
    }
    if (word) {
        mg_buf_add(out, word, word_bytes);
        return;
    }
    switch (f->type) {
    case MG_TRACE_i32:
    case MG_TRACE_i64:
        mg_buf_printf(out, "%lld", (long long)v);
        break;
    case MG_TRACE_f64:
        mg_buf_printf(out, "%.17g", mg_trace_f64(r, ix));
        break;
    case MG_TRACE_hex:
        mg_buf_printf(out, "0x%llx", (unsigned long long)v);
        break;
    case MG_TRACE_name:
    case MG_TRACE_text:
        print_quoted(out, text, n);
        break;
    case MG_TRACE_bytes:
        print_bytes(out, text, n);
        break;
    case MG_TRACE_words:
        for (uint32_t i = 0, row = MG_MAX(n_columns(f), 1u); i < n / 8; i++)
            mg_buf_printf(out, "%s0x%llx", !i ? "" : i % row ? ":" : ",", (unsigned long long)word_of(text, i));
        break;
    default:
        mg_buf_addu(out, v);
        break;
    }
}

void mg_trace_print(const struct mg_trace_record *r, struct mg_buf *out)
{
    mg_buf_adds(out, r->kind->name);
    mg_buf_printf(out, " pid=%u stream=%u", r->file->pid, r->stream);
    for (uint32_t i = 0; i < r->kind->n_fields; i++) print_field(r, i, out);
}

/* An array of words, or of arrays of them. */
static void json_words(struct mg_json *j, const struct mg_trace_field *f, const char *text, uint32_t n)
{
    uint32_t row = n_columns(f);
    mg_json_arr(j);
    for (uint32_t i = 0; i < n; i++) {
        if (row && i % row == 0) mg_json_arr(j);
        mg_json_u64(j, word_of(text, i));
        if (row && (i % row == row - 1 || i == n - 1)) mg_json_end(j, ']');
    }
    mg_json_end(j, ']');
}

static void json_text(struct mg_json *j, const char *s, uint32_t n)
{
    struct mg_buf copy = MG_BUF_INIT;
    mg_buf_add(&copy, s, n);
    mg_json_str(j, n ? copy.at : "");
    mg_buf_release(&copy);
}

static void json_field(const struct mg_trace_record *r, uint32_t ix, struct mg_json *j)
{
    const struct mg_trace_field *f = &r->kind->fields[ix];
    uint64_t v = mg_trace_u64(r, ix);
    uint32_t n;
    size_t word_bytes;
    const char *text = mg_trace_text(r, ix, &n),
               *word = f->type == MG_TRACE_words ? NULL : value_word(f->values, v, &word_bytes);
    struct mg_buf hex = MG_BUF_INIT;
    mg_json_key(j, f->name);
    if (mg_trace_is_null(r, ix)) {
        mg_json_null(j);
        return;
    }
    if (word) {
        json_text(j, word, (uint32_t)word_bytes);
        return;
    }
    switch (f->type) {
    case MG_TRACE_i32:
    case MG_TRACE_i64:
        mg_json_i64(j, (int64_t)v);
        break;
    case MG_TRACE_f64:
        mg_json_f64(j, mg_trace_f64(r, ix));
        break;
    case MG_TRACE_hex:
        mg_buf_printf(&hex, "0x%llx", (unsigned long long)v);
        mg_json_str(j, hex.at);
        break;
    case MG_TRACE_name:
    case MG_TRACE_text:
        json_text(j, text, n);
        break;
    case MG_TRACE_bytes:
        print_bytes(&hex, text, n);
        mg_json_str(j, n ? hex.at : "");
        break;
    case MG_TRACE_words:
        json_words(j, f, text, n / 8);
        break;
    default:
        mg_json_u64(j, v);
        break;
    }
    mg_buf_release(&hex);
}

void mg_trace_print_json(const struct mg_trace_record *r, struct mg_buf *out)
{
    struct mg_json j;
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_str(&j, "kind", r->kind->name);
    mg_json_key_u64(&j, "pid", r->file->pid);
    mg_json_key_u64(&j, "stream", r->stream);
    mg_json_key_u64(&j, "tid", r->tid);
    mg_json_key_u64_if(&j, "time_ns", r->has_time, r->time);
    mg_json_key(&j, "fields");
    mg_json_obj(&j);
    for (uint32_t i = 0; i < r->kind->n_fields; i++) json_field(r, i, &j);
    mg_json_end(&j, '}');
    mg_json_end(&j, '}');
}
