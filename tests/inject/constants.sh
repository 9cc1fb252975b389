#!/bin/sh
# Constants of a twin on NVIDIA's backend (with REAL_GPU on hardware, else with a driver over the emulator): whoever changes them
# between launches, and whenever, the kernel computes what it computes natively; counts are the emulator's.
set -u
failed=0
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache
if [ -n "${REAL_GPU:-}" ]; then device=nvidia more=by-kernel; else device=emu more= && export LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart; fi
cat > known.cu <<'C'
#include <cstdio>
#include <unistd.h>
#include <cuda_runtime.h>
__constant__ int taps[32] = {3, 1, 4, 1, 5, 9, 2, 6}; // read at fixed places: by warps
__constant__ int table[500] = {2, 7, 1, 8};          // at moving ones: by CTAs
__constant__ int large[4000] = {1, 6, 1, 8};         // too large to be brought along
__global__ void fixed(int *out)
{
    int v = 0;
#pragma unroll
    for (int i = 0; i < 32; i++) v = v * 7 + taps[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__global__ void moving(int *out)
{
    int t = threadIdx.x, v = 0;
    for (int i = t % 5; i < 500; i += 3) v = v * 7 + (table[i] & 1 ? taps[t % 32] : table[i]);
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = v;
}
__global__ void too_large(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = large[threadIdx.x * 3 % 4000] + taps[1]; }
__global__ void change(int *p, int at, int v) { p[at] = v; }
static int *out, host[3 * 192];
static unsigned sum;
static void run(const char *what, cudaStream_t s = 0)
{
    for (int threads : {64, 48}) { // the last warp of 48 is not full
        cudaMemsetAsync(out, 0, sizeof host, s);
        fixed<<<2, threads, 0, s>>>(out);
        moving<<<2, threads, 0, s>>>(out + 192);
        too_large<<<2, threads, 0, s>>>(out + 384);
        cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, s);
        if (cudaStreamSynchronize(s)) return (void)printf("%s failed\n", what);
        for (int v : host) sum = sum * 31 + v;
    }
    printf("%s %u\n", what, sum);
}
int main(int argc, char **)
{
    int v[500], *p;
    cudaStream_t s;
    cudaMalloc(&out, sizeof host);
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    run("as initialised");
    for (int turn = 0; turn < 3; turn++) { // the same twice: what was read since is brought along
        for (int i = 0; i < 500; i++) v[i] = i * i + turn;
        cudaMemcpyToSymbol(taps, v, sizeof taps);
        cudaMemcpyToSymbol(table, v + turn, sizeof table - 4 * turn);
        run("copied");
        usleep(30000);
        run("again");
    }
    cudaMemcpyToSymbolAsync(taps, v + 100, 4, 124, cudaMemcpyHostToDevice, s);
    run("one word, in a stream", s);
    cudaGetSymbolAddress((void **)&p, taps);
    if (argc > 1) change<<<1, 1>>>(p, 31, 77); // works on a GPU, which the language does not promise
    else cudaMemset(p + 31, 77, 4);
    run("by a kernel");
    cudaMemset(p, 5, 8);
    cudaGetSymbolAddress((void **)&p, table);
    cudaMemcpy(p + 499, out, 4, cudaMemcpyDeviceToDevice);
    run("set, and copied on the device");
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    fixed<<<2, 64, 0, s>>>(out);
    cudaStreamEndCapture(s, &g);
    if (cudaGraphInstantiate(&x, g, 0)) return 2;
    for (int turn = 0; turn < 2; turn++) {
        cudaMemcpyToSymbol(taps, v + turn, sizeof taps);
        cudaGraphLaunch(x, s);
        cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, s);
        cudaStreamSynchronize(s);
        printf("graph %d\n", host[5]);
    }
    return 0;
}
C
"$NVCC" -cudart shared -gencode arch=compute_80,code=compute_80 -o known known.cu || exit 1
cat > same.py <<'P'
import json, sys
a, b = (json.load(open(f)) for f in ('emu.json', 'gpu.json'))
assert b['device']['kind'] == 'nvidia' and b['coverage']['instrumented'] == b['coverage']['launches'], b['coverage']
counts = lambda r: {k['name']: (k['launches'], [(x['ptx_line'], x['thread_entries']) for x in k['blocks']]) for k in r['kernels'] if 'change' not in k['name']}
assert len(sys.argv) > 1 or counts(a) == counts(b), (counts(a), counts(b)) # a word that the kernel changes decides branches
P
"$MARGAY" run -q --device $device -t none -o plain -- ./known $more > out.plain 2> err || { echo "FAIL plain"; cat err; exit 1; }
"$MARGAY" run -q --device emu -o emu -- ./known > out.emu 2> err && "$MARGAY" run -q --device nvidia -o gpu -- ./known $more > out.gpu 2>> err &&
    { [ -n "$more" ] || cmp out.plain out.emu; } && cmp out.plain out.gpu && "$MARGAY" report emu --json > emu.json && "$MARGAY" report gpu --json > gpu.json && python3 same.py $more 2>> err || {
    echo "FAIL"; tail -20 err; diff out.plain out.gpu; failed=1; }
# The same under tools that count what the kernel does: what they say of every instruction, too.
cat > tools.py <<'P'
import json
a, b = (json.load(open(f))['tools'] for f in ('emu.json', 'gpu.json'))
assert a['memory']['sites'] == b['memory']['sites'] and a['opcodes'] == b['opcodes'], (a['memory'], b['memory'])
of = {s['space']: s for s in a['memory']['sites']}
assert of['const']['sectors'] is None and of['const']['requests'] and of['const']['bank_conflicts'] is None, of
P
for d in emu:emu nvidia:gpu; do
    "$MARGAY" run -q --device ${d%:*} -t memory -t opcodes,lanes=on -t lanes -t bounds -o tools.${d#*:} -- ./known > out.tools 2> err && cmp out.emu out.tools && "$MARGAY" report tools.${d#*:} --json > ${d#*:}.json || {
        echo "FAIL tools on ${d%:*}"; tail -20 err; failed=1; }
done
python3 tools.py || failed=1
for k in fixed:vote.sync moving:bar.red too_large:ld.global.nc; do # how each finds out, or that it does not
    "$MARGAY" ptx instrument --sm 90 --kernel "*${k%:*}*" known > twin.ptx && grep -q "${k#*:}.*;" twin.ptx || { echo "FAIL: no ${k#*:} in ${k%:*}"; failed=1; }
    grep -q '__mg_slow:' twin.ptx; [ $? = $([ $k = too_large:ld.global.nc ] && echo 1 || echo 0) ] || { echo "FAIL: bodies of $k"; failed=1; }
done
[ "$(sort -u out.plain | wc -l)" = 12 ] || { echo "FAIL: launches do not differ"; cat out.plain; failed=1; }
exit $failed
