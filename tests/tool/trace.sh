#!/usr/bin/env bash
# Tool trace: every access to global memory is in the trace, once, with its address, on emulator, CPU device and behind a
# stand-in for NVIDIA's driver; the host's steps stand between the launches; what the trace holds is what closed forms say.
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache
fail() { echo "FAIL $*"; failed=1; }
run() { # WHAT DEVICE TRACE-OPTIONS [-t TOOL] PROGRAM ARGS...
    what=$1 device=$2 options=$3
    shift 3
    rm -rf p
    if [ "$1" = -t ]; then more="$1 $2"; shift 2; else more=; fi
    timeout 300 "$MARGAY" run -q -o p --device $device -t trace,sum=on$options $more -- "$@" > out 2> err || fail "$what: exit $?: $(tail -3 err)"
    "$MARGAY" report p --json > p.json || fail "$what: report"
    "$MARGAY" trace verify p > /dev/null || fail "$what: verify"
    "$MARGAY" trace print p --json > print.json || fail "$what: print"
}
cat > read.py <<'P'
import json
tool = json.load(open('p.json'))['tools']['trace']
rows = [json.loads(l) for l in open('print.json')]
steps = sorted((r['fields'] for r in rows if r['kind'] == 'trace.step'), key=lambda s: (s['order'], s['time']))
accesses = [r['fields'] for r in rows if r['kind'] == 'trace.access']
barriers_and_blocks = [a for a in accesses if a['access'] in ('barrier', 'block')]
barriers = [a for a in accesses if a['access'] == 'barrier']
accesses = [a for a in accesses if a['bytes']]
launches = {l['launch']: l for l in tool['launches']}
M = 1 << 64
def whole(): # what arrived is what was counted, and is in the trace
    c = tool['channel']
    assert (c['dropped_records'], c['lost_segments'], c['damaged_pages'], c['late_pages']) == (0, 0, 0, 0), c
    assert (tool['dropped'], tool['missed']) == (0, 0), tool
    for n, l in launches.items():
        of = [a for a in accesses if a['launch'] == n]
        assert l['lanes'] == l['received_lanes'] == sum(len(a['addresses']) for a in of), l
        assert l['records'] == len(of) and l['barriers'] == sum(b['launch'] == n for b in barriers), l
        assert l['address_sum'] == l['counted_sum'] == sum(map(sum, (a['addresses'] for a in of))) % M, l
def kind(k): return [s for s in steps if s['kind'] == k]
P
python() { PYTHONPATH=. python3 "$@"; }
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia; do
    [ $device = nvidia ] && export LD_LIBRARY_PATH=$B/test/driver
    run "$device saxpy" $device '' "$EX/saxpy" 4100
    python - > why 2>&1 <<'P' || { fail "$device saxpy"; cat why; }
from read import *
whole()
(x, y), copies = [s['dst'] for s in kind('alloc')][:2], kind('copy')
x, y = int(x, 16), int(y, 16)
assert [s['bytes'] for s in kind('alloc')[:2]] == [16400, 16400]
assert [(int(c['dst'], 16) in (x, y), int(c['src'], 16) in (x, y)) for c in copies] == [(True, False)] * 2 + [(False, True)], copies
assert [s['bytes'] for s in copies] == [16400] * 3
launch, = kind('launch')
assert (launch['name'], launch['grid_x'], launch['block_x'], launch['flags'] & 1) == ('saxpy', 17, 256, 1), launch
assert [s['kind'] for s in steps if s['kind'] in ('copy', 'launch')] == ['copy', 'copy', 'launch', 'copy']
freed = kind('free')
assert [f['dst'] for f in freed[:2]] == [hex(x), hex(y)], freed
want = sorted((op, base + 4 * i) for i in range(4100) for op, base in (('load', x), ('load', y), ('store', y)))
assert sorted((a['access'], p) for a in accesses for p in a['addresses']) == want
for a in accesses: # thread i of CTA c in warp w touches element 256 c + 32 w + lane
    lane = [i for i in range(32) if a['mask'] >> i & 1]
    base = x if a['addresses'][0] < y and x < y or x > y and a['addresses'][0] >= x else y
    assert a['addresses'] == [base + 4 * (256 * a['cta'] + 32 * a['warp'] + i) for i in lane], a
    assert a['bytes'] == 4 and a['kernel'] == 'saxpy'
