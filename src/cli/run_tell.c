/* See run_tell.h. Several processes of a run leave a text each (inject/verify.c, session.c); figures are added up, and
 * the first difference is that of the first process that has one. */
#include "cli/run_tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "base/json_read.h"

static unsigned long long number(const struct mg_jval *v, const char *key)
{
    return mg_jval_u64(v, key);
}

/* The next process's text under the key; NULL: there is none left. */
static const struct mg_jval *next(const struct mg_recording *p, const char *key, uint32_t *at, struct mg_arena *arena)
{
    while (*at < p->n_tools) {
        const struct mg_ptool *t = &p->tools[(*at)++];
        bool wanted = !strcmp(t->tool, "margay") && !strcmp(t->key, key) && t->json;
        const struct mg_jval *v = wanted ? mg_jval_parse(arena, t->json, strlen(t->json)) : NULL;
        if (v) return v;
    }
    return NULL;
}

static const char *plural(unsigned long long n)
{
    return n == 1 ? "" : "s";
}

static void say_difference(const struct mg_jval *first, unsigned long long n)
{
    const char *name = mg_jval_text(first, "kernel"), *address = mg_jval_text(first, "address"),
               *error = mg_jval_text(first, "error");
    char where[96];
    name = name ? name : "";
    char *shown = mg_demangle(name);
    fprintf(
        stderr,
        "margay: --verify: %llu launch%s of instrumented code did what native code does not; the first: launch %llu, kernel %s, ",
        n, n == 1 ? "" : "es", number(first, "launch"), shown ? shown : name);
    snprintf(where, sizeof where, "offset %llu of a variable", number(first, "offset"));
    if (mg_jval_is_number(mg_jval_get(first, "allocation")))
        snprintf(where, sizeof where, "allocation %llu, offset %llu", number(first, "allocation"),
                 number(first, "offset"));
    if (error && *error)
        fprintf(stderr, "ended with %s\n", error);
    else
        fprintf(stderr, "address %s (%s) holds 0x%02llx, natively 0x%02llx; %llu byte%s differ%s%s\n",
                address ? address : "", where, number(first, "instrumented"), number(first, "native"),
                number(first, "bytes"), plural(number(first, "bytes")), number(first, "bytes") == 1 ? "s" : "",
                mg_jval_yes(first, "atomics") ? "; it uses results of atomics, whose order may be the cause"
                                              : "; a race may be the cause, too: --check names races");
    free(shown);
}

/* "2 captured in a graph, 1 it prints" of all processes. */
static unsigned long long list_refusals(const struct mg_jval *json, struct mg_buf *out)
{
    unsigned long long sum = 0;
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(json, "not_compared")); v; v = v->next) {
        const char *why = mg_jval_text(v, "reason");
        mg_buf_printf(out, "%s%llu: %s", out->n ? "; " : "", number(v, "launches"), why ? why : "");
        sum += number(v, "launches");
    }
    return sum;
}

bool mg_run_tell_verify(const struct mg_recording *p, bool quiet)
{
    struct mg_buf why = MG_BUF_INIT;
    unsigned long long launches = 0, excluded = 0, differ = 0, not = 0;
    struct mg_arena arena = MG_ARENA_INIT;
    const struct mg_jval *json, *first = NULL;
    for (uint32_t at = 0; (json = next(p, "verify", &at, &arena));) {
        launches += number(json, "launches");
        excluded += number(json, "excluded_bytes");
        differ += number(json, "differences");
        not += list_refusals(json, &why);
        const struct mg_jval *v = first ? NULL : mg_jval_get(json, "first");
        if (v && v->kind == MG_JVAL_OBJECT) first = v;
    }
    if (!quiet)
        fprintf(
            stderr,
            "margay: --verify: %llu launch%s compared, %llu byte%s left out that native runs do not repeat; %llu not compared%s%s%s\n",
            launches, launches == 1 ? "" : "es", excluded, plural(excluded), not, not ? " (" : "", not ? why.at : "",
            not ? ")" : "");
    if (first) say_difference(first, differ);
    bool differs = first != NULL;
    mg_buf_release(&why);
    mg_arena_release(&arena);
    return differs;
}

void mg_run_tell_stats(const struct mg_recording *p)
{
    static const struct {
        const char *key, *word;
    } steps[] = {{"parse_ns", "parse"},    {"analyse_ns", "analyse"}, {"instrument_ns", "instrument"},
                 {"print_ns", "print"},    {"jit_ns", "JIT"},         {"load_ns", "load"},
                 {"execute_ns", "execute"}};
    unsigned long long ns[MG_COUNT_OF(steps)] = {0}, all = 0, kernels = 0, launches = 0, timed = 0, total = 0;
    struct mg_arena arena = MG_ARENA_INIT;
    const struct mg_jval *json;
    for (uint32_t at = 0; (json = next(p, "stats", &at, &arena));) {
        for (size_t k = 0; k < MG_COUNT_OF(steps); k++) {
            ns[k] += number(json, steps[k].key);
            all += number(json, steps[k].key);
        }
        kernels += number(json, "kernels");
        launches += number(json, "launches");
        timed += number(json, "timed");
        total += number(json, "total_ns");
    }
    mg_arena_release(&arena);
    fprintf(stderr, "margay: own time and kernels':");
    for (size_t k = 0; k < MG_COUNT_OF(steps); k++)
        fprintf(stderr, "%s %s %.1f ms (%.1f %%)", k ? "," : "", steps[k].word, (double)ns[k] / 1e6,
                all ? 100.0 * (double)ns[k] / (double)all : 0.0);
    fprintf(stderr, "; %llu kernel%s instrumented, %llu launch%s (%llu timed), %.1f ms since the first CUDA call\n",
            kernels, plural(kernels), launches, launches == 1 ? "" : "es", timed, (double)total / 1e6);
}
