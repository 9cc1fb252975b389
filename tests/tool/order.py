"""Tool memory against the lanes of a trace: accesses, requests, sectors, lines and patterns of each instruction.
usage: order.py REPORT.json LANES.csv [parts|anywhere]
parts: on this device lanes of a warp may come to an instruction apart, in each run in another way, but leave our code as they came.
anywhere: they may also part and meet within our code, which then sees other lanes in each of its steps: threads alone are sure."""
import collections, csv, json, sys
report = json.load(open(sys.argv[1]))
names = {k['id']: k['name'] for k in report['kernels']}
how = (sys.argv[3:] + ['together'])[0]
requests, whole, times = {}, {}, collections.Counter()
for r in csv.DictReader(open(sys.argv[2])):
    site, lane = (r['kernel'], r['op'], int(r['line'])), (int(r['lane']), int(r['address'], 16), int(r['bytes']))
    requests.setdefault((r['launch'], r['request']), (site, []))[1].append(lane)
    at = r['launch'], r['cta_x'], r['warp'], site
    whole.setdefault((at, times[at, lane[0]]), (site, []))[1].append(lane)
    times[at, lane[0]] += 1 # of the instructions of a line its lanes take the first ones


PATTERNS = 'same', 'aligned', 'unit', 'stride_32', 'stride_128', 'stride_more', 'irregular'


def pattern(lanes):
    at, n = [a for _, a, _ in lanes], lanes[0][2]
    in_order = all(a - at[0] == n * (l - lanes[0][0]) for l, a, _ in lanes)
    if len(set(at)) == 1: return 'same'
    if in_order: return 'aligned' if len(at) == 32 and at[0] % 128 == 0 else 'unit'
    steps = {b - a for a, b in zip(at, at[1:])}
    if len(at) < 32 or len(steps) > 1: return 'irregular'
    step = abs(steps.pop())
    return 'stride_32' if step <= 32 else 'stride_128' if step <= 128 else 'stride_more'


def counts(groups):
    """By site; and the most that one group has, of each."""
    sums, most = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for site, lanes in groups:
        touched = lambda unit: len({u for _, a, n in lanes for u in range(a // unit, (a + n - 1) // unit + 1)})
        one = {'accesses': len(lanes), 'requests': 1, 'sectors': touched(32), 'lines': touched(128)}
        sums[site].update(one | {pattern(sorted(lanes)): 1})
        most[site] = {k: max(most[site][k], v) for k, v in one.items()} if site in most else one
    return sums, most


got = collections.defaultdict(collections.Counter)
for s in report['tools']['memory']['sites']:
    if s['space'] not in ('global', 'generic'): continue
    c = {k: s[k] for k in ('accesses', 'requests', 'sectors', 'lines')} | s['patterns']
    got[names[s['kernel']], s['op'], s['line']].update({k: v for k, v in c.items() if v})
least, most = counts(whole.values()) # no instruction runs twice in a thread: at best a warp's lanes go together
traced = counts(requests.values())[0]
assert {'u8', 'u16', 'u32', 'f64'} <= {op.split('.')[-1] for _, op, _ in least}, list(least)
assert set(got) == set(traced) == set(least), (set(got) ^ set(least), set(traced) ^ set(least))


def look(site, is_):
    """Where no warp came apart all is known; each part more adds at most what the group has that it was cut from."""
    n, want = is_['requests'] - least[site]['requests'], least[site]
    assert n >= 0 and is_['accesses'] == want['accesses'] and sum(is_[p] for p in PATTERNS) == is_['requests'], (site, is_, want)
    if how == 'anywhere': return n != 0
    if n == 0: assert is_ == want, (site, is_, want)
    for k in 'sectors', 'lines': assert want[k] <= is_[k] <= want[k] + n * most[site][k], (site, k, is_, want)
    return n != 0


apart = [sum(look(site, of[site]) for site in least) for of in (got, traced)]
assert how != 'together' or apart == [0, 0], apart
if how != 'together': print(f'of {len(least)} instructions {apart[0]} had warps in parts, in the run of the trace {apart[1]}')
