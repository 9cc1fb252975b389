#!/bin/bash
# margay ptx instrument --dump plan: what is measured, in which storage class, and why. How many counters there are follows
# from the graph alone (edges - blocks + 1 that are independent, the entry known); where they lie from the rules in
# docs/counters.md, by hand for these kernels. The plan is comments: the text stays PTX.
set -eu
cat > plan.ptx <<'P'
.version 7.0
.target sm_80
.address_size 64
.visible .entry waits(.param .u64 p)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
AGAIN:
    ld.global.u32 %r1, [%rd1];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    ret;
}
.visible .entry steps(.param .u64 p, .param .u32 n)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r2, [n];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra DONE;
    mov.u32 %r1, 0;
LOOP:
    st.global.u32 [%rd1], %r1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, %r2;
    @%p2 bra LOOP;
DONE:
    ret;
}
P
cat > want.register <<'W'
// plan of waits: 1 counters for 3 blocks
//   block 1 (AGAIN): 64: 2^32 events or more
// plan of steps: 2 counters for 4 blocks, which CTA 0 counts for all
//   loop of block 2 (LOOP) by its induction variable: 32: fewer than 2^32 events
//   edge 0 -> 3 (DONE): bit: at most once in an activation
W
cat > want.class <<'W' # blocks that are entered equally often share a counter; counter 0 is for what is never entered
//   block 0 of waits (entry): counter 1
//   block 1 of waits (AGAIN): counter 2
//   block 2 of waits: counter 1
//   block 0 of steps (entry): counter 1
//   block 1 of steps: counter 2
//   block 2 of steps (LOOP): counter 3
//   block 3 of steps (DONE): counter 1
W
"$MARGAY" ptx instrument -t blocks --sm 90 --dump plan plan.ptx > register.ptx
"$MARGAY" ptx instrument -t blocks,warps=off --dump plan plan.ptx > class.ptx
"$MARGAY" ptx instrument -t opcodes --sm 90 --dump plan plan.ptx > opcodes.ptx # asks for counts: planned alike
grep -E '^// (plan|  )' register.ptx | diff want.register -
grep -E '^// (plan|  )' opcodes.ptx | diff want.register -
grep '^//   ' class.ptx | diff want.class -
"$MARGAY" ptx instrument -t blocks --sm 90 --dump plan --kernel steps plan.ptx > one.ptx
"$MARGAY" ptx check one.ptx > /dev/null
# fewer registers than counters: shared memory takes what is left, and says why
{ cat <<'P'
.version 7.0
.target sm_80
.address_size 64
.visible .entry many(.param .u64 p)
{
    .reg .pred %p<40>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
P
  for i in $(seq 6); do echo "L$i: ld.volatile.global.u32 %r$i, [%rd1]; setp.ne.u32 %p$i, %r$i, 0; @%p$i bra L$i;"; done
  printf 'ret;\n}\n'; } > many.ptx
"$MARGAY" ptx instrument -t blocks,registers=2 --sm 90 --dump plan many.ptx > many.out
[ "$(grep -c '^//   block [1-6] (L[1-6]): ' many.out)" = 6 ] && grep -q ': shared: registers for counters are full$' many.out && grep -q 'red.shared.add.u32' many.out
"$MARGAY" ptx instrument -t blocks --sm 90 --dump plan many.ptx > many.out
! grep -q ': shared' many.out && ! grep -q 'red.shared' many.out
rc=0
"$MARGAY" ptx instrument -t blocks,registers=33 --sm 90 many.ptx > many.out 2>&1 || rc=$?
[ $rc = 2 ] && grep -q registers many.out # more than counters may have
