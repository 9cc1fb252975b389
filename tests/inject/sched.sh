#!/bin/sh
# The gate in front of launches never keeps anybody for ever, and never changes what a program computes: every kind of launch,
# a scheduler that is killed or stands still, a program that is stopped or killed while it has the device, programs that come
# and go. The other program goes on each time. Bounded by `timeout`.
# clock
# long
set -u
failed=0
fail() { echo "FAIL $*"; failed=1; tail -n 5 out err 2> /dev/null; }
device=cpu; [ -e "$B/lib/margay/libmargay-cpu.so" ] || device=emu
gcc -O1 -g -Wall -o worker "$ROOT/tests/sched/worker.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
sched() { rm -rf dir; timeout 300 "$MARGAY" sched -q --device $device -o dir --json out.json "$@" > out 2> err; }
both() { [ "$(grep -c ', ok$' out)" = "${2:-2}" ] || fail "$1: not every program ended well"; }
json() { python3 -c "import json; r = json.load(open('out.json')); p = {x['name']: x for x in r['programs']}; assert $1, p" || fail "$2"; }
pid_of() { # NAME: the worker's process, once it is there
    for i in $(seq 200); do
        for f in "dir/$1"/ctl.*; do [ -e "$f" ] && echo "${f##*.}" && return; done
        sleep 0.05
    done
}
there() { # PROCESS: until it runs below margay, and can be asked
    for i in $(seq 1200); do "$MARGAY" ctl "$1" status > /dev/null 2>&1 && return; sleep 0.05; done
    fail "process $1 never made a CUDA call"
}
for mode in sync streams threads graph coop copies capture beside exec spin fork; do
    sched -- A: ./worker 500 0.15 $mode -- B: ./worker 5000 0.15 || fail "$mode: $?"
    both $mode
    json "all(x['launches'] > 0 for x in p.values())" $mode
done

# the scheduler is killed: both go on
rm -rf dir; "$MARGAY" sched -q --device $device -o dir -- A: ./worker 500 1 -- B: ./worker 5000 1 > out 2> err & s=$!
a=$(pid_of A) b=$(pid_of B); sleep 0.3; kill -9 $s
timeout 300 tail --pid="$a" -f /dev/null; timeout 300 tail --pid="$b" -f /dev/null; sleep 0.3
wait $s 2> /dev/null
both "the scheduler is killed"
# the scheduler stands still, and goes on
rm -rf dir; "$MARGAY" sched -q --device $device -o dir --json out.json -- A: ./worker 500 2 -- B: ./worker 5000 2 > out 2> err & s=$!
a=$(pid_of A); sleep 0.2; kill -STOP $s; sleep 1; kill -CONT $s
wait $s || fail "the scheduler stands still: $?"
both "the scheduler stands still"
# both say so, whenever they get to it; when it goes on it takes them again, first of all
rm -rf dir; "$MARGAY" sched -q --device $device -o dir --json out.json -- A: ./worker 500 140 -- B: ./worker 5000 140 > out 2> err & s=$!
for p in $(pid_of A) $(pid_of B); do # until the first launch of each has passed
    for i in $(seq 300); do "$MARGAY" ctl $p status 2> ctl | grep -q ' \([2-9]\|[1-9][0-9][0-9]*\) launches seen' && break; sleep 0.2; done
done
kill -STOP $s
for i in $(seq 300); do [ "$(grep -c 'gives no sign of life' err)" -ge 2 ] && break; sleep 0.2; done
kill -TERM $s; kill -CONT $s; wait $s
[ "$(grep -c 'gives no sign of life' err)" -ge 2 ] || fail "the scheduler stands still: not both say so"
json "p['A']['lapses'] and p['B']['lapses']" "the scheduler stands still"

# a full disk: it runs unscheduled, and says so
if mkdir full && mount -t tmpfs -o size=4m tmpfs full 2> /dev/null; then
    "$MARGAY" sched -q --device $device -o full/dir -- A: sh -c 'head -c 5m /dev/zero > full/rest; exec ./worker 500 0.1' > out 2> err
    both "a full disk" 1
    grep -q 'launches go on without the scheduler' err || fail "a full disk: nobody says so"
    umount full
