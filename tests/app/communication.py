"""A plain analysis of `margay trace print --json` (stdin), byte by byte in dictionaries, against margay study communication.
usage: communication.py JSON [ENTITY]      docs/studies/communication.md has the rules"""
import collections, json, sys

doc = json.load(open(sys.argv[1]))['communication']
entity = sys.argv[2] if len(sys.argv) > 2 else 'cta'
steps, accesses = [], collections.defaultdict(list)
for line in sys.stdin:
    r = json.loads(line)
    f = r['fields']
    if r['kind'] == 'trace.step': steps.append(f), f.update(dst=int(f['dst'], 16))
    if r['kind'] == 'trace.access': accesses[f['launch'], f['replay']].append(f)
steps.sort(key=lambda f: f['order'])
old, transfers, used, ambiguous, superstep = {}, collections.defaultdict(lambda: [set(), 0, 0]), collections.Counter(), 0, collections.Counter()
for step in steps:
    n = step['bytes'] or step['width'] * step['height'] * step['depth']
    if step['kind'] != 'launch':  # copies out leave what is there
        if step['kind'] != 'copy' or not step['flags'] & 32:
            for a in range(step['dst'], step['dst'] + n): old.pop(a, None)
        continue
    stream = step['context'], step['stream']
    me = step['name'], superstep[stream]
    superstep[stream] += 1
    now, at, reads = collections.defaultdict(list), collections.Counter(), []
    rows = accesses[step['launch'], step['replay']]
    barriers = collections.defaultdict(collections.Counter)
    for f in rows: barriers[f['cta']][f['warp']] += f['access'] == 'barrier'
    warps = (step['block_x'] * step['block_y'] * step['block_z'] + 31) // 32
    phase = collections.Counter()
    for f in rows:
        w = f['cta'], f['warp']
        if f['access'] == 'barrier':
            phase[w] += 1
            continue
        at[w] += 1
        equal = len(set(barriers[f['cta']].values())) == 1 and len(barriers[f['cta']]) == warps
        p = phase[w] if equal else 0
        lanes = [i for i in range(32) if f['mask'] >> i & 1]
        for lane, a in zip(lanes, f['addresses']):
            unit = {'cta': f['cta'], 'warp': w, 'thread': w + (lane,), 'sm': f['sm'], 'kernel': 0}[entity]
            access = unit, f['cta'], f['warp'], p, at[w], f['access'], a, f['bytes']
            if f['access'] != 'load':
                for b in range(a, a + f['bytes']): now[b].append(access)
            if f['access'] != 'store': reads.append(access)
    for unit, cta, warp, p, order, kind, a, width in reads:
        counted = set()
        for b in range(a, a + width):
            w = now.get(b, [])
            if b in old and kind == 'atomic': used[me + ('atomic',)] += 1
            if w and not (kind == 'atomic' and all(x[5] == 'atomic' for x in w)):
                first = min(x[3] for x in w)
                early = [x for x in w if x[3] == first]
                mine = all(x[2] == warp for x in early)
                if any(x[1] != cta for x in w) or (p == first and not mine):
                    ambiguous += 1
                    continue
                if p > first or (p == first and order > min(x[4] for x in early)): continue
            if b not in old: continue
            o = old[b]
            units = {x[0] for x in o['w']}
            source = o['me'] + (units.pop() if len(units) == 1 else None,)
            t = transfers[source + me + (unit,)]
            t[0].add(b)
            t[1] += 1
            t[2] += source not in counted
            counted.add(source)
            if kind == 'load': used[me + ('load',)] += 1
            for x in o['w'] if not o['used'] else ():
                if x[5] == 'store': used[o['me'] + ('store',)] += 1
                elif not o['counted']: used[o['me'] + ('atomic',)] += 1
            o['used'] = True
    for b, w in now.items(): old[b] = {'w': w, 'me': me, 'used': False, 'counted': b in old}
part = {'cta': lambda e: e['cta'], 'warp': lambda e: (e['cta'], e['warp']), 'sm': lambda e: e['sm'], 'kernel': lambda e: 0,
        'thread': lambda e: (e['cta'], e['thread'] // 32, e['thread'] % 32)}[entity]
end = lambda e: (e['kernel'], e['superstep'], None if e.get('several') else part(e))
got = {end(t['source']) + end(t['target']): (t['bytes'], t['executed'], t['reads']) for t in doc['transfers']}
want = {k: (len(t[0]), t[1], t[2]) for k, t in transfers.items()}
volumes = {(k, int(s), kind): v[kind] for k, x in doc['bytes']['KCV'].items() for s, v in x.items() for kind in v if v[kind]}
ok = got == want and volumes == {k: n for k, n in used.items() if n} and doc['ambiguous']['bytes'] == ambiguous
print(f'{len(want)} transfers, {sum(t[1] for t in transfers.values())} bytes read, {ambiguous} ambiguous: {"equal" if ok else "DIFFERENT"}')
if not ok:
    print([(k, got.get(k), want.get(k)) for k in sorted(set(got) | set(want), key=str) if got.get(k) != want.get(k)][:5],
          [(k, volumes.get(k), used.get(k)) for k in set(volumes) | set(used) if volumes.get(k, 0) != used.get(k, 0)][:5], doc['ambiguous'])
sys.exit(not ok)
