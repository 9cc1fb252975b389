"""Runs every `$ margay run -e` of a document on the emulator. Its maps must hold what is computed here from what the
programs do; where clang is the one that wrote the document, what is printed must be what the document shows."""
import json, re, shlex, shutil, subprocess, sys

sys.dont_write_bytecode = True
from programs import STEPS, hist, pick, stencil_states


def lhist(values, lo, hi, step):
    n = [sum(lo + i * step <= v < lo + (i + 1) * step for v in values) for i in range((hi - lo) // step)]
    return [{'lo': lo + i * step, 'hi': lo + (i + 1) * step, 'count': c} for i, c in enumerate(n) if c]


def bins():
    state, count = 3, {}
    for _ in range(10000):
        state, a = pick(state, 16)
        state, b = pick(state, 16)
        count[a * b & 63] = count.get(a * b & 63, 0) + 1
    return [[[b], n] for b, n in sorted(count.items(), key=lambda x: (-x[1], x[0]))[:4]]


def stencil_max(n, steps):
    """Largest value stored by each launch, as an integer."""
    return [[[i], int(max(p))] for i, p in enumerate(stencil_states(n, steps))]


WARPS = [STEPS[w:w + 32] for w in range(0, 1000, 32)]
# map -> entries [[key], value] in order of keys; or what must hold for them
WANT = {
    '@bytes': [[['saxpy', 7], 12000]],
    '@requests': [[[], 64]],
    ('@lanes', './saxpy'): [[[], 2000 / 64]],
    '@mix': lambda e: e['bar.sync'] == 9 * 1024 and e['ld.global.u32'] == 1000 and e['st.global.u32'] == 4 and e['st.shared.u32'] == 511 * 4,
    '@barriers': [[[9], 1024], [[12], 8 * 1024]],
    '@steps': [[[], hist(STEPS)]],
    '@trips': [[[], lhist(STEPS + [0] * 24, 0, 200, 25)]],  # 24 threads have nothing to do
    ('@lanes', './divergent'): lambda e: e[0] == 32 and any(abs(v - sum(STEPS) / sum(max(w) for w in WARPS)) < 1e-9 for v in e.values()),
    '@bins': bins(),
    '@shared': [[[10, 'st.shared.f32'], 4 * 64 * 64], [[11, 'st.shared.f32'], 4 * 64 * 64], [[13, 'ld.shared.f32'], 2 * 64 ** 3]],
    '@rounds': lambda e: 3 * 64 * 64 in e.values(), # of the loop over four tiles
    '@ctas': [[['matmul'], 16]],
    '@n': [[[], 64]],
    '@nan': [],
    '@big': stencil_max(64, 2),
}


def main():
    doc = open(sys.argv[1]).read()
    clang = subprocess.run(['clang', '--version'], capture_output=True, text=True).stdout
    same = re.search(r'version 14\.', clang)
    bad, n, seen = 0, 0, set()
    for block in re.findall(r'^```\n\$ (margay run .*?)^```', doc, re.M | re.S):
        command, shown = block.split('\n', 1)
        args = shlex.split(command)
        args[2:2] = ['--device', 'emu', '-o', f'd{n}']
        n += 1
        r = subprocess.run(args, capture_output=True, text=True)
        got = json.loads(subprocess.run(['margay', 'report', f'd{n - 1}', '--json'], capture_output=True, text=True, check=True).stdout)
        for m in got['tools']['expr']['maps']:
            app = args[args.index('--') + 1]
            name = (m['name'], app) if (m['name'], app) in WANT else m['name']
            entries, want = [[e['key'], e['value']] for e in m['entries']], WANT[name]
            ok = want({e[0][0]: e[1] for e in entries} if name != '@rounds' else {tuple(e[0]): e[1] for e in entries}) if callable(want) else sorted(entries, key=str) == sorted(want, key=str)
            seen.add(name)
            if not ok or m['lost'] or not m['sites']:
                print(f'{command}\n  {m["name"]} holds {entries}, not {want}')
                bad += 1
        missing = [l for l in shown.splitlines() if l and l not in r.stderr.splitlines()]
        if r.returncode or (same and missing):
            print(f'{command}\n  exit {r.returncode}, not printed: {missing}\n{r.stderr}')
            bad += 1
        shutil.rmtree(f'd{n - 1}')
    print(f'{n} one-liners, {len(seen)} maps, {bad} wrong')
    return 1 if bad or n < 12 or len(seen) < len(WANT) else 0


sys.exit(main())
