/* margay study subset: profiles in, a selection of launches and its errors out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/study.h"
#include "cli/study_runs.h"
#include "study/subset_report.h"

static const struct mg_opt_page page = {
    "study subset", "DIR... [OPTIONS]", "which launches stand for the whole program",
    "The first DIR selects; it was recorded with -t blocks. The others are runs of the same launches that judge: the "
    "error on them is\n"
    "the held-out one. A run for its times needs no counts (-t timeline).\n"
    "DIR,DIR,... are runs of one kind: of each launch the median of its times counts.\n"
    "methods: simpoint (GT-Pin's), pka, sieve, stem, random, systematic, first, name, margay (ours, with a 95 % "
    "interval)\n"
    "features: KN KN-ARGS KN-GWS KN-ARGS-GWS KN-RW BB BB-R BB-W BB-R-W BB-(R+W), ours BB+BYTES BB+WARPS OPS\n"};

struct subset_cli {
    struct mg_subset_opts o;
    const char *interval, *features, *times, *vectors, *simpoints, *launches, *results;
    uint64_t max_clusters, n, interval_size;
    bool json, all, ours, other_input, least;
    MG_VEC(struct mg_subset_program *) runs; /* the selecting one first */
    struct mg_buf out;
};

static int find_interval(const char *name)
{
    for (int i = 0; i < MG_INTERVAL_COUNT; i++)
        if (!strcmp(mg_interval_names[i], name)) return i;
    return -1;
}

/* A run that selects, by its counts or its times, would judge itself. */
static enum mg_err refuse_own(const char *selecting, const char *judging, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    const char *at = judging;
    for (char *judge; !err && (judge = mg_study_next_dir(&at, judging)); free(judge)) {
        const char *from = selecting;
        for (char *own; !err && (own = mg_study_next_dir(&from, selecting)); free(own))
            if (mg_study_same_dir(own, judge))
                err = mg_diag_err(d, MG_ERR_INPUT, "%s selects and judges: it would be judged by itself", judge);
    }
    return err;
}

static enum mg_err open_run(struct subset_cli *c, const char *list, struct mg_diag *d)
{
    struct mg_subset_program *p;
    enum mg_err err = mg_study_open(list, c->runs.n ? c->runs.at[0] : NULL, c->other_input, c->least, &p, d);
    if (err) return err;
    *mg_vec_push(&c->runs) = p;
    if (c->other_input && c->runs.n > 1 && p->n_counted < c->runs.at[0]->n_counted)
        err = mg_diag_err(d, MG_ERR_INPUT, "%s: a run of another input needs counts of its own (-t blocks)", list);
    return err;
}

static enum mg_err use_times(struct subset_cli *c, struct mg_diag *d)
{
    struct mg_subset_program *p, *s = c->runs.at[0];
    enum mg_err err = mg_study_open(c->times, s, false, c->least, &p, d);
    if (err) return err;
    mg_subset_program_times(s, p);
    mg_subset_program_free(p);
    return MG_ERR_OK;
}

static enum mg_err write_file(const char *path, const char *suffix, struct mg_buf *text, struct mg_diag *d)
{
    struct mg_buf name = MG_BUF_INIT;
    mg_buf_printf(&name, "%s%s", path, suffix);
    enum mg_err err = mg_io_write(name.at, text->n ? text->at : "", text->n, d);
    mg_buf_release(&name);
    mg_buf_reset(text);
    return err;
}

static enum mg_err write_files(struct subset_cli *c, const struct mg_subset_view *w, struct mg_diag *d)
{
    struct mg_buf text = MG_BUF_INIT;
    enum mg_err err = MG_ERR_OK;
    if (c->simpoints) {
        mg_subset_simpoints(w->s, &text);
        err = write_file(c->simpoints, ".simpoints", &text, d);
        mg_subset_weights(w->s, &text);
        if (!err) err = write_file(c->simpoints, ".weights", &text, d);
        if (!err && mg_subset_labels(w->s, &text)) err = write_file(c->simpoints, ".labels", &text, d);
    }
    if (!err && c->launches) {
        mg_subset_launches(w, &text);
        err = write_file(c->launches, "", &text, d);
    }
    mg_buf_release(&text);
    return err;
}

