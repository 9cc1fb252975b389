"""margay study cache --json against tool memory, which counts sectors in the kernel, and against sums.
usage: cache.py CACHE MEMORY [TOGETHER]; TOGETHER: memory's where each warp's lanes stay together as long as they can (a software
device). With it both come from a device where lanes may come to an access apart, in each run in another way."""
import collections, json, sys

doc = json.load(open(sys.argv[1]))['cache']
got = collections.Counter()


def counted(file):
    report, sums = json.load(open(file)), collections.Counter()
    names = {k['id']: k['name'] for k in report['kernels']}
    for s in report['tools']['memory']['sites']:
        if s['space'] != 'global' or not s['requests']: continue
        for what in ('sectors', 'requests', 'accesses'): sums[names[s['kernel']], s['ptx_line'], what] += s[what]
    return sums


def bounded(what, is_, least):
    """A part of a warp more is a request more, and of 32 lanes at most as many sectors."""
    for kernel, line, kind in least:
        if kind != 'requests': continue
        at = lambda of, kind: of[kernel, line, kind]
        more = at(is_, 'requests') - at(least, 'requests')
        assert more >= 0, (what, kernel, line, at(is_, 'requests'), at(least, 'requests'))
        assert 0 <= at(is_, 'sectors') - at(least, 'sectors') <= 32 * more, (what, kernel, line, more, at(is_, 'sectors'), at(least, 'sectors'))
    assert {k[:2] for k in is_} == {k[:2] for k in least}, what


want = counted(sys.argv[2])
for s in doc['sites']:
    got[s['kernel'], s['ptx_line'], 'sectors'] += s['sectors']
    got[s['kernel'], s['ptx_line'], 'requests'] += s['requests']
if len(sys.argv) > 3:
    together = counted(sys.argv[3])
    bounded('memory', want, together)
    bounded('trace', got, together)
    assert all(want[k] == together[k] for k in together if k[2] == 'accesses')
else:
    want = collections.Counter({k: v for k, v in want.items() if k[2] != 'accesses'})
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
l2 = doc['l2']
assert l2['hits'][0] <= l2['hits_guess'] <= l2['hits'][1] <= l2['sectors'] and l2['hits'][0] <= l2['sectors'] - l2['first_sectors']
