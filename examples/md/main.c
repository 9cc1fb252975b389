/* Molecular dynamics on several ranks of MPI, each with a GPU: a mini-application for one time line of hosts, devices
 * and messages. Every rank moves its slice of the particles; their places go round a ring, and one function of the host
 * launches the two kernels that compute the slice's forces (kernel.cu).
 *
 *   mpirun -n 4 margay run -t timeline,tau=on -o DIR -- ./md [STEPS]
 *
 * The number of ranks divides 216. Prints PASSED when total energy and momentum are conserved. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDeviceGetCount(int *), cuDevicePrimaryCtxRetain(void **, int),
    cuCtxSetCurrent(void *), cuModuleLoadData(void **, const void *),
    cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t),
    cuMemcpyHtoD_v2(uint64_t, const void *, size_t), cuMemcpyDtoH_v2(void *, uint64_t, size_t),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);
extern const char example_ptx[];

enum { SIDE = 6, N = SIDE * SIDE * SIDE, CHUNKS = 8, BLOCK = 32 };
static const double spacing = 1.2, step = 0.002;
static double position[3 * N], velocity[3 * N], force[4 * N];
static int rank, ranks, n_own, first;
static void *nonbonded, *sum_forces;
static uint64_t d_position, d_partial, d_force;

#define CHECK(call) check(#call, call)
static void check(const char *what, int rc)
{
    if (!rc) return;
    fprintf(stderr, "%s: error %d\n", what, rc);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void open_gpu(void)
{
    void *ctx, *module;
    int device, n = 0;
    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&n));
    CHECK(cuDeviceGet(&device, n ? rank % n : 0));
    CHECK(cuDevicePrimaryCtxRetain(&ctx, device));
    CHECK(cuCtxSetCurrent(ctx));
    CHECK(cuModuleLoadData(&module, example_ptx));
    CHECK(cuModuleGetFunction(&nonbonded, module, "dev_nonbonded"));
    CHECK(cuModuleGetFunction(&sum_forces, module, "dev_sum_forces"));
    CHECK(cuMemAlloc_v2(&d_position, sizeof position));
    CHECK(cuMemAlloc_v2(&d_partial, CHUNKS * sizeof force));
    CHECK(cuMemAlloc_v2(&d_force, sizeof force));
}

/* A lattice, and velocities whose sum is 0. */
static void place_particles(void)
{
    double mean[3] = {0};
    uint32_t state = 12345;
    for (int i = 0; i < N; i++) {
        const int at[3] = {i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE};
        for (int k = 0; k < 3; k++) {
            state = state * 1664525u + 1013904223u;
            position[3 * i + k] = at[k] * spacing;
            velocity[3 * i + k] = (double)(state >> 8) / (1 << 24) - 0.5;
            mean[k] += velocity[3 * i + k] / N;
        }
    }
    for (int i = 0; i < 3 * N; i++) velocity[i] -= mean[i % 3];
}

/* Each slice travels round the ring, one neighbour at a time. */
static void share_positions(void)
{
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, doubles = 3 * n_own;
    for (int turn = 0; turn < ranks - 1; turn++) {
        int sent = (rank + ranks - turn) % ranks, got = (rank + ranks - turn - 1) % ranks;
        MPI_Sendrecv(position + sent * doubles, doubles, MPI_DOUBLE, next, turn, position + got * doubles, doubles,
                     MPI_DOUBLE, last, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void compute_forces(void)
{
    int chunk = N / CHUNKS, chunks = CHUNKS;
    double box = SIDE * spacing;
    void *pairs[] = {&n_own, &first, &chunk, &box, &d_position, &d_partial};
    void *sums[] = {&n_own, &chunks, &d_partial, &d_force};
    unsigned blocks = ((unsigned)n_own + BLOCK - 1) / BLOCK, sum_blocks = (4 * (unsigned)n_own + BLOCK - 1) / BLOCK;
    CHECK(cuMemcpyHtoD_v2(d_position, position, sizeof position));
    CHECK(cuLaunchKernel(nonbonded, blocks, CHUNKS, 1, BLOCK, 1, 1, 0, NULL, pairs, NULL));
    CHECK(cuLaunchKernel(sum_forces, sum_blocks, 1, 1, BLOCK, 1, 1, 0, NULL, sums, NULL));
    CHECK(cuMemcpyDtoH_v2(force, d_force, 4 * (size_t)n_own * sizeof *force));
}

/* Of all ranks: energy, and momentum in three dimensions. */
static void sum_up(double out[4])
{
    double mine[4] = {0};
    for (int i = 0; i < n_own; i++) {
        mine[0] += force[4 * i + 3];
        for (int k = 0; k < 3; k++) {
            double v = velocity[3 * (first + i) + k];
            mine[0] += 0.5 * v * v;
            mine[1 + k] += v;
        }
    }
    MPI_Allreduce(mine, out, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void kick(void)
{
    for (int i = 0; i < n_own; i++)
        for (int k = 0; k < 3; k++) velocity[3 * (first + i) + k] += 0.5 * step * force[4 * i + k];
}

static void drift(void)
{
    double box = SIDE * spacing;
    for (int i = 3 * first; i < 3 * (first + n_own); i++) {
        position[i] += step * velocity[i];
        position[i] -= box * floor(position[i] / box);
    }
}

int main(int argc, char **argv)
{
    double before[4], after[4];
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (N % ranks) check("ranks that divide 216", 1);
    n_own = N / ranks;
    first = rank * n_own;
    open_gpu();
    place_particles();
    compute_forces();
    sum_up(before);
    for (int t = 0; t < steps; t++) {
        kick();
        drift();
        share_positions();
        compute_forces();
        kick();
    }
    sum_up(after);
    double energy = fabs(after[0] / before[0] - 1), momentum = 0;
    for (int k = 1; k < 4; k++) momentum = fmax(momentum, fabs(after[k]));
    MPI_Finalize();
    if (rank) return 0;
    printf("energy %.6f, then %.6f after %d steps (%.1e); momentum %.1e\n", before[0], after[0], steps, energy,
           momentum);
    puts(energy < 1e-4 && momentum < 1e-9 ? "PASSED" : "FAILED");
    return energy < 1e-4 && momentum < 1e-9 ? 0 : 1;
}
