#!/bin/sh
# --verify, on the emulator and on the nvidia backend over it (on a GPU: tests/gpu/verify.sh): the application sees what it sees without,
# launches are compared or named with the reason, a byte that a twin writes wrong is found and does not
# reach the application.
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache
devices=nvidia
[ -n "${REAL_GPU:-}" ] || { export LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart; devices="emu nvidia"; }
gcc -O1 -o verify "$ROOT/tests/inject/verify.c" -ldl || exit 1
cat > look.py <<'P'
import json, sys
what, r = sys.argv[1], json.load(open('out.json'))
v, c = r['tools']['margay']['verify'], r['coverage']
why = {x['reason']: x['launches'] for x in v['not_compared']}
native = {(x['kernel'], x['reason']): x['launches'] for x in c['native']}
shared = '--verify: it writes memory that the host shares, so it ran once'
if what == 'all':
    assert (v['launches'], v['differences'], v['first']) == (5, 0, None), v
    assert why == {'it writes memory that the host shares, so it ran once': 2, 'captured in a graph': 1}, why
    assert 1 <= v['excluded_bytes'] <= 2048 and v['bytes'] == 3 * (1024 + 4) + 1024 + 2048, v # what they may write, no more
    assert native == {('host', shared): 1, ('add', shared): 1}, native
    assert (c['launches'], c['instrumented'], c['failed'], c['unknown']) == (8, 6, 0, 0), c
    k = {k['name']: k for k in r['kernels']}
    assert k['add']['blocks'][0]['thread_entries'] == 4 * 256, k['add']['blocks'][0]
elif what == 'planted':
    f = v['first']
    assert v['differences'] >= 3, v
    assert (f['kernel'], f['launch'], f['offset'], f['native'], f['instrumented'], f['bytes'], f['error']) == ('add', 0, 0, 8, 0xa5, 1, None), f
    assert int(f['address'], 16) and f['allocation'] is not None, f
elif what == 'spin':
    assert v['launches'] == 0 and list(why) == ['it did not end while its launch waited, so it ran once'], v
    assert c['launches'] == 1 and c['native'][0]['reason'] == '--verify: ' + list(why)[0], c
P
check() { # NAME DEVICE EXIT STDERR-PATTERN ARGS...
    name=$1 device=$2 want=$3 says=$4
    shift 4
    rm -rf profile
    timeout 300 "$MARGAY" run --verify --device "$device" -o profile -- ./verify "$@" > out 2> err
    rc=$?
    [ "$name" = planted ] && { sed -i 4q out; sed -i 4q plain; } # a graph's node is not compared, so its wrong byte stays
    if [ $rc = "$want" ] && cmp -s out plain && [ "$(grep -Ec "$says" err)" = 1 ] && "$MARGAY" report profile --json > out.json &&
        python3 look.py "$name" 2>> err; then
        echo "ok   $name, $device"
    else
        echo "FAIL $name, $device: exit $rc"
        diff out plain
        cat err
        failed=1
    fi
}
for device in $devices; do
    "$MARGAY" run -q -t none --device $device -o none -- ./verify > plain 2> err || { echo "FAIL without"; cat err; failed=1; }
    check all $device 0 '^margay: --verify: 5 launches compared, [1-9][0-9]* bytes? left out'
    export MARGAY_PLANT=1
    check planted $device 124 '^margay: --verify: [0-9]+ launches .* the first: launch 0, kernel add, address 0x[0-9a-f]+ \(allocation [0-9]+, offset 0\) holds 0xa5, natively 0x08; 1 byte differs; it uses results of atomics'
    unset MARGAY_PLANT
    echo 'spin: ended' > plain
    check spin $device 0 '1 not compared \(1: it did not end' spin
done
cat > same.py <<'P'
import json
r = json.load(open('out.json'))
v, c = r['tools']['margay']['verify'], r['coverage']
assert v['launches'] == c['launches'] == c['instrumented'] > 0 and not v['not_compared'] and v['differences'] == 0, (v, c)
P
for e in saxpy reduce histogram bfs; do
    rm -rf profile
    "$MARGAY" run --verify --device nvidia -o profile -- "$EX/$e" > out 2> err && "$MARGAY" report profile --json > out.json &&
        python3 same.py 2>> err && echo "ok   $e" || { echo "FAIL $e"; cat err; failed=1; }
