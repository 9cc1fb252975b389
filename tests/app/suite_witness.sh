#!/bin/sh
# scripts/suite-witness over a folder of programs and a list of their arguments: equal for every one
# that exists, unequal (and exit 1) for one that is no program under margay, and for an empty choice.
set -u
[ -x "$EX/divergent" ] || { echo "needs the built examples"; exit 77; }
mkdir bin data data/cat
cp "$EX/divergent" bin/divergent
cp "$EX/reduce" bin/reduce
cp /bin/cat bin/cat
echo input > data/cat/input
printf 'name\targs_small\ndivergent\t-\nreduce\t-\ncat\tinput\nabsent\t-\n' > runs.tsv
run() { "$ROOT/scripts/suite-witness" --bin bin --runs runs.tsv --data data "$@" > out 2> err; }

failed=0
check() { # TEXT FILE
    grep -q "$1" "$2" || { echo "FAIL no '$1' in $2:"; cat out err; failed=1; }
}
run --only 'divergent,reduce,absent' || { echo "FAIL exit $?"; failed=1; }
check '^divergent	equal	.*, 0 differ$' out
check '^reduce	equal	.*, 0 differ$' out
check '^2 of 2 programs equal' err
run --only cat && { echo "FAIL a program without kernels equals the witness"; failed=1; }
check '^cat	none	' out
run --only nothing && { echo "FAIL an empty choice is equal"; failed=1; }
exit $failed
