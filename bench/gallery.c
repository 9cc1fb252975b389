/* Draws what docs/gallery shows of several profiles at once, from a table on stdin:
 *
 *   gallery stacked TITLE < table      first line: a word and the names of series; then label and values,
 *                                      tab-separated
 *   gallery bars TITLE UNIT < table    label and value
 *
 * docs/gallery/README.md says which tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "view/chart.h"

enum { MOST_FIELDS = 16 };

static uint32_t split(char *line, char **fields)
{
    uint32_t n = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *at = line; at && n < MOST_FIELDS; n++) {
        fields[n] = at;
        at = strchr(at, '\t');
        if (at) *at++ = 0;
    }
    return n;
}

int main(int argc, char **argv)
{
    char line[4096], *f[MOST_FIELDS];
    const char *series[MOST_FIELDS];
    uint32_t n_series = 0;
    MG_VEC(const char *) labels = {0};
    MG_VEC(double) values = {0};
    MG_VEC(struct mg_chart_bar) bars = {0};
    struct mg_buf out = MG_BUF_INIT;
    bool stacked = argc == 3 && !strcmp(argv[1], "stacked");
    if (!stacked && (argc != 4 || strcmp(argv[1], "bars")))
        return fprintf(stderr, "usage: gallery stacked TITLE | gallery bars TITLE UNIT\n"), 2;
    if (stacked && fgets(line, sizeof line, stdin)) {
        uint32_t n = split(line, f);
        for (uint32_t i = 1; i < n; i++) series[n_series++] = mg_xstrdup(f[i]);
    }
    while (fgets(line, sizeof line, stdin)) {
        uint32_t n = split(line, f);
        if (n < 2) continue;
        if (stacked) {
            *mg_vec_push(&labels) = mg_xstrdup(f[0]);
            for (uint32_t i = 0; i < n_series; i++) *mg_vec_push(&values) = i + 1 < n ? strtod(f[i + 1], NULL) : 0;
        } else {
            struct mg_buf text = MG_BUF_INIT;
            mg_buf_printf(&text, "%s %s", f[1], argv[3]);
            *mg_vec_push(&bars) = (struct mg_chart_bar){mg_xstrdup(f[0]), strtod(f[1], NULL), mg_buf_take(&text)};
        }
    }
    if (stacked)
        mg_chart_stacked(&out, argv[2], labels.at, labels.n, series, n_series, values.at, NULL);
    else
        mg_chart_bars(&out, argv[2], bars.at, bars.n);
    fwrite(out.at, 1, out.n, stdout); /* a tool that ends frees nothing */
    return 0;
}
