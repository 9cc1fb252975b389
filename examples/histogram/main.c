/* histogram [N]: 64 bins over N bytes. */
#include "../common/host.h"

int main(int argc, char **argv)
{
    int n = arg_or(argc, argv, 1, 1 << 18), want[64] = {0}, got[64];
    uint32_t seed = 3;
    unsigned char *data = (unsigned char *)malloc((size_t)n);
    for (int i = 0; i < n; i++) {
        data[i] = (unsigned char)(pick(&seed, 16) * pick(&seed, 16));
        want[data[i] & 63]++;
    }
    void *d = dev_alloc((size_t)n), *bins = dev_alloc(sizeof got);
    dev_put(d, data, (size_t)n);
    dev_zero(bins, sizeof got);
    void *args[] = {&n, &d, &bins};
    dev_launch(KERNEL_OF(histogram), shape1(16), shape1(256), 0, args);
    dev_get(got, bins, sizeof got);
    long long wrong = 0;
    for (int i = 0; i < 64; i++) wrong += got[i] != want[i];
    free(data);
    dev_free(d);
    dev_free(bins);
    return verdict("histogram", wrong);
}
