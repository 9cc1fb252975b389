#!/bin/sh
# The CPU device against the emulator: every example gives the same output and exactly the same block
# counts, threads and warps, on each vector ISA, with code that is there from the start and with code
# that arrives while the kernel runs, on one worker and on more than there are processors.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
cat > compare.py <<'P'
import json, sys
def counts(name):
    with open(name) as f: r = json.load(f)
    return {(k['name'], b['id']): (b['thread_entries'], b['warp_entries']) for k in r['kernels'] for b in k['blocks']}, r
(a, _), (b, r) = counts(sys.argv[1]), counts(sys.argv[2])
if r['device']['kind'] != 'cpu': sys.exit('the profile says ' + r['device']['kind'])
bad = [k for k in a.keys() | b.keys() if a.get(k) != b.get(k)]
if bad or not a: sys.exit('%d of %d blocks differ, first %s: %s, %s' % (len(bad), len(a), bad[:1], a.get(bad[0]) if bad else '', b.get(bad[0]) if bad else ''))
P
failed=0
for p in "$EX"/saxpy "$EX"/reduce "$EX"/divergent "$EX"/matmul "$EX"/histogram "$EX"/stencil; do # not bfs: which thread claims a node first is a race
    n=$(basename "$p")
    "$MARGAY" run -q --device emu --workers 1 -o "$n.emu" -- "$p" > "$n.emu.out" 2>&1 || { echo "FAIL $n on the emulator"; cat "$n.emu.out"; failed=1; continue; }
    "$MARGAY" report "$n.emu" --json > "$n.emu.json"
    for how in sync/avx512 sync/avx2 sync/base 0/avx512/5; do
        d=$n.$(echo $how | tr / .)
        isa=${how#*/}
        MARGAY_CPU_TIER=${how%%/*} MARGAY_ISA=${isa%/*} "$MARGAY" run -q --device cpu $([ "$isa" = "${isa%/*}" ] || echo --workers "${isa#*/}") -o "$d" -- "$p" > "$d.out" 2>&1
        rc=$?
        "$MARGAY" report "$d" --json > "$d.json"
        if [ $rc = 0 ] && cmp -s "$n.emu.out" "$d.out" && python3 compare.py "$n.emu.json" "$d.json"; then echo "ok   $n $how"
        else
            echo "FAIL $n $how: exit $rc"
            cat "$d.out"
            failed=1
        fi
    done
done
exit $failed
