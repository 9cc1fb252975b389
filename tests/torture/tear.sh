#!/bin/sh
# An aligned lane of 8 or 16 bytes is read and written by one move, on the emulator and in compiled code, at every vector ISA:
# one CTA stores words that are all equal, another never sees some that differ. Some forms, in seconds; TORTURE=1: all 1,100 at each ISA.
# ROUNDS=400000: 10^7 reads of each form.
set -u
failed=0
export MARGAY_CPU_TIER=sync MARGAY_CPU_STORE=off MARGAY_CPU_VERIFY=1 MARGAY_CPU_SERIAL=all
gcc -O1 -Wall -o tear "$ROOT/tests/torture/tear.c" -L"$B/lib/margay/driver" -lcuda || exit 1
tear() { # FORMS ISA DEVICE WORD...
    forms=$1 isa=$2 device=$3
    shift 3
    MARGAY_ISA=$isa "$MARGAY" run -q --device $device --workers=2 -t none -o "$isa-$device" -- ./tear "${ROUNDS:-1000}" "$@" > out 2> err
    if [ $? = 0 ] && [ "$(grep -c torn=0 out)" = $forms ]; then echo "ok   $isa $device $*: $forms forms"
    else
        echo "FAIL $isa $device $*: $(grep -c torn=0 out) of $forms forms"
        grep TORN out | head -5
        head -5 err
        failed=1
    fi
    rm -rf "$isa-$device"
}
cpu=
[ -e "$B/lib/margay/libmargay-cpu.so" ] && cpu=cpu
if [ -n "${TORTURE:-}" ]; then
    for device in emu $cpu; do
        for isa in avx512 avx2 base sse; do tear 1100 $isa $device ''; done
    done
    exit $failed
fi
for isa in avx512 avx2 base; do tear 38 $isa emu u32-weak-global; done
tear 18 sse emu v4.u32-relaxed-global
if [ -n "$cpu" ]; then
    tear 19 avx512 cpu v4.u32-weak-global
    tear 3 avx512 cpu v2.u32-volatile-global-any
    tear 3 avx2 cpu v4.u32-weak-global-same
    tear 3 base cpu v2.u64-volatile-global-same
fi
exit $failed
