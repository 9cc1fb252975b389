#!/bin/sh
# margay diff of one program with itself: whatever tools counted, no verdict but "no difference", or none with its reason; no gate
# passes where one profile counted what the other did not.
set -e
failed=0
fail() { echo "FAIL $*"; failed=1; }
gcc -O1 -o worker "$ROOT/tests/sched/worker.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread
run() { name=$1; shift; "$MARGAY" run -q --device emu -o "$name" "$@" -- ./worker 50 x11 sync > "$name.out"; }
run all -t advise
run blocks -t blocks & run memory -t memory & run bytes -t memory,level=bytes & run lanes -t lanes & run ctas -t ctas & wait
run values -t values & run together -t memory -t lanes & run some -t advise --launches first=2 & run part -t blocks,scope=cta & wait
same() { # for all that both have
    "$MARGAY" diff "$1" "$2" > out
    head -1 out | grep -q '^verdict: no difference: ' || { head -2 out; fail "diff $1 $2"; }
    "$MARGAY" diff --fail-on work+0%,instructions+0% "$1" "$2" > out || fail "gate $1 $2"
}
none() { # BEFORE AFTER WHY GATES
    "$MARGAY" diff "$1" "$2" > out
    head -1 out | grep -q "^verdict: none: neither time nor work was measured in both: $3" || { head -2 out; fail "diff $1 $2"; }
    rc=0; "$MARGAY" diff --fail-on "$4" "$1" "$2" > out 2> err || rc=$?
    [ $rc = 3 ] || { cat err; fail "gate $1 $2: $rc"; }
}
for tools in blocks memory bytes lanes together; do same all $tools; same $tools all; done
none all ctas 'after has no counts of instructions$' work+1e9%
none values all 'before has no counts of instructions$' instructions+1e9%
none values ctas 'no counts of instructions$' work+1e9%
"$MARGAY" diff --fail-on ctas.most+0% ctas ctas > out || fail "a gate of what both have"
none some all 'of [a-z_]* 2 of [0-9]* launches have counts before, \([0-9]*\) of \1 after$' memory.sectors+1e9%
none all some 'of [a-z_]* \([0-9]*\) of \1 launches have counts before, 2 of [0-9]* after$' work+1e9%
same some some
none part blocks 'of [a-z_]* a part of each launch was counted before alone (scope=)$' instructions+1e9%
exit $failed
