#!/bin/sh
# Tool ctas: of grids of up to 4,096 CTAs each has its own count, in sum what the block counter has; of larger ones, and of kernels
# that began with a small grid, a sample, whose size the report tells.
set -eu
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > rounds.cu <<'C'
template <int K> __global__ void rounds(int *a)
{
#pragma unroll 1
    for (unsigned i = 0; i < blockIdx.x % 1500; i++) a[threadIdx.x] = i + K;
}
int main()
{
    int *a;
    if (cudaMalloc(&a, 256)) return 1;
    rounds<0><<<4096, 32>>>(a);
    rounds<1><<<5000, 32>>>(a);
    rounds<2><<<8, 32>>>(a);
    rounds<2><<<2000, 32>>>(a);
    return cudaDeviceSynchronize() != cudaSuccess;
}
C
"$NVCC" -cudart shared -gencode arch=compute_90,code=compute_90 -o rounds rounds.cu
devices=${REAL_GPU:+nvidia}
for device in ${devices:-emu cpu}; do
    rm -rf p
    "$MARGAY" run -q --device $device -t ctas -t blocks -o p -- ./rounds
    "$MARGAY" report p --json > p.json
    "$MARGAY" report p > p.txt
    python3 - <<'P'
import json, re
r = json.load(open('p.json'))
by = {re.search(r'ILi(\d)', k['name'])[1]: (k, c) for k in r['kernels'] for c in r['tools']['ctas']['kernels'] if c['kernel'] == k['id']}
got = {n: (c['ctas'], c['grid_ctas'], c['estimate']) for n, (_, c) in by.items()}
assert got == {'0': (4096, 4096, False), '1': (2500, 5000, True), '2': (8 + 1000, 2008, True)}, got
k, c = by['0']
assert round(c['mean'] * c['ctas']) == k['thread_instructions'], (c, k['thread_instructions'])
assert c['longest'] == [1499, 0, 0], c
text = open('p.txt').read()
assert '2500 of 5000 CTAs sampled: ' in text and '1008 of 2008 CTAs sampled: ' in text and '4096 of' not in text, text
P
    echo "ok   $device"
done
