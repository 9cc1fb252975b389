#!/bin/sh
# The nvidia backend, with a driver over the emulator in NVIDIA's place: twins are loaded through the
# driver, slots, events and the drain thread see to the counts, and every count equals the one that the
# emulator device gives. Programs on the shared runtime use our own one here.
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
[ -e "$B/test/driver/libcuda.so.1" ] || { echo "no driver library for tests was built"; exit 1; }
cat > same.py <<'P'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
want, opts = int(sys.argv[3]), sys.argv[4:]
assert a['device']['kind'] == 'emu' and b['device']['kind'] == 'nvidia', (a['device'], b['device'])
c = b['coverage']
assert (c['launches'], c['instrumented'], c['failed'], c['unknown']) == (want, want, 0, 0), c
assert all(l['complete'] for l in b['launches']), 'incomplete'
def counts(r):
    return {k['name']: (k['launches'], k['threads'], [(x['ptx_line'], x['thread_entries']) for x in k['blocks']]) for k in r['kernels']}
x, y = counts(a), counts(b)
if 'spins' in opts:
    x, y = {k: v[:2] for k, v in x.items()}, {k: v[:2] for k, v in y.items()}
assert x == y, (x, y)
places = lambda r: [[(p['offset'], p['kind'], p.get('allocation_offset')) for p in l['arguments']] for l in r['launches']]
assert 'graph' in opts or places(a) == places(b), (places(a)[:2], places(b)[:2])
assert any(l['time_ns'] for l in b['launches']) or 'untimed' in opts, 'no launch was timed'
P
both() { # NAME LAUNCHES OPTIONS PROGRAM...
    name=$1 launches=$2 opts=$3
    shift 3
    rm -rf emu gpu
    if "$MARGAY" run -q --device emu -o emu -- "$@" > out.emu 2> err && "$MARGAY" run -q --device nvidia -o gpu -- "$@" > out.gpu 2>> err &&
        cmp out.emu out.gpu && "$MARGAY" report emu --json --per-launch > emu.json && "$MARGAY" report gpu --json --per-launch > gpu.json &&
        python3 same.py emu.json gpu.json "$launches" $opts 2>> err; then
        echo "ok   $name"
    else
        echo "FAIL $name"
        tail -n 20 err
        failed=1
    fi
}
for e in saxpy:1 reduce:1 divergent:1 matmul:1 histogram:1 stencil:4 bfs:13; do
    case $e in bfs:*) opts=spins ;; *) opts= ;; esac # in bfs the order of CTAs decides how many see a node unmarked
    both "${e%:*}" "${e#*:}" "$opts" "$EX/${e%:*}"
