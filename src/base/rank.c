#include "base/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/hash.h"

/* In this order: what a launcher sets comes before what a batch system sets for everything below it. */
static const struct {
    const char *rank, *size, *local, *job;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", NULL},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL},
    {"PALS_RANKID", NULL, "PALS_LOCAL_RANKID", "PALS_APID"},
    {"PMIX_RANK", NULL, NULL, "PMIX_NAMESPACE"},
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_JOB_ID"},
};

static bool read_number(const char *text, uint32_t *out)
{
    char *end;
    if (!text || *text < '0' || *text > '9') return false;
    unsigned long v = strtoul(text, &end, 10);
    *out = (uint32_t)v;
    return !*end && v <= INT32_MAX;
}

/* When the parent began, in ticks since the host did: tells parents of one number apart. */
static uint64_t parent_start(pid_t parent)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)parent);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f) fclose(f);
    line[n] = 0;
    const char *at = strrchr(line, ')'); /* behind the name: state is field 3, the start 22 */
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static uint64_t job_of(const char *name, const char *value)
{
    if (name && value && *value) {
        uint64_t h = mg_hash64(name, strlen(name), 1);
        return mg_hash64(value, strlen(value), h);
    }
    uint64_t parent[2] = {(uint64_t)getppid(), parent_start(getppid())};
    return mg_hash64(parent, sizeof parent, 2);
}

struct mg_rank mg_rank_read(const char *(*get)(const char *name))
{
    for (size_t i = 0; i < MG_COUNT_OF(launchers); i++) {
        uint32_t rank, size = 0, local;
        bool torch = !strcmp(launchers[i].rank, "RANK"); /* a common name: with its companion alone */
        if (!read_number(get(launchers[i].rank), &rank)) continue;
        bool sized = launchers[i].size && read_number(get(launchers[i].size), &size);
        if ((torch || !strncmp(launchers[i].rank, "SLURM", 5)) && !sized) continue;
        return (struct mg_rank){
            .rank = (int32_t)rank,
            .size = size,
            .local = launchers[i].local && read_number(get(launchers[i].local), &local) ? (int32_t)local : -1,
            .job = job_of(launchers[i].job, launchers[i].job ? get(launchers[i].job) : NULL),
        };
    }
    return (struct mg_rank){.rank = -1, .local = -1};
}
