/* One breadth-first step over a graph in CSR form: a thread a node, work as uneven as the degrees. */
#include "../common/device.h"

KERNEL(bfs_step)(int n, int level, const int *first, const int *edges, int *depth, int *changed)
{
    int v = CTA_X * NTID_X + TID_X;
    if (v >= n || depth[v] != level) return;
    for (int e = first[v]; e < first[v + 1]; e++) {
        int w = edges[e];
        if (depth[w] < 0) {
            depth[w] = level + 1; /* every writer writes the same value */
            *changed = 1;
        }
    }
}