done
# --repeat: every launch both codes by turns on the memory that it found, timed, and the same counts each time
cat > again.py <<'P'
import json
r = json.load(open('out.json'))
c, v = r['coverage'], r['tools']['margay']['verify']
assert v['launches'] == 1 and v['differences'] == 0, v
assert (c['launches'], c['instrumented'], c['repeats'], c['native']) == (1, 1, 6, []), c
assert [(x['ran'], x['repeat']) for x in r['launches']] == 3 * [('native', True)] + 3 * [('instrumented', True)] + [('instrumented', False)], r['launches']
assert r['kernels'][0]['launches'] == 1 and r['kernels'][0]['repeats'] == 6 and r['kernels'][0]['both_times']['launches'] == 1
assert all(x['time_ns'] for x in r['launches']), r['launches']
once = json.load(open('once.json'))
assert [b['thread_entries'] for b in r['kernels'][0]['blocks']] == [b['thread_entries'] for b in once['kernels'][0]['blocks']]
P
for device in $devices; do
    rm -rf profile again
    "$MARGAY" run -q --device $device -o profile -- "$EX/histogram" > plain 2> err && "$MARGAY" report profile --json > once.json &&
        "$MARGAY" run --repeat 3 --device $device -o again -- "$EX/histogram" > out 2>> err && "$MARGAY" report again --json > out.json &&
        cmp out plain && python3 again.py 2>> err && echo "ok   repeat, $device" || { echo "FAIL repeat, $device"; cat err; failed=1; }
done
# On the CPU device either code is compiled from its first launch on: no run of a fresh kernel is emulated, which takes some
# hundred times as long. (An empty store: whatever was compiled before does not help.) Repeats add to no tool.
if [ -e "$B/lib/margay/libmargay-cpu.so" ]; then
    cat > tiers.py <<'P'
import json
r = json.load(open('out.json'))
b, t = r['kernels'][0]['both_times'], [x['time_ns'] for x in r['launches']]
assert b and b['launches'] == 1 and b['instrumented_ns'] < 20 * b['native_ns'], b
assert r['coverage']['launches'] == 1 and r['coverage']['repeats'] == 16, r['coverage']
assert json.load(open('once.json'))['kernels'][0]['blocks'] == r['kernels'][0]['blocks']
P
    rm -rf again profile
    "$MARGAY" run -q --device cpu -t blocks -o profile -- "$EX/histogram" > out 2> err && "$MARGAY" report profile --json > once.json &&
        XDG_CACHE_HOME=$PWD/fresh MARGAY_CPU_VERBOSE=1 "$MARGAY" run --repeat 8 --device cpu -o again -- "$EX/histogram" > out 2> err && "$MARGAY" report again --json > out.json &&
        python3 tiers.py 2>> err && echo "ok   tiers" || { echo "FAIL tiers"; cat err; failed=1; }
    rm -rf again profile
    "$MARGAY" run -q --device cpu -t memory -o profile -- "$EX/histogram" > out 2> err && "$MARGAY" run -q --repeat 2 --device cpu -t memory -o again -- "$EX/histogram" > out 2> err &&
        "$MARGAY" report profile --csv --table memory > want 2>> err && "$MARGAY" report again --csv --table memory > out 2>> err && cmp want out 2>> err || { echo "FAIL repeats count in memory"; cat err; failed=1; }
fi
# runs of one code come in turns of four, and the launch's own is the last
rm -rf turns
"$MARGAY" run -q --repeat 6 --device emu -o turns -- "$EX/histogram" > out 2> err && "$MARGAY" report turns --json > out.json &&
    python3 -c 'import json; print("".join(x["ran"][0] for x in json.load(open("out.json"))["launches"]))' > order
[ "$(cat order)" = nnnniiiinniii ] && echo "ok   turns" || { echo "FAIL turns: $(cat order)"; cat err; failed=1; }
# a difference of a kernel without atomics: what may be its cause, and what tells
for device in $devices; do
    MARGAY_PLANT=1 "$MARGAY" run --verify --device $device -o planted -- "$EX/saxpy" > out 2> err
    [ $? = 124 ] && grep -q 'differs*; a race may be the cause, too: --check names races$' err && echo "ok   cause, $device" || { echo "FAIL cause, $device"; cat err; failed=1; }
done
"$MARGAY" run --verify -t none -- ./verify > out 2> err
[ $? = 120 ] && grep -q 'compares instrumented launches' err || { echo "FAIL -t none"; failed=1; }
"$MARGAY" run --repeat 2 -t none -- ./verify > out 2> err
[ $? = 120 ] && grep -q 'compares instrumented launches' err || { echo "FAIL --repeat -t none"; failed=1; }
exit $failed
