"""What kernels began and ended on the time line (inside.cu), against closed forms, the events' own sums and the kernels'
spans. usage: inside.py DEVICE [lost|some|liner]; reads p.json (report), p.txt (trace print --json --by-time), page.html,
t.json, t.pf, t.db, t.csv, and t.otf2 as otf2-print has it (t.otf2.defs, t.otf2.events), where that is installed"""
import collections, csv, json, os, re, sqlite3, sys
sys.path.insert(0, os.path.join(os.environ['ROOT'], 'tests/cli'))
from export_spans import fields, nests, one
sys.path.insert(0, os.path.join(os.environ['ROOT'], 'tests/page'))
import unpack
device, lost, some = sys.argv[1], 'lost' in sys.argv, 'some' in sys.argv
report = json.load(open('p.json'))
e, t = report['tools'].get('events'), report['tools']['timeline']
records = [json.loads(l) for l in open('p.txt')]
inside = [r['fields'] for r in records if r['kind'] == 'inside']
kernels = collections.defaultdict(list)
for r in records:
    if r['kind'] == 'work' and r['fields']['work'] == 'kernel':
        kernels[r['fields']['launch'], r['fields']['replay']].append(r['fields'])
popcount = lambda x: bin(x).count('1')

# on a GPU a launch runs native while its instrumented code cannot be loaded, for work of another stream
nest, part = (next(k['instrumented'] for k in report['kernels'] if k['name'].startswith('_Z4' + name)) for name in ('nest', 'part'))
assert some or (nest, part) == (10, 5) or (device == 'nvidia' and nest >= 4 and part >= 4), (nest, part)
if 'liner' in sys.argv: # one pair for each warp
    assert collections.Counter((s['name'], s['depth'], popcount(s['lanes'])) for s in inside) == {('all', 0, 32): nest * 8 + part * 2}, (nest, part)
    sys.exit()

# closed form: spans and lanes by name; each stands beside the events' own table
if some: # the first launch of each kernel, and graphs: the others count for nothing
    assert {s['launch'] for s in inside} < {launch for launch, _ in kernels} and 0 < len(inside) and e['lost'] == 0
elif not lost:
    by = collections.Counter((s['name'], s['depth'], popcount(s['lanes'])) for s in inside)
    assert by == {('outer', 0, 32): nest * 8, ('inner', 1, 32): nest * 8 * 5, ('half', 0, 16): part * 2 * 2}, by
    assert e['lost'] == 0
else:
    assert e['lost'] > 0 and 0 < len(inside) * 2 <= e['records'], (e['lost'], len(inside))
for x in e['events']:
    mine = [s for s in inside if s['name'] == x['event']]
    assert sum((s['end'] - s['begin']) * popcount(s['lanes']) for s in mine) == x['inclusive_ns'], x['event']
    if not lost:
        assert len(mine) == x['groups'] * (2 if x['event'] == 'half' else 1) and not x['open'] and not x['stray_ends'], x

# each lies within its kernel, and has its kernel's place
times = [s['begin'] for s in inside]
assert times == sorted(times)
for s in inside:
    assert s['begin'] <= s['end'] and s['warp'] < 2 and s['cta'] < 4
    ks = kernels[s['launch'], s['replay']]
    assert ks and all((k['name'], k['device'], k['stream'], k['context'], k['correlation']) ==
                      (s['kernel'], s['device'], s['stream'], s['context'], s['correlation']) for k in ks), (s, ks)
    if ks[0]['source'] == 'none': # replays of a graph on a GPU
        assert s['outside_ns'] is None
        continue
    may = s['uncertainty_ns'] + ks[0]['uncertainty_ns']
    assert s['outside_ns'] == 0 and len(ks) == 1 and ks[0]['begin'] - may <= s['begin'] and s['end'] <= ks[0]['end'] + may, (s, ks)
    assert device == 'nvidia' or may == 0