by_warp = {}
for a in accesses: by_warp.setdefault((a['cta'], a['warp']), []).append((a['number'], a['access']))
assert all([n for n, _ in v] == [0, 1, 2] and sorted(k for _, k in v) == ['load', 'load', 'store'] and v[2][1] == 'store' for v in by_warp.values())
assert len(by_warp) == 129 and tool['launches'][0]['records'] == 387 and not barriers
assert tool['launches'][0]['bytes'] < 387 * 16 + 129 * 8 + 44 * 17, tool['launches'] # 8 an access, 8 a warp, and the heads
P
    run "$device reduce" $device '' "$EX/reduce" 2000
    python - > why 2>&1 <<'P' || { fail "$device reduce"; cat why; }
from read import *
whole()
ctas = 8
assert sum(len(a['addresses']) for a in accesses) == 2000 + ctas # loads, and a store of each CTA
assert [a['mask'] for a in accesses if a['access'] == 'store'] == [1] * ctas
assert sum(bin(b['mask']).count('1') for b in barriers) == ctas * 256 * 9 and not any(b['addresses'] for b in barriers) # 9 barriers
P
done
unset LD_LIBRARY_PATH
# every way to launch, graphs among them: the same steps on the emulator and over NVIDIA's driver, which launches some natively
gcc -O1 -I"$ROOT/src" -o ways "$ROOT/tests/inject/ways.c" -ldl || exit 1
for device in emu nvidia; do
    [ $device = nvidia ] && export LD_LIBRARY_PATH=$B/test/driver
    run "$device ways" $device '' ./ways
    python - > $device.steps 2> why <<'P' || { fail "$device ways"; cat why; }
from read import *
whole()
for s in steps: print(s['kind'], s['launch'], s['replay'], s['graph'], s['flags'] & ~1025, s['stream'], s['bytes'], s['grid_x'], s['block_x'])
assert sum(s['graph'] > 0 for s in steps) == 4
P
done
cmp emu.steps nvidia.steps || { fail 'ways: other steps'; diff emu.steps nvidia.steps | head; }
unset LD_LIBRARY_PATH
# graphs: what each run of a node accesses is told apart, and who reads what whom wrote is the same on both
gcc -O1 -I"$ROOT/src" -o trace_graph "$ROOT/tests/tool/trace_graph.c" -ldl || exit 1
for device in emu nvidia; do
    [ $device = nvidia ] && export LD_LIBRARY_PATH=$B/test/driver
    run "$device graph" $device '' ./trace_graph
    cp out $device.out
    python - > why 2>&1 <<'P' || { fail "$device graph"; cat why; }
from read import *
whole()
runs = {}
for a in accesses: runs.setdefault((a['launch'], a['replay']), []).extend((a['access'], p) for p in a['addresses'])
assert len(runs) == 15 and all(len(set(v)) == len(v) == 128 for v in runs.values()), {k: len(v) for k, v in runs.items()}
assert [len([s for s in steps if s['kind'] == k and s['name'] == 'graph']) for k in ('memset', 'copy')] == [8, 8]
assert sum(s['bytes'] for s in kind('memset')) == 6 * 128 + 2 * 64 and sum(s['flags'] & 1024 for s in kind('launch')) == 0
P
    "$MARGAY" study communication p --json --entity thread > study.json || fail "$device graph: study"
    python3 -c "import json
c = json.load(open('study.json'))['communication']
for b in [c['bytes']] + [s['bytes'] for s in c['streams']]: b.pop('SDV'), b.pop('SCV')
c['metrics'].pop('stride')
print(json.dumps(c, indent=1))" > $device.study
    run "$device graph twice" $device '' ./trace_graph twice
    cat out >> $device.out
    python - > why 2>&1 <<P || { fail "$device graph twice"; cat why; }
