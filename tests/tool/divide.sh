#!/bin/sh
# slow_division: integers divided by what the compiler does not know, of 32 and 64 bits, in a loop and behind a branch; nothing where the divisor is a
# constant, where it is masked, where few threads divide, nor of floating point.
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-$$}
echo "seed $seed"
cat > divide.cu <<'C'
#include <cstdio>
typedef unsigned u;
typedef unsigned long long wide;
#define KERNEL(name, ...) __global__ void name(u *io, u n, wide m) { u i = blockIdx.x * blockDim.x + threadIdx.x, v = io[i] + i; for (u k = 0; k < 9; k++) { __VA_ARGS__; } io[i] = v; }
KERNEL(slow_rem, v += (v + k) % n)
KERNEL(slow_div, v ^= (int)(v + k) / (int)n)
KERNEL(slow_wide, v += (u)(((wide)v << 33) / m))
KERNEL(slow_branch, if (v % (n + k) == 0) v += k; else v ^= k)
KERNEL(slow_again, _Pragma("unroll 1") for (u j = 0; j < 9; j++) v += (v + j) % n)
KERNEL(slow_each, _Pragma("unroll 1") for (u j = 0; j < 9; j++) v += (v + j) % (n + j))
KERNEL(sound_outside, u d = io[0] / n; _Pragma("unroll 1") for (u j = 0; j < 9; j++) v += (v + j) ^ d)
KERNEL(sound_constant, v += (v + k) % 48)
KERNEL(sound_moved, u d; asm("mov.u32 %0, 48;" : "=r"(d)); v += (v + k) % d)
KERNEL(sound_mask, v += (v + k) & (n - 1))
KERNEL(sound_float, v += (u)((float)(v + k) / (float)n))
KERNEL(sound_few, for (u j = 0; j < 40; j++) v = v * 1664525u + j; if (i == 3) v += v % n)
int main(int, char **a)
{
    u *io;
    cudaMalloc(&io, 4 * 264 * 256), cudaMemset(io, 3, 4 * 264 * 256);
    u n;
    sscanf(a[1], "%u", &n);
#define RUN(k) k<<<264, 256>>>(io, n, n + 5ull);
    RUN(slow_rem) RUN(slow_div) RUN(slow_wide) RUN(slow_branch) RUN(slow_again) RUN(slow_each) RUN(sound_outside) RUN(sound_constant) RUN(sound_moved) RUN(sound_mask) RUN(sound_float) RUN(sound_few)
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o divide divide.cu || exit 1
for device in cpu emu; do
    rm -rf p
    "$MARGAY" run -q --device $device -t blocks,warps=on -o p -- ./divide $((seed % 90 + 3)) > out && "$MARGAY" report p --json > p.json || exit 1
    python3 - <<'P' || exit 1
import json
j = json.load(open('p.json'))
of = {k['id']: k['demangled'].split('(')[0] for k in j['kernels']}
found = {of[f['kernel']]: f for f in j['findings'] if f['rule'] == 'slow_division'}
assert found.keys() == {'slow_rem', 'slow_div', 'slow_wide', 'slow_branch', 'slow_again', 'slow_each'}, found
text = open('divide.cu').read().split('\n')
line = lambda name: 1 + next(i for i, l in enumerate(text) if l.startswith('KERNEL(%s,' % name))
assert all(f['line'] == line(k) and f['sure'] == 'model' and f['gain_pct'] > 1 for k, f in found.items()), found
again, each = found['slow_again'], found['slow_each']
assert 1 < again['measure'] < .6 * each['measure'] and again['gain_pct'] < each['gain_pct'], (again, each)
assert 'though no round of the loop changes it' in again['text'] and 'no round' not in each['text'], (again, each)
assert found['slow_wide']['measure'] > 60 and 10 < found['slow_rem']['measure'] < 30 and 'mask' in found['slow_rem']['text'] and 'power of two and no number is negative, shift' in found['slow_div']['text'] and 'power of two, mask' in found['slow_rem']['text'], found
P
done
