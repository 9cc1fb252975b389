#!/usr/bin/env bash
# margay report --by: launches by family of kernels, by cause, by ranges of NVTX and by device; sums agree with the launches.
set -euo pipefail
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
"$NVCC" -cudart shared -gencode arch=compute_90,code=compute_90 -o groups "$ROOT/tests/cli/groups.cu" -ldl 2> err || { grep -q nvToolsExt err && { echo 'no NVTX headers'; exit 77; }; cat err; exit 1; }
"$MARGAY" run -q --device emu -t blocks -t timeline --kernel 'scale*' -o p -- ./groups > out && grep -qx 'no error' out
for by in family cause range device; do "$MARGAY" report p --by $by --json > $by.json; "$MARGAY" report p --by $by > $by.txt; done
"$MARGAY" report p --json > p.json
python3 - <<'P'
import json
rows = {by: {r[by]: r for r in json.load(open(by + '.json'))['groups']} for by in ('family', 'cause', 'range', 'device')}
launches = json.load(open('p.json'))['launches']
kernels = {k['id']: k for k in json.load(open('p.json'))['kernels']}
count = lambda t: {k: (r['launches'], r['instrumented'], r['kernels']) for k, r in t.items()}
assert count(rows['family']) == {'scale': (9, 9, 2), 'sum': (2, 0, 1)}, rows['family']
assert count(rows['cause']) == {'instrumented': (9, 9, 2), 'filtered': (2, 0, 1)}, rows['cause']
assert count(rows['range']) == {'(in no range)': (1, 1, 1), 'model.layers.0 / aten::mul': (4, 4, 2), 'model.layers.1 / aten::mul': (4, 4, 2),
                                'model.layers.1 / aten::sum': (2, 0, 1)}, rows['range']
assert count(rows['device']) == {'device 0': (11, 9, 3)}, rows['device']
assert rows['range']['model.layers.1 / aten::sum']['most_of_it'] == 'sum' and rows['cause']['filtered']['most_of_it'] == 'sum'
assert rows['range']['model.layers.1 / aten::sum']['thread_instructions'] is None
insts = sum(k['thread_instructions'] or 0 for k in kernels.values())
for t in rows.values():
    assert sum(r['thread_instructions'] or 0 for r in t.values()) == insts > 0
    assert sum(r['launches'] for r in t.values()) == sum(r['timed'] for r in t.values()) == len(launches) == 11
    assert abs(sum(r['share'] for r in t.values()) - 100) < 1e-9
for by in ('family', 'cause'): assert sum(r['time_ns'] for r in rows[by].values()) == sum(l['time_ns'] for l in launches)
P
grep -q '^coverage: 9 of 11' cause.txt && grep -q 'aten::mul *scale$' range.txt || { cat cause.txt range.txt; exit 1; }
"$MARGAY" report p --by range --csv | grep -q 'model.layers.1 / aten::sum,sum' || { echo CSV; exit 1; }
"$MARGAY" report p --by family --kernel 'sum*' --json | python3 -c 'import json, sys; assert [r["family"] for r in json.load(sys.stdin)["groups"]] == ["sum"]'
"$MARGAY" run -q --device emu -o bare -- ./groups > out
rc=0; "$MARGAY" report bare --by range 2> err || rc=$?; [ $rc = 3 ] && grep -qi 'time line\|trace' err || { cat err; exit 1; }
rc=0; "$MARGAY" report bare --by family --html x 2> err || rc=$?; [ $rc = 2 ] && grep -q -e '--by goes with' err
