#!/bin/sh
# What kernels begin and end (<margay/event.h>, one-liners) on the host's time line: -t timeline beside -t events, on all
# devices; exports decoded.
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
failed=0
fail() { echo "FAIL $*"; failed=1; }
export ROOT
"$NVCC" -arch=sm_90 -cudart shared -I"$ROOT/include" "$ROOT/tests/inject/inside.cu" -o inside || exit 1
if [ -n "${REAL_GPU:-}" ]; then
    devices=nvidia
    want=$(./inside)
else
    devices="emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia"
    [ "${VARIANT:-release}" = release ] || devices='emu nvidia' # the CPU device under sanitizers: tests/inject/scenarios.sh, tools.sh, records.sh
    want=$("$MARGAY" run --device emu -q -t none -o none -- ./inside)
fi
run() { # TIMELINE EVENTS OPTION...
    timeline=$1 events=$2
    shift 2
    rm -rf p t.db
    "$MARGAY" run --device $device -q -o p -t timeline$timeline -t events$events "$@" -- ./inside > out 2> err || fail "$device$timeline: exit $?"
    [ "$(cat out)" = "$want" ] || { fail "$device$timeline$events: another result"; cat out err; }
    "$MARGAY" report p --json > p.json && "$MARGAY" trace print p --json --by-time > p.txt && "$MARGAY" export chrome p -o t.json &&
        "$MARGAY" export perfetto p -o t.pf && "$MARGAY" export sqlite p -o t.db && "$MARGAY" export csv p -o t.csv &&
        "$MARGAY" report p --html page.html
    command -v otf2-print > /dev/null || return
    rm -rf t.otf2
    "$MARGAY" export otf2 p -o t.otf2 && otf2-print -G t.otf2/traces.otf2 > t.otf2.defs && otf2-print t.otf2/traces.otf2 > t.otf2.events || fail "$device: otf2"
}
check() { python3 "$ROOT/tests/inject/inside.py" $device "$@" > why 2>&1 && echo "ok   $device $*" || { fail "$device $*"; tail -n 3 why; }; }
for device in $devices; do
    [ $device != nvidia ] || [ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
    run "" ""
    [ ! -s err ] || { fail "$device: it says"; cat err; }
    check
    "$MARGAY" report p --tool timeline > text
    grep -q 'what kernels began and ended' text && ! grep -q 'outside of their' text || { fail "$device: report"; cat text; }
    run ,times=twin ""
    check
    run "" ,records=20
    check lost
    run "" "" --launches first=1
    check some
    # a one-liner's events
    rm -rf p
    "$MARGAY" run --device $device -q -o p -t timeline -e 'kernel:entry { begin(all) } kernel:exit { end(all) }' -- ./inside > out 2> err || fail "$device: one-liner"
    "$MARGAY" report p --json > p.json && "$MARGAY" trace print p --json --by-time > p.txt && check liner
    # work=off: no kernels, nothing inside of them; the clock stays one for all
    rm -rf p
    "$MARGAY" run --device $device -q -o p -t timeline,work=off -t events -- ./inside > out 2> err || fail "$device: work=off"
    "$MARGAY" trace print p | grep -q '^inside' && fail "$device: work=off"
    # the tool alone: kernels with markers stay native
    rm -rf p
    "$MARGAY" run --device $device -q -o p -t timeline -- ./inside > out 2> err || fail "$device: alone"
    "$MARGAY" trace print p | grep -q '^inside' && fail "$device: alone"
    "$MARGAY" report p --json | python3 -c 'import json, sys; c = json.load(sys.stdin)["coverage"]; assert c["instrumented"] == 0 and c["launches"] >= 15, c' || fail "$device: not native"
done
[ -z "${REAL_GPU:-}" ] || exit $failed
unset LD_LIBRARY_PATH
# which clock
says() { # OPTIONS UNIT LINES
    rm -rf p
    "$MARGAY" run --device emu -o p $1 -- ./inside > out 2> err || fail "$1"
    "$MARGAY" report p --json | grep -q "inclusive_$2" || fail "$1: not $2"
    [ "$(grep -c 'not on the time line' err)" = $3 ] || { fail "$1: says"; cat err; }
}
says "-t events" cycles 0
says "-t events,time=global" ns 0
says "-t timeline -t events,time=clock" cycles 1
says "-t timeline -t events,stage=4" cycles 1
"$MARGAY" trace print p | grep -q '^inside' && fail "cycles on the time line"
"$MARGAY" run --device emu -q -o q -t events,time=global,stage=4 -- ./inside > out 2> err && fail "stage= with time=global"
grep -q 'stage= with time=global' err || { fail "what is wrong"; cat err; }
exit $failed
