#!/bin/sh
# Kernels without PTX on a GPU: they run, and the profile names them with geometry, time, registers and shared memory,
# as the driver has them, and with the reason why they are not counted.
set -u
[ -n "$NVCC" ] || { echo "nvcc is not installed"; exit 77; }
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
cat > bare.cu <<'C'
#include <cstdio>
__global__ void bare(int *p)
{
    __shared__ int s[500];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[127 - threadIdx.x] + blockIdx.x;
}
int main()
{
    int *p;
    cudaFuncAttributes a;
    if (cudaMalloc(&p, 4096) || cudaMemset(p, 0, 4096) || cudaFuncGetAttributes(&a, bare)) return 2;
    for (int i = 0; i < 3; i++) bare<<<7, 128, 64>>>(p);
    if (cudaDeviceSynchronize()) return 2;
    printf("%d %zu\n", a.numRegs, a.sharedSizeBytes);
}
C
"$NVCC" -gencode arch=compute_"$arch",code=sm_"$arch" -o bare bare.cu || exit 1
"$MARGAY" run -q --device nvidia -o profile -- ./bare > out 2> err && "$MARGAY" report profile --json > out.json && python3 - $(cat out) <<'P' || { cat out err; exit 1; }
import json, sys
r, (registers, shared) = json.load(open('out.json')), map(int, sys.argv[1:])
(k,), c = r['kernels'], r['coverage']
assert k['name'] == '_Z4barePi' and k['launches'] == 3 and c['instrumented'] == 0 and k['registers'] == {'native': registers, 'instrumented': None, 'estimate': False}, (k, registers)
assert all(l['grid'] == [7, 1, 1] and l['block'] == [128, 1, 1] and (l['shared_bytes'], l['dynamic_shared_bytes'], l['ran']) == (shared + 64, 64, 'native') for l in r['launches']), r['launches']
assert any(l['time_ns'] for l in r['launches']) and [n['reason'] for n in c['native']] == ['no PTX'], c
P
