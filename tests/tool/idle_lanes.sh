#!/bin/sh
# Lanes that are in order, but for some that are idle. Where a branch idles them (chance), divergence tells it, first, with what memory moves
# for them; its gain is what diff says of a branch by warp. Where a guard does (guarded), or where tool lanes did not run, the access tells it. A
# step between lanes is told of the access all the same (members). SEED draws which lanes are there and how often they load.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
echo "SEED=$seed"
cat > idle.cu <<'C'
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#define AT int i = blockIdx.x * blockDim.x + threadIdx.x
__global__ void chance(const float *p, const int *there, float *o, int rounds) {
    AT;
    float s = 0;
    if (there[i]) // BRANCH
        for (int r = 0; r < rounds; r++) s += p[(i + r * 1024) & 0xfffff];
    o[i] = s;
}
__global__ void members(const float *p, const int *there, float *o, int rounds) {
    AT;
    float s = 0;
    if (there[i])
        for (int r = 0; r < rounds; r++) s += p[(8 * i + r * 1024) & 0xfffff]; // MEMBERS
    o[i] = s;
}
__global__ void guarded(const float *p, const int *there, float *o, int rounds) {
    AT;
    float s = 0;
    int x = there[i];
    for (int r = 0; r < rounds; r++) {
        float v = 0;
        asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0; @q ld.global.f32 %0, [%1]; }" : "+f"(v) : "l"(p + ((i + r * 1024) & 0xfffff)), "r"(x)); // GUARDED
        s += v;
    }
    o[i] = s;
}
int main(int argc, char **argv)
{
    int n = 264 * 256, rounds = atoi(argv[2]), by_warp = !strcmp(argv[1], "warps");
    int *host = (int *)malloc(n * 4), *there;
    float *p, *o;
    srand(atoi(argv[3]));
    for (int i = 0; i < n; i++) host[i] = by_warp ? i >> 5 & 1 : rand() >> 4 & 1;
    cudaMalloc(&p, 4 << 20), cudaMalloc(&o, n * 4), cudaMalloc(&there, n * 4);
    cudaMemset(p, 0, 4 << 20), cudaMemcpy(there, host, n * 4, cudaMemcpyHostToDevice);
    if (by_warp || !strcmp(argv[1], "chance")) chance<<<264, 256>>>(p, there, o, rounds);
    if (!strcmp(argv[1], "members")) members<<<264, 256>>>(p, there, o, rounds);
    if (!strcmp(argv[1], "guarded")) guarded<<<264, 256>>>(p, there, o, rounds);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o idle idle.cu
for device in ${DEVICES:-emu cpu}; do
    for what in chance warps members guarded; do
        rm -rf $what
        "$MARGAY" run -q --device $device -t advise -o $what -- ./idle $what $((24 + seed % 40)) "$seed" > out
        grep -q 'no error' out
        "$MARGAY" report $what --json > $what.json
    done
    rm -rf alone
    "$MARGAY" run -q --device $device -t memory -t blocks -o alone -- ./idle chance 30 "$seed" > out
    "$MARGAY" report alone --json > alone.json
    "$MARGAY" diff chance warps --json > diff.json
    python3 - $device <<'P'
import json, sys
lines = open('idle.cu').read().split('\n')
def line(mark): return next(i for i, l in enumerate(lines, 1) if l.endswith('// ' + mark))
def found(what): return [(f['rule'], f['line']) for f in json.load(open(what + '.json'))['findings'] if f['gain_pct'] > 0]
def first(what): return json.load(open(what + '.json'))['findings'][0]
assert found('chance') == [('divergence', line('BRANCH'))], found('chance')
assert not [f for f in found('warps') if f[0] in ('divergence', 'uncoalesced')], found('warps')
f = first('chance')
v = json.load(open('diff.json'))['verdict']
if sys.argv[1] == 'nvidia': assert v['by'] == 'time', v # a GPU's clock says
else: assert v['is'] == 'better' and -v['interval_pct'][1] - 5 < f['gain_pct'] < -v['interval_pct'][0] + 5, (f, v)
assert f['gain_pct'] > 30 and 'lies between the lanes that are there' in f['text'], f
assert ('uncoalesced', line('MEMBERS')) in found('members'), found('members')
assert found('guarded')[0] == ('uncoalesced', line('GUARDED')), found('guarded')
for what in ('guarded', 'alone'):
    f = first(what)
    assert f['rule'] == 'uncoalesced' and 'Lanes are in order, but 1' in f['text'] and 'with idle ones between' in f['text'], f
P
done
