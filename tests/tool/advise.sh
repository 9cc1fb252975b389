#!/bin/sh
# Eight planted faults, each with a sound twin: the first finding of `-t advise` names the fault's line by the right rule, on
# emulator and CPU device; the twin has no finding of that rule. Four of them also as mutants (mutate.py): all names, the place of the
# line and sizes are others. SEED draws them; an even one takes the other four. DEVICES=nvidia: on a GPU.
# long
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-1}
echo "SEED=$seed"
faults='particles uncoalesced  matvec uncoalesced  transpose bank_conflict  filter bank_conflict
species divergence  hashing divergence  triangle cta_imbalance  buckets cta_imbalance'
compile() { "$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o "$1" "$2"; }

cp "$ROOT"/tests/tool/faults/*.cu "$ROOT/tests/tool/faults/common.h" .
mutants='matvec filter species buckets'
[ $((seed % 2)) = 1 ] || mutants='particles transpose hashing triangle'
mutates() { case " $mutants " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
set -- $faults
while [ $# -gt 0 ]; do
    compile "$1" "$1.cu" & # two at a time
    if mutates "$1"; then
        python3 "$ROOT/tests/tool/mutate.py" "$1.cu" "$seed" > "$1_mutant.cu"
        compile "$1_mutant" "$1_mutant.cu"
    fi
    wait
    shift 2
done

# checks DEVICE PROGRAM RULE
checks() {
    line=$(grep -n 'FAULT \*/' "$2.cu" | cut -d: -f1)
    for twin in fault sound; do
        rm -rf d
        "$MARGAY" run -q --device "$1" -t advise -o d -- "./$2" $twin > "out.$twin"
        "$MARGAY" report d --json > "$twin.json"
    done
    python3 - "$1 $2" "$3" "$line" "$2.cu" <<'P'
import json, os, sys
what, rule, line, file = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
fault, sound = (json.load(open(f))['findings'] for f in ('fault.json', 'sound.json'))
assert fault, f'{what}: nothing found'
f = fault[0]
assert (f['rule'], os.path.basename(f['file']), f['line']) == (rule, file, line), (what, line, f)
assert 1 <= f['gain_pct'] <= f['share_pct'] <= 100 and f['text'] and f['sure'] == 'exact', (what, f)
assert all(x['rule'] != rule for x in sound), (what, [x for x in sound if x['rule'] == rule])
P
    cmp -s out.fault out.sound || { echo "$2: fault and sound twin print other results"; exit 1; }
}

