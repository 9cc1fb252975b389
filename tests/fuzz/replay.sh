#!/usr/bin/env bash
# Every fuzz target over its seed corpus.
set -euo pipefail
make -s -C "$ROOT" VARIANT="$VARIANT" "build/$VARIANT/bin/replay" >/dev/null
for t in "$ROOT"/tests/fuzz/fuzz_*.c; do
    name=$(basename "$t" .c)
    name=${name#fuzz_}
    [ -d "$ROOT/tests/fuzz/corpus/$name" ] || { echo "no corpus for $name"; exit 1; }
    "$B/bin/replay" "$name" "$ROOT/tests/fuzz/corpus/$name" || { echo "$name fails on its corpus"; exit 1; }
done
