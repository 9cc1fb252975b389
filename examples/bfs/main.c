/* bfs [NODES]: levels of a random graph, one launch a level. */
#include "../common/host.h"

int main(int argc, char **argv)
{
    int n = arg_or(argc, argv, 1, 1 << 13), *first = (int *)malloc(((size_t)n + 1) * sizeof(int));
    uint32_t seed = 11;
    first[0] = 0;
    for (int v = 0; v < n; v++) first[v + 1] = first[v] + (int)pick(&seed, v % 32 ? 6 : 40);
    int m = first[n], *edges = (int *)malloc(((size_t)m + 1) * sizeof(int));
    for (int e = 0; e < m; e++) edges[e] = (int)pick(&seed, (uint32_t)n);
    int *want = (int *)malloc((size_t)n * sizeof(int)), *queue = (int *)malloc((size_t)n * sizeof(int));
    int *got = (int *)malloc((size_t)n * sizeof(int));
    for (int v = 0; v < n; v++) want[v] = got[v] = v ? -1 : 0;
    queue[0] = 0;
    for (int head = 0, tail = 1; head < tail; head++) {
        for (int e = first[queue[head]]; e < first[queue[head] + 1]; e++) {
            if (want[edges[e]] >= 0) continue;
            want[edges[e]] = want[queue[head]] + 1;
            queue[tail++] = edges[e];
        }
    }
    void *df = dev_alloc(((size_t)n + 1) * sizeof(int)), *de = dev_alloc(((size_t)m + 1) * sizeof(int));
    void *dd = dev_alloc((size_t)n * sizeof(int)), *dc = dev_alloc(sizeof(int));
    dev_put(df, first, ((size_t)n + 1) * sizeof(int));
    dev_put(de, edges, ((size_t)m + 1) * sizeof(int));
    dev_put(dd, got, (size_t)n * sizeof(int));
    for (int level = 0, changed = 1; changed; level++) {
        changed = 0;
        dev_put(dc, &changed, sizeof changed);
        void *args[] = {&n, &level, &df, &de, &dd, &dc};
        dev_launch(KERNEL_OF(bfs_step), shape1(((unsigned)n + 127) / 128), shape1(128), 0, args);
        dev_get(&changed, dc, sizeof changed);
    }
    dev_get(got, dd, (size_t)n * sizeof(int));
    long long wrong = 0;
    for (int v = 0; v < n; v++) wrong += got[v] != want[v];
    free(first);
    free(edges);
    free(want);
    free(queue);
    free(got);
    dev_free(df);
    dev_free(de);
    dev_free(dd);
    dev_free(dc);
    return verdict("bfs", wrong);
}
