/* export otf2: messages and collective operations of MPI. Ranks are numbered inside their communicator, as OTF2 wants
 * it, by the members that are on the time line. */
#include "export/otf2_mpi.h"

#include <stdlib.h>
#include <string.h>

void mg_otf2_mpi_release(struct mg_otf2_mpi *m)
{
    for (uint32_t i = 0; i < m->communicators.n; i++) mg_vec_release(&m->communicators.at[i].ranks);
    mg_vec_release(&m->communicators);
    mg_map_release(&m->ix_of);
}

static int compare(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

static void add_rank(struct mg_otf2_communicator *c, uint64_t rank)
{
    *mg_vec_push(&c->ranks) = rank > INT32_MAX ? -1 : (int32_t)rank;
}

static bool has_rank(const struct mg_otf2_communicator *c, int32_t rank)
{
    for (uint32_t i = 0; i < c->ranks.n; i++)
        if (c->ranks.at[i] == rank) return true;
    return false;
}

/* The first is the world. */
static void add_world(struct mg_otf2_mpi *m, const struct mg_spans *spans)
{
    struct mg_otf2_communicator world = {.id = MG_MPI_WORLD};
    for (uint32_t i = 0; i < mg_spans_n_processes(spans); i++) {
        int32_t rank = mg_spans_process(spans, i).rank;
        if (rank >= 0 && !has_rank(&world, rank)) add_rank(&world, (uint64_t)rank);
    }
    if (world.ranks.n) qsort(world.ranks.at, world.ranks.n, sizeof *world.ranks.at, compare);
    *mg_vec_push(&m->communicators) = world;
    mg_map_set(&m->ix_of, MG_MPI_WORLD, 0);
}

/* One whose members nobody told is taken for the world with another number. */
static uint32_t find(struct mg_otf2_mpi *m, const struct mg_spans *spans, uint64_t id)
{
    uint64_t ix;
    if (!m->communicators.n) add_world(m, spans);
    if (mg_map_get(&m->ix_of, id, &ix)) return (uint32_t)ix;
    struct mg_otf2_communicator c = {.id = id};
    uint32_t n = 0;
    const uint64_t *members = mg_spans_communicator(spans, id, &n);
    for (uint32_t i = 0; i < n; i++)
        if (members[i] <= INT32_MAX && has_rank(&m->communicators.at[0], (int32_t)members[i])) add_rank(&c, members[i]);
    for (uint32_t i = 0; !members && i < m->communicators.at[0].ranks.n; i++)
        add_rank(&c, (uint64_t)m->communicators.at[0].ranks.at[i]);
    *mg_vec_push(&m->communicators) = c;
    mg_map_set(&m->ix_of, id, m->communicators.n - 1);
    return m->communicators.n - 1;
}

static uint32_t rank_in(const struct mg_otf2_communicator *c, uint64_t rank)
{
    for (uint32_t i = 0; i < c->ranks.n; i++)
        if ((uint64_t)c->ranks.at[i] == rank) return i;
    return OTF2_NONE;
}

/* ---- messages -------------------------------------------------------------------------------------------- */

int mg_otf2_mpi_message(struct mg_otf2_mpi *m, struct mg_export *x, const struct mg_otf2 *lib,
                        struct OTF2_EvtWriter_struct *w, uint64_t time_ns, const struct mg_message_end *e, bool begins,
                        uint32_t *written)
{
    uint32_t ref = find(m, x->spans, e->communicator);
    uint32_t peer = e->peer < 0 ? OTF2_NONE : rank_in(&m->communicators.at[ref], (uint64_t)e->peer);
    uint32_t tag = (uint32_t)e->tag;
    bool alone = e->posts && e->completes;
    bool at_begin = e->posts && !(e->received && e->completes);
    if (peer == OTF2_NONE || at_begin != begins) return 0;
    *written = 1;
    if (!e->received && e->posts) {
        if (alone || !e->completed) return lib->EvtWriter_MpiSend(w, NULL, time_ns, peer, ref, tag, e->bytes);
        return lib->EvtWriter_MpiIsend(w, NULL, time_ns, peer, ref, tag, e->bytes, e->number);
    }
    if (!e->received) return lib->EvtWriter_MpiIsendComplete(w, NULL, time_ns, e->number);
    if (alone) return lib->EvtWriter_MpiRecv(w, NULL, time_ns, peer, ref, tag, e->bytes);
    if (e->posts) return lib->EvtWriter_MpiIrecvRequest(w, NULL, time_ns, e->number);
    return lib->EvtWriter_MpiIrecv(w, NULL, time_ns, peer, ref, tag, e->bytes, e->number);
}

/* ---- collective operations ----------------------------------------------------------------------------------- */

enum shape { NOTHING, ONE, ALL }; /* of what its bytes tell a process hands over or gets: each, or one for every rank */
static const struct collective {
    const char *name;
    uint8_t operation;
    bool rooted;
    uint8_t root_sends, root_gets, sends, gets; /* the last two: of the others, or of all */
} collectives[] = {
    {"MPI_Barrier", OTF2_BARRIER, false, NOTHING, NOTHING, NOTHING, NOTHING},
    {"MPI_Bcast", OTF2_BCAST, true, ALL, ONE, NOTHING, ONE},
    {"MPI_Gather", OTF2_GATHER, true, ONE, ALL, ONE, NOTHING},
    {"MPI_Scatter", OTF2_SCATTER, true, ALL, ONE, NOTHING, ONE},
    {"MPI_Reduce", OTF2_REDUCE, true, ONE, ALL, ONE, NOTHING},
    {"MPI_Allgather", OTF2_ALLGATHER, false, NOTHING, NOTHING, ALL, ALL},
    {"MPI_Alltoall", OTF2_ALLTOALL, false, NOTHING, NOTHING, ALL, ALL},
    {"MPI_Allreduce", OTF2_ALLREDUCE, false, NOTHING, NOTHING, ALL, ALL},
    {"MPI_Scan", OTF2_SCAN, false, NOTHING, NOTHING, ONE, ONE},
};

static uint64_t size_of(uint8_t shape, uint64_t bytes, uint32_t ranks)
{
    if (shape == NOTHING) return 0;
    return bytes == MG_SPAN_NONE ? MG_SPAN_NONE : shape == ALL ? bytes * ranks : bytes;
}

bool mg_otf2_mpi_collective(struct mg_otf2_mpi *m, struct mg_export *x, const struct mg_span *p,
                            struct mg_otf2_collective *out)
{
    if (p->kind != MG_SPAN_MPI || p->result || p->n_arguments <= MG_MPI_COMMUNICATOR) return false;
    for (size_t i = 0; i < MG_COUNT_OF(collectives); i++) {
        const struct collective *c = &collectives[i];
        if (strcmp(c->name, p->name)) continue;
        uint32_t ref = find(m, x->spans, p->arguments[MG_MPI_COMMUNICATOR]);
        const struct mg_otf2_communicator *of = &m->communicators.at[ref];
        bool root = c->rooted && p->arguments[MG_MPI_PEER] == (uint64_t)p->rank;
        *out = (struct mg_otf2_collective){
            .is = true,
            .operation = c->operation,
            .communicator = ref,
            .root = c->rooted ? rank_in(of, p->arguments[MG_MPI_PEER]) : OTF2_NONE,
            .sent = size_of(root ? c->root_sends : c->sends, p->bytes, of->ranks.n),
            .received = size_of(root ? c->root_gets : c->gets, p->bytes, of->ranks.n),
        };
        return true;
    }
    return false;
}

/* ---- definitions --------------------------------------------------------------------------------------------- */

/* The location of each rank: the first of its threads that called MPI, else the first. */
static uint64_t location_of(const struct mg_export *x, int32_t rank)
{
    for (uint32_t i = 1; i < x->tracks.at.n; i++) {
        const struct mg_track_key *k = &x->tracks.at.at[i]->key;
        if (k->kind == MG_TRACK_THREAD && x->tracks.processes.at[k->process].rank == rank) return i - 1;
    }
    return UINT64_MAX;
}

int mg_otf2_mpi_define(struct mg_otf2_mpi *m, struct mg_export *x, const struct mg_otf2 *lib,
                       struct OTF2_GlobalDefWriter_struct *w, uint32_t *n_strings)
{
    if (!m->communicators.n) return 0;
    const struct mg_otf2_communicator *world = &m->communicators.at[0];
    uint64_t *members = mg_xcalloc(world->ranks.n + 1, sizeof *members);
    char name[48];
    uint32_t s = *n_strings;
    int bad = lib->GlobalDefWriter_WriteString(w, s, "ranks of MPI");
    for (uint32_t i = 0; i < world->ranks.n; i++) members[i] = location_of(x, world->ranks.at[i]);
    if (!bad)
        bad = lib->GlobalDefWriter_WriteGroup(w, 0, s++, OTF2_MEMBERS_LOCATIONS, OTF2_PARADIGM_OF_MPI, 0,
                                              world->ranks.n, members);
    for (uint32_t i = 0; i < m->communicators.n && !bad; i++) {
        const struct mg_otf2_communicator *c = &m->communicators.at[i];
        snprintf(name, sizeof name, i ? "communicator %u" : "MPI_COMM_WORLD", i);
        bad = lib->GlobalDefWriter_WriteString(w, s, name);
        for (uint32_t k = 0; k < c->ranks.n; k++) members[k] = rank_in(world, (uint64_t)c->ranks.at[k]);
        if (!bad)
            bad = lib->GlobalDefWriter_WriteGroup(w, i + 1, s, OTF2_MEMBERS_OF_COMMUNICATOR, OTF2_PARADIGM_OF_MPI, 0,
                                                  c->ranks.n, members);
        if (!bad) bad = lib->GlobalDefWriter_WriteComm(w, i, s++, i + 1, OTF2_NONE, 0);
    }
    *n_strings = s;
    free(members);
    return bad;
}
