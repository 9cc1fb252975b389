/* saxpy [N]: streams three arrays. */
#include "../common/host.h"

int main(int argc, char **argv)
{
    int n = arg_or(argc, argv, 1, 1 << 20);
    size_t bytes = (size_t)n * sizeof(float);
    float a = 2.5f, *x = (float *)malloc(bytes), *y = (float *)malloc(bytes);
    for (int i = 0; i < n; i++) {
        x[i] = (float)(i % 1000);
        y[i] = (float)(i % 77);
    }
    void *dx = dev_alloc(bytes), *dy = dev_alloc(bytes);
    dev_put(dx, x, bytes);
    dev_put(dy, y, bytes);
    void *args[] = {&n, &a, &dx, &dy};
    dev_launch(KERNEL_OF(saxpy), shape1(((unsigned)n + 255) / 256), shape1(256), 0, args);
    float *z = (float *)malloc(bytes);
    dev_get(z, dy, bytes);
    long long wrong = 0;
    for (int i = 0; i < n; i++) wrong += z[i] != a * x[i] + y[i]; /* exact: all values are small multiples of 0.5 */
    free(x);
    free(y);
    free(z);
    dev_free(dx);
    dev_free(dy);
    return verdict("saxpy", wrong);
}
