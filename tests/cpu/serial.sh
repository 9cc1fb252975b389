#!/bin/sh
# A loop that lanes go through one after the other: results and counts, of threads and of warps, are the emulator's at every
# vector ISA; and that it is such a loop is looked at.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "SKIP: the CPU device is not built here (llvm-19-dev)"; exit 77; }
gcc -O1 -Wall -o launch "$ROOT/tests/fuzz/kernels/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
failed=0
export MARGAY_CPU_TIER=sync MARGAY_CPU_STORE=off MARGAY_CPU_SERIAL=all MARGAY_CPU_VERIFY=1
run() { # name, device, options
    "$MARGAY" run -q --device $2 --workers=1 -o "$1" ${3:-} -- ./launch "$ROOT/tests/cpu/serial.ptx" "$ROOT/tests/cpu/lists.ptx" "$ROOT/tests/cpu/some.ptx" > "$1.out" 2> "$1.err" || { echo "FAIL $1"; cat "$1.err"; failed=1; }
    "$MARGAY" report "$1" --json | python3 -c 'import json, sys
for k in json.load(sys.stdin)["kernels"]:
    for b in k["blocks"]: print(b["ptx_line"], b["thread_entries"], b["warp_entries"])' > "$1.counts"
}
run emu emu
[ "$(wc -l < emu.counts)" -ge 15 ] || { echo "FAIL: no counts"; failed=1; }
for isa in ${ISA:-avx512 avx2 base}; do
    MARGAY_ISA=$isa MARGAY_CPU_VERBOSE=1 run $isa cpu
    [ "$(grep -c 'whole CTAs, .* 1 loops lane by lane' $isa.err)" = 3 ] && [ "$(grep -c 'warps, .* 1 loops lane by lane' $isa.err)" = 3 ] || { echo "FAIL: $isa: not lane by lane"; cat $isa.err; failed=1; }
    cmp emu.out $isa.out && cmp emu.counts $isa.counts || { diff emu.counts $isa.counts; failed=1; }
done
MARGAY_CPU_WHOLE=off run warps cpu
MARGAY_CPU_LIVE=0 run settled cpu
run none cpu "-t none"
cmp emu.out warps.out && cmp emu.counts warps.counts && cmp emu.out settled.out && cmp emu.counts settled.counts && cmp emu.out none.out || failed=1
# Loads that may see what another lane stores meanwhile are not taken so: who waits for a lane behind it needs its turn.
for load in ld.volatile ld.relaxed.gpu ld.acquire.gpu; do
    sed "s/ld.global.u32 %r9/$load.global.u32 %r9/" "$ROOT/tests/cpu/some.ptx" > strong.ptx
    grep -q "$load" strong.ptx || failed=1
    "$MARGAY" run -q --device emu -t none -o strong-emu -- ./launch strong.ptx > strong-emu.out 2>&1 || failed=1
    MARGAY_CPU_VERBOSE=1 "$MARGAY" run -q --device cpu -t none -o strong-cpu -- ./launch strong.ptx > strong-cpu.out 2> strong-cpu.err || failed=1
    cmp strong-emu.out strong-cpu.out || failed=1
    [ "$(grep -c ' not lane by lane: no code for one lane: PTX line ' strong-cpu.err)" -ge 1 ] || { echo "FAIL: $load: no reason"; cat strong-cpu.err; failed=1; }
    grep -q ' 0 loops lane by lane' strong-cpu.err && ! grep -q ' [1-9][0-9]* loops lane by lane' strong-cpu.err || { echo "FAIL: $load lane by lane"; cat strong-cpu.err; failed=1; }
    rm -rf strong-emu strong-cpu
done
# Nor are those of large functions.
awk '{ print } /mov.u32 %r7, 0;/ { for (i = 0; i < 1050; i++) print "add.u32 %r7, %r7, %r4;\nxor.b32 %r7, %r7, %r6;" }' "$ROOT/tests/cpu/lists.ptx" > large.ptx
unset MARGAY_CPU_SERIAL
"$MARGAY" run -q --device emu -t none -o large-emu -- ./launch large.ptx > large-emu.out 2>&1 || failed=1
for ptx in "$ROOT/tests/cpu/lists.ptx" large.ptx; do
    MARGAY_CPU_VERBOSE=1 "$MARGAY" run -q --device cpu -t none -o large-cpu -- ./launch "$ptx" > large-cpu.out 2> large-cpu.err || failed=1
    grep -q ' 1 loops lane by lane' large-cpu.err && echo "$ptx"
    rm -rf large-cpu
done > taken
[ "$(cat taken)" = "$ROOT/tests/cpu/lists.ptx" ] && grep -q 'not lane by lane: the function has more than 2,000 operations' large-cpu.err || { echo "FAIL: large"; cat taken large-cpu.err; failed=1; }
cmp large-emu.out large-cpu.out || failed=1
# Nor are those where lanes also load in rows that move.
awk '/ld.global.u32 %r14, \[%d3\];/ { for (i = 0; i < 6; i++) print "ld.global.u32 %r14, [%d3+" 4 * i "];\nxor.b32 %r7, %r7, %r14;"; print "add.u64 %d3, %d3, 128;" } { print }' "$ROOT/tests/cpu/lists.ptx" > rows.ptx
for d in emu cpu; do
    MARGAY_CPU_VERBOSE=1 "$MARGAY" run -q --device $d -t none -o rows-$d -- ./launch rows.ptx > rows-$d.out 2> rows-$d.err || failed=1
done
grep -q 'not lane by lane: lanes lie in rows in it, too' rows-cpu.err && cmp rows-emu.out rows-cpu.out || { echo "FAIL: rows"; cat rows-cpu.err; failed=1; }
exit $failed
