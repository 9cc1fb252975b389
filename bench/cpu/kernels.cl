// The kernels of kernels.cu in OpenCL C, for other implementations on the same CPU.
#define TILE 16
#define BINS 256
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)

kernel void saxpy(int n, float a, global const float *x, global float *y)
{
    int i = get_global_id(0);
    if (i < n) y[i] = a * x[i] + y[i];
}

kernel void matmul(int n, global const float *a, global const float *b, global float *c)
{
    local float s[TILE][TILE], t[TILE][TILE];
    int tx = get_local_id(0), ty = get_local_id(1), col = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        s[ty][tx] = a[row * n + k + tx];
        t[ty][tx] = b[(k + ty) * n + col];
        SYNC;
        for (int j = 0; j < TILE; j++) sum += s[ty][j] * t[j][tx];
        SYNC;
    }
    c[row * n + col] = sum;
}

kernel void reduce(int n, global const float *x, global float *out)
{
    local float s[256];
    int t = get_local_id(0), i = get_group_id(0) * 512 + t;
    s[t] = (i < n ? x[i] : 0) + (i + 256 < n ? x[i + 256] : 0);
    SYNC;
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        SYNC;
    }
    if (t == 0) out[get_group_id(0)] = s[0];
}

kernel void nbody(int n, global const float4 *p, global float4 *acc)
{
    local float4 s[256];
    int i = get_global_id(0);
    float4 me = p[i];
    float ax = 0, ay = 0, az = 0;
    for (int tile = 0; tile < n; tile += 256) {
        s[get_local_id(0)] = p[tile + get_local_id(0)];
        SYNC;
#pragma unroll 4
        for (int j = 0; j < 256; j++) {
            float dx = s[j].x - me.x, dy = s[j].y - me.y, dz = s[j].z - me.z;
            float d2 = dx * dx + dy * dy + dz * dz + 1e-2f, inv = 1.0f / sqrt(d2);
            float f = s[j].w * inv * inv * inv;
            ax += dx * f;
            ay += dy * f;
            az += dz * f;
        }
        SYNC;
    }
    acc[i] = (float4)(ax, ay, az, 0);
}

kernel void histogram(int n, global const uint *x, global uint *bins)
{
    local uint s[BINS];
    s[get_local_id(0)] = 0;
    SYNC;
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_add(&s[x[i] & (BINS - 1)], 1u);
    SYNC;
    atomic_add(&bins[get_local_id(0)], s[get_local_id(0)]);
}

kernel void stencil(int n, global const float *in, global float *out)
{
    local float s[TILE + 2][TILE + 2];
    int lx = get_local_id(0), ly = get_local_id(1), x = get_global_id(0), y = get_global_id(1), tx = lx + 1, ty = ly + 1;
    s[ty][tx] = in[y * n + x];
    if (lx == 0) s[ty][0] = x > 0 ? in[y * n + x - 1] : 0;
    if (lx == TILE - 1) s[ty][TILE + 1] = x + 1 < n ? in[y * n + x + 1] : 0;
    if (ly == 0) s[0][tx] = y > 0 ? in[(y - 1) * n + x] : 0;
    if (ly == TILE - 1) s[TILE + 1][tx] = y + 1 < n ? in[(y + 1) * n + x] : 0;
    SYNC;
    out[y * n + x] = 0.5f * s[ty][tx] + 0.125f * (s[ty - 1][tx] + s[ty + 1][tx] + s[ty][tx - 1] + s[ty][tx + 1]);
}

static float cnd(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float c = 0.39894228f * exp(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - c : c;
}

kernel void blackscholes(int n, global const float *price, global const float *strike, global const float *years, global float *call, global float *put)
{
    int i = get_global_id(0);
    if (i >= n) return;
    const float r = 0.02f, v = 0.3f;
    float root = sqrt(years[i]);
    float d1 = (log(price[i] / strike[i]) + (r + 0.5f * v * v) * years[i]) / (v * root), d2 = d1 - v * root;
    float e = exp(-r * years[i]);
    call[i] = price[i] * cnd(d1) - strike[i] * e * cnd(d2);
    put[i] = strike[i] * e * (1.0f - cnd(d2)) - price[i] * (1.0f - cnd(d1));
}

kernel void mandelbrot(int n, int limit, global int *out)
{
    int i = get_global_id(0), px = i % n, py = i / n, k = 0;
    float cx = -2.0f + 3.0f * px / n, cy = -1.5f + 3.0f * py / n, x = 0, y = 0;
    while (k < limit && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        k++;
    }
    out[i] = k;
}

kernel void bfs(int n, global const int *first, global const int *edges, global int *depth, int level)
{
    int v = get_global_id(0);
    if (v >= n || depth[v] != level) return;
    for (int e = first[v]; e < first[v + 1]; e++) {
        int w = edges[e];
        if (depth[w] < 0) depth[w] = level + 1;
    }
}

kernel void scan(int n, global const uint *in, global uint *out, global uint *sums)
{
    local uint s[512];
    int t = get_local_id(0), i = get_group_id(0) * 512 + t;
    s[t] = in[i];
    SYNC;
    for (int d = 1; d < 512; d <<= 1) {
        uint v = t >= d ? s[t - d] : 0;
        SYNC;
        s[t] += v;
        SYNC;
    }
    out[i] = s[t];
    if (t == 511) sums[get_group_id(0)] = s[t];
}

kernel void empty(int n) {}
