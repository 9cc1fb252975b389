/* margay study ctas: which CTAs of a launch stand for all of it. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/io.h"
#include "cli/cli.h"
#include "cli/study.h"
#include "study/subset_ctas.h"

static const struct mg_opt_page page = {
    "study ctas", "DIR [HELD-OUT...] [OPTIONS]", "which CTAs of a long launch stand for all of it",
    "DIR is a profile of the tool ctas: margay run -t ctas,ctas=8192 -o DIR -- ./app. CTAs are selected by their\n"
    "instructions. How well they stand is judged by counts that the selection did not see: entries of loops, and what is\n"
    "named behind DIR: profiles of other runs with -t ctas (their instructions), CSV files with a column cta and columns of\n"
    "numbers (of a one-liner whose map has the key cta, or of a simulator).\n"};

static bool is_dir(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static enum mg_err add_held_out(struct mg_ctas *c, const char *path, struct mg_diag *d)
{
    char *text;
    size_t bytes;
    if (is_dir(path)) return mg_ctas_add_run(c, path, d);
    enum mg_err err = mg_io_read(path, &text, &bytes, d);
    if (err) return err;
    err = mg_ctas_add_csv(c, path, text, bytes, d);
    free(text);
    return err;
}

int study_ctas(int argc, char **argv)
{
    struct mg_subset_opts o = {.size = sizeof o, .method = "margay", .seed = 1};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf out = MG_BUF_INIT;
    struct mg_ctas *c = NULL;
    struct mg_subset s;
    uint64_t launch = UINT64_MAX, size = 0, clusters = 10;
    const char *csv = NULL;
    bool json = false;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_U64(0, "launch", &launch, 0, UINT64_MAX / 2, "N", "which launch (the one with most instructions)"),
        MG_OPT_CHOICE(0, "method", &o.method, "margay|simpoint|sieve|random|systematic|first",
                      "how to select (margay)"),
        MG_OPT_U64(0, "size", &size, 1, UINT32_MAX / 4, "N", "margay, random, systematic, first: CTAs to select"),
        MG_OPT_U64(0, "max-clusters", &clusters, 1, 1000, "N", "clusters of simpoint at most (10)"),
        MG_OPT_F64(0, "threshold", &o.threshold_pct, 1e-3, 100, "PCT", "margay: error to aim at (2)"),
        MG_OPT_U64(0, "seed", &o.seed, 0, UINT64_MAX / 2, "N", "of whatever is drawn (1)"),
        MG_OPT_STR(0, "ctas", &csv, "FILE", "write the selected CTAs: launch, cta, times, weight (CSV)"),
        MG_OPT_FLAG(0, "json", &json, "as JSON"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (!n) return mg_opt_usage(&page, MG_EXIT_USAGE, "needs a profile directory");
    o.n = (uint32_t)size;
    o.max_clusters = (uint32_t)clusters;
    enum mg_err err = mg_ctas_open(argv[0], launch, &c, &d);
    for (int i = 1; i < n && !err; i++) err = add_held_out(c, argv[i], &d);
    if (!err) {
        err = mg_subset_init(&s, &c->v, &o, &d);
        if (!err && csv) {
            mg_ctas_csv(c, &s, &out);
            err = mg_io_write(csv, out.at, out.n, &d);
            mg_buf_reset(&out);
        }
        if (!err) (json ? mg_ctas_json : mg_ctas_text)(c, &s, &out);
        mg_subset_release(&s);
    }
    status = err ? mg_cli_fail(&d, MG_EXIT_INPUT) : mg_cli_out(&out);
    mg_ctas_free(c);
    mg_buf_release(&out);
    mg_diag_release(&d);
    return status;
}
