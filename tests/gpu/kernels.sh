#!/bin/sh
# Random kernels (tests/fuzz/kernels) on the GPU, with its own compiler and arithmetic, against the emulator: equal
# results, approximate functions included, natively and instrumented, and equal thread counts. Sixty that agree on an
# H200; one in forty does not (docs/history/2026-11.md): SEEDS=1-500 looks for more.
set -u
tools=$ROOT/tests/fuzz/kernels
gcc -O1 -Wall -o launch "$tools/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
"$tools/compare" --margay "$MARGAY" --launch ./launch --seeds "${SEEDS:-3500020-3500079}" --devices emu,nvidia --keep "${KEEP:-kept}"
