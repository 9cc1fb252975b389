// Kernels of bench/emu; kernels.ptx is nvcc -O3 -arch=sm_75 -ptx of this file.
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void mandelbrot(int w, int h, int limit, int *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float cx = -2.0f + 3.0f * x / w, cy = -1.5f + 3.0f * y / h, zx = 0, zy = 0;
    int n = 0;
    while (n < limit) {
        float a = zy * zy, b = zx * zx;
        if (a + b > 4.0f) break;
        zy = (zx + zx) * zy + cy;
        zx = cx + (b - a);
        n++;
    }
    out[y * w + x] = n;
}

extern "C" __global__ void matmul(int n, const float *a, const float *b, float *c)
{
    __shared__ float as[16][16], bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int t = 0; t < n / 16; t++) {
        as[ty][tx] = a[row * n + t * 16 + tx];
        bs[ty][tx] = b[(t * 16 + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
