#!/bin/sh
# Atomics of a warp at one address: of those that ptxas adds up itself (with REDUX, a population count or a scan, looked up in machine
# code) nothing is found, of all others that lanes wait for one another.
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > atomics.cu <<'C'
#include <cstdio>
typedef unsigned u;
__device__ u total;
#define T in[threadIdx.x]
typedef unsigned long long wide;
#define KERNELS \
    K(sound_add, atomicAdd(out, T)) K(sound_min, atomicMin((int *)out + 3, (int)T)) K(sound_xor, atomicXor(&out[blockIdx.x], T)) \
    K(sound_variable, atomicAdd(&total, T)) K(sound_guarded, if (T < 5) atomicAdd(out, T)) K(sound_loaded, atomicAdd(out + in[0], T)) \
    K(sound_pointer, atomicAdd(*(u **)(in + 256), T)) K(sound_loop, for (u j = 0; j < n; j++) atomicAdd(out + in[j], T)) \
    K(sound_guarded_loop, if (T < n) for (u j = 0; j < n; j++) atomicAdd(out + j, T)) K(sound_chosen, atomicAdd(n > 3 ? out : in + 300, T)) \
    K(sound_broadcast, atomicAdd(out + __shfl_sync(~0u, T, 0), T)) K(sound_vote, atomicAdd(out + (__any_sync(~0u, T) != 0), T)) \
    K(sound_wide_one, atomicAdd((wide *)out, 1ull)) K(sound_wide_n, atomicAdd((wide *)out, (wide)n)) \
    K(sound_read_one, in[512 + threadIdx.x] = atomicAdd(out, 1)) K(sound_read_wide, in[512 + threadIdx.x] = atomicAdd((wide *)out, (wide)n)) \
    K(sound_read, in[512 + threadIdx.x] = atomicAdd(out, T)) K(sound_shared, S(atomicMax(&s[1], T))) K(sound_shared_one, S(atomicAdd(&s[T], 1))) \
    K(hot_float, atomicAdd((float *)out, (float)T)) K(hot_wide, atomicMax((wide *)out, (wide)T)) K(hot_wide_sum, atomicAdd((wide *)out, (wide)T)) \
    K(hot_read, T = atomicMin(out, T)) K(hot_inc, atomicInc(out, 100)) K(hot_lane, atomicAdd(out + T, T)) \
    K(hot_arms, u k; if (T > 7) k = in[1], in[600] = k; else k = in[2], in[601] = k; atomicAdd(out + k, T)) \
    K(hot_left_loop, u k = 0; while (in[threadIdx.x + k] > 5) k += n; atomicAdd(out + k, T)) \
    K(hot_shared_lane, S(atomicAdd(&s[T], T)))
#define S(statement) __shared__ u s[32]; if (threadIdx.x < 32) s[threadIdx.x] = 0; __syncthreads(); statement; __syncthreads(); if (!threadIdx.x) out[1] = s[0] + s[1];
#define K(name, ...) __global__ void name(u *in, u *out, u n) { __VA_ARGS__; }
KERNELS
#undef K
int main()
{
    u *in, *out;
    cudaMalloc(&in, 4096), cudaMalloc(&out, 4096);
#define K(k, ...) cudaMemset(in, 0, 4096), cudaMemset(out, 0, 4096), cudaMemcpy(in + 256, &out, 8, cudaMemcpyHostToDevice), k<<<264, 256>>>(in, out, 4u);
    KERNELS
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o atomics atomics.cu && "$NVCC" -arch=sm_90 -cubin -o atomics.cubin atomics.cu || exit 1
"$MARGAY" run -q --device cpu -t advise -o p -- ./atomics > out && "$MARGAY" report p --json > p.json || exit 1
python3 - <<'P' || { "$MARGAY" report p; exit 1; }
import json, re, struct
plain = lambda name: re.sub(r'^_Z\d+', '', name)[:-5] # of (unsigned *, unsigned *, unsigned): PjS_j
d = open('atomics.cubin', 'rb').read()
(at,), (n, names) = struct.unpack_from('<Q', d, 40), struct.unpack_from('<HH', d, 60)
parts = [struct.unpack_from('<IIQQQQIIQQ', d, at + 64 * i) for i in range(n)]
name = lambda s: d[parts[names][4] + s[0]:].split(b'\0')[0].decode()
REDUX, COUNTS, INC, SHFL = 0x3c4, {0x309, 0x2bf}, 0xf8c, {0xf89, 0x589, 0x989, 0x389} # INC: ATOMS.POPC.INC
ops = {plain(name(s)[6:]): {struct.unpack_from('<Q', d, s[4] + o)[0] & 0xfff for o in range(0, s[5], 16)} for s in parts if name(s).startswith('.text.')}
by_ptxas = {k for k, o in ops.items() if REDUX in o or o & COUNTS or INC in o or (k == 'sound_read' and o & SHFL)}
assert len(ops) == 28 and by_ptxas == {k for k in ops if k.startswith('sound')}, {k: [hex(x) for x in o] for k, o in ops.items()}
j = json.load(open('p.json'))
of = {k['id']: plain(k['name']) for k in j['kernels']}
found = {of[f['kernel']] for f in j['findings'] if f['rule'] == 'hot_atomic'}
assert found == ops.keys() - by_ptxas, found
# warps add up integers of 32 bits in one instruction, nothing else
text = {of[f['kernel']]: f['text'] for f in j['findings'] if f['rule'] == 'hot_atomic'}
assert 'Add up in the warp first (__reduce_add_sync or shuffles), then' in text['hot_arms'] and 'values in the warp first (__reduce_min_sync or' in text['hot_read'], text
assert all('Add up in the warp first (shuffles), then' in text[k] for k in ('hot_float', 'hot_wide_sum')), text
assert "Combine the lanes' values in the warp first (shuffles)" in text['hot_wide'] and 'Let one lane stand for all that can' in text['hot_inc'], text
P
