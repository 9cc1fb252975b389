#!/usr/bin/env bash
# margay study communication: its files (CSV, figures, page, appendix B), errors and statuses; the analysis against a plain
# one in Python over the printed trace, for each entity.
set -euo pipefail
study() { "$MARGAY" study communication "$@"; }
fails() { # status, words that stderr has, arguments
    local status=$1 words=$2 got=0
    shift 2
    study "$@" > out 2> err || got=$?
    [ $got = "$status" ] || { echo "study communication $*: status $got, not $status"; cat err; exit 1; }
    grep -q -- "$words" err || { echo "study communication $*: no '$words' in"; cat err; exit 1; }
}
[ -x "$EX/bfs" ] || { echo "the examples were not built: need clang"; exit 77; }
"$MARGAY" run -q -t trace --device emu -o bfs -- "$EX/bfs" 700 > /dev/null
"$MARGAY" trace print --json bfs > bfs.txt
for entity in cta warp thread sm kernel; do
    study bfs --json --entity $entity > bfs.json
    python3 "$ROOT/tests/app/communication.py" bfs.json $entity < bfs.txt
done
"$MARGAY" run -q -t trace --device emu -o halo -- "$EX/exchange" halo 5 3 > /dev/null
study halo --json --csv halo.csv --html halo.html --svg figures --appendix-b halo.b.json > halo.json
study halo --match start --json > start.json
study halo --appendix-b halo.pickle > halo.text
grep -q '6.4 bisection' halo.text
python3 - <<'END'
import csv, json, pickle, xml.dom.minidom, glob
j = json.load(open('halo.json'))['communication']
rows = list(csv.DictReader(open('halo.csv')))
assert [(int(r['source_cta']), int(r['target_cta']), int(r['bytes']), int(r['reads'])) for r in rows] == \
    [(t['source']['cta'], t['target']['cta'], t['bytes'], t['reads']) for t in j['transfers']]
start = json.load(open('start.json'))['communication'] # words alone: the same either way
assert start['transfers'] == j['transfers'] and start['bytes'] == j['bytes'] and start['match'] == 'start'
figures = glob.glob('figures/*.svg')
assert len(figures) == 13, figures
for f in figures: xml.dom.minidom.parse(f)
assert open('halo.html').read().count('<svg') >= 13
f = open('halo.pickle', 'rb')
volumes, transfers, addresses = pickle.load(f), pickle.load(f), pickle.load(f)
b = json.load(open('halo.b.json'))
assert json.loads(json.dumps([volumes, transfers, addresses])) == [b['volumes'], b['transfers'], b['addresses']]
assert volumes['KCV']['halo'][1] == {'Load': 256 * 5 + 8 * 4, 'Store': 256 * 5, 'Atomic': 0}
assert transfers['halo'][2][0]['halo'] == {1: {1: {'Size': 4, 'cnt': 1}}, 2: {1: {'Size': 256, 'cnt': 64}}, 3: {1: {'Size': 4, 'cnt': 1}}}
# What step 0 writes and step 1 reads, and what step 1 writes and step 2 reads; the first buffer is written by the host, too.
ops = [o for rows in addresses.values() for o in rows]
assert all(a == o['addr'] for a, rows in addresses.items() for o in rows) and len(addresses) == 2 * 5 * 64
assert sum(o['size'] for o in ops if o['type'] == 2) == 3 * 5 * 256
assert sum(o['size'] for o in ops if o['type'] == 1) == 3 * (5 * 256 + 8 * 4)
assert {(o['kernel'], o['it']) for o in ops} == {('halo', 0), ('halo', 1), ('halo', 2)}
END
"$MARGAY" run -q -t blocks --device emu -o none -- "$EX/exchange" ring 2 2 > /dev/null
fails 3 'no trace in none' none
fails 3 '' nowhere
fails 2 'is of CTAs' halo --appendix-b x --entity warp
fails 2 '' halo --entity grid
fails 2 'one profile' halo halo
fails 3 'name a process' halo --process 1
fails 3 '' halo --csv nowhere/x
# A native launch between: what it wrote is not known, and the report says so.
"$MARGAY" run -q -t trace --launches 0,2 --device emu -o some -- "$EX/exchange" ring 3 3 > /dev/null
study some > text
grep -q 'launches ran native' text || { cat text; exit 1; }
# What the host writes by itself, and copies of arrays: counted in JSON and said in the text, which has names of C++.
if [ -n "$NVCC" ]; then
    "$NVCC" -arch=sm_90 -cudart shared "$ROOT/tests/cli/host_writes.cu" -o host_writes
    "$MARGAY" run -q -t trace --device emu -o host -- ./host_writes
    study host > text
    study host --json | python3 -c 'import json, sys; t = json.load(sys.stdin)["communication"]["trace"]; assert (t["array_copies"], t["host_memory_bytes"]) == (1, 256), t'
    for line in 'warning: 1 copies of arrays are not looked at' 'warning: the host may write 256 bytes' '  void fill<int>(int\*), twice(int\*): 1 times, 256 B'; do
        grep -q "$line" text || { cat text; exit 1; }
    done
    "$MARGAY" study cache host > text # a store has no hits of loads
    grep -A1 'PTX line [0-9]* st.global.u32 (void fill<int>(int\*))$' text | grep -q '^ *8  *-  *-  ' || { cat text; exit 1; }
fi
# Damaged: one error or a count of what is left out, never a crash.
cp -r halo torn
f=$(ls torn/trace/*.mgt)
truncate -s $(($(stat -c %s "$f") / 2)) "$f"
study torn > text 2> err || [ $? = 3 ]
