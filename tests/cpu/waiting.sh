#!/bin/sh
# Warps that pause in front of a loop, some with lanes that wait behind it, others with none: these go on to the end (ends),
# or round an outer loop (rounds), before the others come out of the next loop. Results and counts are the emulator's, and
# code for whole CTAs is made.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
gcc -O1 -Wall -o launch "$ROOT/tests/fuzz/kernels/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
failed=0
export MARGAY_CPU_TIER=sync MARGAY_CPU_STORE=off MARGAY_CPU_VERIFY=1
kernel() { # FORM, BLOCK, ROUNDS
    cat <<P
// RUN grid=5 block=$2 form=$1
.version 8.0
.target sm_80
.address_size 64
.visible .entry fuzz_$3(.param .u64 in, .param .u64 out, .param .u32 n)
{
    .reg .pred %p<5>;
    .reg .b32 %r<10>;
    .reg .b64 %d<3>;
    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %tid.y;
    mov.u32 %r2, %ntid.x;
    mad.lo.u32 %r0, %r1, %r2, %r0;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r1, %r1, $2, %r0;
    mul.wide.u32 %d2, %r1, 32;
    add.s64 %d0, %d0, %d2;
    add.s64 %d1, %d1, %d2;
    shr.u32 %r0, %r0, 5;
    and.b32 %r0, %r0, 1;
    ld.global.u32 %r1, [%d0];
    and.b32 %r2, %r1, 3;
    mov.u32 %r3, 0;
    mov.u32 %r4, 0;
    mov.u32 %r5, 0;
ROUND: // of every other warp some lanes wait at B in the first round; in the others all come to it
    and.b32 %r6, %r1, 4;
    mul.lo.u32 %r6, %r6, %r0;
    add.u32 %r6, %r6, %r3;
    setp.ne.u32 %p0, %r6, 0;
    @%p0 bra B;
    mov.u32 %r7, 0;
A:
    add.u32 %r7, %r7, 1;
    add.u32 %r5, %r5, %r7;
    setp.lt.u32 %p1, %r7, %r2;
    @%p1 bra A;
    bra NEXT;
B:
    mov.u32 %r7, 0;
C:
    add.u32 %r7, %r7, 1;
    mad.lo.u32 %r4, %r4, 3, 1;
    setp.lt.u32 %p2, %r7, %r2;
    @%p2 bra C;
NEXT:
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, $3;
    @%p3 bra ROUND;
    st.global.u32 [%d1], %r3;
    st.global.u32 [%d1+4], %r4;
    st.global.u32 [%d1+8], %r5;
    ret;
}
P
}
run() { # DEVICE
    "$MARGAY" run -q --device "$1" -o "$1" -- ./launch ends.ptx rounds.ptx tail.ptx > "$1.out" 2> "$1.err" || { echo "FAIL $1"; cat "$1.err"; failed=1; }
    "$MARGAY" report "$1" --json | python3 -c 'import json, sys
for k in json.load(sys.stdin)["kernels"]:
    for b in k["blocks"]: print(b["ptx_line"], b["thread_entries"], b["warp_entries"])' > "$1.counts"
}
kernel 64x1x1 64 1 > ends.ptx
kernel 64x1x1 64 3 > rounds.ptx
kernel 12x4x1 48 2 > tail.ptx
run emu
MARGAY_CPU_VERBOSE=1 run cpu
[ "$(grep -c ': whole CTAs, ' cpu.err)" = 3 ] || { echo "FAIL: no code for whole CTAs"; cat cpu.err; failed=1; }
[ "$(wc -l < emu.counts)" -ge 15 ] || { echo "FAIL: no counts"; failed=1; }
cmp emu.counts cpu.counts || { diff emu.counts cpu.counts; failed=1; }
"$MARGAY" run -q --device cpu -t none -o none -- ./launch ends.ptx rounds.ptx tail.ptx > none.out 2> none.err || failed=1
for out in cpu none; do cmp emu.out $out.out || { diff emu.out $out.out; failed=1; }; done
exit $failed
