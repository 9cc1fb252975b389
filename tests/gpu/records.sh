#!/bin/sh
# Records on a GPU: the example tool's stores reach DIR/trace complete and right, from full and from divergent warps, also
# where they are dropped or sampled; events in frames have their closed forms, staged and not. The programs' output stays.
set -u
: "${NVCC:=$(command -v nvcc || true)}" "${MARGAY:=margay}" "${ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}"
[ -n "$NVCC" ] || { echo "no nvcc"; exit 77; }
failed=0
fail() { echo "FAIL $*"; failed=1; }
cat > stores.cu <<'C'
#include <cstdio>
#include <cstdlib>
__global__ void odd(unsigned *o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { o[i] = 3 * i + 1; if (i % 3 == 1) o[n + i] = i ^ 0x5555; } }
int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    unsigned *o, sum = 0, *h = new unsigned[2 * n]();
    cudaMalloc(&o, 8 * n);
    cudaMemset(o, 0, 8 * n);
    for (int k = 0; k < 3; k++) odd<<<(n + 255) / 256, 256>>>(o, n);
    cudaMemcpy(h, o, 8 * n, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 2 * n; i++) sum = sum * 31 + h[i];
    printf("%s %u\n", cudaGetErrorString(cudaGetLastError()), sum);
}
C
"$NVCC" -O2 -gencode arch=compute_80,code=compute_80 -o stores stores.cu || exit 1
gcc -std=c17 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -I"$ROOT/src" -I"$B/gen" -shared -o stores.so "$ROOT/examples/tools/stores.c" \
    "$B/lib/margay/libmargay-core.a" -Wl,--exclude-libs,ALL -Wl,-z,defs -lm -lpthread -ldl || exit 1
n=100000
want=$(./stores $n)
for policy in block drop 1/4; do
    rm -rf p
    timeout 120 "$MARGAY" run -q -o p --device nvidia --channel $policy -t ./stores.so -- ./stores $n > out 2> err || fail "$policy: exit $?: $(tail -3 err)"
    [ "$(cat out)" = "$want" ] || { fail "$policy: the program's output is another"; cat out err; }
    "$MARGAY" trace verify p || fail "$policy: verify"
    "$MARGAY" trace print p --json > r.jsonl
    "$MARGAY" report p --json > p.json
    python3 - $policy $n > why 2>&1 <<'P' || { fail "$policy"; tail -5 why; }
import json, sys
policy, n = sys.argv[1], int(sys.argv[2])
t = json.load(open('p.json'))['tools']['stores']
rows, base, begins, total = {}, None, 0, 0
lines = [json.loads(l)['fields']['ptx_line'] for l in open('r.jsonl') if '"stores.store"' in l]
first_line = min(lines, default=0) # of the two stores
for line in open('r.jsonl'):
    x = json.loads(line)
    f = x['fields']
    total += 1
    begins += x['kind'] == 'stores.begin'
    if x['kind'] != 'stores.store': continue
    lanes = [k for k in range(32) if int(f['mask'], 0) >> k & 1]
    assert len(lanes) == len(f['lanes']) and f['kernel'].startswith('_Z3odd'), f
    for lane, (address, value) in zip(lanes, f['lanes']):
        i = f['cta'] * 256 + f['warp'] * 32 + lane
        first = f['ptx_line'] == first_line
        assert value == (3 * i + 1 if first else i ^ 0x5555) and (first or i % 3 == 1), (i, value)
        base = address - 4 * (i if first else n + i) if base is None else base
        assert address == base + 4 * (i if first else n + i), (i, hex(address))
        key = f['launch'], i, first
        assert key not in rows
        rows[key] = 1
warps = (n + 255) // 256 * 8
c = t['channel']
assert t['trace'] == {'records': total, 'missed': 0, 'lost': 0} and c['lost_segments'] == 0 and c['damaged_pages'] == 0 and c['late_pages'] == 0, t
all_rows = 3 * (n + (n + 1) // 3)
if policy == 'block' or policy == 'drop' and not c['dropped_records']:
    assert len(rows) == all_rows and begins == 3 * warps and c['dropped_records'] == 0, (len(rows), all_rows, begins, c)
elif policy == 'drop':
    assert total < 3 * 3 * warps, (total, warps)
else:
    # begin is a warp's first record, the stores follow as second and third: later ones only where lanes store apart
    assert begins == 3 * warps and len(rows) < all_rows / 4, (begins, len(rows))
print(policy, total, 'records,', len(rows), 'rows,', c)
P
    cat why
done
"$NVCC" -arch=sm_90 -I"$ROOT/include" -o events "$ROOT/tests/inject/events.cu" 2> /dev/null || "$NVCC" -gencode arch=compute_80,code=compute_80 -I"$ROOT/include" -o events "$ROOT/tests/inject/events.cu" || exit 1
want=$(./events)
for options in records=65536 records=65536,stage=8 records=1000; do
    rm -rf p
    timeout 120 "$MARGAY" run -q --device nvidia -o p -t events,$options -- ./events > out 2> err || fail "events $options: exit $?: $(tail -3 err)"
    [ "$(cat out)" = "$want" ] || { fail "events $options: another result"; cat out err; }
    "$MARGAY" report p --json > p.json
    python3 - $options > why 2>&1 <<'P' || { fail "events $options"; tail -5 why; }
import json, sys
e = json.load(open('p.json'))['tools']['events']
by = {x['event']: x for x in e['events']}
if sys.argv[1] == 'records=1000':
    assert e['records'] == 3000 and e['lost'] > 0, (e['records'], e['lost'])
    sys.exit()
assert e['lost'] == 0
get = lambda name: (by[name]['threads'], by[name]['stray_ends'], by[name]['open'])
assert get('all') == get('load') == get('sum') == (3072, 0, 0) and get('round') == (3 * 4 * 128 * 30, 0, 0), by
for x in by.values():
    assert sum(p['threads'] for p in x['sms']) == sum(p['threads'] for p in x['warps']) == x['threads'] and x['exclusive_cycles'] <= x['inclusive_cycles']
P
done
[ $failed = 0 ] && echo ok
exit $failed
