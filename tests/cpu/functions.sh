#!/bin/sh
# Functions of arithmetic alone that several places call are functions of compiled code, too: results are the emulator's,
# of whole CTAs, of warps, and of one lane alone; that they are called is looked at.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "SKIP: the CPU device is not built here (llvm-19-dev)"; exit 77; }
gcc -O1 -Wall -o launch "$ROOT/tests/fuzz/kernels/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
failed=0
"$ROOT/tests/fuzz/kernels/generate" 2 --small --functions > even.ptx # whole CTAs
"$ROOT/tests/fuzz/kernels/generate" 3 --small --functions > odd.ptx
# One lane alone comes to a region of 200 operations and more, with two calls.
python3 - > lone.ptx <<'P'
print('.version 8.0\n.target sm_80\n.address_size 64\n.func (.param .b64 rv) f(.param .b64 a0, .param .b32 a1)\n{\n.reg .f64 %e<4>;\n.reg .b32 %r<2>;\n.reg .pred %p;')
print('ld.param.f64 %e0, [a0];\nld.param.u32 %r0, [a1];\ncvt.rn.f64.s32 %e1, %r0;\nsetp.lt.f64 %p, %e0, %e1;')
for i in range(30): print('add.f64 %e2, %e0, %e1;\nfma.rn.f64 %e0, %e2, 0d3FE0000000000000, %e1;\nrcp.approx.ftz.f64 %e1, %e0;')
print('@%p bra L;\nneg.f64 %e0, %e0;\nL:\nst.param.f64 [rv], %e0;\nret;\n}')
print('.visible .entry fuzz_9(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n.reg .f64 %e<4>;\n.reg .b32 %r<6>;\n.reg .b64 %d<4>;\n.reg .pred %p;')
print('ld.param.u64 %d0, [out];\nmov.u32 %r0, %tid.x;\nsetp.ne.s32 %p, %r0, 0;\n@%p bra END;\nmov.u32 %r1, %ctaid.x;\ncvt.rn.f64.s32 %e0, %r1;')
for i in range(110): print('fma.rn.f64 %e0, %e0, 0d3FE8000000000000, 0d3FF0000000000000;\nadd.s32 %r1, %r1, 3;')
for i in range(2): print('{\n.param .b64 p0;\n.param .b32 p1;\n.param .b64 got;\nst.param.f64 [p0], %e0;\nst.param.b32 [p1], %r1;\ncall.uni (got), f, (p0, p1);\nld.param.f64 %e0, [got];\n}')
print('mov.b64 %d2, %e0;\nmov.u32 %r1, %ctaid.x;\nmul.wide.u32 %d1, %r1, 8;\nadd.s64 %d0, %d0, %d1;\nst.global.u64 [%d0], %d2;\nEND: ret;\n}')
P
sed -i '1i // RUN grid=3 block=32 form=32x1x1' lone.ptx
export MARGAY_CPU_TIER=sync MARGAY_CPU_STORE=off MARGAY_CPU_VERIFY=1 MARGAY_CPU_VERBOSE=1
run() { # name, device
    "$MARGAY" run -q --device $2 -t none -o "$1" -- ./launch even.ptx odd.ptx lone.ptx > "$1.out" 2> "$1.err" || { echo "FAIL $1"; cat "$1.err"; failed=1; }
}
run emu emu
[ "$(wc -l < emu.out)" = 3 ] || { echo "FAIL: not three results"; cat emu.out; failed=1; }
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_ISA=$isa run $isa cpu
    cmp emu.out $isa.out || { diff emu.out $isa.out; failed=1; }
    [ $isa = base ] && continue # sums with products have no code there
    [ "$(grep -c 'warps, .* [12] functions called' $isa.err)" = 3 ] && [ "$(grep -c 'whole CTAs, .* [12] functions called' $isa.err)" -ge 1 ] ||
        { echo "FAIL: $isa: no functions are called"; cat $isa.err; failed=1; }
done
MARGAY_CPU_LIVE=0 run settled cpu
cmp emu.out settled.out || failed=1
exit $failed
