#!/bin/sh
# Launches of whole waves beside launches of one CTA: no last wave is partly empty, so that no tail is found (mixed). Of the same launches
# one wave and a bit long it is (tail). What it claims of one CTA beyond full waves is what diff says of the grid without that CTA; of CTAs that
# take longer to launch than to run, neither says anything.
set -u
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cat > waves.cu <<'C'
#include <cstdio>
#include <cstdlib>
__device__ void work(float *out) { float v = threadIdx.x; for (int k = 0; k < 512; k++) v = v * 1.01f + k; out[threadIdx.x] = v; }
__global__ void mixed(float *out) { work(out); }
__global__ void tail(float *out) { work(out); }
__global__ void short_(float *out) { out[threadIdx.x] = 1; }
int main(int argc, char **argv)
{
    float *out;
    cudaMalloc(&out, 4096);
    int wave = 132 * 8; /* of an H200, 256 threads a CTA */
    if (argc > 2) argv[1][0] == 's' ? short_<<<atoi(argv[2]), 256>>>(out) : tail<<<atoi(argv[2]), 256>>>(out);
    for (int i = 0; argc == 1 && i < 4; i++) mixed<<<wave, 256>>>(out), mixed<<<1, 256>>>(out), tail<<<wave + wave / 8, 256>>>(out);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -gencode arch=compute_90,code=compute_90 -o waves waves.cu || exit 1
"$MARGAY" run -q --device cpu -t advise -o p -- ./waves > out && "$MARGAY" report p --json > p.json || exit 1
python3 - <<'P'
import json
j = json.load(open('p.json'))
of = {k['id']: k['demangled'].split('(')[0] for k in j['kernels']}
found = {of[f['kernel']]: f for f in j['findings'] if f['rule'] == 'tail'}
assert found.keys() == {'tail'} and abs(found['tail']['measure'] - 1.125) < 1e-9, found
P
seed=${SEED:-$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')}
full=$((1056 * (1 + seed % 3)))
echo "SEED=$seed"
for what in "work $((full + 1))" "work $full" "short $((full + 1))" "short $full"; do
    set -- $what
    "$MARGAY" run -q --device cpu -t advise -o $1.$2 -- ./waves $1 $2 > out && "$MARGAY" report $1.$2 --json > $1.$2.json || exit 1
done
for what in work short; do "$MARGAY" diff $what.$((full + 1)) $what.$full --json > $what.json || exit 1; done
python3 - $full <<'P'
import json, sys
full = int(sys.argv[1])
for what in ('work', 'short'):
    j, v = json.load(open(f'{what}.{full + 1}.json')), json.load(open(f'{what}.json'))['verdict']
    found = [f for f in j['findings'] if f['rule'] == 'tail']
    if what == 'short':
        assert not found and abs(v['change_pct']) < .2, (found, v)
        continue
    (f,) = found
    assert v['is'] == 'better' and abs(f['gain_pct'] + v['change_pct']) < .2 and f['gain_pct'] > 4, (f, v)
    assert f"a launch has {full + 1:,} CTAs: {full // 1056} full wave{'s' * (full > 1056)} of 1,056 and a last one of 1," in f['text'], f
    assert not [f for f in json.load(open(f'{what}.{full}.json'))['findings'] if f['rule'] == 'tail']
P
