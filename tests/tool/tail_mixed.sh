#!/bin/sh
# Launches of whole waves beside launches of one CTA: no last wave is partly empty, so that no tail is found (mixed). Of the same launches
# one wave and a bit long it is (tail). What it claims of one CTA beyond full waves is what diff says of the grid without that CTA; of CTAs that
# take longer to launch than to run, neither says anything. Unequal CTAs at the same grid have their imbalance as the finding, of which diff
# says the same of equal ones in full waves. Launches that differ in work count by it: short ones with a tail claim nothing, a long one does.
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

cat > differ.cu <<'C'
#include <cstdio>
#include <cstdlib>
__global__ void rounds(float *out, int least, int more) /* of CTA b: least + more * (b + 1) / CTAs */
{
    int n = least + more * (int)(blockIdx.x + 1) / (int)gridDim.x;
    float v = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < n; k++) v = v * 1.01f + k;
    out[threadIdx.x] = v;
}
int main(int argc, char **argv)
{
    float *out;
    cudaMalloc(&out, 4096);
    for (int i = 1; i + 3 < argc; i += 4) /* launches, CTAs, least, more */
        for (int k = 0; k < atoi(argv[i]); k++) rounds<<<atoi(argv[i + 1]), 256>>>(out, atoi(argv[i + 2]), atoi(argv[i + 3]));
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -gencode arch=compute_90,code=compute_90 -o differ differ.cu || exit 1
look() { # NAME ARGUMENTS
    name=$1 && shift && "$MARGAY" run -q --device cpu ${tools:--t advise} -o $name -- ./differ "$@" > out && "$MARGAY" report $name --json > $name.json || exit 1
}
look ramp 1 $((full + 1)) 0 400
look ramp_full 1 $full 0 400
look equal 1 $full 200 0
look short_tails 10 $((full + 1)) 10 0 1 4224 600 0
look no_tails 10 $full 10 0 1 4224 600 0
look long_tail 10 $full 10 0 1 $((full + 1)) 1000 0
look long_full 10 $full 10 0 1 $full 1000 0
tools='-t blocks -t memory -t lanes'
look beside 30 1 1 0 1 $full 4000 0
look alone 1 $full 4000 0
tools=
look few 10 4224 1 0 1 100 8000 0
for pair in 'ramp equal' 'ramp ramp_full' 'short_tails no_tails' 'long_tail long_full' 'beside alone'; do
    set -- $pair && "$MARGAY" diff $1 $2 --json > $1.$2.json || exit 1
done
python3 - $full <<'P'
import json, sys
full = int(sys.argv[1])
waves = full // 1056
found = lambda name: {f['rule']: f for f in json.load(open(name + '.json'))['findings']}
change = lambda pair: json.load(open(pair + '.json'))['verdict']['change_pct']

one = found('ramp')  # its multiprocessors' sums differ by what one wave does, as without the last CTA
assert 'tail' not in one and abs(one['cta_imbalance']['gain_pct'] + change('ramp.equal')) < 2, (one, change('ramp.equal'))
assert abs(one['cta_imbalance']['gain_pct'] - found('ramp_full')['cta_imbalance']['gain_pct']) < 5, (one, found('ramp_full'))
assert 'Choose the grid as a multiple of 1,056 CTAs, too.' in one['cta_imbalance']['text'], one
assert 'Gain: of equal CTAs in full waves. As many equal ones as now, 1 of 1,056 in the last wave, would gain nothing.' in one['cta_imbalance']['text'], one
assert 'too.' not in found('ramp_full')['cta_imbalance']['text']
assert abs(change('ramp.ramp_full')) < 5, change('ramp.ramp_full')

assert 'tail' not in found('short_tails') and -3 < change('short_tails.no_tails') < 0, (found('short_tails'), change('short_tails.no_tails'))
# short launches of one CTA each: the long one still has all multiprocessors, though nothing says how its CTAs lie over them
assert -5 < change('beside.alone') < 0, change('beside.alone')
tail = found('long_tail')['tail']
assert abs(tail['gain_pct'] + change('long_tail.long_full')) < .5, (tail, change('long_tail.long_full'))
rest = 8 * waves + 1  # parts of the time, if a CTA alone took an eighth of what eight take
assert 100 / rest - 1 < tail["gain_pct"] < 100 / rest + 4, tail  # one alone waits, too
assert f"1 of 11 launches ends in a wave that is not full; the one that loses most has {full + 1:,} CTAs: " in tail['text'], tail
assert not {'compute_bound', 'tail'} & found('few').keys() and 'its launch with most work has 100 CTAs of 8 warps' in found('few')['few_ctas']['text'], found('few')
P

# a short launch whose counts were spoilt: nobody knows what the others weigh beside it, so that no tail is claimed where grids differ
look one_grid 2 $((full + 1)) 200 0
for name in long_tail one_grid; do
    python3 - $name/profile.db <<'P'
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    assert db.execute('UPDATE launch SET threads = NULL, warps = NULL WHERE id = (SELECT min(id) FROM launch)').rowcount == 1
P
    "$MARGAY" report $name --json > $name.json || exit 1
done
python3 - <<'P'
import json
tails = {name: [f for f in json.load(open(name + '.json'))['findings'] if f['rule'] == 'tail'] for name in ('long_tail', 'one_grid')}
assert not tails['long_tail'] and len(tails['one_grid']) == 1, tails
P
