/* The grammar of --launches and what a SPEC says of one launch; no state, see select.c. */
#include "inject/choice.h"

#include <string.h>

#include "base/hash.h"
#include "base/number.h"

static bool read_number(const char **s, uint64_t *v)
{
    const char *end = mg_number_read_u64(*s, v);
    if (!end || (s[0][0] == '0' && (s[0][1] | 32) == 'x')) return false;
    *s = end;
    return true;
}
static bool read_real(const char **s, double *v)
{
    const char *end = mg_number_read_f64(*s, v);
    if (!end) return false;
    *s = end;
    return true;
}
static bool read_word(const char **s, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*s, word, n)) return false;
    *s += n;
    return true;
}

/* One part, up to the comma or the end; NULL, or what is wrong with it. */
static const char *read_part(const char **s, struct mg_choice *c)
{
    struct mg_choice_part p = {0};
    const char *at = *s;
    if (read_word(s, "budget="))
        return read_real(s, &c->budget) && read_word(s, "%") && c->budget <= 100
                   ? NULL
                   : "budget= wants a percentage from 0 to 100, as in budget=5%";
    if (read_word(s, "steady")) {
        c->steady = 3;
        c->by_kernel = true;
        return (!read_word(s, "=") || read_number(s, &c->steady)) && c->steady
                   ? NULL
                   : "steady= wants a number of launches, 1 or more";
    }
    if (c->n_parts == MG_CHOICE_MAX) return "too many parts";
    if (read_word(s, "first=")) {
        p.kind = MG_CHOICE_FIRST;
        c->by_kernel = true;
        if (!read_number(s, &p.a) || !p.a) return "first= wants a number of launches, 1 or more";
    } else if (read_word(s, "random=")) {
        p.kind = MG_CHOICE_RANDOM;
        if (!read_real(s, &p.fraction) || p.fraction <= 0 || p.fraction > 1 ||
            (read_word(s, ":") && !read_number(s, &p.a)))
            return "random= wants a fraction above 0, up to 1, and perhaps a seed, as in random=0.1:42";
    } else if (read_word(s, "%")) {
        p.kind = MG_CHOICE_STEP;
        if (!read_number(s, &p.a) || !p.a) return "% wants a number of launches, 1 or more, as in %10";
    } else {
        if (!read_number(s, &p.a) && **s >= '0' && **s <= '9')
            return "launches have numbers from 0 to 18446744073709551615";
        if (*s == at) return "write N, A-B, A-, %K, first=N, random=F[:SEED], budget=P%, steady[=N], joined by commas";
        p.b = p.a;
        if (read_word(s, "-") && (!**s || **s == ','))
            p.b = UINT64_MAX;
        else if ((*s)[-1] == '-' && !read_number(s, &p.b))
            return "A-B wants whole numbers up to 18446744073709551615";
        if (p.b < p.a) return "the range ends before it begins";
    }
    c->parts[c->n_parts++] = p;
    return NULL;
}

enum mg_err mg_choice_parse(const char *spec, struct mg_choice *out, struct mg_diag *d)
{
    *out = (struct mg_choice){.budget = -1};
    for (const char *s = spec; s; s++) {
        const char *why = read_part(&s, out);
        if (!why && *s && *s != ',')
            why = "write N, A-B, A-, %K, first=N, random=F[:SEED], budget=P%, steady[=N], joined by commas";
        if (why) return mg_diag_err(d, MG_ERR_INPUT, "%s: %s", spec, why);
        if (!*s) break;
    }
    return MG_ERR_OK;
}

static bool fits(const struct mg_choice_part *p, const struct mg_choice_facts *f)
{
    switch (p->kind) {
    case MG_CHOICE_RANGE:
        return f->number >= p->a && f->number <= p->b;
    case MG_CHOICE_STEP:
        return f->number % p->a == 0;
    case MG_CHOICE_FIRST:
        return f->earlier < p->a;
    case MG_CHOICE_RANDOM:
        break;
    }
    return (double)(mg_mix64(mg_mix64(f->number + 1) ^ mg_mix64(p->a + 0x9e3779b97f4a7c15u)) >> 11) * 0x1p-53 <
           p->fraction;
}

enum mg_reason mg_choice_why_not(const struct mg_choice *c, const struct mg_choice_facts *f)
{
    bool taken = !c->n_parts;
    for (uint32_t i = 0; i < c->n_parts && !taken; i++) taken = fits(&c->parts[i], f);
    if (!taken) return MG_REASON_filtered;
    if (c->steady && f->equal >= c->steady) return MG_REASON_steady;
    if (c->budget >= 0 && (double)f->instrumented_ns * 100 > c->budget * (double)f->elapsed_ns)
        return MG_REASON_over_budget;
    return MG_REASON_none;
}
