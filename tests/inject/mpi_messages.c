/* Messages of every way that MPI has to send and receive them. Each has a length of its own, so that what a trace says
 * of its two ends is checked without trusting the order. Every end is printed: "sent LENGTH RANK" and "got LENGTH
 * RANK". The ring is odd on purpose: two communicators with the same tags, receives of any source and tag, requests
 * completed in another order than they were posted. usage: mpi_messages fill.ptx [more than 65536: so many bytes at
 * least] */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *),
    cuMemAlloc_v2(uint64_t *, size_t),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

enum { WAYS = 64, ROOM = 1 << 20 };
static int rank, ranks, base;
static char out[32][ROOM], in[32][ROOM];

static void launch(const char *ptx)
{
    static char text[1 << 16];
    void *ctx, *module, *kernel;
    int device;
    unsigned n = 32;
    uint64_t cells;
    void *params[] = {&cells, &n};
    FILE *f = fopen(ptx, "r");
    if (!f || !fread(text, 1, sizeof text - 1, f) || cuInit(0) || cuDeviceGet(&device, 0) ||
        cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx) || cuModuleLoadData(&module, text) ||
        cuModuleGetFunction(&kernel, module, "fill") || cuMemAlloc_v2(&cells, 4096) ||
        cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) || cuCtxSynchronize())
        MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The length of a message of this way from a rank: no two are equal. */
static int length(int from, int way)
{
    return base + 16 + from * WAYS + way;
}
static int send_length(int way, int to)
{
    printf("sent %d %d %d\n", length(rank, way), rank, to);
    return length(rank, way);
}
static char *mark(int slot, int n)
{
    *(int *)(void *)out[slot] = n;
    return out[slot];
}
static void got(int slot)
{
    printf("got %d %d\n", *(int *)(void *)in[slot], rank);
}

