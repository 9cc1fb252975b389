/* See trace_damage.h. */
#include "cli/trace_damage.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"

static bool still_grows(const struct mg_trace_file *f)
{
    return !f->bad_header && !f->closed && (!kill((pid_t)f->pid, 0) || errno == EPERM);
}

/* Did the process that wrote it end its recording? Else a torn end is what its death left. */
static bool was_closed(const struct mg_recording *p, const struct mg_trace_file *f)
{
    for (uint32_t i = 0; i < p->n_processes; i++)
        if (!f->bad_header && p->processes[i].pid == f->pid) return p->processes[i].closed;
    return true;
}

static int say_lost(const struct mg_trace_reader *r, const struct mg_recording *p)
{
    int status = MG_EXIT_OK;
    for (uint32_t i = 0; i < mg_trace_n_files(r); i++) {
        const struct mg_trace_file *f = mg_trace_file(r, i);
        if ((!f->bad_header && !f->damaged_bytes) || still_grows(f)) continue;
        if (f->bad_header)
            fprintf(
                stderr,
                "margay: %s: its head is damaged: its process is taken from its name, its rank and host are not known\n",
                f->path);
        else
            fprintf(stderr, "margay: %s: %" PRIu64 " bytes belong to no chunk: torn or damaged\n", f->path,
                    f->damaged_bytes);
        if (!p || was_closed(p, f)) status = MG_EXIT_INPUT;
    }
    return status;
}

int mg_trace_say_lost(const struct mg_trace_reader *r)
{
    return say_lost(r, NULL);
}

int mg_trace_say_lost_of(const char *dir, const struct mg_recording *p)
{
    struct mg_buf path = MG_BUF_INIT;
    struct mg_trace_reader *r = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    int status = MG_EXIT_OK;
    mg_buf_printf(&path, "%s/trace", dir);
    if (!access(path.at, F_OK)) {
        if (mg_trace_reader_open(dir, &r, &d) || d.n_errors) status = mg_cli_fail(&d, MG_EXIT_INPUT);
        if (r && say_lost(r, p)) status = MG_EXIT_INPUT;
    }
    mg_trace_reader_free(r);
    mg_diag_release(&d);
    mg_buf_release(&path);
    return status;
}
