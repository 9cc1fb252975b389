/* The bench kernels as C loops; built twice, -O3 and -O3 -march=native (NATIVE names the build). */
#define CAT2(a, b) a##b
#define CAT(a, b)  CAT2(a, b)

void CAT(saxpy_, NATIVE)(int n, float a, const float *restrict x, float *restrict y);
void CAT(mandelbrot_, NATIVE)(int w, int h, int limit, int *out);
void CAT(matmul_, NATIVE)(int n, const float *restrict a, const float *restrict b, float *restrict c);

void CAT(saxpy_, NATIVE)(int n, float a, const float *restrict x, float *restrict y)
{
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

void CAT(mandelbrot_, NATIVE)(int w, int h, int limit, int *out)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float cx = -2.0f + 3.0f * (float)x / (float)w, cy = -1.5f + 3.0f * (float)y / (float)h, zx = 0, zy = 0;
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
}

void CAT(matmul_, NATIVE)(int n, const float *restrict a, const float *restrict b, float *restrict c)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) c[i * n + j] = 0;
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}
