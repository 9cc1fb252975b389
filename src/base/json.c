/* Streaming JSON writer. */
#include "base/json.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

void mg_json_init(struct mg_json *j, struct mg_buf *out, int indent)
{
    *j = (struct mg_json){.out = out, .indent = indent};
    j->first[0] = true;
}

static void newline(struct mg_json *j)
{
    if (!j->indent) return;
    mg_buf_addc(j->out, '\n');
    for (uint32_t i = 0; i < j->depth * (uint32_t)j->indent; i++) mg_buf_addc(j->out, ' ');
}

static void before_value(struct mg_json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (!j->first[j->depth]) mg_buf_addc(j->out, ',');
    if (j->depth) newline(j);
    j->first[j->depth] = false;
}

static void open_with(struct mg_json *j, char c)
{
    before_value(j);
    mg_buf_addc(j->out, c);
    mg_assert(j->depth + 1 < MG_COUNT_OF(j->first));
    j->first[++j->depth] = true;
}

void mg_json_obj(struct mg_json *j)
{
    open_with(j, '{');
}

void mg_json_arr(struct mg_json *j)
{
    open_with(j, '[');
}

void mg_json_end(struct mg_json *j, char closer)
{
    bool empty = j->first[j->depth];
    mg_assert(j->depth);
    j->depth--;
    if (!empty) newline(j);
    mg_buf_addc(j->out, closer);
}

/* Length of the valid UTF-8 sequence at s, 0 when it is none. */
static size_t utf8_len(const unsigned char *s)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (n < 2) return n;
    uint32_t c = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) return 0;
        c = c << 6 | (s[i] & 63);
    }
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void quoted(struct mg_buf *out, const char *text)
{
    mg_buf_addc(out, '"');
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = 0;
        while (is_plain(s[n])) n++;
        if (n) mg_buf_add(out, s, n);
        s += n;
        if (!*s) break;
        n = utf8_len(s);
        if (*s == '"' || *s == '\\')
            mg_buf_printf(out, "\\%c", *s);
        else if (*s == '\n')
            mg_buf_adds(out, "\\n");
        else if (*s == '\t')
            mg_buf_adds(out, "\\t");
        else if (*s < 0x20 || *s == 0x7f)
            mg_buf_printf(out, "\\u%04x", *s);
        else if (!n)
            mg_buf_adds(out, "\\ufffd");
        else
            mg_buf_add(out, s, n);
        s += n ? n : 1;
    }
    mg_buf_addc(out, '"');
}

void mg_json_key(struct mg_json *j, const char *key)
{
    before_value(j);
    quoted(j->out, key);
    mg_buf_adds(j->out, j->indent ? ": " : ":");
    j->after_key = true;
}

void mg_json_str(struct mg_json *j, const char *s)
{
    before_value(j);
    if (s)
        quoted(j->out, s);
    else
        mg_buf_adds(j->out, "null");
}

void mg_json_u64(struct mg_json *j, uint64_t v)
{
    bool text = j->wide_as_text && v > (uint64_t)1 << 53;
    before_value(j);
    if (text) mg_buf_addc(j->out, '"');
    mg_buf_addu(j->out, v);
    if (text) mg_buf_addc(j->out, '"');
}

void mg_json_i64(struct mg_json *j, int64_t v)
{
    before_value(j);
    mg_buf_printf(j->out, "%lld", (long long)v);
}

void mg_json_f64(struct mg_json *j, double v)
{
    char text[40];
    before_value(j);
    if (!isfinite(v)) {
        mg_buf_adds(j->out, "null");
        return;
    }
    /* Fewer digits than 15 are those 15, zeros left out, but of numbers too small for a double. */
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    if (strchr(text, 'e') && fabs(v) >= 1 && fabs(v) < 1e15)
        snprintf(text, sizeof text, "%.0f", v); /* 100, not 1e+02 */
    size_t point = strspn(text, "-0123456789"); /* an application's locale may write a comma there */
    if (text[point] && text[point] != 'e') {
        size_t n = strcspn(text + point, "0123456789e");
        text[point] = '.';
        memmove(text + point + 1, text + point + n, strlen(text + point + n) + 1);
    }
    mg_buf_adds(j->out, text);
    if (!strpbrk(text, ".eE")) mg_buf_adds(j->out, ".0");
}

void mg_json_bool(struct mg_json *j, bool v)
{
    before_value(j);
    mg_buf_adds(j->out, v ? "true" : "false");
}

void mg_json_null(struct mg_json *j)
{
    before_value(j);
    mg_buf_adds(j->out, "null");
}

void mg_json_raw(struct mg_json *j, const char *json)
{
    before_value(j);
    mg_buf_adds(j->out, json);
}

void mg_json_key_u64(struct mg_json *j, const char *key, uint64_t v)
{
    mg_json_key(j, key);
    mg_json_u64(j, v);
}

void mg_json_key_u64_if(struct mg_json *j, const char *key, bool has, uint64_t v)
{
    mg_json_key(j, key);
    if (has)
        mg_json_u64(j, v);
    else
        mg_json_null(j);
}

void mg_json_key_f64(struct mg_json *j, const char *key, double v)
{
    mg_json_key(j, key);
    mg_json_f64(j, v);
}

void mg_json_key_f64_if(struct mg_json *j, const char *key, bool has, double v)
{
    mg_json_key_f64(j, key, has ? v : NAN);
}

void mg_json_key_str(struct mg_json *j, const char *key, const char *s)
{
    mg_json_key(j, key);
    mg_json_str(j, s && *s ? s : NULL);
}

void mg_json_key_hex(struct mg_json *j, const char *key, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, v);
    mg_json_key_str(j, key, text);
}

void mg_json_key_bool(struct mg_json *j, const char *key, bool v)
{
    mg_json_key(j, key);
    mg_json_bool(j, v);
}

void mg_json_key_dim(struct mg_json *j, const char *key, const uint32_t v[3])
{
    mg_json_key(j, key);
    mg_json_arr(j);
    for (int i = 0; i < 3; i++) mg_json_u64(j, v[i]);
    mg_json_end(j, ']');
}
