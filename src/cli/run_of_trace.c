/* See run_of_trace.h. The analysis runs in a process of its own: what it needs in memory costs the program's exit
 * status nothing. */
#include "cli/run_of_trace.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/buffer_names.h"
#include "cli/cli.h"
#include "study/cache.h"
#include "study/comm_whole.h"
#include "tool/of_trace.h"
#include "tool/spec.h"

static bool is_named(const char *given, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(given, name, n) && (!given[n] || given[n] == ',');
}

/* A tool of the trace's by this -t; NULL: it is none. */
static const struct mg_tool *tool_of(const char *given)
{
    for (uint32_t i = 0; mg_tool_at(i); i++)
        if (mg_tool_at(i)->flags & MG_TOOL_OF_TRACE && is_named(given, mg_tool_at(i)->name)) return mg_tool_at(i);
    return NULL;
}

bool mg_run_of_trace(struct mg_opt_list *tools, bool *keeps)
{
    bool any = false;
    *keeps = false;
    for (uint32_t i = 0; i < tools->n; i++) {
        any |= tool_of(tools->at[i]) != NULL;
        *keeps |= is_named(tools->at[i], "trace");
    }
    if (!any || *keeps) return any;
    tools->at = mg_xrealloc(tools->at, (tools->n + 1) * sizeof *tools->at);
    tools->at[tools->n++] = "trace";
    return true;
}

/* ---- one process' trace --------------------------------------------------------------------------------- */

struct traced {
    struct mg_trace_reader *r;
    uint32_t file;
    const struct mg_recording *p;
};

static enum mg_err analyse_communication(const struct traced *t, const struct mg_communication_conf *conf,
                                         struct mg_json *j, struct mg_diag *d)
{
    const struct mg_comm_opts o = {.size = sizeof o, .entity = conf->entity, .match = conf->match};
    const struct mg_comm_link link = MG_COMM_H200;
    struct mg_comm_whole all = {0};
    enum mg_err err = mg_comm_whole_feed(&all, t->r, t->file, &o, d);
    if (!err) mg_comm_whole_finish(&all, &link);
    if (!err) mg_comm_print_json(&all.study, j);
    mg_comm_whole_release(&all);
    return err;
}

static enum mg_err analyse_cache(const struct traced *t, const struct mg_cache_conf *conf, struct mg_json *j,
                                 struct mg_diag *d)
{
    struct mg_buffer_names *names = mg_buffer_names_open(NULL, t->p);
    const struct mg_cache_opts o = {.size = sizeof o,
                                    .l1_bytes = conf->l1_bytes,
                                    .l2_bytes = conf->l2_bytes,
                                    .interleavings = conf->interleavings,
                                    .seed = conf->seed,
                                    .place = mg_buffer_names_place,
                                    .buffer = mg_buffer_names_find,
                                    .buffers = names};
    struct mg_comm_source source;
    struct mg_cache *c = mg_cache_new(&o);
    enum mg_err err = mg_cache_feed(c, t->r, t->file, &source, d);
    if (!err) mg_cache_print_json(mg_cache_finish(c), &source, j);
    mg_cache_free(c);
    mg_buffer_names_free(names);
    return err;
}

/* What one tool finds in a trace, into the profile's database at `path`. */
static enum mg_err analyse(const struct traced *t, const char *given, const char *path, struct mg_diag *d)
{
    const struct mg_tool *tool = tool_of(given);
    const char *args = strchr(given, ',');
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    void *conf = NULL;
    enum mg_err err = mg_tool_configure(tool, args ? args + 1 : "", 0, &conf, d);
    mg_json_init(&j, &text, 0);
    if (!err && !strcmp(tool->name, "cache"))
        err = analyse_cache(t, conf, &j, d);
    else if (!err)
        err = analyse_communication(t, conf, &j, d);
    if (!err) err = mg_store_results(path, tool->name, text.at, d);
    tool->release(conf);
    mg_buf_release(&text);
    return err;
}

/* Are there records beside those of tool trace: of the time line, of another tool? */
static bool holds_others(const struct traced *t)
{
    struct mg_trace_query q = {.size = sizeof q};
    struct mg_trace_cursor *c = mg_trace_cursor_open(t->r, &q);
    const struct mg_trace_record *rec;
    bool any = false;
    while (!any && (rec = mg_trace_next(c))) any = strncmp(rec->kind->name, "trace.", 6) != 0;
    mg_trace_cursor_close(c);
    return any;
}

static bool analyse_file(const struct mg_recording *p, const char *file, const char *db,
                         const struct mg_opt_list *tools, bool keeps)
{
    struct traced t = {.p = p};
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_trace_reader_open(file, &t.r, &d);
    for (uint32_t i = 0; i < tools->n && !err; i++)
        if (tool_of(tools->at[i])) err = analyse(&t, tools->at[i], db, &d);
    if (err) {
        mg_cli_fail(&d, 0);
        fprintf(stderr, "margay: %s stays, and is not analysed\n", file);
    }
    if (!err && !keeps && !holds_others(&t)) unlink(file);
    mg_trace_reader_free(t.r);
    mg_diag_release(&d);
    return !err;
}

/* ---- all processes of the run ----------------------------------------------------------------------------- */

/* The last trace file of a process; false: it has none, for it launched nothing. */
static bool find_trace(const char *dir, uint32_t pid, char file[PATH_MAX])
{
    char next[PATH_MAX];
    struct stat st;
    bool found = false;
    for (int i = 1;; i++) { /* as trace/out.c names them */
        char again[16] = "";
        if (i > 1) snprintf(again, sizeof again, "-%d", i);
        if (snprintf(next, sizeof next, "%s/trace/%u%s.mgt", dir, pid, again) >= (int)sizeof next || stat(next, &st))
            return found;
        memcpy(file, next, sizeof next);
        found = true;
    }
}

static int analyse_all(const struct mg_recording *p, const struct mg_opt_list *tools, bool keeps)
{
    char file[PATH_MAX];
    bool all = true;
    for (uint32_t i = 0; i < p->n_processes; i++) {
        const struct mg_pprocess *q = &p->processes[i];
        if (!find_trace(p->dir, q->pid, file)) continue;
        if (!q->closed && !kill((pid_t)q->pid, 0))
            fprintf(stderr, "margay: process %u still runs: %s stays, and is not analysed\n", q->pid, file);
        else
            all &= analyse_file(p, file, q->path, tools, keeps);
    }
    if (snprintf(file, sizeof file, "%s/trace", p->dir) < (int)sizeof file) rmdir(file); /* if nothing is left in it */
    return !all;
}

bool mg_run_analyse(const struct mg_recording *p, const struct mg_opt_list *tools, bool keeps)
{
    bool any = false;
    int status = 0;
    for (uint32_t i = 0; i < tools->n; i++) any |= tool_of(tools->at[i]) != NULL;
    if (!any) return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) _exit(analyse_all(p, tools, keeps));
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
        fprintf(stderr, "margay: the analysis of the trace ended early; %s/trace stays: margay study\n", p->dir);
    return true;
}
