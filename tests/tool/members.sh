#!/bin/sh
# Of a struct of which one member is read most bytes come for nothing; where all are read none does, and L1 takes the lines of each load one after
# the other: that is what the finding says, at no more than memory leaves. A struct of 16 bytes takes no longer than its sectors: no finding.
# Of rows that each thread reads whole, in rounds, no byte comes for nothing either, where L1 holds them till the next round. Where it has no room for
# all of them (pair) the finding says so, and diff knows that it may be otherwise. Members that SEED draws, and halves of structs that begin within a sector: what all loads touch together is what their addresses say.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
ctas=$((1056 + seed % 1056))
echo "SEED=$seed"
floats=$((2 + seed % 31)) first=$((seed / 31 % (floats - 1)))
second=$((first + 1 + seed / 961 % (floats - first - 1)))
"$NVCC" -DFLOATS=$floats -DFIRST=$first -DSECOND=$second -DROUNDS=$((1 + seed % 2)) -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o members "$ROOT/tests/tool/members.cu"
for device in ${DEVICES:-emu cpu}; do
    for what in one all few drawn half rows whole pair both; do
        rm -rf $what
        "$MARGAY" run -q --device $device -t advise -o $what -- ./members $what $ctas > out
        grep -q 'no error' out
        "$MARGAY" report $what --json > $what.json
        "$MARGAY" report $what > $what.text
    done
    rm -rf some
    "$MARGAY" run -q --device $device -t advise -o some -- ./members pair $((1 + seed % 132)) > out
    "$MARGAY" report some --json > some.json
    "$MARGAY" diff rows whole --json > unrolled.json
    "$MARGAY" diff pair both --json > pairs.json
    python3 - $device $ctas $floats $first $second <<'P'
import json, re, sys
device, (ctas, floats, first, second) = sys.argv[1], map(int, sys.argv[2:])
def found(what): return [f for f in json.load(open(what + '.json'))['findings'] if f['rule'] == 'uncoalesced']
(one,), (all_,) = found('one'), found('all')
assert (one['measure'], one['unit']) == (32, 'sectors a request') and 'moves 32.0 sectors' in one['text'] and 'does not use' in one['text'], one
assert (all_['measure'], all_['unit']) == (8, 'passes through L1 a request') and 'no byte comes for nothing' in all_['text'], all_
assert 'takes 8.0 passes through L1, one for each line of 128 bytes, where 1 would do' in all_['text'], all_
assert one['gain_pct'] > 40 > 20 > all_['gain_pct'] > 0, (one, all_)
assert not found('few'), found('few')
assert all(f['limit'].startswith('Gain: by the model ') and f['text'].endswith(f['limit']) for f in (one, all_)), (one, all_)
assert next(f for f in json.load(open('few.json'))['findings'] if f['rule'] == 'memory_bound')['limit'] is None
# of four warps, after which a step of 4 bytes is at the same place in a line again
def pieces(step, offsets, size): return sum(len({((32 * w + i) * step + o) // size for i in range(32) for o in offsets}) for w in range(4)) / 4
def cycles(step, offsets): return max(pieces(step, offsets, 32), sum(max(pieces(step, [o], 128), pieces(step, [o], 32) / 4) for o in offsets))
for what, step, offsets in (('drawn', 4 * floats, [4 * first, 4 * second]), ('half', 48, [0, 8, 16])):
    told, = re.findall(r'([0-9,]+) for accesses to global memory', open(what + '.text').read())
    want = 8 * ctas * (cycles(step, offsets) + 4)
    assert abs(int(told.replace(',', '')) - want) < 1, (device, what, sys.argv, told, want)
rows, whole = found('rows')[0], found('whole')[0] # each byte is used, by one of eight rounds
assert (rows['measure'], rows['unit']) == (8, 'passes through L1 a request') and 'Later rounds of the loop, for which L1 keeps them' in rows['text'], rows
assert abs(rows['gain_pct'] - whole['gain_pct']) < 6, (rows, whole)
v = json.load(open('unrolled.json'))['verdict'] # which moves no byte less
if device == 'nvidia': assert v['by'] == 'time', v # a GPU's clock says
else: assert v['interval_pct'][0] > -25 and v['interval_pct'][1] > -1, v
pair, = found('pair') # 64 warps with 16 lines of 128 bytes of either array
assert pair['unit'] == 'sectors a request' and pair['measure'] == 32, pair
assert 'does not use' not in pair['text'] and 'other accesses may use the rest, if L1 has it still' in pair['text'], pair
v = json.load(open('pairs.json'))['verdict']
if device == 'nvidia': assert v['by'] == 'time', v
else: assert v['interval_pct'][1] > -1 and v['hinge'].startswith('whether L1 holds what it has brought'), v
assert all(f['unit'] == 'passes through L1 a request' for f in found('some')), found('some') # of one CTA a multiprocessor
half, = found('half') # 48 sectors where 24 would do
assert half['gain_pct'] > 20, half
P
done
