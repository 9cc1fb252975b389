// The kernels of `make bench-gpu`: kinds and sizes chosen before any counter was tuned on them. bench.c launches them by
// name; sizes and data are there. Every kernel computes the same whatever runs beside it.
#define K extern "C" __global__ void

// Where probes of the benchmark go, in five of the kernels: written by hand with -DHAND=n (hand.h), nothing without.
#include "hand.h"

__device__ unsigned mix(unsigned x)
{
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ x >> 16;
}

K fill_floats(float *p, unsigned n, float lo, float hi)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) p[i] = lo + (hi - lo) * (mix(i) >> 8) * (1.0f / 16777216.0f);
}

K fill_words(unsigned *p, unsigned n, unsigned below)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) p[i] = mix(i + 77) % below;
}

K saxpy(const float *x, float *y, float a, int n HAND_PARAM)
{
    HAND_ENTER;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = HAND_STORE(a * HAND_LOAD(x[i]) + HAND_LOAD(y[i]));
    HAND_LEAVE;
}

#define TILE 16
K matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
    float sum = 0;
    for (int t = 0; t < n; t += TILE) {
        as[y][x] = a[row * n + t + x];
        bs[y][x] = b[(t + y) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += as[y][k] * bs[k][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

K nbody(const float4 *p, float4 *v, int n, float dt HAND_PARAM)
{
    HAND_ENTER;
    __shared__ float4 tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = HAND_LOAD(p[i]);
    float ax = 0, ay = 0, az = 0;
    for (int t = 0; t < n; t += 256) {
        tile[threadIdx.x] = HAND_LOAD(p[t + threadIdx.x]);
        __syncthreads();
        for (int k = 0; k < 256; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float d = dx * dx + dy * dy + dz * dz + 1e-4f, r = rsqrtf(d), s = tile[k].w * r * r * r;
            ax += dx * s, ay += dy * s, az += dz * s;
        }
        __syncthreads();
    }
    float4 w = HAND_LOAD(v[i]);
    v[i] = HAND_STORE(make_float4(w.x + ax * dt, w.y + ay * dt, w.z + az * dt, w.w));
    HAND_LEAVE;
}

__device__ float cnd(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float c = 0.39894228f * __expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - c : c;
}

K blackscholes(float *call, float *put, const float *price, const float *strike, const float *years, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = price[i], x = strike[i], t = years[i], root = sqrtf(t);
    float d1 = (__logf(s / x) + (0.02f + 0.5f * 0.3f * 0.3f) * t) / (0.3f * root), d2 = d1 - 0.3f * root;
    float c1 = cnd(d1), c2 = cnd(d2), e = __expf(-0.02f * t);
    call[i] = s * c1 - x * e * c2;
    put[i] = x * e * (1.0f - c2) - s * (1.0f - c1);
}

K binomial(float *out, const float *price, const float *strike, int steps)
{
    __shared__ float v[512];
    float s = price[blockIdx.x], x = strike[blockIdx.x];
    for (int i = threadIdx.x; i <= steps; i += blockDim.x) {
        float d = s * __expf(0.02f * (2.0f * i - steps)) - x;
        v[i] = d > 0 ? d : 0;
    }
    __syncthreads();
    for (int k = steps; k > 0; k--) {
        float a = 0;
        int i = threadIdx.x;
        if (i < k) a = 0.5003f * v[i + 1] + 0.4991f * v[i];
        __syncthreads();
        if (i < k) v[i] = a;
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = v[0];
}

K mandelbrot(unsigned *out, int w, int h, int most)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= w || py >= h) return;
    float cx = -2.2f + 3.2f * px / w, cy = -1.5f + 3.0f * py / h, x = 0, y = 0;
    int i = 0;
    while (i < most && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        i++;
    }
    out[py * w + px] = i;
}

// Breadth-first search by levels: cost[v] is the level, 0xffffffff: not seen. What it does with a neighbour that
// another thread of this level has just reached is the same as if it came first, so counts do not depend on order.
K bfs_step(const unsigned *at, const unsigned *to, unsigned *cost, unsigned *changed, int n, unsigned level)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || cost[v] != level) return;
    for (unsigned e = at[v]; e < at[v + 1]; e++) {
        unsigned u = to[e];
        if (cost[u] > level) {
            cost[u] = level + 1;
            *changed = 1;
        }
    }
}

K reduce(const float *in, float *out, unsigned n HAND_PARAM)
{
    HAND_ENTER;
    __shared__ float s[256];
    float sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += HAND_LOAD(in[i]);
    s[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned k = blockDim.x / 2; k > 0; k >>= 1) {
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = HAND_STORE(s[0]);
    HAND_LEAVE;
}

K histogram(const unsigned *in, unsigned *out, unsigned n HAND_PARAM)
{
    HAND_ENTER;
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[HAND_LOAD(in[i]) & 255], 1);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
    HAND_LEAVE;
}

