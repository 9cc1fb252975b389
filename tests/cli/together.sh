#!/bin/sh
# Several processes and runs in one DIR, and programs that make recording hard: nothing is lost silently.
# clock
set -u
failed=0
bad() { echo "FAIL $*"; cat out err 2> /dev/null; failed=1; }
gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl || exit 1
cp "$ROOT/tests/cli/turns.ptx" .
run="$MARGAY run --device emu"
query() { # DIR PYTHON-EXPRESSION over r
    "$MARGAY" report "$1" --json > out.json 2> err || [ "${3:-0}" = $? ] || { bad "report $1"; return; }
    python3 -c "import json, sys; r = json.load(open('out.json')); sys.exit(not ($2))" || bad "$1: $2"
}

# two runs in one DIR: each speaks of itself, reports add up
$run --strict -o two -- ./ptxrun load=turns.ptx count:2,1,1:32,1,1:32 > out 2> err
grep -q '^coverage: 1 of 1 ' err || bad 'first run'
$run -t none -o two -- ./ptxrun load=turns.ptx count:2,1,1:32,1,1:32 count:2,1,1:32,1,1:32 > out 2> err
grep -q '^coverage: 0 of 2 ' err || bad 'second run'
$run --strict -o two -- ./ptxrun load=turns.ptx count:2,1,1:32,1,1:32 > out 2> err || bad '--strict judges other runs'
grep -q 'holds 2 runs' err && grep -q '^coverage: 1 of 1 ' err || bad 'third run'
query two "r['coverage']['launches'] == 4 and r['coverage']['instrumented'] == 2 and r['kernels'][0]['blocks'][0]['thread_entries'] == 128"

# one of two databases is damaged
f=$(ls two/profile-*.db | head -1)
echo junk > "$f"
"$MARGAY" report two > out 2> err
[ $? = 3 ] && grep -q "$f" err && grep -q '^coverage' out || bad 'a damaged database'
"$MARGAY" merge -o merged two > out 2> err
[ $? = 3 ] && grep -q "$f" err || bad 'merge of a damaged database'

# the program closes every descriptor, ours as well, and uses the numbers: later launches are recorded all the same
$run --strict -o closed -- ./ptxrun load=turns.ptx count:2,1,1:32,1,1:32 sleep=50 closefrom count:4,1,1:32,1,1:32 sleep=50 closefrom \
    count:8,1,1:32,1,1:32 > out 2> err || bad closefrom
grep -q '^coverage: 3 of 3 ' err || bad 'closefrom: coverage'
query closed "[l['complete'] for l in r['launches']] == [True] * 3 and r['kernels'][0]['blocks'][1]['thread_entries'] == 32 * 14"

# where it cannot go on, the run says so
$run --strict -o gone -- ./ptxrun load=turns.ptx count:2,1,1:32,1,1:32 sleep=50 > out 2> err || bad 'before gone'
cat > gone.sh <<'S'
./ptxrun load=turns.ptx count:2,1,1:32,1,1:32 sleep=600 closefrom count:2,1,1:32,1,1:32 &
sleep 0.3
mv lost/profile.db lost/moved
wait
mv lost/moved lost/profile.db
S
$run --strict -o lost -- sh gone.sh > out 2> err
[ $? = 121 ] && grep -q 'recording stops' err && grep -q 'last launches may be missing' err || bad 'recording that stopped'

# a daemon goes on when the program has ended
$run --strict -o daemon -- ./ptxrun load=turns.ptx count:1,1,1:32,1,1:32 > /dev/null 2>&1
$run -o later -- ./ptxrun daemon=1500 load=turns.ptx count:1,1,1:32,1,1:32 > out 2> err || bad daemon
grep -q '1 process of this run still runs (pid [0-9]*)' err || bad 'a daemon is not told of'
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.4; ls later/profile.db > /dev/null 2>&1 && break; done
sleep 0.5
query later "r['coverage']['launches'] == 1 and r['launches'][0]['complete']"

# warp counts that depend on when turns end: loops of over 65,536 turns while other lanes are ready
$run -q -o turns -- ./ptxrun load=turns.ptx apart:1,1,1:32,1,1:1000 apart:1,1,1:32,1,1:70000 together:1,1,1:32,1,1:70000 > out 2> err || bad turns
query turns "[l['schedule_dependent'] for l in r['launches']] == [False, True, False] and [k['schedule_dependent'] for k in r['kernels']] == [True, False]"
exit $failed
