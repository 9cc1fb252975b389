#!/bin/sh
# bounds: each of eleven planted faults gives one finding that names its line, thread and kind; it is not performed, the
# launch goes on, and a program without faults has no findings. As on emulator and CPU device so through the nvidia backend,
# with a driver over the emulator in NVIDIA's place (DEVICES=nvidia by itself: a GPU).
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
src=$ROOT/tests/tool/bounds.cu
"$NVCC" -cudart shared -lineinfo -O1 -gencode arch=compute_90,code=compute_90 -o faults "$src"
for kind in 0 1 2 3; do "$NVCC" -cudart shared -O1 -DKIND=$kind -gencode arch=compute_90,code=compute_90 -o inside$kind "$ROOT/tests/tool/bounds_inside.cu"; done
for device in ${DEVICES:-emu cpu nvidia}; do
    [ $device = nvidia ] && [ -z "$DEVICES" ] && export XDG_CACHE_HOME="$PWD/cache" LD_LIBRARY_PATH="$B/test/driver:$B/lib/margay/cudart"
    for n in 0 1 2 3 4 5 6 7 8 9 10 11; do
        rm -rf d
        "$MARGAY" run -q --device "$device" -t bounds -o d -- ./faults $n > out 2> err || { echo "$device, fault $n: status $?"; cat out err; exit 1; }
        grep -q 'no error' out || { echo "$device, fault $n: the launch did not go on"; cat out; exit 1; }
        line=$(grep -n "/\* $n \*/" "$src" | cut -d: -f1)
        "$MARGAY" report d --json > json
        python3 - "$device" $n "${line:-0}" <<'P'
import json, sys
device, n, line = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
kinds = [None, 'write', 'read', 'read', 'write', 'read', 'atomic', 'read', 'write', 'write', 'write', 'write']
found = json.load(open('json'))['tools']['bounds']['findings']
if not n:
    assert not found, (device, found)
    sys.exit()
assert len(found) == 1, (device, n, found)
f = found[0]
at = f['inlined'].split(' <- ')[-1].rsplit(':', 1) if f.get('inlined') else [f['file'], f['line']] # atomics are inlined from a header
assert (f['kind'], int(at[1]), f['thread'], f['cta'], f['times'], f['launch']) == (kinds[n], line, [n + 2, 0, 0], [0, 0, 0], 1, 1), (device, n, f)
assert at[0].endswith('bounds.cu') and f['bytes'] == {5: 16, 10: 1}.get(n, 4) and f['space'] == ('shared' if n == 11 else 'global'), (device, n, f)
P
    done
    rm -rf d
    "$MARGAY" run --device "$device" -t bounds -o d -- ./faults 99 > out 2> err && "$MARGAY" report d --json > json || { cat out err; exit 1; }
    grep -q 'bounds: launches are not checked' err && grep -A1 'outside of live allocations' err | grep -q '^ *none' || { echo "$device: nothing is said of a launch that is not checked"; cat err; exit 1; }
    python3 -c "import json; b = json.load(open('json'))['tools']['bounds']; assert b['unchecked_launches'] == 1 and not b['findings'], b"
    # the grid's barrier, what kernels allocate (which is not checked), another CTA's shared memory, what a graph allocates
    for kind in '0 784128 0' '1 49920 1' '2 46464 0' '3 97920 0'; do
        set -- $kind
        rm -rf d
        timeout 200 "$MARGAY" run -q --device "$device" -t bounds -o d -- ./inside$1 > out 2> err || { echo "$device, inside $1: status $?"; cat out err; exit 1; }
        [ "$(cat out)" = "$2 no error" ] || { echo "$device, inside $1:"; cat out err; exit 1; }
        "$MARGAY" report d --json | python3 -c "import json, sys; b = json.load(sys.stdin)['tools']['bounds']; assert not b['findings'] and b['unchecked_launches'] == $3, b"
    done
done
