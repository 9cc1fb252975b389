#!/bin/sh
# What `memory` and `values` count by operations that say what they mean, on emulator and CPU device, is what their inserted
# code counts on a GPU (a driver over the emulator): accesses of any width and order, by some lanes and all, in blocks of any
# shape. SEED=S repeats a run.
# long
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart MARGAY_CPU_TIER=sync
seed=${SEED:-$(date +%s)}
echo "SEED=$seed"
cat > meant.cu <<'C'
#include <cstdio>
#include <cstdlib>
template <class T> __device__ void move(T *to, const T *from, int t, int step, int off, const int *any, unsigned mask)
{
    for (int k = 0; k < 3; k++) {
        to[t * step + off] = from[t * step + k];
        if (mask >> (t % 32) & 1) to[any[t] + k] = from[any[t + 1]];
        if (t > off) to[t] = from[t + off];
    }
}
template <class T> __global__ void k(T *to, const T *from, const int *any, int step, int off, unsigned mask)
{
    __shared__ T s[1280], sink[1280]; // what is stored is not read: threads race
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), n = blockDim.x * blockDim.y * blockDim.z;
    for (int i = t; i < 1280; i += n) s[i] = from[i];
    __syncthreads();
    move(to + 8192 * blockIdx.x, from, t, step, off, any, mask);
    move(sink, from, t, step & 3, off, any, mask);
    __syncthreads();
    move(to + 8192 * blockIdx.x, s, t, step & 3, off, any, mask);
    T *either = mask & 1 ? sink : to + 8192 * blockIdx.x; // nobody knows where
    either[threadIdx.x * 4 + off] = from[threadIdx.y * 32 + threadIdx.x];
}
template <class T> void run()
{
    static const dim3 blocks[] = {dim3(64), dim3(48), dim3(8, 8), dim3(7, 9), dim3(128)};
    size_t bytes = sizeof(T) * 65536;
    unsigned char *host = (unsigned char *)malloc(bytes);
    int any[4096], *at;
    T *a, *b;
    for (int same = 0; same < 2; same++) {
        for (size_t i = 0; i < bytes; i++) host[i] = same ? (i / sizeof(T) / 64 % 3 ? 0 : 127) : rand() % 5 ? rand() : 255;
        int spread = 1 << rand() % 9;
        for (int i = 0; i < 4096; i++) any[i] = i < 40 ? 3 * i : rand() % spread + (i % 7 ? i % 512 : 3);
        cudaMalloc(&a, bytes), cudaMalloc(&b, bytes), cudaMalloc(&at, sizeof any);
        cudaMemcpy(b, host, bytes, cudaMemcpyHostToDevice);
        cudaMemcpy(at, any, sizeof any, cudaMemcpyHostToDevice);
        for (int i = 0; i < 2; i++)
            k<<<3, blocks[rand() % 5]>>>(a, b, at, rand() % 9, rand() % 20, rand() % 3 ? (unsigned)rand() * 3u : ~0u);
    }
}
int main(int argc, char **argv)
{
    srand(atoi(argv[1]));
    switch (atoi(argv[1]) % 8) { // one type a run
    case 0: run<unsigned char>(); break;
    case 1: run<float>(); break;
    case 2: run<short>(); break;
    case 3: run<double>(); break;
    case 4: run<float2>(); break;
    case 5: run<long long>(); break;
    case 6: run<unsigned>(); break;
    default: run<int4>();
    }
    return cudaDeviceSynchronize();
}
C
"$NVCC" -lineinfo -cudart shared -gencode arch=compute_80,code=compute_80 -o meant meant.cu || exit 1
cat > told.py <<'P'
import json, sys
r = json.load(sys.stdin)
assert r['coverage']['instrumented'] == r['coverage']['launches'] > 0, r['coverage']
for tool in 'memory', 'values':
    for s in r['tools'][tool]['sites']:
        print(tool, json.dumps(s, sort_keys=True))
P
failed=0
look() { # NAME DEVICE OPTION...
    name=$1 device=$2
    shift 2
    rm -rf p
    "$MARGAY" run -q --device "$device" -t memory -t values "$@" -o p -- ./meant "$seed" > out 2>&1 && "$MARGAY" report p --json | python3 told.py > "$name" || { echo "FAIL $name"; cat out; failed=1; }
    cmp -s nvidia "$name" || { echo "FAIL $name differs"; diff nvidia "$name" | head -4; failed=1; }
}
look nvidia nvidia
# bytes may be asked for without a conflict
[ "$(grep -c '"warps": [1-9]' nvidia)" -gt 50 ] && grep -q '"irregular": [1-9]' nvidia && { [ $((seed % 8)) = 0 ] || grep -q '"bank_conflicts": [1-9]' nvidia; } && grep -q '"affine": [1-9]' nvidia && grep -q '"redundant": [1-9]' nvidia || { echo "FAIL: nothing was counted"; failed=1; }
look emu emu
MARGAY_ISA=base look emu-base emu
if [ -e "$B/lib/margay/libmargay-cpu.so" ]; then
    look cpu cpu
    case $((seed / 8 % 3)) in # compiling takes its time
    0) MARGAY_ISA=avx2 look cpu-avx2 cpu ;;
    1) MARGAY_ISA=base look cpu-base cpu ;;
    *) MARGAY_CPU_WHOLE=off look cpu-warps cpu ;;
    esac
fi
exit $failed
