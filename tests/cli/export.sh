#!/bin/bash
# margay export folded: stacks whose counts add up to the kernels' instructions, with device functions that stay calls.
set -eu
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > calls.cu <<'P'
#include <cstdio>
__device__ __noinline__ int turn(int v, int n) { for (int k = 0; k < n; k++) v = v * 3 + k; return v; }
__global__ void kernel(int *out, int n) { out[threadIdx.x] = turn(threadIdx.x, n); }
int main() { int *d; cudaMalloc(&d, 256); kernel<<<3, 64>>>(d, 9); return cudaDeviceSynchronize(); }
P
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o calls calls.cu
"$MARGAY" run -q --device emu -o d -- ./calls
"$MARGAY" export folded d -o f.folded
"$MARGAY" export folded > g.folded 2> err && cmp f.folded g.folded
python3 - "$MARGAY" <<'P'
import json, subprocess, sys
d = json.loads(subprocess.run([sys.argv[1], 'report', 'd', '--json'], stdout=subprocess.PIPE, check=True).stdout)
stacks = [l.rsplit(' ', 1) for l in open('f.folded').read().splitlines()]
assert len({s for s, _ in stacks}) == len(stacks), stacks
assert sum(int(n) for _, n in stacks) == d['kernels'][0]['thread_instructions'], stacks
assert all(s.startswith('kernel(int*, int)') for s, _ in stacks)
inner = [s for s, _ in stacks if ';turn(int, int);calls.cu:2' in s]
assert inner, stacks
P
rc=0; "$MARGAY" export nothing d 2> err || rc=$?
[ $rc = 2 ] && grep -q 'no form nothing' err
