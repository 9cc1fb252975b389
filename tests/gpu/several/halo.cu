/* A stencil in parts, each on a GPU (part p on device p modulo their number), which read the rows beside theirs from the
 * neighbour's memory: by peer loads in the kernel, or by copies.
 *   halo load|copy PARTS THREADS|one [ROWS COLUMNS STEPS]
 * THREADS: a host thread for each part, else one for all. Checks itself against the host and prints a sum of all bits:
 * what it prints, and what its kernels count, does not depend on how many GPUs there are. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <pthread.h>
#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e_)); exit(2); } } while (0)

__global__ void step(const unsigned *up, const unsigned *own, const unsigned *down, unsigned *to, int rows, int columns)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= columns) return;
    unsigned a = y ? own[(y - 1) * columns + x] : up ? up[x] : 0, b = y + 1 < rows ? own[(y + 1) * columns + x] : down ? down[x] : 0;
    unsigned l = x ? own[y * columns + x - 1] : 0, r = x + 1 < columns ? own[y * columns + x + 1] : 0;
    to[y * columns + x] = 3 * own[y * columns + x] + a + 2 * b + 5 * l + 7 * r + (y & 1 ? x : 0);
}

enum { MOST = 16 };
static int parts, rows = 48, columns = 1000, steps = 6, n_devices;
static bool load, threads;
static struct part { int device; cudaStream_t stream; cudaEvent_t done[2]; unsigned *at[2], *halo[2]; } part[MOST];
static pthread_barrier_t meet;

/* Part p's step s; those beside it have done theirs of the turn before. */
static void turn(int p, int s)
{
    struct part *t = &part[p];
    int from = s & 1, to = !from;
    CHECK(cudaSetDevice(t->device));
    for (int side = -1; side <= 1; side += 2) {
        int o = p + side;
        if (o < 0 || o >= parts) continue;
        if (s) CHECK(cudaStreamWaitEvent(t->stream, part[o].done[from], 0));
        if (!load)
            CHECK(cudaMemcpyPeerAsync(t->halo[side > 0], t->device, part[o].at[from] + (side < 0 ? (size_t)(rows - 1) * columns : 0),
                                      part[o].device, columns * 4, t->stream));
    }
    const unsigned *up = !p ? NULL : load ? part[p - 1].at[from] + (size_t)(rows - 1) * columns : t->halo[0];
    const unsigned *down = p + 1 == parts ? NULL : load ? part[p + 1].at[from] : t->halo[1];
    step<<<dim3((columns + 127) / 128, rows), 128, 0, t->stream>>>(up, t->at[from], down, t->at[to], rows, columns);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(t->done[to], t->stream));
}

static void *run(void *arg)
{
    int p = (int)(size_t)arg;
    for (int s = 0; s < steps; s++) {
        turn(p, s);
        pthread_barrier_wait(&meet); /* all have recorded their events */
    }
    CHECK(cudaStreamSynchronize(part[p].stream));
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4) return 3;
    load = !strcmp(argv[1], "load"), parts = atoi(argv[2]), threads = strcmp(argv[3], "one");
    if (argc > 6) rows = atoi(argv[4]), columns = atoi(argv[5]), steps = atoi(argv[6]);
    if (parts < 1 || parts > MOST) return 3;
    CHECK(cudaGetDeviceCount(&n_devices));
    size_t n = (size_t)rows * columns;
    unsigned *a = (unsigned *)calloc(n * parts, 4), *b = (unsigned *)calloc(n * parts, 4), *got = (unsigned *)calloc(n * parts, 4);
    for (size_t i = 0; i < n * parts; i++) a[i] = (unsigned)(i * 2654435761u);
    for (int p = 0; p < parts; p++) {
        struct part *t = &part[p];
        t->device = p % n_devices;
        CHECK(cudaSetDevice(t->device));
        for (int o = 0; o < n_devices && o < parts; o++) {
            int can = 0;
            if (o == t->device || p >= n_devices) continue;
            CHECK(cudaDeviceCanAccessPeer(&can, t->device, o));
            if (can) CHECK(cudaDeviceEnablePeerAccess(o, 0));
            else if (load) { printf("no peer access from %d to %d\n", t->device, o); return 77; }
        }
        CHECK(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking));
        for (int k = 0; k < 2; k++) {
            CHECK(cudaEventCreateWithFlags(&t->done[k], cudaEventDisableTiming));
            CHECK(cudaMalloc(&t->at[k], n * 4));
            CHECK(cudaMalloc(&t->halo[k], columns * 4));
        }
        CHECK(cudaMemcpy(t->at[0], a + p * n, n * 4, cudaMemcpyHostToDevice));
    }
    pthread_barrier_init(&meet, NULL, threads ? parts : 1);
    if (threads) {
        pthread_t id[MOST];
        for (int p = 0; p < parts; p++) pthread_create(&id[p], NULL, run, (void *)(size_t)p);
        for (int p = 0; p < parts; p++) pthread_join(id[p], NULL);
    } else {
        for (int s = 0; s < steps; s++) for (int p = 0; p < parts; p++) turn(p, s);
        for (int p = 0; p < parts; p++) CHECK(cudaStreamSynchronize(part[p].stream));
    }
    for (int p = 0; p < parts; p++) CHECK(cudaMemcpy(got + p * n, part[p].at[steps & 1], n * 4, cudaMemcpyDeviceToHost));
    int all = rows * parts;
    for (int s = 0; s < steps; s++) {
        for (int y = 0; y < all; y++)
            for (int x = 0; x < columns; x++) {
                unsigned up = y ? a[(size_t)(y - 1) * columns + x] : 0, down = y + 1 < all ? a[(size_t)(y + 1) * columns + x] : 0;
                unsigned l = x ? a[(size_t)y * columns + x - 1] : 0, r = x + 1 < columns ? a[(size_t)y * columns + x + 1] : 0;
                b[(size_t)y * columns + x] = 3 * a[(size_t)y * columns + x] + up + 2 * down + 5 * l + 7 * r + (y % rows & 1 ? x : 0);
            }
        unsigned *c = a;
        a = b, b = c;
    }
    size_t wrong = 0, sum = 0;
    for (size_t i = 0; i < n * parts; i++) wrong += a[i] != got[i], sum += (size_t)got[i] * (i | 1);
    printf("%d parts: sum %zx, %zu wrong\n", parts, sum, wrong);
    fprintf(stderr, "devices %d\n", n_devices < parts ? n_devices : parts);
    return wrong != 0;
}
