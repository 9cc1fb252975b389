/* Communicators. A handle means something in its own process only, so each communicator has a number that all its
 * processes reach without asking one another: a hash of its parent's number, of how many were made from that parent
 * before, and of its members. What is made without all of the parent has its tag in place of the second. One that was
 * made by a function that is not recorded has a number by its members alone. */
#include <pthread.h>
#include <stdlib.h>

#include "base/order.h"
#include "inject/mpi/mpi.h"

struct communicator {
    uint64_t id, made; /* made: how many from it */
};
static struct mg_mpi_table known, apart_made; /* apart_made: how many of one number */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 29;
}

/* The members of a group as ranks of the world; -1: none of them. False: not known. */
static bool translate_all(uint64_t group, uint64_t *members, int n)
{
    uint64_t all = 0;
    int *ranks = malloc(2 * (size_t)n * sizeof *ranks);
    bool ok = ranks && !mg_mpi.comm_group(mg_mpi.world, &all);
    for (int i = 0; ok && i < n; i++) ranks[i] = i;
    ok = ok && !mg_mpi.translate(group, n, ranks, all, ranks + n);
    for (int i = 0; ok && i < n; i++) members[i] = ranks[n + i] < 0 ? MG_MPI_NONE : (uint64_t)ranks[n + i];
    if (all) mg_mpi.group_free(&all);
    free(ranks);
    return ok;
}

/* NULL: not known. Between two groups: those of both, in one order for both. Freed by the caller. */
static uint64_t *find_members(uint64_t handle, uint32_t *count)
{
    int inter = 0, n[2] = {0, 0};
    uint64_t groups[2] = {0, 0}, *members = NULL;
    bool ok = !mg_mpi.test_inter(handle, &inter) && !mg_mpi.comm_group(handle, &groups[0]) &&
              (!inter || !mg_mpi.remote_group(handle, &groups[1]));
    for (int i = 0; ok && i <= !!inter; i++) ok = !mg_mpi.group_size(groups[i], &n[i]);
    ok = ok && n[0] + n[1] > 0 && (members = malloc((size_t)(n[0] + n[1]) * sizeof *members));
    ok = ok && translate_all(groups[0], members, n[0]) && (!inter || translate_all(groups[1], members + n[0], n[1]));
    for (int i = 0; i < 2; i++)
        if (groups[i]) mg_mpi.group_free(&groups[i]);
    *count = (uint32_t)(n[0] + n[1]);
    if (ok && inter) qsort(members, *count, sizeof *members, mg_by_u64);
    if (ok) return members;
    free(members);
    return NULL;
}

/* Under the lock. */
static struct communicator *add(uint64_t handle, uint64_t parent, uint64_t id, bool apart)
{
    uint32_t n = 0;
    uint64_t *members = find_members(handle, &n);
    for (uint32_t i = 0; members && i < n; i++) id = mix(id, members[i] + 1);
    if (apart) {
        uintptr_t before = (uintptr_t)mg_mpi_table_get(&apart_made, id);
        mg_mpi_table_put(&apart_made, id, (void *)(before + 1));
        id = mix(id, before);
    }
    struct communicator *c = mg_mpi_table_get(&known, handle);
    if (!c && (c = malloc(sizeof *c)) && !mg_mpi_table_put(&known, handle, c)) {
        free(c);
        c = NULL;
    }
    if (c) *c = (struct communicator){.id = id == MG_MPI_WORLD || id == MG_MPI_NONE ? 1 : id};
    struct mg_record_communicator r = {.time = mg_mpi_now_ns(), .id = c ? c->id : id, .parent = parent};
    if (members && handle != mg_mpi.world) mg_mpi.link->put(MG_LINK_COMMUNICATOR, &r, members, n);
    free(members);
    return c;
}

static struct communicator *find(uint64_t handle)
{
    struct communicator *c = mg_mpi_table_get(&known, handle);
    if (!c) c = add(handle, MG_MPI_NONE, 2, false);
    if (c && handle == mg_mpi.world) c->id = MG_MPI_WORLD;
    return c;
}

uint64_t mg_mpi_communicator(uint64_t handle)
{
    if (handle == mg_mpi.world) return MG_MPI_WORLD;
    pthread_mutex_lock(&lock);
    const struct communicator *c = find(handle);
    uint64_t id = c ? c->id : MG_MPI_NONE;
    pthread_mutex_unlock(&lock);
    return id;
}

void mg_mpi_made(uint64_t parent, uint64_t handle, uint64_t tag, bool apart)
{
    pthread_mutex_lock(&lock);
    struct communicator *p = find(parent);
    uint64_t id = 3;
    if (p && !apart) id = mix(mix(id, p->id), ++p->made);
    if (apart) id = mix(id, tag + 1);
    if (handle != mg_mpi.null) add(handle, p ? p->id : MG_MPI_NONE, id, apart);
    pthread_mutex_unlock(&lock);
}

void mg_mpi_unmade(uint64_t handle)
{
    if (handle == mg_mpi.world) return;
    pthread_mutex_lock(&lock);
    free(mg_mpi_table_take(&known, handle));
    pthread_mutex_unlock(&lock);
}

uint64_t mg_mpi_world_rank(uint64_t communicator, int peer)
{
    int inter = 0, out = -1;
    uint64_t group = 0, all = 0;
    if (peer < 0) return MG_MPI_NONE;
    if (communicator == mg_mpi.world) return (uint64_t)peer;
    if (mg_mpi.test_inter(communicator, &inter)) return MG_MPI_NONE;
    if ((inter ? mg_mpi.remote_group : mg_mpi.comm_group)(communicator, &group)) return MG_MPI_NONE;
    if (!mg_mpi.comm_group(mg_mpi.world, &all)) {
        if (mg_mpi.translate(group, 1, &peer, all, &out)) out = -1;
        mg_mpi.group_free(&all);
    }
    mg_mpi.group_free(&group);
    return out < 0 ? MG_MPI_NONE : (uint64_t)out;
}
