/* Streaming JSON writer into a buffer; commas, escapes and indentation are its business.
 * Invalid UTF-8 is escaped byte by byte as U+FFFD so that the output is always valid JSON. */
#ifndef MG_BASE_JSON_H
#define MG_BASE_JSON_H

#include "base/buf.h"

struct mg_json {
    struct mg_buf *out;
    uint32_t depth;
    bool first[64]; /* nothing written yet at that depth */
    bool after_key;
    int indent;        /* 0: compact */
    bool wide_as_text; /* numbers beyond 2^53 as text: for readers whose numbers are doubles */
};
void mg_json_init(struct mg_json *j, struct mg_buf *out, int indent);
void mg_json_obj(struct mg_json *j);              /* { */
void mg_json_arr(struct mg_json *j);              /* [ */
void mg_json_end(struct mg_json *j, char closer); /* '}' or ']' */
void mg_json_key(struct mg_json *j, const char *key);
void mg_json_str(struct mg_json *j, const char *s); /* NULL writes null */
void mg_json_u64(struct mg_json *j, uint64_t v);
void mg_json_i64(struct mg_json *j, int64_t v);
void mg_json_f64(struct mg_json *j, double v); /* shortest text that reads back; NaN writes null */
void mg_json_bool(struct mg_json *j, bool v);
void mg_json_null(struct mg_json *j);
void mg_json_raw(struct mg_json *j, const char *json); /* one value that is JSON already */
/* A key and its value at once. */
void mg_json_key_u64(struct mg_json *j, const char *key, uint64_t v);
void mg_json_key_u64_if(struct mg_json *j, const char *key, bool has, uint64_t v); /* else null */
void mg_json_key_f64(struct mg_json *j, const char *key, double v);
void mg_json_key_f64_if(struct mg_json *j, const char *key, bool has, double v);
void mg_json_key_str(struct mg_json *j, const char *key, const char *s); /* NULL and "" write null */
void mg_json_key_hex(struct mg_json *j, const char *key, uint64_t v);    /* "0x7f" */
void mg_json_key_bool(struct mg_json *j, const char *key, bool v);
void mg_json_key_dim(struct mg_json *j, const char *key, const uint32_t v[3]);

#endif
