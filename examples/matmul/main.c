/* matmul [N]: C = A * B of N x N floats; N is rounded up to a multiple of 16. */
#include "../common/host.h"

int main(int argc, char **argv)
{
    int n = (arg_or(argc, argv, 1, 128) + 15) / 16 * 16;
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(float);
    uint32_t seed = 7;
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
    for (size_t i = 0; i < count; i++) { /* small integers: every product and sum is exact */
        a[i] = (float)pick(&seed, 16);
        b[i] = (float)pick(&seed, 16);
    }
    void *da = dev_alloc(bytes), *db = dev_alloc(bytes), *dc = dev_alloc(bytes);
    dev_put(da, a, bytes);
    dev_put(db, b, bytes);
    void *args[] = {&n, &da, &db, &dc};
    dev_launch(KERNEL_OF(matmul), shape2((unsigned)n / 16, (unsigned)n / 16), shape2(16, 16), 0, args);
    dev_get(c, dc, bytes);
    long long wrong = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            float want = 0;
            for (int k = 0; k < n; k++) want += a[(size_t)i * n + k] * b[(size_t)k * n + j];
            wrong += c[(size_t)i * n + j] != want;
        }
    }
    free(a);
    free(b);
    free(c);
    dev_free(da);
    dev_free(db);
    dev_free(dc);
    return verdict("matmul", wrong);
}
