#!/bin/sh
# Some bits of one register and the others of another, where only some lanes run and the others keep either: LLVM 19 makes
# wrong code of that with AVX-512 (plugin/merge.c). Results are the emulator's, with registers in memory and in vectors.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
gcc -O1 -o launch "$ROOT/tests/fuzz/kernels/launch.c" -L"$B/lib/margay/driver" -lcuda || { echo "FAIL gcc"; exit 1; }
awk 'BEGIN {
    print "// RUN grid=3 block=80 form=80x1x1\n.version 8.0\n.target sm_80\n.address_size 64"
    print ".visible .entry fuzz_1(.param .u64 in, .param .u64 out, .param .u32 n)\n{"
    print ".reg .pred %p; .reg .b32 %r<12>, %a, %b, %k; .reg .b64 %d<12>, %in, %out, %x; .reg .f32 %f<6>; .reg .f64 %e<6>;"
    print "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %a, %tid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %a, %b, 80, %a;"
    print "mul.wide.u32 %x, %a, 32; add.s64 %in, %in, %x; add.s64 %out, %out, %x; ld.global.u32 %b, [%in]; mov.u32 %k, 0;"
    for (i = 0; i < 12; i++) print "mad.lo.u32 %r" i ", %b, " 2654435761 + 77773 * i ", " 97 * i "; xor.b32 %b, %b, %r" i ";"
    for (i = 0; i < 12; i++) print "mov.b64 %d" i ", {%r" i ", %r" (i * 5 + 1) % 12 "};"
    for (i = 0; i < 6; i++) print "mov.b32 %f" i ", %r" i "; mov.b64 %e" i ", %d" i ";"
    print "LOOP:"
    for (i = 0; i < 36; i++) {
        x = i * 7 % 12; y = (i * 5 + 3) % 12; if (y == x) y = (y + 1) % 12
        print "add.u32 %b, %a, %k; rem.u32 %b, %b, " i % 7 + 2 "; setp.gt.u32 %p, %b, " i % 7 / 2 "; @%p bra L" i ";"
        if (i % 6 == 0) print "bfi.b32 %r" x ", %r" x ", %r" y ", 0, 13;"
        if (i % 6 == 1) print "bfi.b32 %r" x ", %r" y ", %r" x ", 0, 13;"
        if (i % 6 == 2) print "and.b64 %x, %d" x ", 0xff00ff00ff00ff00; and.b64 %d" y ", %d" y ", 0x00ff00ff00ff00ff; or.b64 %d" y ", %x, %d" y ";"
        if (i % 6 == 3) print "and.b64 %x, %d" x ", 0xffff; and.b64 %d" x ", %d" y ", 0xffffffffffff0000; or.b64 %d" x ", %x, %d" x ";"
        if (i % 6 == 4) print "copysign.f32 %f" x % 6 ", %f" y % 6 ", %f" x % 6 "; lop3.b32 %r" x ", %r" x ", %r" y ", 0xff0000, 0xe4;"
        if (i % 6 == 5) print "copysign.f64 %e" x % 6 ", %e" x % 6 ", %e" y % 6 "; lop3.b32 %r" y ", %r" x ", 0xf0f0f0f, %r" y ", 0xb8;"
        print "L" i ":"
    }
    print "add.u32 %k, %k, 1; setp.lt.u32 %p, %k, 5; @%p bra LOOP;"
    for (i = 0; i < 6; i++) print "mov.b32 %b, %f" i "; xor.b32 %r" i ", %r" i ", %b; mov.b64 %x, %e" i "; xor.b64 %d" i ", %d" i ", %x;"
    for (i = 0; i < 12; i++) print "cvt.u32.u64 %b, %d" i "; xor.b32 %r" i ", %r" i ", %b; shr.u64 %x, %d" i ", 32; cvt.u32.u64 %b, %x; xor.b32 %r" (i + 5) % 12 ", %r" (i + 5) % 12 ", %b;"
    for (i = 0; i < 4; i++) print "xor.b32 %r" i ", %r" i ", %r" i + 8 ";"
    for (i = 0; i < 8; i++) print "st.global.u32 [%out+" 4 * i "], %r" i ";"
    print "ret;\n}"
}' > k1.ptx
export MARGAY_CPU_STORE=off MARGAY_CPU_TIER=sync
run() { # DEVICE
    "$B/bin/margay" run -q -t none --device "$1" -o p -- ./launch k1.ptx
    rm -rf p
}
want=$(run emu) rc=0
case $want in
'k1.ptx '????????????????) ;;
*) echo "FAIL the emulator: $want"; exit 1 ;;
esac
for isa in ${ISA:-avx512 avx2 base}; do
    for live in 0 1500; do
        got=$(MARGAY_ISA=$isa MARGAY_CPU_LIVE=$live run cpu)
        [ "$got" = "$want" ] || { echo "FAIL $isa, MARGAY_CPU_LIVE=$live: $got, not $want"; rc=1; }
    done
done
exit $rc
