// grids KERNEL SIZE GRID[,GRID...] [ROUNDS]: one kernel at several grids, ROUNDS times each in turn: the same work at every grid, in loops over
// the grid. Checks the last result, prints PASSED. With `one` behind ROUNDS a CTA takes all shared memory that one may have: a
// multiprocessor holds one CTA, and the grid is the number of those that work.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

enum { BLOCK = 256, TILE = 16, BINS = 256 };
#define FIRST (blockIdx.x * (size_t)blockDim.x + threadIdx.x)
#define STEP  (gridDim.x * (size_t)blockDim.x)

extern "C" __global__ void saxpy(size_t n, const float *x, float *y)
{
    for (size_t i = FIRST; i < n; i += STEP) y[i] = 2 * x[i] + 1;
}

extern "C" __global__ void reduction(size_t n, const float *x, float *y)
{
    __shared__ float part[BLOCK];
    float sum = 0;
    for (size_t i = FIRST; i < n; i += STEP) sum += x[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int k = BLOCK / 2; k; k /= 2) {
        if ((int)threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (!threadIdx.x) atomicAdd(y, part[0]);
}

extern "C" __global__ void stencil(size_t n, const float *x, float *y)
{
    for (size_t i = FIRST; i < n; i += STEP) {
        float s = x[i];
        for (int k = 1; k <= 3; k++) s += x[i < (size_t)k ? 0 : i - k] + x[i + k < n ? i + k : n - 1];
        y[i] = s / 7;
    }
}

extern "C" __global__ void histogram(size_t n, const float *x, float *y)
{
    __shared__ unsigned bins[BINS];
    unsigned *to = (unsigned *)y;
    for (int k = threadIdx.x; k < BINS; k += blockDim.x) bins[k] = 0;
    __syncthreads();
    for (size_t i = FIRST; i < n; i += STEP) atomicAdd(&bins[(int)x[i] % BINS], 1u);
    __syncthreads();
    for (int k = threadIdx.x; k < BINS; k += blockDim.x)
        if (bins[k]) atomicAdd(&to[k], bins[k]);
}

// n: the side. Tiles of the result, one after the other.
extern "C" __global__ void matmul(size_t n, const float *x, float *y)
{
    __shared__ float s[TILE][TILE], t[TILE][TILE];
    size_t side = n / TILE, c = threadIdx.x % TILE, r = threadIdx.x / TILE;
    for (size_t i = blockIdx.x; i < side * side; i += gridDim.x) {
        size_t row = i / side * TILE + r, col = i % side * TILE + c;
        float sum = 0;
        for (size_t k = 0; k < n; k += TILE) {
            s[r][c] = x[row * n + k + c];
            t[r][c] = x[(k + r) * n + col];
            __syncthreads();
            for (int j = 0; j < TILE; j++) sum += s[r][j] * t[j][c];
            __syncthreads();
        }
        y[row * n + col] = sum;
    }
}

// A chain of arithmetic on each element: nothing but instructions limits it.
extern "C" __global__ void polynomial(size_t n, const float *x, float *y)
{
    for (size_t i = FIRST; i < n; i += STEP) {
        float v = x[i] / 256, s = 0;
        for (int k = 0; k < 64; k++) s = s * v + 1;
        y[i] = s;
    }
}

typedef void kernel(size_t, const float *, float *);
static const struct { const char *name; kernel *f; } kernels[] = {{"saxpy", saxpy}, {"reduction", reduction}, {"stencil", stencil},
                                                                   {"histogram", histogram}, {"matmul", matmul}, {"polynomial", polynomial}};

static bool is_right(const char *name, size_t n, const std::vector<float> &x, const std::vector<float> &y)
{
    if (!strcmp(name, "matmul")) {
        size_t row = n / 3, col = n / 2;
        double sum = 0;
        for (size_t k = 0; k < n; k++) sum += (double)x[row * n + k] * x[k * n + col];
        return abs(y[row * n + col] - sum) <= 1e-4 * sum;
    }
    if (!strcmp(name, "reduction")) {
        double sum = 0;
        for (float v : x) sum += v;
        return abs(y[0] - sum) <= 1e-3 * sum;
    }
    if (!strcmp(name, "histogram")) {
        const unsigned *bins = (const unsigned *)y.data();
        size_t sum = 0;
        for (int k = 0; k < BINS; k++) sum += bins[k];
        return sum == n;
    }
    size_t i = n / 2;
    double s = 0;
    if (!strcmp(name, "saxpy")) return y[i] == 2 * x[i] + 1;
    if (!strcmp(name, "stencil")) {
        for (size_t k = i - 3; k <= i + 3; k++) s += x[k] / 7.;
        return abs(y[i] - s) <= 1e-4 * s;
    }
    for (int k = 0; k < 64; k++) s = s * (x[i] / 256) + 1;
    return abs(y[i] - s) <= 1e-4 * s;
}

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t e = (call);                                                                                        \
        if (e != cudaSuccess) return fprintf(stderr, "grids: %s: %s\n", #call, cudaGetErrorString(e)), 1;              \
    } while (0)

int main(int argc, char **argv)
{
    kernel *f = nullptr;
    if (argc < 4) return fprintf(stderr, "usage: grids KERNEL SIZE GRID[,GRID...] [ROUNDS [one]]\n"), 2;
    for (auto &k : kernels)
        if (!strcmp(argv[1], k.name)) f = k.f;
    bool square = !strcmp(argv[1], "matmul");
    size_t n = strtoull(argv[2], nullptr, 10), count = square ? n * n : n, shared = 0;
    int rounds = argc > 4 ? atoi(argv[4]) : 3, most = 0, part = 0;
    std::vector<int> grids;
    for (char *p = argv[3]; *p; p += *p == ',') grids.push_back((int)strtol(p, &p, 10));
    if (!f || n < 16 || (square && n % TILE)) return fprintf(stderr, "grids: no such kernel or size\n"), 2;
    if (argc > 5) {
        cudaFuncAttributes a;
        CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
        CHECK(cudaFuncGetAttributes(&a, (const void *)f));
        part = (int)a.sharedSizeBytes;
        shared = (size_t)(most - part);
        CHECK(cudaFuncSetAttribute((const void *)f, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    }
    std::vector<float> x(count), y(count);
    for (size_t i = 0; i < count; i++) x[i] = (float)(i * 7 % 255 + 1);
    float *dx, *dy;
    CHECK(cudaMalloc(&dx, count * sizeof(float)));
    CHECK(cudaMalloc(&dy, count * sizeof(float)));
    CHECK(cudaMemcpy(dx, x.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    for (int r = 0; r < rounds; r++)
        for (int g : grids) {
            CHECK(cudaMemset(dy, 0, count * sizeof(float)));
            f<<<g, BLOCK, shared>>>(n, dx, dy);
            CHECK(cudaGetLastError());
        }
    CHECK(cudaMemcpy(y.data(), dy, count * sizeof(float), cudaMemcpyDeviceToHost));
    bool right = is_right(argv[1], n, x, y);
    puts(right ? "grids: PASSED" : "grids: FAILED");
    return !right;
}
