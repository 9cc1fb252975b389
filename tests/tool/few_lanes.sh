#!/bin/sh
# Branches that few lanes of one warp of each CTA take: no warp is there to share its lanes with, so that nothing is found where the
# thread's place decides (nine, halves), or where the data end (edge). Where it parts every warp (spread), whole warps
# go the same way (most), or the data decide (data), divergence is.
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > lanes.cu <<'C'
#include <cstdio>
#define WORK for (int k = 0; k < 400; k++) v = v * 1.01f + k
#define AT blockIdx.x * blockDim.x + threadIdx.x
__global__ void nine(const float *in, float *out) { float v = in[AT]; if (threadIdx.x < 9) WORK; out[AT] = v; }
__global__ void spread(const float *in, float *out) { float v = in[AT]; if (threadIdx.x % 32 < 9) WORK; out[AT] = v; }
__global__ void most(const float *in, float *out) { float v = in[AT]; if (threadIdx.x < 68) WORK; out[AT] = v; }
__global__ void data(const float *in, float *out) { float v = in[AT]; if (v < 9) WORK; out[AT] = v; }
__global__ void edge(const float *in, float *out, int n) { int i = AT; float v = in[i]; if (i < n) WORK; out[i] = v; }
__global__ void tiny(const float *in, float *out) { out[AT] = in[AT]; }
__global__ void halves(const float *in, float *out)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[AT];
    for (int n = 128; n; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n) s[threadIdx.x] += s[threadIdx.x + n];
    }
    if (!threadIdx.x) out[blockIdx.x] = s[0];
}
int main(int argc, char **)
{
    static float host[264 * 256];
    float *in, *out;
    for (int i = 0; i < 264 * 256; i++) host[i] = i % 256;
    cudaMalloc(&in, sizeof host), cudaMalloc(&out, sizeof host), cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    if (argc > 1) tiny<<<264 * 8, 32>>>(in, out);
    else edge<<<3, 256>>>(in, out, 700), nine<<<264, 256>>>(in, out), spread<<<264, 256>>>(in, out), data<<<264, 256>>>(in, out), most<<<264, 96>>>(in, out), halves<<<264, 256>>>(in, out);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o lanes lanes.cu || exit 1
for device in cpu emu; do
    "$MARGAY" run -q --device $device -t advise -o p -- ./lanes > out && "$MARGAY" report p --json > p.json || exit 1
    rm -rf p
    python3 - <<'P' || exit 1
import json
j = json.load(open('p.json'))
of = {k['id']: k['demangled'].split('(')[0] for k in j['kernels']}
found = {of[f['kernel']]: f for f in j['findings'] if f['rule'] == 'divergence'}
assert found.keys() == {'spread', 'data', 'most'}, {k: f['text'] for k, f in found.items()}
assert len(of) == 6 and all(20 < f['measure'] < 75 for f in found.values()), found
P
    # launching takes longer than bytes and instructions: it is bound by neither
    "$MARGAY" run -q --device $device -t advise -o p -- ./lanes tiny > out && "$MARGAY" report p --json > p.json || exit 1
    rm -rf p
    python3 - <<'P' || exit 1
import json
j = json.load(open('p.json'))
(why,) = j['no_verdict']
assert why['why'].startswith('it is far from either peak: launching its CTAs takes ') and not [f for f in j['findings'] if f['rule'].endswith('_bound')], (why, j['findings'])
P
done