from read import *
whole()
assert sum(len(a['addresses']) for a in accesses) == 8 * 128
assert sum(s['flags'] // 1024 & 1 for s in kind('launch')) == (4 if '$device' == 'nvidia' else 0)
P
    rm -rf p # what a fault took away is said to be missing
    timeout 300 "$MARGAY" run -q -o p --device $device -t trace,sum=on -- ./trace_graph fault > out 2> err && fail "$device fault: no fault"
    "$MARGAY" report p --json > p.json && "$MARGAY" trace print p --json > print.json || fail "$device fault: print"
    python - > why 2>&1 <<'P' || { fail "$device fault"; cat why; }
from read import *
assert [(l['complete'], l['lanes']) for l in tool['launches']] == [(False, None)] and len(kind('launch')) == 1, tool
assert [r['fields']['why'] for r in rows if r['kind'] == 'trace.left'] == ['fault'], rows
P
    run "$device graph mixed" $device '' -t blocks,warps=on ./trace_graph mixed
    python - > why 2>&1 <<'P' || { fail "$device graph mixed"; cat why; }
from read import *
whole()
j = json.load(open('p.json'))
assert sum(len(a['addresses']) for a in accesses) == 600 * 128 and len(kind('launch')) == 600
assert (j['coverage']['instrumented'], j['coverage']['launches'], j['coverage'].get('spoilt', 0)) == (600, 600, 0), j['coverage']
k, = j['kernels']
assert all(b['thread_entries'] == 600 * 64 and b['warp_entries'] == 600 * 2 for b in k['blocks']), k['blocks']
steps = {(s['launch'], s['replay']) for s in kind('launch')}
assert len(steps) == 600 and {(a['launch'], a['replay']) for a in accesses} <= {(s['launch'], s['replay']) for s in kind('launch') if s['flags'] & 1}
P
    rm -rf p
    timeout 300 "$MARGAY" run -q -o p --device $device -t communication,entity=thread -- ./trace_graph > out || fail "$device: online"
    "$MARGAY" report p --json | python3 -c "import json, sys
online, study = json.load(sys.stdin)['tools']['communication'], json.load(open('study.json'))['communication']
assert all(online[k] == study[k] for k in ('bytes', 'metrics', 'transfers', 'host_transfers')) and online['transfer_count'] == 208" || fail "$device: online"
done
unset LD_LIBRARY_PATH
cmp emu.out nvidia.out || fail 'graph: other output'
diff emu.study nvidia.study > why || { fail 'graph: who reads what whom wrote'; head why; }
# a graph whose kernels decide what runs: nobody knows how often, so nothing is said to be complete
gcc -O1 -I"$ROOT/src" -o conditional "$ROOT/tests/inject/conditional.c" -L"$B/lib/margay/driver" -lcuda || exit 1
sed -n '/^cat > kernels.ptx/,/^P$/p' "$ROOT/tests/inject/conditional.sh" | sed '1d;$d' > kernels.ptx
export LD_LIBRARY_PATH=$B/test/driver
rm -rf p
timeout 300 "$MARGAY" run -q -o p --device nvidia -t trace,sum=on -- ./conditional kernels.ptx > out 2> err || fail "conditional: exit $?"
"$MARGAY" report p --json > p.json && "$MARGAY" trace print p --json > print.json || fail 'conditional: print'
"$MARGAY" trace verify p > why 2>&1 && fail 'conditional: verify says that all is there'
grep -q uncounted why || fail "conditional: verify: $(cat why)"
python - > why 2>&1 <<'P' || { fail 'conditional'; cat why; }
from read import *
unknown = [l for l in tool['launches'] if not l['runs']]
assert unknown and not any(l['complete'] or l['lanes'] is not None for l in unknown) and tool['dropped'] == 0, tool
assert any(r['kind'] == 'trace.left' and r['fields']['why'] == 'uncounted' for r in rows)
P
unset LD_LIBRARY_PATH
# every instruction: as many as the block counter says, by threads and by warps
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia; do
    [ $device = nvidia ] && export LD_LIBRARY_PATH=$B/test/driver
    run "$device instructions" $device ,instructions=on -t blocks,warps=on "$EX/reduce" 2000
    python - > why 2>&1 <<'P' || { fail "$device instructions"; cat why; }
from read import *
j = json.load(open('p.json'))
blocks = [b for b in barriers_and_blocks if b['access'] == 'block']
count = lambda b: bin(b['mask']).count('1') * b['instructions']
assert sum(map(count, blocks)) == sum(l['instructions'] for l in tool['launches']) == sum(k['thread_instructions'] for k in j['kernels']) > 1000
assert sum(b['instructions'] for b in blocks) == sum(k['warp_instructions'] for k in j['kernels'])
assert len(blocks) == sum(l['blocks'] for l in tool['launches'])
whole()
text = [r['fields'] for r in rows if r['kind'] == 'trace.site' and r['fields']['kind'] == 'instruction']
assert sorted(t['instruction'] for t in text) == list(range(len(text))) and len(text) == sum(b['instructions'] for b in j['kernels'][0]['blocks'])
assert sorted({b['instruction'] for b in blocks}) == sorted(set(__import__('itertools').accumulate([0] + [b['instructions'] for b in j['kernels'][0]['blocks']][:-1])) & {b['instruction'] for b in blocks})
P
done
unset LD_LIBRARY_PATH
run 'selected CTAs' emu ,cta=3-5 "$EX/saxpy" 4100
python - > why 2>&1 <<'P' || { fail 'cta=3-5'; cat why; }
from read import *
whole()
assert {a['cta'] for a in accesses} == {3, 4, 5} and sum(len(a['addresses']) for a in accesses) == 3 * 3 * 256
assert any(r['kind'] == 'trace.left' for r in rows)
P
run 'a selected buffer' emu ,buffer=1 "$EX/saxpy" 4100
python - > why 2>&1 <<'P' || { fail 'buffer=1'; cat why; }
from read import *
whole()
a = json.load(open('p.json'))
assert sum(len(a['addresses']) for a in accesses) in (4100, 8200), len(accesses)
base = {p - 4 * (256 * a['cta'] + 32 * a['warp'] + i) for a in accesses for i, p in zip([i for i in range(32) if a['mask'] >> i & 1], a['addresses'])}
assert len(base) == 1 and hex(base.pop()) in [s['dst'] for s in kind('alloc')]
P
run 'selected lines' emu ,line=kernel.cu:14-14 "$EX/reduce" 2000
python - > why 2>&1 <<'P' || { fail 'line=14'; cat why; }
from read import *
whole()
assert {a['line'] for a in accesses} == {14} and {a['access'] for a in accesses} == {'store'} and not barriers
P
run 'one CTA of four' emu ,sample=4 "$EX/saxpy" 4100
python - > why 2>&1 <<'P' || { fail 'sample=4'; cat why; }
from read import *
l, = tool['launches']
assert {a['cta'] for a in accesses} == {2, 6, 10, 14} and l['lanes'] == 3 * 4100 and l['received_lanes'] == 3 * 4 * 256, l
s = tool['sample']
assert s['one_of'] == 4 and s['estimate'] and abs(s['estimated_lanes'] - 4 * 3072) < 1 and abs(s['error_pct'] - 100 * (12288 - 12300) / 12300) < 1e-6, s
P
for bad in instructions=on,line=3 cta=5-3 line=0 sample=0 sum=yes nothing=1; do
    "$MARGAY" run -q -o bad --device emu -t trace,$bad -- true 2> err && fail "$bad is taken"
    grep -q 'bad option' err || fail "$bad: $(cat err)"
done
gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl || exit 1
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu); do
    run "$device bulk" $device '' ./ptxrun "load=$ROOT/tests/tool/trace_bulk.ptx" bulk:3,1,1:64,1,1:1
    python - > why 2>&1 <<'P' || { fail "$device bulk"; cat why; }
