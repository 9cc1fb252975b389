#!/bin/sh
# Atomics of a warp at one address: of those that ptxas adds up itself (REDUX and an elected lane, looked up in machine code) nothing is
# found, of all others that lanes wait for one another.
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > atomics.cu <<'C'
#include <cstdio>
typedef unsigned u;
__device__ u total;
#define T in[threadIdx.x]
__global__ void sound_add(u *in, u *out) { atomicAdd(out, T); }
__global__ void sound_min(u *in, u *out) { atomicMin((int *)out + 3, (int)T); }
__global__ void sound_xor(u *in, u *out) { atomicXor(&out[blockIdx.x], T); }
__global__ void sound_variable(u *in, u *out) { atomicAdd(&total, T); }
__global__ void sound_guarded(u *in, u *out) { if (T < 5) atomicAdd(out, T); }
__global__ void hot_float(u *in, u *out) { atomicAdd((float *)out, (float)T); }
__global__ void hot_wide(u *in, u *out) { atomicMax((unsigned long long *)out, (unsigned long long)T); }
__global__ void hot_read(u *in, u *out) { T = atomicMin(out, T); }
__global__ void hot_inc(u *in, u *out) { atomicInc(out, 100); }
int main()
{
    u *in, *out;
    cudaMalloc(&in, 4096), cudaMalloc(&out, 4096), cudaMemset(in, 0, 4096), cudaMemset(out, 0, 4096);
#define K(k) k<<<264, 256>>>(in, out);
    K(sound_add) K(sound_min) K(sound_xor) K(sound_variable) K(sound_guarded) K(hot_float) K(hot_wide) K(hot_read) K(hot_inc)
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o atomics atomics.cu && "$NVCC" -arch=sm_90 -cubin -o atomics.cubin atomics.cu || exit 1
"$MARGAY" run -q --device cpu -t advise -o p -- ./atomics > out && "$MARGAY" report p --json > p.json || exit 1
python3 - <<'P' || { "$MARGAY" report p; exit 1; }
import json, re, struct
plain = lambda name: re.sub(r'^_Z\d+', '', name)[:-4] # of (unsigned *, unsigned *): PjS_
d = open('atomics.cubin', 'rb').read()
(at,), (n, names) = struct.unpack_from('<Q', d, 40), struct.unpack_from('<HH', d, 60)
parts = [struct.unpack_from('<IIQQQQIIQQ', d, at + 64 * i) for i in range(n)]
name = lambda s: d[parts[names][4] + s[0]:].split(b'\0')[0].decode()
REDUX = 0x3c4
ops = {plain(name(s)[6:]): {struct.unpack_from('<Q', d, s[4] + o)[0] & 0xfff for o in range(0, s[5], 16)} for s in parts if name(s).startswith('.text.')}
by_ptxas = {k for k, o in ops.items() if REDUX in o}
assert len(ops) == 9 and by_ptxas == {k for k in ops if k.startswith('sound')}, ops
j = json.load(open('p.json'))
of = {k['id']: plain(k['name']) for k in j['kernels']}
found = {of[f['kernel']] for f in j['findings'] if f['rule'] == 'hot_atomic'}
assert found == ops.keys() - by_ptxas, found
P
