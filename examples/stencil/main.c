/* stencil [N] [STEPS]: STEPS launches over an N x N grid. */
#include "../common/host.h"

int main(int argc, char **argv)
{
    int n = arg_or(argc, argv, 1, 256), steps = arg_or(argc, argv, 2, 4);
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(float);
    float *p = (float *)malloc(bytes), *q = (float *)malloc(bytes), *got = (float *)malloc(bytes);
    uint32_t seed = 5;
    for (size_t i = 0; i < count; i++) p[i] = (float)pick(&seed, 4096); /* dyadic: exact for a few steps */
    void *a = dev_alloc(bytes), *b = dev_alloc(bytes);
    dev_put(a, p, bytes);
    unsigned ctas = ((unsigned)n + 15) / 16;
    for (int s = 0; s < steps; s++) {
        void *args[] = {&n, &a, &b};
        dev_launch(KERNEL_OF(stencil), shape2(ctas, ctas), shape2(16, 16), 0, args);
        void *t = a;
        a = b;
        b = t;
        for (int y = 0; y < n; y++) {
            for (int x = 0; x < n; x++) {
                size_t i = (size_t)y * n + x;
                if (x == 0 || y == 0 || x == n - 1 || y == n - 1)
                    q[i] = p[i];
                else
                    q[i] = 0.5f * p[i] + 0.125f * (p[i - 1] + p[i + 1] + p[i - n] + p[i + n]);
            }
        }
        float *r = p;
        p = q;
        q = r;
    }
    dev_get(got, a, bytes);
    long long wrong = 0;
    for (size_t i = 0; i < count; i++) wrong += got[i] != p[i];
    free(p);
    free(q);
    free(got);
    dev_free(a);
    dev_free(b);
    return verdict("stencil", wrong);
}
