/* Barriers for a second; rank by rank the true times around each: "barrier RANK N before after". usage: mpi_clocks
 * fill.ptx */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuMemAlloc_v2(uint64_t *, size_t);

static long long now(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
    int rank, device;
    void *ctx;
    uint64_t p;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx) ||
        cuMemAlloc_v2(&p, 4096))
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < 10; i++) {
        long long before = now();
        MPI_Barrier(MPI_COMM_WORLD);
        printf("barrier %d %d %lld %lld\n", rank, i, before, now());
        usleep(100000);
    }
    MPI_Finalize();
    return 0;
}
