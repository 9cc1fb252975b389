#!/usr/bin/env bash
# Counts that vary from run to run are those of blocks marked timing_dependent, and `diff --fail-over`
# does not fail on them; it fails on others, and kernels without races have none.
set -euo pipefail
run() { "$MARGAY" run -q --device emu --workers "$2" -o "$1" -- "$3" >/dev/null 2>&1; }
for p in saxpy reduce divergent matmul histogram stencil; do
    run "$p" 2 "$EX/$p"
    "$MARGAY" report "$p" --json > "$p.json"
    grep -q '"timing_dependent": true' "$p.json" && { echo "FAIL: $p depends on timing"; exit 1; }
done
run bfs 1 "$EX/bfs"
for i in 1 2 3 4 5 6; do
    run "bfs$i" 2 "$EX/bfs"
    "$MARGAY" diff bfs "bfs$i" --fail-over 0 > text || { echo "FAIL: diff fails on what depends on timing"; cat text; exit 1; }
    "$MARGAY" diff bfs "bfs$i" --fail-over 0 --json > "diff$i.json"
    "$MARGAY" report "bfs$i" --json > "bfs$i.json"
done
"$MARGAY" report bfs > text
grep -Eq 'may depend on timing \([1-9] of [0-9] blocks\)' text || { echo 'FAIL: the report does not say so'; exit 1; }
python3 - <<'P'
import json
reports = [json.load(open(f'bfs{i}.json'))['kernels'][0] for i in range(1, 7)]
counts = {}
for r in reports:
    assert r['timing_dependent'] is True
    for b in r['blocks']: counts.setdefault((b['id'], b['timing_dependent']), set()).add(b['thread_entries'])
varied = {b for b, c in counts.items() if len(c) > 1}
assert all(t for _, t in varied), f'varies without being marked: {varied}'
marked = {b for b, t in counts if t}
first = reports[0]['blocks'][0]
assert first['id'] not in marked and 0 < len(marked) < len(reports[0]['blocks']), marked
for i in range(1, 7):
    d = json.load(open(f'diff{i}.json'))
    k = d['kernels'][0]
    assert d['fails'] is False and d['difference_pct'] == 0, d
    assert k['timing_differs'] == bool(k['blocks']) and {b['id'] for b in k['blocks']} <= marked, k
print('varied', sorted(b for b, _ in varied), 'marked', sorted(marked))
P
# a difference elsewhere fails all the same: half of the graph's launches alone
"$MARGAY" run -q --device emu --workers 1 --launches 0-5 -o part -- "$EX/bfs" >/dev/null 2>&1
rc=0; "$MARGAY" diff bfs part --fail-over 0 > text || rc=$?
[ $rc = 1 ] || { echo "FAIL: counts of half the launches are no difference ($rc)"; cat text; exit 1; }
