#!/bin/sh
# Accesses at distances of up to 64 MiB from a buffer of each kind (distances.c), some 1,200 in a process, on emulator and CPU
# device: those outside of all allocations, as cuMemGetAddressRange tells, stop their launch, and the line that says so names the
# buffer; what the driver answers is the same with counters in registers, in words beside the program's shared and local memory,
# and without a tool; no count changes. Reads just before or behind device memory pass (docs/schedule.md). ALL=1: all distances of all kinds, some 3,000.
set -u
gcc -O1 -Wall -Werror -I"$ROOT/src" -o distances "$ROOT/tests/inject/distances.c" -ldl || exit 1
[ -e "$B/lib/margay/libmargay-cpu.so" ] && cpu=cpu || cpu=
[ "${VARIANT:-release}" = release ] || cpu= # the CPU device under sanitizers: tests/inject/scenarios.sh, tools.sh, records.sh
export MARGAY_CPU_TIER=sync
for device in ${DEVICES:-emu $cpu}; do
    "$MARGAY" run -t none --device $device -o none -- ./distances ${SEED:-1} ${ALL:+all} > native.out 2> native.err || { echo "$device: status $?"; cat native.out native.err; exit 1; }
    for tool in blocks blocks,counters=register,warps=off; do
        "$MARGAY" run -t $tool --device $device -o profile -- ./distances ${SEED:-1} ${ALL:+all} > out 2> err || { echo "$device, $tool: status $?"; tail out err; exit 1; }
        cmp native.out out || { echo "$device, $tool: the program sees something else"; diff native.out out | head; exit 1; }
        "$MARGAY" report profile --json --per-launch > out.json && python3 - native.out native.err err <<'P' || { echo "$device, $tool"; exit 1; }
import json, re, sys
ZONE = 4096 + 768 # on each side of a buffer: nothing else is nearer
tried = [re.fullmatch(r'(\w+) (\w+) ([+-]\d+): (\d+) (in|out)', l) for l in open(sys.argv[1]).read().splitlines()]
assert len(tried) > 1100 and all(tried), len(tried)
stopped = 0
for kind, access, distance, error, where in (t.groups() for t in tried):
    stopped += error == '700'
    assert error in ('0', '700'), (kind, access, distance, error)
    if where == 'in': assert error == '0', (kind, access, distance)
    elif access[0] == 'r' and abs(int(distance)) <= ZONE and kind != 'shared':
        assert (error == '0') == (kind in ('malloc', 'async', 'pool', 'array')), (kind, access, distance, error)
    elif error == '0': assert access[0] == 'r', ('let pass', kind, access, distance)
passed = sum(t[5] == 'out' and t[4] == '0' for t in tried)
assert stopped > 1000 and 100 < passed < len(tried) // 6, (stopped, passed)
for text in map(open, sys.argv[2:]):
    lines = [l for l in text if 'out-of-bounds' in l and 'read as 0' not in l]
    assert len(lines) == stopped, (len(lines), stopped)
    for l in lines:
        assert re.search(r'the buffer of arg 0 `buffer`|which was freed|variable of|the CTA has', l), l
r = json.load(open('out.json'))
k, good = {x['id']: x for x in r['kernels']}, {}
for l in r['launches']:
    if l['complete']: good[l['kernel']] = good.get(l['kernel'], 0) + 1
assert len(r['launches']) == len(tried), len(r['launches'])
for i, n in good.items():
    entries = [b['thread_entries'] for b in k[i]['blocks']]
    assert entries == [64 * n, n, 64 * n], (k[i]['name'], n, entries)
assert sum(good.values()) == len(tried) - stopped, (good, stopped)
P
        rm -rf profile
    done
    rm -rf none
    echo "ok   $device"
done
