/* JSON text as a tree of values in an arena. For what our own tools wrote (report/facts.h); any bytes are safe to
 * parse. Strings are decoded to UTF-8; whole numbers keep all 64 bits. Members keep their order.
 * Does not: report where a text is wrong, or change values. */
#ifndef MG_BASE_JSON_READ_H
#define MG_BASE_JSON_READ_H

#include "base/arena.h"

enum mg_jval_kind { MG_JVAL_NULL, MG_JVAL_BOOL, MG_JVAL_U64, MG_JVAL_F64, MG_JVAL_TEXT, MG_JVAL_ARRAY, MG_JVAL_OBJECT };
struct mg_jval {
    enum mg_jval_kind kind;
    uint32_t n;      /* ARRAY, OBJECT: elements */
    const char *key; /* of a member; NULL: no member */
    union {
        bool yes;                    /* BOOL */
        uint64_t u;                  /* U64: a whole number from 0 */
        double f;                    /* F64 */
        const char *text;            /* TEXT */
        const struct mg_jval *first; /* ARRAY, OBJECT; NULL: empty */
    };
    const struct mg_jval *next; /* element of the same list */
};

/* NULL: the text is not one JSON value, or nests deeper than 64 levels. Owner: the arena. */
const struct mg_jval *mg_jval_parse(struct mg_arena *arena, const char *text, size_t bytes);

/* All of these take NULL, and values of other kinds, as "not there". */
const struct mg_jval *mg_jval_get(const struct mg_jval *object, const char *key);
const struct mg_jval *mg_jval_first(const struct mg_jval *list); /* for (v = mg_jval_first(l); v; v = v->next) */
bool mg_jval_is_number(const struct mg_jval *v);
double mg_jval_number(const struct mg_jval *v);                      /* 0 where it is none */
uint64_t mg_jval_u64(const struct mg_jval *object, const char *key); /* 0 where it is none */
double mg_jval_f64(const struct mg_jval *object, const char *key);
bool mg_jval_yes(const struct mg_jval *object, const char *key);
const char *mg_jval_text(const struct mg_jval *object, const char *key); /* NULL where it is none */

/* json_skip.c: without a tree. True when text is exactly one JSON value. */
bool mg_json_valid(const char *text);
const char *mg_json_skip(const char *text); /* behind one value; NULL when there is none */

#endif
