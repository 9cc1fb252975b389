#!/bin/sh
# A disk that fills up and a file size limit: the program runs on, what could not be recorded is counted, and what
# is in the profile and what is missing add up to the launches that the program made, which this script knows.
set -u
failed=0 part=none
gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl || exit 1
cp "$ROOT/tests/cli/turns.ptx" .
n=2500
app="./ptxrun load=turns.ptx times=$n count:1,1,1:1,1,1:1 sum"
cat > add_up.py <<'END'
import json, sys
j = json.load(sys.stdin)
c, n, told = j['coverage'], int(sys.argv[1]), int(sys.argv[2])
entries = sum(k['blocks'][0]['thread_entries'] or 0 for k in j['kernels'] if k['blocks'])
if c['empty_processes']: # not one byte: then nothing may look as if it had been counted
    assert (c['launches'], c['instrumented'], j['kernels'], j['processes']) == (0, 0, [], []), c
    print('empty')
    sys.exit()
if c['open_processes']: # no room for how it ended: margay run said so, and the coverage line says that launches may be missing
    assert told and c['launches'] <= n, c
    n = c['launches']
assert c['launches'] == n, f'{c["launches"]} launches of {n}'
assert c['instrumented'] + c['not_written'] == n and not c['failed'] and not c['unknown'], c
assert entries == c['instrumented'] - c['no_end'], f'{entries} counted, {c}'          # each launch is one thread
assert sum(k['launches'] for k in j['kernels']) == c['instrumented'], c
assert told or j['processes'][0]['closed'], 'no end recorded'
rows = [r for r in c['native'] if r['kernel'] == 'not written']
assert sum(r['launches'] for r in rows) == c['not_written'], rows
print('partly' if c['not_written'] or c['no_end'] or c['open_processes'] else 'whole')
END
look() { # STATUS WHAT DIR
    if [ $1 = 120 ]; then # not even margay run could write there: said before the program starts
        grep -q 'cannot \(create\|write\)' err && [ ! -s out ] || { echo "FAIL $2: refused without a reason"; cat out err; failed=1; }
        echo "$2: refused"
        return
    fi
    shift
    [ "$(cat out)" = "sum $n" ] || { echo "FAIL $1: the program was disturbed"; cat out; failed=1; }
    kind=$("$MARGAY" report --json "$2" 2> err2 | python3 add_up.py $n "$(grep -c 'exit status cannot be recorded\|could not record to its end' err)" 2> err3) || { echo "FAIL $1"; cat err err2 err3; failed=1; }
    "$MARGAY" report "$2" > text 2>> err2
    case $kind in
    partly) ! grep 'without an end' text | grep '(100.0 %)' || { echo "FAIL $1: 100 % of launches of which some have no end"; cat text; failed=1; }
            grep -q 'recording stops' err && grep -Eq '^coverage: .* (not written|not in the counts|without a recorded end)' err && grep -Eq '^coverage: .* (not written|not in the counts|without a recorded end)' text ||
        { echo "FAIL $1: the coverage line says nothing of what is missing"; cat err text; failed=1; } ;;
    empty) grep -Eq 'nothing is recorded|recording stops' err && grep -q '^coverage: 0 of 0 .*nothing could be recorded' err && ! grep -q 'no CUDA call' err text ||
        { echo "FAIL $1: nothing was recorded, and nothing says so"; cat err text; failed=1; } ;;
    esac
    ! grep -q "not written" text || part=$2
    echo "$1: $kind"
}
for kb in 100 150 250 400 100000; do
    (ulimit -f $kb && exec "$MARGAY" run --device emu -o limit$kb -- $app) > out 2> err
    look $? "files of $kb blocks" limit$kb
done
(ulimit -f 8 && exec "$MARGAY" run --device emu -o limit -- touch started) > out 2> err
[ $? = 120 ] && grep -q 'cannot create' err && [ ! -e started ] || { echo 'FAIL files of 8 blocks: margay itself'; cat err; failed=1; }
# a comparison with what is not whole is no pass
"$MARGAY" diff --fail-over 0 limit100000 limit100000 > out 2> err || { echo 'FAIL diff of whole profiles'; cat err; failed=1; }
"$MARGAY" diff --fail-over 0 "$part" "$part" > out 2> err
[ $? = 3 ] && grep -q "$part: [0-9]* launches have no counts" err || { echo "FAIL diff of what is not whole passes: $part"; cat out err; failed=1; }
"$MARGAY" diff --fail-over 0 --kernel nosuch limit100000 limit100000 > out 2> err
[ $? = 3 ] && grep -q 'kernel nosuch matches no kernel' err || { echo 'FAIL diff of no kernel passes'; cat out err; failed=1; }
for c in 'help run' --version help 'report limit100000' doctor tools 'tools -v' 'ptx print turns.ptx'; do
    "$MARGAY" $c > /dev/full 2> err
    [ $? != 0 ] && grep -q 'cannot write' err || { echo "FAIL margay $c with no room for its output"; cat err; failed=1; }
done
"$MARGAY" run -q --device emu -o signal -- sh -c 'ulimit -f 1; head -c 1000000 /dev/zero > big' > out 2> err # the limit's signal is the program's own again
"$MARGAY" run -q --device emu -o signal2 -- python3 -c 'import signal; print(signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN)' > out
python3 -c 'import signal; print(signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN)' > want
cmp out want || { echo 'FAIL SIGXFSZ reaches the program otherwise than without margay'; failed=1; }

mkdir small
for kb in 150 260 300 420; do
    mount -t tmpfs -o size=${kb}k none small 2> /dev/null || { echo 'skip: a small disk, no mount is possible here'; break; }
    "$MARGAY" run --device emu -o small/p -- $app > out 2> err
    look $? "a disk of $kb KiB" small/p
    umount small
done
exit $failed
