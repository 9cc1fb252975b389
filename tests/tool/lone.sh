#!/bin/sh
# One warp of each CTA works while the others wait at the barrier: one thread (thread), one warp (warp), in a loop (rounds). Nothing is
# found where all share the work (sound), where nobody waits (end), where two warps work (two), nor where the data decide (data).
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > alone.cu <<'C'
#include <cstdio>
#define ALL(name) __global__ void name(const float *in, float *out) { __shared__ float s[256]; int t = threadIdx.x, i = blockIdx.x * 256 + t; s[t] = in[i]; __syncthreads();
#define SUM(step) do { float v = 0; for (int k = t % 32; k < 256; k += step) v = v * 0.5f + s[k]; s[t] = v; } while (0)
#define END __syncthreads(); out[i] = s[0] + s[t]; }
ALL(thread) if (t == 0) SUM(1); END
ALL(warp) if (t < 32) SUM(1); END
ALL(rounds) for (int r = 0; r < 3; r++) { if (t == r) SUM(1); __syncthreads(); } END
ALL(sound) for (int n = 128; n; n /= 2) { if (t < n) s[t] += s[t + n]; __syncthreads(); } END
ALL(two) if (t < 64) SUM(1); END
ALL(data) if (s[t] == 7) SUM(1); END
ALL(end) out[i] = s[t]; if (t == 0) SUM(1); out[i] += s[0]; }
int main()
{
    static float host[264 * 256];
    float *in, *out;
    for (int i = 0; i < 264 * 256; i++) host[i] = i % 256;
    cudaMalloc(&in, sizeof host), cudaMalloc(&out, sizeof host), cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
#define RUN(k) k<<<264, 256>>>(in, out);
    RUN(thread) RUN(warp) RUN(rounds) RUN(sound) RUN(two) RUN(data) RUN(end)
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o alone alone.cu || exit 1
for device in cpu emu; do
    rm -rf p
    "$MARGAY" run -q --device $device -t advise -o p -- ./alone > out && "$MARGAY" report p --json > p.json || exit 1
    python3 - <<'P' || exit 1
import json
j = json.load(open('p.json'))
of = {k['id']: k['demangled'].split('(')[0] for k in j['kernels']}
found = {of[f['kernel']]: f for f in j['findings'] if f['rule'] == 'lone_warp'}
assert found.keys() == {'thread', 'warp', 'rounds'}, {k: (f['line'], f['gain_pct'], f['text']) for k, f in found.items()}
line = {name: 1 + open('alone.cu').read().split('\n').index(next(l for l in open('alone.cu').read().split('\n') if l.startswith('ALL(%s)' % name))) for name in found}
assert all(f['line'] == line[k] and f['sure'] == 'model' and 50 < f['measure'] < 100 for k, f in found.items()), found
P
done