/* Three messages of one tag in each of two communicators, sent in turn, received the other way round. */
static void twice(MPI_Comm a, MPI_Comm b)
{
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, index, flag = 0;
    MPI_Request s[6], r[6];
    for (int i = 0; i < 6; i++) {
        int n = send_length(i, next);
        if (i == 5 && rank % 2) usleep(300000); /* the next one asks thousands of times, before its first call of CUDA */
        MPI_Isend(mark(i, n), n, MPI_CHAR, next, 5, i % 2 ? b : a, &s[i]);
    }
    for (int i = 0; i < 6; i++) MPI_Irecv(in[i], ROOM, MPI_CHAR, last, i == 4 ? MPI_ANY_TAG : 5, i < 3 ? b : a, &r[i]);
    MPI_Wait(&r[5], MPI_STATUS_IGNORE);
    got(5);
    for (int i = 0; i < 2; i++) {
        MPI_Waitany(5, r, &index, MPI_STATUS_IGNORE);
        got(index);
    }
    while (!flag) MPI_Testany(5, r, &index, &flag, MPI_STATUS_IGNORE);
    got(index);
    int some[5], n = 0, left = 2;
    while (left) {
        MPI_Testsome(5, r, &n, some, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++, left--) got(some[i]);
    }
    MPI_Request_free(&s[0]);
    MPI_Waitall(5, s + 1, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All send to rank 0, which takes them from any source: two posted before, the others as they come. */
static void any(void)
{
    MPI_Request r[2];
    if (!rank)
        for (int i = 0; i < 2; i++) MPI_Irecv(in[i], ROOM, MPI_CHAR, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &r[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank && i < 2; i++) {
        int n = send_length(8 + i, 0);
        (i ? MPI_Send : MPI_Ssend)(mark(0, n), n, MPI_CHAR, 0, 6, MPI_COMM_WORLD);
    }
    for (int i = 2; !rank && i < 2 * (ranks - 1); i++) {
        MPI_Recv(in[2], ROOM, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        got(2);
    }
    if (rank) return;
    MPI_Status status[2];
    MPI_Waitall(2, r, status);
    got(0);
    got(1);
    int n;
    MPI_Get_count(&status[1], MPI_CHAR, &n);
    if (n != *(int *)(void *)in[1] || status[1].MPI_TAG != 6) MPI_Abort(MPI_COMM_WORLD, 2);
}

static void both(void)
{
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, n = send_length(10, next);
    MPI_Sendrecv(mark(0, n), n, MPI_CHAR, next, 7, in[0], ROOM, MPI_CHAR, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    got(0);
    n = send_length(11, next);
    *(int *)(void *)in[0] = n;
    /* of one length for all: what is in place has one */
    MPI_Sendrecv(mark(0, n), n, MPI_CHAR, next, 8, in[1], ROOM, MPI_CHAR, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    got(1);
}

static void persistent(MPI_Comm c)
{
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, flag;
    MPI_Request r[2];
    int n = length(rank, 12);
    MPI_Recv_init(in[0], ROOM, MPI_CHAR, last, 5, c, &r[0]);
    MPI_Send_init(mark(0, n), n, MPI_CHAR, next, 5, c, &r[1]);
    for (int i = 0; i < 3; i++) {
        send_length(12, next);
        if (i)
            MPI_Startall(2, r);
        else
            MPI_Start(&r[0]), MPI_Start(&r[1]);
        for (flag = 0; i == 2 && !flag;) MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE);
        if (i < 2) MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        got(0);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

/* Probed and taken by handle; a receive that never comes is cancelled in between. */
static void probed(MPI_Comm c)
{
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, flag = 0;
    MPI_Request s[2], r;
    MPI_Message m[2];
    for (int i = 0; i < 2; i++) {
        int n = send_length(13 + i, next);
        MPI_Isend(mark(i, n), n, MPI_CHAR, next, 9, c, &s[i]);
    }
    MPI_Mprobe(last, 9, c, &m[0], MPI_STATUS_IGNORE);
    while (!flag) MPI_Improbe(last, MPI_ANY_TAG, c, &flag, &m[1], MPI_STATUS_IGNORE);
    MPI_Imrecv(in[1], ROOM, MPI_CHAR, &m[1], &r);
    MPI_Mrecv(in[0], ROOM, MPI_CHAR, &m[0], MPI_STATUS_IGNORE);
    got(0);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    got(1);
    MPI_Waitall(2, s, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(in[2], ROOM, MPI_CHAR, last, 10, c, &r);
    MPI_Cancel(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    int n = send_length(15, next);
    MPI_Isend(mark(0, n), n, MPI_CHAR, next, 10, c, &s[0]);
    MPI_Recv(in[0], ROOM, MPI_CHAR, last, 10, c, MPI_STATUS_IGNORE);
    got(0);
    MPI_Wait(&s[0], MPI_STATUS_IGNORE);
}

/* Odd and even ranks, turned round; and between the two halves. */
static void halves(void)
{
    MPI_Comm half, between;
    int mine, n;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &mine);
    n = send_length(16, rank < 2 ? rank + 2 : rank - 2);
    MPI_Sendrecv(mark(0, n), n, MPI_CHAR, 1 - mine, 5, in[0], ROOM, MPI_CHAR, MPI_ANY_SOURCE, 5, half,
                 MPI_STATUS_IGNORE);
    got(0);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 2 : 3, 11, &between);
    n = send_length(17, rank ^ 1);
    MPI_Sendrecv(mark(0, n), n, MPI_CHAR, mine, 5, in[0], ROOM, MPI_CHAR, mine, 5, between, MPI_STATUS_IGNORE);
    got(0);
    MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_MAX, half);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    MPI_Comm a, b;
    int value = 0;
    base = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_dup(MPI_COMM_WORLD, &b);
    if (rank % 2) launch(argv[1]); /* the others have sent by then */
    twice(a, b);
    if (rank % 2 == 0) launch(argv[1]);
    any();
    MPI_Barrier(MPI_COMM_WORLD); /* it takes any tag */
    both();
    persistent(b);
    probed(a);
    halves();
    MPI_Bcast(&value, 1, MPI_INT, 2, MPI_COMM_WORLD);
    MPI_Comm_free(&b);
    MPI_Comm_free(&a);
    MPI_Finalize();
    return 0;
}
