/* Before and after: five mendings and five regressions in the shape of real ones, `PROGRAM CASE`. AFTER is the source as
 * changed, else as it was. Either prints one result. tests/tool/verdicts.py gives it other names, places of lines and sizes. */
#include "common.h"

constexpr int ROWS = 16384, TERMS = 24;      /* rows, columns, sums */
constexpr int SIDE = 512;                    /* turn, window */
constexpr int CHUNKS = 300;                  /* halves */
constexpr int GROUPS = 120, ITEMS = 12;      /* dealt */
constexpr int RECORDS = 256 * 250;           /* nearest */
constexpr int PAIRS = 256 * 200, DEPTH = 40; /* parity */
constexpr int PARTS = 280;                   /* share */
constexpr int ORDER = 96;                    /* product */

/* A thread for each row of a matrix: its columns lie together, then its rows. */
__global__ void columns(const float *matrix, const float *weight, float *out)
{
    int row = blockIdx.x * 128 + threadIdx.x;
    float sum = 0;
    for (int c = 0; c < TERMS; c++)
#ifdef AFTER
        sum += matrix[c * ROWS + row] * weight[c];
#else
        sum += matrix[row * TERMS + c] * weight[c];
#endif
    out[row] = sum;
}

/* A sum that is kept in memory, then in a register. */
__global__ void sums(const float *matrix, const float *weight, float *out)
{
    int row = blockIdx.x * 128 + threadIdx.x;
#ifdef AFTER
    float sum = 0;
    for (int c = 0; c < TERMS; c++) sum += matrix[c * ROWS + row] * weight[c];
    out[row] = sum;
#else
    out[row] = 0;
    for (int c = 0; c < TERMS; c++) out[row] += matrix[c * ROWS + row] * weight[c];
#endif
}

/* A matrix that is turned through a tile, whose rows then get one element more. */
__global__ void turn(const float *from, float *to)
{
#ifdef AFTER
    __shared__ float tile[32][33];
#else
    __shared__ float tile[32][32];
#endif
    int left = blockIdx.x * 32, top = blockIdx.y * 32;
    for (int k = threadIdx.y; k < 32; k += 8) tile[k][threadIdx.x] = from[(top + k) * SIDE + left + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8) to[(left + k) * SIDE + top + threadIdx.x] = tile[threadIdx.x][k];
}

/* Halves that add up: every second thread, every fourth, ..., then threads that lie together. */
__global__ void halves(const int *numbers, int *out)
{
    __shared__ int part[256];
    int me = threadIdx.x;
    part[me] = numbers[blockIdx.x * 256 + me];
    __syncthreads();
#ifdef AFTER
    for (int step = 128; step > 0; step /= 2) {
        if (me < step) part[me] += part[me + step];
        __syncthreads();
    }
#else
    for (int step = 1; step < 256; step *= 2) {
        if (me % (2 * step) == 0) part[me] += part[me + step];
        __syncthreads();
    }
#endif
    if (me == 0) out[blockIdx.x] = part[0];
}

/* Items that take longer the later they come: a CTA takes neighbours, then every GROUPS-th. */
__global__ void dealt(unsigned *out)
{
    for (int k = 0; k < ITEMS; k++) {
#ifdef AFTER
        int item = k * GROUPS + blockIdx.x;
#else
        int item = blockIdx.x * ITEMS + k;
#endif
        unsigned v = item + threadIdx.x;
#pragma unroll 1
        for (int round = 0; round < item / 32; round++) v = v * 1664525u + 1013904223u;
        out[item * 64 + threadIdx.x] = v;
    }
}

/* Records of which two numbers are read; then they carry more. */
struct place {
    float width, length;
#ifdef AFTER
    char name[24];
#endif
};
__global__ void nearest(const place *places, float *out)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float w = places[i].width - 3, l = places[i].length - 5;
    out[i] = w * w + l * l;
}

/* Two ways: by warps, then by neighbours. */
__global__ void parity(unsigned *out)
{
    unsigned i = blockIdx.x * 256 + threadIdx.x;
#ifdef AFTER
    unsigned me = i % 2 * 32 + i / 64 * 64 + i % 64 / 2;
#else
    unsigned me = i;
#endif
    unsigned v = me;
    if (me & 32)
#pragma unroll 1
        for (int k = 0; k < DEPTH; k++) v = v * 1664525u + k;
    else
#pragma unroll 1
        for (int k = 0; k < DEPTH; k++) v = (v ^ k) * 22695477u;
    out[me] = v;
}

