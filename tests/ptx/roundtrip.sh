#!/usr/bin/env bash
# What Margay prints assembles to the same machine code: the examples' kernels as nvcc and clang
# compile them, one file that uses the rarer parts of the language, plain and through the stress pass.
set -euo pipefail
[ -n "$NVCC" ] || { echo "nvcc is absent"; exit 77; }
ptxas=$(dirname "$NVCC")/ptxas
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
echo "SEED=$seed"
i=0
for k in "$ROOT"/examples/*/kernel.cu; do
    n=$(basename "$(dirname "$k")")
    "$NVCC" -ptx -arch=compute_90 -lineinfo -o "nvcc-$n.ptx" "$k"
    [ $((i++ % 3)) != $((seed % 3)) ] || "$NVCC" -ptx -arch=compute_80 -G -o "debug-$n.ptx" "$k"
done
for f in "$EX"/*.ptx; do [ -e "$f" ] && cp "$f" "clang-$(basename "$f")"; done
cp "$ROOT"/tests/ptx/language-*.ptx .
"$ROOT/scripts/ptx-roundtrip" --margay "$MARGAY" --ptxas "$ptxas" . | tee out
grep -q ' 0 failed, 0 not accepted' out
"$ROOT/scripts/ptx-roundtrip" --stress --margay "$MARGAY" --ptxas "$ptxas" . | tee out
grep -q ' 0 failed, 0 not accepted' out
