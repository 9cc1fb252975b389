#!/bin/sh
# Random kernels (tests/fuzz/kernels) on the GPU, with its own compiler and arithmetic. Those whose products and sums say how they are rounded,
# approximate functions included: results and thread counts are the emulator's, natively and instrumented. Those that leave it to
# the assembler: instrumented as natively; the emulator knows most of what the assembler makes one operation (docs/arithmetic.md),
# so how many differ from it is told. New seeds each time, printed; SEEDS=A-B: these.
set -u
tools=$ROOT/tests/fuzz/kernels first=$(($(date +%s) % 100000 * 1000)) failed=0
seeds=${SEEDS:-$first-$((first + 99))}
echo "seeds $seeds"
gcc -O1 -Wall -o launch "$tools/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
"$tools/compare" --margay "$MARGAY" --launch ./launch --seeds "$seeds" --devices emu,nvidia --rounded --keep "${KEEP:-kept}" || failed=1
"$tools/compare" --margay "$MARGAY" --launch ./launch --seeds "$seeds" --devices nvidia --keep "${KEEP:-kept}" || failed=1
echo "products and sums left to the assembler, emulator and GPU: $("$tools/compare" --margay "$MARGAY" --launch ./launch --seeds "$seeds" --devices emu,nvidia --keep open | tail -n 1)"
exit $failed
