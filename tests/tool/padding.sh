#!/bin/sh
# What padding does is promised where lanes step by a constant; of a warp with a pattern of its own (here a checkerboard, whose conflicts
# one more word a row makes worse) only under that condition. Both conflict alike in every request.
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > padding.cu <<'C'
#include <cstdio>
__global__ void column(int *out, int rounds)
{
    __shared__ int grid[32 * 32];
    for (int k = threadIdx.x; k < 32 * 32; k += 32) grid[k] = k;
    __syncwarp();
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) sum += ((volatile int *)grid)[threadIdx.x * 32 + (k & 31)];
    out[blockIdx.x * 32 + threadIdx.x] = sum;
}
__global__ void board(int *out, int rounds)
{
    __shared__ int cells[18 * 6];
    int x = threadIdx.x, y = threadIdx.y;
    for (int k = y * 16 + x; k < 18 * 6; k += 32) cells[k] = k;
    __syncwarp();
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) sum += ((volatile int *)cells)[(2 * y + (x & 1)) * 18 + x];
    out[blockIdx.x * 32 + y * 16 + x] = sum;
}
int main()
{
    int *out;
    cudaMalloc(&out, 132 * 32 * 4);
    column<<<132, 32>>>(out, 200);
    board<<<132, dim3(16, 2)>>>(out, 5000);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o padding padding.cu || exit 1
"$MARGAY" run -q --device cpu -t advise -o p -- ./padding > out && "$MARGAY" report p --json > p.json || exit 1
python3 - <<'P' || { "$MARGAY" report p; exit 1; }
import json
# the board's conflicts, and those with a row of 19
def passes(row):
    at = {(2 * y + (x & 1)) * row + x for x in range(16) for y in range(2)}
    return max(sum(a % 32 == bank for a in at) for bank in range(32))
assert (passes(18), passes(19)) == (2, 3)
j = json.load(open('p.json'))
name = {k['id']: k['name'] for k in j['kernels']}
said = {name[f['kernel']][3:].lstrip('0123456789')[:5]: f['text'] for f in j['findings'] if f['rule'] == 'bank_conflict'}
assert 'bytes (one element of that size more): lanes then fall on different banks' in said['colum'], said
assert 'bytes (one element of that size more): its lanes have no one step (irregular); groups of them that step by rows, if any, then fall on different banks' in said['board'], said
P
