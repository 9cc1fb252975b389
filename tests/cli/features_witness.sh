#!/usr/bin/env bash
# Features of launches (GT-Pin's table III) against a trace of every instruction and access of the same run: who ran which
# block how often, and which bytes it moved, counted one by one. Numbers of entries are free, so that equal keys must have
# equal numbers, and others others.
set -euo pipefail
for program in "bfs-rt 3000" "stencil-rt 40 3" "matmul-rt 48"; do
    rm -rf run
    # shellcheck disable=SC2086
    "$MARGAY" run -q --device cpu -t blocks -t trace,instructions=on,loops=off -o run -- "$EX"/$program > out
    "$MARGAY" trace print run --json > trace.json
    for f in KN KN-GWS KN-RW BB BB-R BB-W BB-R-W 'BB-(R+W)'; do "$MARGAY" export features run --features "$f" > "vectors.$f"; done
    "$MARGAY" report run --json > report.json
    python3 - <<'P'
import collections, json
shapes = {l['id']: (l['grid'], l['block']) for l in json.load(open('report.json'))['launches']}
ran, moved, kernel = collections.Counter(), collections.Counter(), {}  # (launch, block), (launch, block, read or written)
blocks = {}  # (kernel, number of an instruction) -> the first of its block
fields = [json.loads(line) for line in open('trace.json')]
fields = [r['fields'] for r in fields if r['kind'] == 'trace.access']
for r in fields:
    if r['access'] == 'block':
        kernel[r['launch']] = r['kernel']
        ran[r['launch'], r['instruction']] += bin(r['mask']).count('1') * r['instructions']
        for i in range(r['instructions']): blocks[r['kernel'], r['instruction'] + i] = r['instruction']
for r in fields:
    if r['access'] in ('load', 'store'):
        moved[r['launch'], blocks[r['kernel'], r['instruction']], r['access']] += bin(r['mask']).count('1') * r['bytes']
assert {r['access'] for r in fields} <= {'block', 'load', 'store', 'barrier'}, {r['access'] for r in fields}
launches = sorted(kernel)
of = {n: [b for l, b in ran if l == n] for n in launches}
read = lambda n, b: moved[n, b, 'load']
written = lambda n, b: moved[n, b, 'store']
everything = lambda n, one: sum(one(n, b) for b in of[n])
threads = lambda n: tuple(g * b for g, b in zip(*shapes[n]))
by_block = {'BB': lambda n, b: (), 'BB-R': lambda n, b: read(n, b), 'BB-W': lambda n, b: written(n, b), 'BB-R-W': lambda n, b: (read(n, b), written(n, b)),
            'BB-(R+W)': lambda n, b: read(n, b) + written(n, b)}
by_kernel = {'KN': lambda n: (), 'KN-GWS': threads, 'KN-RW': lambda n: (everything(n, read), everything(n, written))}
assert len(launches) > 1 or len(of[launches[0]]) > 3
for f in (*by_block, *by_kernel):
    vectors = [{int(k): float(v) for k, v in (x.split(':')[1:] for x in line[1:].split())} for line in open('vectors.' + f)]
    assert len(vectors) == len(launches)
    number = {}
    for n, got in zip(launches, vectors):
        if f in by_block: want = {(kernel[n], b, by_block[f](n, b)): ran[n, b] for b in of[n]}
        else: want = {(kernel[n], by_kernel[f](n)): sum(ran[n, b] for b in of[n])}
        assert sorted(got.values()) == sorted(want.values()), (f, n, got, want)
        for key, value in want.items():  # of the numbers that have this value one is the key's
            number[key] = number.get(key, set(got)) & {k for k, v in got.items() if v == value}
            assert number[key], (f, n, key, got)
        fixed = [min(s) for s in number.values() if len(s) == 1]
        assert len(fixed) == len(set(fixed)), (f, n)
print('ok', len(launches), 'launches of', len(set(kernel.values())), 'kernels')
P
done
