#!/usr/bin/env bash
# The one-liners of docs/probe-language.md run as printed, and count what follows from the programs.
set -euo pipefail
[ -x "$EX/saxpy" ] || { echo "the examples need clang"; exit 77; }
for e in saxpy reduce divergent matmul histogram stencil; do ln -s "$EX/$e" $e; done
export PATH="$(dirname "$MARGAY"):$PATH"
python3 "$ROOT/tests/cli/oneliners.py" "$ROOT/docs/probe-language.md"

# The code that a GPU gets (sums over a warp, copies of cells) counts what the emulator's does, and other tools
# beside it change nothing; memory stays what it is without probes.
cat > clauses <<'END'
ld.global, st.global { @bytes[kernel, ptx] = sum(width) }
issued * /!guard/ { @off[kernel, op] = count() }
access.shared { @shared[kernel, ptx] = hist(addr); @requests[ptx, lanes] = count() }
kernel:entry { $n = 0 } edge:back { $n = $n + 1 } kernel:exit { @trips[kernel] = hist($n); @left[kernel, cta % 8] = count() }
st.global /lane < 16/ { @bits[kernel, ptx] = max(bits); @low = min(value % 7 - 3) }
load { @mod[kernel, tid.x % 4] = avg(width * (lane + 1)); @warps = sum(leader); @top = topk(lane, 3) }
END
maps() { # OUTPUT OPTION... -- APP...
    out=$1
    shift
    rm -rf d
    "$MARGAY" run -q -o d "$@" > /dev/null
    "$MARGAY" report d --json | python3 -c 'import json, sys; r = json.load(sys.stdin); c = r["coverage"]
assert c["instrumented"] == c["launches"] > 0, c
print(json.dumps(r["tools"]["expr"]["maps"], indent=1))' > "$out"
}
same() {
    maps one --device emu -e @clauses -- "$@"
    maps two --device emu -t blocks -t memory -e @clauses --verify -- "$@"
    cmp one two || { echo "$*: other tools beside it change what it counts"; diff one two | head; exit 1; }
    LD_LIBRARY_PATH=$B/test/driver maps two --device nvidia -e @clauses -- "$@"
    cmp one two || { echo "$*: a GPU's code counts differently"; diff one two | head; exit 1; }
}
same ./matmul 48
same ./histogram 5000
same ./divergent 1000
