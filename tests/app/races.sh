#!/usr/bin/env bash
# --check on global memory: planted races are found with both lines, whoever runs first, and nothing else is;
# what is sound is silent; stores of one value are a note.
set -euo pipefail
command -v "$NVCC" >/dev/null || { echo "no nvcc"; exit 77; }
"$NVCC" -cudart shared -std=c++17 -lineinfo -arch=compute_90 -o races "$ROOT/tests/app/races.cu" 2>log || { cat log; exit 1; }
for workers in 1 2 4 4 4; do # four: others publish between our look at an access and the access
    rm -rf "p$workers"
    "$MARGAY" run -q --device emu --check --workers $workers --time-limit 60 -o "p$workers" -- ./races > out 2> err || { echo "FAIL: the program ends with $?"; cat out err; exit 1; }
    grep -qx done out
    grep -Eqx "margay: --check found [1-9][0-9]* errors: margay report p$workers" err || { echo 'FAIL: -q says nothing of findings, which are errors'; cat err; exit 1; }
    "$MARGAY" report "p$workers" --json > "p$workers.json"
    python3 - "$ROOT/tests/app/races.cu" "p$workers.json" <<'P'
import json, re, sys
lines = {}
for number, text in enumerate(open(sys.argv[1]), 1):
    for name, which in re.findall(r'// (\w+): (one|other)\b', text): lines.setdefault(name, {})[which] = number
report = json.load(open(sys.argv[2]))
kernels = {k['id']: re.match(r'_Z\d+([rs]_[a-z]+)P', k['name'])[1] for k in report['kernels']}
races, notes = {}, {}
for f in report['tools']['check']['findings']:
    where = notes if f['kind'] == 'note' else races
    if f['kind'] not in ('note', 'race'): sys.exit(f'an unexpected finding: {f}')
    where.setdefault(kernels[f['kernel']], []).append(f)
bad = []
for name, want in lines.items():
    found = races.get('r_' + name, [])
    pair = sorted(want.values())
    hits = [f for f in found if sorted((f['line'], f['other']['line'])) == pair]
    if not hits: bad.append(f"r_{name}: lines {pair} not found, but {[(f['line'], f['other']['line']) for f in found]}")
    for f in found:
        if not {f['line'], f['other']['line']} <= {want['one'], want['other'], want['one'] - 1}: bad.append(f"r_{name}: {f['text']}")
        if f['other']['cta'] == f['cta'] and name not in ('warps', 'lanes', 'histogram'): bad.append(f"r_{name}: in one CTA: {f['text']}")
        if 'arg 0' not in f['text']: bad.append(f"r_{name}: names no buffer: {f['text']}")
for name in races:
    if name.startswith('s_'): bad += [f['text'] for f in races[name]]
if not {'s_values', 's_exchange', 's_crowd'} <= notes.keys() or 's_lanes' in notes: bad.append(f'notes of {sorted(notes)}')
print(f"{len(lines)} races, {len([k for k in kernels.values() if k[0] == 's'])} sound kernels")
if len(lines) < 12 or bad: sys.exit('\n'.join(['FAIL:'] + bad))
P
done