/* Each element is stored in a tile as it lies, then turned. */
__device__ static int cell(int row, int column)
{
#ifdef AFTER
    return column * 32 + row;
#else
    return row * 32 + column;
#endif
}
__global__ void window(const float *from, float *to)
{
    __shared__ float tile[32 * 32];
    int x = threadIdx.x, y = threadIdx.y, at = (blockIdx.y * 32 + y) * SIDE + blockIdx.x * 32 + x;
    for (int k = 0; k < 32; k += 8) tile[cell(y + k, x)] = from[at + k * SIDE];
    __syncthreads();
    for (int k = 0; k < 32; k += 8) to[at + k * SIDE] = tile[cell(y + k, x)] + tile[cell(y + k, (x + 1) % 32)];
}

/* Parts of a vector: equal ones, then the first CTA takes half of it. */
__global__ void share(const float *a, const float *b, float *out)
{
#ifdef AFTER
    int first = blockIdx.x ? (PARTS + blockIdx.x) * 256 : 0, count = blockIdx.x ? 1 : PARTS + 1;
#else
    int first = blockIdx.x * 512, count = 2;
#endif
#pragma unroll 1
    for (int k = 0; k < count; k++) {
        int i = first + k * 256 + threadIdx.x;
        out[i] = a[i] + b[i];
    }
}

/* A product of matrices: neighbours take one row, then one column. */
__global__ void product(const float *a, const float *b, float *out)
{
#ifdef AFTER
    int row = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y * 8 + threadIdx.y;
#else
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
#endif
    float sum = 0;
    for (int k = 0; k < ORDER; k++) sum += a[row * ORDER + k] * b[k * ORDER + column];
    out[row * ORDER + column] = sum;
}

template <class T> static std::vector<T> numbers(size_t n)
{
    std::vector<T> v(n);
    for (size_t i = 0; i < n; i++) v[i] = (T)(mix(i) % 16);
    return v;
}

template <class T> static void say(const T *d, size_t n)
{
    CHECK(cudaDeviceSynchronize());
    print_sum(from_device(d, n));
}

/* Columns one behind the other, or rows. */
static std::vector<float> matrix(bool by_columns)
{
    std::vector<float> m(ROWS * TERMS);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < TERMS; c++) m[by_columns ? c * ROWS + r : r * TERMS + c] = (float)(mix(r * 131 + c) % 16);
    return m;
}

int main(int argc, char **argv)
{
    const char *name = argc == 2 ? argv[1] : "";
    bool after = false;
#ifdef AFTER
    after = true;
#endif
    size_t most = 1 << 20;
    float *out = to_device(std::vector<float>(most));
    if (!strcmp(name, "columns")) {
        columns<<<ROWS / 128, 128>>>(to_device(matrix(after)), to_device(numbers<float>(TERMS)), out);
        say(out, ROWS);
    } else if (!strcmp(name, "sums")) {
        sums<<<ROWS / 128, 128>>>(to_device(matrix(true)), to_device(numbers<float>(TERMS)), out);
        say(out, ROWS);
    } else if (!strcmp(name, "turn")) {
        turn<<<dim3(SIDE / 32, SIDE / 32), dim3(32, 8)>>>(to_device(numbers<float>(SIDE * SIDE)), out);
        say(out, SIDE * SIDE);
    } else if (!strcmp(name, "halves")) {
        halves<<<CHUNKS, 256>>>(to_device(numbers<int>(CHUNKS * 256)), (int *)out);
        say((int *)out, CHUNKS);
    } else if (!strcmp(name, "dealt")) {
        dealt<<<GROUPS, 64>>>((unsigned *)out);
        say((unsigned *)out, GROUPS * ITEMS * 64);
    } else if (!strcmp(name, "nearest")) {
        std::vector<place> places(RECORDS);
        for (int i = 0; i < RECORDS; i++) places[i].width = (float)(mix(i) % 16), places[i].length = (float)(i % 16);
        nearest<<<RECORDS / 256, 256>>>(to_device(places), out);
        say(out, RECORDS);
    } else if (!strcmp(name, "parity")) {
        parity<<<PAIRS / 256, 256>>>((unsigned *)out);
        say((unsigned *)out, PAIRS);
    } else if (!strcmp(name, "window")) {
        window<<<dim3(SIDE / 32, SIDE / 32), dim3(32, 8)>>>(to_device(numbers<float>(SIDE * SIDE)), out);
        say(out, SIDE * SIDE);
    } else if (!strcmp(name, "share")) {
        share<<<PARTS, 256>>>(to_device(numbers<float>(PARTS * 512)), to_device(numbers<float>(PARTS * 512)), out);
        say(out, PARTS * 512);
    } else if (!strcmp(name, "product")) {
        product<<<dim3(ORDER / 32, ORDER / 8), dim3(32, 8)>>>(to_device(numbers<float>(ORDER * ORDER)),
                                                              to_device(numbers<float>(ORDER * ORDER)), out);
        say(out, ORDER * ORDER);
    } else {
        fprintf(stderr, "usage: %s CASE\n", argv[0]);
        return 2;
    }
}
