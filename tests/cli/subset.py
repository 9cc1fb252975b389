"""Profiles with planted phases, written row by row, and witnesses for what `margay study subset` says of them."""
import csv, itertools, json, math, random, shutil, sqlite3, subprocess, sys

margay = sys.argv[1]


def run(*args, status=0):
    p = subprocess.run([margay, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.returncode == status, (args, p.returncode, p.stdout, p.stderr)
    return p.stderr if status else p.stdout


def study(*args, **more):
    return json.loads(run('study', 'subset', '--json', *args, **more))


def leb(n):
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def counts(values):
    return b''.join(leb(v) + (leb(0) if v == 0 else b'') for v in values)


INSTS = [4, 4, 1]  # of the blocks that mkprofile writes


def write(name, launches, streams=None):
    """launches: (kernel, entries of the three blocks, time_ns or None, grid)"""
    shutil.rmtree(name, ignore_errors=True)
    shutil.copytree('base', name)
    db = sqlite3.connect(name + '/profile.db')
    kernels = sorted({l[0] for l in launches})
    row = db.execute('SELECT * FROM kernel WHERE id=0').fetchone()
    columns = [c[1] for c in db.execute('PRAGMA table_info(kernel)')]
    blocks = db.execute('SELECT * FROM block WHERE kernel=0').fetchall()
    model = db.execute('SELECT * FROM launch WHERE id=0').fetchone()
    names = [c[1] for c in db.execute('PRAGMA table_info(launch)')]
    for table in ('kernel', 'block', 'launch'):
        db.execute('DELETE FROM ' + table)
    for i, k in enumerate(kernels):
        r = dict(zip(columns, row), id=i, name=k, demangled=None)
        db.execute(f'INSERT INTO kernel VALUES ({",".join("?" * len(r))})', list(r.values()))
        for b in blocks:
            db.execute(f'INSERT INTO block VALUES ({",".join("?" * len(b))})', (i, *b[1:]))
    for i, (k, entries, time, grid) in enumerate(launches):
        r = dict(zip(names, model), id=i, kernel=kernels.index(k), threads=counts(entries), warps=counts([-(-e // 32) for e in entries]),
                 time_ns=time, grid_x=grid, block_x=entries[0] // grid, stream=streams[i] if streams else model[names.index('stream')])
        db.execute(f'INSERT INTO launch VALUES ({",".join("?" * len(r))})', list(r.values()))
    db.commit()
    db.close()


def insts(l):
    return sum(a * b for a, b in zip(l[1], INSTS))


# ---- planted phases: what a launch does and how long an instruction takes depend on its phase alone
PHASES = [('even', 10, 2., 4), ('even', 500, 3., 4), ('odd', 1, 9., 8), ('odd', 60, 1., 8), ('third', 7, 5., 2)]


def launch_of(phase, scale=1):
    kernel, loops, rate, grid = PHASES[phase]
    entries = [256 * grid, 256 * grid * loops, 256 * grid]
    l = (kernel, entries, None, grid)
    return kernel, entries, round(insts(l) * rate * scale), grid


random.seed(5)
order = [0, 1, 2, 3, 4] + random.choices(range(5), [8, 4, 2, 1, 1], k=195)
program = [launch_of(p) for p in order]
write('a', program)
total = sum(map(insts, program))
d = study('a')
assert d['method'] == 'simpoint' and d['interval'] == 'launch' and d['features'] == 'BB' and d['clusters'] == 5, d
assert d['intervals'] == d['launches'] == 200 and d['launches_without_counts'] == 0
found = {order[s['launch']]: s for s in d['selected']}
assert sorted(found) == [0, 1, 2, 3, 4]
for phase, s in found.items():
    share = sum(insts(l) for l, p in zip(program, order) if p == phase) / total
    assert abs(s['weight'] - share) < 1e-12 and s['launches'] == [s['launch'], s['launch']]
assert d['error']['in_sample_pct'] < 1e-9 and d['error']['held_out_pct'] is None and d['error']['interval_pct'] == [None, None]
picked = [program[s['launch']] for s in d['selected']]
assert abs(d['speedup']['instructions'] - total / sum(map(insts, picked))) < 1e-9
assert abs(d['speedup']['time'] - sum(l[2] for l in program) / sum(l[2] for l in picked)) < 1e-9
assert abs(d['speedup']['launches'] - 40) < 1e-9
assert study('a') == d, 'the same seed gives the same selection'

# ---- the same launches in another order
shuffled = program[:]
random.shuffle(shuffled)
write('b', shuffled)
e = study('b')
key = lambda prog, d: sorted((prog[s['launch']], round(s['weight'], 12)) for s in d['selected'])
assert key(program, d) == key(shuffled, e)
# Every method that looks at what launches do: first launches of kernels, which stand by themselves, stay where they are.
rest = program[5:]
random.shuffle(rest)
moved = program[:5] + rest
write('moved', moved)
for method in ('simpoint', 'pka', 'sieve', 'stem', 'margay'):
    a, b = (study(name, '--method', method) for name in ('a', 'moved'))
    assert key(program, a) == key(moved, b) and a['clusters'] == b['clusters'] and a['speedup'] == b['speedup'], (method, a, b)

# ---- judges: other times, by equation (1)
random.seed(6)
slower = [(k, x, round(t * random.uniform(.8, 1.4)), g) for k, x, t, g in program]
write('c', slower)
e = study('a', 'c')
measured = sum(l[2] for l in slower) / total
projected = sum(s['weight'] * slower[s['launch']][2] / insts(slower[s['launch']]) for s in e['selected'])
assert abs(e['error']['held_out_pct'] - 100 * abs(measured - projected) / measured) < 1e-9
assert e['selected'] == d['selected'] and e['error']['in_sample_pct'] < 1e-9 and len(e['judges']) == 1
write('c2', [(k, x, t + 7 * i, g) for i, (k, x, t, g) in enumerate(slower)])
e = study('a', 'c', 'c2')
assert abs(e['error']['held_out_pct'] - sum(j['error_pct'] for j in e['judges']) / 2) < 1e-12
assert study('b', '--times', 'b')['times'] == 'instrumented'
for own in (['a', 'c', 'a'], ['a', '--times', 'c', 'c2', 'c'], ['a', 'c2,./a']):
    assert 'it would be judged by itself' in run('study', 'subset', *own, status=3), own
for no in (['--method', 'pka', '--size', '3'], ['--method', 'sieve', '--threshold', '1'], ['--method', 'stem', '--features', 'BB'], ['--use-times']):
    assert 'but for: ' in run('study', 'subset', 'a', *no, status=2), no

# ---- runs of one kind: the median or the least time of each launch
trials = [[(k, x, round(t * random.uniform(.5, 2)), g) for k, x, t, g in program] for _ in range(3)]
for i, t in enumerate(trials): write(f't{i}', t)
for option, pick in (([], 1), (['--least'], 0)):
    joined = [sorted(l[2] for l in ls)[pick] for ls in zip(*trials)]
    e = study('a', '--times', 'a', 't0,t1,t2', *option)['judges'][0]
    assert e['measured_ns'] == sum(joined) and e['dir'] == 't0,t1,t2', e
    e = study('a', '--times', 't2,t0,t1', *option)
    assert abs(e['speedup']['time'] - sum(joined) / sum(joined[s['launch']] for s in e['selected'])) < 1e-9
assert 'nowhere' in run('study', 'subset', 'a', 't0,nowhere', status=3)

# ---- sequences that differ
write('short', program[:-1])
assert 'short has 199 launches and a has 200: the sequences differ' in run('study', 'subset', 'a', 'short', status=3)
assert 'a has 200 launches and short has 199: the sequences differ' in run('study', 'subset', 'short', 'a', status=3)
other = program[:]
other[7] = launch_of(4 if order[7] != 4 else 0)
write('other', other)
assert 'other: launch 7 is ' in run('study', 'subset', 'a', 'other', status=3)
wider = [(k, [2 * n for n in x], 2 * t, 2 * g) for k, x, t, g in program]
write('wider', wider)
assert 'the sequences differ' in run('study', 'subset', 'a', 'wider', status=3)
assert study('a', 'wider', '--other-input')['error']['held_out_pct'] < 1e-9

# ---- several streams: launches are paired by stream, however streams lie between each other
lanes = [(launch_of(0 if i % 3 else 1), 1) for i in range(60)] + [(launch_of(0 if i % 5 else 1), 2) for i in range(40)]
times = [(k, x, t + 17 * i, g) for i, ((k, x, t, g), _) in enumerate(lanes)]
def interleaved(seed):
    mix = [1] * 60 + [2] * 40
    random.seed(seed)
    random.shuffle(mix)
    at = {1: iter(range(60)), 2: iter(range(60, 100))}
    return [next(at[s]) for s in mix]
first, second = interleaved(1), interleaved(2)
write('lanes', [times[i] for i in first], [lanes[i][1] for i in first])
write('lanes2', [times[i] for i in second], [lanes[i][1] for i in second])
write('lanes3', [times[i] for i in second], [3 - lanes[i][1] for i in second])  # streams made by threads: other numbers
for judge in ('lanes2', 'lanes3'):
    e = study('lanes', judge)  # each launch has the same time in both
    assert e['judges'][0]['error_pct'] == e['error']['in_sample_pct'] > 0, e
moved = [lanes[i][1] for i in second]
moved[0] = 3 - moved[0]
write('lanes4', [times[i] for i in second], moved)
assert 'the sequences differ' in run('study', 'subset', 'lanes', 'lanes4', status=3)

# ---- not timed, not counted
write('untimed', [(k, x, None if i == 3 else t, g) for i, (k, x, t, g) in enumerate(program)])
e = study('untimed')
assert e['error']['in_sample_pct'] is None and e['speedup']['time'] is None and e['selected'] == d['selected'] and e['times'] == 'incomplete'
assert 'not every launch of the first profile was timed' in run('study', 'subset', 'untimed', '--method', 'stem', status=3)
assert 'synchronising calls are not known' in run('study', 'subset', 'a', '--interval', 'sync', status=3)

# ---- every method: without noise strata and clusters are right; ratios add up
for method in ('simpoint', 'pka', 'sieve', 'stem', 'random', 'systematic', 'first', 'name', 'margay'):
    e = study('a', 'c', '--method', method)
    assert e['method'] == method and e['clusters'] >= 1 and e['selected'], e
    if method not in ('pka', 'stem'): assert abs(sum(s['weight'] for s in e['selected']) - 1) < 1e-9, (method, e)
    if method in ('sieve', 'margay'): assert e['error']['in_sample_pct'] < 1e-9, e
    if method == 'pka': assert e['error']['in_sample_pct'] <= 5
    if method == 'name': assert e['clusters'] == 3 and e['selected'][0]['launch'] == 0
    if method in ('first', 'systematic', 'random'): assert len(e['selected']) == 10
    if method == 'first': assert [s['launch'] for s in e['selected']] == list(range(10))
    if method in ('random', 'margay'): assert e['judges'][0]['interval_pct'][0] <= e['judges'][0]['interval_pct'][1]
assert len(study('a', '--method', 'margay', '--size', '30')['selected']) <= 30

# ---- a judging run of twice, five times the scatter: the interval says that recorded runs do not know it
noisy = lambda name, spread, seed: (random.seed(seed), write(name, [(k, n, round(10 * insts((k, n)) * random.gauss(1, spread)), g) for k, n, _, g in program[:1] * 400]))
for k in range(4): noisy(f'n{k}', .02, k)
noisy('n5', .1, 9)
noisy('n10', .02, 10)
judged = study('n0', '--times', 'n0,n1,n2', 'n3', 'n5', 'n10', '--method', 'margay')['judges']
width = [j['interval_pct'][1] - j['interval_pct'][0] for j in judged]
assert all(j['holds'] for j in judged) and judged[1]['scatter_ratio'] > 2.5 and width[1] > 2.5 * width[0], judged
assert max(judged[0]['scatter_ratio'], judged[2]['scatter_ratio']) < 2, judged
text = run('study', 'subset', 'n0', '--times', 'n0,n1,n2', 'n3', 'n5', '--method', 'margay').splitlines()
said = {l.split()[0]: l.rpartition('; ')[2] for l in text if l.startswith('  n')}
assert said['n5'].endswith('times the scatter of any recorded run') and 'scatter' not in said['n3'], said

# ---- ROOT parts a kernel's launches by their times where these lie apart: one sample of each is then enough
two = [('even', [1024, 10240, 1024], 1000 if i % 3 else 50000, 4) for i in range(90)]
write('two', two)
e = study('two', '--method', 'stem')
assert e['clusters'] == 2 and len(e['selected']) == 2 and e['error']['in_sample_pct'] < 1e-9, e
e = study('two', '--method', 'margay', '--use-times')
assert e['clusters'] == 3 and e['error']['in_sample_pct'] < 1e-9, e  # the first launch is by itself
# ---- with times of the selecting run totals are by ratio to them: whatever differs between equal launches in every run costs nothing
random.seed(8)
equal = [('even', [1024, 10240, 1024], round(random.uniform(1e5, 2e5)), 4) for _ in range(300)]
write('uneven', equal)
write('thrice', [(k, x, 3 * t, g) for k, x, t, g in equal])
for i in range(12): write(f'again{i}', [(k, x, round(t * random.gauss(1, .01)), g) for k, x, t, g in equal])
options = ('--method', 'margay', '--use-times', '--size', '20')
e = study('uneven', 'thrice', *options)
assert e['judges'][0]['error_pct'] < 1e-9 and abs(sum(s['times'] * equal[s['launch']][2] for s in e['selected']) - sum(l[2] for l in equal)) < 1, e
assert study('uneven', 'thrice', *options[:2], *options[3:])['judges'][0]['error_pct'] > .01
judged = [j for seed in '123456' for j in study('uneven', '--times', 'again0,again1', *[f'again{i}' for i in range(2, 12)], *options, '--seed', seed)['judges']]
held = sum(j['holds'] for j in judged)
assert len(judged) == 60 and 54 <= held < 60 and all(j['error_pct'] < 1.2 and .5 < j['interval_pct'][1] - j['interval_pct'][0] < 3 for j in judged), (held, judged)
# ---- ratios to recorded times that lie far out count less: the witness clips them at two standard deviations, by medians
jumpy = [(k, x, round(t * (random.gauss(1, .01) if random.random() < .8 else random.uniform(.5, 4))), g) for k, x, t, g in equal]
write('jumpy', jumpy)


def middle(pairs):
    below, all_ = 0, sum(w for _, w in pairs)
    for v, w in sorted(pairs):
        below += w
        if below >= all_ / 2: return v


for seed in '123':
    e = study('uneven', 'jumpy', *options, '--seed', seed)
    picked = [(jumpy[s['launch']][2] / equal[s['launch']][2], s['times'] * equal[s['launch']][2], s['times']) for s in e['selected']]
    drawn = [(r, w) for r, w, times in picked if times > 1]
    m = middle(drawn)
    far = 2 * 1.4826 * middle([(abs(r - m), w) for r, w in drawn])
    want = sum(w * (min(max(r, m - far), m + far) if times > 1 else r) for r, w, times in picked)
    plain = sum(w * r for r, w, _ in picked)
    assert abs(e['judges'][0]['projected_ns'] / want - 1) < 1e-6 and abs(want / plain - 1) > 1e-3, (e['judges'], want, plain)
# ---- Sieve's tiers: equal counts, a small spread, two peaks
e = study('two', '--method', 'sieve')
assert e['clusters'] == 1 and e['selected'][0]['launch'] == 0
near = [('even', [1024, 10240 + 100 * (i % 2), 1024], 1000, 4 if i > 4 else 2) for i in range(90)]
write('near', near)
e = study('near', '--method', 'sieve')
assert e['clusters'] == 1 and e['selected'][0]['launch'] == 5, e  # the first of the commonest CTA size
peaks = [('even', [1024, 1024 * (10 if i % 2 else 200) + 8 * (i % 7), 1024], 1000, 4) for i in range(90)]
write('peaks', peaks)
e = study('peaks', '--method', 'sieve')
assert e['clusters'] == 2 and {s['launch'] % 2 for s in e['selected']} == {0, 1}, e

# ---- all combinations
e = study('a', '--all')
assert len(e['combinations']) == 30 and len({(c['interval'], c['features']) for c in e['combinations']}) == 30
assert all((c['why_not'] is None) == (c['interval'] != 'sync') for c in e['combinations'])
tried = [c for c in e['combinations'] if not c['why_not']]
for c in tried:
    one = study('a', '--interval', c['interval'], '--features', c['features'])
    assert one['speedup'] == c['speedup'] and one['error']['in_sample_pct'] == c['error']['in_sample_pct'], (one, c)
    better = [o for o in tried if o['error']['in_sample_pct'] <= c['error']['in_sample_pct'] and o['speedup']['instructions'] >= c['speedup']['instructions'] and o != c]
    strict = [o for o in better if o['error'] != c['error'] or o['speedup']['instructions'] != c['speedup']['instructions']]
    assert not c['pareto'] or not strict, c
assert any(c['pareto'] for c in tried)
for t in e['thresholds']:
    fits = [c for c in tried if t['threshold_pct'] is None or c['error']['in_sample_pct'] <= t['threshold_pct']]
    if t['threshold_pct'] is None: assert t['chosen']['error']['in_sample_pct'] == min(c['error']['in_sample_pct'] for c in tried)
    else: assert (t['chosen'] and t['chosen']['speedup']['instructions']) == max((c['speedup']['instructions'] for c in fits), default=None)
assert [t['threshold_pct'] for t in e['thresholds']] == [None, .5] + list(range(1, 11))

# ---- a simulator's results
d = study('a', '--simpoints', 'sp')
rows = [(s['launch'], program[s['launch']][2], 3 * insts(program[s['launch']])) for s in d['selected']]
with open('results.csv', 'w') as f:
    f.write('launch,cycles,"bytes"\n' + ''.join(f'{a},{b},{c}\n' for a, b, c in rows) + '199,1,1\n' * (199 not in [r[0] for r in rows]))
e = json.loads(run('study', 'subset', 'a', '--project', 'results.csv', '--json'))['projected']
assert [p['column'] for p in e] == ['cycles', 'bytes']
assert abs(e[0]['total'] - sum(l[2] for l in program)) < 1e-3 and abs(e[1]['total'] - 3 * total) < 1e-3
study('a', '--launches', 'selected.csv')
by_number = {int(r['launch']): r['number'] for r in csv.DictReader(open('selected.csv'))}
assert by_number == {a: str(a + 1) for a, _, _ in rows}
open('numbers.csv', 'w').write('cycles,number\n' + ''.join(f'{b},{by_number[a]}\n' for a, b, _ in rows) + '0,7\n201,7\n')
assert json.loads(run('study', 'subset', 'a', '--project', 'numbers.csv', '--json'))['projected'] == e[:1]
open('both.csv', 'w').write('launch,number,c\n')
assert 'names' in run('study', 'subset', 'a', '--project', 'both.csv', status=3)
open('few.csv', 'w').write('launch,cycles\n' + ''.join(f'{a},{b}\n' for a, b, _ in rows[1:]))
assert f'no result of launch {rows[0][0]}' in run('study', 'subset', 'a', '--project', 'few.csv', status=3)
for text, why in (('', 'empty'), ('a,b\n', 'names'), ('launch,c\n0\n', 'fewer'), ('launch,c\n0,1,2\n', 'more'), ('launch,c\n0,x\n', 'not a number'),
                  ('launch,c\nq,1\n', 'not a launch number'), (f'launch,c\n{rows[0][0]},1\n{rows[0][0]},1\n', 'already')):
    open('bad.csv', 'w').write(text)
    assert why in run('study', 'subset', 'a', '--project', 'bad.csv', status=3), text
points = [l.split() for l in open('sp.simpoints')]
weights = [l.split() for l in open('sp.weights')]
labels = [int(l) for l in open('sp.labels')]
assert [int(p[0]) for p in points] == [s['launch'] for s in d['selected']] and [p[1] for p in points] == [w[1] for w in weights]
assert all(abs(float(w[0]) - s['weight']) < 1e-15 for w, s in zip(weights, d['selected']))
assert len(labels) == 200 and len({(l, p) for l, p in zip(labels, order)}) == 5

# ---- k-means and BIC: every partition of a few points
def bic(parts, points, weights, n, dims):
    mean = sum(weights) / n
    D = like = 0
    for part in parts:
        W = sum(weights[i] for i in part)
        centre = [sum(weights[i] * points[i][c] for i in part) / W for c in range(dims)]
        D += sum(weights[i] / mean * sum((points[i][c] - centre[c]) ** 2 for c in range(dims)) for i in part)
        like += W / mean * math.log(W / mean)
    variance = max(D / (dims * n), 1e-8)
    k = len(parts)
    return n * (-dims / 2 * (math.log(2 * math.pi * variance) + 1) - math.log(n) + like / n) - .5 * math.log(n) * (k - 1 + k * dims + 1)


def partitions(items):
    if not items:
        yield []
        return
    for p in partitions(items[1:]):
        for i in range(len(p)):
            yield p[:i] + [[items[0]] + p[i]] + p[i + 1:]
        yield [[items[0]]] + p


def ends(parts, points, weights, dims):
    """Every point is nearest to the centre of its own part."""
    centres = [[sum(weights[i] * points[i][c] for i in p) / sum(weights[i] for i in p) for c in range(dims)] for p in parts]
    far = lambda i, c: sum((a - b) ** 2 for a, b in zip(points[i], c))
    return all(far(i, centres[j]) <= min(far(i, c) for c in centres) + 1e-15 for j, p in enumerate(parts) for i in p)


random.seed(7)
for trial in range(4):
    dims = 3
    base = [[random.choice((1, 30, 200)) + random.random() * 3 for _ in range(dims)] for _ in range(7)]
    copies = [random.randint(1, 4) for _ in base]
    lines = [(i, ' '.join(f':{c + 1}:{v!r}' for c, v in enumerate(base[i]))) for i in range(7) for _ in range(copies[i])]
    random.shuffle(lines)
    open('few.bb', 'w').write(''.join(f'T{l}\n' for _, l in lines))
    d = study('--vectors', 'few.bb', '--simpoints', 'few')
    shares = [[v / sum(x) for v in x] for x in base]
    weights = [sum(x) * n for x, n in zip(base, copies)]
    stable = {}  # of each number of parts: the BIC of every partition that k-means may end in
    for parts in partitions(list(range(7))):
        if ends(parts, shares, weights, dims):
            stable.setdefault(len(parts), []).append(bic(parts, shares, weights, len(lines), dims))
    assert len(d['bic']) == 7
    for k, x in enumerate(d['bic'], 1):
        assert min(abs(x - b) for b in stable[k]) < 1e-8 * abs(x) and x > max(stable[k]) - .01 * abs(x), (trial, k, x, stable[k])
    bound = min(d['bic']) + .9 * (max(d['bic']) - min(d['bic']))
    assert d['clusters'] == next(k for k, x in enumerate(d['bic'], 1) if x >= bound)
    labels = [int(l) for l in open('few.labels')]
    assert len(set(zip(labels, [i for i, _ in lines]))) == 7, 'equal vectors are in one cluster'
    for s in d['selected']:  # the nearest to its cluster's centre
        mine = [i for l, (i, _) in zip(labels, lines) if l == labels[s['launch']]]
        W = sum(sum(base[i]) for i in mine)
        centre = [sum(sum(base[i]) * shares[i][c] for i in mine) / W for c in range(dims)]
        far = lambda i: sum((a - b) ** 2 for a, b in zip(shares[i], centre))
        assert far(lines[s['launch']][0]) <= min(map(far, mine)) + 1e-12

# ---- vectors that were written are read again, and say the same
run('export', 'features', 'a', '--features', 'BB', '-o', 'a.bb')
vectors = [dict((int(k), float(v)) for k, v in (x.split(':')[1:] for x in l[1:].split())) for l in open('a.bb')]
assert [sum(v.values()) for v in vectors] == [insts(l) for l in program]
e = study('--vectors', 'a.bb')
d = study('a')
assert [(s['launch'], s['weight']) for s in e['selected']] == [(s['launch'], s['weight']) for s in d['selected']] and e['error']['in_sample_pct'] is None
assert 'begins with T' in run('study', 'subset', '--vectors', 'results.csv', status=3)
