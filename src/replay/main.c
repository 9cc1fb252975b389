/* The program: options, then the capture from its first operation to its last. `margay replay` gives the options. */
#include "replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int mg_replay_fail(struct mg_replay *r, int status, const char *fmt, ...)
{
    va_list ap;
    if (r->status) return r->status;
    r->status = status;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
    return status;
}

void *mg_replay_room(struct mg_replay *r, uint64_t bytes)
{
    if (bytes > r->room_bytes) {
        char *more = realloc(r->room, bytes);
        if (!more) {
            mg_replay_fail(r, MG_REPLAY_INPUT, "there is no memory for content of %llu bytes",
                           (unsigned long long)bytes);
            return NULL;
        }
        r->room = more;
        r->room_bytes = bytes;
    }
    return r->room;
}

static bool uncompared(const struct mg_replay *r)
{
    return !r->status && !r->n_checks;
}

static void tell(const struct mg_replay *r)
{
    if (r->difference[0]) fprintf(stderr, "margay replay: %s\n", r->difference);
    if (r->why[0]) fprintf(stderr, "margay replay: %s\n", r->why);
    if (!r->quiet || r->status || r->n_differ)
        fprintf(stderr, "margay replay: %llu of %llu launches replayed, %llu of %llu checks agree\n",
                (unsigned long long)r->n_launches, (unsigned long long)mg_cap_totals(r->reader)->n_launches,
                (unsigned long long)(r->n_checks - r->n_differ), (unsigned long long)r->n_checks);
    if (r->n_differ && r->extracted)
        fprintf(stderr, "margay replay: %s holds what the replay left, not the program\n", r->extracted);
    if (r->given.n && !r->quiet)
        fprintf(
            stderr,
            "margay replay: %llu bytes were taken from the capture: launches left them alone here, and another thread of the program may have stored them meanwhile; first beside launch %llu\n",
            (unsigned long long)r->given.n, (unsigned long long)r->given.at);
    if (uncompared(r))
        fprintf(stderr, "margay replay: nothing was compared: the capture holds no check\n");
    else if (r->n_unseen && !r->quiet && !r->extract)
        fprintf(stderr, "margay replay: %llu allocations were freed without a check behind their last launch\n",
                (unsigned long long)r->n_unseen);
}

int main(int argc, char **argv)
{
    struct mg_replay r = {0};
    struct mg_diag d = MG_DIAG_INIT;
    bool list = false;
    const char *extract = NULL, *launches = NULL, *folder = NULL;
    for (int k = 1; k < argc; k++) {
        if (!strcmp(argv[k], "-q"))
            r.quiet = true;
        else if (!strcmp(argv[k], "--list"))
            list = true;
        else if (!strcmp(argv[k], "--differences"))
            r.differences = true;
        else if (!strcmp(argv[k], "--extract") && k + 1 < argc)
            extract = argv[++k];
        else if (!strcmp(argv[k], "--launches") && k + 1 < argc)
            launches = argv[++k];
        else if (!strcmp(argv[k], "--export") && k + 1 < argc)
            folder = argv[++k];
        else if (!r.path && argv[k][0] != '-')
            r.path = argv[k];
        else
            r.status = MG_REPLAY_USAGE;
    }
    if (r.status || !r.path || (extract && !launches)) {
        fputs(
            "usage: margay-replay CAPTURE.mgc [-q] [--list] [--differences] [--extract NEW.mgc --launches SPEC] [--export FOLDER]; margay replay gives these\n",
            stderr);
        return MG_REPLAY_USAGE;
    }
    if (mg_cap_reader_open(r.path, &r.reader, &d)) {
        fprintf(stderr, "margay replay: %s\n", mg_diag_first(&d, MG_ERR_INPUT));
        return MG_REPLAY_INPUT;
    }
    int status = mg_replay_scan(&r);
    if (!status && list) return mg_replay_list(&r);
    if (!status && folder) {
        status = mg_export(&r, folder);
        if (status) fprintf(stderr, "margay replay: %s\n", r.why);
        return status;
    }
    if (!status) status = mg_replay_start(&r);
    if (!status && extract) status = mg_extract_open(&r, extract, launches);
    if (!status) mg_replay_run(&r);
    if (r.extract) r.extracted = extract;
    if (!r.status && extract) mg_extract_close(&r);
    if (r.status && r.extracted) { /* nobody can replay it */
        unlink(r.extracted);
        r.extracted = NULL;
    }
    tell(&r);
    if (r.status || r.n_differ) return r.status ? r.status : MG_REPLAY_DIFFERS;
    return uncompared(&r) && !extract ? MG_REPLAY_UNCOMPARED : MG_REPLAY_OK;
}
