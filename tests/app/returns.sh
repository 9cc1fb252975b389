#!/bin/sh
# Kernels out of which lanes return all along the way, with more counters than registers: their flushes add up banks of bits, bytes and words,
# in loops in which pieces of a warp may meet. Thread counts by the twins' code (nvidia backend over the emulator) are the emulator's, also
# where lanes part at any jump (MARGAY_APART). And a function in which lanes may exit, called before a loop of unknown rounds.
set -u
gcc -O1 -Wall -o launch "$ROOT/tests/fuzz/kernels/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver
cat > make.py <<'P'
import sys
ifs, loops, block, sides = map(int, sys.argv[1:5])
mix = "mad.lo.u32 %h, %h, 1664525, 1013904223;"
head = """.version 8.0
.target sm_90
.address_size 64
"""
if not ifs:
    print(f"// RUN grid=2 block={block}\n{head}" + """.func f(.param .b32 a) { .reg .pred %p; .reg .b32 %r; ld.param.b32 %r, [a]; setp.eq.u32 %p, %r, 17; @%p exit; ret; }
.visible .entry fuzz_1(.param .u64 in, .param .u64 out, .param .u32 n)
{
.reg .pred %p; .reg .b32 %t, %r; .reg .b64 %d, %e;
ld.param.u64 %e, [in]; mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4; add.u64 %e, %e, %d; ld.global.u32 %r, [%e]; and.b32 %r, %r, 31;
{ .param .b32 a; st.param.b32 [a], %t; call f, (a); }
L: mul.lo.u32 %r, %r, 5; add.u32 %r, %r, 1; and.b32 %r, %r, 255; setp.gt.u32 %p, %r, 40; @%p bra L;
ld.param.u64 %e, [out]; add.u64 %e, %e, %d; st.global.u32 [%e], %r; ret;
}""")
    sys.exit()
print(f"// RUN grid=1 block={block}\n{head}.visible .entry fuzz_1(.param .u64 in, .param .u64 out, .param .u32 n)\n{{\n.reg .pred %p; .reg .b32 %h, %t, %a, %i; .reg .b64 %d, %e;")
print("mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4; ld.param.u64 %e, [in]; add.u64 %e, %e, %d; ld.global.u32 %h, [%e]; mov.u32 %a, 0;")
for k in range(loops):
    print(f"{mix} shr.u32 %i, %h, 27;\nW{k}: setp.eq.u32 %p, %i, 0; @%p bra V{k}; sub.u32 %i, %i, 1; and.b32 %t, %i, {k % 3 + 1}; setp.ne.u32 %p, %t, 0; @%p bra W{k};")
    print(f"add.u32 %a, %a, {k}; bra W{k};\nV{k}:")
for s in range(sides):
    if s + 1 < sides: print(f"{mix} shr.u32 %t, %h, 31; setp.eq.u32 %p, %t, 0; @%p bra S{s};")
    for k in range(ifs):
        print(f"{mix} shr.u32 %t, %h, 31; setp.eq.u32 %p, %t, 0; @%p bra B{s}_{k}; xor.b32 %a, %a, {k};\nB{s}_{k}:")
        if k % 9 == 8: print("shr.u32 %t, %h, 27; setp.eq.u32 %p, %t, 3; @%p ret;")
    if s + 1 < sides: print(f"bra E;\nS{s}:")
print("E: ld.param.u64 %e, [out]; add.u64 %e, %e, %d; st.global.u32 [%e], %a; ret;\n}")
P
cat > counts.py <<'P'
import json, sys
r = json.load(open(sys.argv[1]))
assert not r['coverage'].get('spoilt') and r['coverage']['instrumented'] == r['coverage']['launches'], r['coverage']
print([b['thread_entries'] for b in r['kernels'][0]['blocks']])
P
bad=0
for shape in '200 0 96 1' '400 80 90 1' '60 60 96 4' '120 60 31 2' '0 0 64 1'; do
    python3 make.py $shape > k.ptx
    for tool in blocks lanes; do
        for run in 'emu 0' 'nvidia 0' 'nvidia 1' 'nvidia 3' 'nvidia 4'; do
            set -- $run
            rm -rf d
            MARGAY_APART=$2 "$MARGAY" run -q --device "$1" -t $tool -o d -- ./launch k.ptx > out 2> err && "$MARGAY" report d --json > json &&
                python3 counts.py json > got || { echo "kernel $shape, $tool, $run: no counts"; tail -n 3 err; bad=1; continue; }
            [ "$run" = 'emu 0' ] && { cp got want; cp out wanted; continue; }
            cmp -s got want && cmp -s out wanted || { echo "kernel $shape, $tool, $run: other counts or results than the emulator's"; bad=1; }
        done
    done
done
exit $bad
