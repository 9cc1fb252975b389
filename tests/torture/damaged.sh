#!/bin/sh
# Damaged profiles: report, diff and merge read them or say why not; nothing crashes or hangs. TORTURE=1: many; else some, in seconds. SEED=S.
set -u
seed=${SEED:-$(date +%s)} n=${TORTURE:+120}
n=${n:-6}
echo "     SEED=$seed"
for k in a b; do "$MARGAY" run -q --device emu -t blocks -t opcodes -o $k -- "$EX/bfs" > out 2>&1 || { cat out; exit 1; }; done
python3 - "$MARGAY" "$seed" "$n" <<'P'
import os, random, shutil, subprocess, sys
margay, r, n, bad = sys.argv[1], random.Random(int(sys.argv[2])), int(sys.argv[3]), []

def damage(path):
    d = bytearray(open(path, 'rb').read())
    how = r.choice(('flip', 'flips', 'cut', 'tear', 'gone', 'zero'))
    if how.startswith('flip'):
        for _ in range(1 if how == 'flip' else r.randrange(2, 200)):
            if d:
                d[r.randrange(len(d))] ^= 1 << r.randrange(8)
    elif how == 'cut':
        del d[r.randrange(len(d) + 1):]
    elif how == 'tear':  # a page of another time
        at = r.randrange(len(d) // 4096 + 1) * 4096
        d[at:at + 4096] = bytes(r.randrange(256) for _ in range(min(4096, max(len(d) - at, 0))))
    elif how == 'zero':
        at = r.randrange(len(d) + 1)
        d[at:at + 512] = bytes(len(d[at:at + 512]))
    if how == 'gone':
        os.remove(path)
    else:
        open(path, 'wb').write(d)
    return f'{how} {os.path.basename(path)}'

for k in range(n):
    shutil.rmtree('c', ignore_errors=True), shutil.rmtree('m', ignore_errors=True)
    shutil.copytree('a', 'c')
    files = sorted(os.path.join(p, f) for p, _, fs in os.walk('c') for f in fs)
    what = ', '.join(damage(f) for f in {r.choice(files), next(f for f in files if f.endswith('profile.db'))} if os.path.exists(f))
    for args in (['report', 'c', '--json'], ['report', 'c'], ['diff', 'c', 'b'], ['diff', 'b', 'c', '--json'], ['merge', '-o', 'm', 'c', 'b']):
        try:
            p = subprocess.run([margay] + args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
            why = None if p.returncode in range(5) else f'exit {p.returncode}: {p.stderr[-200:].decode(errors="replace")}'
            if not why and p.returncode > 1 and not p.stderr.strip():
                why = f'exit {p.returncode} without a word'
        except subprocess.TimeoutExpired:
            why = 'hangs'
        if why:
            bad.append(f'margay {" ".join(args)} [{k}: {what}]: {why}')
print('\n'.join('FAIL ' + b for b in bad[:20]) or f'ok   {n} damaged profiles')
sys.exit(bool(bad))
P