done
# machine code that we made is kept (what uses shared memory or divides exactly, the driver makes): a second run makes none, a damaged file is made again
kept() { ls -l --time-style=full-iso cache/margay/twins | sort | sha256sum; }
before=$(kept)
"$MARGAY" run -q --strict --device nvidia -o again -- "$EX/saxpy" > out 2> err || { echo "FAIL second run"; failed=1; }
[ "$(ls cache/margay/twins | wc -l)" -ge 4 ] && [ "$before" = "$(kept)" ] && echo "ok   kept" || { echo "FAIL machine code is not kept"; failed=1; }
for f in cache/margay/twins/*; do printf damaged | dd of="$f" bs=1 seek=60 conv=notrunc 2> /dev/null; done
"$MARGAY" run -q --strict --device nvidia -o damaged -- "$EX/saxpy" > out 2> err && echo "ok   damaged" || { echo "FAIL damaged machine code"; cat err; failed=1; }

# what cannot be instrumented runs native, says why, and the program is none the worse
cat > native.py <<'P'
import json, re, sys
c = json.load(open('gpu.json'))['coverage']
assert c['instrumented'] == 0 and c['failed'] == (c['launches'] if sys.argv[2] == 'failed' else 0), c
assert all(re.fullmatch(sys.argv[1], n['reason']) for n in c['native']) and c['native'], c
P
native() { # NAME REASON-PATTERN RAN PROGRAM
    rm -rf gpu
    if env XDG_CACHE_HOME="$PWD/cache-$1" "$MARGAY" run -q --device nvidia -o gpu -- "$4" > out 2> err && grep -q PASSED out &&
        "$MARGAY" report gpu --json > gpu.json && python3 native.py "$2" "$3" 2>> err; then
        echo "ok   $1"
    else
        echo "FAIL $1"
        cat out err
        failed=1
    fi
}
EMU_GPU_PTX=60 native newer 'the PTX is newer than the driver' failed "$EX/saxpy"
EMU_GPU_ASSEMBLER=1 native assembler 'the driver does not take the instrumented code \(CUDA_ERROR_INVALID_PTX\): ptxas application.*not today' failed "$EX/saxpy"
EMU_GPU_MEMORY=200000 native memory 'out of device memory for counters' failed "$EX/divergent"
rm -rf any && EMU_GPU_CTAS=1 XDG_CACHE_HOME="$PWD/cache-any" "$MARGAY" run -q --device nvidia -o any -- "$EX/reduce" > out 2> err && "$MARGAY" report any --json > gpu.json &&
    python3 -c 'import json; c = json.load(open("gpu.json"))["coverage"]; assert c["instrumented"] == c["launches"] > 0, c' && # its CTAs wait for nobody
    echo "ok   fewer at once" || { echo "FAIL fewer at once"; cat out err; failed=1; }
EMU_GPU_CTAS=0 native registers 'too many registers for blocks of this size' native "$EX/saxpy"
EMU_GPU_VIRTUAL=90 "$MARGAY" run --device nvidia -o other -- "$EX/saxpy" > out 2> err
grep -q '^  1 kernel counted in PTX for compute_70, while the machine code is of compute_90$' err && "$MARGAY" report other --json > gpu.json &&
    python3 -c 'import json; assert json.load(open("gpu.json"))["tools"]["margay"]["virtual_architecture"] == [{"kernel": "saxpy", "ptx": 70, "code": 90}]' &&
    echo "ok   another architecture" || { echo "FAIL another architecture"; cat err; failed=1; }
if [ -n "$NVCC" ]; then
    "$NVCC" -cudart shared -arch=sm_90 -o features "$ROOT/tests/inject/features.cu" || exit 1
    both state 3 "" ./features state
    both indirect 1 "" ./features indirect
    both cooperative 1 spins ./features cooperative
    both capture 10 'untimed graph' ./features capture
    both nodes 4 'untimed graph' ./features nodes
    cat > await.cu <<'C'
#include <cstdio>
__global__ void await(volatile int *a, int *b)
{
    while (a[blockIdx.x]) b[0]++; // until another CTA ends that
    b[threadIdx.x] = 1;
}
int main()
{
    int *a;
    if (cudaMalloc(&a, 65536) || cudaMemset(a, 0, 65536)) return 2;
    await<<<1000, 64>>>(a, a + 8192);
    puts(cudaDeviceSynchronize() ? "FAILED" : "PASSED");
}
C
    "$NVCC" -cudart shared -arch=sm_90 -o await await.cu || exit 1
    EMU_GPU_CTAS=1 native occupancy 'the launch may need as many CTAs at once as the native code has' native ./await
    # a twin for which there is no room is made twice, also while the program captures
    EMU_GPU_CTAS=0 "$MARGAY" run -q --device nvidia -o full -- ./features capture > out 2> err && "$MARGAY" report full --json > gpu.json &&
        python3 -c 'import json; c = json.load(open("gpu.json"))["coverage"]; assert c["launches"] == 10 and {n["reason"] for n in c["native"]} == {"too many registers for blocks of this size"}, c' &&
        echo "ok   captured occupancy" || { echo "FAIL captured occupancy"; cat out err; failed=1; }
    # kernels of a graph that run native are named too
    "$MARGAY" run -q --device nvidia --kernel nothing -o filtered -- ./features capture > out 2> err && "$MARGAY" report filtered --json > gpu.json &&
        python3 -c 'import json; c = json.load(open("gpu.json"))["coverage"]; assert (c["launches"], c["instrumented"], c["unknown"]) == (10, 0, 0) and [n["reason"] for n in c["native"]] == ["filtered"], c' &&
        echo "ok   native nodes" || { echo "FAIL native nodes"; cat out err; failed=1; }
    both shared 1 "" ./features shared
    both streams 80 "" ./features streams
    both ex 1 "" ./features ex
    both printf 1 "" ./features printf
    both reset 2 "" ./features reset
fi
exit $failed
