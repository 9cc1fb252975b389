#!/bin/sh
# Launches as they end: none is lost and none told twice, whoever lags; what readers sum up is what the report says.
# clock
set -u
failed=0
fail() { echo "FAIL $*"; failed=1; }
san=; [ "$VARIANT" = asan ] && san=-fsanitize=address,undefined
# shellcheck disable=SC2086
gcc $san -O1 -Wall -I"$ROOT/include" -o subscriber "$ROOT/tests/query/subscriber.c" -L"$B/lib" -Wl,-rpath,"$B/lib" -lmargay-profile || exit 1
gcc -O1 -g -Wall -o storm "$ROOT/tests/inject/storm.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
report() { # DIR: launches, thread instructions
    "$MARGAY" report "$1" --json | python3 -c 'import json,sys; r = json.load(sys.stdin); print(r["coverage"]["launches"], sum(k["thread_instructions"] for k in r["kernels"]))'
}
try() { # NAME THREADS LAUNCHES [STALL_MS]
    rm -rf profile
    ./subscriber profile > quick 2>&1 & quick=$!
    ./subscriber profile "${4:-300}" > slow 2>&1 & slow=$!
    "$MARGAY" run -q --device emu -o profile -- ./storm "$2" "$3" 1 4 > out || { fail "$1: run"; cat out; }
    wait $quick $slow
    want=$(report profile)
    for who in quick slow; do
        read -r n sum twice unnamed median p99 < $who
        [ "$n $sum" = "$want" ] && [ "$twice $unnamed" = "0 0" ] || fail "$1, $who reader: $(cat $who), report: $want"
        [ $who = quick ] && echo "     $1: told after ${median:-?} us in the median, ${p99:-?} at the 99th percentile"
    done
    ./subscriber profile > late 2>&1
    read -r n sum twice unnamed median p99 < late
    [ "$n $sum $twice" = "$want 0" ] || fail "$1, finished: $(cat late), report: $want"
    ls profile/live-* 2> /dev/null && fail "$1: a ring is left"
}
try one 1 20000
try many 16 2500
# more launches than the ring holds while a reader sleeps
try overtaken 4 25000 4000
[ $failed = 0 ] && { python3 "$ROOT/examples/profile/reader.py" profile "$B/lib/libmargay-profile.so" > py 2>&1 || { [ -n "$san" ] || { fail "ctypes"; cat py; }; }; }
[ -n "$san" ] || [ "$(tail -n 1 py)" = "$(report profile | sed 's/ / launches, /; s/$/ thread instructions/')" ] || { fail "ctypes"; cat py; }

# a program that is killed: what it committed is told, and the reader ends
rm -rf profile
./subscriber profile > killed 2>&1 & reader=$!
"$MARGAY" run -q --device emu -o profile -- ./storm 1 1000000 1 4 > out 2>&1 & run=$!
sleep 2
pkill -KILL -P $run storm || kill -9 "$(pgrep -n storm)"
wait $run
wait $reader || { fail "killed: the reader does not end"; cat killed; }
read -r n sum twice unnamed median p99 < killed
[ "${n:-0}" -gt 0 ] && [ "$twice" = 0 ] || fail "killed: $(cat killed)"

# killed, and neither its parent nor a launcher waits for it: it has ended all the same
rm -rf profile
"$MARGAY" run -q --device emu -o profile -- python3 -c 'import subprocess, time; subprocess.Popen(["./storm", "1", "1000000", "1", "4"]); time.sleep(300)' > out 2>&1 & run=$!
for i in $(seq 300); do set -- profile/ctl.*; [ -e "$1" ] && break; sleep 0.1; done
pid=${1##*.} parent=$(ps -o ppid= -p "${1##*.}")
kill -9 $run; wait $run 2> /dev/null
kill -9 "$pid"
timeout 300 ./subscriber profile > zombie 2>&1 || { fail "not waited for: the reader does not end"; cat zombie; }
ps -o stat= -p "$pid" | grep -q Z || fail "not waited for: $pid is none such"
kill $parent
exit $failed
