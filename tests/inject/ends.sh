#!/bin/sh
# Ways to fail and to end, on the nvidia backend, against the driver library over the emulator (on a real one:
# tests/gpu/ends.sh): the program's own output and status, what had ended before is in the profile with
# its counts, and the run says so in its usual lines.
# clock
set -u
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0" # a program that ends by SIGSEGV ends by it, under the sanitizer as well
failed=0
export XDG_CACHE_HOME=$PWD/cache
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH=$B/test/driver
gcc -O1 -o faults "$ROOT/tests/inject/faults.c" -ldl || exit 1
cat > see.py <<'P'
import json, sys
r = json.load(open('out.json'))
have = (r['coverage']['launches'], r['coverage']['instrumented'], sum(l['complete'] for l in r['launches']))
assert have == tuple(int(x) for x in sys.argv[1:4]), (have, sys.argv)
good = next(k for k in r['kernels'] if k['name'] == 'good')
assert good['blocks'][0]['thread_entries'] == 64 * (good['launches'] - good['incomplete']), good
P
check() { # WHAT EXIT STDOUT-PATTERN "launches instrumented complete"
    rm -rf profile
    timeout 300 "$MARGAY" run --device nvidia -o profile -- ./faults "$1" > out 2> err
    rc=$?
    if [ $rc = "$2" ] && { [ -z "$3" ] || grep -Eq "$3" out; } && [ "$(grep -c '^coverage' err)" = 1 ] &&
        "$MARGAY" report profile --json > out.json && python3 see.py $4 2>> err; then
        echo "ok   $1"
    else
        echo "FAIL $1: exit $rc"
        cat out err
        failed=1
    fi
}
check trap 4 '^sync: (719|715)' "2 2 1"
grep -q 'trap: 1 did not complete (launch 1): ' err && "$MARGAY" report profile | grep -q 'trap: 1 did not complete (launch 1): ' || { echo "FAIL trap: not said"; failed=1; }
check _exit 5 '' "1 1 1"
check quick_exit 6 '' "1 1 1"
check abort 134 '' "1 1 1"
check assert 134 '' "1 1 1"
check raise 139 '' "1 1 1"
check kill 137 '' "1 1 1"
check execl 7 '' "1 1 1"
check execvp 8 '' "1 1 1"
check execfails 134 '' "2 2 2"
check fork 0 '^child: 9' "2 2 2"
check clearenv 0 '' "1 1 1"
check signal 143 '' "1 1 1"
check unsynced 0 '^unsynced: 0' "2 2 2"

# kill -9 in mid-run: finished launches are on disk within a second
rm -rf profile
"$MARGAY" run -q --device nvidia -o profile -- sh -c 'echo $$ > pid; exec ./faults forever' > out 2> err &
run=$!
until grep -q running out 2> /dev/null; do sleep 0.05; done
sleep 1.5
kill -9 "$(cat pid)"
wait $run
[ $? = 137 ] && "$MARGAY" report profile --json > out.json && python3 - <<'P' && echo "ok   kill -9" || failed=1
import json
r = json.load(open('out.json'))
n = sum(l['complete'] for l in r['launches'])
assert r['exit'] == 137 and n > 10 and r['kernels'][0]['blocks'][0]['thread_entries'] == 64 * n, (r['exit'], n)
P
exit $failed
