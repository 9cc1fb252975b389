#!/usr/bin/env bash
# Selected launches of a program on a GPU: every launch is timed, two runs agree in their launches, the error of ten
# samples is small, and bench/subset records on this device.
set -euo pipefail
nvidia-smi -L > /dev/null 2>&1 || { echo 'no NVIDIA GPU'; exit 77; }
"$MARGAY" run -q --device nvidia -t blocks -t timeline -o counts -- "$EX/stencil-rt" 512 400 > /dev/null
for i in 1 2 3 4 5 6; do "$MARGAY" run -q --device nvidia -t timeline -o t$i -- "$EX/stencil-rt" 512 400 > /dev/null; done
for m in simpoint margay stem random; do "$MARGAY" study subset counts --times t1,t2,t3 t4,t5,t6 --method $m --json > $m.json; done
"$MARGAY" study subset counts --times t1,t2,t3 t4,t5,t6 --interval sync --json > sync.json
printf 'stencil\t400\t$EX/stencil-rt 512 400\t-\n' > list.tsv
for what in record judge table; do
    "$ROOT/bench/subset/run" $what --margay "$MARGAY" --device nvidia --programs list.tsv --trials 2 --out bench > $what.txt
done
python3 - <<'P'
import json
for m in ('simpoint', 'margay', 'stem', 'random'):
    d = json.load(open(m + '.json'))
    print(m, d['speedup'], d['error'])
    assert d['launches'] == 400 and d['launches_without_counts'] == 0 and d['times'] == 'native', d
    assert d['error']['held_out_pct'] is not None and d['judges'][0]['measured_ns'] > 0
assert json.load(open('margay.json'))['error']['held_out_pct'] < 5
assert json.load(open('sync.json'))['intervals'] >= 1
P
grep -q '| stencil | 400 |' table.txt
