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

# An address of 32 bits wraps around: a base below 0 and an offset that brings it back.
gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl
cat > wrap.ptx <<'END'
.version 7.0
.target sm_70
.address_size 64
.visible .entry wrap(.param .u64 p, .param .u32 n)
{
    .reg .b32 %r<5>;
    .shared .align 4 .b8 s[256];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, s;
    add.s32 %r2, %r2, %r3;
    add.s32 %r2, %r2, -4096;
    st.shared.u32 [%r2+4096], %r1;
    ret;
}
END
"$MARGAY" run --device emu -q -o w -e 'st.shared { @a = max(addr - value * 4); @n = count() }' -- ./ptxrun load=wrap.ptx wrap:1,1,1:32,1,1:0
"$MARGAY" report w --json | python3 -c 'import json, sys
maps = {m["name"]: m["entries"][0]["value"] for m in json.load(sys.stdin)["tools"]["expr"]["maps"]}
assert maps["@n"] == 32 and 0 <= maps["@a"] < 4096, maps'
