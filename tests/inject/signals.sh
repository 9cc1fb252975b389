#!/bin/sh
# Margay has no signal handlers: an application's stay as they are, get what it faults itself - on its own threads, in its
# callbacks, in its memory that a kernel uses - and nothing of what a kernel does wrong.
set -u
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0"
failed=0
gcc -O1 -Wall -o signals "$ROOT/tests/inject/signals.c" -ldl || exit 1
cat > want <<'W'
good: 0, 0
division by zero: 0, 0
a kernel on a page of its own: 0, 1
a callback: 0, 1
own fault: 11, 1
a kernel at address 16: 700, 0
own fault: 11, 1
W
for how in emu/0 cpu/sync cpu/0; do
    device=${how%/*}
    [ $device = emu ] || [ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "left out $how: the CPU device is not built here (llvm-19-dev)"; continue; }
    MARGAY_CPU_TIER=${how#*/} timeout 300 "$MARGAY" run --device $device -o "${how%/*}.${how#*/}" -- ./signals > out 2> err
    rc=$?
    if [ $rc = 0 ] && cmp -s want out && grep -q '^margay: .*null' err; then echo "ok   $how"
    else
        echo "FAIL $how: exit $rc"
        diff want out
        cat err
        failed=1
    fi
done
timeout 300 "$MARGAY" run -q --device emu -o default -- ./signals default > out 2> err
rc=$?
launches=$("$MARGAY" report default --json | python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["exit"], [l["complete"] for l in r["launches"]])')
[ $rc = 139 ] && [ "$launches" = "139 [True]" ] && echo "ok   not handled" || { echo "FAIL not handled: exit $rc, $launches"; cat err; failed=1; }
exit $failed
