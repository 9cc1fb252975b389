"""Profiles whose times follow planted costs, and a witness for what `margay study predict` fits and predicts.
The blocks of mkprofile: 0 ld.param x2, mov, bra; 1 add.f32, bra, ld.global.f32, setp; 2 ret."""
import json, math, random, shutil, sqlite3, subprocess, sys

margay = sys.argv[1]


def run(*args, status=0):
    p = subprocess.run([margay, 'study', 'predict', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.returncode == status, (args, p.returncode, p.stdout, p.stderr)
    return p.stderr if status else p.stdout


def leb(n):
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def counts(w):
    """As the profile has them: behind a zero stands how many more follow, here none."""
    return b''.join(leb(x) + (b'' if x else b'\0') for x in w)


TERMS = 'launch depth simple float double special matrix shared memory atomic barrier bytes'.split()


def terms(grid, warps, loops, units=1):
    """Of a launch of `grid` CTAs of `warps` whole warps each, whose every lane goes `loops` times through block 1."""
    n, part = grid * warps, -(-grid // units) / grid
    simple, real, memory = n * (4 + 1) + n * loops * 2, n * loops, n * loops
    return dict(dict.fromkeys(TERMS, 0), launch=1, depth=(simple + real + memory) / n, simple=part * simple, float=part * real,
                memory=part * memory, bytes=32 * n * loops * 4)


def write(name, launches):
    shutil.rmtree(name, ignore_errors=True)
    shutil.copytree('base', name)
    db = sqlite3.connect(name + '/profile.db')
    names = [c[1] for c in db.execute('PRAGMA table_info(launch)')]
    model = db.execute('SELECT * FROM launch WHERE id=0').fetchone()
    db.execute('DELETE FROM launch')
    for i, ((grid, warps, loops), time) in enumerate(launches):
        w = [grid * warps, grid * warps * loops, grid * warps]
        r = dict(zip(names, model), id=i, time_ns=time, grid_x=grid, block_x=32 * warps, threads=counts([32 * x for x in w]), warps=counts(w))
        db.execute(f'INSERT INTO launch VALUES ({",".join("?" * len(r))})', list(r.values()))
    db.commit()
    db.close()


def time_of(shape, costs, units=1):
    t = terms(*shape, units)
    return round(sum(c * t[k] for k, c in costs.items()))


random.seed(3)
shapes = [[(random.choice((1, 4, 64, 200)), random.choice((1, 2, 8)), random.randint(1, 400)) for _ in range(40)] for _ in range(4)]
planted = {'launch': 5e6, 'depth': 900., 'memory': 40.}
for i, s in enumerate(shapes): write(f'p{i}', [(x, time_of(x, planted)) for x in s])
d = json.loads(run('p0', 'p1', 'p2', 'p3', '--json'))
# float and memory run as often as one another here and bytes follow them: together they cost what was planted
costs = {c['term']: c['ns'] for c in d['costs']}
assert costs['double'] is None and costs['shared'] is None
joined = costs['float'] + costs['memory'] + 2 * costs['simple'] + 128 * costs['bytes']
assert abs(costs['launch'] / 5e6 - 1) < 1e-3 and abs(joined / 40 - 1) < .02, costs
assert [p['launches'] for p in d['programs']] == [40] * 4
for p in d['programs']: assert p['model']['error_pct'] < .1 and p['model']['launch_error_pct'] < .1 and p['roofline']['error_pct'] > 5, p

# ---- 8 multiprocessors: CTAs are dealt out evenly
shared = {'launch': 5e3, 'depth': 9., 'memory': 40.}
for i, s in enumerate(shapes): write(f'q{i}', [(x, time_of(x, shared, 8)) for x in s])
d = json.loads(run(*[f'q{i}' for i in range(4)], '--units', '8', '--json'))
assert all(p['model']['error_pct'] < 1 for p in d['programs']), d
assert any(p['model']['launch_error_pct'] > 1 for p in json.loads(run(*[f'q{i}' for i in range(4)], '--json'))['programs'])

# ---- times of another run; the witness: the fit has no smaller sum of squares with one cost moved up or down, and the
# ---- roofline is what the best rates of the others say
noisy = [[(x, round(time_of(x, planted) * random.uniform(.5, 2))) for x in s] for s in shapes]
for i, l in enumerate(noisy): write(f't{i}', l)
d = json.loads(run(*[f'p{i}=t{i}' for i in range(4)], '--json'))
costs = {c['term']: c['ns'] or 0 for c in d['costs']}
rows = [(terms(*x), t) for l in noisy for x, t in l]


def squares(costs):
    return sum(math.log(sum(costs[k] * v for k, v in t.items()) / time) ** 2 for t, time in rows)


least = squares(costs)
for k in TERMS:
    scale = max(costs[k], 1e-3 / max(t[k] / time for t, time in rows) if any(t[k] for t, _ in rows) else 0)
    for step in (-1e-2, 1e-2):
        moved = dict(costs, **{k: costs[k] + step * scale})
        assert moved[k] < 0 or squares(moved) >= least - 1e-4, (k, step, least, squares(moved))
insts = lambda t: sum(t[k] for k in TERMS[2:-1])
for i, p in enumerate(d['programs']):
    others = [(terms(*x), t) for j, l in enumerate(noisy) if j != i for x, t in l]
    rate, band = max(insts(t) / time for t, time in others), max(t['bytes'] / time for t, time in others)
    want = sum(max(insts(t) / rate, t['bytes'] / band) for t in (terms(*x) for x, _ in noisy[i]))
    assert p['measured_ns'] == sum(t for _, t in noisy[i]) and abs(p['roofline']['predicted_ns'] / want - 1) < 1e-9, p

text = run('p0=t0', 'p1=t1,t1')
assert 'predicted from the 1 other\n' in text and 'memory' in text and 'times off' in text

# ---- how far off a prediction is says the same of half and of twice; what the others do not have, what is left out, times of instrumented kernels
for p in d['programs']:
    for m in p['model'], p['roofline']:
        ratio = m['predicted_ns'] / p['measured_ns']
        assert abs(m['off'] / max(ratio, 1 / ratio) - 1) < 1e-9 and m['off'] >= 1, m
logs = [math.log(p['roofline']['off']) for p in d['programs']]
assert abs(d['roofline_off'] / math.exp(sum(logs) / len(logs)) - 1) < 1e-9 and d['off'] < d['roofline_off'], d
assert all(p['lacks'] == [] and p['launches_left_out'] == 0 and p['times'] == 'instrumented' for p in d['programs']), d
for i in range(2): write(f'e{i}', [((g, w, 0), time_of((g, w, 0), planted)) for g, w, _ in shapes[i]])
write('few', [(x, time_of(x, planted) if k < 10 else None) for k, x in enumerate(shapes[2])])
d = json.loads(run('e0', 'e1', 'few', '--json'))
assert [p['lacks'] for p in d['programs']] == [[], [], ['float', 'memory', 'bytes']] and [p['launches_left_out'] for p in d['programs']] == [0, 0, 30], d
text = run('e0', 'e1', 'few')
assert 'few: no other program has float, memory, bytes: that costs nothing in its prediction\n' in text and 'few: 30 launches are left out' in text, text
assert 'e0: its times are of instrumented kernels' in text
assert 'p0/ is given twice' in run('p0', 'p1', 'p0/', status=3)
shutil.copytree('p1', 'far')
db = sqlite3.connect('far/profile.db')
db.execute("UPDATE process SET device_kind = 'nvidia'")
db.commit()
db.close()
assert 'times are of two devices' in run('p0', 'far', status=3)
assert 'needs two programs' in run('p0', status=2)
write('other', [(x, 1) for x in shapes[0][:-1]])
assert 'sequences differ' in run('p0=other', 'p1', status=3)
write('untimed', [(x, None) for x in shapes[0]])
assert 'no launch has both counts and a time' in run('untimed', 'p1', status=3)

# ---- intervals: how far off the others are without each of them and without the one in question; the witness does it for rooflines
n, totals = 4, [sum(t for _, t in l) for l in noisy]


def roofline_off(i, out):
    """How many times off, as a logarithm, by the rates of all programs but those of `out`."""
    others = [(terms(*x), t) for j, l in enumerate(noisy) if j not in out for x, t in l]
    rate, band = max(insts(t) / time for t, time in others), max(t['bytes'] / time for t, time in others)
    return math.log(sum(max(insts(t) / rate, t['bytes'] / band) for t in (terms(*x) for x, _ in noisy[i])) / totals[i])


d = json.loads(run(*[f'p{i}=t{i}' for i in range(n)], '--json'))
for i, p in enumerate(d['programs']):
    want = math.exp(3.182 * math.sqrt(sum(roofline_off(j, (i, j)) ** 2 for j in range(n) if j != i) / (n - 1)))
    assert abs(p['roofline']['apart'] / want - 1) < 1e-6 and p['model']['apart'] > 1, (p, want)
    assert all(m['holds'] == (m['off'] <= m['apart']) for m in (p['model'], p['roofline'])) and 'carried' not in p, p
assert [x['predictor'] for x in d['predictors']] == ['model', 'roofline'] and d['predictors'][1]['held'] == sum(p['roofline']['holds'] for p in d['programs'])
assert json.loads(run('p0=t0', 'p1=t1', '--json'))['programs'][0]['model']['apart'] is None

# ---- across devices: times of one tell those of another. Both follow planted costs, and each program is slower on both by a factor of its own
DEVICES = dict(planted), {'launch': 2e4, 'depth': 300., 'memory': .7}
slower = [math.exp(random.uniform(-1.2, 1.2)) for _ in range(8)]
shapes += [[(random.choice((1, 4, 64, 200)), random.choice((1, 2, 8)), random.randint(1, 400)) for _ in range(40)] for _ in range(4)]
on = [[[(x, round(f * time_of(x, costs))) for x in s] for s, f in zip(shapes, slower)] for costs in DEVICES]
for i, l in enumerate(on[0]): write(f'h{i}', [(x, None if i == 7 and k < 5 else t) for k, (x, t) in enumerate(l)])
for i, l in enumerate(on[1]): write(f'f{i}', l)
d = json.loads(run('--across', *[f'h{i}=h{i}=f{i}' for i in range(8)], '--json'))
here, there = [[sum(t for _, t in l[5 if i == 7 else 0:]) for i, l in enumerate(o)] for o in on]
for i, p in enumerate(d['programs']):
    others = [j for j in range(8) if j != i]
    want = here[i] * math.exp(sum(math.log(there[j] / here[j]) for j in others) / 7)
    assert abs(p['scaled']['predicted_ns'] / want - 1) < 1e-9 and p['measured_ns'] == there[i] and p['here_ns'] == here[i], (p, want)
    assert p['launches_left_out'] == (5 if i == 7 else 0), p
off = {x['predictor']: x['off'] for x in d['predictors']}
assert off['ratio'] < 1.25 and off['ratio'] < off['model'] and off['ratio'] < off['scaled'], off
text = run('--across', *[f'h{i}=h{i}=f{i}' for i in range(8)])
assert 'from times on a device' in text and 'carried' in text and 'ratio: the time lies within a factor of' in text, text
# without factors of their own each device's costs are found: what is carried over are the times that they say
for i, s in enumerate(shapes):
    for name, costs in zip('hf', DEVICES): write(f'{name}{i}', [(x, time_of(x, costs)) for x in s])
d = json.loads(run('--across', *[f'h{i}=h{i}=f{i}' for i in range(8)], '--json'))
for p in d['programs']:
    assert p['model']['off'] < 1.01 and p['ratio']['off'] < 1.01 and abs(p['carried']['off'] / p['scaled']['off'] - 1) < .01, p
assert '--across wants COUNTS=HERE=THERE' in run('--across', 'p0=t0', 'p1=t1', status=3)
assert '--grids has no --across' in run('--across', '--grids', 'p0=t0=t0', status=2)
assert 'times are of two devices' in run('--across', 'h0=h0=f0', 'p1=far=f1', status=3)

# ---- the best grid: the same work at every grid, times by planted costs; the witness tries all grids
UNITS, WARPS, WORK = random.choice((6, 8, 12)), random.choice((2, 4)), random.randint(40000, 90000)
GRIDS = [UNITS // 2, UNITS, 3 * UNITS, 10 * UNITS, 40 * UNITS]


def write_grids(name, launches):
    """(CTAs, entries of block 1 by warps, time)."""
    write(name, [((g, WARPS, 0), t) for g, _, t in launches])
    db = sqlite3.connect(name + '/profile.db')
    for i, (g, work, _) in enumerate(launches):
        w = [g * WARPS, work, g * WARPS]
        db.execute('UPDATE launch SET threads=?, warps=? WHERE id=?', (counts([32 * x for x in w]), counts(w), i))
    db.commit()
    db.close()


def grid_time(g, units=UNITS, floor=2e5, each=700., busiest=30.):
    turns = -(-g // units)
    return floor + each * turns + busiest * (5 * g * WARPS + 4 * WORK) / g * turns


def grids(*args, status=0):
    out = run('--grids', '--units', str(UNITS), *args, status=status)
    return out if status or '--json' not in args else json.loads(out)['kernels']


write_grids('g', [(g, WORK, round(grid_time(g))) for g in GRIDS * 2])
k, = grids('g', '--json')
every = {g: grid_time(g) for g in range(GRIDS[0], GRIDS[-1] + 1)}
assert k['why_not'] is None and abs(every[k['best_ctas']] / min(every.values()) - 1) < .012, (k, min(every, key=every.get))
assert k['best_ctas'] <= min(g for g in every if every[g] <= 1.008 * min(every.values())), k
assert 1 <= k['apart'] < 1.05 and k['units'] == UNITS and k['resident'] == 1 and [m['launches'] for m in k['measured']] == [2] * 5, k
for p in k['curve'] + k['measured']: assert abs(p['predicted_ns'] / every[p['ctas']] - 1) < .02, (p, every[p['ctas']])
each = -(-k['best_ctas'] // UNITS)
few = [n for n in range(1, UNITS) if n * each >= GRIDS[0] and grid_time(n * each, n) <= 1.05 * every[k['best_ctas']]]
wide = [n for n in range(1, UNITS) if n * each >= GRIDS[0] and grid_time(n * each, n) <= 1.08 * every[k['best_ctas']]]
assert min(wide, default=UNITS) <= k['fewest_units'] <= min(few, default=UNITS) and abs(k['fewest_ns'] / grid_time(k['fewest_ctas'], k['fewest_units']) - 1) < .02, (k, few)
text = grids('g')
assert str(k['best_ctas']) in text and 'fewest: multiprocessors' in text, text
# in several profiles, a grid each, with times of others
for i, g in enumerate(GRIDS):
    write_grids(f'c{i}', [(g, WORK, None)])
    write_grids(f'n{i}', [(g, WORK, round(grid_time(g)))])
assert grids(*[f'c{i}=n{i}' for i in range(5)], '--json')[0]['best_ctas'] == k['best_ctas']
# ---- where counts do not say it is refused, with the reason
for launches, why in (([(g, WORK, round(grid_time(g))) for g in GRIDS[:3]], 'it ran at 3 grids: 4 or more are needed'),
                      ([(g, 500 * g, round(grid_time(g))) for g in GRIDS], 'its work grows with its grid'),
                      ([(g, WORK * (1 + (i == 2)), round(grid_time(g))) for i, g in enumerate(GRIDS)], 'its instructions follow no line over its grid'),
                      ([(g, WORK, round(grid_time(g))) for g in GRIDS] + [(GRIDS[1], 2 * WORK, 5)], f'launches of {GRIDS[1]} CTAs do different work'),
                      ([(g, WORK, t) for g, t in zip(GRIDS, (9000, 900000, 8000, 700000, 10000))], 'its times do not follow its counts')):
    write_grids('bad', launches)
    k, = grids('bad', '--json')
    assert k['why_not'].startswith(why) and k['best_ctas'] is k['predicted_ns'] is k['fewest_units'] is None and k['curve'] == [], (why, k)
    assert why in grids('bad')
# ---- work that grows by less than the part that is always the same: an argument tells, a pointer does not
def write_args(name, values, kind):
    db = sqlite3.connect(name + '/profile.db')
    for i, v in enumerate(values):
        args = [(0, 8, 1, 3, 0, 77), (8, 4, kind, 0, 0, v)]
        db.execute('UPDATE launch SET args=? WHERE id=?', (b''.join(b''.join(map(leb, a[:5])) + a[5].to_bytes(a[1], 'little') for a in args), i))
    db.commit()
    db.close()


grown = [(g, WORK + WORK // 4 // GRIDS[-1] * g, round(grid_time(g))) for g in GRIDS]
write_grids('grown', grown)
for kind, values, why in ((0, [9] * 5, None), (0, GRIDS, 'arg 1 differs between launches'), (1, GRIDS, None)):
    write_args('grown', values, kind)
    k, = grids('grown', '--json')
    assert (k['why_not'] or '').startswith(why or '') and bool(k['why_not']) == bool(why), (kind, values, k)
WORK *= 20  # arguments that differ, and the same work: counts say so
write_grids('same', [(g, WORK, round(grid_time(g))) for g in GRIDS])
write_args('same', GRIDS, 0)
assert grids('same', '--json')[0]['why_not'] is None

# ---- times that are none
for bad in ('-7', '-1e30', "'nan'", '9e999', "x'00ff'"):
    write('bad', [(x, 100 + i) for i, x in enumerate(shapes[0])])
    db = sqlite3.connect('bad/profile.db')
    at = random.randrange(len(shapes[0]))
    db.execute(f'UPDATE launch SET time_ns={bad} WHERE id={at}')
    db.commit()
    db.close()
    said = run('p0=bad', 'p1', status=3)
    assert f'bad/profile.db is damaged: the time of launch {at} is ' in said and 'no count of nanoseconds' in said, (bad, said)
assert '--units says how many' in run('--grids', 'g', status=3)
assert 'needs a profile' in run('--grids', status=2)