from read import *
whole()
buf = int(kind('alloc')[0]['dst'], 16)
for cta in range(3):
    at, of = buf + 4096 * cta, [a for a in accesses if a['cta'] == cta]
    assert [p for a in of if a['access'] == 'load' for p in a['addresses']] == [at + 16 * i for i in range(64)], of
    assert [p for a in of if a['access'] == 'store' for p in a['addresses']] == [at + 2048 + 16 * i for i in range(40)], of
    assert {a['bytes'] for a in of} == {16} and [len(a['addresses']) for a in of] == [32, 32, 32, 8], of
assert launches[0]['lanes'] == 3 * 104 and not [k for k in tool['not_looked_at'] if k['op'].startswith('cp')], tool
P
done
if command -v "$NVCC" > why; then
    "$NVCC" -cudart shared -o app "$ROOT/tests/tool/trace.cu" 2> err || { cat err; exit 1; }
    for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu); do
        run "$device app" $device '' ./app
        python - > why 2>&1 <<'P' || { fail "$device app"; cat why; }
from read import *
whole()
N, CTAS = 256, 4
names = [s['name'] for s in kind('launch')]
short = lambda n: [w for w in ('generic', 'add', 'scale') if w in n][0]
assert list(map(short, names)) == ['generic', 'add', 'scale'] + ['scale'] * 3, names
a, b, s = (int(x['dst'], 16) for x in kind('alloc')[:3])
by = {}
for x in accesses: by.setdefault((x['launch'], x['replay'], x['access']), []).extend(x['addresses'])
runs = [(l['launch'], l['replay']) for l in kind('launch')]
assert [r for _, r in runs] == [0, 0, 0, 0, 1, 2] and len(set(runs)) == 6 and runs[3][0] == runs[4][0] == runs[5][0], runs
odd = [a + 4 * i for i in range(N * CTAS)]
assert sorted(by[(*runs[0], 'store')]) == odd, len(by[(*runs[0], 'store')]) # odd ones through the generic pointer, even ones after the barrier
generic = [x for x in accesses if (x['launch'], x['replay']) == runs[0]]
assert {x['mask'] for x in generic} == {0x55555555, 0xaaaaaaaa} and len(generic) == 2 * 8 * CTAS
assert len([x for x in barriers if x['launch'] == runs[0][0]]) == 8 * CTAS
assert sorted(by[(*runs[1], 'load')]) == [b + 4 * i for i in range(N * CTAS)]
assert sorted(by[(*runs[1], 'atomic')]) == sorted([s + 4 * (i % 8) for i in range(N * CTAS)])
for r in runs[2:]:
    assert sorted(by[(*r, 'load')]) == sorted(by[(*r, 'store')]) == odd
of = lambda k, flag: [x for x in kind(k) if not x['flags'] & 2 == flag]
d2d = [x for x in kind('copy') if int(x['dst'], 16) in (a, b) and int(x['src'], 16) in (a, b)]
assert len(d2d) == 1 + 1 + 3 and all(x['bytes'] == 4 * N * CTAS for x in d2d), d2d # the call, the one that the graph recorded, three runs
assert [x['flags'] & 2 for x in d2d] == [0, 2, 0, 0, 0], d2d
fill, = kind('memset')
assert (int(fill['dst'], 16), fill['bytes'], fill['stream']) == (s, 32, d2d[0]['stream']) and fill['stream'] == kind('launch')[1]['stream'] != kind('launch')[2]['stream']
order = [x['kind'] if x['kind'] != 'launch' else short(x['name']) for x in steps if x['kind'] in ('launch', 'copy', 'memset')]
assert order == ['generic', 'copy', 'memset', 'add', 'scale', 'copy'] + ['copy', 'scale'] * 3 + ['copy'], order
P
    done
else
    echo "without nvcc: generic pointers, streams and graphs are not looked at"
fi
exit $failed
