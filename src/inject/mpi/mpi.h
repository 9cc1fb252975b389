/* The library in front of MPI: what its files share.
 *
 *   mpi.c            MPI_* ── PMPI_*, and the call's record
 *   messages.c       which messages a call sent or received: a record for each end of a message
 *   clocks.c         clocks of other hosts
 *   communicators.c  numbers of communicators that are the same in all their processes */
#ifndef MG_INJECT_MPI_H
#define MG_INJECT_MPI_H

#include <time.h>

#include "inject/calls.h"
#include "span/records.h"

#define MG_MPI_NONE UINT64_MAX
enum mg_mpi_role {
    MG_MPI_ROLE_NONE,
    MG_MPI_ROLE_SEND,
    MG_MPI_ROLE_START_SEND,
    MG_MPI_ROLE_START_RECEIVE,
    MG_MPI_ROLE_KEEP_SEND, /* a persistent request */
    MG_MPI_ROLE_KEEP_RECEIVE,
    MG_MPI_ROLE_START,
    MG_MPI_ROLE_START_ALL,
    MG_MPI_ROLE_FREE,
    MG_MPI_ROLE_CANCEL,
    MG_MPI_ROLE_RECEIVE,
    MG_MPI_ROLE_SEND_RECEIVE,
    MG_MPI_ROLE_MATCH, /* a matched probe: the message may be received later, and counts from here on */
    MG_MPI_ROLE_MATCH_NOW,
    MG_MPI_ROLE_RECEIVE_MATCHED,
    MG_MPI_ROLE_START_MATCHED,
    MG_MPI_ROLE_WAIT,
    MG_MPI_ROLE_WAIT_ALL,
    MG_MPI_ROLE_WAIT_ANY,
    MG_MPI_ROLE_WAIT_SOME,
    MG_MPI_ROLE_TEST,
    MG_MPI_ROLE_TEST_ALL,
    MG_MPI_ROLE_TEST_ANY,
    MG_MPI_ROLE_MAKE,       /* a communicator, together with all of its parent */
    MG_MPI_ROLE_MAKE_APART, /* without those that are not in it */
    MG_MPI_ROLE_UNMAKE,
    MG_MPI_ROLE_BEGIN,
    MG_MPI_ROLE_FINISH,
};
struct mg_mpi_row {
    int8_t peer, tag, count, type, communicator, role, at;
};

/* MPI's own functions. Handles are words here: a library that takes an int reads the lower half. */
#define MG_MPI_FUNCTIONS(F)                                                                                            \
    F(type_size, "Type_size", (uint64_t, int *))                                                                       \
    F(test_inter, "Comm_test_inter", (uint64_t, int *))                                                                \
    F(comm_group, "Comm_group", (uint64_t, uint64_t *))                                                                \
    F(remote_group, "Comm_remote_group", (uint64_t, uint64_t *))                                                       \
    F(group_free, "Group_free", (uint64_t *))                                                                          \
    F(group_size, "Group_size", (uint64_t, int *))                                                                     \
    F(translate, "Group_translate_ranks", (uint64_t, int, const int *, uint64_t, int *))                               \
    F(comm_rank, "Comm_rank", (uint64_t, int *))                                                                       \
    F(comm_size, "Comm_size", (uint64_t, int *))                                                                       \
    F(comm_dup, "Comm_dup", (uint64_t, uint64_t *))                                                                    \
    F(comm_free, "Comm_free", (uint64_t *))                                                                            \
    F(send, "Send", (const void *, uint64_t, uint64_t, int, int, uint64_t))                                            \
    F(recv, "Recv", (void *, uint64_t, uint64_t, int, int, uint64_t, void *))                                          \
    F(allgather, "Allgather", (const void *, uint64_t, uint64_t, void *, uint64_t, uint64_t, uint64_t))                \
    F(elements, "Get_elements_x", (const void *, uint64_t, int64_t *))                                                 \
    F(cancelled, "Test_cancelled", (const void *, int *))
struct mg_mpi {
    uint64_t world, null, byte; /* handles: communicators, a type */
    bool ints;                  /* handles are */
    const struct mg_runtime_link *link;
#define F(name, of, arguments) int(*name) arguments;
    MG_MPI_FUNCTIONS(F)
#undef F
};
extern struct mg_mpi mg_mpi;

static inline uint64_t mg_mpi_handle(uint64_t word)
{
    return mg_mpi.ints ? (uint32_t)word : word;
}
static inline uint64_t mg_mpi_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
/* A handle in memory. */
static inline uint64_t mg_mpi_handle_at(const void *at, uint32_t ix)
{
    return mg_mpi.ints ? ((const uint32_t *)at)[ix] : ((const uint64_t *)at)[ix];
}

/* ---- messages.c: around every call that is recorded; of a frame the words from MG_MPI_STATE on are its own */
enum { MG_MPI_STATE = 12, MG_MPI_BEGIN = 15 };
/* Gives the call statuses of ours where it asks for none. registers and stack are what the function will get. */
void mg_mpi_before(struct mg_call_frame *f, const struct mg_mpi_row *r, uint64_t *registers, uint64_t *stack);
void mg_mpi_after(struct mg_call_frame *f, const struct mg_mpi_row *r, int result, uint64_t begin_ns);
/* Bytes of so many of a type; all ones: not known. */
uint64_t mg_mpi_bytes(uint64_t count, uint64_t type);

/* ---- clocks.c */
void mg_mpi_align_clocks(bool last);

/* ---- communicators.c */
/* A rank of the communicator as one of the world. Wildcards and no process: all ones. */
uint64_t mg_mpi_world_rank(uint64_t communicator, int peer);
uint64_t mg_mpi_communicator(uint64_t handle); /* its number */
void mg_mpi_made(uint64_t parent, uint64_t handle, uint64_t tag, bool apart);
void mg_mpi_unmade(uint64_t handle);

/* A table of what handles stand for. Without memory nothing is put in. Not thread safe. */
struct mg_mpi_table {
    struct mg_mpi_slot {
        uint64_t key; /* 0: free */
        void *value;
    } * slots;
    uint32_t room, n;
};
void *mg_mpi_table_get(const struct mg_mpi_table *t, uint64_t key);
bool mg_mpi_table_put(struct mg_mpi_table *t, uint64_t key, void *value); /* instead of what is there */
void *mg_mpi_table_take(struct mg_mpi_table *t, uint64_t key);

#endif
