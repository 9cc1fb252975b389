/* margay study communication: from the trace of a run to who communicates with whom. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "cli/cli.h"
#include "cli/newest.h"
#include "cli/study.h"
#include "study/comm_print.h"

static const struct mg_opt_page page = {"study communication", "[DIR] [OPTIONS]",
                                        "who reads what whom wrote, from a trace",
                                        "DIR is a profile with a trace (margay run -t trace). Without DIR the newest "
                                        "profile here. Of a run of several processes\n"
                                        "--process says which. Results are the same for every number of workers.\n"};

struct study_opts {
    const char *entity, *match, *csv;
    uint64_t workers, process;
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

/* The file of the process; with one file none has to be named. */
static enum mg_err find_file(const struct mg_trace_reader *r, uint64_t process, uint32_t *file, struct mg_diag *d)
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

static enum mg_err write_all(const struct study_opts *o, struct mg_comm_study *s, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_buf file = MG_BUF_INIT;
    struct mg_json j;
    enum mg_err err = MG_ERR_OK;
    if (o->csv) {
        mg_comm_print_csv(s, &file);
        err = mg_io_write(o->csv, file.at, file.n, d);
        s->transfers_file = o->csv;
    }
    mg_buf_release(&file);
    if (err) return err;
    if (!o->json) {
        mg_comm_print_text(s, out);
        return MG_ERR_OK;
    }
    mg_json_init(&j, out, 1);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key(&j, "communication");
    mg_comm_print_json(s, &j);
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
    return MG_ERR_OK;
}

static enum mg_err study(const char *dir, const struct study_opts *o, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_comm_opts co = {.size = sizeof co,
                              .entity = find_word(o->entity, "cta|warp|thread|sm|kernel"),
                              .match = find_word(o->match, "byte|start"),
                              .workers = (unsigned)o->workers};
    struct mg_trace_reader *r = NULL;
    struct mg_comm_source source;
    struct mg_comm_metrics m;
    uint32_t file = 0;
    enum mg_err err = mg_trace_reader_open(dir, &r, d);
    if (!err) err = find_file(r, o->process, &file, d);
    struct mg_comm *c = err ? NULL : mg_comm_new(&co);
    if (!err) err = mg_comm_feed(r, file, c, &source, d);
    if (!err) {
        struct mg_comm_study s = {.r = mg_comm_finish(c), .m = &m, .source = &source};
        mg_comm_metrics_init(&m, s.r);
        err = write_all(o, &s, out, d);
        mg_comm_metrics_release(&m);
    }
    mg_comm_free(c);
    mg_trace_reader_free(r);
    return err;
}

int study_communication(int argc, char **argv)
{
    struct study_opts o = {0};
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
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n > 1) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes one profile directory");
    if (!n && !mg_newest_profile(0, newest))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "there is no profile here: name its directory");
    enum mg_err err = study(n ? argv[0] : newest, &o, &out, &d);
    status = err ? mg_cli_fail(&d, MG_EXIT_INPUT) : mg_cli_out(&out);
    mg_buf_release(&out);
    mg_diag_release(&d);
    return status;
}
