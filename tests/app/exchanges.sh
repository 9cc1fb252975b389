#!/usr/bin/env bash
# margay study communication on exchanges whose every data set and metric is known by formula (exchanges.py), on the
# emulator and the CPU device; the same bytes for 1, 2 and 4 workers; random kernels' traces against a plain analysis.
set -euo pipefail
bad=0
[ -x "$EX/exchange" ] || { echo "the example exchange was not built: needs clang"; exit 77; }
try() { # pattern CTAs steps
    local name="$1.$2.$3"
    for device in emu cpu; do
        "$MARGAY" run -q -t trace --device $device -o "$name.$device" -- "$EX/exchange" "$@" > "$name.out" || { cat "$name.out"; return 1; }
        "$MARGAY" study communication "$name.$device" --json --workers 2 > "$name.$device.json"
        python3 "$ROOT/tests/app/exchanges.py" "$name.$device.json" "$@"
    done
    for workers in 1 4; do
        "$MARGAY" study communication "$name.cpu" --json --workers $workers | cmp - "$name.cpu.json"
    done
}
try ring 16 4 || bad=1
try ring 3 2 || bad=1
try halo 9 5 || bad=1
try tree 16 4 || bad=1
try transpose 25 3 || bad=1
try all 7 3 || bad=1
try personal 12 3 || bad=1
try scatter 8 4 || bad=1
try multicast 5 5 || bad=1
try gather 8 4 || bad=1
try add 6 5 || bad=1
# The code of a GPU, over a driver that has the emulator behind it.
stand_in=$B/test/driver
for pattern in 'ring 16 4' 'tree 8 3' 'add 6 5'; do
    [ -e "$stand_in/libcuda.so.1" ] || continue
    rm -rf gpu
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH=$stand_in XDG_CACHE_HOME=$PWD/cache "$MARGAY" run -q -t trace --device nvidia -o gpu -- "$EX/exchange" $pattern > out || bad=1
    "$MARGAY" study communication gpu --json > gpu.json
    # shellcheck disable=SC2086
    python3 "$ROOT/tests/app/exchanges.py" gpu.json $pattern || bad=1
done
exit $bad
