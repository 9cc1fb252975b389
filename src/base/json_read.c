#include "base/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

struct reader {
    struct mg_arena *arena;
    const char *at, *end;
};

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

static bool skip_char(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static bool skip_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n)) return false;
    r->at += n;
    return true;
}

/* ---- strings ------------------------------------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static bool read_hex4(struct reader *r, uint32_t *code)
{
    *code = 0;
    if (r->end - r->at < 4) return false;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*r->at++);
        if (digit < 0) return false;
        *code = *code << 4 | (uint32_t)digit;
    }
    return true;
}

/* One code point as UTF-8; a lone surrogate and 0 become U+FFFD. */
static char *add_utf8(char *to, uint32_t code)
{
    if (!code || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 63));
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    }
    return to;
}

/* Behind "\u". */
static bool read_unicode(struct reader *r, char **to)
{
    uint32_t code, low;
    if (!read_hex4(r, &code)) return false;
    if (code >= 0xd800 && code < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u') {
        struct reader behind = *r;
        behind.at += 2;
        if (!read_hex4(&behind, &low)) return false;
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            r->at = behind.at;
        }
    }
    *to = add_utf8(*to, code);
    return true;
}

/* The text behind an opening quote, up to the closing one; NULL: it is not well formed. A decoded text is never
 * longer than its source. */
static const char *read_string(struct reader *r)
{
    static const char escapes[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    const char *quote = r->at;
    while (quote < r->end && *quote != '"') quote += *quote == '\\' && quote + 1 < r->end ? 2 : 1;
    if (quote >= r->end) return NULL;
    char *text = mg_arena_alloc(r->arena, (size_t)(quote - r->at) + 1), *to = text;
    while (r->at < quote) {
        char c = *r->at++;
        if ((unsigned char)c < 0x20) return NULL;
        if (c != '\\') {
            *to++ = c;
            continue;
        }
        c = *r->at++;
        const char *known = c ? strchr(escapes, c) : NULL;
        if (known)
            *to++ = meaning[known - escapes];
        else if (c != 'u' || !read_unicode(r, &to))
            return NULL;
    }
    if (r->at != quote) return NULL;
    r->at++;
    *to = 0;
    return text;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

static bool read_number(struct reader *r, struct mg_jval *v)
{
    char text[64], *stop;
    size_t n = 0;
    bool whole = true;
    while (r->at + n < r->end && n < sizeof text - 1 && strchr("+-.0123456789eE", r->at[n]) && r->at[n]) {
        whole = whole && r->at[n] >= '0' && r->at[n] <= '9';
        text[n] = r->at[n];
        n++;
    }
    text[n] = 0;
    if (!n || *text == '+' || *text == '.' || *text == 'e' || *text == 'E') return false;
    r->at += n;
    if (whole && n <= 20) {
        uint64_t u = 0;
        bool fits = true;
        for (size_t i = 0; i < n && fits; i++) {
            uint64_t digit = (uint64_t)(text[i] - '0');
            fits = u <= (UINT64_MAX - digit) / 10;
            if (fits) u = u * 10 + digit;
        }
        if (fits) {
            v->kind = MG_JVAL_U64;
            v->u = u;
            return true;
        }
    }
    v->kind = MG_JVAL_F64;
    v->f = strtod(text, &stop);
    return !*stop && isfinite(v->f);
}

/* ---- values ----------------------------------------------------------------------------------------------- */

static bool read_value(struct reader *r, struct mg_jval *v, int depth);

static bool read_list(struct reader *r, struct mg_jval *v, char closer, int depth)
{
    const struct mg_jval **link = &v->first;
    v->kind = closer == '}' ? MG_JVAL_OBJECT : MG_JVAL_ARRAY;
    v->first = NULL;
    if (skip_char(r, closer)) return true;
    do {
        struct mg_jval *element = mg_arena_new(r->arena, struct mg_jval);
        if (closer == '}' && (!skip_char(r, '"') || !(element->key = read_string(r)) || !skip_char(r, ':')))
            return false;
        if (!read_value(r, element, depth + 1)) return false;
        *link = element;
        link = &element->next;
        v->n++;
    } while (skip_char(r, ','));
    return skip_char(r, closer);
}

static bool read_value(struct reader *r, struct mg_jval *v, int depth)
{
    skip_space(r);
    if (r->at == r->end || depth > MOST_DEPTH) return false;
    switch (*r->at) {
    case '{':
        r->at++;
        return read_list(r, v, '}', depth);
    case '[':
        r->at++;
        return read_list(r, v, ']', depth);
    case '"':
        r->at++;
        v->kind = MG_JVAL_TEXT;
        return (v->text = read_string(r)) != NULL;
    case 'n':
        v->kind = MG_JVAL_NULL;
        return skip_word(r, "null");
    case 't':
        v->kind = MG_JVAL_BOOL;
        v->yes = true;
        return skip_word(r, "true");
    case 'f':
        v->kind = MG_JVAL_BOOL;
        return skip_word(r, "false");
    default:
        return read_number(r, v);
    }
}

const struct mg_jval *mg_jval_parse(struct mg_arena *arena, const char *text, size_t bytes)
{
    struct reader r = {arena, text, text + bytes};
    struct mg_jval *v = mg_arena_new(arena, struct mg_jval);
    if (!read_value(&r, v, 0)) return NULL;
    skip_space(&r);
    return r.at == r.end ? v : NULL;
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

const struct mg_jval *mg_jval_first(const struct mg_jval *list)
{
    return list && (list->kind == MG_JVAL_ARRAY || list->kind == MG_JVAL_OBJECT) ? list->first : NULL;
}

const struct mg_jval *mg_jval_get(const struct mg_jval *object, const char *key)
{
    if (!object || object->kind != MG_JVAL_OBJECT) return NULL;
    for (const struct mg_jval *v = object->first; v; v = v->next)
        if (!strcmp(v->key, key)) return v;
    return NULL;
}

bool mg_jval_is_number(const struct mg_jval *v)
{
    return v && (v->kind == MG_JVAL_U64 || v->kind == MG_JVAL_F64);
}

double mg_jval_number(const struct mg_jval *v)
{
    if (!mg_jval_is_number(v)) return 0;
    return v->kind == MG_JVAL_U64 ? (double)v->u : v->f;
}

uint64_t mg_jval_u64(const struct mg_jval *object, const char *key)
{
    const struct mg_jval *v = mg_jval_get(object, key);
    return v && v->kind == MG_JVAL_U64 ? v->u : 0;
}

double mg_jval_f64(const struct mg_jval *object, const char *key)
{
    return mg_jval_number(mg_jval_get(object, key));
}

bool mg_jval_yes(const struct mg_jval *object, const char *key)
{
    const struct mg_jval *v = mg_jval_get(object, key);
    return v && v->kind == MG_JVAL_BOOL && v->yes;
}

const char *mg_jval_text(const struct mg_jval *object, const char *key)
{
    const struct mg_jval *v = mg_jval_get(object, key);
    return v && v->kind == MG_JVAL_TEXT ? v->text : NULL;
}
