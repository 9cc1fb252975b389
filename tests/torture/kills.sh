#!/bin/sh
# Programs killed at a random moment, with launches in flight: the profile can be read, and what it holds of ended launches is the closed form.
# TORTURE=1: many; else some, in seconds. SEED=S.
set -u
seed=${SEED:-$(date +%s)} n=${TORTURE:+50}
n=${n:-3}
echo "     SEED=$seed"
gcc -O1 -Wall -o storm "$ROOT/tests/inject/storm.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
python3 - "$MARGAY" "$seed" "$n" <<'P'
import json, os, random, shutil, signal, subprocess, sys, time
margay, r, n, bad, seen = sys.argv[1], random.Random(int(sys.argv[2])), int(sys.argv[3]), [], 0
for k in range(n):
    shutil.rmtree('p', ignore_errors=True)
    p = subprocess.Popen([margay, 'run', '-q', '--device', 'emu', '-o', 'p', '--', './storm', '8', '50', '100000', '5'], stdout=subprocess.DEVNULL, start_new_session=True)
    time.sleep(r.uniform(.02, .5))
    who = r.choice(('all', 'program'))
    kids = [int(c) for c in open(f'/proc/{p.pid}/task/{p.pid}/children').read().split()]
    for pid in kids if who == 'program' and kids else [p.pid] + kids:
        os.kill(pid, signal.SIGKILL)
    p.wait(timeout=60)
    q = subprocess.run([margay, 'report', 'p', '--json'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if q.returncode not in (0, 3) or (q.returncode and not q.stderr):
        bad.append(f'{k}: report: exit {q.returncode}: {q.stderr[-200:].decode()}')
        continue
    if q.returncode:
        continue
    for kernel in json.loads(q.stdout)['kernels']:
        blocks = [b['thread_entries'] for b in kernel['blocks']]
        seen += blocks[0] // 32 if blocks and blocks[0] else 0
        if blocks and blocks[0] is not None and (blocks[0] % 32 or blocks != [blocks[0], blocks[0] // 8, blocks[0]]):
            bad.append(f'{k}: counts {blocks}')
print('\n'.join('FAIL ' + b for b in bad[:20]) or f'ok   {n} killed, {seen} launches had ended')
sys.exit(bool(bad))
P
