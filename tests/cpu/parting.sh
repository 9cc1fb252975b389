#!/bin/sh
# Branches by thread numbers alone (split.c): which lanes part is known, and their accesses are made for them. Trees, scans and
# edges give the emulator's results, counts and faults, with values that idle lanes keep, in blocks of one warp and of many.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > parting.cu <<'C'
#include <cstdio>
#include <cstdlib>
template <typename W, int T> __global__ void trees(const W *a, W *out, int far)
{
    __shared__ W s[T + 8];
    int t = threadIdx.x, i = blockIdx.x * T + t;
    W v = a[i], kept = 7;
    s[t] = v;
    if (t < 8) s[T + t] = 3;
    __syncthreads();
#pragma unroll
    for (int d = T / 2; d > 0; d >>= 1) { /* lanes in a row: 16, 8, 4, 2, 1 */
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    v += s[0];
    __syncthreads();
    s[t] = v;
    __syncthreads();
#pragma unroll
    for (int d = 1; d < T; d *= 2) { /* lanes apart */
        if (t % (2 * d) == 0) s[t] = s[t] * 3 + s[t + d];
        __syncthreads();
    }
    v += s[t];
#pragma unroll
    for (int d = 1; d < T; d *= 2) {
        W x = t >= d ? s[t - d] : 5;
        __syncthreads();
        s[t] += x;
        __syncthreads();
    }
    if ((unsigned)t - 3u < 5u) kept = s[t + 2];             /* lanes 3 to 7; the others keep what they had */
    else if (t == 29 && far) kept += a[i + far];            /* one lane, maybe outside */
    if (t > T - 6) out[gridDim.x * T + blockIdx.x * 8 + T - 1 - t] = s[t] + kept; /* backwards, in the last warp */
    if (t & 1 || t / 4 == 1) v += s[t ^ 1] * 11;
    if (t <= 15) v ^= s[t + 4] + kept, out[i + (1 << 14)] = v;
    __syncthreads();
    if (t > 15) s[t - 16] = v;
    __syncthreads();
    if (!(t > 19 || t < 12)) s[t] = s[t - 12] - v;
    __syncthreads();
    out[i] = v * 13 + s[t] + kept;
}
static unsigned host[1 << 16], sum;
static void tell(const void *from, const char *what, int n)
{
    cudaMemcpy(host, from, sizeof host, cudaMemcpyDeviceToHost);
    for (unsigned i = 0; i < 1 << 16; i++) sum = (sum ^ host[i]) * 16777619u;
    printf("%s %d %08x %s\n", what, n, sum, cudaGetErrorName(cudaGetLastError()));
}
template <int T> static void run(void *a, void *out, int far)
{
    trees<unsigned, T><<<5, T>>>((unsigned *)a, (unsigned *)out, far), tell(out, "words", T);
    trees<unsigned long long, T><<<5, T>>>((unsigned long long *)a, (unsigned long long *)out, far), tell(out, "doublewords", T);
}
int main(int argc, char **argv)
{
    void *a, *out;
    int far = argc > 1 ? atoi(argv[1]) : 1;
    cudaMalloc(&a, sizeof host), cudaMalloc(&out, sizeof host);
    for (unsigned i = 0; i < 1 << 16; i++) host[i] = i * 2654435761u >> 12;
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice), cudaMemset(out, 0, sizeof host);
    run<32>(a, out, far), run<64>(a, out, far), run<256>(a, out, far);
    run<64>(a, out, far);                                   /* again: the allocations are known from the start */
    if (argc > 2) cudaFree(a), run<32>(a, out, far);        /* ... and gone */
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared parting.cu -o parting || { echo "FAIL nvcc"; exit 1; }
counts() {
    "$MARGAY" report "$1" --json | python3 -c 'import json, sys
for k in json.load(sys.stdin)["kernels"]: print([(b["thread_entries"], b["warp_entries"]) for b in k["blocks"]])' > "$1.counts"
}
same() { # ONE ANOTHER
    cmp -s "$1" "$2" || { echo "FAIL $2"; diff "$1" "$2"; exit 1; }
}
export MARGAY_CPU_TIER=sync MARGAY_CPU_VERIFY=1
for isa in ${ISA:-avx512 avx2 base}; do
    export MARGAY_ISA=$isa
    for device in emu cpu; do
        "$MARGAY" run -q --workers 1 --device $device -t none -o "$device.$isa" -- ./parting > "$device.$isa.out" 2>&1
        "$MARGAY" run -q --workers 1 --device $device -t none -o "$device.$isa" -- ./parting 1 gone > "$device.$isa.gone" 2>&1
        "$MARGAY" run -q --workers 1 --device $device -t none -o "$device.$isa" -- ./parting 1000000000 > "$device.$isa.far" 2>&1
        "$MARGAY" run -q --workers 2 --device $device -o "$device.$isa" -- ./parting > "$device.$isa.counted" 2>&1
        counts "$device.$isa"
        same "$device.$isa.out" "$device.$isa.counted"
    done
    for what in out gone far counts; do same emu.$isa.$what cpu.$isa.$what; done
done
[ "$(grep -c Success "emu.$isa.out")" = 8 ] && ! grep -v Success "emu.$isa.out" || { echo "FAIL: a launch failed"; cat "emu.$isa.out"; exit 1; }
[ "$(grep -c IllegalAddress "cpu.$isa.gone")" = 2 ] && [ "$(grep -c Success "cpu.$isa.gone")" = 8 ] || { echo "FAIL: what was freed was read"; cat "cpu.$isa.gone"; exit 1; }
head -1 "cpu.$isa.far" | grep -q IllegalAddress || { echo "FAIL: one lane far away"; cat "cpu.$isa.far"; exit 1; }
