#!/bin/sh
# Memory in use, from calls that allocate and free: the program counts its own (timeline.c, memory), and report, Perfetto,
# Chrome and SQLite say the same after each call; two processes of one run are apart.
set -u
failed=0
gcc -O1 -Wall -o client "$ROOT/tests/inject/timeline.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
export XDG_CACHE_HOME=$PWD/cache ROOT
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH="$B/test/driver"
cat > check.py <<'P'
import collections, json, os, sqlite3, sys
sys.path.insert(0, os.path.join(os.environ['ROOT'], 'tests/cli'))
from export_spans import fields, one
want = [1 << 16] + [int(l.split()[1]) for l in open('out') if l.startswith('use ')]
n = int(sys.argv[1])
t = json.load(open('out.json'))['tools']['timeline']['memory']
assert len(t) == n and all(m['most_bytes'] == max(want) and m['left_bytes'] == want[-1] for m in t), (t, max(want))
ups = sum(b > a for a, b in zip([0] + want, want))
assert all(m['allocations'] == ups and m['frees'] == len(want) - ups and m['device'] == 0 for m in t), (t, ups)
of = collections.defaultdict(list)
for e in json.load(open('t.json'))['traceEvents']:
    if e['ph'] == 'C':
        assert e['name'] == 'memory in use, device 0', e
        of[e['pid']].append((e['ts'], e['args']['bytes']))
assert sorted(of) == sorted(m['process'] for m in t) and all([b for _, b in v] == want for v in of.values()), 'chrome'
assert all(v == sorted(v, key=lambda x: x[0]) for v in of.values())
tracks, samples = {}, collections.defaultdict(list)
for _, packet in fields(open('t.pf', 'rb').read()):
    packet = fields(packet)
    d = fields(one(packet, 60, b''))
    if one(d, 8) is not None:
        tracks[one(d, 1)] = one(d, 2).decode(), dict(fields(one(d, 8)))
    e = fields(one(packet, 11, b''))
    if one(e, 9) == 4:
        samples[one(e, 11)].append(one(e, 30))
mine = [u for u, (name, unit) in tracks.items() if name == 'memory in use' and unit == {3: 3}]
assert len(mine) == n and all(samples[u] == want for u in mine), 'perfetto'
db = sqlite3.connect('t.db')
for m in t:
    rows = db.execute('SELECT in_use, s.name FROM memory m JOIN spans s USING (process, correlation) WHERE process = ? ORDER BY m.id', (m['process'],)).fetchall()
    assert [r[0] for r in rows] == want and {r[1] for r in rows} > {'cuMemAlloc_v2', 'cuMemFree_v2', 'cuMemAllocPitch_v2', 'cuMemCreate', 'cuMemRelease'}, rows[:3]
P
try() { # DEVICE PROCESSES OPTIONS COMMAND...
    device=$1 n=$2 tool=$3
    shift 3
    rm -rf profile t.db
    "$MARGAY" run -q -t "$tool" --device "$device" -o profile -- "$@" > out 2> err && grep -qx ok out && [ ! -s err ] &&
        "$MARGAY" report profile --json > out.json && "$MARGAY" export chrome profile -o t.json && "$MARGAY" export perfetto profile -o t.pf &&
        "$MARGAY" export sqlite profile -o t.db && "$MARGAY" export csv profile -o t.csv && ! grep -q ,memory, t.csv && python3 check.py "$n" 2>> err &&
        echo "ok   $device, $tool, $n" || { echo "FAIL $device $tool $n"; tail -n 5 err; failed=1; }
}
ptx=$ROOT/tests/inject/fill.ptx
devices="emu nvidia"
[ -n "${REAL_GPU:-}" ] && devices=nvidia
for device in $devices; do
    try $device 1 timeline ./client "$ptx" memory 41
    try $device 1 timeline,arguments=off ./client "$ptx" memory 6
done
printf './client "$1" memory 9 > a & ./client "$1" memory 9; wait; cmp a a\n' > job.sh
try ${device} 2 timeline sh job.sh "$ptx"
exit $failed
