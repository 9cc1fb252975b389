#!/bin/sh
# Kernels with many blocks where lanes may change call functions for when they do (a driver over the emulator): lanes are counted
# as by the emulator, which has no such code, and threads as without the tool. Branches within branches, loops that lanes leave
# one by one, breaks out of loops; whole warps and partial ones. SEED=S repeats a run.
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
seed=${SEED:-$(date +%s)}
echo "SEED=$seed"
cat > called.cu <<'C'
#include <cstdio>
#include <cstdlib>
template <int K> __device__ __forceinline__ void step(unsigned &v, unsigned t, const unsigned *from, int n)
{
    unsigned x = from[(v + K) % 512];
    if (x % 3 == t % 3) v += from[x % 512] * K; // some lanes
    if (x >> K & 1) {
        v ^= from[(x + t) % 512];
        if (t & 4) v = v * 5 + from[v % 512];
    } else if ((v ^ t) & 2) {
        v -= from[v % 64];
    }
    for (unsigned i = 0; i < (x + t * (K & 1)) % 9; i++) { // they leave one by one
        v = v * 3 + from[(v + i) % 512];
        if (v % 13 == 5) break;
    }
    if (n > 3) v = v / 3 + from[(n + K) % 512]; // all or none
}
__global__ void many(unsigned *to, const unsigned *from, int n)
{
    unsigned t = threadIdx.x + blockDim.x * threadIdx.y, v = from[t] + blockIdx.x;
    step<1>(v, t, from, n), step<2>(v, t, from, n), step<3>(v, t, from, n), step<4>(v, t, from, n), step<5>(v, t, from, n);
    step<6>(v, t, from, n), step<7>(v, t, from, n), step<8>(v, t, from, n), step<9>(v, t, from, n), step<10>(v, t, from, n);
    step<11>(v, t, from, n), step<12>(v, t, from, n), step<13>(v, t, from, n), step<14>(v, t, from, n);
    to[128 * blockIdx.x + t] = v;
}
__global__ void few(unsigned *to, const unsigned *from, int n)
{
    unsigned t = threadIdx.x, v = from[t];
    step<1>(v, t, from, n);
    to[t] = v;
}
int main(int argc, char **argv)
{
    srand(atoi(argv[1]));
    unsigned host[512], *a, *b;
    static const dim3 blocks[] = {dim3(64), dim3(48), dim3(7, 9), dim3(128), dim3(31)};
    for (int i = 0; i < 512; i++) host[i] = (unsigned)rand();
    cudaMalloc(&a, 4096), cudaMalloc(&b, sizeof host);
    cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
    for (int i = 0; i < 5; i++) many<<<3, blocks[i]>>>(a, b, rand() % 8), few<<<1, blocks[i].x>>>(a, b, rand() % 8);
    return cudaDeviceSynchronize();
}
C
"$NVCC" -cudart shared -gencode arch=compute_80,code=compute_80 -o called called.cu && "$NVCC" -arch=compute_80 -ptx -o called.ptx called.cu || exit 1
"$MARGAY" ptx instrument -t lanes --sm 90 called.ptx > twins.ptx || exit 1
python3 - <<'P' || { echo "FAIL: which kernels call"; exit 1; }
import re
text = open('twins.ptx').read()
calls = {}
for k in re.split(r'(?=\.entry )', text)[1:]:
    body = k.split('.func ')[0]
    calls[re.match(r'\.entry (\w+)', k)[1]] = len(re.findall(r'call\.uni.*__mg_called', body))
assert len(calls) == 2 and calls['_Z3fewPjPKji'] == 0 and calls['_Z4manyPjPKji'] > 40, calls
P
failed=0
for tools in '-t lanes' '-t lanes -t memory'; do
    rm -rf emu gpu plain
    "$MARGAY" run -q --device emu $tools -o emu -- ./called "$seed" && "$MARGAY" run -q --device nvidia $tools -o gpu -- ./called "$seed" &&
        "$MARGAY" run -q --device emu -t blocks -o plain -- ./called "$seed" || exit 1
    for p in emu gpu plain; do "$MARGAY" report $p --json > $p.json || exit 1; done
    python3 - <<'P' && echo "ok   $tools" || { echo "FAIL $tools"; failed=1; }
import json
emu, gpu, plain = (json.load(open(p + '.json')) for p in ('emu', 'gpu', 'plain'))
assert gpu['coverage']['instrumented'] == 10, gpu['coverage']
assert emu['tools']['lanes'] == gpu['tools']['lanes']
blocks = lambda r: [(k['name'], [b['thread_entries'] for b in k['blocks']]) for k in r['kernels']]
assert blocks(gpu) == blocks(plain)
P
done
exit $failed
