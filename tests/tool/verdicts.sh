#!/bin/sh
# margay diff judges five mendings and five regressions by their counts, on emulator and CPU device: better or worse, by the metric that the change
# is about. A source whose lines have moved, or that has other names, is no difference. Names, sizes and places of lines are drawn by SEED.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
echo "SEED=$seed"
python3 "$ROOT/tests/tool/verdicts.py" "$ROOT/tests/tool/verdicts.cu" "$seed" > sizes
cp "$ROOT/tests/tool/faults/common.h" .
compile() { "$NVCC" -cudart shared -lineinfo -O2 -I. $2 -gencode arch=compute_90,code=compute_90 -o "$1/app" "$1/verdicts.cu"; }
compile before & compile after -DAFTER & wait
compile moved & compile renamed & wait

# judge DEVICE CASE WANTED METRIC...: both runs, their verdict, and that of a source that only looks different
judge() {
    device=$1 name=$2
    shift 2
    for side in before after moved; do
        rm -rf "$side.d"
        "$MARGAY" run -q --device "$device" -t advise -o "$side.d" -- "./$side/app" "$name" > "$side.out"
    done
    cmp before.out after.out && cmp before.out moved.out || { echo "$name: the change changes the result"; exit 1; }
    "$MARGAY" diff before.d after.d --json > change.json
    "$MARGAY" diff before.d moved.d --json > moved.json
    "$MARGAY" diff before.d moved.d --fail-over 0 --fail-on work+0%,instructions+0% > text
    grep -q '^verdict: no difference: ' text
    python3 - "$device $name" "$@" <<'P'
import json, sys
what, wanted, metrics = sys.argv[1], sys.argv[2], sys.argv[3:]
d, same = json.load(open('change.json')), json.load(open('moved.json'))
v, found = d['verdict'], {m['name']: m for m in d['metrics']}
assert (v['is'], v['by']) == (wanted, 'work') and v['reason'] in metrics, (what, v)
assert all(x * v['change_pct'] >= 0 for x in v['interval_pct']), (what, v)
assert all(found[m]['is'] == wanted for m in metrics), (what, [found[m] for m in metrics])
if v['reason'] not in ('ctas.imbalance', 'warp_instructions'): # these have no line
    assert any(l['metric'] == v['reason'] and l['file'] == 'verdicts.cu' for l in d['lines']), (what, d['lines'])
s = same['verdict']
assert (s['is'], s['change_pct'], s['interval_pct'], s['reason']) == ('no difference', 0, [0, 0], None), (what, s)
assert same['common_kernels'] and not same['lines'] and all(m['before'] == m['after'] for m in same['metrics']), (what, same['metrics'], same['lines'])
P
}

for device in emu cpu; do
    judge $device columns better memory.sectors
    judge $device sums better memory.sectors
    judge $device turn better memory.bank_conflicts
    python3 -c "
import json
side = int(dict(l.split() for l in open('sizes'))['SIDE'])
m = next(m for m in json.load(open('change.json'))['metrics'] if m['name'] == 'memory.bank_conflicts')
assert (m['before'], m['after']) == (side * side // 32 * 31, 0), m" # each request for a column of the tile takes 31 passes more
    judge $device halves better warp_instructions lanes.idle_slots
    judge $device dealt better ctas.imbalance
    judge $device nearest worse memory.sectors
    judge $device parity worse warp_instructions lanes.idle_slots
    judge $device window worse memory.bank_conflicts
    judge $device share worse ctas.imbalance
    judge $device product worse memory.sectors
    # other names: no kernel has a counterpart, and yet there is no difference
    "$MARGAY" run -q --device $device -t advise -o renamed.d -- ./renamed/app product > renamed.out
    "$MARGAY" run -q --device $device -t advise -o named.d -- ./before/app product > out
    "$MARGAY" diff named.d renamed.d --json > renamed.json
    python3 -c "
import json
d = json.load(open('renamed.json'))
assert d['verdict']['is'] == 'no difference' and not d['common_kernels'], d['verdict']"
    rm -rf renamed.d named.d
done
