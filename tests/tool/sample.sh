#!/bin/sh
# lanes,sample=N counts one of N launches of a kernel and says what all would have counted, with a bound: against the exact numbers of all launches.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
"$NVCC" -cudart shared -lineinfo -O1 -gencode arch=compute_90,code=compute_90 -o app "$ROOT/tests/tool/sample.cu"
"$MARGAY" run -q --device emu -t lanes -o all -- ./app
for n in 2 8 25; do
    "$MARGAY" run -q --device emu -t lanes,sample=$n -o some -- ./app
    "$MARGAY" report all --json > all.json
    "$MARGAY" report some --json > some.json
    python3 - $n <<'P'
import json, sys
n = int(sys.argv[1])
full, some = (json.load(open(f)) for f in ('all.json', 'some.json'))
c = some['coverage']
assert c['launches'] == 800 and 2 * (1 + 399 // n) <= c['instrumented'] <= 2 * (1 + -(-399 // n)), c
assert {(x['ran'], x['reason']) for x in c['native']} == {('native', 'not in the sample')}, c
names = {k['id']: k['name'] for k in full['kernels']}
exact = {names[k['kernel']]: k for k in full['tools']['lanes']['kernels']}
wide = 0
for k in some['tools']['lanes']['kernels']:
    name = {x['id']: x['name'] for x in some['kernels']}[k['kernel']]
    e, s = exact[name], k['sample']
    varies = 'varies' in name
    assert e['sample'] is None and s['launches'] == 400 and s['method'] == 'geometry' and abs(s['counted'] - 400 / n) <= 2, s
    assert abs(k['lane_use'] - e['lane_use']) <= s['lane_use_bound'] + 1e-12, (n, name, k['lane_use'], e['lane_use'], s)
    for key in ('slots', 'slots_idle'):
        assert abs(k[key]['estimate'] - e[key]) <= k[key]['bound'], (n, name, key, k[key], e[key])
    for b, was in zip(k['branches'], e['branches']):
        assert b['ptx_line'] == was['ptx_line']
        for key in ('taken', 'not_taken', 'divergent', 'idle_slots'):
            off, bound = abs(b[key]['estimate'] - was[key]), b[key]['bound']
            assert off <= bound if varies else off == bound == 0, (n, name, key, b[key], was[key])
            wide += bound > 0
            assert n > 2 or bound <= was[key] / 2, (n, name, key, b[key], was[key])
    for b, was in zip(k['blocks'], e['blocks']):
        for key, exactly in (('warp_entries', sum(was['lanes'])), ('thread_entries', sum(i * v for i, v in enumerate(was['lanes'])))):
            assert abs(b[key]['estimate'] - exactly) <= b[key]['bound'], (n, name, b['id'], key, b[key], exactly)
assert wide >= 4, wide
P
    "$MARGAY" report some --tool lanes > text
    grep -q 'estimated from .* of 400 launches' text || { cat text; exit 1; }
    rm -rf some
done
rc=0; "$MARGAY" run -q --device emu -t lanes,sample=0 -o x -- ./app 2> err || rc=$?
[ $rc != 0 ] && grep -q sample err || { echo "sample=0 gives $rc"; cat err; exit 1; }