# inner ones lie in outer ones of their warp
warps = collections.defaultdict(list)
for s in inside:
    warps[s['launch'], s['replay'], s['cta'], s['warp'], s['kernel'] + (str(s['lanes']) if s['name'] == 'half' else '')].append(s)
if device != 'nvidia' and not lost and not some: # there replays share launch and replay
    assert len(warps) == 10 * 8 + 5 * 2 * 2, len(warps)
    for spans in warps.values():
        if spans[0]['name'] == 'half': continue
        assert [s['name'] for s in spans] == ['outer'] + 5 * ['inner'], spans
        assert all(a['end'] <= b['begin'] for a, b in zip(spans[1:], spans[2:])) and all(spans[0]['begin'] <= s['begin'] <= s['end'] <= spans[0]['end'] for s in spans)
    assert {r for _, r in kernels} == {None, 0, 1, 2, 3} and {s['replay'] for s in inside} == {None, 0, 1, 2, 3}
    assert len({s['stream'] for s in inside}) == 2

# the report's table: counts, times, and the share of the kernel in which any warp was inside, by brute force
def union(spans):
    sum_, last = 0, 0
    for b, e in sorted(spans):
        sum_ += max(0, e - max(b, last))
        last = max(last, e)
    return sum_
rows = {(x['kernel'], x['event']): x for x in t['inside']}
assert set(rows) == {(s['kernel'], s['name']) for s in inside}
for (kernel, name), x in rows.items():
    mine = [(s['begin'], s['end']) for s in inside if (s['kernel'], s['name']) == (kernel, name)]
    recorded = {(s['launch'], s['replay']) for s in inside} # each launch of inside.cu has some; were they lost, its record says so
    timed = [(k['begin'], k['end']) for l, ks in kernels.items() for k in ks if k['name'] == kernel and k['source'] != 'none' and (k['inside'] if lost else l in recorded)]
    assert (x['count'], x['time_ns'], x['longest_ns'], x['covered_ns'], x['kernel_ns'] or 0, x['outside'], x['kernel_covered_ns'] or 0) == \
        (len(mine), sum(b - a for a, b in mine), max(b - a for a, b in mine), union(mine), union(timed), 0, union([(s['begin'], s['end']) for s in inside if (s['kernel'], s['name']) == (kernel, name) and s['outside_ns'] is not None])), x
    assert device == 'nvidia' or x['kernel_covered_ns'] <= x['kernel_ns'], x

# the page: a row for each event, in which what overlaps is one span, for how many
page = unpack.parts('page.html')['spans']
events = {r['event']: r['spans'] for r in page['rows'] if 'event' in r}
assert sum(n for r in page['rows'] for n in r['spans'][3::4]) == page['spans'] and page['resolution_ns'] == 0
assert set(events) == {name for _, name in rows}
for (_, name), x in rows.items():
    assert (sum(events[name][3::4]), sum(events[name][1::4])) == (x['count'], x['covered_ns']), (name, x)

# exports
key = lambda begin, end, name, sm, cta, warp, lanes: (begin, max(end, begin + 1), name, sm, cta, warp, lanes)
want = collections.Counter(key(s['begin'], s['end'], s['name'], s['sm'], s['cta'], s['warp'], s['lanes']) for s in inside)
c = json.load(open('t.json'))
base, tracks, names = c['otherData']['base_ns'], collections.defaultdict(list), {}
got = collections.Counter()
for x in c['traceEvents']:
    if x['ph'] == 'M' and x['name'] == 'thread_name': names[x['pid'], x['tid']] = x['args']['name']
    if x.get('cat') != 'inside': continue
    b, a = base + round(x['ts'] * 1000), x['args']
    got[key(b, b + round(x['dur'] * 1000), x['name'], a['sm'], a['cta'], a['warp'], a['lanes'])] += 1
    tracks[x['pid'], x['tid']].append((b, b + round(x['dur'] * 1000)))
    assert names[x['pid'], x['tid']].startswith('multiprocessor %d' % a['sm']), (names, x)
