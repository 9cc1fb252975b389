"""Tool memory against the lanes of a trace: accesses, requests, sectors, lines and patterns of each instruction.
usage: order.py REPORT.json LANES.csv"""
import collections, csv, json, sys
report = json.load(open(sys.argv[1]))
names = {k['id']: k['name'] for k in report['kernels']}
want, requests, last = collections.defaultdict(collections.Counter), [], None
for r in csv.DictReader(open(sys.argv[2])):
    key = [r[k] for k in ('launch', 'cta_x', 'warp', 'number', 'op', 'line')]
    if key != last or int(r['lane']) <= requests[-1][1][-1][0]: requests.append(((r['kernel'], r['op'], int(r['line'])), []))
    last = key
    requests[-1][1].append((int(r['lane']), int(r['address'], 16), int(r['bytes'])))


def pattern(lanes):
    at, n = [a for _, a, _ in lanes], lanes[0][2]
    in_order = all(a - at[0] == n * (l - lanes[0][0]) for l, a, _ in lanes)
    if len(set(at)) == 1: return 'same'
    if in_order: return 'aligned' if len(at) == 32 and at[0] % 128 == 0 else 'unit'
    steps = {b - a for a, b in zip(at, at[1:])}
    if len(at) < 32 or len(steps) > 1: return 'irregular'
    step = abs(steps.pop())
    return 'stride_32' if step <= 32 else 'stride_128' if step <= 128 else 'stride_more'


for site, lanes in requests:
    touched = lambda unit: len({u for _, a, n in lanes for u in range(a // unit, (a + n - 1) // unit + 1)})
    want[site].update({'accesses': len(lanes), 'requests': 1, 'sectors': touched(32), 'lines': touched(128), pattern(lanes): 1})
got = collections.defaultdict(collections.Counter)
for s in report['tools']['memory']['sites']:
    if s['space'] not in ('global', 'generic'): continue
    c = {k: s[k] for k in ('accesses', 'requests', 'sectors', 'lines')} | s['patterns']
    got[names[s['kernel']], s['op'], s['line']].update({k: v for k, v in c.items() if v})
assert {'u8', 'u16', 'u32', 'f64'} <= {op.split('.')[-1] for _, op, _ in want}, list(want)
for site in set(want) | set(got): assert got[site] == want[site], (site, got[site], want[site])
