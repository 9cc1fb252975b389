#!/bin/sh
# Launches that the program waits for before it goes on are counted, and tiny_launch says so: by the device, a stream and an event; not
# those of which several are waited for together, nor waiting for a stream without work, nor without a launch before it.
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-$$}
echo "seed $seed"
cat > waits.cu <<'C'
#include <cstdio>
#include <cstdlib>
__global__ void step(int *p) { p[threadIdx.x]++; }
int main(int, char **a)
{
    int n = atoi(a[1]), *p;
    cudaStream_t s, idle;
    cudaEvent_t e;
    cudaMalloc(&p, 128), cudaMemset(p, 0, 128), cudaStreamCreate(&s), cudaStreamCreate(&idle), cudaEventCreate(&e);
    cudaDeviceSynchronize(), cudaDeviceSynchronize();
    for (int i = 0; i < n; i++) {
        step<<<1, 32, 0, s>>>(p);
        switch (atoi(a[2])) {
        case 0: cudaDeviceSynchronize(), cudaDeviceSynchronize(); break;
        case 1: cudaStreamSynchronize(s); break;
        case 2: cudaEventRecord(e, s), cudaEventSynchronize(e); break;
        case 3: cudaStreamSynchronize(idle); break;
        }
    }
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -O2 -gencode arch=compute_90,code=compute_90 -o waits waits.cu || exit 1
n=$((120 + seed % 50))
for how in 0 1 2 3 4; do
    rm -rf p
    "$MARGAY" run -q --device emu -t blocks,warps=on -o p -- ./waits $n $how > out && "$MARGAY" report p --json > p.json || exit 1
    python3 - $n $how <<'P' || exit 1
import json, sys
n, how = map(int, sys.argv[1:])
j = json.load(open('p.json'))
waited = j['tools'].get('margay', {}).get('waited_for')
assert waited == (None if how > 2 else {'launches': n - 1}), waited # no launch comes behind the last one
tiny = [f for f in j['findings'] if f['rule'] == 'tiny_launch']
assert len(tiny) == 1 and ('since the program waits for each' in tiny[0]['text']) == (how < 3) and 'from the first kernel to the last' in tiny[0]['text'], j['findings']
P
done
