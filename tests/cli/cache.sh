#!/usr/bin/env bash
# margay study cache: sectors as tool memory counts them, formulas of the example exchange, errors.
set -euo pipefail
[ -x "$EX/stencil" ] || { echo "the examples were not built: need clang"; exit 77; }
for program in 'stencil 48 2' 'matmul 32' 'bfs 500' 'histogram 3000'; do
    read -r name args <<<"$program"
    "$MARGAY" run -q -t trace --device emu -o t.$name -- "$EX/$name" $args > /dev/null
    "$MARGAY" run -q -t memory --device emu -o m.$name -- "$EX/$name" $args > /dev/null
    "$MARGAY" study cache t.$name --json > $name.json
    "$MARGAY" report m.$name --json > $name.memory.json
    if [ $name != bfs ]; then # which thread claims a node first is a race
        python3 "$ROOT/tests/cli/cache.py" $name.json $name.memory.json
    fi
done
# Each access and each buffer: against caches that are lists, in which sizes make them run over; buffers are called as tool memory
# calls them; the CPU device, whose multiprocessors have the same CTAs in the same order, prints the same.
for program in 'stencil 48 2' 'matmul 48' 'exchange multicast 12 3' 'histogram 3000'; do
    read -r name args <<<"$program"
    for device in emu cpu; do
        "$MARGAY" run -q -t trace --device $device -o p.$name.$device -- "$EX/$name" $args > /dev/null
        "$MARGAY" study cache p.$name.$device --l1 4096 --l2 8192 --interleavings 3 --seed 7 --csv $device.csv --json > $device.json
    done
    cmp emu.json cpu.json
    cmp emu.csv cpu.csv
    "$MARGAY" trace convert p.$name.emu --to csv -o lanes.$name.csv 2> /dev/null
    "$MARGAY" trace print p.$name.emu --kind trace.step --json > steps.json
    python3 "$ROOT/tests/cli/cache_parts.py" emu.json lanes.$name.csv steps.json
    python3 - <<'END'
import csv, json
d = json.load(open('emu.json'))['cache']
assert d['seeds'] == [7, 8, 9]
rows = list(csv.DictReader(open('emu.csv')))
assert [r['row'] for r in rows] == ['access'] * len(d['sites']) + ['buffer'] * len(d['buffers'])
for r, x in zip(rows, d['sites'] + d['buffers']):
    assert [int(r['l1_hits_least']), int(r['l1_hits_most'])] == x['l1_hit_range'] and int(r['l2_first']) == x['l2_first']
    assert r['buffer'] == (x.get('name', x.get('buffer')) or '') and r['allocation'] == str(x.get('allocation', ''))
END
done
python3 - <<'END'
import json
m = json.load(open('matmul.memory.json'))
want = {s['ptx_line']: s['buffer'] for s in m['tools']['memory']['sites'] if s['space'] == 'global'}
got = {s['ptx_line']: s['buffer'] for s in json.load(open('matmul.json'))['cache']['sites']}
assert got == want and None not in got.values(), (got, want)
END
hows='0 1 2 3 4 5 6 7'
[ "${VARIANT:-release}" = release ] || hows="$(($$ % 4)) $(($$ % 4 + 4))"
# An acquire beyond its CTA empties L1: of 4 sectors that a warp reads twice none hits, with another instruction between all do.
if [ -n "$NVCC" ]; then
    "$NVCC" -arch=sm_90 -cudart shared "$ROOT/tests/cli/cache_acquire.cu" -o acquire
    for how in $hows; do
        "$MARGAY" run -q -t trace --device emu -o a.$how -- ./acquire $how
        "$MARGAY" study cache a.$how --json > a.$how.json
        "$MARGAY" trace convert a.$how --to csv -o lanes.a.csv 2> /dev/null
        "$MARGAY" trace print a.$how --kind trace.step --json > steps.json
        python3 "$ROOT/tests/cli/cache_parts.py" a.$how.json lanes.a.csv steps.json
    done
    python3 - "$hows" <<'END'
import json, sys
for how in map(int, sys.argv[1].split()):
    d = json.load(open(f'a.{how}.json'))['cache']
    k, l2 = d['kernels'][0], d['l2']
    hits = 0 if how in (1, 2, 3, 4) else 4
    flag = how not in (0,) # its sector
    cta = how == 5         # looks into L1
    assert k['l1_hits'] == [hits, hits], (how, k)
    assert k['first_sectors'] == 4 + 4 + cta and k['load_sectors'] + k['atomic_sectors'] == 8 + flag, (how, k)
    assert l2['sectors'] == 8 - hits + flag + 4 and l2['first_sectors'] == 4 + flag + 4, (how, l2)
