/* In front of the MPI library of a program that is linked with one, for the time line: MPI_* leads to PMPI_* through
 * code that records the call. Preloaded by `margay run -t timeline`. Arguments pass in registers as they are, so one
 * library serves every ABI: handles are addresses (Open MPI) or ints (MPICH). Finds libmargay as forward.c does.
 *
 * A record's arguments are four words: the peer or root as a rank of MPI_COMM_WORLD, the tag, the bytes (count times
 * the type's size), the communicator's number. All ones: there is none, or it is not known. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "inject/mpi/mpi.h"

enum entry {
#define MPI(function, peer, tag, count, type, communicator, role, at) FN_##function,
#include "calls.def"
#undef MPI
    FN_COUNT
};
static struct mg_runtime_function functions[] = {
#define MPI(function, peer, tag, count, type, communicator, role, at) {#function, .layer = MG_LAYER_mpi},
#include "calls.def"
#undef MPI
};
static const struct mg_mpi_row rows[] = {
#define MPI(function, peer, tag, count, type, communicator, role, at)                                                  \
    {peer, tag, count, type, communicator, MG_MPI_ROLE_##role, at},
#include "calls.def"
#undef MPI
};
enum { ERR_OTHER = 15, MPICH_WORLD = 0x44000000, MPICH_NULL = 0x04000000, MPICH_BYTE = 0x4c00010d };
_Static_assert((int)MG_MPI_STATE < (int)MG_MPI_BEGIN && (int)MG_MPI_BEGIN < (int)MG_CALL_MOST_ARGUMENTS, "room");

extern void *mg_targets[];
extern void *const mg_traced_table[];
void mg_inject_ready(void);

static void *real[FN_COUNT];
struct mg_mpi mg_mpi;

static int missing(void)
{
    return ERR_OTHER;
}

static bool find_helpers(void)
{
    struct mg_mpi *m = &mg_mpi;
    bool all = true;
#define F(name, of, arguments)                                                                                         \
    *(void **)&m->name = dlsym(RTLD_NEXT, "PMPI_" of);                                                                 \
    all = all && m->name;
    MG_MPI_FUNCTIONS(F)
#undef F
    void *open_mpi = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world"); /* the program may hold the copy that is in use */
    m->ints = !open_mpi;
    m->world = open_mpi ? (uint64_t)(uintptr_t)open_mpi : MPICH_WORLD;
    m->null = open_mpi ? (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "ompi_mpi_comm_null") : MPICH_NULL;
    m->byte = open_mpi ? (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "ompi_mpi_byte") : MPICH_BYTE;
    return all;
}

static void find_link(void)
{
    static const cu_uuid id = MG_RUNTIME_LINK;
    int (*get)(const void **, const cu_uuid *);
    const void *table = NULL;
    *(void **)&get = dlsym(RTLD_DEFAULT, "cuGetExportTable");
    if (get && !get(&table, &id) && table && ((const struct mg_runtime_link *)table)->size >= sizeof *mg_mpi.link)
        mg_mpi.link = table;
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
    for (unsigned i = 0; i < FN_COUNT; i++) mg_targets[i] = mg_mpi.link ? mg_traced_table[i] : real[i];
}

void mg_inject_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
}

static bool is_filtered(const struct mg_runtime_function *f)
{
    return !mg_mpi.link->wants((struct mg_runtime_function *)f);
}

/* Messages of calls outside the window count, too: the order of all decides which belong together. */
void *mg_calls_enter(struct mg_call_frame *f, uint32_t entry, const uint64_t registers[6], const uint64_t *stack)
{
    mg_mpi.link->enter(f, &functions[entry]);
    f->entry = entry;
    f->args[MG_MPI_BEGIN] = 0;
    if (is_filtered(&functions[entry])) return real[entry];
    for (unsigned i = 0; i < MG_MPI_STATE; i++) f->args[i] = i < 6 ? registers[i] : stack[i - 6];
    f->args[MG_MPI_BEGIN] = f->wanted ? f->begin_ns : mg_mpi_now_ns();
    mg_mpi_before(f, &rows[entry], (uint64_t *)registers, (uint64_t *)stack);
    return real[entry];
}

/* Asked for after the call succeeded: its type is a good one. A buffer that is "in place" has no count. */
static uint64_t bytes_of(const struct mg_call_frame *f, const struct mg_mpi_row *r)
{
    if (r->count < 0) return MG_MPI_NONE;
    uint64_t buffer = f->args[r->count - 1];
    bool in_place = (buffer == 1 || buffer == UINT64_MAX) && r->role == MG_MPI_ROLE_NONE;
    return in_place ? MG_MPI_NONE : mg_mpi_bytes(f->args[r->count], f->args[r->type]);
}

void mg_calls_leave(struct mg_call_frame *f, cu_result result)
{
    if (f->args[MG_MPI_BEGIN]) {
        const struct mg_mpi_row *r = &rows[f->entry];
        bool has = r->communicator >= 0;
        uint64_t handle = has ? mg_mpi_handle(f->args[r->communicator]) : 0;
        uint64_t bytes = result ? MG_MPI_NONE : bytes_of(f, r);
        uint64_t peer = result || r->peer < 0 ? MG_MPI_NONE : mg_mpi_world_rank(handle, (int)f->args[r->peer]);
        uint64_t tag = r->tag < 0 ? MG_MPI_NONE : (uint64_t)(int64_t)(int)f->args[r->tag];
        mg_mpi_after(f, r, result, f->args[MG_MPI_BEGIN]);
        f->args[MG_MPI_PEER] = peer;
        f->args[MG_MPI_TAG] = tag;
        f->args[MG_MPI_BYTES] = bytes;
        f->args[MG_MPI_COMMUNICATOR] = has && !result ? mg_mpi_communicator(handle) : MG_MPI_NONE;
        f->n_args = 4;
    }
    mg_mpi.link->leave(f, result);
}
