/* margay diff: two profiles side by side; with --fail-over a difference is a finding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "cli/cli.h"
#include "cli/newest.h"
#include "report/compare.h"
#include "report/report.h"

static const struct mg_opt_page page = {
    "diff", "[DIR1 [DIR2]] [OPTIONS]", "compare two profiles",
    "Says whether the second is better or worse, by how much and by which metric, then metrics in all and by line, then\n"
    "kernels. Without DIR2 the newest profile here is compared with DIR1, without both the two newest. --fail-on takes\n"
    "metrics with bounds, parted by commas: 'memory.sectors+5%,time+10%' exits with 1 when one grew by more.\n"
    "Kernels are paired by module and name, else by name. The exit status is 1 when --fail-over was given\n"
    "and some kernel's thread instructions differ by more, or it is in one profile only. `--fail-over 0`\n"
    "demands equal counts. Blocks whose counts may depend on timing (`timing_dependent`) are listed apart\n"
    "and never fail.\n"};

/* What the comparison cannot speak of; true: something is missing. */
static bool say_missing(const char *dir, const struct mg_recording *p)
{
    struct mg_coverage c;
    mg_coverage_init(&c, p);
    unsigned long long n = c.not_written + c.no_end;
    bool missing = n || c.empty;
    if (n)
        fprintf(
            stderr,
            "margay: %s: %llu launches have no counts because recording stopped or their end is not there; the comparison is of the others\n",
            dir, n);
    mg_coverage_release(&c);
    return missing;
}

/* Is all of it an empty file? Says which. */
static bool is_hollow(const struct mg_recording *p)
{
    return !p->n_processes && mg_cli_damaged(p, "", 0);
}

/* Launches, but no counts of any kernel? */
static bool lacks_counts(const struct mg_recording *p, const struct mg_report_opts *o)
{
    bool any = false, counted = false;
    for (uint32_t i = 0; i < p->n_kernels && !counted; i++) {
        struct mg_kernel_sums s;
        if (!mg_report_shows(o, &p->kernels[i]) || !p->kernels[i].launches) continue;
        mg_kernel_sums_init(&s, &p->kernels[i]);
        any = true;
        counted = s.measured;
        mg_kernel_sums_release(&s);
    }
    return any && !counted;
}

static bool shows_none(const struct mg_recording *p, const struct mg_report_opts *o)
{
    bool none = o->kernel_glob != NULL;
    for (uint32_t i = 0; i < p->n_kernels; i++) none = none && !mg_report_shows(o, &p->kernels[i]);
    return none;
}

/* ---- --fail-on METRIC+PCT%,... ------------------------------------------------------------------------------ */

struct bound {
    char name[160];
    double pct;
};

/* One of the list; false: it is not one. */
static bool read_bound(const char **at, struct bound *b)
{
    size_t n = strcspn(*at, ","), name = 0;
    for (size_t i = 0; i < n; i++)
        if ((*at)[i] == '+') name = i;
    char text[40], *end;
    if (!name || name >= sizeof b->name || n - name - 1 >= sizeof text) return false;
    snprintf(b->name, sizeof b->name, "%.*s", (int)name, *at);
    snprintf(text, sizeof text, "%.*s", (int)(n - name - 1), *at + name + 1);
    b->pct = strtod(text, &end);
    *at += n + ((*at)[n] == ',');
    return end != text && (!*end || !strcmp(end, "%")) && b->pct >= 0 && b->pct <= 1e9;
}

static bool are_bounds(const char *list)
{
    struct bound b;
    if (!*list) return false;
    while (*list)
        if (!read_bound(&list, &b)) return false;
    return true;
}

/* 0; MG_EXIT_FINDING: a metric grew by more; MG_EXIT_INPUT: one cannot be compared. Says which. */
static int check_bounds(const char *list, const struct mg_comparison *c)
{
    struct bound b;
    int status = 0;
    if (c->apart) {
        fprintf(stderr, "margay: --fail-on: no kernel is in both profiles, so nothing was compared that could pass\n");
        return MG_EXIT_INPUT;
    }
    while (*list && read_bound(&list, &b)) {
        if (c->uneven && strcmp(b.name, "time")) {
            fprintf(stderr, "margay: --fail-on %s: %s\n", b.name, c->uncounted);
            status = MG_EXIT_INPUT;
            continue;
        }
        const struct mg_metric *m = mg_comparison_find(c, b.name);
        if (!m || !m->of.has[0] || !m->of.has[1]) {
            fprintf(stderr, "margay: --fail-on %s: %s\n", b.name,
                    m ? "only one of the profiles has it" : "neither profile has it");
            status = MG_EXIT_INPUT;
            continue;
        }
        double pct = mg_compared_pct(&m->of), growth = m->better > 0 ? -pct : pct;
        bool is_sound = mg_comparison_is_of(c, m) && c->verdict != MG_VERDICT_WORSE;
        if (growth <= b.pct || is_sound) continue;
        if (isinf(pct))
            fprintf(stderr, "margay: --fail-on %s: it was 0 and is %.15g\n", b.name, m->of.v[1]);
        else
            fprintf(stderr, "margay: --fail-on %s: it %s by %.8g %%, the bound is %.8g %%\n", b.name,
                    pct > 0 ? "grew" : "fell", fabs(pct), b.pct);
        if (!status) status = MG_EXIT_FINDING;
    }
    return status;
}