static enum mg_err print_results(struct subset_cli *c, const struct mg_subset_view *w, struct mg_diag *d)
{
    char *text;
    size_t bytes;
    enum mg_err err = mg_io_read(c->results, &text, &bytes, d);
    if (err) return err;
    err = mg_subset_project(w, text, bytes, c->results, c->json, &c->out, d);
    free(text);
    return err;
}

/* v was filled. */
static enum mg_err select_from(struct subset_cli *c, const struct mg_vectors *v, struct mg_diag *d)
{
    struct mg_subset s;
    struct mg_subset_view w = {.s = &s, .interval = c->o.interval, .feature = c->o.feature};
    if (c->runs.n) {
        w.program = c->runs.at[0];
        w.judges = c->runs.at + 1;
        w.n_judges = c->runs.n - 1;
    }
    enum mg_err err = mg_subset_init(&s, v, &c->o, d);
    if (!err) err = write_files(c, &w, d);
    if (!err && c->results)
        err = print_results(c, &w, d);
    else if (!err && c->json)
        mg_subset_json(&w, &c->out);
    else if (!err)
        mg_subset_text(&w, &c->out);
    mg_subset_release(&s);
    return err;
}

static enum mg_err study_vectors(struct subset_cli *c, struct mg_diag *d)
{
    struct mg_vectors v;
    char *text;
    size_t bytes;
    enum mg_err err = mg_io_read(c->vectors, &text, &bytes, d);
    if (err) return err;
    err = mg_vectors_parse(&v, text, bytes, c->vectors, d);
    if (!err) err = select_from(c, &v, d);
    if (!err) mg_vectors_release(&v);
    free(text);
    return err;
}

static enum mg_err study_runs(struct subset_cli *c, char **dirs, int n, struct mg_diag *d)
{
    struct mg_vectors v;
    enum mg_err err = MG_ERR_OK;
    for (int i = 1; i < n && !err; i++) {
        err = refuse_own(dirs[0], dirs[i], d);
        if (!err && c->times) err = refuse_own(c->times, dirs[i], d);
    }
    for (int i = 0; i < n && !err; i++) err = open_run(c, dirs[i], d);
    if (!err && c->times) err = use_times(c, d);
    if (err) return err;
    if (c->all) {
        struct mg_exploration x;
        err = mg_exploration_init(&x, c->runs.at[0], c->runs.at + 1, c->runs.n - 1, &c->o, c->ours, d);
        if (!err && c->json)
            mg_exploration_json(&x, &c->out);
        else if (!err)
            mg_exploration_text(&x, &c->out);
        return err;
    }
    err = mg_vectors_init(&v, c->runs.at[0], c->o.interval, c->o.feature, c->o.interval_insts, d);
    if (err) return err;
    err = select_from(c, &v, d);
    mg_vectors_release(&v);
    return err;
}

/* Options that some methods alone take. */
static const struct of_methods {
    const char *option, *methods;
} of_methods[] = {{"--size", "random systematic first margay"},
                  {"--threshold", "pka stem margay"},
                  {"--features", "simpoint"},
                  {"--use-times", "margay"}};

static bool takes(const struct of_methods *x, const char *method)
{
    size_t n = strlen(method);
    for (const char *m = x->methods; m; m = strchr(m, ' '), m += !!m)
        if (strcspn(m, " ") == n && !strncmp(m, method, n)) return true;
    return false;
}

/* 0; else the status of a wrong combination of options. */
static int check_options(struct subset_cli *c, int n)
{
    int interval = find_interval(c->interval), feature = mg_feature_find(c->features ? c->features : "BB");
    const bool given[] = {c->n, c->o.threshold_pct > 0, c->features, c->o.use_times}; /* ORDER of_methods */
    const struct mg_method *m = mg_method_find(c->o.method);
    if (feature < 0) return mg_opt_usage(&page, MG_EXIT_USAGE, "there are no features %.100s", c->features);
    if (c->vectors && (n || c->all || c->times || c->launches || c->results))
        return mg_opt_usage(&page, MG_EXIT_USAGE,
                            "--vectors stands in place of profiles, without --all, --times, --launches and --project");
    if (c->vectors && strcmp(m->name, "simpoint"))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "--vectors is for method simpoint");
    if (!c->vectors && !n) return mg_opt_usage(&page, MG_EXIT_USAGE, "needs a profile directory");
    if (c->all && (strcmp(m->name, "simpoint") || c->simpoints || c->launches || c->results))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "--all tries method simpoint and writes no files");
    for (uint32_t i = 0; i < MG_COUNT_OF(of_methods); i++)
        if (given[i] && !takes(&of_methods[i], m->name))
            return mg_opt_usage(&page, MG_EXIT_USAGE, "%s is not for method %s but for: %s", of_methods[i].option,
                                m->name, of_methods[i].methods);
    c->o.interval = (enum mg_interval_kind)interval;
    c->o.feature = (enum mg_feature_kind)feature;
    c->o.max_clusters = (uint32_t)c->max_clusters;
    c->o.n = (uint32_t)c->n;
    c->o.interval_insts = (double)c->interval_size;
    return 0;
}

