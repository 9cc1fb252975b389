/* margay export: a profile in the form of another program. Stacks come from the profile's counts (report/folded.h), as
 * do features of launches (study/subset_vector.h), all other forms from its time line (export/export.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/cli.h"
#include "cli/newest.h"
#include "cli/trace_damage.h"
#include "export/export.h"
#include "report/folded.h"
#include "study/subset_vector.h"

static const struct mg_opt_page page = {
    "export", "FORM [DIR] -o OUT [OPTIONS]", "write a profile in the form of another program",
    "folded   stacks for flame graphs (flamegraph.pl, speedscope, inferno): kernel, device function, source line, with\n"
    "         thread instructions; with --host the host's stacks (margay run -t timeline,stacks=on)\n"
    "features what each launch or interval does: CSV, or with --features frequency vectors of SimPoint\n"
    "of the time line (margay run -t timeline):\n"
    "perfetto Perfetto's own format (ui.perfetto.dev)\n"
    "chrome   JSON for chrome://tracing, Perfetto, speedscope\n"
    "csv      every span, one a line: OUT is a file named *.csv, or a folder for spans.csv\n"
    "sqlite   a SQLite database: OUT is a file named *.db, or a folder for spans.db\n"
    "otf2     an archive of the Open Trace Format 2 in the folder OUT (needs libopen-trace-format2)\n"
    "tau      TAU's profiles of threads and streams in the folder OUT: profile.N.0.T\n\n"
    "Without DIR the newest profile here; without -o to stdout (not sqlite, otf2, tau).\n"};

#define FORMS "folded, features, perfetto, chrome, csv, sqlite, otf2, tau"

struct export_opts {
    const char *out, *kernel_glob, *interval, *features, *host;
    uint64_t interval_size;
    bool demangle, stages;
};

static int export_folded(const char *dir, const struct export_opts *e)
{
    struct mg_report_opts o = {.size = sizeof o, .kernel_glob = e->kernel_glob};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *p = NULL;
    struct mg_buf text = MG_BUF_INIT;
    int status = MG_EXIT_OK;
    if (mg_recording_open(dir, &p, &d)) {
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    } else {
        mg_report_folded(p, &o, &text);
        if (!e->out)
            status = mg_cli_out(&text);
        else if (mg_io_write(e->out, text.n ? text.at : "", text.n, &d))
            status = mg_cli_fail(&d, MG_EXIT_INPUT);
        status = mg_cli_damaged(p, "the export is of the other processes", status);
    }
    mg_buf_release(&text);
    mg_recording_free(p);
    mg_diag_release(&d);
    return status;
}

static enum mg_err write_host(const char *dir, const struct export_opts *e, struct mg_buf *out, struct mg_diag *d)
{
    int what = 0;
    while (strcmp(mg_folded_host_names[what], e->host)) what++;
    return mg_report_folded_host(dir, (enum mg_folded_host)what, out, d);
}

static enum mg_err write_features(const char *dir, const struct export_opts *e, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_subset_program *p;
    struct mg_vectors v;
    int kind = 0, feature = e->features ? mg_feature_find(e->features) : MG_FEATURE_BB;
    while (e->interval && strcmp(mg_interval_names[kind], e->interval)) kind++;
    enum mg_err err = mg_subset_program_open(dir, &p, d);
    if (err) return err;
    err =
        mg_vectors_init(&v, p, (enum mg_interval_kind)kind, (enum mg_feature_kind)feature, (double)e->interval_size, d);
    if (!err) {
        if (e->features)
            mg_vectors_print(&v, out);
        else
            mg_vectors_print_csv(&v, p, out);
        mg_vectors_release(&v);
    }
    mg_subset_program_free(p);
    return err;
}

/* What is made as a whole. */
static int export_text(const char *dir, const struct export_opts *e)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf text = MG_BUF_INIT;
    int status = MG_EXIT_OK;
    if ((e->host ? write_host : write_features)(dir, e, &text, &d))
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    else if (!e->out)
        status = mg_cli_out(&text);
    else if (mg_io_write(e->out, text.at, text.n, &d))
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    mg_buf_release(&text);
    mg_diag_release(&d);
    return status;
}

/* ---- the time line ------------------------------------------------------------------------------------- */

struct progress {
    uint64_t next_ns;
    bool tty, shown;
};

/* A terminal shows how far a long export is twice a second, a file every ten seconds. */
static void show_progress(void *ctx, uint64_t done, uint64_t all)
{
    struct progress *p = ctx;
    uint64_t now = mg_now_ns();
    if (now < p->next_ns) return;
    p->next_ns = now + (p->tty ? 500000000u : 10000000000u);
    p->shown = true;
    fprintf(stderr, "%smargay: %" PRIu64 " of %" PRIu64 " records, %u %%%s", p->tty ? "\r" : "", done, all,
            (unsigned)(100.0 * (double)done / (double)all), p->tty ? "" : "\n");
}

