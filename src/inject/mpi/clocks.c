/* clocks=mpi: the clocks of other hosts by messages, behind MPI_Init and in front of MPI_Finalize. One process of each
 * host asks rank 0 for its time, again and again: the answer was given between the question and its arrival, so half of
 * the shortest way there and back is the most that the offset can be wrong. The others of the host get it told.
 *
 * All ranks take part, in a communicator of our own: so it is done on demand only. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/option.h"
#include "inject/mpi/mpi.h"

enum { ROUNDS = 200, FEWEST = 8, LONGEST_NS = 20000000, TAG = 1 }; /* fewer where they take long */
static uint64_t ours;                                              /* the communicator; 0: none */
static int rank, ranks;

static uint64_t read_boot(void)
{
    unsigned char text[64];
    uint64_t h = 0xcbf29ce484222325u;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0) close(fd);
    for (ssize_t i = 0; i < n; i++) h = (h ^ text[i]) * 0x100000001b3u;
    return h;
}

static bool give(int to, const void *data, int bytes)
{
    return !mg_mpi.send(data, (uint64_t)bytes, mg_mpi.byte, to, TAG, ours);
}

static bool take(int from, void *data, int bytes)
{
    char status[64];
    return !mg_mpi.recv(data, (uint64_t)bytes, mg_mpi.byte, from, TAG, ours, status);
}

static bool answer(int to)
{
    bool ok = true;
    for (char question = 1; ok && question;) { /* 0: the last */
        uint64_t now;
        ok = take(to, &question, 1);
        now = mg_mpi_now_ns();
        ok = ok && give(to, &now, sizeof now);
    }
    return ok;
}

static bool ask(struct mg_record_clock *out)
{
    uint64_t least = UINT64_MAX, begun = mg_mpi_now_ns();
    char question = 1;
    for (int i = 1; question; i++) {
        uint64_t there, before = mg_mpi_now_ns(), after;
        question = i < ROUNDS && (i < FEWEST || before - begun < LONGEST_NS);
        if (!give(0, &question, 1) || !take(0, &there, sizeof there)) return false;
        after = mg_mpi_now_ns();
        if (after - before >= least) continue;
        least = after - before;
        out->time = before + least / 2;
        out->offset_ns = (int64_t)(there - out->time);
    }
    out->uncertainty_ns = least / 2 + 1;
    return true;
}

/* The lowest rank of a host. */
static int leader_of(const uint64_t *boots, int r)
{
    int i = 0;
    while (boots[i] != boots[r]) i++;
    return i;
}

static bool measure(const uint64_t *boots, struct mg_record_clock *c)
{
    bool ok = true;
    int leader = leader_of(boots, rank);
    *c = (struct mg_record_clock){.time = mg_mpi_now_ns()};
    for (int r = 1; ok && !rank && r < ranks; r++)
        if (boots[r] != boots[0] && leader_of(boots, r) == r) ok = answer(r);
    if (!ok || !leader) return ok;
    if (leader != rank) return take(leader, c, sizeof *c);
    ok = ask(c);
    for (int r = rank + 1; ok && r < ranks; r++)
        if (boots[r] == boots[rank]) ok = give(r, c, sizeof *c);
    return ok;
}

static bool open_ours(void)
{
    if (ours) return true;
    if (mg_mpi.comm_rank(mg_mpi.world, &rank) || mg_mpi.comm_size(mg_mpi.world, &ranks)) return false;
    return !mg_mpi.comm_dup(mg_mpi.world, &ours);
}

static bool is_asked_for(const char *tools)
{
    for (size_t bytes, n; tools && *tools; tools += bytes + (tools[bytes] != 0)) { /* joined: tool/spec.h */
        bytes = strcspn(tools, ";");
        const char *clocks = !strncmp(tools, "timeline,", 9) ? mg_option_value(tools, bytes, "clocks", &n) : NULL;
        if (clocks && n == 3 && !memcmp(clocks, "mpi", n)) return true;
    }
    return false;
}

void mg_mpi_align_clocks(bool last)
{
    if (!is_asked_for(mg_env(MG_ENV_TOOLS)) || !open_ours()) return;
    uint64_t mine = read_boot(), *boots = calloc((size_t)ranks, sizeof *boots);
    struct mg_record_clock c;
    if (boots && !mg_mpi.allgather(&mine, sizeof mine, mg_mpi.byte, boots, sizeof mine, mg_mpi.byte, ours) &&
        measure(boots, &c))
        mg_mpi.link->put(MG_LINK_CLOCK, &c, NULL, 0);
    free(boots);
    if (last) mg_mpi.comm_free(&ours);
}
