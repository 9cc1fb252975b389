/* margay study communication: from the trace of a run to who communicates with whom. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/rank.h"
#include "cli/cli.h"
#include "cli/newest.h"
#include "cli/study.h"
#include "cli/study_ranks.h"
#include "study/comm_appendix.h"
#include "study/comm_whole.h"

static const struct mg_opt_page page = {"study communication", "[DIR] [OPTIONS]",
                                        "who reads what whom wrote, from a trace",
                                        "DIR is a profile with a trace (margay run -t trace). Without DIR the newest "
                                        "profile here. Of a run of several processes\n"
                                        "--process says which. Results are the same for every number of workers,\n"
                                        "and under mpirun -n N, where each process takes a share.\n"};

struct study_opts {
    const char *entity, *match, *csv, *html, *svg, *appendix;
    uint64_t workers, process;
    struct mg_comm_link link;
    bool json;
};

static uint32_t find_word(const char *word, const char *words)
{
    uint32_t ix = 0;
    size_t n = word ? strlen(word) : 0;
    for (; word && *words; ix++) {
        size_t len = strcspn(words, "|");
        if (len == n && !strncmp(words, word, n)) return ix;
        words += len + (words[len] == '|');
    }
    return 0;
}

enum mg_err study_find_file(const struct mg_trace_reader *r, uint64_t process, uint32_t *file, struct mg_diag *d)
{
    uint32_t n = mg_trace_n_files(r);
    struct mg_buf pids = MG_BUF_INIT;
    if (n == 1 && !process) {
        *file = 0;
        return MG_ERR_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (process && mg_trace_file(r, i)->pid == process) {
            *file = i;
            return MG_ERR_OK;
        }
        mg_buf_printf(&pids, " %lu", (unsigned long)mg_trace_file(r, i)->pid);
    }
    (void)mg_diag_err(d, MG_ERR_INPUT,
                      n ? "name a process with --process: there are%s"
                        : "the profile has no trace: run it with -t trace%s",
                      n ? pids.at : "");
    mg_buf_release(&pids);
    return MG_ERR_INPUT;
}

/* What a command reads and makes. */
struct work {
    struct mg_trace_reader *r;
    uint32_t file;
    struct mg_comm_whole all;
};

static enum mg_err write_file(const char *path, struct mg_buf *text, struct mg_diag *d)
{
    enum mg_err err = mg_io_write(path, text->n ? text->at : "", text->n, d);
    mg_buf_release(text);
    return err;
}

static enum mg_err write_figures(const char *folder, const struct mg_comm_study *s, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    if (mkdir(folder, 0777) && errno != EEXIST) err = mg_diag_err(d, MG_ERR_IO, "%s: %s", folder, strerror(errno));
    for (uint32_t i = 0; !err; i++) {
        struct mg_buf svg = MG_BUF_INIT;
        char path[PATH_MAX];
        const char *name = mg_comm_figure(s, i, &svg);
        if (!name) break;
        if (snprintf(path, sizeof path, "%s/%s.svg", folder, name) >= (int)sizeof path)
            err = mg_diag_err(d, MG_ERR_INPUT, "%s: the path is too long", folder);
        if (!err && svg.n) err = write_file(path, &svg, d);
        mg_buf_release(&svg);
    }
    return err;
}

static enum mg_err write_appendix(const char *path, struct work *w, struct mg_diag *d)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_comm_ops ops = {0};
    const char *dot = strrchr(path, '.');
    bool pickle = dot && (!strcmp(dot, ".pickle") || !strcmp(dot, ".pkl"));
    enum mg_err err = mg_comm_feed_ops(w->r, w->file, w->all.comm, &ops, d);
    if (!err) {
        mg_comm_print_appendix(&w->all.study, &ops, pickle, &text);
        err = write_file(path, &text, d);
    }
    mg_vec_release(&ops);
    return err;
}

static void print(const struct study_opts *o, const struct mg_comm_study *s, struct mg_buf *out)
{
    struct mg_json j;
    if (!o->json) {
        mg_comm_print_text(s, out);
        return;
    }
    mg_json_init(&j, out, 1);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key(&j, "communication");
    mg_comm_print_json(s, &j);
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
}

