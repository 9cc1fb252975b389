#!/usr/bin/env bash
# --check over CUDA's runtime: memory of cudaMalloc is undefined, also when it is handed out anew; what the host wrote is not;
# stores of undefined values are told once the host has them, after copies within the device as well. A run's coverage and
# `margay ptx check` name the kernel that sums up into what it never set.
set -euo pipefail
[ -x "$NVCC" ] || { echo "no nvcc"; exit 77; }
"$NVCC" -cudart shared -arch=sm_90 -lineinfo -o undefined "$ROOT/tests/tool/undefined.cu"
line() { grep -n "// $1" "$ROOT/tests/tool/undefined.cu" | cut -d: -f1; }
run() { # CASE TOOL: findings of kind "uninitialised", "use space line" each
    "$MARGAY" run --device "${3:-emu}" --check -t "$2" -o "c$1-$2" -- ./undefined "$1" >out 2>err || { cat err; exit 1; }
    grep -qx well out
    "$MARGAY" report --json "c$1-$2" | python3 -c "
import json, sys
for f in json.load(sys.stdin)['tools']['check']['findings']:
    if f['kind'] == 'uninitialised': print(f['use'], f['space'], f['line'])"
}
is() { # CASE WANT
    for tool in none blocks; do
        got=$(run "$1" $tool)
        [ "$got" = "$2" ] || { echo "case $1 under $tool: '$got', not '$2'"; cat err; exit 1; }
    done
}
is 1 "branch global $(line DECIDES)"
is 2 "branch global $(line DECIDES)"
is 4 "copied global $(line TWICE)"
is 5 ""
is 6 ""
grep -q 'before it writes it' err && { echo "case 6 is sound"; exit 1; }
got=$(run 3 none)
[ "$got" = "copied register $(line STORES)" ] || { echo "case 3: '$got'"; cat err; exit 1; }
[ -z "$(run 7 none)" ] || { echo "case 7 launches nothing"; exit 1; }
for device in emu cpu; do
    "$MARGAY" run --device $device -o "d$device" -- ./undefined 3 >out 2>err || { cat err; exit 1; }
    grep -q 'add_up(.*may read %f[0-9]* before it writes it (undefined.cu:' err || { echo "coverage on $device:"; cat err; exit 1; }
    "$MARGAY" report --json "d$device" | python3 -c "
import json, sys
u = json.load(sys.stdin)['coverage']['unwritten_registers']
assert len(u) == 1 and 'add_up' in u[0]['kernel'] and u[0]['register'].startswith('%f'), u"
done
"$MARGAY" ptx check undefined | grep -q 'add_up.*register %f[0-9]* may be read before it is written'
[ "$("$MARGAY" ptx check undefined | grep -c 'may be read')" = 1 ]
