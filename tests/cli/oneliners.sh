#!/usr/bin/env bash
# The one-liners of docs/probe-language.md run as printed, and count what follows from the programs.
set -euo pipefail
[ -x "$EX/saxpy" ] || { echo "the examples need clang"; exit 77; }
for e in saxpy reduce divergent matmul histogram stencil; do ln -s "$EX/$e" $e; done
export PATH="$(dirname "$MARGAY"):$PATH"
python3 "$ROOT/tests/cli/oneliners.py" "$ROOT/docs/probe-language.md"
