"""probes.py FOLDER: runs the probes of a folder on the emulator and compares their maps with what is computed here,
and with the same probe compiled by NVRTC where that is there."""
import json, os, shutil, struct, subprocess, sys

sys.dont_write_bytecode = True
from programs import STEPS, hist, stencil_states


def exponents():
    count = {}
    for v in (v for p in stencil_states(64, 2) for v in p):
        e = (struct.unpack('<I', struct.pack('<f', v))[0] >> 23 & 255) - 127
        count[e] = count.get(e, 0) + 1
    return [[['stencil', e], n] for e, n in sorted(count.items())]


ROUNDS = [max(s - 1, 0) for s in STEPS] + [0] * 24
BITS = [bin(s).count('1') for s in STEPS]
GROUPS = [[b for i, b in enumerate(BITS) if i % 32 // 8 == g] for g in range(4)]
WANT = { # probe: program, map -> entries
    'trips': ('divergent 1000', {'@trips': [[['collatz'], hist(ROUNDS)]],
                                 '@most': [[['collatz', c], max(r for i, r in enumerate(ROUNDS) if i // 128 % 4 == c)] for c in range(4)]}),
    'strides': ('matmul 64', {'@steps': None, '@back': None}),
    'exponents': ('stencil 64 2', {'@exponent': exponents(), '@too_small': []}),
    'ones': ('divergent 1000', {'@ones': [[[15, g], sum(b) / len(b)] for g, b in enumerate(GROUPS)], '@widest': [[[], max(BITS)]]}),
    'mix': ('saxpy 1000', {'@bytes': [[['saxpy', 7], 12000]], '@wide': []}),
    'waits': ('reduce 1000', {}),
    'skip': ('divergent 1000', {'@skipped': [[['collatz'], 500]], '@lost': [[['collatz'], sum(STEPS[1::2])]]}),
}


def maps(probe, app):
    shutil.rmtree('p', ignore_errors=True)
    subprocess.run(['margay', 'run', '--device', 'emu', '-q', '-o', 'p', '--probe', probe, '--'] + ('./' + app).split(), stdout=subprocess.DEVNULL)
    r = json.loads(subprocess.run(['margay', 'report', 'p', '--json'], capture_output=True, text=True, check=True).stdout)
    assert r['coverage']['instrumented'] == r['coverage']['launches'] > 0, r['coverage']
    return {m['name']: sorted([[e['key'], e['value']] for e in m['entries']], key=str) for m in r['tools']['expr']['maps']}


def main():
    bad = 0
    for name, (app, want) in WANT.items():
        source = os.path.join(sys.argv[1], name + '.c')
        got = maps(source, app)
        for m, entries in want.items():
            if entries is not None and got.get(m) != sorted(entries, key=str):
                print(f'{name}: {m} holds {got.get(m)}, not {entries}')
                bad += 1
        if name == 'strides': # every access but the first of a thread
            total = {k[0]: sum(b['count'] for b in v) for k, v in got['@steps']}
            if total != {10: 4 * 4096 - 4096, 11: 4 * 4096, 13: 2 * 64 ** 3}:
                print(f'strides: {total}')
                bad += 1
        c = subprocess.run(['margay', 'probe', 'compile', '--with', 'nvrtc', '-o', 'n.ptx', source], capture_output=True, text=True)
        if c.returncode:
            if 'that compiler is not there' not in c.stderr:
                print(f'{name}, NVRTC: {c.stderr}')
                bad += 1
        elif maps('n.ptx', app) != got:
            print(f'{name}: compiled by NVRTC it counts {maps("n.ptx", app)}, by clang {got}')
            bad += 1
    print(f'{len(WANT)} probes, {bad} wrong')
    return 1 if bad else 0


sys.exit(main())
