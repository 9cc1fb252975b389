/* Counts of an earlier run, by kernel and block: what a plan prices its counters by. */
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/number.h"
#include "count/counters.h"

struct weight {
    char *kernel;
    uint32_t block;
    uint64_t count;
};
struct mg_count_weights {
    struct weight *at;
    uint32_t n, cap;
};

struct mg_count_weights *mg_count_weights_read(const char *path, struct mg_diag *d)
{
    char *text = NULL, *save = NULL;
    size_t len;
    if (mg_io_read(path, &text, &len, d)) return NULL;
    struct mg_count_weights *w = mg_xcalloc(1, sizeof *w);
    unsigned line = 0;
    for (char *s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
        char *name = s, *block = strchr(s, ' '), *count = block ? strchr(block + 1, ' ') : NULL;
        uint64_t number = 0;
        line++;
        if (*s == '#') continue;
        struct weight one = {0};
        if (count) *count = 0;
        bool good = count && mg_number_u64(block + 1, false, 0, UINT32_MAX, &number) &&
                    mg_number_u64(count + 1, false, 0, UINT64_MAX, &one.count);
        one.block = (uint32_t)number;
        if (!good) {
            mg_diag_err(d, MG_ERR_INPUT, "%s: line %u is not \"KERNEL BLOCK COUNT\"", path, line);
            mg_count_weights_free(w);
            free(text);
            return NULL;
        }
        *block = 0;
        one.kernel = mg_xstrdup(name);
        if (w->n == w->cap) w->at = mg_xrealloc(w->at, sizeof *w->at * (w->cap = w->cap ? 2 * w->cap : 64));
        w->at[w->n++] = one;
    }
    free(text);
    return w;
}

void mg_count_weights_free(struct mg_count_weights *w)
{
    if (!w) return;
    for (uint32_t i = 0; i < w->n; i++) free(w->at[i].kernel);
    free(w->at);
    free(w);
}

uint64_t *mg_count_weights_of(const struct mg_count_weights *w, const char *kernel, uint32_t n)
{
    uint64_t *counts = NULL;
    for (uint32_t i = 0; w && i < w->n; i++) {
        if (w->at[i].block >= n || strcmp(w->at[i].kernel, kernel)) continue;
        if (!counts) counts = mg_xcalloc(n + 1, sizeof *counts);
        counts[w->at[i].block] = w->at[i].count;
    }
    return counts;
}
