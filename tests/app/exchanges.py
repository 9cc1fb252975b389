"""margay study communication --json of `exchange PATTERN P S` against formulas.
usage: exchanges.py JSON PATTERN P S"""
import collections, json, sys

T, B = 64, 256  # threads and bytes of a chunk
doc = json.load(open(sys.argv[1]))['communication']
name, p, S = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
half = (p + 1) // 2
odd = [s for s in range(S) if s % 2]
bad = 0


def check(what, got, want):
    global bad
    if got != want:
        bad += 1
        print(f'{name} {p} {S}: {what}: {got}, want {want}')


# Each pattern: transfers {(source, step, target, step): (bytes, reads)}, loads, stores and atomics by step that run and that
# communicate, bytes over the bisection, gaps of loads and stores, the pattern that all transfers have.
W = collections.namedtuple('W', 'transfers load store atomic used_load used_store used_atomic cut gaps pattern')
none = [0] * S
later = lambda v: [0] + [v] * (S - 1)
earlier = lambda v: [v] * (S - 1) + [0]
on = lambda steps, v: [v if s in steps else 0 for s in range(S)]
read = [s - 1 for s in odd]  # even steps with a reader behind them


def every(source, n, reads):
    return {(c2, s - 1, c, s): (n, reads) for s in range(1, S) for c in range(p) for c2 in source(c)}


def ring():
    return W(every(lambda c: [(c + 1) % p], B, T), [B * p] * S, [B * p] * S, none, later(B * p), earlier(B * p), none,
             2 * B * (S - 1), ({4: 63 * p * (S - 1)}, {4: 63 * p * (S - 1)}), 'point_to_point')


def halo():
    t = every(lambda c: [c], B, T)
    t.update(every(lambda c: [c2 for c2 in (c - 1, c + 1) if 0 <= c2 < p], 4, 1))
    n = B * p + 8 * (p - 1)
    return W(t, [n] * S, [B * p] * S, none, later(n), earlier(B * p), none, 8 * (S - 1),
             ({4: (65 * p - 2) * (S - 1)}, {4: 63 * p * (S - 1)}), 'all_to_all')


def tree():  # p = 2^S
    active = [p >> s + 1 for s in range(S)]
    t = {(c2, s - 1, c, s): (B, T) for s in range(1, S) for c in range(0, p, 2 << s) for c2 in (c, c + (1 << s))}
    gaps = {4: 126 * sum(active[1:])}
    for s in range(1, S):
        gaps[(B << s) - 252] = active[s]
    n = [2 * B * a for a in active]
    return W(t, n, [B * a for a in active], none, [0] + n[1:], [B * a for a in active[:-1]] + [0], none, B,
             (gaps, {4: 63 * sum(active[:-1])}), 'gather')