for device in ${DEVICES:-emu cpu}; do
    set -- $faults
    while [ $# -gt 0 ]; do
        checks "$device" "$1" "$2"
        if [ "$device" != cpu ] && mutates "$1"; then checks "$device" "$1_mutant" "$2"; fi
        shift 2
    done
done

# the summary of a run begins the findings with the first, and says what they rest on
"$MARGAY" run --device emu -t advise -o s -- ./transpose fault > out 2> said
grep -q "findings: what fixing each is estimated to gain, in per cent of the kernels' work as counted" said
grep -q '^   1\. .* bank_conflict  transpose.cu:' said || { cat said; exit 1; }
tr -s ' \n' ' ' < said | grep -q "Pad each row of tile (transpose.cu:$(grep -n '__shared__' transpose.cu | cut -d: -f1)) by 4 bytes"
# other tools go beside it, each once
"$MARGAY" run -q --device emu -t advise -t hot -o h -- ./particles fault > out
"$MARGAY" report h --tool hot > hot.txt && grep -q hottest hot.txt
rc=0; "$MARGAY" run --device emu -t advise -t memory -- ./particles fault > out 2> err || rc=$?
[ $rc = 120 ] && grep -q 'memory is given twice' err || { echo "a tool of the list given again: $rc"; cat err; exit 1; }

# a line with a strided load and a sound store: the finding is of the load alone, 32 lanes 128 bytes apart. A kernel that
# conflicts or atomics hold up has no verdict about bytes. A launch takes at least what a warp of it waits: some 300 cycles.
cat > mixed.cu <<'E'
__global__ void strided(float *o, const float *i) { o[threadIdx.x] = i[(blockIdx.x * 32 + threadIdx.x) * 32]; }
__global__ void conflict(float *o)
{
    __shared__ float s[1024];
    for (int i = 0; i < 32; i++) s[(threadIdx.x * 32 + i) & 1023] = i;
    __syncthreads();
    o[threadIdx.x] = s[threadIdx.x];
}
__global__ void same(float *c) { atomicAdd(c, 1.f); }
int main(int argc, char **argv)
{
    float *o, *i;
    cudaMalloc(&o, 4096);
    cudaMalloc(&i, 132 * 4096);
    for (int n = 0; n < 200; n++) strided<<<132, 32>>>(o, i);
    for (int n = 0; n < 5; n++) conflict<<<132, 32>>>(o);
    for (int n = 0; n < 100; n++) same<<<132, 40>>>(o);
    return cudaDeviceSynchronize() != cudaSuccess;
}
E
compile mixed mixed.cu
"$MARGAY" run -q --device emu -t advise -o m -- ./mixed
"$MARGAY" report m --json > m.json
python3 - <<'P'
import json
found = json.load(open('m.json'))['findings']
f = [x for x in found if x['rule'] == 'uncoalesced']
assert len(f) == 1 and f[0]['measure'] == 32 and 'ld.global.f32 moves 32.0 sectors of 32 bytes where 4.0 would do' in f[0]['text'], f
bound = {x['function'] for x in found if x['rule'] in ('memory_bound', 'compute_bound')}
assert bound == {'_Z7stridedPfPKf'}, bound
tiny = [x for x in found if x['rule'] == 'tiny_launch']
assert tiny and all(.05 < x['measure'] < .3 for x in tiny), [x['measure'] for x in tiny]
P
all=$("$MARGAY" report m --top 1 | sed -n 's/^  and [0-9]* more (margay report --top \([0-9]*\))$/\1/p')
[ "$all" -gt 1 ] && ! "$MARGAY" report m --top "$all" | grep 'more (margay report --top' || { echo "--top $all does not show all"; exit 1; }
# 16 threads leave half of a warp's lanes without one, 48 a quarter of those of two warps, 64 none; many CTAs, since few gain nothing
cat > narrow.cu <<'E'
__device__ void work(float *o) { float v = 1; for (int i = 0; i < 64; i++) v = v * 3 + 1; o[blockIdx.x * blockDim.x + threadIdx.x] = v; }
__global__ void half(float *o) { work(o); }
__global__ void quarter(float *o) { work(o); }
__global__ void full(float *o) { work(o); }
int main()
{
    float *o;
    cudaMalloc(&o, 16 * 6144 * 4);
    half<<<6144, 16>>>(o);
    quarter<<<2048, 48>>>(o);
    full<<<1536, 64>>>(o);
    return cudaDeviceSynchronize() != cudaSuccess;
}
E
compile narrow narrow.cu
"$MARGAY" run -q --device emu -t advise -o n -- ./narrow
"$MARGAY" report n --json > n.json
python3 - <<'P'
import json
found = {(x['function'], x['measure'], x['sure'], x['text'].split(' have no thread')[0]) for x in json.load(open('n.json'))['findings'] if x['rule'] == 'partial_warp'}
assert found == {('_Z4halfPf', 50, 'exact', 'the warp of each CTA of 16 threads has 16 of 32 lanes: 50 % of the lanes of its warps'),
                 ('_Z7quarterPf', 25, 'model', 'the last warp of each CTA of 48 threads has 16 of 32 lanes: 25 % of the lanes of its warps')}, found
P

# A load that waits for another CTA is none to hoist, nor is its wait one warp's work, nor the rounds of that loop exact.
# Launches of one kernel in CTAs of 224 threads and of 1: the text is of those that lack threads. Of a loop and a `continue` on one line
# it is the latter that parts lanes most: in 2 of 3 rounds a warp has both kinds of elements; by the loop it is parted once.
cat > said.cu <<'E'
__global__ void chain(volatile int *flag, int *o, int forward)
{
    int b = forward ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    if (threadIdx.x == 0) {
        if (b) while (flag[b - 1] == 0);
        __threadfence();
    }
    __syncthreads();
    o[b * blockDim.x + threadIdx.x] = (b ? o[(b - 1) * blockDim.x + threadIdx.x] : 0) + b;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) flag[b] = 1;
}
__global__ void sizes(int *o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i]++; }
__global__ void line(const int *i, float *o, int n)
{
#pragma unroll 1
    for (int k = threadIdx.x; k < n; k += 32) { float v = i[k]; if (v > 1) continue; for (int j = 0; j < 16; j++) v = v * 3 + v; o[k] = v; }
}
int main(int argc, char **argv)
{
    int *flag, *o, data[960];
    cudaMalloc(&flag, 4 * 960);
    cudaMalloc(&o, 4 * 8192);
    for (int forward = 0; forward < 2 && argc < 2; forward++) {
        cudaMemset(flag, 0, 4 * 960);
        chain<<<40, 96>>>(flag, o, forward);
    }
    if (argc < 2) return cudaDeviceSynchronize() != cudaSuccess;
    sizes<<<23, 224>>>(o, 5000);
    sizes<<<5000, 1>>>(o, 5000);
    for (int k = 0; k < 960; k++) data[k] = k / 32 % 3 && k % 2 ? 2 : 0;
    cudaMemcpy(flag, data, sizeof data, cudaMemcpyHostToDevice);
    for (int n = 0; n < 5; n++) line<<<132, 32>>>(flag, (float *)o, 951);
    return cudaDeviceSynchronize() != cudaSuccess;
}
E
compile said said.cu
for device in emu cpu; do
    "$MARGAY" run -q --device $device -t advise -o "waits-$device" -- ./said
    "$MARGAY" report "waits-$device" --json > waits.json
    "$MARGAY" run -q --device $device -t advise -o "parts-$device" -- ./said parts
    "$MARGAY" report "parts-$device" --json > parts.json
    python3 - <<'P'