fi
# a program is stopped: the other one goes on, and has the device for itself; then it goes on, too
rm -rf dir; "$MARGAY" sched -q --device $device -o dir --json out.json -- A: ./worker 500 1.5 -- B: ./worker 5000 1.5 > out 2> err & s=$!
a=$(pid_of A); sleep 0.2; kill -STOP "$a"; sleep 1; kill -CONT "$a"
wait $s || fail "a program is stopped: $?"
both "a program is stopped"
json "p['A']['launches'] > 0 and p['B']['launches'] > 0" "a program is stopped"
# a program is killed while it has the device (one of its kernels takes seconds): the other one goes on
rm -rf dir; "$MARGAY" sched -q --device $device -o dir --json out.json -- A: ./worker 400000000 x1 -- B: ./worker 5000 1 > out 2> err & s=$!
a=$(pid_of A); sleep 0.5; kill -9 "$a"
wait $s; [ $? = 1 ] || fail "a program is killed: status"
both "a program is killed" 1
json "p['A']['exit'] == 137 and p['B']['exit'] == 0 and p['B']['launches'] > 0" "a program is killed"

# programs are adopted and dropped while they run
rm -rf dir alone; "$MARGAY" sched -q --device $device -o dir --json out.json -- A: ./worker 500 8 > out 2> err & s=$!
"$MARGAY" run -q --device $device -o alone -- ./worker 5000 12 > out2 2> err2 & r=$!
a=$(pid_of A); there $r
"$MARGAY" ctl $r adopt dir/sched.sock 3 guest > ctl 2>&1 || { fail adopt; cat ctl; }
"$MARGAY" ctl $r adopt dir/sched.sock > ctl 2>&1; [ $? = 3 ] && grep -q 'is scheduled already' ctl || { fail "adopted twice"; cat ctl; }
sleep 0.7; "$MARGAY" ctl $r drop > ctl 2>&1 || { fail drop; cat ctl; }
wait $r || fail "the guest: $?"; grep -q ', ok$' out2 || fail "the guest"
wait $s || fail "the host: $?"
both adopted 1
json "p['guest']['adopted'] and p['guest']['device_ns'] > 0 and p['guest']['exit'] is None and p['A']['device_ns'] > 0" adopted
# a scheduler that is to end lets its guests go
rm -rf dir alone; "$MARGAY" sched -q --device $device -o dir --json out.json -- A: ./worker 500 100 > out 2> err & s=$!
"$MARGAY" run -q --device $device -o alone -- ./worker 5000 100 > out2 2> err2 & r=$!
a=$(pid_of A); there $r
"$MARGAY" ctl $r adopt dir/sched.sock 3 guest > ctl 2>&1 || { fail "adopt before the end"; cat ctl; }
kill $s; timeout 300 tail --pid=$s -f /dev/null || fail "the scheduler waits for its guest"
"$MARGAY" ctl $r status > ctl 2>&1 || fail "the guest is gone with its scheduler"
[ "$(cat err2)" = '' ] || { fail "the guest was told of a scheduler's death"; cat err2; }
for f in alone/ctl.*; do kill "${f##*.}"; done
wait $r $s
"$MARGAY" ctl $$ drop > ctl 2>&1; [ $? = 3 ] || fail "drop of a process that is not ours"

# guests of one name in two directories: instructions are those of the launches that were scheduled, of both
rm -rf dir alone other go; "$MARGAY" sched -q --device $device -o dir --json out.json -- A: ./worker 500 140 > out 2> err & s=$!
GO=go "$MARGAY" run -q --device $device -o alone -- ./worker 500 x2000 sync > out2 2> err2 & r=$!
GO=go "$MARGAY" run -q --device $device -o other -- ./worker 500 x2000 sync > out3 2> err3 & q=$!
a=$(pid_of A); there $r; there $q
for p in $r $q; do "$MARGAY" ctl $p adopt dir/sched.sock 3 guest > ctl 2>&1 || { fail "adopt into one name"; cat ctl; }; done
touch go
wait $r $q; kill $s; wait $s
"$MARGAY" report --json alone > alone.json
json "0.7 < p['guest']['thread_instructions'] / p['guest']['launches'] / (sum(k['thread_instructions'] for k in json.load(open('alone.json'))['kernels']) / 2000) < 1.3" "instructions of two guests"

