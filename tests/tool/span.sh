#!/bin/sh
# Tool values tells from where to where instructions access memory: closed forms of steps and offsets that SEED draws, of one site and of all that
# access one buffer, behind guards and of loads that overwrite their address. Of a large buffer of which little is read over and over memory has
# to bring that little alone: no verdict memory_bound, and a redundant load in front of it is found, with the gain that it
# has of a small one. Nor of a buffer of which each launch is given another part, which it reads over and over: nothing differs from one part each time.
# The gain is what margay diff says of that load in front of the loop, whose copies of an unrolled loop are one.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
echo "SEED=$seed"
cat > span.cu <<'C'
#include <cstdio>
#include <cstdlib>
__global__ void steps(const float *a, float4 *b, long *c, int from, int step, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0;
    if (i < n) v = a[from + i * step];           // GUARDED
    v += a[2 * from + i];                        // PLAIN
    if (i == 3) b[i + from] = make_float4(v, v, v, v); // VECTOR
    for (int k = 0; k < 3; k++) c = (long *)*c;  // CHASE
    if (c == (long *)1) b[0].x = v;
}
__global__ void again(const int *a, int *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
    for (int k = 0; k < n; k++) {
        s += a[5] * k; // AGAIN
        ((volatile int *)b)[i] = s;
    }
}
struct pointers { const float *a; float *b; };
__global__ void unnamed(const pointers *p, int n) // pointers that come from memory: no buffer is known
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float *a = p->a;
    float *b = p->b, s = 0;
    for (int k = 0; k < n; k++) s = s * .5f + __ldcg(a + (threadIdx.x + 32 * k) % 1024);
    b[i] = s;
}
__global__ void hoisted(const int *a, int *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, s = 0, v = a[5];
    for (int k = 0; k < n; k++) {
        s += v * k;
        ((volatile int *)b)[i] = s;
    }
}
__global__ void part(const float *a, float *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int r = 0; r < 32; r++) s += a[(i + r * 4096) % 65536];
    b[i] = s;
}
__global__ void copy(const float4 *a, float4 *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i];
}
int main(int argc, char **v)
{
    int from = atoi(v[1]), step = atoi(v[2]), n = argc > 3 ? atoi(v[3]) : 0;
    float *a, *b;
    long *c, chain[4];
    bool exact = argc > 4;
    if (argc == 3) {
        n = atoi(v[1]);
        cudaMalloc(&a, n * 16), cudaMalloc(&b, n * 16);
        cudaMemset(a, 0, n * 16);
        copy<<<(n + 1023) / 1024, 1024>>>((float4 *)a, (float4 *)b, n);
        puts(cudaGetErrorString(cudaDeviceSynchronize()));
        return 0;
    }
    if (argc > 6) {
        cudaMalloc(&a, 1 << 28), cudaMalloc(&b, 528 * 256 * 4);
        cudaMemset(a, 0, 1 << 28);
        for (int k = 0; k < 3; k++) part<<<528, 256>>>(a + (*v[6] == 'p' ? k << 24 : 0), b);
        puts(cudaGetErrorString(cudaDeviceSynchronize()));
        return 0;
    }
    cudaMalloc(&a, exact ? 64 : 1 << 26), cudaMalloc(&b, exact ? 1056 * 256 * 4 : 1 << 26), cudaMalloc(&c, sizeof chain);
    for (int i = 0; i < 4; i++) chain[i] = (long)(c + (i + 1) % 4); // the third lies at 16
    cudaMemcpy(c, chain, sizeof chain, cudaMemcpyHostToDevice);
    if (!exact) steps<<<4, 128>>>(a, (float4 *)b, c, from, step, n);
    if (argc > 5) hoisted<<<1056, 256>>>((int *)a, (int *)b, 64);
    else again<<<1056, 256>>>((int *)a, (int *)b, 64);
    pointers *p, two = {a, b};
    cudaMalloc(&p, sizeof two), cudaMemcpy(p, &two, sizeof two, cudaMemcpyHostToDevice);
    if (!exact) unnamed<<<1056, 256>>>(p, 64);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
C
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o span span.cu
for device in ${DEVICES:-emu cpu}; do
    rm -rf d
    set -- $((seed % 1000)) $((1 + seed % 37)) $((1 + seed % 500))
    "$MARGAY" run -q --device $device -t advise -o d -- ./span $@ > out && grep -q 'no error' out
    "$MARGAY" report d --json > d.json
    rm -rf e
    "$MARGAY" run -q --device $device -t advise -o e -- ./span $@ exact > out && grep -q 'no error' out
    "$MARGAY" report e --json > e.json
    rm -rf h
    "$MARGAY" run -q --device $device -t advise -o h -- ./span $@ exact hoisted > out && grep -q 'no error' out
    "$MARGAY" diff e h --json > h.json
    for what in parts first; do
        rm -rf $what
        "$MARGAY" run -q --device $device -t advise -o $what -- ./span $@ 0 0 $what > out && grep -q 'no error' out
    done
    "$MARGAY" report parts --json > parts.json
    "$MARGAY" diff parts first --json > first.json
    python3 - $device $@ <<'P'
import json, sys
device, (start, step, n) = sys.argv[1], map(int, sys.argv[2:])
r = json.load(open('d.json'))
name = {k['id']: k['demangled'].split('(')[0] for k in r['kernels']}
line = lambda word: next(i for i, l in enumerate(open('span.cu'), 1) if '// ' + word in l)
at = lambda word: [s for s in r['tools']['values']['sites'] if s['line'] == line(word)]
spans = lambda word: {s['span_bytes'] for s in at(word) if s['values']}
assert spans('GUARDED') == {(n - 1) * step * 4 + 4} and spans('PLAIN') == {512 * 4} and spans('VECTOR') == {16}, (device, at('GUARDED'), at('PLAIN'), at('VECTOR'))
lowest, behind = min(start, 2 * start), max(start + (n - 1) * step + 1, 2 * start + 512)
assert {s['buffer_span_bytes'] for s in at('GUARDED') + at('PLAIN')} == {4 * (behind - lowest)}, (device, at('PLAIN'))
assert at('CHASE') and max(spans('CHASE')) <= 24 and 8 in spans('CHASE'), (device, at('CHASE'))
assert spans('AGAIN') == {4}, (device, at('AGAIN'))
found = {(f['rule'], name[f['kernel']]) for f in r['findings']}
assert ('memory_bound', 'again') not in found and ('redundant_load', 'again') in found, (device, found)
assert ('memory_bound', 'unnamed') not in found and 'unnamed' in {name[x['kernel']] for x in r['no_verdict']}, (device, found, r['no_verdict'])
# the same work, whatever the size of the allocation
gain = lambda r: next(100 * f['gain_pct'] / f['share_pct'] for f in r['findings'] if f['rule'] == 'redundant_load')
exact = json.load(open('e.json'))
assert abs(gain(r) - gain(exact)) < .1, (device, gain(r), gain(exact))
parts, first = (json.load(open(f + '.json')) for f in ('parts', 'first'))
assert not [f for f in parts['findings'] if f['rule'] == 'memory_bound'], (device, parts['findings'])
hoisted = json.load(open('h.json'))['verdict']
if device == 'nvidia': assert first['verdict']['by'] == hoisted['by'] == 'time', (first['verdict'], hoisted) # a GPU's clock says
else:
    assert first['verdict']['is'] == 'no difference', (device, first['verdict'])
    low, high = hoisted['interval_pct']
    assert low <= -gain(exact) <= high < 0, (device, gain(exact), low, high)
measure, = (f['measure'] for f in exact['findings'] if f['rule'] == 'redundant_load')
assert abs(measure - 100 * 63 / 64) < .001, (device, measure)
why = next(x['why'] for x in r['no_verdict'] if name[x['kernel']] == 'again')
assert why.startswith('caches decide. With perfect ones, which bring what lies from the lowest to the highest byte that it accesses of a buffer once a launch,'), (device, why)
P
done
# copies a little below and above what L2 holds (50 MB), and one of twice as much: work grows as their bytes do
copy_of() { rm -rf c$1; "$MARGAY" run -q --device cpu -t advise -o c$1 -- ./span $1 0 > out && grep -q 'no error' out; }
below=$((1562500 - 1 - seed % 1000)) above=$((1562500 + seed % 1000))
copy_of $below && copy_of $above && copy_of $((2 * below))
"$MARGAY" diff c$below c$above --json > little.json
"$MARGAY" diff c$below c$((2 * below)) --json > twice.json
python3 - $below $above <<'P'
import json, sys
below, above = map(int, sys.argv[1:])
little, twice = (json.load(open(f + '.json'))['verdict'] for f in ('little', 'twice'))
low, high = little['interval_pct']
assert low <= 100 * (above / below - 1) <= high + .1 < 1 and low > -.1, (little, below, above)
assert twice['interval_pct'][0] <= 101 and twice['interval_pct'][1] >= 99, twice
P
