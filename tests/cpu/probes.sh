#!/usr/bin/env bash
# One-liners and probes in C count the same on the CPU device as on the emulator, warp-level values included.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device was not built: it needs llvm-19-dev"; exit 77; }
[ -x "$EX/saxpy" ] || { echo "the examples need clang"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache
failed=0
cat > clauses <<'END'
ld.global, st.global { @bytes[kernel, ptx] = sum(width) }
* { @mix[kernel, op] = count() }
issued * /!guard/ { @off[kernel, op] = count() }
access.shared { @shared[kernel, ptx] = hist(addr) }
access.shared /leader/ { @requests[ptx] = count(); @lanes[ptx] = lhist(lanes, 1, 33, 4); @active = topk(active) }
kernel:entry { $n = 0 } edge:back { $n = $n + 1 } kernel:exit { @trips[kernel] = hist($n); @left[kernel, cta % 8] = count() }
st.global /lane < 16/ { @bits[kernel, ptx] = max(bits); @low = min(value % 7 - 3) }
load.global { @mod[kernel, tid.x % 4] = avg(width * (lane + 1)) }
bra { @bra[kernel, ptx, lane / 8] = count() }
edge { @edges[block, to] = count() }
loop /warp == 1/ { @loops[block] = sum(popc(active)) }
cta:entry { @ctas = sum(arg0 + ctaid.x * nctaid.y + ntid.x) }
after atom.shared { @old[op, old & 1] = count(); @grows = sum(new - old); @new = max(new) }
setp { @true[ptx] = sum(value) }
END
maps() { # DEVICE NAME-OF-OUTPUT OPTION... -- APP...
    device=$1 out=$2
    shift 2
    rm -rf d
    MARGAY_CPU_TIER=sync "$MARGAY" run --device "$device" -q -o d "$@" > /dev/null || { echo "FAIL $device $*"; failed=1; }
    "$MARGAY" report d --json | python3 -c 'import json, sys; r = json.load(sys.stdin); c = r["coverage"]
assert c["instrumented"] == c["launches"] > 0, c
print(json.dumps([r["tools"]["expr"]["maps"], [[(b["thread_entries"], b["warp_entries"]) for b in k["blocks"]] for k in r["kernels"]]], indent=1))' > "$out" || { echo "FAIL $device $*: not instrumented"; failed=1; }
}
same() {
    maps emu one "$@"
    maps cpu two "$@"
    cmp -s one two || { echo "FAIL $*: maps differ"; diff one two | head -10; failed=1; }
    [ "$(grep -c '"value"' one)" -ge 2 ] || { echo "FAIL $*: nothing was counted"; failed=1; }
}
same -e @clauses -- "$EX/saxpy" 3000
same -e @clauses -- "$EX/divergent" 1000
same -e @clauses -- "$EX/matmul" 48
same -e @clauses -- "$EX/histogram" 5000
# what tools count in registers, beside additions to places that only the kernel knows
for e in "saxpy 100000" "stencil 256 2" "reduce 20000"; do
    same -t blocks -t opcodes -e 'kernel:entry { $n = 0 } edge:back { $n = $n + 1 } kernel:exit { @trips[kernel] = hist($n) } ld.global, st.global /addr & 4/ { @odd[kernel] = count() }' -- "$EX/${e%% *}" ${e#* }
done
if command -v clang > /dev/null; then
    for p in trips ones exponents; do same --probe "$ROOT/examples/probes/$p.c" -- "$EX/stencil" 64 2; done
    same --probe "$ROOT/examples/probes/strides.c" -- "$EX/matmul" 48
fi
exit $failed