int study_subset(int argc, char **argv)
{
    struct subset_cli c = {.o = {.size = sizeof c.o, .method = "simpoint", .seed = 1},
                           .interval = "launch",
                           .max_clusters = 10,
                           .interval_size = 100000000};
    struct mg_diag d = MG_DIAG_INIT;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_CHOICE(0, "method", &c.o.method, "simpoint|pka|sieve|stem|random|systematic|first|name|margay",
                      "how to select (simpoint)"),
        MG_OPT_CHOICE(0, "interval", &c.interval, "launch|sync|instructions",
                      "what is selected: launches, or what lies between synchronising calls (launch)"),
        MG_OPT_U64(0, "interval-size", &c.interval_size, 1, UINT64_MAX / 2, "N",
                   "thread instructions of an interval by instructions (100000000)"),
        MG_OPT_STR(0, "features", &c.features, "F", "feature vectors of simpoint (BB)"),
        MG_OPT_U64(0, "max-clusters", &c.max_clusters, 1, 1000, "N", "clusters of simpoint at most (10)"),
        MG_OPT_U64(0, "size", &c.n, 1, UINT32_MAX / 4, "N", "random, systematic, first, margay: intervals to select"),
        MG_OPT_F64(0, "threshold", &c.o.threshold_pct, 1e-3, 100, "PCT",
                   "pka, stem, margay: error to aim at (5, 5, 2)"),
        MG_OPT_U64(0, "seed", &c.o.seed, 0, UINT64_MAX / 2, "N", "of whatever is drawn (1)"),
        MG_OPT_STR(0, "times", &c.times, "DIR", "times of the selecting run from there: the same launches, native"),
        MG_OPT_FLAG(0, "least", &c.least, "of runs joined by commas the least time of each launch, not the median"),
        MG_OPT_FLAG(0, "use-times", &c.o.use_times, "margay: times of the selecting run decide, too"),
        MG_OPT_FLAG(0, "other-input", &c.other_input, "runs that judge may have other grids and counts"),
        MG_OPT_FLAG(0, "all", &c.all, "simpoint: every interval with every feature, thresholds, Pareto front"),
        MG_OPT_FLAG(0, "ours", &c.ours, "--all: with our own features, too"),
        MG_OPT_STR(0, "vectors", &c.vectors, "FILE", "cluster SimPoint frequency vectors in place of a profile"),
        MG_OPT_STR(0, "simpoints", &c.simpoints, "PREFIX", "write PREFIX.simpoints, PREFIX.weights, PREFIX.labels"),
        MG_OPT_STR(0, "launches", &c.launches, "FILE",
                   "write the selected launches for tracers: numbers and weights (CSV)"),
        MG_OPT_STR(0, "project", &c.results, "FILE",
                   "extrapolate results of the selected launches (CSV) to the program"),
        MG_OPT_FLAG(0, "json", &c.json, "as JSON"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    status = check_options(&c, n);
    if (status) return status;
    enum mg_err err = c.vectors ? study_vectors(&c, &d) : study_runs(&c, argv, n, &d);
    if (!err) (void)mg_cli_fail(&d, MG_EXIT_OK); /* warnings */
    status = err ? mg_cli_fail(&d, MG_EXIT_INPUT) : mg_cli_out(&c.out);
    for (uint32_t i = 0; i < c.runs.n; i++) mg_subset_program_free(c.runs.at[i]);
    mg_vec_release(&c.runs);
    mg_buf_release(&c.out);
    mg_diag_release(&d);
    return status;
}
