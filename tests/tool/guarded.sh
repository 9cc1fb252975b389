#!/bin/sh
# Loads of neighbouring elements, each behind a guard of its own, find their sectors in L1 as unguarded ones do: both kernels do the
# same work. Bytes that they move are those of the buffer.
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > guarded.cu <<'C'
#include <cstdio>
#define AT (blockIdx.x * blockDim.x + threadIdx.x)
__global__ void all(const int *p, int *out, int n)
{
    int sum = 0, at = 4 * AT;
    const int *q = p + at;
    if (at < n) sum = q[0];
    if (at + 1 < n) sum += q[1];
    if (at + 2 < n) sum += q[2];
    if (at + 3 < n) sum += q[3];
    out[AT] = sum;
}
__global__ void plain(const int *p, int *out)
{
    const int *q = p + 4 * AT;
    out[AT] = q[0] + q[1] + q[2] + q[3];
}
int main()
{
    const int threads = 1 << 18;
    int *p, *out;
    cudaMalloc(&p, threads * 16), cudaMalloc(&out, threads * 4);
    cudaMemset(p, 1, threads * 16);
    all<<<threads / 256, 256>>>(p, out, threads * 4);
    plain<<<threads / 256, 256>>>(p, out);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o guarded guarded.cu || exit 1
"$MARGAY" run -q --device cpu -t advise -o p -- ./guarded > out && "$MARGAY" report p --json > p.json && "$MARGAY" report p > p.text || exit 1
python3 - <<'P' || { cat p.text; exit 1; }
import json
j = json.load(open('p.json'))
loads = [s for s in j['tools']['memory']['sites'] if s['op'].startswith('ld.global')]
name = {k['id']: k['name'] for k in j['kernels']}
of = lambda kernel: [s for s in loads if kernel in name[s['kernel']]]
assert len(of('all')) == len({s['block'] for s in of('all')}) == len(of('plain')) == 4, loads # else nothing is guarded
assert not [f for f in j['findings'] if f['rule'] == 'uncoalesced'], j['findings'] # no byte comes for nothing
P
# each warp: 16 sectors that the first load brings, as long as L1 takes for the 4 lines of each of the loads, and 4 of the store
[ "$(grep -c "instructions, $(python3 -c 'print(f"{8192 * (16 + 4):,}")') for accesses to global memory" p.text)" = 2 ] && ! grep -E 'moves -|, -[0-9.]* times' p.text || { cat p.text; exit 1; }
