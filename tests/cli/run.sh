#!/bin/sh
# margay run as a command: exit statuses, what it says where, and that the program is left alone.
set -u
failed=0
expect() { # STATUS STDERR-PATTERN COMMAND...
    want=$1 pattern=$2
    shift 2
    "$@" > out 2> err
    rc=$?
    if [ $rc = "$want" ] && { [ -z "$pattern" ] || grep -Eq -- "$pattern" err; }; then
        echo "ok   $*"
    else
        echo "FAIL $*: exit $rc, not $want, or stderr lacks: $pattern"
        cat out err
        failed=1
    fi
}
run="$MARGAY run --device emu"
expect 120 'needs a program' $run
expect 120 'no-such-option' $run --no-such-option -- true
expect 120 'no tool named nosuch' $run -t nosuch -- true
expect 120 'blocks' $run -t blocks,nosuch=1 -- true
expect 120 'launches' $run --launches 3-1 -- true
expect 120 'launches' $run --launches x -- true
expect 120 'neither h200 nor' $run --as nosuch -- true
expect 120 'kernel wants a name' $run --kernel '' -- true
expect 120 'as /etc/passwd: no recorded property' $run --as /etc/passwd -- true
expect 120 'as /dev/null: no recorded property' $run --as /dev/null -- true
expect 120 'as /tmp: a directory' $run --as /tmp -- true
expect 120 'no other tool' $run -t blocks -t none -- true
expect 120 'given twice' $run -t blocks -t blocks,warps=off -- true
expect 120 'no tool named nosuch' $run -t blocks -t nosuch -- true
expect 120 'strict' $run --strict -t none -- true
expect 120 '' "$MARGAY" run --device nosuch -- true
expect 123 'cpu|CPU' sh -c '[ -e "$B/lib/margay/libmargay-cpu.so" ] && { echo cpu >&2; exit 123; }; exec "$MARGAY" run --device cpu -- true'
expect 127 'nosuch-program: command not found' $run -o d1 -- nosuch-program
expect 127 './nosuch: No such file' $run -o d2 -- ./nosuch
expect 126 'Permission denied' $run -o d3 -- /etc/passwd
for d in d1 d2 d3; do [ ! -e $d ] || { echo "FAIL a program that never started left $d"; failed=1; }; done
expect 7 '^coverage' $run -o d4 -- sh -c 'exit 7'
expect 143 '^coverage' $run -o d5 -- sh -c 'kill $$'
expect 0 '' $run -q -o d6 -- sh -c 'echo to stdout; echo to stderr >&2'
[ "$(cat out err)" = "to stdout
to stderr" ] || { echo "FAIL -q: something was added"; cat out err; failed=1; }
echo input | $run -q -o d7 -- cat > out
[ "$(cat out)" = input ] || { echo "FAIL stdin"; failed=1; }
expect 0 '^no CUDA call was seen' $run -o d8 -- true
expect 0 'already holds 1 run' $run -o d7 -- true
$run -o /proc/nosuch/d -- true > out 2> err
[ $? = 120 ] && [ "$(wc -l < err)" -le 2 ] || { echo "FAIL DIR that cannot be made"; cat out err; failed=1; }
(cd / && cd - > /dev/null && $run -q -- true) && ls -d margay-true-* > /dev/null || { echo "FAIL default DIR"; failed=1; }

gcc -O1 -o client "$ROOT/tests/inject/client.c" -ldl || exit 1
expect 0 '^coverage: 1 of 1' $run --strict -o s1 -- ./client dlopen
expect 121 'kernel nosuch matches none of the 1 kernels that ran: fill' $run --strict --kernel nosuch -o s2 -- ./client dlopen
expect 0 'kernel nosuch matches none' $run --kernel nosuch -o s2b -- ./client dlopen
expect 0 'filtered' $run --strict --launches 5- -o s2c -- ./client dlopen
expect 0 'kernel nosuch matches none of the 1 kernels of s2' "$MARGAY" report --kernel nosuch s2
expect 120 "1:21: error: 'widht' is nothing that a probe sees" $run -e 'ld.global { @ = sum(widht) }' -- ./client dlopen
expect 120 'nosuchfile' $run -e @nosuchfile -- ./client dlopen
expect 0 'filtered' $run --launches 5- -o s3 -- ./client dlopen
expect 0 '^coverage: 1 of 1' $run --launches 0,7-9 --kernel 'fi*' -o s4 -- ./client dlopen
expect 0 'no tool' $run -t none -o s5 -- ./client dlopen
expect 0 'own time' $run --stats -o s6 -- ./client dlopen
expect 0 '^coverage: 1 of 1' $run --eager -o s8 -- ./client dlopen
expect 0 '' $run -v --keep-ptx -o s7 -- ./client dlopen
grep -q __mg_ctx s7/fill.ptx || { echo "FAIL --keep-ptx"; failed=1; }
rm -rf faults s9
gcc -O1 -o faults "$ROOT/tests/inject/faults.c" -ldl || exit 1
expect 0 '' $run --eager --keep-ptx -o s9 -- ./faults unsynced
[ -e s9/spin.ptx ] || { echo "FAIL --eager: a kernel that is never launched has no twin"; failed=1; }
exit $failed