def transpose():
    q = int(p ** .5)
    h = (q + 1) // 2
    cut = 2 * h * (q - h) * B * (S - 1)
    return ring()._replace(transfers=every(lambda c: [c % q * q + c // q], B, T), cut=(cut, cut))


def all():
    return W(every(lambda c: range(p), B, T), [B * p * p] * S, [B * p] * S, none, later(B * p * p), earlier(B * p), none,
             2 * half * (p - half) * B * (S - 1), ({4: (T * p - 1) * p * (S - 1)}, {4: 63 * p * (S - 1)}), 'all_to_all')


def personal():
    n = 4 * p * p
    return W(every(lambda c: range(p), 4, 1), [n] * S, [n] * S, none, later(n), earlier(n), none, 2 * half * (p - half) * 4 * (S - 1),
             ({B: (p - 1) * p * (S - 1)}, {4: (p - 1) * p * (S - 1)}), 'all_to_all')


def scatter():
    t = {(0, s - 1, c, s): (B, T) for s in odd for c in range(p)}
    return W(t, on(odd, B * p), [B * p] * S, none, on(odd, B * p), on(read, B * p), none, (p - half) * B * len(odd),
             ({4: 63 * p * len(odd)}, {4: (T * p - 1) * len(odd)}), 'scatter')


def multicast():
    return scatter()._replace(used_store=on(read, B), gaps=({4: 63 * p * len(odd)}, {4: 63 * len(odd)}), pattern='multicast')


def gather():
    t = {(c, s - 1, 0, s): (B, T) for s in odd for c in range(p)}
    return W(t, on(odd, B * p), [B * p if s % 2 == 0 else B for s in range(S)], none, on(odd, B * p), on(read, B * p), none,
             (p - half) * B * len(odd), ({4: (T * p - 1) * len(odd)}, {4: 63 * p * len(odd)}), 'gather')


def add():  # several CTAs add to each value: what reads it has no one source
    even = [s for s in range(S) if s % 2 == 0]
    used = [s for s in even if s + 1 < S or s >= 2]
    t = {(None, s - 1, c, s): (B, T) for s in odd for c in range(p)}
    t.update({(None, s - 2, c, s): (B, T) for s in even if s for c in range(p)})
    return W(t, on(odd, B * p), on(odd, B * p), on(even, B * p), on(odd, B * p), none, on(used, B * p), 0,
             ({4: 63 * p * len(odd)}, {4: 63 * p * len(read)}), 'multicast')


w = globals()[name]()
by_step = collections.defaultdict(collections.Counter)
for key in ('KDV', 'KCV'):
    for kernel in doc['bytes'][key].values():
        for s, v in kernel.items():
            by_step[key, int(s)].update(v)
for s in range(S):
    for key, load, store, atomic in (('KDV', w.load, w.store, w.atomic), ('KCV', w.used_load, w.used_store, w.used_atomic)):
        got = by_step[key, s]
        check(f'{key} of {s}', (got['load'], got['store'], got['atomic']), (load[s], store[s], atomic[s]))
for small, large in (('CDV', 'KDV'), ('CCV', 'KCV'), ('SDV', 'KDV'), ('SCV', 'KCV')):  # sums of parts
    for kernel, steps in doc['bytes'][small].items():
        for s, parts in steps.items():
            for kind in ('load', 'store', 'atomic'):
                check(f'{small} of {s}', sum(v[kind] for v in parts.values()), doc['bytes'][large][kernel][s][kind])
end = lambda e: (e['cta'], e['superstep'])
got = {end(t['source']) + end(t['target']): (t['bytes'], t['reads']) for t in doc['transfers']}
check('transfers', got, w.transfers)
check('executed', sum(t['executed'] for t in doc['transfers']), sum(w.used_load) + (sum(w.used_atomic[2:]) if name == 'add' else 0))
m = doc['metrics']
bins = lambda rows, k, v: {r[k]: r[v] for r in rows}
count = collections.Counter
check('sizes', bins(m['transfer_size'], 'bytes', 'transfers'), dict(count(n for n, r in w.transfers.values())))
for key, a in (('in_degree', 2), ('out_degree', 0)):
    degree = count((t[a], t[a + 1]) for t in w.transfers if t[a] is not None)
    want = count(degree.values())
    want[0] += p * S - len(degree)
    check(key, bins(m[key], 'partners', 'entities'), {k: v for k, v in want.items() if v})
cut = {b['dimension']: b['bytes'] for b in m['bisection']}
x, y = w.cut if isinstance(w.cut, tuple) else (w.cut, None)
check('bisection', cut, {'x': None if name == 'add' else x, 'y': y, 'z': None})
check('unplaced', m['unplaced_bytes'], sum(n for n, r in w.transfers.values()) if name == 'add' else 0)
for i, kind in enumerate(('load', 'store')):
    check(f'stride of {kind}s', {g['bytes']: g['count'] for g in m['stride'] if g['kind'] == kind}, {k: v for k, v in w.gaps[i].items() if v})
density = collections.defaultdict(lambda: [0, 0])
for (a, s, b, s2), (n, reads) in w.transfers.items():
    if a is not None:
        density[a, b][0] += reads
        density[a, b][1] += n
check('density', {(d['source'], d['target']): [d['reads'], d['bytes']] for d in m['density']}, dict(density))
distance = count()
for (a, s, b, s2), (n, r) in w.transfers.items():
    distance[s2 - s - 1] += n
check('distance', bins(m['distance'], 'supersteps', 'bytes'), dict(distance))
for s, c in enumerate(m['connectivity']):
    out = count(t[0] for t in w.transfers if t[1] == s and t[0] is not None)
    mean = sum(out.values()) / p
    deviation = (sum((out[i] - mean) ** 2 for i in range(p)) / p) ** .5
    check(f'connectivity of {s}', (round(c['mean'], 9), round(c['deviation'], 9), c['active']), (round(mean, 9), round(deviation, 9), len(out)))
for s, c in enumerate(m['collectives']):
    n = sum(1 for t in w.transfers if t[3] == s)
    for k in ('point_to_point', 'gather', 'scatter', 'multicast', 'all_to_all'):
        check(f'{k} of {s}', c[k]['transfers'], n if k == w.pattern else 0)
for x in doc['scaling']['gpus']:  # who is on another GPU
    n, place = x['gpus'], {'blocks': lambda c: c * x['gpus'] // p, 'cyclic': lambda c: c % x['gpus']}.get(x['placement'])
    away = lambda place: sum(size for (a, s, b, s2), (size, r) in w.transfers.items() if a is None or place(a) != place(b))
    if place: check(f'bytes between {n} GPUs, {x["placement"]}', x['bytes'], away(place))
    else: check(f'a cut over {n} is no worse than blocks', x['bytes'] <= away(lambda c: c * n // p), True)
a = doc['advice']
close = {(t[0], t[2]): 0 for t in w.transfers}
for (c, s, c2, s2), (n, r) in w.transfers.items():
    if s2 == s + 1: close[c, c2] += n
check('next', a['next_bytes'], sum(close.values()))
check('same CTA', a['same_cta_bytes'], sum(n for (c, c2), n in close.items() if c == c2))
for k in a['clusters']:
    check(f'clusters of {k["ctas"]}', k['bytes'], sum(n for (c, c2), n in close.items() if c is not None and c // k['ctas'] == c2 // k['ctas']))
check('pairs', sum(x['launches'] for x in a['pairs']), S - 1)
check('read nothing', sum(x['read_nothing'] for x in a['pairs']), sum(1 for s in range(1, S) if not any(t[1] == s - 1 and t[3] == s for t in w.transfers)))
check('atomics in launches', doc['in_launch']['atomic_bytes'], sum(w.atomic))
check('ambiguous', (doc['in_launch']['bytes'], doc['ambiguous']['bytes']), (0, 0))
sys.exit(bad != 0)