static enum mg_err write_all(const struct study_opts *o, struct work *w, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_buf text = MG_BUF_INIT;
    enum mg_err err = MG_ERR_OK;
    if (o->csv) {
        mg_comm_print_csv(&w->all.study, &text);
        err = write_file(o->csv, &text, d);
        w->all.study.transfers_file = o->csv;
    }
    if (!err && o->html) {
        mg_comm_print_html(&w->all.study, &text);
        err = write_file(o->html, &text, d);
    }
    if (!err && o->svg) err = write_figures(o->svg, &w->all.study, d);
    if (!err && o->appendix) err = write_appendix(o->appendix, w, d);
    if (!err) print(o, &w->all.study, out);
    return err;
}

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static enum mg_err study(const char *dir, const struct study_opts *o, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_comm_opts co = {.size = sizeof co,
                              .entity = find_word(o->entity, "cta|warp|thread|sm|kernel"),
                              .match = find_word(o->match, "byte|start"),
                              .workers = (unsigned)o->workers};
    struct work w = {0};
    const struct mg_rank rank = mg_rank_read(get_variable);
    co.rank = rank.size > 1 ? (uint32_t)rank.rank : 0;
    co.ranks = rank.size;
    if (rank.size > 1 && o->appendix)
        return mg_diag_err(d, MG_ERR_INPUT, "--appendix-b is made by one process: the launcher has started %lu",
                           (unsigned long)rank.size);
    enum mg_err err = mg_trace_reader_open(dir, &w.r, d);
    co.keep_addresses = o->appendix != NULL;
    if (!err) err = study_find_file(w.r, o->process, &w.file, d);
    if (!err) err = mg_comm_whole_feed(&w.all, w.r, w.file, &co, d);
    if (!err && rank.size > 1) err = study_join_ranks(mg_trace_file(w.r, w.file)->path, &rank, w.all.comm, d);
    if (!err && !co.rank) {
        mg_comm_whole_finish(&w.all, &o->link);
        err = write_all(o, &w, out, d);
    }
    mg_comm_whole_release(&w.all);
    mg_trace_reader_free(w.r);
    return err;
}

int study_communication(int argc, char **argv)
{
    struct study_opts o = {.link = MG_COMM_H200};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf out = MG_BUF_INIT;
    char newest[PATH_MAX];
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_CHOICE(0, "entity", &o.entity, "cta|warp|thread|sm|kernel", "what communicates; cta without it"),
        MG_OPT_CHOICE(0, "match", &o.match, "byte|start", "by bytes, or by start addresses as the thesis does"),
        MG_OPT_U64(0, "workers", &o.workers, 1, 64, "N", "threads that compute"),
        MG_OPT_U64(0, "process", &o.process, 1, UINT32_MAX, "PID", "this process of the run"),
        MG_OPT_FLAG(0, "json", &o.json, "everything as JSON"),
        MG_OPT_STR(0, "csv", &o.csv, "FILE", "all transfers, one a line"),
        MG_OPT_STR(0, "html", &o.html, "FILE", "a page with all figures"),
        MG_OPT_STR(0, "svg", &o.svg, "DIR", "each figure as a file"),
        MG_OPT_STR(0, "appendix-b", &o.appendix, "FILE",
                   "the thesis' structures: JSON, or pickles if FILE ends in .pickle"),
        MG_OPT_F64(0, "memory-gbs", &o.link.memory_gbs, 1, 1e6, "GB/S",
                   "several GPUs: what a GPU's memory moves; 4800 without it"),
        MG_OPT_F64(0, "link-gbs", &o.link.link_gbs, 0.1, 1e6, "GB/S", "what the link moves in one direction; 450"),
        MG_OPT_F64(0, "link-us", &o.link.latency_us, 0, 1e6, "US", "its latency, once a superstep; 5"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (o.appendix && o.entity && strcmp(o.entity, "cta"))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "--appendix-b is of CTAs");
    if (n > 1) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes one profile directory");
    if (!n && !mg_newest_profile(0, newest))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "there is no profile here: name its directory");
    enum mg_err err = study(n ? argv[0] : newest, &o, &out, &d);
    status = err ? mg_cli_fail(&d, MG_EXIT_INPUT) : mg_cli_out(&out);
    mg_buf_release(&out);
    mg_diag_release(&d);
    return status;
}
