/* See run_tell.h. Several processes of a run leave a text each; figures are added up, and the first
 * difference is that of the first process that has one. The texts are ours (inject/verify.c), compact
 * and without nested keys of the same name in front of the ones looked for. */
#include "cli/run_tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/demangle.h"

static const char *find(const char *json, const char *key) /* what follows "key": */
{
    char pattern[64];
    int n = snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *at = json ? strstr(json, pattern) : NULL;
    return at ? at + n : NULL;
}

static unsigned long long number(const char *json, const char *key)
{
    const char *at = find(json, key);
    return at ? strtoull(at, NULL, 10) : 0;
}

static void text(const char *json, const char *key, char *to, size_t room)
{
    const char *at = find(json, key);
    size_t n = at && *at == '"' ? strcspn(at + 1, "\"") : 0;
    snprintf(to, room, "%.*s", (int)n, n ? at + 1 : "");
}

static const char *next(const struct mg_recording *p, const char *key, uint32_t *at)
{
    while (*at < p->n_tools) {
        const struct mg_ptool *t = &p->tools[(*at)++];
        if (!strcmp(t->tool, "margay") && !strcmp(t->key, key))
            return t->json;
    }
    return NULL;
}

static const char *plural(unsigned long long n) { return n == 1 ? "" : "s"; }

static void say_difference(const char *first, unsigned long long n)
{
    char name[4096], address[32], error[64], where[96];
    text(first, "kernel", name, sizeof name);
    text(first, "address", address, sizeof address);
    text(first, "error", error, sizeof error);
    char *shown = mg_demangle(name);
    fprintf(stderr, "margay: --verify: %llu launch%s of instrumented code did what native code does not; the first: launch %llu, kernel %s, ", n,
            n == 1 ? "" : "es", number(first, "launch"), shown ? shown : name);
    snprintf(where, sizeof where, "offset %llu of a variable", number(first, "offset"));
    if (find(first, "allocation") && strncmp(find(first, "allocation"), "null", 4))
        snprintf(where, sizeof where, "allocation %llu, offset %llu", number(first, "allocation"), number(first, "offset"));
    if (*error)
        fprintf(stderr, "ended with %s\n", error);
    else
        fprintf(stderr, "address %s (%s) holds 0x%02llx, natively 0x%02llx; %llu byte%s differ%s%s\n", address, where,
                number(first, "instrumented"), number(first, "native"), number(first, "bytes"), plural(number(first, "bytes")),
                number(first, "bytes") == 1 ? "s" : "", find(first, "atomics") && *find(first, "atomics") == 't' ? "; it uses results of atomics, whose order may be the cause" : "");
    free(shown);
}

/* "2 captured in a graph, 1 it prints" of all processes. */
static unsigned long long list_refusals(const char *json, struct mg_buf *out)
{
    unsigned long long sum = 0;
    const char *at = find(json, "not_compared");
    while (at && (at = find(at, "reason"))) {
        char why[200];
        snprintf(why, sizeof why, "%.*s", (int)strcspn(at + 1, "\""), at + 1);
        mg_buf_printf(out, "%s%llu: %s", out->n ? "; " : "", number(at, "launches"), why);
        sum += number(at, "launches");
    }
    return sum;
}

bool mg_run_tell_verify(const struct mg_recording *p, bool quiet)
{
    struct mg_buf why = MG_BUF_INIT;
    unsigned long long launches = 0, excluded = 0, differ = 0, not = 0;
    const char *json, *first = NULL;
    for (uint32_t at = 0; (json = next(p, "verify", &at));) {
        launches += number(json, "launches");
        excluded += number(json, "excluded_bytes");
        differ += number(json, "differences");
        not += list_refusals(json, &why);
        if (!first && find(json, "first") && *find(json, "first") == '{')
            first = find(json, "first");
    }
    if (!quiet)
        fprintf(stderr, "margay: --verify: %llu launch%s compared, %llu byte%s left out that native runs do not repeat; %llu not compared%s%s%s\n",
                launches, launches == 1 ? "" : "es", excluded, plural(excluded), not, not ? " (" : "", not ? why.at : "", not ? ")" : "");
    if (first)
        say_difference(first, differ);
    mg_buf_release(&why);
    return first != NULL;
}

void mg_run_tell_stats(const struct mg_recording *p)
{
    static const struct { const char *key, *word; } steps[] = {
        {"parse_ns", "parse"}, {"analyse_ns", "analyse"}, {"instrument_ns", "instrument"}, {"print_ns", "print"},
        {"jit_ns", "JIT"}, {"load_ns", "load"}, {"execute_ns", "execute"}};
    unsigned long long ns[MG_COUNT_OF(steps)] = {0}, all = 0, kernels = 0, launches = 0, timed = 0, total = 0;
    const char *json;
    for (uint32_t at = 0; (json = next(p, "stats", &at));) {
        for (size_t k = 0; k < MG_COUNT_OF(steps); k++) {
            ns[k] += number(json, steps[k].key);
            all += number(json, steps[k].key);
        }
        kernels += number(json, "kernels");
        launches += number(json, "launches");
        timed += number(json, "timed");
        total += number(json, "total_ns");
    }
    fprintf(stderr, "margay: own time and kernels':");
    for (size_t k = 0; k < MG_COUNT_OF(steps); k++)
        fprintf(stderr, "%s %s %.1f ms (%.1f %%)", k ? "," : "", steps[k].word, (double)ns[k] / 1e6, all ? 100.0 * (double)ns[k] / (double)all : 0.0);
    fprintf(stderr, "; %llu kernel%s instrumented, %llu launch%s (%llu timed), %.1f ms since the first CUDA call\n", kernels, plural(kernels), launches,
            launches == 1 ? "" : "es", timed, (double)total / 1e6);
}
