#!/bin/sh
# Twins that tell which lanes run together have no atomic on shared memory in loops, where ptxas may put YIELD for its sake (patch/shared.c), and keep calls:
# one loop ends by what it computes, the same counts up to a bound. Counts of blocks alone are free to do both.
set -eu
: "${MARGAY:=build/release/bin/margay}"
kernel() { # HOW THE LOOP ENDS: six places that ask who is there, else all lie in memory
    cat <<P
.version 7.8
.target sm_90
.address_size 64
.func (.param .b32 r) twice(.param .b32 a) { .reg .b32 x; ld.param.u32 x, [a]; add.u32 x, x, x; st.param.b32 [r], x; ret; }
.visible .entry k(.param .u64 a, .param .u32 n)
{
    .reg .b32 %r<19>; .reg .b64 %rd<9>; .reg .pred %p<9>;
    ld.param.u64 %rd1, [a]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1]; mov.u32 %r3, 0;
L:  and.b32 %r4, %r2, 1; setp.eq.u32 %p1, %r4, 0;
    @%p1 bra A;
    mad.lo.u32 %r2, %r2, 3, 1; st.global.u32 [%rd1+64], %r2;
    and.b32 %r4, %r2, 2; setp.eq.u32 %p2, %r4, 0;
    @%p2 bra B;
    add.u32 %r5, %r5, %r2; st.global.u32 [%rd1+128], %r5;
B:  add.u32 %r5, %r5, %r3;
    bra C;
A:  shr.u32 %r2, %r2, 1; st.global.u32 [%rd1+256], %r2;
C:  add.u32 %r3, %r3, 1;
    $1
    @%p3 bra L;
    $2
    st.global.u32 [%rd1], %r5;
    ret;
}
P
}
bad=0
count() { # FILE TOOL PATTERN: in the loop
    "$MARGAY" ptx instrument -t "$2" --sm 90 "$1" | sed -n '/^L:/,/bra L;/p' | grep -c "$3" || true
}
kernel 'setp.ne.u32 %p3, %r2, 1;' '' > waits.ptx
kernel 'setp.lt.u32 %p3, %r3, %r9;' '' > counts.ptx
kernel 'setp.lt.u32 %p3, %r3, %r9;' 'call (%r5), twice, (%r5);' > calls.ptx
for tool in lanes memory; do
    for loop in waits counts; do
        n=$(count $loop.ptx $tool '\(red\|atom\|volatile\)[.]shared')
        [ "$n" = 0 ] || { echo "$tool: $n lines with shared memory in the loop of $loop.ptx"; bad=1; }
    done
done
{ # eight requests of code that runs once, each at an address of its own
    printf '.version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .b64 %%rd<9>; ld.param.u64 %%rd0, [a];\n'
    for i in 1 2 3 4 5 6 7 8; do echo "ld.global.u64 %rd$i, [%rd$((i - 1))];"; done
    printf 'ret;\n}\n'
} >once.ptx
[ "$("$MARGAY" ptx instrument -t memory --sm 90 once.ptx | grep -c 'red[.]shared')" -gt 2 ] || { echo "memory: nothing is added to near the threads in code that runs once"; bad=1; }
for tool in lanes memory blocks,warps=on; do
    "$MARGAY" ptx instrument -t $tool --sm 90 calls.ptx | grep -q "call.*twice" || { echo "$tool: a call is gone, behind which lanes meet"; bad=1; }
done
exit $bad
