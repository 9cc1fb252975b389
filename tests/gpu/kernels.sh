#!/bin/sh
# Random kernels (tests/fuzz/kernels) on the GPU, with its own compiler and arithmetic, against the emulator: equal
# results, approximate functions included, natively and instrumented, and equal thread counts.
set -u
tools=$ROOT/tests/fuzz/kernels
gcc -O1 -Wall -o launch "$tools/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
"$tools/compare" --margay "$MARGAY" --launch ./launch --seeds "${SEEDS:-1-100}" --devices emu,nvidia --keep "${KEEP:-kept}"
