"""margay study cache --json: what each access and each buffer has, against caches that are lists, fed with the lanes of the trace.
usage: cache_parts.py CACHE LANES.csv STEPS.jsonl (trace convert --to csv, trace print --kind trace.step --json)"""
import collections, csv, json, sys

doc = json.load(open(sys.argv[1]))['cache']
allocations = [(int(s['dst'], 16), s['bytes']) for s in (json.loads(l)['fields'] for l in open(sys.argv[3])) if s['kind'] == 'alloc']
buffer_of = lambda address: next((i for i, (at, n) in enumerate(allocations) if at <= address < at + n), None)

launches, last = [], None
for r in csv.DictReader(open(sys.argv[2])):
    address, key = int(r['address'], 16), (r['launch'], r['replay'], r['request'])
    if not launches or launches[-1][0] != r['launch']: launches.append((r['launch'], []))
    if last is None or last['key'] != key:
        last = {'key': key, 'site': (r['kernel'], r['op'], int(r['line']) or None), 'kind': r['access'], 'sm': int(r['sm']), 'sectors': {}}
        launches[-1][1].append(last)
    for sector in range(address // 32, (address + int(r['bytes']) - 1) // 32 + 1):
        owner = next((b for s, b in last['sectors'].items() if s // 4 == sector // 4), buffer_of(address))
        last['sectors'].setdefault(sector, owner)


class Lru:
    """Lines, newest last, with the sectors that each holds. Sectors go with their line."""
    def __init__(self, lines): self.most, self.lines, self.seen = lines, collections.OrderedDict(), set()
    def access(self, sectors):
        """Sectors of one line: those that hit, those that were never seen."""
        line = next(iter(sectors)) // 4
        held = self.lines.pop(line, set())
        hits, new = sectors & held, sectors - self.seen
        self.lines[line], self.seen = held | sectors, self.seen | sectors
        if len(self.lines) > self.most: self.lines.popitem(last=False)
        return hits, new
    def empty(self): self.lines.clear()


def beyond_cta(access, *marks):
    parts = access['site'][1].split('.')
    return bool(set(marks) & set(parts)) and 'cta' not in parts


def lines_of(access):
    lines = collections.defaultdict(set)
    for s in access['sectors']: lines[s // 4].add(s)
    return [lines[l] for l in sorted(lines)]


def l1(accesses, allocate, tally):
    """What each access misses; hits and first touches of loads into tally."""
    caches, misses = collections.defaultdict(lambda: Lru(doc['l1_bytes'] // 128)), []
    for a in accesses:
        left = []
        for sectors in lines_of(a):
            passes = beyond_cta(a, 'cg', 'cv', 'volatile', 'relaxed', 'acquire', 'mmio')
            looks = (a['kind'] == 'load' and not passes) or (a['kind'] == 'store' and allocate)
            hits, new = caches[a['sm']].access(sectors) if looks else (set(), set())
            if a['kind'] == 'load' and not passes:
                for s in sectors: tally[a['site'], s in hits, s in new] += 1; tally[a['sectors'][s], s in hits, s in new] += 1
                sectors = sectors - hits
            left.append(sectors)
        if beyond_cta(a, 'acquire', 'acq_rel'): caches[a['sm']].empty()
        misses.append([s for s in left if s])
    return misses


whole, reached, first, hit = Lru(doc['l2_bytes'] // 128), collections.Counter(), collections.Counter(), collections.Counter()
count, ranges = collections.Counter(), []
for _, accesses in launches:
    for a in accesses:
        for owner in {a['site']} | set(a['sectors'].values()): count[owner, a['kind'], 'requests'] += 1
        for s, b in a['sectors'].items(): count[a['site'], a['kind'], 'sectors'] += 1; count[b, a['kind'], 'sectors'] += 1
tallies = [collections.Counter(), collections.Counter()]
for _, accesses in launches:
    l1(accesses, True, tallies[0])
    misses = l1(accesses, False, tallies[1])
    turns = collections.defaultdict(collections.deque)
    for a, m in zip(accesses, misses): turns[a['sm']].append((a, m))
    while any(turns.values()):
        for sm in sorted(turns):
            if not turns[sm]: continue
            a, m = turns[sm].popleft()
            for sectors in m:
                hits, new = whole.access(sectors)
                for s in sectors:
                    for owner in (a['site'], a['sectors'][s]): reached[owner] += 1; first[owner] += s in new; hit[owner] += s in hits

SPAN = {'l1_hit_range': (True, False), 'l1_first': (False, True), 'l1_capacity': (False, False)}
rows = collections.defaultdict(collections.Counter)
for s in doc['sites']:
    row = rows[s['kernel'], s['op'], s['line']]
    row[s['kind'], 'requests'] += s['requests']; row[s['kind'], 'sectors'] += s['sectors']; row['traced'] += s['l1_hits']
for b in doc['buffers']:
    for kind in ('load', 'store', 'atomic'):
        for what in ('requests', 'sectors'): rows[b['allocation']][kind, what] += b[f'{kind}_{what}']
for s in doc['sites'] + doc['buffers']:
    row = rows[(s['kernel'], s['op'], s['line']) if 'op' in s else s['allocation']]
    for k in SPAN: row[k, 0] += s[k][0]; row[k, 1] += s[k][1]
    for k in ('l2_sectors', 'l2_first'): row[k] += s[k]
    row['l2_hits'] += s['l2_hits'][1]
    assert s['l2_capacity'] == [s['l2_sectors'] - s['l2_first'] - h for h in s['l2_hits'][::-1]], s
for owner, row in rows.items():
    for kind in ('load', 'store', 'atomic'):
        for what in ('requests', 'sectors'): assert row[kind, what] == count[owner, kind, what], (owner, kind, what, row[kind, what], count[owner, kind, what])
    assert (row['l2_sectors'], row['l2_first'], row['l2_hits']) == (reached[owner], first[owner], hit[owner]), (owner, row, reached[owner], first[owner], hit[owner])
    for k, (is_hit, is_new) in SPAN.items():
        for t in tallies: assert row[k, 0] <= t[owner, is_hit, is_new] <= row[k, 1], (owner, k, row, t[owner, is_hit, is_new])
    if isinstance(owner, tuple): assert row['traced'] == tallies[1][owner, True, False], owner
assert {k[0] for k in count} == set(rows)
