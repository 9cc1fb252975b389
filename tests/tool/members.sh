#!/bin/sh
# Of a struct of which one member is read most bytes come for nothing; where all are read none does, and L1 takes the lines of each load one after
# the other: that is what the finding says, at no more than memory leaves. A struct of 16 bytes takes no longer than its sectors: no finding.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
ctas=$((1056 + seed % 1056))
echo "SEED=$seed"
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o members "$ROOT/tests/tool/members.cu"
for device in ${DEVICES:-emu cpu}; do
    for what in one all few; do
        rm -rf $what
        "$MARGAY" run -q --device $device -t advise -o $what -- ./members $what $ctas > out
        grep -q 'no error' out
        "$MARGAY" report $what --json > $what.json
    done
    python3 - "$device $ctas" <<'P'
import json, sys
def found(what): return [f for f in json.load(open(what + '.json'))['findings'] if f['rule'] == 'uncoalesced']
(one,), (all_,) = found('one'), found('all')
assert (one['measure'], one['unit']) == (32, 'sectors a request') and 'moves 32.0 sectors' in one['text'] and 'does not use' in one['text'], one
assert (all_['measure'], all_['unit']) == (8, 'passes through L1 a request') and 'no byte comes for nothing' in all_['text'], all_
assert 'takes 8.0 passes through L1, one for each line of 128 bytes, where 1 would do' in all_['text'], all_
assert one['gain_pct'] > 40 > 20 > all_['gain_pct'] > 0, (one, all_)
assert not found('few'), found('few')
assert all(f['limit'].startswith('Gain: by the model ') and f['text'].endswith(f['limit']) for f in (one, all_)), (one, all_)
assert next(f for f in json.load(open('few.json'))['findings'] if f['rule'] == 'memory_bound')['limit'] is None
P
done
