#!/bin/sh
# margay report --tool takes a table's name, too, and every table that a report names as not shown; what limits a gain is said; advise
# takes no options; margay help takes rules, documents and tools.
set -eu
"$MARGAY" run -q --device emu -t advise -o d -- "$EX/divergent" > out
"$MARGAY" report d > report
grep -q '^  *Gain: ' report || { cat report; echo 'FAIL what limits a gain'; exit 1; }
names=$(sed -n 's/^tables not shown: \(.*\) (margay report --tool NAME)$/\1/p' report | tr -d ,)
[ -n "$names" ] || { cat report; echo 'FAIL no table is named'; exit 1; }
for name in $names; do
    "$MARGAY" report d --tool "$name" > one || { echo "FAIL --tool $name"; exit 1; }
    [ "$(wc -l < one)" -gt 5 ] || { cat one; echo "FAIL --tool $name shows nothing"; exit 1; }
done
"$MARGAY" report d --csv --table list > tables.csv
cut -d, -f1 tables.csv | grep -qx branches || { cat tables.csv; echo 'FAIL no table branches'; exit 1; }
"$MARGAY" report d --tool branches | grep -q '^branches by the lane slots' || { echo 'FAIL --tool branches'; exit 1; }
! "$MARGAY" report d --tool nothing_here > out 2> err || exit 1
grep -q 'neither a tool nor a table named nothing_here' err || { cat err; exit 1; }
! "$MARGAY" run -q --device emu -t advise,depth=1 -o e -- "$EX/divergent" > out 2> err || exit 1
grep -q 'advise takes no options' err || { cat err; exit 1; }
for word in $(sed -n 's/^| `\([a-z_]*\)` |.*/\1/p' "$ROOT/docs/findings.md" | sort -u); do
    "$MARGAY" help "$word" > help 2>&1 || continue # cells and other words of the page's tables
    rules="${rules:-} $word"
    [ "$(wc -l < help)" -gt 1 ] || { cat help; echo "FAIL help $word"; exit 1; }
done
for rule in uncoalesced bank_conflict divergence cta_imbalance few_ctas slow_division; do
    case "$rules " in *" $rule "*) ;; *) echo "FAIL margay help $rule"; exit 1 ;; esac
    "$MARGAY" help $rule | grep -q 'try: ' || { echo "FAIL margay help $rule: nothing to try"; exit 1; }
done
for name in docs/findings.md docs/findings findings.md; do "$MARGAY" help $name | cmp - "$ROOT/docs/findings.md"; done
refused() { # STATUS TEXT ARGS...
    status=$1 text=$2 rc=0; shift 2
    "$MARGAY" "$@" > out 2> err || rc=$?
    [ $rc = $status ] && grep -qF -- "$text" err && [ ! -s out ] || { cat out err; echo "FAIL $*: status $rc"; exit 1; }
}
refused 2 "--tool takes one tool or table: 'lanes' is one too many" report d --tool memory --tool lanes
refused 3 'table branches is of tool lanes, not of memory' report d --csv --tool memory --table branches
refused 3 'd has no table named nothing (--table list names them)' report d --csv --table nothing
refused 3 'kernels is a table of the whole report: margay report --csv --table kernels' report d --tool kernels
"$MARGAY" report d --tool blocks | grep -q '^blocks has no table of its own: ' || { echo 'FAIL --tool blocks says nothing'; exit 1; }
"$MARGAY" help docs/studies/predict.md | cmp - "$ROOT/docs/studies/predict.md"
refused 2 "help takes one name: 'findings' is one too many" help docs findings
# two programs without a kernel in common: shown, but no gate passes; the verdict is the first line
"$MARGAY" run -q --device emu -t advise -o f -- "$EX/saxpy" > out
"$MARGAY" diff d f > out 2> err
head -1 out | grep -q '^verdict: ' && grep -q '^no kernel is in both profiles' out || { head -3 out; echo 'FAIL order of the verdict'; exit 1; }
rc=0; "$MARGAY" diff d f --fail-on work+1e9% > out 2> err || rc=$?
[ $rc = 3 ] && grep -q 'no kernel is in both profiles, so nothing was compared that could pass' err || { cat err; echo "FAIL gate over two programs: status $rc"; exit 1; }
