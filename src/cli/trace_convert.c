#include "cli/trace_convert.h"

#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/trace_damage.h"
#include "cli/trace_dram.h"
#include "cli/trace_pseudo.h"
#include "export/accesses.h"
#include "trace/memtrace.h"

static int list_formats(const char *wrong)
{
    fprintf(stderr, "margay: trace convert wants --to and one of these formats%s%s:\n", *wrong ? ", not " : "", wrong);
    for (uint32_t i = 0; mg_convert_at(i); i++)
        fprintf(stderr, "  %-16s %s\n", mg_convert_at(i)->name, mg_convert_at(i)->what);
    fprintf(stderr, "  %-16s %s\n", MG_PSEUDO_NAME, MG_PSEUDO_WHAT);
    for (uint32_t i = 0; mg_dram_format_at(i); i++)
        fprintf(stderr, "  %-16s %s\n", mg_dram_format_at(i)->name, mg_dram_format_at(i)->what);
    return MG_EXIT_USAGE;
}

static int read_back(const char *path, const struct mg_convert_wish *w)
{
    struct mg_diag d = MG_DIAG_INIT;
    uint64_t n;
    if ((strcmp(w->from, "thesis") && strcmp(w->from, "cudamemtrace")) || !w->to || strcmp(w->to, "csv")) {
        fprintf(stderr, "margay: trace convert reads --from thesis and --from cudamemtrace, --to csv\n");
        return MG_EXIT_USAGE;
    }
    int status = mg_memtrace_read(path, w->from, w->out, &n, &d) ? mg_cli_fail(&d, MG_EXIT_INPUT) : MG_EXIT_OK;
    fprintf(stderr, "margay: %" PRIu64 " accesses\n", n);
    mg_diag_release(&d);
    return status;
}

/* The file of the process that is wanted; UINT32_MAX: none, which was said. */
static uint32_t find_file(const struct mg_trace_reader *r, uint64_t pid)
{
    uint32_t n = mg_trace_n_files(r);
    for (uint32_t i = 0; i < n; i++)
        if (pid ? mg_trace_file(r, i)->pid == pid : n == 1) return i;
    fprintf(stderr,
            pid ? "margay: no trace is of process %" PRIu64 "\n"
                : "margay: %" PRIu64 " processes have traces: choose one with --pid\n",
            pid ? pid : (uint64_t)n);
    return UINT32_MAX;
}

/* f: NULL is the pseudo form, of the profile at `path`. */
static int convert(struct mg_trace_reader *r, uint32_t file, const struct mg_convert_format *f, const char *path,
                   const struct mg_convert_wish *w, struct mg_diag *d)
{
    const struct mg_convert_opts o = {
        .size = sizeof o, .out = w->out, .first = w->launches.first, .last = w->launches.last};
    struct mg_converted sums = {0};
    struct mg_accesses *a;
    const char *why;
    int status = MG_EXIT_OK;
    if (mg_accesses_open(r, file, &a, d)) return mg_cli_fail(d, MG_EXIT_INPUT);
    if (f ? f->write(a, &o, &sums, d) : mg_trace_convert_pseudo(path, a, &o, &sums, d))
        status = mg_cli_fail(d, MG_EXIT_INPUT);
    fprintf(stderr, "margay: %" PRIu64 " launches, %" PRIu64 " accesses, %" PRIu64 " lanes, %" PRIu64 " bytes\n",
            sums.launches, sums.accesses, sums.lanes, sums.bytes);
    if (sums.native)
        fprintf(stderr, "margay: %" PRIu64 " launches ran native: their accesses are not known\n", sums.native);
    if (mg_accesses_is_partial(a))
        fprintf(stderr, "margay: the trace holds a part of the accesses: selected, sampled or dropped\n");
    uint64_t bad = mg_accesses_damaged(a, &why);
    if (bad) fprintf(stderr, "margay: %" PRIu64 " chunks or records were left out; %s\n", bad, why);
    mg_accesses_close(a);
    return bad ? MG_EXIT_INPUT : status;
}

int mg_trace_convert(const char *path, const struct mg_convert_wish *w)
{
    const struct mg_convert_format *f = w->to ? mg_convert_find(w->to) : NULL;
    const struct mg_dram_format *dram = w->to ? mg_dram_format_find(w->to) : NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_trace_reader *r;
    int status;
    if (!w->out) {
        fprintf(stderr, "margay: trace convert wants -o OUT\n");
        return MG_EXIT_USAGE;
    }
    if (w->from) return read_back(path, w);
    bool pseudo = w->to && !strcmp(w->to, MG_PSEUDO_NAME);
    if (!f && !dram && !pseudo) return list_formats(w->to ? w->to : "");
    if (mg_trace_reader_open(path, &r, &d)) {
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    } else {
        uint32_t file = find_file(r, w->pid);
        status = file == UINT32_MAX ? MG_EXIT_INPUT
                 : !dram            ? convert(r, file, f, path, w, &d)
                                    : mg_trace_convert_dram(r, file, dram, w, &d);
        if (mg_trace_say_lost(r)) status = MG_EXIT_INPUT;
        mg_trace_reader_free(r);
    }
    mg_diag_release(&d);
    return status;
}
