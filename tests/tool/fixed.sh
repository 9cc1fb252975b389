#!/bin/sh
# Accesses to shared memory whose places follow from the thread's number: what `memory` says of warps of whole rows, of parts of a warp,
# of CTAs whose warps lie in several rows; on the emulator, and of code as for a GPU (a driver over the emulator).
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
cat > fixed.cu <<'C'
#include <cstdio>
#define V(i) ((volatile int *)s)[i]
__global__ void k(int *o, int n) {
    __shared__ int s[4096];
    int t = threadIdx.x, v = 0;
    s[2 * t] = n;                          // 6: stride of two words
    s[t + n] = v;                          // 7: in order
    if (t & 1) s[4 * t] = v;               // 8: every second lane, 32 bytes apart: banks 4, 12, 20, 28
    if (t < 20) s[t * 33] = v;             // 9: no two in one bank
    s[2 * t - (t & 7)] = v;                // 10: runs of eight, pairs of runs in the same banks
    for (int i = 0; i < n; i++) ((volatile int *)s)[63 - t % 64] = i; // 11: backwards
    for (int i = 0; i < n; i++) if (t % 3) V(t) = i;  // 12: parts of a warp, round by round
    if (t == 37) V(t) = v;                 // 13: one lane
    if (t & 2) V(2 * t) = v;               // 14: parts of a stride, with lanes that ask for one bank
    if (t & 20) V(2 * t - (t & 7)) = v;    // 15: of runs, with such lanes or none
    if ((t & 24) == 8) V(2 * t - (t & 7)) = v;         // 16: one run of each warp
    for (int i = 0; i < n; i++) if ((t & 31) == 7) V(2 * t) = i; // 17: one lane of each warp, round by round
    __syncthreads();
    o[blockIdx.x * blockDim.x * blockDim.y + threadIdx.x] = s[t];
}
int main()
{
    int *o, n = 3;
    cudaMalloc(&o, 65536);
    k<<<2, 64>>>(o, n);
    k<<<1, 48>>>(o, n);
    k<<<1, dim3(32, 3)>>>(o, n);
    k<<<1, dim3(16, 4)>>>(o, n); // a row is half a warp
    return cudaDeviceSynchronize();
}
C
"$NVCC" -lineinfo -cudart shared -gencode arch=compute_80,code=compute_80 -o fixed fixed.cu || exit 1
cat > check.py <<'P'
import json
a, b = (json.load(open(f + '.json'))['tools']['memory']['sites'] for f in ('emu', 'nvidia'))
assert a == b, (a, b)
def told(addresses, bytes=4): # of the lanes that are there
    lanes = sorted(addresses)
    at = [addresses[l] for l in lanes]
    words = {}
    for x in at: words.setdefault(x // 4 % 32, set()).add(x // 4)
    step = at[1] - at[0] if len(at) > 1 else 0
    if len(set(at)) == 1: p = 'same'
    elif all(addresses[l] - at[0] == 4 * (l - lanes[0]) for l in lanes): p = 'unit'
    elif len(at) < 32 or any(at[i] - at[0] != i * step for i in range(32)): p = 'irregular'
    else: p = 'stride_32' if abs(step) <= 32 else 'stride_128' if abs(step) <= 128 else 'stride_more'
    return p, max(map(len, words.values())) - 1
shapes = [(64, 1)] * 2 + [(48, 1), (32, 3), (16, 4)]
rows = {6: (lambda t: 2 * t, lambda t: True, 1), 7: (lambda t: t + 3, lambda t: True, 1), 8: (lambda t: 4 * t, lambda t: t & 1, 1), 9: (lambda t: 33 * t, lambda t: t < 20, 1),
        10: (lambda t: 2 * t - (t & 7), lambda t: True, 1), 11: (lambda t: 63 - t, lambda t: True, 3),
        12: (lambda t: t, lambda t: t % 3, 3), 13: (lambda t: t, lambda t: t == 37, 1), 14: (lambda t: 2 * t, lambda t: t & 2, 1),
        15: (lambda t: 2 * t - (t & 7), lambda t: t & 20, 1), 16: (lambda t: 2 * t - (t & 7), lambda t: t & 24 == 8, 1),
        17: (lambda t: 2 * t, lambda t: t & 31 == 7, 3)}
for line, (place, there, times) in rows.items():
    want = {}
    for x, y in shapes:
        for w in range(0, x * y, 32):
            lanes = {l: 4 * place((w + l) % x) for l in range(min(32, x * y - w)) if there((w + l) % x)}
            if not lanes: continue
            p, c = told(lanes)
            want[p] = want.get(p, 0) + times
            want['conflicts'] = want.get('conflicts', 0) + c * times
    got = {}
    for s in a:
        if s['line'] != line or s['space'] != 'shared' or not s['op'].startswith('st.'): continue
        for p, n in s['patterns'].items(): got[p] = got.get(p, 0) + n
        got['conflicts'] = got.get('conflicts', 0) + s['bank_conflicts']
    got = {k: v for k, v in got.items() if v or k == 'conflicts'}
    assert got == want, (line, got, want)
P
for d in emu nvidia; do
    "$MARGAY" run -q --device $d -t memory -o $d -- ./fixed 2> err && "$MARGAY" report $d --json > $d.json || { cat err; exit 1; }
done
python3 check.py