assert got == want, 'chrome'
for k, v in tracks.items(): nests(v, k)
annotations, got, open_, names, parents, all_names = {}, collections.Counter(), collections.defaultdict(list), {}, {}, {}
packets = sorted(((one(fields(p), 8, 0), i, fields(p)) for i, (_, p) in enumerate(fields(open('t.pf', 'rb').read()))), key=lambda x: x[:2])
for _, _, p in packets:
    for what, to in ((3, annotations), (2, all_names)):
        for f, v in fields(one(p, 12, b'')):
            if f == what: to[one(fields(v), 1)] = one(fields(v), 2).decode()
    d = fields(one(p, 60, b''))
    if one(d, 1) is not None: names[one(d, 1)], parents[one(d, 1)] = one(d, 2, b'').decode(), one(d, 5)
for at, _, p in packets:
    x = fields(one(p, 11, b''))
    if one(x, 9) == 1:
        a = {annotations[one(fields(v), 1)]: one(fields(v), 3) for f, v in x if f == 4}
        open_[one(x, 11)].append((at, all_names[one(x, 10)], a))
    elif one(x, 9) == 2:
        b, name, a = open_[one(x, 11)].pop()
        if 'sm' not in a: continue
        got[key(b, at, name, a['sm'], a['cta'], a['warp'], a['lanes'])] += 1
        assert names[one(x, 11)].startswith('multiprocessor %d' % a['sm']) and names[parents[one(x, 11)]] == 'device 0'
assert got == want, ('perfetto', list((got - want).items())[:3], list((want - got).items())[:3])
got = collections.Counter(key(int(r['start_ns']), int(r['end_ns']), r['name'], int(r['sm']), int(r['cta']), int(r['warp']), int(r['lanes']))
                          for r in csv.DictReader(open('t.csv', newline='')) if r['kind'] == 'inside')
assert got == want, 'csv'
db = sqlite3.connect('t.db')
assert collections.Counter(key(*r) for r in db.execute('SELECT begin_ns, end_ns, name, sm, cta, warp, lanes FROM inside')) == want, 'sqlite'
n, in_, apart = db.execute('SELECT count(*), sum(in_kernel), sum(kernel_begin_ns IS NULL) FROM (SELECT *, begin_ns >= kernel_begin_ns AND end_ns <= kernel_end_ns AS in_kernel FROM inside_kernels)').fetchone()
assert n == len(inside) and (device == 'nvidia' or (in_ == n and not apart)), (n, in_, apart)
if os.path.exists('t.otf2.events'):
    places, got, open_ = {}, collections.Counter(), collections.defaultdict(list)
    for line in open('t.otf2.defs'):
        m = re.match(r'LOCATION +(\d+)  Name: "multiprocessor (\d+).*Type: ACCELERATOR_STREAM.*Group: "device 0', line)
        if m: places[m[1]] = int(m[2])
    for m in re.finditer(r'^(ENTER|LEAVE) +(\d+) +(\d+)  Region: "(.*)" <\d+>$(?:\n +ADDITIONAL ATTRIBUTES: (.*)$)?', open('t.otf2.events').read(), re.M):
        if m[2] not in places: continue
        if m[1] == 'ENTER':
            open_[m[2]].append((int(m[3]), m[4], {k: int(v) for k, v in re.findall(r'"(\w+)" <\d+>; UINT64; (\d+)', m[5])}))
            continue
        begin, name, a = open_[m[2]].pop()
        assert name == m[4] and set(a) == {'correlation', 'cta', 'warp', 'lanes'}, (m[0], a)
        got[key(begin, int(m[3]), name, places[m[2]], a['cta'], a['warp'], a['lanes'])] += 1
    assert got == want, ('otf2', list((got - want).items())[:3], list((want - got).items())[:3])
