#!/usr/bin/env bash
# margay ptx cfg --data, --json and stat's opcodes: against reaching definitions found one by one, and a kernel written for it.
set -euo pipefail
cat > known.ptx <<'P'
.version 7.8
.target sm_70
.address_size 64
.shared .align 4 .b8 tile[128];
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, 0;
setp.lt.u32 %p1, %r1, 4;
@%p1 mov.u32 %r3, 7;
$loop:
add.u32 %r3, %r3, 1;
setp.lt.u32 %p2, %r3, %r1;
@%p2 bra $loop;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd3, %rd1, %rd2;
ld.u32 %r4, [%rd3];
add.u32 %r5, %r4, %r3;
st.shared.u32 [tile], %r5;
mov.u64 %rd4, tile;
cvta.shared.u64 %rd5, %rd4;
@%p1 mov.u64 %rd5, %rd1;
st.u32 [%rd5], %r8;
ret;
}
.func (.param .b32 r) f(.param .b32 a)
{
.reg .b32 %r<2>;
ld.param.b32 %r1, [a];
st.param.b32 [r], %r1;
ret;
}
P
"$MARGAY" ptx cfg --data known.ptx > text
grep -qE '^ +17  uniform +add.u32 %r3, %r3, 1; +%r3<13,15,17$' text
grep -qE '^ +12  varying +mov.u32 %r2, %tid.x;$' text
grep -qE '^ +22  varying  global  ld.u32 %r4, \[%rd3\]; +%rd3<21$' text
grep -qE '^ +28  [a-z]+  (global\|shared|shared\|global) +st.u32 \[%rd5\], %r8; +%rd5<26,27  %r8<entry$' text
[ "$(grep -c 'lanes enter together since block 0' text)" = 3 ]
grep -qE '^ +34  -  ' text # a function: who calls it together is not known
"$MARGAY" ptx stat --json known.ptx > stat.json
for o in '--dot --json' '--dot --data'; do rc=0; "$MARGAY" ptx cfg $o known.ptx 2> err || rc=$?; [ $rc = 2 ] && grep -q -e --dot err; done
rc=0; "$MARGAY" ptx stat --data known.ptx 2> err || rc=$?; [ $rc = 2 ] && grep -q -e '--data is for cfg' err
rc=0; "$MARGAY" ptx print --json known.ptx 2> err || rc=$?; [ $rc = 2 ] && grep -q 'for cfg and stat' err
for f in known.ptx "$ROOT"/tests/fuzz/corpus/ptx/{loop,regs,ssa}*.ptx "$EX"/*.ptx "$ROOT"/tests/exec/{calls,loop_divergent,barriers,progress}.ptx; do
    [ -f "$f" ] || continue
    "$MARGAY" ptx cfg --json "$f" > flow.json && "$MARGAY" ptx stat --json "$f" > stat.json && "$MARGAY" ptx cfg "$f" > cfg.txt
    python3 "$ROOT/tests/ptx/flow.py" flow.json stat.json cfg.txt || { echo "$f"; exit 1; }
done
