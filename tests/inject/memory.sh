#!/bin/sh
# Memory runs out: the k-th allocation that Margay asks for in the program fails, once or from there on, for k drawn from
# all there are. Output and exit status are those of the run without failures, one line says so, and the profile can be
# read: what was not recorded is unknown. SEED=S: the same again. MEMORY=N: N draws for each program, 0: every k.
set -u
[ "${VARIANT:-release}" = release ] || { echo "the release build's allocations are the ones that fail"; exit 77; }
gcc -O1 -fno-builtin -Wall -shared -fPIC -o failing.so "$ROOT/tests/inject/failing.c" &&
    gcc -O1 -Wall -o storm "$ROOT/tests/inject/storm.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
[ -n "${REAL_GPU:-}" ] || export LD_LIBRARY_PATH="$B/test/driver"
python3 - "$MARGAY" "$EX" "$B" "${SEED:-$(date +%s)}" "${MEMORY:-12}" <<'P'
import json, os, random, shutil, subprocess, sys
margay, ex, build, seed, draws = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
rng = random.Random(seed)
print('     SEED=%d' % seed)
cpu = os.path.exists(build + '/lib/margay/libmargay-cpu.so')
runs = [('blocks', 'emu', [], [ex + '/reduce']),
        ('three tools, shared runtime', 'emu', ['-t', 'memory', '-t', 'lanes', '-t', 'blocks'], [ex + '/histogram-rt']),
        ('records', 'emu', ['-t', 'accesses'], [ex + '/saxpy']),
        ('graphs, shared runtime', 'emu', [], [ex + '/stencil-rt']),
        ('threads', 'emu', [], ['./storm', '8', '4', '1', '3']),
        ('threads', 'nvidia', [], ['./storm', '8', '4', '1', '3']),
        ('blocks', 'nvidia', ['-t', 'blocks,warps=on', '-t', 'opcodes'], [ex + '/reduce']),
        ('no tool', 'nvidia', ['-t', 'none'], [ex + '/saxpy'])]
if cpu:
    runs += [('blocks', 'cpu', [], [ex + '/divergent']), ('check', 'cpu', ['--check'], [ex + '/histogram'])]
bad = 0

def run(device, opts, app, env):
    shutil.rmtree('profile', ignore_errors=True)
    p = subprocess.run([margay, 'run', '--device', device, *opts, '-o', 'profile', '--', *app], capture_output=True, text=True,
                       timeout=120, env=dict(os.environ, LD_PRELOAD=os.getcwd() + '/failing.so', MARGAY_CPU_TIER='sync', **env))
    return p.returncode, p.stdout, p.stderr

def problem(got, want):
    if got[:2] != want[:2]:
        return 'status %d, not %d; output %r' % (got[0], want[0], got[1][-200:])
    if got[2].count('memory ran out: nothing more') > 1:
        return 'says so more than once'
    p = subprocess.run([margay, 'report', 'profile', '--json'], capture_output=True, text=True)
    if p.returncode:
        return 'memory ran out: nothing' not in got[2] and 'nothing is recorded' not in got[2] and 'report: ' + p.stderr
    c = json.loads(p.stdout)['coverage']
    said = 'memory ran out: nothing more' in got[2]
    return c['launches'] + c['unknown'] == 0 and not said and 'a run without launches'

for name, device, opts, app in runs:
    if not os.access(app[0], os.X_OK):
        print('left out %s: %s is not built here' % (name, os.path.basename(app[0])))
        continue
    want = run(device, opts, app, {'FAIL_COUNT': 'count'})
    n, failures, said = int(open('count').read()), [], 0
    ks = range(1, n + 1) if not draws else [rng.randrange(n) + 1 for _ in range(draws)]
    for j, k in enumerate(ks):
        env = {'FAIL_AT': str(k), **({'FAIL_ON': '1'} if (j if draws else rng.randrange(2)) % 2 else {})}
        got = run(device, opts, app, env)
        said += 'memory ran out' in got[2]
        why = problem(got, want)
        if why:
            failures.append('%s: %s\n%s' % (env, why, got[2][-600:]))
    if want[0] or failures or not said:
        bad = 1
        print('FAIL %s, %s: %d of %d' % (name, device, len(failures), len(ks)), *failures[:3], sep='\n')
    else:
        print('ok   %s, %s: %d of %d allocations, %d runs stopped recording' % (name, device, len(ks), n, said))
sys.exit(bad)
P
