#!/bin/sh
# What `memory` says where it is likely how far apart lanes' addresses are, and where that guess is wrong; of addresses in shared memory
# that are apart by what is the same in all lanes, or is not: on the emulator, and of code as for a GPU (a driver over the emulator).
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
cat > likely.cu <<'C'
#include <cstdio>
struct item { float a, b, c, d; };
__constant__ int table[64];
#define V(p) (*(volatile int *)&(p))
#define D(p) (*(volatile double *)&(p))
#define EACH(i) _Pragma("unroll 1") for (int i = 0; i < n; i++)
__global__ void global(int *o, const int *in, const item *it, int n)
{
    int x = threadIdx.x, lin = threadIdx.y * blockDim.x + x, v = 0, off = 0;
    EACH(i) if (in[lin] >> i & 1) v += V(in[i]);          // 10: one address, of some lanes
    EACH(i) v += V(in[threadIdx.y + i]);                  // 11: of a row
    EACH(i) v += V(in[64 * x + i]);                       // 12: far apart
    EACH(i) v += V(in[3 * x + i]);                        // 13: near
    EACH(i) v += V(it[lin + i].a) + V(it[lin + i].c);     // 14: members of structures
    EACH(i) v += table[in[lin + i] & 3];                  // 15: constants, of several lanes each
    EACH(i) v += V(in[5 * lin]) + V(in[5 * lin + 16]) + V(in[5 * lin + 32]) + V(in[5 * lin + 48]) + table[i]; // places that come again
    for (int i = 0; i < (in[lin] & 3); i++) off += n;     // what lanes have of it differs
    EACH(i) v += V(in[off + i]);                          // 18
    o[blockIdx.x * blockDim.x * blockDim.y + lin] = v;
}
__global__ void parts(int *o, const int *in, int n)
{
    __shared__ int s[1024], t[1024];
    int x = threadIdx.x, lin = threadIdx.y * blockDim.x + x, *p = s + (in[1] & 7), *q = t + lin + (in[0] & 7);
    EACH(i) V(*q) = i;                                    // 25: a place made once
    EACH(i) if (x < 31) V(*q) = i;                        // 26: parts in order
    EACH(i) if (in[lin] & 2) V(*p) = i;                   // 27: parts at one address
    o[blockIdx.x * blockDim.x * blockDim.y + lin] = *q;
}
__global__ void together(int *o, const int *in, int n)
{
    __shared__ int s[1024], t[1024];
    int lin = threadIdx.y * blockDim.x + threadIdx.x, v = 0;
    for (int j = n; j; j >>= 1) {
        int a = 2 * lin - (lin & (j - 1));
        v += V(s[a]) & V(s[a + j]) & V(s[a + j * 2]);     // 36
        if (in[lin] >> (j & 15) & 1) {
            V(t[a]) = j;                                  // 38
            V(t[a + j]) = 1;
            V(s[a + 1]) = 0;
        }
    }
    o[blockIdx.x * blockDim.x * blockDim.y + lin] = v;
}
__global__ void strays(int *o, const int *in, int n)
{
    __shared__ double s[512];
    int lin = threadIdx.y * blockDim.x + threadIdx.x, off = 0;
    for (int i = 0; i < (in[lin] & 3); i++) off += n;
    EACH(i) {
        int a = (lin ^ i) & 127;
        D(s[a + i]) = D(s[a]) + D(s[a + off]);            // 52: not as far apart in all lanes
    }
    o[blockIdx.x * blockDim.x * blockDim.y + lin] = n;
}
int main()
{
    int *o, *in;
    item *it;
    static int h[16384];
    cudaMalloc(&o, 65536), cudaMalloc(&in, 65536), cudaMalloc(&it, 65536);
    for (int i = 0; i < 16384; i++) h[i] = i * 2654435761u >> 7;
    cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(table, h, 256);
    const dim3 shapes[] = {dim3(64), dim3(50), dim3(32, 3), dim3(16, 4)};
    for (int i = 0; i < 4; i++) {
        global<<<2, shapes[i]>>>(o, in, it, 3 + i);
        parts<<<2, shapes[i]>>>(o, in, 3 + i);
        together<<<2, shapes[i]>>>(o, in, 8 << i % 3);
        strays<<<2, shapes[i]>>>(o, in, 3 + i);
    }
    return cudaDeviceSynchronize();
}
C
"$NVCC" -lineinfo -cudart shared -gencode arch=compute_80,code=compute_80 -o likely likely.cu || exit 1
cat > check.py <<'P'
import json
a, b = (json.load(open(f + '.json'))['tools']['memory']['sites'] for f in ('emu', 'nvidia'))
for x, y in zip(a, b): assert x == y, (x, y)
assert len(a) == len(b) > 30, (len(a), len(b))
def patterns(line): return {p for s in a if s['line'] == line for p, n in s['patterns'].items() if n}
for line, want in {10: 'same', 12: 'stride_more', 13: 'stride_32', 14: 'stride_32', 15: 'irregular', 18: 'irregular', 26: 'unit', 27: 'same', 36: 'irregular', 52: 'irregular'}.items():
    assert want in patterns(line), (line, want, patterns(line))
P
for d in emu nvidia; do
    "$MARGAY" run -q --device $d -t memory -o $d -- ./likely 2> err && "$MARGAY" report $d --json > $d.json || { cat err; exit 1; }
done
python3 check.py
