/* See env.h. */
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *allowed;
} table[MG_ENV_COUNT] = {
#define ENV(id, who, allowed, text) {"MARGAY_" #id, allowed},
#include "base/env.def"
#undef ENV
};

const char *mg_env_name(enum mg_env e)
{
    return table[e].name;
}

static bool is_number(const char *v)
{
    size_t n = strspn(v, "0123456789");
    return n && n < 10 && !v[n];
}

/* NULL: the word itself. */
static const char *find_kind(const char *word, size_t n)
{
    return n != 1 ? NULL : *word == 'N' ? "a number of at most 9 digits" : *word == '/' ? "an absolute path" : NULL;
}

static bool is_allowed(const char *v, const char *allowed)
{
    bool found = !*allowed;
    for (size_t n; *allowed && !found; allowed += n + (allowed[n] != 0)) {
        n = strcspn(allowed, "|");
        const char *kind = find_kind(allowed, n);
        found = !kind ? strlen(v) == n && !memcmp(v, allowed, n) : *allowed == 'N' ? is_number(v) : *v == '/';
    }
    return found;
}

/* An empty one of those that take certain values is as good as none. */
static const char *find_value(enum mg_env e)
{
    const char *v = getenv(table[e].name);
    return v && !*v && *table[e].allowed ? NULL : v;
}

const char *mg_env(enum mg_env e)
{
    const char *v = find_value(e);
    return v && is_allowed(v, table[e].allowed) ? v : NULL;
}

bool mg_env_is(enum mg_env e, const char *value)
{
    const char *v = mg_env(e);
    return v && !strcmp(v, value);
}

bool mg_env_wrong(enum mg_env e, char *text, size_t bytes)
{
    const char *v = find_value(e), *at = table[e].allowed, *before = "";
    if (!v || is_allowed(v, at)) return false;
    size_t n = (size_t)snprintf(text, bytes, "%s=%.40s: it takes ", table[e].name, v);
    for (size_t w; *at && n < bytes; at += w + (at[w] != 0)) {
        w = strcspn(at, "|");
        const char *kind = find_kind(at, w);
        n += (size_t)snprintf(text + n, bytes - n, "%s%.*s", before, kind ? 40 : (int)w, kind ? kind : at);
        before = strchr(at + w + (at[w] != 0), '|') ? ", " : " or ";
    }
    return true;
}
