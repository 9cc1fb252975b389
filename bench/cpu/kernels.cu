// The kernels of bench/cpu: what CUDA programs are made of, at sizes that take a CPU milliseconds.
// native.c holds the same work as a C programmer writes it for a CPU.
#include "../kernels.cuh"
#define BINS 256

extern "C" __global__ void reduce(int n, const float *x, float *out)
{
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 512 + t;
    s[t] = (i < n ? x[i] : 0) + (i + 256 < n ? x[i + 256] : 0);
    __syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

extern "C" __global__ void nbody(int n, const float4 *p, float4 *acc)
{
    __shared__ float4 s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = p[i];
    float ax = 0, ay = 0, az = 0;
    for (int tile = 0; tile < n; tile += 256) {
        s[threadIdx.x] = p[tile + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 256; j++) {
            float dx = s[j].x - me.x, dy = s[j].y - me.y, dz = s[j].z - me.z;
            float d2 = dx * dx + dy * dy + dz * dz + 1e-2f, inv = 1.0f / sqrtf(d2);
            float f = s[j].w * inv * inv * inv;
            ax += dx * f;
            ay += dy * f;
            az += dz * f;
        }
        __syncthreads();
    }
    acc[i] = make_float4(ax, ay, az, 0);
}

extern "C" __global__ void histogram(int n, const unsigned *x, unsigned *bins)
{
    __shared__ unsigned s[BINS];
    s[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i] & (BINS - 1)], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}

extern "C" __global__ void stencil(int n, const float *in, float *out)
{
    __shared__ float s[TILE + 2][TILE + 2];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    s[ty][tx] = in[y * n + x];
    if (threadIdx.x == 0) s[ty][0] = x > 0 ? in[y * n + x - 1] : 0;
    if (threadIdx.x == TILE - 1) s[ty][TILE + 1] = x + 1 < n ? in[y * n + x + 1] : 0;
    if (threadIdx.y == 0) s[0][tx] = y > 0 ? in[(y - 1) * n + x] : 0;
    if (threadIdx.y == TILE - 1) s[TILE + 1][tx] = y + 1 < n ? in[(y + 1) * n + x] : 0;
    __syncthreads();
    out[y * n + x] = 0.5f * s[ty][tx] + 0.125f * (s[ty - 1][tx] + s[ty + 1][tx] + s[ty][tx - 1] + s[ty][tx + 1]);
}

static __device__ float cnd(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float c = 0.39894228f * expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - c : c;
}

extern "C" __global__ void blackscholes(int n, const float *price, const float *strike, const float *years, float *call, float *put)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float r = 0.02f, v = 0.3f;
    float root = sqrtf(years[i]);
    float d1 = (logf(price[i] / strike[i]) + (r + 0.5f * v * v) * years[i]) / (v * root), d2 = d1 - v * root;
    float e = expf(-r * years[i]);
    call[i] = price[i] * cnd(d1) - strike[i] * e * cnd(d2);
    put[i] = strike[i] * e * (1.0f - cnd(d2)) - price[i] * (1.0f - cnd(d1));
}

extern "C" __global__ void mandelbrot(int n, int limit, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, px = i % n, py = i / n, k = 0;
    float cx = -2.0f + 3.0f * px / n, cy = -1.5f + 3.0f * py / n, x = 0, y = 0;
    while (k < limit && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        k++;
    }
    out[i] = k;
}

extern "C" __global__ void bfs(int n, const int *first, const int *edges, int *depth, int level)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || depth[v] != level) return;
    for (int e = first[v]; e < first[v + 1]; e++) {
        int w = edges[e];
        if (depth[w] < 0) depth[w] = level + 1;
    }
}

extern "C" __global__ void scan(int n, const unsigned *in, unsigned *out, unsigned *sums)
{
    __shared__ unsigned s[512];
    int t = threadIdx.x, i = blockIdx.x * 512 + t;
    s[t] = in[i];
    __syncthreads();
    for (int d = 1; d < 512; d <<= 1) {
        unsigned v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    out[i] = s[t];
    if (t == 511) sums[blockIdx.x] = s[t];
}

extern "C" __global__ void reduce_shfl(int n, const float *x, float *out)
{
    __shared__ float s[8];
    int t = threadIdx.x, i = blockIdx.x * 512 + t;
    float v = (i < n ? x[i] : 0) + (i + 256 < n ? x[i + 256] : 0);
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);
    if ((t & 31) == 0) s[t >> 5] = v;
    __syncthreads();
    if (t == 0) out[blockIdx.x] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

// Operations of warps on data that fits the cache of one core.
extern "C" __global__ void warp_sum(const float *x, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);
    if ((threadIdx.x & 31) == 0) out[i >> 5] = v;
}

extern "C" __global__ void warp_scan(const unsigned *x, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = x[i];
    for (int d = 1; d < 32; d <<= 1) {
        unsigned u = __shfl_up_sync(0xffffffff, v, d);
        if ((threadIdx.x & 31) >= d) v += u;
    }
    out[i] = v;
}

extern "C" __global__ void warp_vote(const float *x, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    unsigned all = __all_sync(0xffffffff, v > 0.52f), any = __any_sync(0xffffffff, v > 1.48f);
    if ((threadIdx.x & 31) == 0) out[i >> 5] = all + 2 * any;
}

extern "C" __global__ void warp_compact(const float *x, float *out, unsigned *kept)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    float v = x[i];
    unsigned keep = __ballot_sync(0xffffffff, v > 1.0f);
    if (v > 1.0f) out[i - lane + __popc(keep & ((1u << lane) - 1))] = v;
    if (lane == 0) kept[i >> 5] = __popc(keep);
}

extern "C" __global__ void empty(int n) {}
