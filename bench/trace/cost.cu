/* cost saxpy|matmul|spmv|bfs [SIZE]: four programs whose kernels show what recording every access costs: adjacent
 * accesses, regular loops, irregular ones, divergent ones. Each checks its result and prints "NAME: PASSED". */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../kernels.cuh"

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t e = (call);                                                                                        \
        if (e != cudaSuccess) {                                                                                        \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e));                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { BLOCK = 256, ROUNDS = 3 };

extern "C" __global__ void spmv(int n, const int *first, const int *column, const float *value, const float *x,
                                float *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float sum = 0;
    for (int e = first[row]; e < first[row + 1]; e++) sum += value[e] * x[column[e]];
    y[row] = sum;
}
extern "C" __global__ void bfs(int n, int level, const int *first, const int *edges, int *depth, int *changed)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || depth[v] != level) return;
    for (int e = first[v]; e < first[v + 1]; e++)
        if (depth[edges[e]] < 0) {
            depth[edges[e]] = level + 1; /* every writer writes the same value */
            *changed = 1;
        }
}

static uint32_t seed = 1;
static uint32_t pick(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)seed * below >> 32);
}
template <typename T> static T *to_device(const std::vector<T> &v)
{
    T *p;
    CHECK(cudaMalloc(&p, v.size() * sizeof(T)));
    CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}
template <typename T> static void from_device(std::vector<T> &v, const T *p)
{
    CHECK(cudaMemcpy(v.data(), p, v.size() * sizeof(T), cudaMemcpyDeviceToHost));
}
static int blocks(int n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static bool run_saxpy(int n)
{
    std::vector<float> x(n), y(n, 1), got(n);
    for (int i = 0; i < n; i++) x[i] = (float)(i % 64);
    float *dx = to_device(x), *dy = to_device(y);
    for (int r = 0; r < ROUNDS; r++) saxpy<<<blocks(n), BLOCK>>>(n, 2, dx, dy);
    from_device(got, dy);
    for (int i = 0; i < n; i++)
        if (got[i] != 1 + ROUNDS * 2 * x[i]) return false;
    return true;
}
static bool run_matmul(int n)
{
    n = (n + TILE - 1) / TILE * TILE;
    std::vector<float> a((size_t)n * n), b((size_t)n * n), c((size_t)n * n);
    for (size_t i = 0; i < a.size(); i++) a[i] = (float)(i % 3), b[i] = (float)(i % 5);
    float *da = to_device(a), *db = to_device(b), *dc = to_device(c);
    for (int r = 0; r < ROUNDS; r++) matmul<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(n, da, db, dc);
    from_device(c, dc);
    for (int k = 0; k < 64; k++) { /* some of them: small whole numbers, exact */
        int row = (int)pick((uint32_t)n), col = (int)pick((uint32_t)n);
        float want = 0;
        for (int i = 0; i < n; i++) want += a[(size_t)row * n + i] * b[(size_t)i * n + col];
        if (c[(size_t)row * n + col] != want) return false;
    }
    return true;
}
static bool run_spmv(int n)
{
    std::vector<int> first(n + 1), column;
    std::vector<float> value, x(n), y(n);
    for (int r = 0; r < n; r++) {
        x[r] = (float)(r % 7);
        for (uint32_t e = 2 + pick(9); e; e--)
            column.push_back((int)pick((uint32_t)n)), value.push_back((float)pick(4));
        first[r + 1] = (int)column.size();
    }
    int *df = to_device(first), *dc = to_device(column);
    float *dv = to_device(value), *dx = to_device(x), *dy = to_device(y);
    for (int r = 0; r < ROUNDS; r++) spmv<<<blocks(n), BLOCK>>>(n, df, dc, dv, dx, dy);
    from_device(y, dy);
    for (int r = 0; r < n; r++) {
        float want = 0;
        for (int e = first[r]; e < first[r + 1]; e++) want += value[e] * x[column[e]];
        if (y[r] != want) return false;
    }
    return true;
}
static bool run_bfs(int n)
{
    std::vector<int> first(n + 1), edges, depth(n, -1), want(n, -1), queue(1, 0), changed(1);
    for (int v = 0; v < n; v++) {
        for (uint32_t e = 2 + pick(9); e; e--) edges.push_back((int)pick((uint32_t)n));
        first[v + 1] = (int)edges.size();
    }
    depth[0] = want[0] = 0;
    for (size_t i = 0; i < queue.size(); i++)
        for (int e = first[queue[i]]; e < first[queue[i] + 1]; e++)
            if (want[edges[e]] < 0) want[edges[e]] = want[queue[i]] + 1, queue.push_back(edges[e]);
    int *df = to_device(first), *de = to_device(edges), *dd = to_device(depth), *dc = to_device(changed);
    for (int level = 0;; level++) {
        CHECK(cudaMemset(dc, 0, sizeof(int)));
        bfs<<<blocks(n), BLOCK>>>(n, level, df, de, dd, dc);
        from_device(changed, dc);
        if (!changed[0]) break;
    }
    from_device(depth, dd);
    return depth == want;
}

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        bool (*run)(int n);
        int size;
    } programs[] = {{"saxpy", run_saxpy, 1 << 24},
                    {"matmul", run_matmul, 1024},
                    {"spmv", run_spmv, 1 << 20},
                    {"bfs", run_bfs, 1 << 20}};
    for (const auto &p : programs) {
        if (argc < 2 || strcmp(p.name, argv[1])) continue;
        bool good = p.run(argc > 2 ? atoi(argv[2]) : p.size);
        CHECK(cudaDeviceSynchronize());
        printf("%s: %s\n", p.name, good ? "PASSED" : "FAILED");
        return !good;
    }
    fprintf(stderr, "usage: cost saxpy|matmul|spmv|bfs [SIZE]\n");
    return 2;
}
