/* 24 kernels for tests/gpu/ncu.sh: loops, divergence and early exits, made of instructions that the
 * assembler neither merges, splits nor moves: volatile accesses, atomics on addresses that differ by
 * thread, barriers, shuffles, votes. Every other memory access would spoil the comparison, so there is
 * none. A branch whose body is short becomes predicates in machine code; it is one that some lane of
 * every warp takes, so that both forms are run as often by warps, too. */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#pragma nv_diag_suppress 177, 550 /* lane is not used everywhere */
typedef volatile unsigned *vp;
#define KERNEL extern "C" __global__ void
#define ARGS (vp in, vp out, unsigned *sum, unsigned n)
#define ID unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t, lane = t & 31
#define LOOP _Pragma("unroll 1") for /* ends of unrolled loops would be predicates, too */
#define ONCE LOOP (unsigned once = 0; once < 1 + (n == 0); once++) /* a branch that stays one: no predicate replaces a loop */
#define ALL 0xffffffffu

KERNEL straight ARGS { ID; out[i] = in[i] + 1; }
KERNEL early ARGS { ID; if (i >= n) return; out[i] = in[i] + 1; }
KERNEL uniform_loop ARGS { ID; unsigned s = 0; LOOP (unsigned k = 0; k < 37; k++) s += in[i + k]; out[i] = s; }
KERNEL lane_loop ARGS { ID; unsigned s = 0; LOOP (unsigned k = 0; k < lane; k++) s += in[i + k]; out[i] = s; }
KERNEL data_loop ARGS { ID; unsigned x = in[i], s = 0; while (x != 1 && s < 500) { x = x & 1 ? 3 * x + 1 : x / 2; out[i] = ++s; } }
KERNEL leavers ARGS { ID; LOOP (unsigned k = 0; k < 64; k++) { if (in[i + k] % 61 == 7) return; out[i] = k; } atomicAdd(&sum[i], 1); }
KERNEL nested ARGS { ID; unsigned s = 0; LOOP (unsigned j = 0; j <= t % 5; j++) LOOP (unsigned k = j; k < t % 7; k++) s += in[i + j * k]; out[i] = s; }
KERNEL breaks ARGS { ID; unsigned s = 0; LOOP (unsigned k = 0; k < 50; k++) { unsigned v = in[i * 3 + k]; if (v % 17 == 0) break; if (v % 5 == 0) continue; ONCE { s += v; out[i] = s; } } atomicAdd(&sum[i], s); }
KERNEL either ARGS { ID; if (lane & 1) { LOOP (unsigned k = 0; k < 1 + lane / 2; k++) atomicAdd(&sum[i], k); } else { out[i] = in[i]; } }
KERNEL warps_apart ARGS { ID; if ((t >> 5) & 1) LOOP (unsigned k = 0; k < 1 + t / 32; k++) out[i] = in[i + k]; else ONCE atomicMax(&sum[i], t); }
KERNEL switches ARGS {
    ID;
    unsigned s = 0;
    LOOP (unsigned k = 0; k < 12; k++)
        switch ((lane + k) % 6) {
        case 0: LOOP (unsigned j = 0; j < 3; j++) s += in[i + j]; break;
        case 1: atomicAdd(&sum[i], s); break;
        case 2: LOOP (unsigned j = 0; j < lane % 4; j++) out[i] = s + j; break;
        case 3: s += atomicExch(&sum[i], s); break;
        case 4: s ^= 5; break;
        default: s += atomicCAS(&sum[i], s, k); break;
        }
}
KERNEL barriers ARGS {
    ID;
    volatile __shared__ unsigned tile[256];
    tile[t] = in[i];
    LOOP (unsigned step = blockDim.x / 2; step; step /= 2) {
        __syncthreads();
        if (t < step) ONCE { unsigned v = tile[t] + tile[t + step]; tile[t] = v; }
    }
    if (t == 0) ONCE out[blockIdx.x] = tile[0];
}
KERNEL barrier_votes ARGS { ID; unsigned k = 0; while (__syncthreads_or(in[i + k] % 29 < 28 && k < 20)) k++; out[i] = k; atomicAdd(&sum[i], __syncthreads_count(t & 1)); }
KERNEL named_barriers ARGS { ID; unsigned half = t / 64 % 2; LOOP (unsigned k = 0; k < 3 + half; k++) { asm volatile("bar.sync %0, 64;" ::"r"(1 + half) : "memory"); out[i] = k; } }
KERNEL shuffles ARGS { ID; unsigned v = in[i]; LOOP (unsigned d = 16; d; d /= 2) v += __shfl_xor_sync(ALL, v, d); out[i] = v; }
KERNEL scans ARGS { ID; unsigned v = in[i]; LOOP (unsigned d = 1; d < 32; d *= 2) { unsigned u = __shfl_up_sync(ALL, v, d); if (lane >= d) v += u; } out[i] = v; }
KERNEL some_shuffle ARGS { ID; if (lane < 8) { unsigned v = in[i]; LOOP (unsigned k = 0; k < 5 + n % 2; k++) v += __shfl_sync(0xff, v, (lane + k) % 8); out[i] = v; } }
KERNEL ballots ARGS { ID; unsigned s = 0; LOOP (unsigned k = 0; k < 9; k++) s += __popc(__ballot_sync(ALL, in[i + k] & 1)); out[i] = s; }
KERNEL matches ARGS { ID; unsigned s = 0; LOOP (unsigned k = 0; k < 4; k++) s += __popc(__match_any_sync(ALL, in[i + k] % 4)); out[i] = s + __reduce_add_sync(ALL, s); }
KERNEL shared_atomics ARGS { ID; __shared__ unsigned bins[64]; if (t < 64) bins[t] = 0; __syncthreads(); LOOP (unsigned k = 0; k < 1 + lane % 3; k++) atomicAdd(&bins[in[i + k] % 64], k); __syncthreads(); if (t < 64) atomicAdd(&sum[blockIdx.x * 64 + t], bins[t]); }
KERNEL counted_by_atomics ARGS { ID; unsigned old; do old = atomicAdd(&sum[i], 1); while (old < t % 11); out[i] = old; }
__device__ __noinline__ unsigned callee(vp in, unsigned i, unsigned n) { unsigned s = 0; LOOP (unsigned k = 0; k < n % 6; k++) s += in[i + k]; return s; }
KERNEL calls ARGS { ID; unsigned s = callee(in, i, t); if (s & 1) s += callee(in, i + 1, s); out[i] = s; }
__device__ __noinline__ unsigned descend(vp out, unsigned i, unsigned n) { out[i] = n; return n < 2 ? n : descend(out, i, n - 1) + descend(out, i, n - 2); }
KERNEL recursion ARGS { ID; atomicAdd(&sum[i], descend(out, i, 3 + lane % 5)); }
KERNEL vectors ARGS { ID; LOOP (unsigned k = 0; k < 3 + lane % 2; k++) { unsigned a, b; asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"((const void *)(in + 2 * i))); asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"((void *)(out + 2 * i)), "r"(a + k), "r"(b) : "memory"); } }

