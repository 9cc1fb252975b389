#!/bin/sh
# Launches of whole waves beside launches of one CTA: no last wave is partly empty, so that no tail is found (mixed). Of the same launches
# one wave and a bit long it is (tail).
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > waves.cu <<'C'
#include <cstdio>
__device__ void work(float *out) { float v = threadIdx.x; for (int k = 0; k < 512; k++) v = v * 1.01f + k; out[threadIdx.x] = v; }
__global__ void mixed(float *out) { work(out); }
__global__ void tail(float *out) { work(out); }
int main()
{
    float *out;
    cudaMalloc(&out, 4096);
    int wave = 132 * 8; /* of an H200, 256 threads a CTA */
    for (int i = 0; i < 4; i++) mixed<<<wave, 256>>>(out), mixed<<<1, 256>>>(out), tail<<<wave + wave / 8, 256>>>(out);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -gencode arch=compute_90,code=compute_90 -o waves waves.cu || exit 1
"$MARGAY" run -q --device cpu -t advise -o p -- ./waves > out && "$MARGAY" report p --json > p.json || exit 1
python3 - <<'P'
import json
j = json.load(open('p.json'))
of = {k['id']: k['demangled'].split('(')[0] for k in j['kernels']}
found = {of[f['kernel']]: f for f in j['findings'] if f['rule'] == 'tail'}
assert found.keys() == {'tail'} and abs(found['tail']['measure'] - 1.125) < 1e-9, found
P
