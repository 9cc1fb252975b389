#!/bin/sh
# Our declarations of the runtime's interface have the sizes, offsets and numbers of the real header.
set -e
include=$(dirname "$(dirname "${NVCC:-/none/none}")")/include
[ -r "$include/cuda_runtime_api.h" ] || { echo "no CUDA headers here"; exit 77; }
cc -std=c17 -I"$ROOT/src" "$ROOT/tests/runtime/layout.c" -o ours
cc -std=c17 -DREAL -I"$include" -I"$ROOT/src" "$ROOT/tests/runtime/layout.c" -o real
./ours > ours.txt
./real > real.txt
[ "$(wc -l < ours.txt)" -gt 300 ]
diff ours.txt real.txt
