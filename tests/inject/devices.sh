#!/bin/sh
# Two contexts at once (devices.c): every launch of both is counted, under its own device and context, and
# what a kernel counts in its own variables is right; on one device and on two. On a real GPU's machine: tests/gpu/devices.sh.
set -u
export XDG_CACHE_HOME=$PWD/cache
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH=$B/test/driver EMU_GPU_DEVICES=2
gcc -O1 -o devices "$ROOT/tests/gpu/devices.c" -ldl -lpthread || exit 1
# a second run finds the machine code kept, wherever its memory lies: no address is in it
kept() { ls -l --time-style=full-iso cache/margay/twins 2> /dev/null | sort | sha256sum; }
for pair in ${PAIRS:-0,0 0,1 1,0}; do
    pair=$(echo "$pair" | tr , " ")
    rm -rf profile
    timeout 300 "$MARGAY" run -q --device nvidia -o profile -- ./devices $pair ${more:-} > out 2> err && [ "$(tail -n 1 out)" = ok ] &&
        "$MARGAY" report profile --json > out.json || { echo "devices $pair: exit $?"; cat out err; exit 1; }
    python3 - $pair <<'P' || exit 1
import json, sys
r, devices = json.load(open('out.json')), [int(x) for x in sys.argv[1:3]]
c = r['coverage']
assert c['launches'] == c['instrumented'] == 162 and c['failed'] == c['unknown'] == 0, c
kernels, n = r['kernels'], {}
for l in r['launches']:
    n[l['device'], l['ctx'], kernels[l['kernel']]['name']] = n.get((l['device'], l['ctx'], kernels[l['kernel']]['name']), 0) + 1
assert sorted((k[0], k[2], v) for k, v in n.items()) == sorted([(devices[0], 'fetch', 2), (devices[0], 'add', 80), (devices[1], 'add', 80)]), n
for name, launches, entries in ('add', 160, (1024, 1000, 1024)), ('fetch', 2, (1000,)):
    same = [k for k in kernels if k['name'] == name]
    got = [sum(k['blocks'][b]['thread_entries'] for k in same) for b in range(len(entries))]
    assert sum(k['launches'] for k in same) == launches and got == [launches * e for e in entries], (name, got)
assert all(l['complete'] for l in r['launches'])
print('ok', *devices, open('out').readline().strip())
P
    [ -z "${more:-}" ] || [ "$before" = "$(kept)" ] || { echo "machine code was made again"; exit 1; }
    before=$(kept) more=$((${more:-0} + 7))
done
[ "$(ls cache/margay/twins | wc -l)" = 2 ] || { echo "not one twin a kernel"; ls cache/margay/twins; exit 1; }
