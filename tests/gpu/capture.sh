#!/bin/sh
# Captures on real hardware, of it and on it, as tests/inject/capture.sh; and bundled programs, whose counts under `blocks`
# are equal on the GPU and without it.
set -u
REAL_GPU=1 sh "$ROOT/tests/inject/capture.sh" || exit 1
for e in saxpy histogram stencil matmul; do
    [ -x "$EX/$e" ] || continue
    "$MARGAY" capture -q --device nvidia -o "gpu-$e" -- "$EX/$e" > out 2>&1 || { echo "FAIL $e"; cat out; exit 1; }
    for on in nvidia emu; do
        "$MARGAY" replay -q --device $on -t blocks -o "$e-$on" "gpu-$e" || { echo "FAIL $e on $on"; exit 1; }
        "$MARGAY" report "$e-$on" --json > $on.json
    done
    python3 - <<'P' || exit 1
import json
a, b = (json.load(open(d + '.json'))['kernels'] for d in ('nvidia', 'emu'))
assert [[x['thread_entries'] for x in k['blocks']] for k in a] == [[x['thread_entries'] for x in k['blocks']] for k in b]
P
    echo "ok   $e: results and counts"
done
