#!/bin/sh
# margay diff over modules that differ: verdict, metric and line of a fix and of its regression, the gate of docs/howto-before-and-after.md,
# one-liners, pairs of lines that a comment has moved. Numbers come from the programs' closed forms.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cp "$ROOT/tests/tool/faults/transpose.cu" "$ROOT/tests/tool/faults/species.cu" "$ROOT/tests/tool/faults/common.h" .
mkdir moved && { printf '// moved\n// by\n// three lines\n'; cat transpose.cu; } > moved/transpose.cu && cp common.h moved
compile() { "$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o "$1" "$2"; }
compile transpose transpose.cu & compile species species.cu & wait
compile other moved/transpose.cu
run() { "$MARGAY" run -q --device emu -t blocks -t memory -t lanes -t ctas -o "$@" > out; }
run before -- ./transpose fault
run after -- ./other sound
run mixed -- ./species fault
run sorted -- ./species sound

"$MARGAY" diff before after > text
head -1 text | grep -q '^verdict: better: the kernels. work as counted -' || { head -3 text; exit 1; }
grep -q '^changed most: memory.bank_conflicts -100.0 %' text
"$MARGAY" diff before after --json > fix.json
"$MARGAY" diff after before --json > worse.json
"$MARGAY" diff before before --json > same.json
"$MARGAY" diff mixed sorted --json > lanes.json
python3 - <<'P'
import json
fix, worse, same, lanes = (json.load(open(f + '.json')) for f in ('fix', 'worse', 'same', 'lanes'))
metric = lambda d, name: next(m for m in d['metrics'] if m['name'] == name)
# 16 x 16 tiles, 8 warps a CTA, 4 reads of a column by each: 31 passes too many
conflicts = 16 * 16 * 8 * 4 * 31
m = metric(fix, 'memory.bank_conflicts')
assert (m['before'], m['after'], m['change_pct'], m['is']) == (conflicts, 0, -100, 'better'), m
assert metric(worse, 'memory.bank_conflicts')['is'] == 'worse' and metric(worse, 'memory.bank_conflicts')['change_pct'] is None
assert metric(fix, 'memory.sectors')['before'] == 2 * 512 * 512 * 4 // 32 and metric(fix, 'memory.sectors')['is'] is None
assert fix['verdict']['is'] == 'better' and worse['verdict']['is'] == 'worse' and same['verdict']['is'] == 'no difference'
assert fix['verdict']['by'] == 'work' and fix['verdict']['reason'] == worse['verdict']['reason'] == 'memory.bank_conflicts' and same['verdict']['reason'] is None
assert fix['verdict']['interval_pct'] == [None, None]
# the line of the fault, three lines further down in the other module; turn<32> and turn<33> are one function
line = next(i for i, l in enumerate(open('transpose.cu'), 1) if 'FAULT' in l)
l = next(l for l in fix['lines'] if l['metric'] == 'memory.bank_conflicts')
assert (l['function'], l['file'], l['line_before'], l['line_after'], l['before'], l['after']) == ('turn', 'transpose.cu', line, line + 3, conflicts, 0), l
assert not same['lines'], same['lines']
assert lanes['verdict']['is'] == 'better' and lanes['verdict']['reason'] == 'warp_instructions', lanes['verdict']
assert metric(lanes, 'lanes.idle_slots')['is'] == 'better' and metric(lanes, 'lanes.lane_use')['is'] == 'better'
P

gate='memory.bank_conflicts+0%,memory.sectors+5%,instructions+2%'
"$MARGAY" diff --fail-on "$gate" after after > out
"$MARGAY" diff --fail-on "$gate" before after > out
rc=0; "$MARGAY" diff --fail-on "$gate" after before > out 2> err || rc=$?
[ $rc = 1 ] && grep -q 'memory.bank_conflicts: it was 0 and is 253952' err || { echo "the gate gives $rc"; cat err; exit 1; }
rc=0; "$MARGAY" diff --fail-on time+5% before after > out 2> err || rc=$?
[ $rc = 3 ] && grep -q 'time: neither profile has it' err || { echo "a time nobody measured gives $rc"; cat err; exit 1; }
for bad in memory.sectors '' +5% memory.sectors+x 'a+1%,,b+2%'; do
    rc=0; "$MARGAY" diff --fail-on "$bad" before after > out 2> err || rc=$?
    [ $rc = 2 ] || { echo "--fail-on '$bad' gives $rc"; exit 1; }
done

# one-liners; the two newest profiles without names
"$MARGAY" run -q --device emu -e 'ld.shared { @loads = count() }' -o few -- ./transpose sound > out
"$MARGAY" run -q --device emu -e 'ld.shared { @loads = count() }' -e 'st.global { @stores = count() }' -o more -- ./transpose fault > out
"$MARGAY" diff --json > newest.json 2> err
grep -q 'profile more' err && grep -q 'profile few' err
python3 -c "
import json
m = {x['name']: x for x in json.load(open('newest.json'))['metrics']}
assert m['expr.@loads']['before'] == m['expr.@loads']['after'] == 512 * 512, m['expr.@loads']
assert m['expr.@stores']['before'] is None and m['expr.@stores']['after'] == 512 * 512, m['expr.@stores']"