K stencil(const float *in, float *out, int w, int h HAND_PARAM)
{
    HAND_ENTER;
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1)
        out[y * w + x] = HAND_STORE(0.2f * (HAND_LOAD(in[y * w + x]) + HAND_LOAD(in[y * w + x - 1]) + HAND_LOAD(in[y * w + x + 1]) +
                                            HAND_LOAD(in[(y - 1) * w + x]) + HAND_LOAD(in[(y + 1) * w + x])));
    HAND_LEAVE;
}

K spmv(const unsigned *at, const unsigned *col, const float *val, const float *x, float *y, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0;
    for (unsigned k = at[r]; k < at[r + 1]; k++) sum += val[k] * x[col[k]];
    y[r] = sum;
}

// Inclusive scan of blocks of 512 words.
K scan(const unsigned *in, unsigned *out, unsigned *sums)
{
    __shared__ unsigned s[512];
    unsigned t = threadIdx.x, base = blockIdx.x * 512, apart = 1;
    s[2 * t] = in[base + 2 * t];
    s[2 * t + 1] = in[base + 2 * t + 1];
    for (unsigned d = 256; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) s[apart * (2 * t + 2) - 1] += s[apart * (2 * t + 1) - 1];
        apart *= 2;
    }
    if (t == 0) sums[blockIdx.x] = s[511], s[511] = 0;
    for (unsigned d = 1; d < 512; d *= 2) {
        apart >>= 1;
        __syncthreads();
        if (t < d) {
            unsigned a = apart * (2 * t + 1) - 1, b = apart * (2 * t + 2) - 1, v = s[a];
            s[a] = s[b];
            s[b] += v;
        }
    }
    __syncthreads();
    out[base + 2 * t] = s[2 * t];
    out[base + 2 * t + 1] = s[2 * t + 1];
}

// Sorts blocks of 512 words; the network is unrolled by the compiler.
K bitonic(unsigned *data)
{
    __shared__ unsigned s[512];
    unsigned t = threadIdx.x, base = blockIdx.x * 512;
    s[t] = data[base + t];
    s[t + 256] = data[base + t + 256];
#pragma unroll
    for (unsigned k = 2; k <= 512; k *= 2)
#pragma unroll
        for (unsigned j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            unsigned i = 2 * t - (t & (j - 1)), a = s[i], b = s[i + j];
            if ((a > b) == ((i & k) == 0)) s[i] = b, s[i + j] = a;
        }
    __syncthreads();
    data[base + t] = s[t];
    data[base + t + 256] = s[t + 256];
}

K collatz(unsigned *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, steps = 0;
    if (i >= n) return;
    unsigned long long v = i + 1;
    while (v != 1) {
        if (v & 1) v = 3 * v + 1;
        else v >>= 1;
        steps++;
    }
    out[i] = steps;
}

// Constants in the innermost loop: folded into instructions, and as a table that a loop walks.
__constant__ float taps[32];
__constant__ float coefficients[256];

K filter(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n - 32) return;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 32; k++) sum += taps[k] * in[i + k];
    out[i] = sum;
}

K horner(const float *in, float *out, int n, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], v = 0;
    for (int k = 0; k < steps; k++) v = v * x + coefficients[k];
    out[i] = v;
}

// Functions that stay functions; the second one calls itself.
__device__ __noinline__ float poly(float x, int n)
{
    float v = 1;
    for (int k = 0; k < n; k++) v = v * x + 0.5f;
    return v;
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

K calls(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = in[i] > 0.5f ? poly(in[i], 20) : poly(-in[i], 10 + (i & 7));
}

K recursion(unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = ackermann(2, i & 3);
}

// Some threads leave before a barrier that the others use.
K leavers(const unsigned *in, unsigned *out, int rounds)
{
    __shared__ unsigned s[256];
    unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
    if (in[i] % 5 == 0) return;
    s[t] = in[i];
    for (int k = 0; k < rounds; k++) {
        __syncthreads();
        unsigned v = s[t];
        if (v % 3 == 0) s[t] = v / 3 + k;
        else s[t] = v + 1;
        if (s[t] == 7) break;
    }
    out[i] = s[t];
}

// One long path with many branches: what a simulation's time step looks like.
K branchy(const unsigned *in, unsigned *out, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = in[i], w = 1;
    for (int k = 0; k < rounds; k++) {
        if (v & 1) w += v; else w ^= v;
        if (v & 2) w *= 3;
        if ((v & 12) == 4) w -= 7;
        else if ((v & 12) == 8) w ^= 0x55;
        if (w > v) v += w >> 3;
        while (w & 0x80) w = (w << 1) + 1 - (w >> 9);
        v = v * 1664525u + 1013904223u;
    }
    out[i] = w;
}

// For counts beyond 2^32 in one thread: a loop without a bound of 32 bits, with a branch inside.
K long_run(unsigned *out, unsigned long long rounds)
{
    unsigned odd = 0, all = 0;
#pragma unroll 1
    for (unsigned long long i = 0; i < rounds; i++) {
        if (i & 1) asm volatile("add.u32 %0, %0, 1;" : "+r"(odd));
        all++;
    }
    out[0] = odd;
    out[1] = all;
}
