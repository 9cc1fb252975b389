#!/bin/sh
# Margay where LLVM was not there when it was built: everything but the CPU device works, `doctor` says how to get it,
# `--device cpu` is refused in one line, and without a GPU runs go to the emulator.
set -u
mkdir -p m/bin m/lib/margay
cp "$MARGAY" m/bin/
cp -r "$B/lib/margay/driver" "$B/lib/margay/cudart" m/lib/margay/
failed=0
fail() { echo "FAIL $1"; cat out; failed=1; }
m/bin/margay doctor > out 2>&1
grep -q '^ *cpu device.*install llvm-19-dev (or llvm-22-dev)' out || fail "doctor does not say how to get the CPU device"
m/bin/margay run -q --device cpu -o cpu -- "$EX/saxpy" > out 2>&1
[ $? = 123 ] && [ "$(wc -l < out)" = 1 ] && grep -q 'llvm-19-dev.*--device emu' out || fail "--device cpu is not refused in one line"
m/bin/margay run -q --device emu -o emu -- "$EX/saxpy" > out 2>&1 && grep -q PASSED out || fail "--device emu"
if [ ! -e /dev/nvidiactl ]; then
    m/bin/margay run -q -o auto -- "$EX/saxpy" > out 2>&1 && grep -q PASSED out && m/bin/margay report auto --json > out && grep -q '"kind": *"emu"' out || fail "without a GPU the emulator is not what runs are given"
fi
exit $failed
