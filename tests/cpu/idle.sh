#!/bin/sh
# Warps that have nothing to do up to the next barrier are left out (idle.c): with bounds that are known and others, comparisons
# of every kind, registers that idle warps write or keep, several barriers, blocks of one to three dimensions, results and counts
# are the emulator's.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > idle.cu <<'C'
#include <cstdio>
#include <cstdlib>
template <int X, int Y, int Z> __global__ void idle(const unsigned *a, unsigned *out, int half, int k)
{
    constexpr int T = X * Y * Z;
    __shared__ unsigned s[T], u[T];
    int t = (threadIdx.z * Y + threadIdx.y) * X + threadIdx.x, i = blockIdx.x * T + t;
    unsigned v = 5, kept = a[i];
    s[t] = kept, u[t] = t * 3;
    __syncthreads();
    for (int d = half; d > 0; d >>= 1) { /* a bound nobody knows; nothing behind */
        if (t < d) s[t] += u[(t + d) % T];
        __syncthreads();
    }
#pragma unroll
    for (int d = T / 2; d > 0; d /= 3) { /* known ones */
        if (t < d) s[t] ^= s[t + d] * 5;
        __syncthreads();
    }
    for (int d = half; d > 0; d >>= 1) { /* the first warps, not the last */
        if (t > d) u[t] += d;
        __syncthreads();
    }
    for (int d = half; d > 0; d >>= 1) { /* idle ones write what counts later */
        if (t <= d) u[t] += s[t]; else v += d;
        __syncthreads();
    }
    v = v > 9 ? v : 9;
    __syncthreads();
    for (int d = half; d > 0; d >>= 1) { /* ... and keep what is a constant until then */
        unsigned w = 3;
        __syncthreads();
        if (t < d) w = s[t] + 1;
        __syncthreads();
        kept += w;
    }
    if ((unsigned)(t - k) < 8u) kept += s[t ^ 1]; /* neither the first nor the last */
    __syncthreads();
    if (t - k < 8) u[t] ^= kept;
    __syncthreads();
    if (T - 1 - t < k) s[t] += 11; /* the last ones */
    __syncthreads();
    if (t == k) u[0] += s[t];
    __syncthreads();
    if (t != 0) s[t] += u[t];
    __syncthreads();
    if (threadIdx.y < 1 && threadIdx.z == 0) s[t] ^= u[0];
    __syncthreads();
    if (t / 32 == k / 32) u[t] += v;
    __syncthreads();
    out[gridDim.x * T + i] = s[t] * 13 + u[t] + kept + v;
    __syncthreads();
    if (t < k) out[i] = s[(t * 7) % T];
}
static unsigned host[1 << 16], sum;
template <int X, int Y, int Z> static void run(unsigned *a, unsigned *out, int k)
{
    for (int half = 1; half <= X * Y * Z; half = half * 2 + k % 2) {
        idle<X, Y, Z><<<5, dim3(X, Y, Z)>>>(a, out, half, k);
        cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
        for (unsigned i = 0; i < 1 << 16; i++) sum = (sum ^ host[i]) * 16777619u;
        printf("%d %d %d, %d: %08x %s\n", X, Y, Z, half, sum, cudaGetErrorName(cudaGetLastError()));
    }
}
int main(int argc, char **argv)
{
    unsigned *a, *out, k = argc > 1 ? atoi(argv[1]) : 1;
    cudaMalloc(&a, sizeof host), cudaMalloc(&out, sizeof host);
    for (unsigned i = 0; i < 1 << 16; i++) host[i] = (i + k) * 2654435761u >> 12;
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice), cudaMemset(out, 0, sizeof host);
    run<64, 1, 1>(a, out, k % 60), run<512, 1, 1>(a, out, k), run<16, 16, 1>(a, out, k), run<8, 4, 4>(a, out, k % 100);
    run<48, 2, 1>(a, out, k % 90), run<100, 1, 1>(a, out, k % 90);
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared idle.cu -o idle || { echo "FAIL nvcc"; exit 1; }
seed=$(od -An -N2 -tu2 /dev/urandom | awk '{print $1 % 250}')
export MARGAY_CPU_TIER=sync MARGAY_CPU_VERIFY=1
for isa in ${ISA:-avx512 avx2 base}; do
    for device in emu cpu; do
        for tool in none blocks; do
            MARGAY_ISA=$isa "$MARGAY" run -q --workers 2 --device $device -t $tool -o p.$isa.$device.$tool -- ./idle "$seed" > $device.$tool.out 2>&1
        done
        "$MARGAY" report p.$isa.$device.blocks --json | python3 -c 'import json, sys
for k in json.load(sys.stdin)["kernels"]: print(k["name"], [(b["thread_entries"], b["warp_entries"]) for b in k["blocks"]])' > $device.counts
    done
    for what in none.out blocks.out counts; do
        cmp -s emu.$what cpu.$what || { echo "FAIL: seed $seed, $isa: $what"; diff emu.$what cpu.$what | head; exit 1; }
    done
done
[ "$(grep -c Success emu.none.out)" -ge 40 ] && ! grep -v Success emu.none.out || { echo "FAIL: seed $seed: a launch failed"; cat emu.none.out; exit 1; }
echo "seed $seed: $(wc -l < emu.none.out) launches"
