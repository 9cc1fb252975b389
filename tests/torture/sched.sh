#!/bin/sh
# Eight programs of every kind under one scheduler, guests among them, while parts are stopped, killed, adopted and dropped at
# random. Whoever was not killed ends well, with every launch done; the scheduler ends; nothing is left behind.
# TORTURE=1: many rounds; else one. SEED=S.
set -u
seed=${SEED:-$(date +%s)} n=${TORTURE:+40}
n=${n:-1}
echo "     SEED=$seed"
device=cpu; [ -e "$B/lib/margay/libmargay-cpu.so" ] || device=emu
gcc -O1 -g -Wall -o worker "$ROOT/tests/sched/worker.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
python3 - "$MARGAY" "$seed" "$n" $device <<'P'
import glob, os, random, shutil, signal, subprocess, sys, time
margay, r, n, device, bad = sys.argv[1], random.Random(int(sys.argv[2])), int(sys.argv[3]), sys.argv[4], []
MODES = ('plain', 'sync', 'streams', 'threads', 'graph', 'coop', 'copies', 'capture', 'beside', 'exec', 'spin', 'fork', 'think')
PATIENCE = 240


def processes(where):
    """Those of our programs: name -> pid."""
    for f in glob.glob(where):
        pid = f.rsplit('.', 1)[1]
        try:
            if os.readlink(f'/proc/{pid}/exe').endswith('/worker'):
                yield f.split('/')[1], int(pid)
        except OSError:
            pass


def signalled(pid, sig):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


def disturb(sched, guests, killed, log):
    """Something bad, to somebody."""
    programs = list(processes('dir/*/ctl.*'))
    what = r.choice(('kill', 'stop', 'kill sched', 'stop sched', 'adopt', 'drop', 'nothing', 'nothing'))
    name, pid = r.choice(programs) if programs else ('', 0)
    guest = r.choice(sorted(guests))
    log.append(f'{what} {guest if what in ("adopt", "drop") else name}')
    if what == 'kill' and pid:
        killed.add(name)
        signalled(pid, signal.SIGKILL)
    elif what == 'stop' and pid:
        signalled(pid, signal.SIGSTOP)
        time.sleep(r.uniform(0, .6))
        signalled(pid, signal.SIGCONT)
    elif what == 'kill sched' and r.random() < .3:
        sched.kill()
    elif what == 'stop sched':
        sched.send_signal(signal.SIGSTOP)
        time.sleep(r.uniform(0, .8))
        sched.send_signal(signal.SIGCONT)
    elif what in ('adopt', 'drop'):
        subprocess.run([margay, 'ctl', str(guests[guest].pid), what] + (['dir/sched.sock', str(r.randrange(1, 9)), guest] if what == 'adopt' else []),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def play(k):
    for d in ('dir', 'guests'):
        shutil.rmtree(d, ignore_errors=True)
    os.mkdir('guests')
    names = [chr(ord('A') + i) for i in range(r.randrange(2, 7))]
    program = lambda: ['./worker', str(r.choice((200, 2000, 20000))), str(round(r.uniform(.3, 1.5), 2)), r.choice(MODES)]
    argv = [margay, 'sched', '-q', '--device', device, '-o', 'dir', '-t', r.choice(('none', 'blocks')), '--policy', r.choice(('credit', 'credit', 'none')),
            '--priority', f'{r.choice(names)}={r.randrange(3)}', '--share', ','.join(f'{x}={r.randrange(1, 9)}' for x in names), '--attach', 'opcodes']
    for x in names:
        argv += ['--', x + ':'] + program()
    log, killed, guests, outs = [' '.join(argv)], set(), {}, {}
    outs['sched'] = open('out.sched', 'w+')
    sched = subprocess.Popen(argv, stdout=outs['sched'], stderr=subprocess.STDOUT)
    for g in ('g1', 'g2'):
        outs[g] = open('out.' + g, 'w+')
        guests[g] = subprocess.Popen([margay, 'run', '-q', '--device', device, '-o', 'guests/' + g, '--'] + program(), stdout=outs[g], stderr=subprocess.STDOUT)
    for _ in range(r.randrange(1, 8)):
        time.sleep(r.uniform(0, .4))
        disturb(sched, guests, killed, log)
    until = time.time() + PATIENCE
    while time.time() < until and (sched.poll() is None or any(g.poll() is None for g in guests.values()) or list(processes('dir/*/ctl.*'))):
        time.sleep(.05)
    left = list(processes('dir/*/ctl.*')) + list(processes('guests/*/ctl.*'))
    text = {x: (f.seek(0), f.read())[1] for x, f in outs.items()}
    ended = text['sched'].count(', ok\n')
    why = ['processes are left: %s' % left] if left else []
    if sched.poll() is None or any(g.poll() is None for g in guests.values()):
        why.append('somebody hangs')
    if ended < len(names) - len(killed) or any(len(line.split()) != 4 or not line.endswith(', ok') for line in text['sched'].splitlines() if 'margay' not in line):
        why.append(f'{ended} of {len(names)} ended well, killed: {sorted(killed)}: {text["sched"]!r}')
    why += [f'{g}: exit {p.poll()}, {text[g]!r}' for g, p in guests.items() if p.poll() != 0 or not text[g].endswith(', ok\n')]
    if sched.poll() not in (0, 1, -9, None):
        why.append(f'the scheduler: exit {sched.poll()}')
    for _, pid in left:
        signalled(pid, signal.SIGKILL)
    for p in [sched, *guests.values()]:
        if p.poll() is None:
            p.kill()
    if why:
        bad.append(f'round {k}: ' + '; '.join(why + log))


for k in range(n):
    play(k)
    if len(bad) > 3:
        break
print('\n'.join('FAIL ' + b for b in bad) or f'ok   {n} rounds')
sys.exit(bool(bad))
P
