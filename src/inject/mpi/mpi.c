/* In front of the MPI library of a program that is linked with one, for the time line: MPI_* leads to PMPI_* through
 * code that records the call. Preloaded by `margay run -t timeline`. Arguments pass in registers as they are, so one
 * library serves every ABI: handles are addresses (Open MPI) or ints (MPICH). Finds libmargay as forward.c does.
 *
 * A record's arguments are four words: the peer or root as a rank of MPI_COMM_WORLD, the tag, the bytes (count times
 * the type's size), the communicator's handle. All ones: there is none, or it is not known. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "inject/calls.h"
#include "span/records.h"

enum entry {
#define MPI(function, peer, tag, count, type, communicator) FN_##function,
#include "calls.def"
#undef MPI
    FN_COUNT
};
static struct mg_runtime_function functions[] = {
#define MPI(function, peer, tag, count, type, communicator) {#function, .layer = MG_LAYER_mpi},
#include "calls.def"
#undef MPI
};
static const struct row {
    int8_t peer, tag, count, type, communicator;
} rows[] = {
#define MPI(function, peer, tag, count, type, communicator) {peer, tag, count, type, communicator},
#include "calls.def"
#undef MPI
};
enum { ERR_OTHER = 15, MPICH_WORLD = 0x44000000, N_ARGUMENTS = 12 };
#define NONE UINT64_MAX

extern void *mg_targets[];
extern void *const mg_traced_table[];
void mg_inject_ready(void);

/* Handles are words here: a library that takes an int reads the lower half. */
static void *real[FN_COUNT];
static const struct mg_runtime_link *runtime_link;
static uint64_t world;
static bool ints; /* handles are */
static int (*type_size)(uint64_t, int *), (*test_inter)(uint64_t, int *), (*comm_group)(uint64_t, uint64_t *),
    (*group_free)(uint64_t *), (*translate)(uint64_t, int, const int *, uint64_t, int *);

static int missing(void)
{
    return ERR_OTHER;
}

static bool find_helpers(void)
{
    *(void **)&type_size = dlsym(RTLD_NEXT, "PMPI_Type_size");
    *(void **)&test_inter = dlsym(RTLD_NEXT, "PMPI_Comm_test_inter");
    *(void **)&comm_group = dlsym(RTLD_NEXT, "PMPI_Comm_group");
    *(void **)&group_free = dlsym(RTLD_NEXT, "PMPI_Group_free");
    *(void **)&translate = dlsym(RTLD_NEXT, "PMPI_Group_translate_ranks");
    void *open_mpi = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world"); /* the program may hold the copy that is in use */
    ints = !open_mpi;
    world = open_mpi ? (uint64_t)(uintptr_t)open_mpi : MPICH_WORLD;
    return type_size && test_inter && comm_group && group_free && translate;
}

static void find_link(void)
{
    static const cu_uuid id = MG_RUNTIME_LINK;
    int (*get)(const void **, const cu_uuid *);
    const void *table = NULL;
    *(void **)&get = dlsym(RTLD_DEFAULT, "cuGetExportTable");
    if (get && !get(&table, &id) && table && ((const struct mg_runtime_link *)table)->size >= sizeof *runtime_link)
        runtime_link = table;
}

static void fill(void)
{
    for (unsigned i = 0; i < FN_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof name, "P%s", functions[i].name);
        real[i] = dlsym(RTLD_NEXT, name);
        if (!real[i]) real[i] = (void *)missing;
    }
    if (find_helpers()) find_link();
    for (unsigned i = 0; i < FN_COUNT; i++) mg_targets[i] = runtime_link ? mg_traced_table[i] : real[i];
}

void mg_inject_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
}

void *mg_calls_enter(struct mg_call_frame *f, uint32_t entry, const uint64_t registers[6], const uint64_t *stack)
{
    f->entry = entry;
    runtime_link->enter(f, &functions[entry]);
    f->entry = entry;
    for (unsigned i = 0; f->wanted && i < N_ARGUMENTS; i++) f->args[i] = i < 6 ? registers[i] : stack[i - 6];
    return real[entry];
}

static uint64_t argument(const struct mg_call_frame *f, int at)
{
    return at < 0 ? NONE : f->args[at];
}

static uint64_t handle(const struct mg_call_frame *f, int at)
{
    uint64_t v = argument(f, at);
    return ints && at >= 0 ? (uint32_t)v : v;
}

/* A rank of the communicator as one of the world. Wildcards, no process, and peers in another group are not known. */
static uint64_t world_rank(uint64_t communicator, int peer)
{
    int inter = 1, out = -1;
    uint64_t group = 0, all = 0;
    if (peer < 0) return NONE;
    if (communicator == world) return (uint64_t)peer;
    if (test_inter(communicator, &inter) || inter || comm_group(communicator, &group)) return NONE;
    if (!comm_group(world, &all)) {
        if (translate(group, 1, &peer, all, &out)) out = -1;
        group_free(&all);
    }
    group_free(&group);
    return out < 0 ? NONE : (uint64_t)out;
}

/* Asked for after the call succeeded: its type is a good one. A buffer that is "in place" has no count. */
static uint64_t bytes_of(const struct mg_call_frame *f, const struct row *r)
{
    int size = 0;
    if (r->count < 0) return NONE;
    uint64_t buffer = argument(f, r->count - 1);
    bool in_place = buffer == 1 || buffer == UINT64_MAX;
    if (in_place || type_size(handle(f, r->type), &size) || size < 0) return NONE;
    return (uint64_t)(uint32_t)f->args[r->count] * (uint32_t)size;
}

void mg_calls_leave(struct mg_call_frame *f, cu_result result)
{
    if (f->wanted) {
        const struct row *r = &rows[f->entry];
        uint64_t communicator = handle(f, r->communicator);
        uint64_t bytes = result ? NONE : bytes_of(f, r);
        uint64_t peer = result || r->peer < 0 ? NONE : world_rank(communicator, (int)f->args[r->peer]);
        uint64_t tag = r->tag < 0 ? NONE : (uint64_t)(int64_t)(int)f->args[r->tag];
        f->args[MG_MPI_PEER] = peer;
        f->args[MG_MPI_TAG] = tag;
        f->args[MG_MPI_BYTES] = bytes;
        f->args[MG_MPI_COMMUNICATOR] = communicator;
        f->n_args = 4;
    }
    runtime_link->leave(f, result);
}
