/* Kernels whose PTX, renamed and repeated, is the input of bench/ptx: what compilers emit for dense
 * loops, unrolled arithmetic, shared memory, atomics, double precision, calls, shuffles. */
extern "C" __device__ int printf(const char *, ...);

extern "C" __global__ void b_axpy(float *y, const float *x, float a, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += a * x[i];
}

extern "C" __global__ void b_matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[32][33], tb[32][33];
    float sum[4] = {0, 0, 0, 0};
    int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
    for (int k = 0; k < n; k += 32) {
        for (int j = 0; j < 32; j += 8) {
            ta[y + j][x] = a[(row + j) * n + k + x];
            tb[y + j][x] = b[(k + y + j) * n + col];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; i++)
            for (int j = 0; j < 4; j++) sum[j] += ta[y + 8 * j][i] * tb[i][x];
        __syncthreads();
    }
    for (int j = 0; j < 4; j++) c[(row + 8 * j) * n + col] = sum[j];
}

extern "C" __global__ void b_mix(unsigned *out, const unsigned *in, unsigned rounds)
{
    unsigned v[8];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 8; k++) v[k] = in[8 * i + k];
    for (unsigned r = 0; r < rounds; r++) {
#pragma unroll
        for (int s = 0; s < 16; s++) {
            unsigned t = (v[4] >> 6 | v[4] << 26) ^ (v[4] >> 11 | v[4] << 21) ^ (v[4] >> 25 | v[4] << 7);
            t += ((v[4] & v[5]) ^ (~v[4] & v[6])) + v[7] + 0x428a2f98u * (s + 1);
            v[7] = v[6], v[6] = v[5], v[5] = v[4], v[4] = v[3] + t, v[3] = v[2], v[2] = v[1], v[1] = v[0];
            v[0] = t + ((v[1] & v[2]) ^ (v[1] & v[3]) ^ (v[2] & v[3]));
        }
    }
    for (int k = 0; k < 8; k++) out[8 * i + k] = v[k];
}

extern "C" __global__ void b_bodies(const float4 *p, float4 *acc, int n)
{
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = p[i];
    float ax = 0, ay = 0, az = 0;
    for (int t = 0; t < n; t += blockDim.x) {
        tile[threadIdx.x] = p[t + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; j++) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-6f), s = tile[j].w * r * r * r;
            ax += dx * s, ay += dy * s, az += dz * s;
        }
        __syncthreads();
    }
    acc[i] = make_float4(ax, ay, az, 0);
}

extern "C" __global__ void b_reduce(const double *in, double *out, int n)
{
    __shared__ double part[32];
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i] * in[i];
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (!(threadIdx.x & 31)) part[threadIdx.x >> 5] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (!threadIdx.x) atomicAdd(out, sum);
}

extern "C" __global__ void b_histogram(const unsigned char *in, unsigned *bins, int n)
{
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&local[in[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

extern "C" __global__ void b_price(const double *s, const double *x, const double *t, double *call, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double q = sqrt(t[i]), d = (log(s[i] / x[i]) + 0.06 * t[i]) / (0.3 * q), e = exp(-0.02 * t[i]);
    call[i] = s[i] * normcdf(d) - x[i] * e * normcdf(d - 0.3 * q) + pow(s[i], 0.25) * sin(t[i]);
}

extern "C" __global__ void b_stencil(const float *in, float *out, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 4 || y < 4 || x >= nx - 4 || y >= ny - 4) return;
    for (int z = 4; z < nz - 4; z++) {
        long c = ((long)z * ny + y) * nx + x;
        float v = 0.5f * in[c];
        for (int k = 1; k <= 4; k++)
            v += 0.1f / k * (in[c - k] + in[c + k] + in[c - (long)k * nx] + in[c + (long)k * nx] + in[c - (long)k * nx * ny] + in[c + (long)k * nx * ny]);
        out[c] = v;
    }
}

extern "C" __global__ void b_walk(const int *row, const int *col, int *level, int depth, int *more, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || level[v] != depth) return;
    for (int e = row[v]; e < row[v + 1]; e++)
        if (level[col[e]] < 0) {
            if (atomicCAS(&level[col[e]], -1, depth + 1) == -1) *more = 1;
            if (level[col[e]] > n) printf("vertex %d level %d\n", col[e], level[col[e]]);
        }
}

extern "C" __global__ void b_sort(unsigned *data)
{
    __shared__ unsigned s[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) s[i] = data[blockIdx.x * 1024 + i];
#pragma unroll
    for (unsigned k = 2; k <= 1024; k <<= 1)
        for (unsigned j = k / 2; j; j >>= 1) {
            __syncthreads();
            unsigned i = 2 * threadIdx.x - (threadIdx.x & (j - 1)), a = s[i], b = s[i + j];
            if ((a > b) == !(i & k)) s[i] = b, s[i + j] = a;
        }
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) data[blockIdx.x * 1024 + i] = s[i];
}
