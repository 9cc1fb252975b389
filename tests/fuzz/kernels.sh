#!/bin/sh
# Random kernels (tests/fuzz/kernels): every software device and vector ISA gives the same results and
# counts, instrumented and not; the witness agrees; a planted difference is found. `make fuzz-kernels`
# goes on for longer, check-gpu adds the GPU.
set -u
tools=$ROOT/tests/fuzz/kernels
gcc -O1 -Wall -o launch "$tools/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
failed=0
compare() { # SEEDS DEVICES OPTION...
    seeds=$1 devices=$2
    shift 2
    "$tools/compare" --margay "$MARGAY" --launch ./launch --seeds "$seeds" --devices "$devices" "$@" > out 2>&1 && echo "$devices: $(tail -1 out)" || { cat out; failed=1; }
}
seed=${SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
echo "SEED=$seed"
some() { echo "$(($1 + seed % ($2 - $1 - $3 + 2)))-$(($1 + seed % ($2 - $1 - $3 + 2) + $3 - 1))"; } # FIRST LAST COUNT: so many of these, other ones each time
compare "$(some 1 40 8)" emu:base,emu:avx2,emu
compare "$(some 13 18 2)" emu:base,emu --tools lanes,memory,opcodes,values,functions
if [ -e "$B/lib/margay/libmargay-cpu.so" ]; then # every kernel compiled before it runs
    compare "$(some 1 40 3)" emu,cpu
    compare 9 emu,cpu:avx2,cpu:base
    compare "$(some 1 40 1)" emu,cpu:avx2,cpu --functions
    compare "$(some 13 18 1)" emu,cpu --tools lanes,memory,opcodes,values
    export MARGAY_CPU_LIVE=0 # as large functions are compiled
    compare "$(some 1 40 1)" emu,cpu
    unset MARGAY_CPU_LIVE
else echo "the CPU device is not built here (llvm-19-dev): left out"
fi
"$tools/generate" 7 > k7.ptx && "$tools/generate" 7 | cmp - k7.ptx || { echo "FAIL: not the same for the same seed"; failed=1; }
"$tools/generate" 8 > k8.ptx
"$ROOT/tests/witness" --margay "$MARGAY" --warps -- ./launch k7.ptx k8.ptx || failed=1
cat > planted <<'P'
#!/bin/sh
./launch "$@" | if [ "${MARGAY_ISA:-}" = avx2 ]; then sed 's/^\(k3.ptx .*\).$/\1x/'; else cat; fi
P
chmod +x planted
"$tools/compare" --margay "$MARGAY" --launch ./planted --seeds 1-4 --devices emu:base,emu:avx2 --keep kept > out 2>&1
[ $? = 1 ] && grep -q '^4 kernels, 1 differ' out && grep -q '^3: emu:avx2' out && [ -s kept/k3.ptx ] || { echo "FAIL: a planted difference was not found"; cat out; failed=1; }
cat > planted <<'P'
#!/bin/sh
[ "$1" = run ] && echo "${MARGAY_ISA:-}" > isa
[ "$1" = report ] && [ "$(cat isa)" = avx2 ] && { "$MARGAY" "$@" | sed 's/"requests": *[1-9][0-9]*/&0/'; exit; }
exec "$MARGAY" "$@"
P
"$tools/compare" --margay ./planted --launch ./launch --seeds 13-14 --devices emu:base,emu:avx2 --keep kept --tools memory > out 2>&1
[ $? = 1 ] && grep -q 'emu:avx2: .memory.sites.*requests: [1-9][0-9]*0, [0-9]* on emu:base' out || { echo "FAIL: a planted difference in a tool's number was not found"; cat out; failed=1; }
exit $failed