# bad requests are refused by name, and change nothing
rm -rf dir alone; "$MARGAY" sched -q --device $device -o dir --json out.json -- A: ./worker 500 140 > out 2> err & s=$!
"$MARGAY" run -q --device $device -o alone -- sh -c './worker 500 140 & ./worker 500 140; wait' > out2 2> err2 & r=$!
a=$(pid_of A); for i in $(seq 1200); do [ "$("$MARGAY" ctl $r status 2> /dev/null | wc -l)" = 2 ] && break; sleep 0.05; done
refused() { # PATTERN ARGS...
    pattern=$1; shift
    "$MARGAY" ctl "$@" > ctl 2>&1; [ $? = 3 ] && grep -q "$pattern" ctl || { fail "ctl $*"; cat ctl; }
}
refused 'a program of the scheduler.s own has it' $r adopt dir/sched.sock 1 A
refused 'No such file' $r adopt dir/none.sock
refused 'File name too long' $r adopt "$(printf '%0200d' 1)"
sleep 30 & refused 'has made no CUDA call' $! adopt dir/sched.sock; kill $!
"$MARGAY" ctl $r adopt dir/sched.sock 3 > ctl 2>&1 || { fail "two processes"; cat ctl; } # one program, of the number that was given
refused 'is scheduled already' $r adopt dir/sched.sock 3
python3 - <<'P' || fail "requests that make no sense"
import socket
for text in (b'', b'adopt', b'adopt 1', b'adopt -1 1 X', b'adopt 0 1 X', b'adopt 1 nan X', b'adopt 1 inf X', b'adopt 1 -3 X', b'adopt 1 1 a/b', b'drop 1', bytes(range(256)), b'x' * 100000):
    s = socket.socket(socket.AF_UNIX)
    s.connect('dir/sched.sock')
    try: s.sendall(text)
    except OSError: pass
    s.shutdown(socket.SHUT_WR)
    s.settimeout(60)
    try: got = s.recv(300)
    except ConnectionResetError: got = b''
    assert got != b'ok\n', text
P
for i in $(seq 300); do # until both have launched behind the gate
    [ "$("$MARGAY" ctl $r status | grep -c '[1-9][0-9]* launches seen')" = 2 ] && break
    sleep 0.2
done
for f in alone/ctl.*; do kill "${f##*.}"; done
wait $r; kill $s; wait $s
json "len(p) == 2 and p['$r']['adopted']" "two processes"

# who exceeds its share gets a tool, until it no longer does: without a policy B takes most of the device, till A has ended
gcc -std=c17 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -I"$ROOT/src" -I"$B/gen" -shared -o zeros.so "$ROOT/examples/tools/zeros.c" "$B/lib/margay/libmargay-core.a" || exit 1
until_tool() { # PID PATTERN: what `ctl PID status` ends in, within a minute
    for i in $(seq 300); do
        "$MARGAY" ctl "$1" status 2> /dev/null | grep -q "$2\$" && return
        sleep 0.2
    done
    fail "attach: the tool does not come to '$2'"; "$MARGAY" ctl "$1" status
}
for tool in opcodes ./zeros.so; do
    name=$(basename $tool .so)
    rm -rf dir; timeout 150 "$MARGAY" sched -q --device $device -o dir --json out.json --policy none --attach $tool -t none --share A=99,B=1 -- A: ./worker 500 140 -- B: ./worker 5000 140 > out 2> err & s=$!
    a=$(pid_of A) b=$(pid_of B)
    until_tool "$b" ", $name"
    kill -9 "$a"
    until_tool "$b" ", $name (off)"
    kill "$b"; wait $s
    json "p['A']['attached'] == 0 and p['B']['attached'] >= 1" "attach $tool"
    python3 -c 'import sqlite3; t = [t & 2 for t, in sqlite3.connect("dir/B/profile.db").execute("select tools from launch order by id")]; assert any(t) and not t[0]' || fail "attach $tool"
done
exit $failed
