#!/bin/sh
# Each way to fail gives the application the driver's error, one clear line on stderr, its own exit
# status, and leaves what was recorded before readable.
# clock
set -u
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0" # a program that ends by SIGSEGV ends by it, under the sanitizer as well
failed=0
gcc -O1 -o faults "$ROOT/tests/inject/faults.c" -ldl || exit 1

check() { # WHAT EXIT STDOUT-PATTERN STDERR-PATTERN "launches instrumented complete" [options of run]
    what=$1 want=$2 sees=$3 says=$4 counts=$5
    shift 5
    rm -rf profile
    timeout 300 "$MARGAY" run -o profile "$@" -- ./faults "$what" > out 2> err
    rc=$?
    bad=
    [ $rc = "$want" ] || bad="exit $rc, not $want"
    [ -z "$sees" ] || grep -Eq "$sees" out || bad="$bad; stdout lacks $sees"
    [ "$(grep -Ec "$says" err)" = 1 ] || bad="$bad; not one line on stderr with $says"
    "$MARGAY" report profile --json > out.json && python3 - "$counts" <<'P' || bad="$bad; report"
import json, sys
r = json.load(open('out.json'))
have = (r['coverage']['launches'], r['coverage']['instrumented'], sum(l['complete'] for l in r['launches']))
want = tuple(int(x) for x in sys.argv[1].split())
assert have == want, (have, want)
good = next(k for k in r['kernels'] if k['name'] == 'good')
assert good['blocks'][0]['thread_entries'] == 64 * (good['launches'] - good['incomplete']), good
P
    if [ -n "$bad" ]; then
        echo "FAIL $what: $bad"
        sed 's/^/     /' out err
        failed=1
    else
        echo "ok   $what"
    fi
}
line='^margay: .*'
check oob 4 '^sync: 700' "${line}oob.*(PTX line|line) 19" "2 2 1"
"$MARGAY" report profile | grep -q "oob: 1 did not complete (launch 1): not in the counts; .*line 19" && "$MARGAY" report profile --kernel oob | grep -q "^findings: none" || { echo "FAIL oob: the report gives no reason"; "$MARGAY" report profile | tail -5; failed=1; }
check near 4 '^sync: 700' "${line}near.*4 bytes before" "2 2 1" --check
check near 0 '^sync: 0' "${line}near.*out-of-bounds read of 4 bytes.*4 bytes before" "2 2 2"
python3 - <<'P' || failed=1
import json
(f,) = json.load(open('out.json'))['tools']['bounds']['findings']
assert (f['times'], f['bytes'], f['kind'], f['cta'], f['thread']) == (64, 4, 'read', [0, 0, 0], [0, 0, 0]), f
assert int(f['allocation']['address'], 16) - int(f['address'], 16) == 4 and f['allocation']['bytes'] == 256, f
P
check misaligned 4 '^sync: 716' "${line}misaligned" "2 2 1"
check trap 4 '^sync: 719' "${line}trap" "2 2 1"
check deadlock 4 '^sync: 719' "${line}deadlock" "2 2 1"
check spin 4 '^sync: 702' "${line}spin" "2 2 1" --time-limit 0.3
check truncated 3 '^truncated: 218' "${line}PTX" "1 1 1"
check fatbin 3 '^fatbin: (200|209)' "$line" "1 1 1"
check garbage 3 '^garbage: (200|209|218)' "$line" "1 1 1"
check huge 3 '^huge: 2$' '^coverage' "1 1 1"
check _exit 5 '' '^coverage' "1 1 1"
check quick_exit 6 '' '^coverage' "1 1 1"
check abort 134 '' '^coverage' "1 1 1"
check assert 134 '' '^coverage' "1 1 1"
check raise 139 '' '^coverage' "1 1 1"
check kill 137 '' '^coverage' "1 1 1"
check execl 7 '' '^coverage' "1 1 1"
check execvp 8 '' '^coverage' "1 1 1"
check execfails 134 '' '^coverage' "2 2 2"
check clearenv 0 '' '^coverage' "1 1 1"
check signal 143 '' '^coverage' "1 1 1"
check unsynced 0 '^unsynced: 0' '^coverage' "2 2 2"

# a launch that a fault ended: one line under -q, too, and --strict fails where it was selected
ended() { # EXIT LINES OPTION...: lines that say so
    want=$1 lines=$2
    shift 2
    rm -rf profile
    "$MARGAY" run -q -o profile "$@" -- ./faults "$fault" > out 2> err
    rc=$?
    [ $rc = "$want" ] && [ "$(grep -c "^margay: kernel $fault did not complete and is not in the counts: .*PTX line" err)" = "$lines" ] &&
        [ "$(wc -l < err)" = $((lines + (want == 121))) ] && echo "ok   $fault -q $*" || { echo "FAIL $fault -q $*: exit $rc"; cat err; failed=1; }
}
for device in emu $([ "${VARIANT:-release}" = release ] && [ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu); do
    fault=oob
    ended 4 1 --device $device
    ended 121 1 --device $device --strict
    ended 4 0 --device $device --strict --kernel good
    ended 4 0 --device $device -t none
done
fault=spin
ended 121 1 --time-limit 0.3 --strict
rm -rf profile
"$MARGAY" run --strict -o profile -- ./faults oob > out 2> err
[ $? = 121 ] && [ "$(grep -c 'out-of-bounds' err)" = 1 ] && grep -q '^coverage: 2 of 2 .*, 1 did not complete$' err &&
    "$MARGAY" report profile --json | python3 -c 'import json, sys; c = json.load(sys.stdin)["coverage"]; assert (c["incomplete"], c["no_end"]) == (1, 0), c' &&
    echo "ok   oob --strict" || { echo "FAIL oob --strict"; cat err; failed=1; }

# kill -9 in mid-run: finished launches are on disk within a second
rm -rf profile
"$MARGAY" run -q -o profile -- sh -c 'echo $$ > pid; exec ./faults forever' > out 2> err &
run=$!
until grep -q running out 2> /dev/null; do sleep 0.05; done
sleep 1.5
kill -9 "$(cat pid)"
wait $run
rc=$?
"$MARGAY" report profile --json > out.json && python3 - $rc <<'P' && echo "ok   kill -9" || failed=1
import json, sys
r = json.load(open('out.json'))
n = sum(l['complete'] for l in r['launches'])
assert int(sys.argv[1]) == 137 and r['exit'] == 137, (sys.argv, r['exit'])
assert n > 10 and r['kernels'][0]['blocks'][0]['thread_entries'] == 64 * n, n
P

# two processes, one DIR
rm -rf profile
"$MARGAY" run -q -o profile -- sh -c './faults unsynced & ./faults unsynced; wait' > out 2> err
"$MARGAY" report profile --json > out.json && python3 - <<'P' && echo "ok   two processes" || failed=1
import json
r = json.load(open('out.json'))
assert r['coverage']['launches'] == 4 and r['coverage']['instrumented'] == 4, r['coverage']
assert r['kernels'][0]['blocks'][0]['thread_entries'] == 256 and len(r['kernels']) == 1, r['kernels']
P
exit $failed
