#!/bin/sh
# Mutants of PTX texts and fatbins: `margay ptx` and the driver take them or say why not; nothing crashes or hangs.
# TORTURE=1: many; else some, in seconds. SEED=S: the same again.
set -u
seed=${SEED:-$(date +%s)} n=${TORTURE:+1200}
n=${n:-40}
echo "     SEED=$seed"
gcc -O1 -Wall -o load "$ROOT/tests/torture/load.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 || exit 1
python3 "$ROOT/tests/torture/mutate.py" "$seed" "$n" mutants "$ROOT"/tests/fuzz/corpus/ptx/* "$ROOT"/tests/fuzz/corpus/fatbin/* "$ROOT"/tests/*/*.ptx || exit 1
python3 - "$MARGAY" <<'P'
import glob, subprocess, sys
margay, bad = sys.argv[1], []
files = sorted(glob.glob('mutants/*'))

def run(args, allowed):
    try:
        p = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
    except subprocess.TimeoutExpired:
        return 'hangs'
    return None if p.returncode in allowed else f'exit {p.returncode}: {p.stderr[-300:].decode(errors="replace")}'

def search(name, args, some, allowed):  # which of many does it
    why = run(args + some, allowed)
    if not why:
        return
    if len(some) == 1:
        bad.append(f'{name}: {some[0]}: {why}')
        return
    search(name, args, some[:len(some) // 2], allowed), search(name, args, some[len(some) // 2:], allowed)

for at in range(0, len(files), 40):
    some = files[at:at + 40]
    for what in 'check', 'cfg', 'stat', 'instrument':
        search(f'margay ptx {what}', [margay, 'ptx', what], some, range(5))
    some = [f for f in some if not f.endswith('.elf')] # nothing tells a driver where one in memory ends
    for tool in 'none', 'blocks':
        search(f'the driver under {tool}', [margay, 'run', '-q', '--device', 'emu', '--time-limit', '5', '-t', tool, '-o', 'profile', '--', './load'], some, (0,))
        subprocess.run(['rm', '-rf', 'profile'])
print('\n'.join('FAIL ' + b for b in bad[:20]) or f'ok   {len(files)} mutants')
sys.exit(bool(bad))
P
