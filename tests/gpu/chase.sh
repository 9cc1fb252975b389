#!/bin/sh
# `latency` finds the plateaus of a pointer chase, L1, L2 and HBM, within 10 % of what the program's own clock says of a step natively.
set -u
[ -n "$NVCC" ] || { echo "nvcc is not installed"; exit 77; }
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
"$NVCC" -O2 -lineinfo -arch=sm_"$arch" -o chase "$ROOT/tests/gpu/chase.cu" || exit 1
bad=0
for kib in 16 8192 1048576; do
    ./chase $kib > native || { echo "chase $kib natively: exit $?"; exit 1; }
    rm -rf profile
    "$MARGAY" run -q -t latency,space=global --device nvidia -o profile -- ./chase $kib > out 2> err || { cat out err; exit 1; }
    "$MARGAY" report profile --json > profile.json
    python3 - native profile.json $(grep -n TIMED "$ROOT/tests/gpu/chase.cu" | cut -d: -f1) <<'P' || bad=1
import json, sys
own = float(open(sys.argv[1]).read().split()[2])
sites = [s for s in json.load(open(sys.argv[2]))['tools']['latency']['sites'] if s['op'].startswith('ld') and s['warps']]
timed = [s for s in sites if (s['inlined'] or '').split(' <- ')[0].endswith(':' + sys.argv[3])] # the walk between the clocks
mean = sum(s['cycles'] for s in timed) / sum(s['warps'] for s in timed)
print(open(sys.argv[1]).read().strip() + f' natively, {mean:.1f} by latency: {mean / own:.3f}')
sys.exit(abs(mean / own - 1) > .1)
P
done
exit $bad
