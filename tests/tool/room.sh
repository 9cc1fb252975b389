#!/bin/sh
# A table with more columns than a line has room for breaks its headings, then leaves out what are details, and says so; CSV has them all.
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > two.cu <<'C'
#include <cstdio>
__global__ void a_kernel_whose_name_is_long(float *to, const float *from) { int i = blockIdx.x * 256 + threadIdx.x; to[i] = from[i] + from[i ^ 1]; }
__global__ void another_kernel_with_a_name(float *to, const float *from) { int i = blockIdx.x * 256 + threadIdx.x; to[i] = from[i] * 2; }
int main()
{
    float *a, *b;
    cudaMalloc(&a, 1 << 18), cudaMalloc(&b, 1 << 18), cudaMemset(a, 0, 1 << 18);
    a_kernel_whose_name_is_long<<<256, 256>>>(b, a), another_kernel_with_a_name<<<256, 256>>>(a, b);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -gencode arch=compute_90,code=compute_90 -o two two.cu || exit 1
"$MARGAY" run -q --device cpu -t cache -o p -- ./two > out && "$MARGAY" report p > text && "$MARGAY" report p --csv --table cache_sites > sites.csv || exit 1
awk 'length($0) > 120 { print; bad = 1 } END { exit bad }' text || exit 1
grep -q 'no room for: L1 capacity misses, least; at most; L2 sectors; L2 first (--csv, --json)' text || { cat text; exit 1; }
head -1 sites.csv | grep -q 'l1_capacity_misses__least.*l2_first' || { head -1 sites.csv; exit 1; }
COLUMNS=240 "$MARGAY" report p > wide 2> err || { cat err; exit 1; }
grep -q 'no room for' wide && exit 1
grep -q 'L1 capacity misses, least' wide
