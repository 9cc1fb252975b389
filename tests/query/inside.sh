#!/bin/sh
# mg_profile_of_kernel: a program that runs under Margay reads the exact counts of its own kernels, by any of their names, from any
# thread, with its environment or without. Without Margay there are none.
set -u
failed=0
san=; [ "$VARIANT" = asan ] && san=-fsanitize=address,undefined
# shellcheck disable=SC2086
gcc $san -O1 -g -Wall -I"$ROOT/include" -o inside "$ROOT/tests/query/inside.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -L"$B/lib" -Wl,-rpath,"$B/lib" -lmargay-profile -lpthread || exit 1
devices="emu cpu"
[ -e "$B/lib/margay/libmargay-cpu.so" ] || devices=emu
for device in $devices; do
    for how in '' clear while; do
        launches=20; [ "$how" = while ] && launches=200
        timeout 300 "$MARGAY" run -q --device $device -t blocks,warps=on -o "p-$device$how" -- ./inside $launches $how > out 2>&1 && [ "$(cat out)" = ok ] || { echo "FAIL $device $how"; cat out; failed=1; }
    done
    [ "$("$MARGAY" report --json "p-${device}while" | grep -c '"complete":true')" = 300 ] || { echo "FAIL $device: launches of a profile that was read while it was written"; failed=1; }
done
[ "$(LD_LIBRARY_PATH=$B/lib/margay/driver ./inside 1 alone 2>&1 | tail -n 1)" = ok ] || { echo "FAIL without Margay"; failed=1; }
exit $failed
