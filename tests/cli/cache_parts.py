"""margay study cache --json: what each access and each buffer has, against caches that are lists, fed with the lanes of the trace.
usage: cache_parts.py CACHE LANES.csv STEPS.jsonl (trace convert --to csv, trace print --kind trace.step --json)"""
import collections, csv, json, sys

doc = json.load(open(sys.argv[1]))['cache']
steps = [json.loads(l)['fields'] for l in open(sys.argv[3])]
allocations = [(int(s['dst'], 16), s['bytes']) for s in steps if s['kind'] == 'alloc']
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
    def access(self, sectors, fetched=frozenset()):
        """Sectors of one line: those that hit, those that were never seen. The fetched ones come, too."""
        line = next(iter(sectors)) // 4
        held = self.lines.pop(line, set())
        hits, new = sectors & held, sectors - self.seen
        self.lines[line], self.seen = held | sectors | fetched, self.seen | sectors
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


def half_of(number):
    for _ in range(2): number = (number ^ number >> 32) * 0xd6e8feb86659fd93 % 2 ** 64
    return (number ^ number >> 32) & 1


def pairs(sectors): return {p for s in sectors for p in (s, s ^ 1)}


class Half:
    """Sets of 16 ways, each a list of lines, newest last; what is known of a line's sectors goes with it."""
    def __init__(self):
        n = max(doc['l2_bytes'] // 2 // 128 // 16, 1)
        self.sets = [collections.OrderedDict() for _ in range(n)]
    def set_of(self, line): return self.sets[line % len(self.sets)]
    def take(self, line):
        lines = self.set_of(line)
        lines[line] = lines.pop(line, {})
        if len(lines) > 16: lines.popitem(last=False)
        return lines[line]


class Sure(Half):
    """sector -> (multiprocessors that read it since it was written, written)"""
    def access(self, a, sectors):
        row = self.take(next(iter(sectors)) // 4)
        there = sectors & set(row)
        if a['kind'] == 'load': known = {s for s in there if a['sm'] in row[s][0]}
        else: known = {s for s in there if row[s][1]}
        for s in sectors:
            readers, written = row.get(s, (set(), False))
            row[s] = (readers | {a['sm']}, written) if a['kind'] == 'load' else (set(), True)
        return known, there


class Guess:
    """Of each half: sector -> the turn from which on it is there"""
    def __init__(self): self.halves, self.numbers = (Half(), Half()), {}
    def access(self, a, sectors, turn, window):
        line = next(iter(sectors)) // 4
        at = half_of(self.numbers.setdefault(line, len(self.numbers)))
        home, own = self.halves[at], self.halves[half_of(a['sm'] // 2)]
        if a['kind'] == 'load':
            row = own.take(line)
            hits = {s for s in sectors if s in row and row[s] <= turn}
            brought = pairs(sectors - hits)
            if brought and home is not own:
                there = home.take(line)
                for s in brought: there.setdefault(s, turn + window)
            row.update({s: 0 for s in brought})
            return hits
        row, other = home.take(line), self.halves[1 - at].set_of(line).get(line, {})
        hits = sectors & set(row)
        row.update({s: 0 for s in sectors | (pairs(sectors - hits) if a['kind'] == 'atomic' else set())})
        for s in sectors & set(other): del other[s]
        return hits


alone, paired, sure, guess = Lru(doc['l2_bytes'] // 128), Lru(doc['l2_bytes'] // 128), Sure(), Guess()
reached, first, sums, turn = collections.Counter(), collections.Counter(), collections.Counter(), 0
threads_of = {str(s['launch']): s['block_x'] * s['block_y'] * s['block_z'] for s in steps if s['kind'] == 'launch'}
count, ranges = collections.Counter(), []
for _, accesses in launches:
    for a in accesses:
        for owner in {a['site']} | set(a['sectors'].values()): count[owner, a['kind'], 'requests'] += 1
        for s, b in a['sectors'].items(): count[a['site'], a['kind'], 'sectors'] += 1; count[b, a['kind'], 'sectors'] += 1
tallies = [collections.Counter(), collections.Counter()]
for launch, accesses in launches:
    l1(accesses, True, tallies[0])
    misses = l1(accesses, False, tallies[1])
    window = max(1, min(32, 2048 // threads_of[launch])) * ((threads_of[launch] + 31) // 32)
    split = {p for a in accesses if a['kind'] == 'load' for s in a['sectors'] if s ^ 1 not in a['sectors'] for p in (s, s ^ 1)}
    turns = collections.defaultdict(collections.deque)
    for a, m in zip(accesses, misses): turns[a['sm']].append((a, m))
    while any(turns.values()):
        for sm in sorted(turns):
            if not turns[sm]: continue
            a, m = turns[sm].popleft()
            for sectors in m:
                new = alone.access(sectors)[1]
                one = paired.access(sectors, frozenset() if a['kind'] == 'store' else pairs(sectors))[0]
                known, there = sure.access(a, sectors)
                guessed = guess.access(a, sectors, turn, window)
                before = {s for s in sectors - one if s % 2 == 0 and s + 1 in sectors - one and s in split and a['kind'] == 'load'}
                sets = {'least': one & known & guessed, 'guess': guessed, 'most': one | known | guessed | before,
                        'lost_least': sectors - new - one - there, 'lost_most': sectors - new - (one & there)}
                for s in sectors:
                    for owner in (a['site'], a['sectors'][s]):
                        reached[owner] += 1; first[owner] += s in new
                        for what, which in sets.items(): sums[owner, what] += s in which
        turn += 1
    turn += window

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
    row['least'] += s['l2_hits'][0]; row['guess'] += s['l2_hits_guess']; row['most'] += s['l2_hits'][1]
    row['lost_least'] += s['l2_capacity'][0]; row['lost_most'] += s['l2_capacity'][1]
for owner, row in rows.items():
    for kind in ('load', 'store', 'atomic'):
        for what in ('requests', 'sectors'): assert row[kind, what] == count[owner, kind, what], (owner, kind, what, row[kind, what], count[owner, kind, what])
    assert (row['l2_sectors'], row['l2_first']) == (reached[owner], first[owner]), (owner, row, reached[owner], first[owner])
    for what in ('least', 'guess', 'most', 'lost_least', 'lost_most'):
        assert row[what] == sums[owner, what], (owner, what, row[what], sums[owner, what])
    for k, (is_hit, is_new) in SPAN.items():
        for t in tallies: assert row[k, 0] <= t[owner, is_hit, is_new] <= row[k, 1], (owner, k, row, t[owner, is_hit, is_new])
    if isinstance(owner, tuple): assert row['traced'] == tallies[1][owner, True, False], owner
assert {k[0] for k in count} == set(rows)
l2 = doc['l2']
total = lambda what: sum(n for (owner, w), n in sums.items() if w == what and isinstance(owner, tuple))
assert [*l2['hits'], l2['hits_guess']] == [total('least'), total('most'), total('guess')], l2
