#!/bin/sh
# Beside other tools on a GPU: compute-sanitizer in front of `margay run` checks the instrumented kernels, Nsight Compute
# profiles them, and torch.profiler inside a program sees them; counts are exact and the program's output is its own.
set -u
failed=0 ran=0
SANITIZER=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
same() { # NAME: the counts of `alone` and `beside` are equal
    "$MARGAY" report alone --json > alone.json && "$MARGAY" report beside --json > beside.json && python3 - <<'P' && echo "ok   $1" || { echo "FAIL $1"; tail -n 20 out err; failed=1; }
import json
a, b = (json.load(open(f)) for f in ('alone.json', 'beside.json'))
assert b['coverage']['instrumented'] and b['coverage'] == dict(a['coverage'], time_pct=b['coverage']['time_pct'], timed_pct=b['coverage']['timed_pct']), b['coverage']
counts = lambda r: [(k['name'], k['thread_instructions'], k['incomplete']) for k in r['kernels']]
assert counts(a) == counts(b), (counts(a), counts(b))
P
}
if [ -x "$SANITIZER" ]; then
    ran=1
    "$MARGAY" run -q --device nvidia -o alone -- "$EX/reduce" > out 2> err && rm -rf beside &&
        "$SANITIZER" --target-processes all "$MARGAY" run -q --device nvidia -o beside -- "$EX/reduce" > out 2> err
    grep -q PASSED out && ! grep -q 'Invalid\|Out-of-range\|Misaligned' out || { echo "FAIL what compute-sanitizer says"; cat out; failed=1; }
    same compute-sanitizer
fi
NCU=$(command -v ncu || echo /usr/local/cuda/bin/ncu)
if [ -x "$NCU" ]; then
    ran=1
    rm -rf alone beside
    "$MARGAY" run -q --device nvidia -o alone -- "$EX/reduce" > out 2> err &&
        timeout 60 "$NCU" --metrics smsp__inst_executed.sum "$MARGAY" run -q --device nvidia -o beside -- "$EX/reduce" > out 2> err
    grep -q 'ERR_NVGPUCTRPERM' out || { grep -q PASSED out && grep -q 'smsp__inst_executed.sum' out && same ncu; } || { echo "FAIL ncu"; cat out err; failed=1; }
fi
if python3 -c 'import torch, triton, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    ran=1
    cat > profiled.py <<'P'
import torch, triton, triton.language as tl
from torch.profiler import profile, ProfilerActivity

@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

a = torch.arange(1 << 20, device='cuda', dtype=torch.float32)
o = torch.empty_like(a)
add[(1024,)](a, a, o, 1 << 20, 1024)
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    for _ in range(5):
        add[(1024,)](a, a, o, 1 << 20, 1024)
    torch.cuda.synchronize()
print(torch.equal(o, a + a), [(e.key, e.count) for e in p.key_averages() if e.key == 'add' and e.device_time_total > 0])
P
    export TRITON_CACHE_DIR="$PWD/triton"
    rm -rf alone beside
    python3 profiled.py > native.out 2> err && "$MARGAY" run -q --device nvidia -o alone -- python3 profiled.py > out 2> err && cmp native.out out && grep -q "'add', 5" out &&
        "$MARGAY" run -q --device nvidia -o beside -- python3 profiled.py > out 2> err && same torch.profiler || { echo "FAIL torch.profiler"; cat native.out out err; failed=1; }
fi
[ $ran = 1 ] || { echo "neither compute-sanitizer, ncu nor PyTorch with Triton is here"; exit 77; }
exit $failed
