#!/bin/sh
# Operations of a warp whose outcome depends on values (plugin/exchange.c), members in a register that varies elsewhere, and
# atomics of all lanes on one place: the emulator's results, with all lanes and with some, of one warp and of many.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > exchange.cu <<'C'
#include <cstdio>
#include <cstdlib>
typedef unsigned long long wide;
#define MIX(x) (h = (h ^ (unsigned)(x)) * 16777619u)
#define FOLD(v) ((v) ^ (v) >> 32)
template <typename T> static __device__ void change(T *at, T v) /* nobody asks what was there */
{
    atomicMin(at, v), atomicMax(at + 1, v), atomicAnd(at + 2, v), atomicOr(at + 3, v), atomicXor(at + 4, v);
    atomicMax(at + 6, (T)7), atomicXor(at + 7, (T)5);
}
static __device__ unsigned round_of(unsigned v, unsigned m, unsigned k)
{
    unsigned h = v, lane = threadIdx.x & 31, b = v >> 3;
    int in;
    const int width = 2 << k % 5;
    MIX(__shfl_sync(m, v, b, width)), MIX(__shfl_up_sync(m, v, b & 31, width)), MIX(__shfl_down_sync(m, v, b & 31, width));
    MIX(__shfl_xor_sync(m, v, b & 31, width)), MIX(__shfl_sync(m, v, k)), MIX(__shfl_sync(m, lane, 31 - k % 32));
    MIX(__float_as_uint(__shfl_sync(m, __uint_as_float(v), v >> 7)));
    wide w = (wide)v << 32 | k;
    w = __shfl_sync(m, w, b >> 2), MIX(FOLD(w));
    MIX(__match_all_sync(m, v, &in)), MIX(in), MIX(__match_all_sync(m, k, &in)), MIX(in);
    MIX(__match_all_sync(m, (wide)k << 40 | (v & 1) << 3, &in)), MIX(in), MIX(__match_all_sync(m, (wide)k << 40, &in)), MIX(in);
    MIX(__match_any_sync(m, v & 3));
    MIX(__reduce_add_sync(m, v)), MIX(__reduce_min_sync(m, v)), MIX(__reduce_max_sync(m, v)), MIX(__reduce_and_sync(m, v | 9));
    MIX(__reduce_or_sync(m, v & 0xf0f)), MIX(__reduce_xor_sync(m, v)), MIX(__reduce_min_sync(m, (int)v)), MIX(__reduce_max_sync(m, (int)v));
    return h;
}
__global__ void exchange(const unsigned *a, unsigned *out, unsigned *words, wide *doubles, unsigned k)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = a[i], h = round_of(v, ~0u, k), lane = threadIdx.x & 31;
    change(words, v), change((int *)words + 8, (int)v), change(doubles, (wide)v << 33 | v), change((long long *)doubles + 8, (long long)((wide)v << 33));
    unsigned some = __ballot_sync(~0u, v & 4);
    if (v & 4) { /* members in a register, under a mask */
        h ^= round_of(v + 1, some, k + 1);
        change(words + 16, v), change((int *)words + 24, (int)v), change(doubles + 16, (wide)v << 31), change((long long *)doubles + 24, (long long)v - k);
    } else
        h ^= round_of(v - 1, ~some, k + 2) + __activemask();
    if (lane == k % 32) h ^= round_of(v, 1u << lane, k), change(words + 32, v);
    for (unsigned n = 0; n < (v & 7); n++) h ^= __shfl_sync(__activemask(), v, n) + __popc(__activemask());
    out[i] = h;
}
static unsigned host[1 << 14], sum;
static void tell(const void *from, const char *what)
{
    cudaMemcpy(host, from, sizeof host, cudaMemcpyDeviceToHost);
    for (unsigned i = 0; i < 1 << 14; i++) sum = (sum ^ host[i]) * 16777619u;
    printf("%s %08x %s\n", what, sum, cudaGetErrorName(cudaGetLastError()));
}
int main(int argc, char **argv)
{
    unsigned *a, *out, *words, seed = argc > 1 ? atoi(argv[1]) : 1;
    wide *doubles;
    cudaMalloc(&a, sizeof host), cudaMalloc(&out, sizeof host), cudaMalloc(&words, sizeof host), cudaMalloc(&doubles, sizeof host);
    for (unsigned i = 0; i < 1 << 14; i++) host[i] = (i + seed) * 2654435761u ^ (i * 40503u) >> 5;
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    for (unsigned k = seed % 9, block = 32; block <= 128; block *= 4, k += 5) {
        cudaMemset(out, 0, sizeof host), cudaMemset(words, 0x5a, sizeof host), cudaMemset(doubles, 0xa5, sizeof host);
        exchange<<<6, block>>>(a, out, words, doubles, k);
        tell(out, "lanes"), tell(words, "words"), tell(doubles, "doublewords");
    }
}
C
"$NVCC" -O3 -arch=sm_90 -cudart shared exchange.cu -o exchange || { echo "FAIL nvcc"; exit 1; }
seed=$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')
export MARGAY_CPU_TIER=sync MARGAY_CPU_STORE=off MARGAY_CPU_VERIFY=1
for isa in ${ISA:-avx512 avx2 base}; do
    for tool in none $([ $((seed % 2)) = 0 ] && echo lanes || echo values); do
        for device in emu cpu; do
            MARGAY_ISA=$isa "$MARGAY" run -q --workers 1 --device $device -t $tool -o p.$isa.$device.$tool -- ./exchange "$seed" > $device.out 2>&1
        done
        cmp -s emu.out cpu.out || { echo "FAIL: seed $seed, $isa, $tool"; diff emu.out cpu.out; exit 1; }
    done
done
[ "$(grep -c Success emu.out)" = 6 ] && ! grep -v Success emu.out || { echo "FAIL: seed $seed: a launch failed"; cat emu.out; exit 1; }
echo "seed $seed: 6 results, ${ISA:-all ISAs}"
