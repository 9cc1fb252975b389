#!/bin/sh
# Formulas of `margay ptx stat` against counts measured on the emulator, over the examples: every formula is
# evaluated for every launch. Of kernels whose every count follows from geometry and arguments none may be missing.
set -u
bad=0 ran=0
for prog in saxpy reduce divergent matmul histogram stencil bfs; do
    [ -x "$EX/$prog" ] && [ -f "$EX/$prog.ptx" ] || continue
    ran=$((ran + 1))
    "$MARGAY" run -q --device emu -t blocks -o "$prog.p" -- "$EX/$prog" >"$prog.out" 2>&1 || { cat "$prog.out"; bad=1; }
    "$MARGAY" report "$prog.p" --json --per-launch >"$prog.json" || bad=1
    "$MARGAY" ptx stat --json "$EX/$prog.ptx" >"$prog.stat" || bad=1
    python3 "$ROOT/tests/app/formulas.py" "$prog.stat" "$prog.json" || { echo "$prog: formulas and counts differ"; bad=1; }
    case $prog in saxpy | matmul | reduce) whole=1 ;; *) whole=0 ;; esac
    if [ $whole = 1 ] && grep -q '"thread_entries": null' "$prog.stat"; then echo "$prog: a block without a formula"; bad=1; fi
done
[ $ran -gt 0 ] || { echo "no example was built"; exit 1; }

# The text says the same.
"$MARGAY" ptx stat "$EX/saxpy.ptx" >text || bad=1
grep -q 'thread entries that follow from geometry and arguments: 3 of 3 blocks' text && grep -q ' max(min(threads.x, arg[0-9]), 0) \* threads.y \* threads.z' text || { cat text; bad=1; }
"$MARGAY" ptx check --json "$EX/saxpy.ptx" >text 2>&1
[ $? -eq 2 ] || { echo "--json is taken by check"; bad=1; }
exit $bad
