/* Where a JSON value ends, without reading it. */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

static const char *skip_space(const char *s)
{
    while (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n') s++;
    return s;
}

static const char *skip_string(const char *s)
{
    if (*s++ != '"') return NULL;
    for (; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20) return NULL; /* the end, too */
        if (*s == '\\' && !strchr("\"\\/bfnrtu", *++s)) return NULL;
        if (!*s) return NULL;
    }
    return s + 1;
}

/* Digits alone are a number to strtod, too. */
static const char *skip_number(const char *s)
{
    size_t n = strspn(s, "0123456789");
    char *end;
    if (n && !strchr("-+.eExX", s[n])) return s + n;
    n = strspn(s, "-+.0123456789eE");
    strtod(s, &end);
    return end == s + n ? end : NULL;
}

static const char *skip_value(const char *s, int depth);

static const char *skip_list(const char *s, char close, int depth)
{
    s = skip_space(s + 1);
    if (*s == close) return s + 1;
    for (;;) {
        if (close == '}') {
            if (!(s = skip_string(s))) return NULL;
            s = skip_space(s);
            if (*s++ != ':') return NULL;
        }
        if (!(s = skip_value(s, depth + 1))) return NULL;
        s = skip_space(s);
        if (*s == close) return s + 1;
        if (*s++ != ',') return NULL;
        s = skip_space(s);
    }
}

static const char *skip_value(const char *s, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    s = skip_space(s);
    if (depth > 40) return NULL;
    if (*s == '{') return skip_list(s, '}', depth);
    if (*s == '[') return skip_list(s, ']', depth);
    if (*s == '"') return skip_string(s);
    for (size_t i = 0; *s >= 'a' && i < MG_COUNT_OF(words); i++)
        if (!strncmp(s, words[i], strlen(words[i]))) return s + strlen(words[i]);
    return *s == '-' || (*s >= '0' && *s <= '9') ? skip_number(s) : NULL;
}

const char *mg_json_skip(const char *text)
{
    return skip_value(text, 0);
}

bool mg_json_valid(const char *text)
{
    const char *end = skip_value(text, 0);
    return end && !*skip_space(end);
}
