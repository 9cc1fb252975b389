/* Which process of a parallel program the environment says this is. */
#include "test.h"

#include "base/rank.h"

static const char *const *environment; /* name, value, ..., NULL */
static const char *get(const char *name)
{
    for (const char *const *e = environment; *e; e += 2)
        if (!strcmp(*e, name)) return e[1];
    return NULL;
}

static void try(const char *const *env, int rank, unsigned size, int local)
{
    environment = env;
    struct mg_rank r = mg_rank_read(get);
    MG_CHECK_EQ(r.rank, rank);
    MG_CHECK_EQ(r.size, size);
    MG_CHECK_EQ(r.local, local);
}
#define TRY(rank, size, local, ...) try((const char *const[]){__VA_ARGS__, NULL}, rank, size, local)

MG_TEST(rank_of_each_launcher)
{
    TRY(3, 8, 1, "OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "8", "OMPI_COMM_WORLD_LOCAL_RANK", "1");
    TRY(2, 4, 2, "PMI_RANK", "2", "PMI_SIZE", "4", "MPI_LOCALRANKID", "2");
    TRY(5, 0, 1, "PALS_RANKID", "5", "PALS_LOCAL_RANKID", "1");
    TRY(6, 0, -1, "PMIX_RANK", "6");
    TRY(1, 2, 1, "RANK", "1", "WORLD_SIZE", "2", "LOCAL_RANK", "1");
    TRY(7, 16, 3, "SLURM_PROCID", "7", "SLURM_STEP_NUM_TASKS", "16", "SLURM_LOCALID", "3");
    /* mpirun inside of a Slurm job: mpirun's own */
    TRY(1, 2, -1, "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1", "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE",
        "2");
}

MG_TEST(rank_of_none)
{
    TRY(-1, 0, -1, "HOME", "/");
    TRY(-1, 0, -1, "RANK", "3");                              /* anybody's variable */
    TRY(-1, 0, -1, "SLURM_PROCID", "0", "SLURM_NTASKS", "4"); /* a batch script */
    TRY(-1, 0, -1, "PMI_RANK", "x");
    TRY(-1, 0, -1, "PMI_RANK", "-1");
    TRY(-1, 0, -1, "PMI_RANK", "99999999999");
    TRY(-1, 0, -1, "PMI_RANK", "");
}

MG_TEST(rank_job_tells_jobs_apart)
{
    const char *const a[] = {"OMPI_COMM_WORLD_RANK", "0", "PMIX_NAMESPACE", "1", NULL};
    const char *const b[] = {"OMPI_COMM_WORLD_RANK", "1", "PMIX_NAMESPACE", "1", NULL};
    const char *const c[] = {"OMPI_COMM_WORLD_RANK", "1", "PMIX_NAMESPACE", "2", NULL};
    environment = a;
    uint64_t job = mg_rank_read(get).job;
    environment = b;
    MG_CHECK(mg_rank_read(get).job == job);
    environment = c;
    MG_CHECK(mg_rank_read(get).job != job);
}
