/* divergent [N]: Collatz steps of 1..N. */
#include "../common/host.h"

int main(int argc, char **argv)
{
    int n = arg_or(argc, argv, 1, 1 << 14);
    size_t bytes = (size_t)n * sizeof(int);
    int *steps = (int *)malloc(bytes);
    void *d = dev_alloc(bytes);
    void *args[] = {&n, &d};
    dev_launch(KERNEL_OF(collatz), shape1(((unsigned)n + 127) / 128), shape1(128), 0, args);
    dev_get(steps, d, bytes);
    long long wrong = 0;
    for (int i = 0; i < n; i++) {
        int count = 0;
        for (unsigned v = (unsigned)i + 1; v != 1; count++) v = v & 1 ? 3 * v + 1 : v / 2;
        wrong += count != steps[i];
    }
    free(steps);
    dev_free(d);
    return verdict("divergent", wrong);
}