import json
found = json.load(open('waits.json'))['findings'] + json.load(open('parts.json'))['findings']
of = lambda rule, name: [f for f in found if f['rule'] == rule and name in f['function']]
assert not of('redundant_load', 'chain') and not of('lone_warp', 'chain'), found
for f in of('cta_imbalance', 'chain'): # how unequal they are is another thing each time
    assert f['sure'] == 'model' and 'How often may depend on timing' in f['text'], f
(f,) = of('partial_warp', 'sizes')
assert f['text'].startswith('the warp of each CTA of 1 thread has 1 of 32 lanes: 97 % of the lanes of such CTAs') and 'CTAs of its launches have 1 to 224 threads' in f['text'], f
(f,) = of('divergence', 'line')
assert f['text'].startswith('lanes of a warp take both sides of this branch (in 13,200 of 19,800 warp executions), and 1 more branch of its line parts them'), f
P
done

# without line information: the branches of an unrolled loop are one finding, and so are accesses of one buffer
cat > unrolled.cu <<'E'
__global__ void gather(float *o, const float *i)
{
    float v = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) v += i[(threadIdx.x * 8 + k) * 32];
    o[threadIdx.x] = v;
}
__global__ void steps(float *o, const float *j)
{
    float v = j[0];
    int lane = (int)threadIdx.x + (int)j[threadIdx.x]; // the data decide: zeroes
#pragma unroll 1
    for (int r = 0; r < 40; r++) {
#pragma unroll
        for (int k = 0; k < 16; k++)
            if (lane > 2 * k) v = __sinf(v) * j[k * r], __threadfence_block();
    }
    o[threadIdx.x] = v;
}
int main()
{
    float *o, *i;
    cudaMalloc(&o, 4096);
    cudaMalloc(&i, 32 * 32 * 8 * 4);
    cudaMemset(i, 0, 32 * 32 * 8 * 4);
    for (int n = 0; n < 20; n++) gather<<<1, 32>>>(o, i);
    steps<<<1, 32>>>(o, i);
    return cudaDeviceSynchronize() != cudaSuccess;
}
E
"$NVCC" -cudart shared -O2 -gencode arch=compute_90,code=compute_90 -o unrolled unrolled.cu
"$MARGAY" run -q --device emu -t advise -o u -- ./unrolled
"$MARGAY" report u --json > u.json
"$MARGAY" report u > u.txt
python3 - <<'P'
import json
r = json.load(open('u.json'))
found, steps = r['findings'], [k for k in r['kernels'] if 'steps' in k['name']][0]
(k,) = [k for k in r['tools']['lanes']['kernels'] if k['kernel'] == steps['id']]
branches = [b for b in k['branches'] if b['idle_slots']]
slots = 32 * sum(b['warp_entries'] * b['instructions'] for b in steps['blocks'])
(d,) = [f for f in found if f['rule'] == 'divergence']
assert len(branches) > 8 and max(b['idle_slots'] for b in branches) / slots < .05, branches
assert abs(d['measure'] - 100 * sum(b['idle_slots'] for b in branches) / slots) < 1e-9 and f', and {len(branches) - 1} more branches of the kernel part them' in d['text'], (d, branches)
assert d['ptx_line'] == max(branches, key=lambda b: b['idle_slots'])['ptx_line'], (d, branches)
(load,) = [f for f in found if f['rule'] == 'uncoalesced' and 'moves 32.0' in f['text']]
text = open('u.txt').read()
assert 'where 4.0 would do (and 7 more accesses of this buffer)' in load['text'] and load['buffer'].startswith('argument 1'), load
assert f"ptx:{load['ptx_line']}  gather" in text and text.count('nvcc -lineinfo') == 1, text
P

# diff tells the kernel with the fewest lanes: 40 threads in two warps
"$MARGAY" diff --json m m > m.diff
python3 - <<'P'
import json
use = [m for m in json.load(open('m.diff'))['metrics'] if m['name'] == 'lanes.lane_use']
assert use[0]['before'] == use[0]['after'] == 40 / 64, use
P
