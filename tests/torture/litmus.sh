#!/bin/sh
# Litmus tests of the memory model that docs/schedule.md promises of the software devices: seven shapes, with fences and without, 32, 64 and
# 128 bits, gpu and sys scope. TORTURE=1: all of them, 10^5 rounds each; TORTURE=long: 10^6; else some, in seconds.
set -u
failed=0 words=128-gpu-apart rounds=4096 forms=28
case ${TORTURE:-} in '') ;; long) words= rounds=1000000 forms=336 ;; *) words= rounds=100000 forms=336 ;; esac
export MARGAY_CPU_TIER=sync MARGAY_CPU_STORE=off MARGAY_CPU_VERIFY=1
gcc -O2 -Wall -o litmus "$ROOT/tests/torture/litmus.c" -L"$B/lib/margay/driver" -lcuda || exit 1
devices=emu
[ -e "$B/lib/margay/libmargay-cpu.so" ] && devices="emu cpu"
for device in $devices; do
    "$MARGAY" run -q --device $device --workers=4 -t none -o $device -- ./litmus $rounds $words > $device.out 2> err
    if [ $? = 0 ] && [ "$(grep -c ' torn=0 ' $device.out)" = $forms ]; then
        echo "ok   $device: $(tail -n 1 $device.out), $rounds rounds each, none forbidden; without a fence a load passed a store $(sed -n 's/.*allowed=\([0-9]*\).*/\1/p' $device.out | paste -sd+ | bc 2> /dev/null) times"
    else
        echo "FAIL $device"
        grep -v 'forbidden=0 torn=0\|allowed=' $device.out | head -5
        head -5 err
        failed=1
    fi
done
exit $failed
