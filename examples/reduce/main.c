/* reduce [N]: sums N integers in one pass over 256 at a time, the rest on the host. */
#include "../common/host.h"

int main(int argc, char **argv)
{
    int n = arg_or(argc, argv, 1, 1 << 18);
    unsigned ctas = ((unsigned)n + 255) / 256, seed = 1;
    int *in = (int *)malloc((size_t)n * sizeof(int)), *out = (int *)malloc(ctas * sizeof(int));
    long long want = 0, got = 0;
    for (int i = 0; i < n; i++) want += in[i] = (int)pick(&seed, 1000) - 500;
    void *din = dev_alloc((size_t)n * sizeof(int)), *dout = dev_alloc(ctas * sizeof(int));
    dev_put(din, in, (size_t)n * sizeof(int));
    void *args[] = {&n, &din, &dout};
    dev_launch(KERNEL_OF(reduce), shape1(ctas), shape1(256), 0, args);
    dev_get(out, dout, ctas * sizeof(int));
    for (unsigned i = 0; i < ctas; i++) got += out[i];
    free(in);
    free(out);
    dev_free(din);
    dev_free(dout);
    return verdict("reduce", got != want);
}