static void check(cudaError_t e) { if (e) { printf("%s\n", cudaGetErrorString(e)); exit(1); } }

int main()
{
    enum { GRID = 3, MOST = 256, WORDS = 4096 };
    unsigned *in, *out, *sum, host[WORDS], x = 1, seed = 12345;
    check(cudaMalloc(&in, sizeof host)), check(cudaMalloc(&out, sizeof host)), check(cudaMalloc(&sum, sizeof host));
    for (unsigned &h : host) seed = seed * 1664525 + 1013904223, h = seed >> 8;
    check(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    check(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
#define RUN(k, threads)                                                                       \
    check(cudaMemset(sum, 0, sizeof host)), check(cudaMemset(out, 0, sizeof host));            \
    k<<<GRID, threads>>>(in, out, sum, GRID * (threads) - 45);                                  \
    check(cudaDeviceSynchronize()), check(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost)); \
    for (unsigned h : host) x = x * 31 + h;                                                     \
    check(cudaMemcpy(host, sum, sizeof host, cudaMemcpyDeviceToHost));                           \
    for (unsigned h : host) x = x * 31 + h;                                                     \
    printf("%s %08x\n", #k, x)
    RUN(straight, 200); RUN(early, 256); RUN(uniform_loop, 160); RUN(lane_loop, 180); RUN(data_loop, 128); RUN(leavers, 256);
    RUN(nested, 192); RUN(breaks, 224); RUN(either, 96); RUN(warps_apart, 256); RUN(switches, 128); RUN(barriers, 256);
    RUN(barrier_votes, 128); RUN(named_barriers, 128); RUN(shuffles, 128); RUN(scans, 256); RUN(some_shuffle, 192); RUN(ballots, 64);
    RUN(matches, 128); RUN(shared_atomics, 64); RUN(counted_by_atomics, 100); RUN(calls, 130); RUN(recursion, 64); RUN(vectors, 250);
    return 0;
}
