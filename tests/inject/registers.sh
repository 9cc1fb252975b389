#!/bin/sh
# Registers per thread of the application's own machine code: what ptxas said when it made it, also
# where the profile and the occupancy answers use it; without machine code an estimate, marked.
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > k.cu <<'C'
#include <cstdio>
__device__ __noinline__ float f(float x) { return x * x + 1; }
__global__ void few(float *p) { p[threadIdx.x] *= 2; }
__global__ void __launch_bounds__(128) many(float *p, int n)
{
    float s[24];
    for (int k = 0; k < 24; k++) s[k] = p[k];
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 24; k++) s[k] = s[k] * s[(k + 5) % 24] + f(p[i]);
    for (int k = 0; k < 24; k++) p[k] = s[k];
}
int main()
{
    float *d;
    cudaFuncAttributes a, b;
    if (cudaMalloc(&d, 4096) || cudaMemset(d, 0, 4096)) return 2;
    few<<<1, 32>>>(d);
    many<<<1, 32>>>(d, 3);
    if (cudaDeviceSynchronize() || cudaFuncGetAttributes(&a, few) || cudaFuncGetAttributes(&b, many)) return 2;
    printf("%d %d\n", a.numRegs, b.numRegs);
    return 0;
}
C
"$NVCC" -cudart shared -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90 -Xptxas -v -o k k.cu 2> ptxas || { cat ptxas; exit 1; }
"$NVCC" -cudart shared -gencode arch=compute_90,code=compute_90 -o estimated k.cu || exit 1
failed=0
"$MARGAY" run -q -o p -- ./k > out 2> err && "$MARGAY" report p --json > p.json && "$MARGAY" run -q -o e -- ./estimated > /dev/null 2>&1 &&
    "$MARGAY" report e --json > e.json && python3 - << 'P' || { cat out err ptxas; failed=1; }
import json, re
used = {}
for line in open('ptxas'):
    m = re.search(r"Compiling entry function '(\w+)'", line)
    name = m[1] if m else name if 'name' in dir() else None
    m = re.search(r'Used (\d+) registers', line)
    if m: used[name] = int(m[1])
assert len(used) == 2, used
r = {k['name']: k['registers'] for k in json.load(open('p.json'))['kernels']}
assert {n: k['native'] for n, k in r.items()} == used, (r, used)
assert not any(k.get('estimate') for k in r.values()), r
assert sorted(map(int, open('out').read().split())) == sorted(used.values())
assert all(k['registers']['estimate'] is True and k['registers']['native'] > 0 for k in json.load(open('e.json'))['kernels'])
P
# a kernel that is too large to be looked at is taken to use what every launch may have
gcc -O1 -o run "$ROOT/tests/cli/ptxrun.c" -ldl && python3 - > large.ptx << 'P' || exit 1
print('.version 8.0\n.target sm_90\n.address_size 64\n.visible .entry large(.param .u64 p, .param .u32 n)\n{\n.reg .b32 %r<3>;')
print('ld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;')
print('add.u32 %r1, %r1, %r2;\n' * 20001 + 'ret;\n}')
P
"$MARGAY" run -q --device emu -o l -- ./run load=large.ptx large:1,1,1:32,1,1:1 > out 2> err && "$MARGAY" report l --json > l.json && python3 - << 'P' || { cat out err; failed=1; }
import json
(k,) = json.load(open('l.json'))['kernels']
assert k['registers'] == {'native': 64, 'instrumented': 64, 'estimate': True}, k['registers']
P
exit $failed
