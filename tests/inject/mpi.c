/* Ranks that pass a ring of messages, in the world and in a communicator of the odd and even ranks whose order is turned
 * round, and launch a kernel. All counts are known in closed form. usage: mpi fill.ptx. Prints "ok" from rank 0. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *),
    cuMemAlloc_v2(uint64_t *, size_t), cuMemcpyDtoH_v2(void *, uint64_t, size_t),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static void check(int bad, const char *what)
{
    if (!bad) return;
    printf("%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void launch(const char *ptx)
{
    static char text[1 << 16];
    static uint32_t host[32];
    void *ctx, *module, *kernel;
    int device;
    unsigned n = 32;
    uint64_t cells;
    void *params[] = {&cells, &n};
    FILE *f = fopen(ptx, "r");
    check(!f || !fread(text, 1, sizeof text - 1, f), "fill.ptx");
    fclose(f);
    check(cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx) ||
              cuModuleLoadData(&module, text) || cuModuleGetFunction(&kernel, module, "fill") ||
              cuMemAlloc_v2(&cells, 4096) || cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) ||
              cuCtxSynchronize() || cuMemcpyDtoH_v2(host, cells, sizeof host),
          "CUDA");
    check(host[31] != 31, "the kernel's result");
}

int main(int argc, char **argv)
{
    static double data[64], got[64], all[64 * 16];
    int rank, n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    launch(argv[1]);
    int next = (rank + 1) % n, last = (rank + n - 1) % n;
    for (int i = 0; i < 3; i++) { /* 10 (rank + 1) doubles to the next */
        MPI_Request r[2];
        data[0] = rank * 100 + i;
        MPI_Irecv(got, 64, MPI_DOUBLE, last, 7, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(data, 10 * (rank + 1), MPI_DOUBLE, next, 7, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        check(got[0] != last * 100 + i, "a message");
    }
    MPI_Comm half; /* of 4: {2, 0} and {3, 1} */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    int mine, many;
    MPI_Comm_rank(half, &mine);
    MPI_Comm_size(half, &many);
    if (mine == 0) MPI_Send(data, 5, MPI_INT, many - 1, 9, half); /* to the lowest of the world */
    if (mine == many - 1) MPI_Recv(got, 5, MPI_INT, MPI_ANY_SOURCE, 9, half, MPI_STATUS_IGNORE);
    data[0] = rank + 1;
    MPI_Allreduce(MPI_IN_PLACE, data, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check(data[0] != n * (n + 1) / 2, "the sum");
    MPI_Bcast(data, 3, MPI_FLOAT, 1, MPI_COMM_WORLD);
    all[rank] = rank;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Gather(rank ? (void *)data : MPI_IN_PLACE, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Send(data, 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Comm_free(&half);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (!rank) puts("ok");
    return 0;
}
