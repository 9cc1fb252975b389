"""margay study cache --json against tool memory, which counts sectors in the kernel, and against sums.
usage: cache.py CACHE MEMORY"""
import collections, json, sys

doc = json.load(open(sys.argv[1]))['cache']
report = json.load(open(sys.argv[2]))
names = {k['id']: k['name'] for k in report['kernels']}
want, got = collections.Counter(), collections.Counter()
for s in report['tools']['memory']['sites']:
    if s['space'] == 'global' and s['requests']:
        want[names[s['kernel']], s['ptx_line'], 'sectors'] += s['sectors']
        want[names[s['kernel']], s['ptx_line'], 'requests'] += s['requests']
for s in doc['sites']:
    got[s['kernel'], s['ptx_line'], 'sectors'] += s['sectors']
    got[s['kernel'], s['ptx_line'], 'requests'] += s['requests']
assert got == want, [(k, got[k], want[k]) for k in set(got) | set(want) if got[k] != want[k]][:5]
hits = sum(s['l1_hits'] for s in doc['sites'])
k = doc['kernels']
total = lambda f: sum(x[f] for x in k)
assert sum(s['sectors'] for s in doc['sites']) == total('load_sectors') + total('store_sectors') + total('atomic_sectors')
assert doc['l2']['sectors'] == total('load_sectors') - hits + total('store_sectors') + total('atomic_sectors')
assert sum(x['l1_hits'][0] for x in k) <= hits <= sum(x['l1_hits'][1] for x in k)
for x in k + [doc['l2']]:
    rows = [s['hits'] for s in x['sizes']]
    assert all(a <= b for a, b in rows) and rows == sorted(rows), 'larger caches hit more'
    assert rows[-1][1] <= x.get('load_sectors', x.get('sectors'))
assert doc['l2']['hits'][1] <= doc['l2']['sectors'] - doc['l2']['first_sectors']
