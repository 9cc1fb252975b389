#!/usr/bin/env bash
# margay ptx check|print on text, fatbins and executables: what it prints, what it says about errors.
set -euo pipefail
corpus=$ROOT/tests/fuzz/corpus
"$MARGAY" ptx check "$corpus/ptx/loop.ptx" | grep -q 'PTX 8.6, sm_90a, 64-bit: 1 kernels, 0 functions, 10 instructions'

# a fatbin holding two packings, an ELF file holding two fatbins, a cubin with its PTX
[ "$("$MARGAY" ptx check "$corpus/fatbin/packed.fatbin" | wc -l)" = 2 ]
"$MARGAY" ptx check "$corpus/fatbin/packed.fatbin" | grep -q '(0:sm_90a): PTX 7.0'
[ "$("$MARGAY" ptx check "$corpus/fatbin/host.elf" | wc -l)" = 2 ]
"$MARGAY" ptx check "$corpus/fatbin/cubin.elf" >/dev/null

# unknown words: a finding, not an error, and printed back as they were
rc=0; "$MARGAY" ptx check "$corpus/ptx/unknown.ptx" > out || rc=$?
[ $rc = 1 ] && grep -q 'frob.x  x 1' out
"$MARGAY" ptx print "$corpus/ptx/unknown.ptx" | grep -q 'frob.x r, \[nothing, {r}\], later, 3.5;'

# errors: place, message, exit status; nothing on stdout
rc=0; "$MARGAY" ptx check "$corpus/ptx/errors.ptx" > out 2> err || rc=$?
[ $rc = 3 ] && [ ! -s out ]
grep -q "errors.ptx:3:37: error: expected ';' after the operands, found '1'" err
grep -q "errors.ptx:3:67: error: guard 'r' is not a .pred register" err
grep -q 'never closed' err

# failure paths: no PTX, not an image, cut off in the middle, absent
rc=0; "$MARGAY" ptx check /bin/ls 2> err || rc=$?; [ $rc = 3 ] && grep -q 'holds no PTX' err
rc=0; "$MARGAY" ptx check "$0" 2> err || rc=$?; [ $rc = 3 ] && grep -q 'no CUDA image' err
head -c 100 "$corpus/fatbin/packed.fatbin" > cut
rc=0; "$MARGAY" ptx check cut 2> err || rc=$?; [ $rc = 3 ] && grep -q 'fatbin' err
head -c 300 "$corpus/ptx/loop.ptx" > cut.ptx
rc=0; "$MARGAY" ptx check cut.ptx 2> err || rc=$?; [ $rc = 3 ] && grep -q 'cut off' err
rc=0; "$MARGAY" ptx check /nonexistent 2> err || rc=$?; [ $rc = 3 ]
rc=0; "$MARGAY" ptx frob x 2> err || rc=$?; [ $rc = 2 ] && grep -q "no action 'frob'" err

# printing is a fixed point on every seed that parses
for f in "$corpus"/ptx/*.ptx; do
    "$MARGAY" ptx print "$f" > one.ptx 2>/dev/null || continue
    "$MARGAY" ptx print one.ptx > two.ptx
    cmp one.ptx two.ptx
done

# standard input; a tool or pass that does not exist is known before anything is read; a pattern that fits nothing
"$MARGAY" ptx check - < "$corpus/ptx/loop.ptx" | grep -q '^-: PTX 8.6'
"$MARGAY" ptx print - < "$corpus/ptx/loop.ptx" | cmp - <("$MARGAY" ptx print "$corpus/ptx/loop.ptx")
cat "$corpus/fatbin/packed.fatbin" | "$MARGAY" ptx stat - | grep -q '^kernel'
for o in '-t nosuch' '-t blocks,nosuch=1' '--pass nosuch'; do
    rc=0; "$MARGAY" ptx instrument $o /nonexistent 2> err || rc=$?
    [ $rc = 2 ] && ! grep -q nonexistent err || { echo "$o: exit $rc"; exit 1; }
done
"$MARGAY" ptx stat --kernel nosuch "$corpus/ptx/loop.ptx" 2> err > /dev/null && grep -q 'kernel nosuch matches no function' err

# several tools, as for a GPU and not; a dump shows the module between them; passes in order; each text assembles
"$MARGAY" ptx instrument -t opcodes -t lanes "$corpus/ptx/loop.ptx" > emu.ptx
"$MARGAY" ptx instrument -t opcodes -t lanes --sm 90 "$corpus/ptx/loop.ptx" > gpu.ptx
head -1 gpu.ptx | grep -q 'lanes: .* cells in [0-9]* copies' && ! grep -q '%smid' emu.ptx && grep -q '%smid' gpu.ptx
"$MARGAY" ptx instrument -t opcodes -t lanes --dump opcodes "$corpus/ptx/loop.ptx" > dump.ptx
[ "$(grep -c '^\.version' dump.ptx)" = 2 ] && grep -q '^// after pass opcodes' dump.ptx
"$MARGAY" ptx instrument -t opcodes -t blocks,counters=thread "$corpus/ptx/loop.ptx" | head -1 | grep -q 'opcodes: counters=thread of tool blocks counts alone'
cat > small.ptx <<'P'
.version 7.0
.target sm_70
.address_size 64
.func (.param .b32 r) small(.param .b32 a)
{
.reg .b32 %r<3>;
ld.param.b32 %r1, [a];
add.u32 %r2, %r1, 1;
st.param.b32 [r], %r2;
ret;
}
.visible .entry k(.param .u64 p)
{
.reg .b32 %r<3>;
.reg .b64 %d<2>;
ld.param.u64 %d1, [p];
ld.global.u32 %r1, [%d1];
{
.param .b32 x;
.param .b32 y;
st.param.b32 [x], %r1;
call (y), small, (x);
ld.param.b32 %r2, [y];
}
st.global.u32 [%d1], %r2;
ret;
}
P
calls() { "$MARGAY" ptx instrument -t blocks,$1 --sm 90 small.ptx | grep -c 'call.*small' || true; }
[ "$(calls warps=on)" = 1 ] && [ "$(calls warps=off)" = 0 ] # where warps are counted, lanes are to meet behind calls
"$MARGAY" ptx instrument --pass ssa,regs "$corpus/ptx/loop.ptx" > regs.ptx
rc=0; "$MARGAY" ptx instrument --pass ssa,nosuch "$corpus/ptx/loop.ptx" 2> err || rc=$?; [ $rc = 2 ] && grep -q "no pass 'nosuch'" err
if [ -n "${NVCC:-}" ]; then
    for f in gpu regs; do "$(dirname "$NVCC")/ptxas" -arch=sm_90a $f.ptx -o $f.cubin; done
fi