static int write_page(const char *path, struct mg_recording *const p[2], const struct mg_report_opts *o,
                      struct mg_diag *d, int status)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_report_diff_html(p[0], p[1], o, &text);
    enum mg_err err = mg_io_write(path, text.at, text.n, d);
    mg_buf_release(&text);
    return err ? mg_cli_fail(d, MG_EXIT_INPUT) : status;
}

int cmd_diff(int argc, char **argv)
{
    struct mg_report_opts o = {.size = sizeof o};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *p[2] = {NULL, NULL};
    struct mg_buf out = MG_BUF_INIT;
    double fail_over = -1;
    uint64_t top = 0;
    bool json = false;
    const char *fail_on = NULL, *html = NULL, *dirs[2];
    char newest[2][PATH_MAX];
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_F64(0, "fail-over", &fail_over, 0, 1e9, "PCT",
                   "exit 1 when a kernel differs by more than so many per cent"),
        MG_OPT_STR(0, "fail-on", &fail_on, "METRIC+PCT%,...", "exit 1 when one of these metrics is worse by more"),
        MG_OPT_FLAG(0, "json", &json, "as JSON, every kernel and every block that differs"),
        MG_OPT_STR(0, "html", &html, "FILE",
                   "as one page beside the text: verdict, metrics, lines with their source, kernels"),
        MG_OPT_STR(0, "kernel", &o.kernel_glob, "GLOB", "only kernels whose name matches"),
        MG_OPT_U64(0, "top", &top, 1, UINT32_MAX, "N", "kernels to show (20)"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n > 2) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes two profile directories");
    if (fail_on && !are_bounds(fail_on))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "--fail-on wants METRIC+PCT%%,..., not '%.200s'", fail_on);
    if (n < 2 && (!mg_newest_profile(0, newest[1]) || (!n && !mg_newest_profile(1, newest[0]))))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "needs two profile directories: there are not enough here");
    dirs[0] = n ? argv[0] : newest[0];
    dirs[1] = n > 1 ? argv[1] : newest[1];
    o.top = (uint32_t)top;
    if (mg_recording_open(dirs[0], &p[0], &d) || mg_recording_open(dirs[1], &p[1], &d)) {
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    } else if (is_hollow(p[0]) || is_hollow(p[1])) {
        status = MG_EXIT_INPUT;
    } else {
        double worst =
            json ? mg_report_diff_json(p[0], p[1], &o, fail_over, &out) : mg_report_diff(p[0], p[1], &o, &out);
        status = mg_cli_out(&out);
        if (html) status = write_page(html, p, &o, &d, status);
        for (uint32_t k = 0; k < 2; k++)
            status = mg_cli_damaged(p[k], "the comparison is of the other processes", status);
        bool missing = say_missing(dirs[0], p[0]) | say_missing(dirs[1], p[1]);
        if (shows_none(p[0], &o) && shows_none(p[1], &o)) {
            fprintf(stderr, "margay: --kernel %s matches no kernel of %s or %s\n", o.kernel_glob, dirs[0], dirs[1]);
            missing = true;
        }
        if (fail_over >= 0 && lacks_counts(p[0], &o) && lacks_counts(p[1], &o)) {
            fprintf(stderr, "margay: neither profile has counts (margay run -t blocks); launches were compared\n");
            missing = true;
        }
        if (!status && fail_on && missing) status = MG_EXIT_INPUT;
        if (!status && fail_on) {
            struct mg_comparison c;
            mg_comparison_init(&c, p[0], p[1], &o);
            status = check_bounds(fail_on, &c);
            mg_comparison_release(&c);
        }
        if (!status && fail_over >= 0 && missing) status = MG_EXIT_INPUT; /* no gate passes on what was not compared */
        if (!status && fail_over >= 0 && worst > fail_over) status = MG_EXIT_FINDING;
    }
    mg_buf_release(&out);
    mg_recording_free(p[0]);
    mg_recording_free(p[1]);
    mg_diag_release(&d);
    return status;
}
