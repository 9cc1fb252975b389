#!/usr/bin/env bash
# The pseudo form of a GPU's trace: instructions as the block counter has them, accesses as the memory form; the cache model's figures of
# lines and buffers against caches that are lists.
set -euo pipefail
nvidia-smi -L > /dev/null 2>&1 || { echo "no GPU"; exit 77; }
[ -x "$EX/matmul-rt" ] || { echo "the examples were not built: need nvcc"; exit 77; }
for program in 'matmul-rt 32' 'histogram-rt 700' 'divergent-rt 200' 'stencil-rt 20 2'; do
    read -r name args <<<"$program"
    "$MARGAY" run -q -t trace,instructions=on -t blocks --device nvidia -o $name -- "$EX/$name" $args > /dev/null
    for form in pseudo memory; do "$MARGAY" trace convert $name --to accelsim-$form -o $name.$form 2> said || { cat said; exit 1; }; done
    "$MARGAY" report $name --json > $name.json
    python3 "$ROOT/tests/cli/pseudo.py" $name lanes # warps need not come to a block and to its accesses alike
    "$MARGAY" study cache $name --l1 4096 --l2 8192 --json > cache.json
    "$MARGAY" trace convert $name --to csv -o lanes.csv 2> /dev/null
    "$MARGAY" trace print $name --kind trace.step --json > steps.json
    python3 "$ROOT/tests/cli/cache_parts.py" cache.json lanes.csv steps.json
done