static int export_spans(const char *form, const char *dir, const struct export_opts *e)
{
    struct progress p = {.tty = isatty(STDERR_FILENO)};
    p.next_ns = mg_now_ns() + (p.tty ? 1000000000u : 10000000000u);
    struct mg_export_opts o = {
        .size = sizeof o,
        .out = e->out,
        .demangle = e->demangle,
        .stages = e->stages,
        .progress = show_progress,
        .ctx = &p,
    };
    struct mg_export_result r;
    struct mg_diag d = MG_DIAG_INIT;
    int status = MG_EXIT_OK;
    if (mg_export(form, dir, &o, &r, &d))
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    else if (p.tty && p.shown)
        fprintf(stderr, "\rmargay: %" PRIu64 " spans            \n", r.spans);
    struct mg_recording *whole = NULL; /* to know the end of a file that a killed process left */
    struct mg_diag none = MG_DIAG_INIT;
    if (mg_recording_open(dir, &whole, &none)) whole = NULL;
    if (mg_trace_say_lost_of(dir, whole)) status = MG_EXIT_INPUT;
    mg_recording_free(whole);
    mg_diag_release(&none);
    if (!status && r.lone_messages)
        fprintf(stderr,
                "margay: %" PRIu64 " of the messages of MPI have one end only on the time line: no arrow is drawn\n",
                r.lone_messages);
    if (!status && r.damaged) {
        fprintf(stderr, "margay: %" PRIu64 " damaged chunk%s left out (margay trace verify)\n", r.damaged,
                r.damaged == 1 ? "" : "s");
        status = MG_EXIT_INPUT;
    }
    mg_diag_release(&d);
    return status;
}

int cmd_export(int argc, char **argv)
{
    struct export_opts e = {.interval_size = 100000000};
    char newest[PATH_MAX];
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_STR('o', "output", &e.out, "OUT", "write it there"),
        MG_OPT_STR(0, "kernel", &e.kernel_glob, "GLOB", "folded: only kernels whose name matches"),
        MG_OPT_CHOICE(0, "host", &e.host, "launches|wait|device",
                      "folded: the host's stacks, by launches, ns of calls that wait, or ns of device work launched"),
        MG_OPT_CHOICE(0, "interval", &e.interval, "launch|sync|instructions",
                      "features: a row for each of these (launch)"),
        MG_OPT_U64(0, "interval-size", &e.interval_size, 1, UINT64_MAX / 2, "N",
                   "features: thread instructions of an interval by instructions"),
        MG_OPT_STR(0, "features", &e.features, "F", "features: vectors of these, as margay study subset names them"),
        MG_OPT_FLAG(0, "stages", &e.stages, "perfetto: device work as render stages, in the viewer's group of GPUs"),
        MG_OPT_FLAG(0, "demangle", &e.demangle, "time line: kernels by their C++ names"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    const char *form = n ? argv[0] : NULL;
    bool folded = form && !strcmp(form, "folded"), features = form && !strcmp(form, "features");
    if (!form) return mg_opt_usage(&page, MG_EXIT_USAGE, "needs a form: " FORMS);
    if (!folded && !features && !mg_export_summary(form))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "no form %.100s: there are " FORMS, form);
    if (n > 2) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes a form and one profile directory");
    if (folded || features ? e.demangle : e.kernel_glob != NULL)
        return mg_opt_usage(&page, MG_EXIT_USAGE, "%s does not go with %s",
                            folded || features ? "--demangle" : "--kernel", form);
    if (features ? e.kernel_glob != NULL : e.features || e.interval)
        return mg_opt_usage(&page, MG_EXIT_USAGE, "%s does not go with %s",
                            features     ? "--kernel"
                            : e.features ? "--features"
                                         : "--interval",
                            form);
    if (e.stages && strcmp(form, "perfetto"))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "--stages does not go with %s", form);
    if (e.host && (!folded || e.kernel_glob))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "--host goes with folded, without --kernel");
    if (e.features && mg_feature_find(e.features) < 0)
        return mg_opt_usage(&page, MG_EXIT_USAGE, "there are no features %.100s", e.features);
    if (!e.out && !folded && !features && mg_export_needs_folder(form))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "%s needs -o DIR", form);
    if (n < 2 && !mg_newest_profile(0, newest))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "there is no profile here: name its directory");
    const char *dir = n == 2 ? argv[1] : newest;
    if (features || e.host) return export_text(dir, &e);
    return folded ? export_folded(dir, &e) : export_spans(form, dir, &e);
}
