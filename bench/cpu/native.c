/* The work of kernels.cu as C with OpenMP. Built twice: NATIVE(name) is name_strict (-O3 -march=native)
 * and name_fast (-ffast-math as well). */
#include "native.h"

#include <math.h>

#define CAT2(a, b)   a##_##b
#define CAT(a, b)    CAT2(a, b)
#define NATIVE(name) CAT(name, VARIANT)

void NATIVE(saxpy)(int n, float a, const float *x, float *y)
{
#pragma omp parallel for
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

void NATIVE(matmul)(int n, const float *a, const float *b, float *c)
{
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) c[i * n + j] = 0;
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}

float NATIVE(reduce)(int n, const float *x)
{
    float sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}

void NATIVE(nbody)(int n, const struct body *p, struct body *acc)
{
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        float ax = 0, ay = 0, az = 0;
        for (int j = 0; j < n; j++) {
            float dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
            float d2 = dx * dx + dy * dy + dz * dz + 1e-2f, inv = 1.0f / sqrtf(d2);
            float f = p[j].w * inv * inv * inv;
            ax += dx * f;
            ay += dy * f;
            az += dz * f;
        }
        acc[i] = (struct body){ax, ay, az, 0};
    }
}

void NATIVE(histogram)(int n, const unsigned *x, unsigned *bins)
{
#pragma omp parallel
    {
        unsigned mine[256] = {0};
#pragma omp for nowait
        for (int i = 0; i < n; i++) mine[x[i] & 255]++;
#pragma omp critical
        for (int i = 0; i < 256; i++) bins[i] += mine[i];
    }
}

void NATIVE(stencil)(int n, const float *in, float *out)
{
#pragma omp parallel for
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) {
            float up = y > 0 ? in[(y - 1) * n + x] : 0, down = y + 1 < n ? in[(y + 1) * n + x] : 0;
            float left = x > 0 ? in[y * n + x - 1] : 0, right = x + 1 < n ? in[y * n + x + 1] : 0;
            out[y * n + x] = 0.5f * in[y * n + x] + 0.125f * (up + down + left + right);
        }
}

static float cnd(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float c = 0.39894228f * expf(-0.5f * d * d) *
              (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - c : c;
}

void NATIVE(blackscholes)(int n, const float *price, const float *strike, const float *years, float *call, float *put)
{
    const float r = 0.02f, v = 0.3f;
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        float root = sqrtf(years[i]);
        float d1 = (logf(price[i] / strike[i]) + (r + 0.5f * v * v) * years[i]) / (v * root), d2 = d1 - v * root;
        float e = expf(-r * years[i]);
        call[i] = price[i] * cnd(d1) - strike[i] * e * cnd(d2);
        put[i] = strike[i] * e * (1.0f - cnd(d2)) - price[i] * (1.0f - cnd(d1));
    }
}

void NATIVE(mandelbrot)(int n, int limit, int *out)
{
#pragma omp parallel for schedule(dynamic, 8)
    for (int py = 0; py < n; py++)
        for (int px = 0; px < n; px++) {
            float cx = -2.0f + 3.0f * px / n, cy = -1.5f + 3.0f * py / n, x = 0, y = 0;
            int k = 0;
            while (k < limit && x * x + y * y < 4.0f) {
                float t = x * x - y * y + cx;
                y = 2 * x * y + cy;
                x = t;
                k++;
            }
            out[py * n + px] = k;
        }
}

void NATIVE(bfs)(int n, const int *first, const int *edges, int *depth, int level)
{
#pragma omp parallel for schedule(dynamic, 1024)
    for (int v = 0; v < n; v++) {
        if (depth[v] != level) continue;
        for (int e = first[v]; e < first[v + 1]; e++)
            if (depth[edges[e]] < 0) depth[edges[e]] = level + 1;
    }
}

void NATIVE(scan)(int n, const unsigned *in, unsigned *out)
{
#pragma omp parallel for
    for (int b = 0; b < n; b += 512) {
        unsigned sum = 0;
        for (int i = b; i < b + 512; i++) out[i] = sum += in[i];
    }
}

int NATIVE(threads)(int n);
#include <omp.h>
int NATIVE(threads)(int n)
{
    if (n) omp_set_num_threads(n);
    return omp_get_max_threads();
}
