#!/bin/sh
# A small transformer (eager, compiled, trained, generating) under Margay: its output is the native one, every launch is in the time
# line, each cause is named, most time lies in ranges of modules or operations.
set -u
python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null || { echo "no PyTorch that sees a GPU"; exit 77; }
"$ROOT/bench/torch/run" "$B" out > said 2>&1 || { cat said; exit 1; }
for mode in eager compile train generate; do
    for by in cause family range; do "$MARGAY" report out/$mode --by $by --json > $mode.$by.json || exit 1; done
    "$MARGAY" report out/$mode --json > $mode.json
    python3 - $mode <<'P' || { cat said; exit 1; }
import json, sys
mode = sys.argv[1]
groups = {by: json.load(open(f'{mode}.{by}.json'))['groups'] for by in ('cause', 'family', 'range')}
c = json.load(open(mode + '.json'))['coverage']
n = {by: sum(g['launches'] for g in rows) for by, rows in groups.items()}
assert n['cause'] == n['family'] == c['launches'] - c['not_written'] and abs(n['range'] - n['cause']) <= c['unknown'], (n, c)
assert all(g['cause'] for g in groups['cause'])
outside = sum(g['time_ns'] or 0 for g in groups['range'] if g['range'] == '(in no range)')
all_ns = sum(g['time_ns'] or 0 for g in groups['range'])
print(mode, 'in ranges: %.1f %% of %.3f ms' % (100 - 100 * outside / all_ns, all_ns / 1e6))
assert mode == 'compile' or outside < all_ns / 2, (outside, all_ns)
P
done
cat out/torch.md
