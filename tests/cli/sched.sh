#!/bin/sh
# margay sched: bad usage is told by name, and nothing is started then.
# clock
set -u
failed=0
check() { # STATUS PATTERN ARGS...
    want=$1 pattern=$2; shift 2
    "$MARGAY" sched "$@" > out 2>&1; got=$?
    [ $got = "$want" ] && grep -q -- "$pattern" out || { echo "FAIL $*: $got"; cat out; failed=1; }
}
check 2 'needs programs' --
check 2 'program A has no command' -- A:
check 2 'program B has no command' -- ./app --
check 2 'two programs are named X' -- X: ./app -- X: ./app
check 2 'no policy .mine.: credit, none, or the path' --policy mine -- ./app
check 2 'nowhere.so' --policy ./nowhere.so -- ./app
check 2 "wants NAME=NUMBER" --share B=1 -- ./app
check 2 "wants NAME=NUMBER" --share A=0 -- ./app
check 2 "wants NAME=NUMBER" --share A -- ./app
check 2 "wants NAME=NUMBER" --share '' -- ./app
check 2 "each once, from 1e-6 to 1e9, not 'A=1,A=2'" --share A=1,A=2 -- ./app
check 2 "wants NAME=NUMBER" --priority A=high -- ./app
check 2 "whole, from -1000 to 1000, not 'A=1.5'" --priority A=1.5 -- ./app
check 2 "wants NAME=NUMBER" --priority A=-1001 -- ./app
check 2 'seconds' --seconds -1 -- ./app
check 3 'nowhere/at/all' -o nowhere/at/all -- ./app
check 2 '-t.*nosuch' -t nosuch -- ./app
check 2 '-t.*depth' -t opcodes,depth=3 -- ./app
check 2 '--attach.*nosuch' --attach nosuch -- ./app
check 2 '--attach.*nowhere.so' --attach ./nowhere.so -- ./app
check 2 '--attach.*depth' --attach opcodes,depth=3 -- ./app
check 2 '--attach none: this tool puts nothing into kernels' --attach none -- ./app
printf '#include <margay/policy.h>\nconst struct mg_policy mg_policy = {.version = 99};\n' > old.c
printf 'int nothing;\n' > empty.c
printf '#include <margay/policy.h>\nconst struct mg_policy mg_policy = {.version = MG_POLICY_VERSION};\n' > noname.c
gcc -shared -fPIC -I"$ROOT/include" -o noname.so noname.c || exit 1
gcc -shared -fPIC -I"$ROOT/include" -o old.so old.c && gcc -shared -fPIC -o empty.so empty.c || exit 1
check 2 'version 99' --policy ./old.so -- ./app
check 2 'defines no mg_policy' --policy empty.so -- ./app
check 2 'has no name' --policy noname.so -- ./app
ls -d margay-sched-* dir 2> /dev/null && { echo "FAIL something was started"; failed=1; }
# programs that make no CUDA call run as ever; the exit status tells that one failed
check 0 'policy credit' -- true -- sh -c 'exit 0'
check 1 'policy credit' -o dir -- P-1: true -- Q: sh -c 'exit 7'
"$MARGAY" sched -q -o dir --json out.json -- true -- sh -c 'exit 7'
python3 -c 'import json; r = json.load(open("out.json")); assert [p["exit"] for p in r["programs"]] == [0, 7] and not r["seconds"], r' || failed=1
[ -e dir/sched.sock ] && { echo "FAIL the socket is left"; failed=1; }
check 3 'nowhere/out.json' -o dir --json nowhere/out.json -- true
"$MARGAY" sched -q --priority A=-3 -o dir --json out.json -- true && grep -q '"priority": -3,' out.json || { echo "FAIL a priority below 0"; failed=1; }

# one scheduler a directory: a second one takes nothing from the first, nor a file that is no socket; what was left behind makes room
"$MARGAY" sched -q -o two -- sh -c 'while [ ! -e go ]; do sleep 0.05; done' & s=$!
for i in $(seq 200); do [ -S two/sched.sock ] && break; sleep 0.05; done
check 3 'another scheduler uses this directory' -o two -- true
[ -S two/sched.sock ] || { echo "FAIL the socket of the first was taken"; failed=1; }
kill -9 $s; wait $s 2> /dev/null; touch go
[ -S two/sched.sock ] || { echo "FAIL a killed scheduler leaves no socket"; failed=1; }
check 0 'policy credit' -o two -- true
# a scheduler that has bound its socket and does not listen yet is no dead one
case ${VARIANT:-release} in
asan | tsan) ;; # a sanitizer's library has to be the first one
*)
    printf '#define _GNU_SOURCE\n#include <unistd.h>\n#include <sys/syscall.h>\nint listen(int fd, int n) { usleep(500000); return (int)syscall(SYS_listen, fd, n); }\n' > late.c
    gcc -shared -fPIC -o late.so late.c || failed=1
    LD_PRELOAD=$PWD/late.so "$MARGAY" sched -q -o late -- sh -c 'while [ ! -e late.go ]; do sleep 0.05; done' & s=$!
    for i in $(seq 200); do [ -S late/sched.sock ] && break; sleep 0.05; done
    check 3 'another scheduler uses this directory' -o late -- true
    touch late.go; wait $s || { echo "FAIL a scheduler that listens late"; failed=1; }
    ;;
esac
echo precious > two/sched.sock
check 3 'is no socket' -o two -- true
[ "$(cat two/sched.sock)" = precious ] || { echo "FAIL a file was taken for a socket"; failed=1; }
check 3 'too long for a socket' -o "$(printf %0120d 1)" -- true

# a policy that does not return: a signal ends the scheduler all the same, and its programs
printf '#include <margay/policy.h>\nstatic void adjust(void *s, struct mg_policy_view *v) { for (;;) (void)s, (void)v; }\n' > hang.c
printf 'const struct mg_policy mg_policy = {.version = MG_POLICY_VERSION, .name = "hang", .turns = 1, .adjust = adjust};\n' >> hang.c
gcc -shared -fPIC -I"$ROOT/include" -o hang.so hang.c || exit 1
"$MARGAY" sched --policy ./hang.so -o hang -- sh -c 'echo $$ > pid; exec sleep 100' > out 2>&1 & s=$!
for i in $(seq 200); do [ -s pid ] && break; sleep 0.05; done
kill $s; wait $s; [ $? = 1 ] && grep -q 'the policy does not return' out && timeout 300 tail --pid="$(cat pid)" -f /dev/null || { echo "FAIL a policy that does not return"; cat out; failed=1; }
"$MARGAY" ctl $$ adopt nowhere.sock > out 2>&1; [ $? = 3 ] || { echo "FAIL ctl adopt"; failed=1; }
for name in 'a b' '' a/b "$(printf %040d 1)"; do
    "$MARGAY" ctl $$ adopt nowhere.sock 1 "$name" > out 2>&1; [ $? = 2 ] || { echo "FAIL ctl adopt as '$name'"; cat out; failed=1; }
done
"$MARGAY" ctl $$ adopt nowhere.sock -1 > out 2>&1; [ $? = 2 ] || { echo "FAIL ctl adopt with a bad share"; failed=1; }
exit $failed
