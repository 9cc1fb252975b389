#!/bin/sh
# An aligned lane of 8 or 16 bytes is read and written by one move, on the emulator and in compiled code, at every vector ISA:
# one CTA stores words that are all equal, another never sees some that differ. ROUNDS=400000: 10^7 reads of each form.
set -u
failed=0
export MARGAY_CPU_TIER=sync MARGAY_CPU_STORE=off MARGAY_CPU_VERIFY=1 MARGAY_CPU_SERIAL=all
gcc -O1 -Wall -o tear "$ROOT/tests/app/tear.c" -L"$B/lib/margay/driver" -lcuda || exit 1
tear() { # ISA DEVICE WORD...
    isa=$1 device=$2
    shift 2
    MARGAY_ISA=$isa "$MARGAY" run -q --device $device --workers=2 -t none -o "$isa-$device" -- ./tear "${ROUNDS:-1000}" "$@" > out 2> err
    [ $? = 0 ] && [ "$(grep -c torn=0 out)" -ge 19 ] || { echo "FAIL $isa $device $*"; grep TORN out | head -5; head -5 err; failed=1; }
    rm -rf "$isa-$device"
}
for isa in avx512 avx2 base; do tear $isa emu weak-global; done
tear sse emu relaxed-global
if [ -e "$B/lib/margay/libmargay-cpu.so" ]; then
    for isa in avx512 avx2 base; do
        tear $isa cpu v4.u32-weak-global
        tear $isa cpu v2.u32-volatile-global
    done
fi
exit $failed
