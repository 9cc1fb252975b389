#!/bin/sh
# Records and events of one-liners and probes in C: what arrives has a closed form, on the emulator, the CPU device
# and through the nvidia backend.
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache
fail() { echo "FAIL $*"; failed=1; }
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia; do
    [ $device != nvidia ] || export LD_LIBRARY_PATH=$B/test/driver # over the emulator, in NVIDIA's place
    rm -rf p q
    "$MARGAY" run -q --device $device -o p -e 'st.global { emit(addr, cta * ntid.x + tid, -1) } kernel:exit /tid == 7/ { emit(cta) }
        kernel:entry { begin(all) } before ld.global { begin(load) } after ld.global { end(load) } kernel:exit { end(all) }' -- "$EX/saxpy" 1000 > out 2> err || { fail "$device: exit $?"; cat err; }
    "$MARGAY" report p --json > p.json
    python3 - > why 2>&1 <<'P' || { fail "$device: one-liner"; cat why; }
import csv, glob, json
e = json.load(open('p.json'))['tools']['expr']
[name] = glob.glob('p/records.*.csv')
rows = list(csv.reader(open(name)))
assert rows[0] == ['from', 'launch', 'kernel', 'cta', 'warp', 'lane', 'number', 'values'] and name == 'p/' + e['emitted']['file']
stores = [list(map(int, r[3:])) for r in rows[1:] if r[0] == '1:13']
exits = [list(map(int, r[3:])) for r in rows[1:] if r[0] != '1:13']
assert len(stores) == 1000 and e['emitted']['received'] == len(rows) - 1 == 1000 + len(exits)
base = {addr - 4 * i for cta, warp, lane, number, addr, i, minus in stores}
size = 1024 // len(exits)
assert len(base) == 1 and sorted(r[5] for r in stores) == list(range(1000)) and all(r[6] == -1 and r[5] == r[0] * size + r[1] * 32 + r[2] for r in stores)
assert sorted(r[4] for r in exits) == list(range(len(exits))) and all(r[0] == r[4] and (r[1], r[2]) == (0, 7) for r in exits), exits
by = {x['event']: x for x in e['events']}
assert e['lost'] == 0 and by['all']['threads'] == 1024 and by['all']['groups'] == 32 and by['load']['threads'] == 2000, by
assert all(x['open'] == x['stray_ends'] == 0 for x in by.values()) and by['all']['inclusive_cycles'] - by['all']['exclusive_cycles'] == by['load']['inclusive_cycles'] > 0
P
    "$MARGAY" run -q --device $device -o q --probe "$ROOT/examples/probes/waits.c" -- "$EX/reduce" 1000 > out 2> err || { fail "$device: exit $?"; cat err; }
    "$MARGAY" report q --json > q.json
    python3 - > why 2>&1 <<'P' || { fail "$device: probe in C"; cat why; }
import csv, glob, json
e = json.load(open('q.json'))['tools']['expr']
rows = list(csv.DictReader(open(glob.glob('q/records.*.csv')[0])))
[wait] = e['events'] # 4 CTAs of 256 threads, 9 barriers each
assert (wait['event'], wait['threads'], wait['groups'], wait['open'], wait['stray_ends']) == ('wait', 9216, 288, 0, 0), wait
assert len(rows) == 36 and all(r['from'] == 'goes' and r['lane'] == '0' for r in rows)
assert sorted((int(r['cta']), int(r['values']), r[None][1]) for r in rows) == [(c, l, '32') for c in range(4) for l in [9] + [12] * 8], rows[:3]
P
done
unset LD_LIBRARY_PATH
rm -rf p
"$MARGAY" run -q --device emu --channel drop -o p -e 'access.global { emit(addr, bits, clock, lane, cta, tid, sm, time) }' -- "$EX/matmul" 128 > out 2> err || { fail "exit $?"; cat err; }
"$MARGAY" report p --json | python3 -c '
import json, sys
e = json.load(sys.stdin)["tools"]["expr"]
assert e["emitted"]["received"] + 32 * e["channel"]["dropped_records"] == 128 * 128 * 17, e' || fail "drop"
for bad in 'bar { emit() }' 'bar { emit(kernel) }' 'bar { emit(1, 2, 3, 4, 5, 6, 7, 8, 9) }' 'bar { begin(1) }' 'bar { end }'; do
    "$MARGAY" run --device emu -o p -e "$bad" -- "$EX/reduce" > out 2> err && fail "taken: $bad"
    grep -q '^.*1:[0-9]*: ' err || { fail "no place: $bad"; cat err; }
done
cat > bad.c <<'P'
#include <margay/probe.h>
MG_EVENT(a);
MG_EVENT(b);
MG_PROBE(p, "bar")
{
    mg_event_begin(mg_tid() & 1 ? a : b);
}
P
"$MARGAY" run --device emu -o p --probe bad.c -- "$EX/reduce" > out 2> err && fail "taken: bad.c"
grep -q 'bad.c:6.*event of mg_event_begin is chosen while the probe runs' err || { fail "bad.c"; cat err; }
exit $failed
