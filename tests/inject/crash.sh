#!/bin/sh
# Tools whose own code ends the process: margay names the tool, the call and the signal, with the exit status of the
# contract, and what was recorded stays. In the program's process nothing is caught; what killed it is named after it.
set -u
case ${VARIANT:-release} in release | debug) ;; *) echo 'a sanitizer catches the signals itself'; exit 77 ;; esac
failed=0
core=$B/lib/margay/libmargay-core.a
fail() { echo "FAIL $*"; cat out err; failed=1; }
gcc -std=c17 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -I"$ROOT/src" -I"$B/gen" -shared -o crash.so "$ROOT/tests/inject/crash.c" "$core" \
    -Wl,--exclude-libs,ALL -Wl,-z,defs -lm -lpthread -ldl || exit 1
crash() { # WHERE HOW APP; HOW: 0 abort, 1 _exit(0), 2 a null pointer
    export CRASH_AT=$1 CRASH_HOW=$2 CRASH_APP=1
    [ $3 = 1 ] || unset CRASH_APP
}
gcc -O1 -Wall -Werror -I"$ROOT/include" -o tools "$ROOT/tests/inject/tools.c" -L"$B/lib/margay/driver" -lcuda || exit 1
cp "$ROOT/tests/inject/fill.ptx" .
ulimit -c 0
run="timeout 300 $MARGAY run --device emu -o p -t ./crash.so"

# before the program starts
for how in "0 signal 6" "1 exit status 0" "2 signal 11"; do
    for where in CONSTRUCTOR CONFIGURE; do
        crash $where ${how%% *} 0
        $run -- touch started > out 2> err
        [ $? = 120 ] && [ "$(wc -l < err)" = 1 ] && grep -q "crash.so: the tool cannot be opened: .*${how#* }" err && [ ! -e started ] || fail "run, $where, $how"
    done
done
[ ! -e p ] || fail 'a refused tool left a directory'
crash CONSTRUCTOR 2 0
"$MARGAY" tools -v ./crash.so > out 2> err
[ $? = 3 ] && grep -q 'cannot be opened: .*signal 11' err || fail 'margay tools'
"$MARGAY" ptx instrument -t ./crash.so fill.ptx > out 2> err
[ $? = 2 ] && grep -q 'cannot be opened: .*signal 11' err && [ ! -s out ] || fail 'margay ptx, constructor'
crash INSTRUMENT 2 0
"$MARGAY" ptx instrument -t ./crash.so fill.ptx > out 2> err
[ $? = 3 ] && grep -q 'cannot instrument: .*signal 11' err && [ ! -s out ] || fail 'margay ptx, instrument'

# in the program: its status is the signal's, the tool is named, the launches before are there
for where in CONSTRUCTOR:opened CONFIGURE:options BEGIN:begin ANALYZE:instrument INSTRUMENT:instrument INITIALIZE:initialize FINALIZE:finalize; do
    crash ${where%:*} 2 1
    rm -rf p
    $run -- ./tools fill.ptx plain > out 2> err
    [ $? = 139 ] && grep -Eq "^margay: process [0-9]+ ended while .*crash.*${where#*:}" err && grep -q '^coverage' err || fail "in the program, $where"
    ! ls p/ctl.* > /dev/null 2>&1 || fail "$where left a page behind"
    "$MARGAY" report p --json > json 2> err && python3 -c 'import json; json.load(open("json"))' || fail "$where: no report"
done
python3 -c 'import json; c = json.load(open("json"))["coverage"]; assert c["open_processes"] == 1 and c["launches"] <= 10, c' || fail 'a process without an end is told as a whole one'
crash FINALIZE 0 1
$run -- ./tools fill.ptx plain > out 2> err
[ $? = 134 ] && grep -q 'in the code of tool crash (finalize)' err || fail 'abort in finalize'

# when the result is shown: the tool's cells as they are, and everything else
for how in "0 signal 6" "1 exit status 0" "2 signal 11"; do
    for where in PROFILE DESTRUCTOR; do
        crash $where ${how%% *} 0
        [ $where = PROFILE ] || crash NOWHERE 0 0
        rm -rf p
        $run -t blocks -- ./tools fill.ptx plain > out 2> err
        status=$?
        crash $where ${how%% *} 0
        [ $status = 0 ] && grep -q '^coverage: 10 of 10' err || fail "the summary, $where, $how"
        for form in '' --csv --json '--html page'; do
            "$MARGAY" report p $form > out 2> err || fail "report $form, $where, $how"
        done
        "$MARGAY" report p > out 2> err
        grep -q "tool crash (.*/crash.so) cannot show its result: .*${how#* }" out && grep -q '^coverage: 10 of 10' out || fail "report, $where, $how"
        "$MARGAY" report p --json > out 2> err
        python3 -c 'import json; r = json.load(open("out")); assert r["kernels"][0]["blocks"][0]["thread_entries"] == 2560 and "crash" in r["tools"]' || fail "report --json, $where, $how"
    done
done
exit $failed
