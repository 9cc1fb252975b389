#!/bin/sh
# Machine code alone (nvcc -gencode arch=compute_90,code=sm_90): the program gets the error of a driver
# that has no code for its GPU, one line says why, and the profile names the kernel that did not run. What
# ran beside it is counted.
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
failed=0
cat > bare.cu <<'C'
#include <cstdio>
__global__ void bare(unsigned *p, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = i;
}
void good(unsigned *p);
int main()
{
    unsigned *p, h[200];
    cudaMalloc(&p, sizeof h);
    bare<<<4, 64>>>(p, 200);
    int e = cudaGetLastError();
    good(p);
    int c = cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost);
    printf("bare %d, good %d, copy %d\n", e, (int)cudaGetLastError(), c);
    return h[100] != 107;
}
C
cat > good.cu <<'C'
__global__ void fine(unsigned *p) { p[threadIdx.x] = threadIdx.x + 7; }
void good(unsigned *p) { fine<<<1, 200>>>(p); }
C
"$NVCC" -cudart shared -gencode arch=compute_90,code=sm_90 -c bare.cu && "$NVCC" -cudart shared -arch=sm_90 -c good.cu &&
    "$NVCC" -cudart shared -o bare bare.o good.o || exit 1
for tool in blocks none; do
    rm -rf profile
    "$MARGAY" run -o profile -t $tool -- ./bare > out 2> err
    rc=$?
    if [ $rc = 0 ] && grep -qx 'bare 209, good 0, copy 0' out && [ "$(grep -c '^margay: ' err)" = 1 ] &&
        grep -q '^margay: module not loaded: .*no PTX' err && grep -q '^  bare(unsigned int\*, unsigned int): rejected, no PTX' err &&
        "$MARGAY" report profile --json > out.json && python3 - $tool >> err 2>&1 <<'P'; then
import json, sys
c = json.load(open('out.json'))['coverage']
assert (c['launches'], c['instrumented']) == (1, sys.argv[1] == 'blocks'), c
row = [r for r in c['native'] if r['launches'] == 0]
assert len(row) == 1 and row[0]['kernel'] == '_Z4barePjj' and 'no PTX' in row[0]['reason'], c
P
        echo "ok   -t $tool"
    else
        echo "FAIL -t $tool: exit $rc"
        cat out err
        failed=1
    fi
done
exit $failed
