#!/usr/bin/env bash
# margay run -t communication, -t cache: the numbers of margay study on a trace of the same run, on every device; the trace is
# taken away unless somebody wants it; killed programs, other tools beside them, options.
set -euo pipefail
[ -x "$EX/exchange" ] || { echo "the examples were not built: need clang"; exit 77; }
same() { # profile of the tools, profile with the trace, study's options
    "$MARGAY" report "$1" --json > tools.json
    "$MARGAY" study communication "$2" --json --workers 3 $3 > communication.json
    "$MARGAY" study cache "$2" --json $4 > cache.json
    python3 - <<'P'
import json
tools = json.load(open('tools.json'))['tools']
for name in ('communication', 'cache'):
    want = json.load(open(name + '.json'))[name]
    have = tools[name]
    have.pop('options')
    # the same bytes: members in alphabetical order
    text = lambda v: json.dumps(v, sort_keys=True)
    assert text(have) == text(want), [k for k in want if text(have.get(k)) != text(want[k])]
P
}
for device in emu cpu; do
    rm -rf both
    "$MARGAY" run -q -t communication -t cache -t trace --workers 1 --device $device -o both -- "$EX/exchange" tree 16 4 > /dev/null
    [ -d both/trace ]
    same both both '' ''
    "$MARGAY" run -q -t cache,l1=64k,l2=1m -t communication,entity=warp,match=start --device $device -o $device.online -- "$EX/exchange" halo 9 5 > /dev/null
    [ ! -e $device.online/trace ]
    "$MARGAY" run -q -t trace --device $device -o $device.trace -- "$EX/exchange" halo 9 5 > /dev/null
    "$MARGAY" study communication $device.trace --json --entity warp --match start > warp.json
    "$MARGAY" report $device.online --json > tools.json
    python3 - <<'P'
import json
have, want = json.load(open('tools.json'))['tools']['communication'], json.load(open('warp.json'))['communication']
assert have['entity'] == 'warp' and have['match'] == 'start'
cache = json.load(open('tools.json'))['tools']['cache']
assert (cache['l1_bytes'], cache['l2_bytes']) == (65536, 1 << 20)
for key in ('launches', 'bytes', 'transfers', 'transfer_count', 'in_launch', 'ambiguous'): # allocations may lie elsewhere
    if key == 'bytes': # multiprocessors may be others
        for d in (have, want): d[key] = {k: v for k, v in d[key].items() if k[0] != 'S'}
    assert have[key] == want[key], key
P
done
# Closed forms: halo of 9 CTAs of 64 words in 5 launches (tests/app/exchanges.py has the rest).
"$MARGAY" run -q -t communication --device emu -o halo -- "$EX/exchange" halo 9 5 > /dev/null
"$MARGAY" report halo --json > halo.json
"$MARGAY" report halo > halo.text
"$MARGAY" report halo --html halo.html > /dev/null
"$MARGAY" report halo --csv --tool communication --table communication > halo.csv
PYTHONPATH=$ROOT/tests/page python3 - <<'P'
import csv, json, unpack
c = json.load(open('halo.json'))['tools']['communication']
assert c['transfer_count'] == len(c['transfers']) == 4 * (9 + 2 * 8)
store = c['bytes']['KCV']['halo']
assert [store[str(s)]['store'] for s in range(5)] == [9 * 256] * 4 + [0]
row, = csv.DictReader(open('halo.csv'))
assert row['kernel_name'] == 'halo' and int(row['read_later']) == 4 * 9 * 256 and int(row['of_earlier_launches']) == 4 * (9 * 256 + 2 * 8 * 4)
assert 'pairs' not in row
assert 'read later' in open('halo.text').read() and '9216' in json.dumps([v for k, v in unpack.parts('halo.html').items() if k.startswith('tool-')])
P
# What others wrote into the trace stays; a program without launches and one that is killed; wrong options.
"$MARGAY" run -q -t communication -t timeline --device emu -o line -- "$EX/exchange" ring 4 3 > /dev/null
"$MARGAY" trace info line > /dev/null
"$MARGAY" report line --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["tools"]["communication"]["transfer_count"] == 8'
"$MARGAY" run -q -t cache -o nothing --device emu -- true
[ ! -e nothing/trace ]
"$MARGAY" report nothing > /dev/null
cat > killed.sh <<S
#!/bin/sh
"$EX/exchange" ring 4 3
kill -9 \$\$
S
chmod +x killed.sh
rc=0
"$MARGAY" run -q -t communication --device emu -o killed -- ./killed.sh > /dev/null || rc=$?
[ $rc = 137 ]
"$MARGAY" report killed --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["tools"]["communication"]["transfer_count"] == 8'
# Two processes: a result each. What some launches did natively is not known, and the report says so.
"$MARGAY" run -q -t communication --device emu -o two -- sh -c "'$EX/exchange' ring 4 3; '$EX/exchange' ring 6 3" > /dev/null
"$MARGAY" report two --json | python3 -c '
import json, sys
v = json.load(sys.stdin)["tools"]["communication"]["transfer_count"]
assert [x["value"] for x in v] == [8, 12], v'
"$MARGAY" run -q -t communication --launches 0,2 --device emu -o some -- "$EX/exchange" ring 3 3 > /dev/null
"$MARGAY" report some > text
grep -q 'launches ran native' text
for bad in communication,entity=grid cache,l1=5 cache,size=3; do
    rc=0
    "$MARGAY" run -t $bad --device emu -o bad -- "$EX/exchange" ring 3 3 > out 2> err || rc=$?
    [ $rc = 120 ] && grep -q 'tool c' err || { cat err; exit 1; }
done
"$MARGAY" tools -v communication | grep -q 'entity=cta'