END
fi
# L2: a thread a row of 8 sectors: 64 bytes come at a time, so half of the sectors hit, and none if they are fetched alone. A sector
# that n multiprocessors read once: each one's read may miss, one does.
if [ -n "$NVCC" ]; then
    "$NVCC" -arch=sm_90 -cudart shared "$ROOT/tests/cli/cache_l2.cu" -o l2
    for device in emu cpu; do
        for what in 'rows 1' 'same 2' 'same 9'; do
            read -r name ctas <<<"$what"
            "$MARGAY" run -q -t trace --device $device -o l2.$device.$name.$ctas -- ./l2 $name $ctas
            "$MARGAY" study cache l2.$device.$name.$ctas --json > l2.$device.$name.$ctas.json
        done
    done
    python3 - <<'END'
import json
for device in 'emu', 'cpu':
    l2 = lambda name: json.load(open(f'l2.{device}.{name}.json'))['cache']['l2']
    rows, two, nine = l2('rows.1'), l2('same.2'), l2('same.9')
    assert (rows['read_sectors'], rows['read_hits'], rows['read_hits_guess']) == (256, [0, 128], 128), rows
    assert rows['sizes'][-1]['hits'] == [0, 128], rows
    assert (two['read_sectors'], two['read_hits']) == (2, [0, 1]), two
    assert (nine['read_sectors'], nine['read_hits']) == (9, [0, 8]) and nine['read_hits_guess'] in (6, 7, 8), nine
END
fi
# One CTA reads what 6 CTAs wrote: gather. 64 values of 4 bytes are 8 sectors; what CTA 0 reads was touched by nobody on its
# multiprocessor in this launch. L2 has all of it from the launch before, but in which half is not known; the first launch touches
# each sector first.
"$MARGAY" run -q -t trace --device emu -o gather -- "$EX/exchange" gather 6 2 > /dev/null
"$MARGAY" study cache gather --json > gather.json
# A cache of 4 KiB holds the 2 KiB that spread reads twice: CTAs that read one line after the other on one multiprocessor.
"$MARGAY" study cache gather --l1 4096 --l2 4096 > small.text
grep -q 'L2 of 0 MiB' small.text
awk '!/^  - |^  \// && length($0) > 120 { print; bad = 1 } END { exit bad }' small.text || exit 1
python3 - <<'END'
import json
d = json.load(open('gather.json'))['cache']
fill, gather = sorted(d['kernels'], key=lambda k: k['kernel'])
assert (fill['kernel'], gather['kernel']) == ('fill', 'gather')
assert (fill['load_sectors'], fill['store_sectors'], fill['first_sectors'], fill['store_requests']) == (0, 48, 48, 12)
assert (gather['load_sectors'], gather['store_sectors'], gather['first_sectors']) == (48, 8, 56)
assert gather['l1_hits'] == [0, 0] and gather['load_requests'] == 12
l2 = d['l2']
assert (l2['sectors'], l2['first_sectors'], l2['lines']) == (48 + 48 + 8, 56, 14) and l2['hits'] == [0, 48]
END
status=0
"$MARGAY" study cache nowhere > out 2> err || status=$?
[ $status = 3 ] && [ -s err ]
status=0
"$MARGAY" study cache gather gather > out 2> err || status=$?
[ $status = 2 ]
# A result in which members are missing, as of another version, is shown with what it has.
"$MARGAY" run -q --device emu -t cache -o bare -- "$EX/saxpy" 1000 > out 2>&1 || { cat out; exit 1; }
"$MARGAY" report bare > out && [ "$(grep -c '^  kernel.cu:[1-9][0-9]*  [ls][dt].global[^ ]*  argument' out)" = 3 ] || { cat out; exit 1; }
python3 - <<'END'
import glob, json, sqlite3
def without(v):
    if isinstance(v, dict): return {k: without(x) for k, x in v.items() if k not in ('kind', 'file', 'kernel', 'op')}
    return [without(x) for x in v] if isinstance(v, list) else v
c = sqlite3.connect('bare/profile.db')
rows = c.execute("SELECT key, json FROM tool WHERE tool = 'cache'").fetchall()
assert rows
for row, text in rows: c.execute('UPDATE tool SET json = ?, json_zstd = NULL WHERE key = ?', (json.dumps(without(json.loads(text))), row))
c.commit()
END
"$MARGAY" report bare > out && grep -q ' ptx:[1-9]' out || { cat out; exit 1; }
