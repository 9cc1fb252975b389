// Kernels that more than one benchmark runs: a stream and a product by tiles.
#define TILE 16

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void matmul(int n, const float *a, const float *b, float *c)
{
    __shared__ float s[TILE][TILE], t[TILE][TILE];
    int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        s[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + col];
        __syncthreads();
        for (int j = 0; j < TILE; j++) sum += s[threadIdx.y][j] * t[j][threadIdx.x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
