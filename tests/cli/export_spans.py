"""Decodes what `margay export` wrote of a time line and compares every span with the records of the trace.
usage: export_spans.py RECORDS FORMAT FILE...   RECORDS: of `margay trace print --json --by-time`"""
import collections, csv, json, os, re, subprocess, sys

Span = collections.namedtuple('Span', 'kind name begin end pid thread device context stream correlation')


BYTES = collections.defaultdict(list)                   # of a span: of each of its like
NAMES = {}                                              # of a process' threads, as the program gave them


def thread_name(s):
    return 'ranges' if s.correlation in STARTED[s.pid] and s.kind == 'mark' else NAMES.get((s.pid, s.thread), 'thread %d' % s.thread)


STARTED = collections.defaultdict(set)                  # ranges that may end on another thread


def expected(path):
    """The spans of the trace."""
    spans = []
    for r in map(json.loads, open(path)):
        f = r['fields']
        if r['kind'] == 'call':
            kind = 'mpi' if f['layer'] == 'mpi' else 'api'
            spans.append(Span(kind, f['name'], f['begin'], f['end'], r['pid'], r['tid'], None, None, None, f['correlation']))
        elif r['kind'] == 'mark':
            if f['kind'] == 'started':
                STARTED[r['pid']].add(f['correlation'])
            spans.append(Span('mark', f['name'], f['begin'], f['end'], r['pid'], r['tid'], None, None, None, f['correlation']))
        elif r['kind'] == 'work':
            name = f['name'] or (f['direction'] if f['work'] == 'copy' else f['work'])
            spans.append(Span(f['work'], name, f['begin'], f['end'], r['pid'], None, f['device'], f['context'], f['stream'], f['correlation'] or None))
            if f['bytes'] is not None:
                BYTES[spans[-1]].append(f['bytes'])
        elif r['kind'] == 'thread':
            NAMES[r['pid'], f['thread']] = f['name']
    return spans


def same(got, want, what):
    got, want = collections.Counter(got), collections.Counter(want)
    assert got == want, (what, 'too many', list((got - want).items())[:3], 'missing', list((want - got).items())[:3])


def at_least_1(s):
    return s._replace(end=max(s.end, s.begin + 1))


def nests(slices, what):
    """Slices of one track, (begin, end): none crosses another. Ends at the begin of the next are apart."""
    open_ends = []
    for b, e in sorted(slices, key=lambda x: (x[0], -x[1])):
        while open_ends and open_ends[-1] <= b:
            open_ends.pop()
        assert not open_ends or open_ends[-1] >= e, (what, b, e, open_ends)
        open_ends.append(e)


def check_arrows(arrows, want):
    """(begin of the call, begin of the work): each piece of work that a call on the time line enqueued has one."""
    calls = {(s.pid, s.correlation): s for s in want if s.kind == 'api'}
    linked = [s for s in want if s.device is not None and (s.pid, s.correlation) in calls]
    assert linked, 'nothing to compare'
    same(arrows, [(calls[s.pid, s.correlation].begin, s.begin) for s in linked], 'arrows')


def check_csv(want, path):
    number = lambda t: int(t) if t else None
    rows = list(csv.DictReader(open(path, newline='')))
    same([Span(r['kind'], r['name'], int(r['start_ns']), int(r['end_ns']), int(r['process']), number(r['thread']), number(r['device']),
               number(r['context']), number(r['stream']), number(r['correlation'])) for r in rows], want, 'csv')
    assert [int(r['start_ns']) for r in rows] == sorted(int(r['start_ns']) for r in rows), 'order'


def check_chrome(want, path):
    t = json.load(open(path))
    base = t['otherData']['base_ns']
    ns = lambda us: round(us * 1000)
    names, threads, tracks, got, ends = {}, {}, collections.defaultdict(list), [], collections.defaultdict(dict)
    slices = {}
    for e in t['traceEvents']:
        if e['ph'] == 'C':
            continue                                    # memory in use: tests/inject/memory_in_use.sh
        place = e['pid'], e['tid']
        if e['ph'] == 'M':
            if e['name'] == 'thread_name':
                threads[place] = e['args']['name']
            elif e['name'] == 'process_name':
                names[e['pid']] = e['args']['name']
            continue
        assert e['pid'] in names and place in threads, e
        begin = base + ns(e['ts'])
        if e['ph'] in 'sf':
            assert e['ph'] not in ends[e['id']], e
            ends[e['id']][e['ph']] = place, begin
            continue
        end = begin + ns(e.get('dur', .001))
        a, work = e['args'], 'device' in e['args']
        assert end > begin, e
        pid = int(names[e['pid']].split('process ')[1])
        got.append(Span(e['cat'], e['name'], begin, end, pid, None, a.get('device'), a.get('context'), a.get('stream'), a.get('correlation')))
        if e['ph'] == 'X':
            tracks[place].append((begin, end))
            slices.setdefault((place, begin), []).append(got[-1])
        assert not work or names[e['pid']].startswith('device %d' % a['device']), e
    same(got, [at_least_1(s)._replace(thread=None) for s in want], 'chrome')
    for place, list_ in tracks.items():
        nests(list_, threads[place])
    arrows = []
    for f in ends.values():
        assert set(f) == {'s', 'f'}, f
        (tail, tail_ns), (head, head_ns) = f['s'], f['f']
        assert any(s.kind == 'api' for s in slices[tail, tail_ns]) and head_ns >= tail_ns, f
        arrows.append((tail, tail_ns, head, head_ns))
    check_arrows([(a[1], a[3]) for a in arrows], want)


def fields(b):
    """A message of protocol buffers: [(field, value)], numbers or bytes; every byte is used."""
    out, i = [], 0

    def varint():
        nonlocal i
        v = shift = 0
        while True:
            c = b[i]
            i += 1
            v |= (c & 127) << shift
            shift += 7
            if c < 128:
                return v
    while i < len(b):
        tag = varint()
        if tag & 7 == 0:
            out.append((tag >> 3, varint()))
        elif tag & 7 == 1:
            out.append((tag >> 3, int.from_bytes(b[i:i + 8], 'little')))
            i += 8
        else:
            assert tag & 7 == 2, tag
            n = varint()
            assert i + n <= len(b), 'a length beyond the end'
            out.append((tag >> 3, b[i:i + n]))
            i += n
    return out


def one(message, field, default=None):
    found = [v for f, v in message if f == field]
    assert len(found) <= 1, (field, found)
    return found[0] if found else default


def text(message, field):
    return (one(message, field) or b'').decode()


def check_perfetto(want, path):
    """Field numbers are those of perfetto/trace/*.proto."""
    tables = {1: {}, 2: {}, 3: {}}                       # categories, names, names of annotations
    tracks, events, flows, clocks = {}, [], collections.defaultdict(list), []
    for f, packet in fields(open(path, 'rb').read()):
        assert f == 1
        packet = fields(packet)
        assert one(packet, 10) == 1, 'every packet names its sequence'
        for table, entry in fields(one(packet, 12, b'')):
            entry = fields(entry)
            assert one(entry, 1) not in tables[table]
            tables[table][one(entry, 1)] = text(entry, 2)
        if one(packet, 6):
            clocks = [tuple(v for _, v in fields(c)) for f, c in fields(one(packet, 6)) if f == 1]
        if one(packet, 60):
            d = fields(one(packet, 60))
            assert (one(d, 1) not in tracks or one(d, 4)) and (one(d, 5) is None or one(d, 5) in tracks), 'parents come first'
            tracks[one(d, 1)] = {'parent': one(d, 5), 'name': text(d, 2), 'process': fields(one(d, 3, b'')), 'thread': fields(one(d, 4, b'')), 'counter': one(d, 8)}
        if one(packet, 11):
            e = fields(one(packet, 11))
            assert one(packet, 58) == 3 and one(e, 11) in tracks, 'clock and track'
            assert one(e, 10) is None or (one(packet, 13) & 2 and one(e, 10) in tables[2]), 'a name before its use'
            events.append((one(packet, 8), len(events), e))
    assert {c[0] for c in clocks} == {1, 3, 6}, clocks
    pids = lambda uuid: one(tracks[uuid]['process'], 1) or pids(tracks[uuid]['parent'])
    got, stacks, counters = [], collections.defaultdict(list), collections.defaultdict(list)
    for ns, _, e in sorted(events, key=lambda x: x[:2]):
        kind, track = one(e, 9), one(e, 11)
        if kind == 4:
            assert tracks[track]['counter'] is not None
            counters[track].append((ns, one(e, 30)))
            continue
        if kind == 2:
            got.append(stacks[track].pop()._replace(end=ns))
            continue
        notes = {}
        for f, a in e:
            if f == 4:
                a = fields(a)
                notes[tables[3][one(a, 1)]] = next(v for n, v in a if n != 1)
        category = tables[1][one(e, 3)]
        device = context = stream = thread = None
        if category in ('kernel', 'copy', 'memset', 'prefetch', 'graph'):
            parent = tracks[tracks[track]['parent']]['name'].split()
            assert parent[0] == 'device', parent
            device = int(parent[1])
        elif tracks[track]['thread']:
            thread = one(tracks[track]['thread'], 2)
        span = Span(category, tables[2][one(e, 10)], ns, ns + 1, pids(track), thread, device, None, None, notes.get('correlation'))
        for f, v in e:
            if f in (47, 48):
                flows[v].append((f, ns))
        if kind == 3:
            got.append(span)
        else:
            assert kind == 1, kind
            stacks[track].append(span)
    assert not any(stacks.values()), 'a slice without an end'
    plain = lambda s: at_least_1(s)._replace(context=None, stream=None, thread=s.thread if s.kind == 'api' else None)
    same([plain(s) for s in got], [plain(s) for s in want], 'perfetto')
    assert all(sorted(f for f, _ in v) == [47, 48] for v in flows.values()), 'a flow without two ends'
    check_arrows([tuple(ns for _, ns in sorted(v)) for v in flows.values()], want)
    counters = {u: v for u, v in counters.items() if tracks[u]['name'] == 'launches in flight'}
    check_in_flight(counters, want, lambda uuid: (pids(uuid), int(tracks[tracks[uuid]['parent']]['name'].split()[1])))


def check_stages(want, path):
    """Device work that has times, as render stages; nothing of it as slices."""
    tables, got, slices, queues = {2: {}, 23: {}, 24: {}}, [], [], {}
    for _, packet in fields(open(path, 'rb').read()):
        packet = fields(packet)
        for table, entry in fields(one(packet, 12, b'')):
            entry = fields(entry)
            if table in tables:
                assert one(entry, 1) not in tables[table], 'a number twice'
                tables[table][one(entry, 1)] = entry
        if one(packet, 11):
            e = fields(one(packet, 11))
            slices += [one(e, 3)] if one(e, 9) == 1 else []
        if one(packet, 53):
            assert one(packet, 58) == 3 and one(packet, 13) & 2, 'clock and names'
            e = fields(one(packet, 53))
            kind, queue, ctx = tables[24][one(e, 14)], tables[24][one(e, 13)], tables[23][one(e, 5)]
            assert one(kind, 4) == one(queue, 4) == 2 and one(ctx, 3) == 4
            args = {text(fields(a), 2): one(fields(a), 4) for f, a in fields(one(e, 21)) if f == 3}
            assert args['device'] == one(e, 11)
            begin = one(packet, 8)
            got.append((one(e, 1), text(kind, 2), text(tables[2][one(e, 20)], 2), begin, begin + one(e, 2), one(ctx, 2), one(e, 11), args['stream'], args['correlation'] or None))
            queues.setdefault(one(e, 13), set()).add((one(ctx, 2), one(e, 11), args['stream'], one(e, 5)))
    assert sorted(g[0] for g in got) == list(range(1, len(got) + 1)) and all(len(q) == 1 for q in queues.values())
    timed = [at_least_1(s) for s in want if s.device is not None]
    same([g[1:] for g in got], [(s.kind, s.name, s.begin, s.end, s.pid, s.device, s.stream, s.correlation) for s in timed], 'stages')
    assert len(slices) == sum(s.device is None for s in want), 'slices'


def check_in_flight(counters, want, place):
    """Launches in flight after each moment: those whose call has begun and that have not ended."""
    calls = {(s.pid, s.correlation): s for s in want if s.kind == 'api'}
    changes = collections.defaultdict(collections.Counter)
    for s in map(at_least_1, want):
        if s.kind == 'kernel' and s.end > s.begin + 1:
            changes[s.pid, s.device][calls[s.pid, s.correlation].begin if (s.pid, s.correlation) in calls else s.begin] += 1
            changes[s.pid, s.device][s.end] -= 1
    assert set(changes) == {place(u) for u, v in counters.items() if v}
    for uuid, samples in counters.items():
        at, value = changes.get(place(uuid), {}), 0
        last = dict(samples)                                # of several at one time the last counts
        assert [t for t, _ in samples] == sorted(t for t, _ in samples) and set(last) == set(at), uuid
        for ns in sorted(at):
            value += at[ns]
            assert last[ns] == value >= 0, (ns, last[ns], value)
        assert value == 0



def check_otf2(want, path):
    """What otf2-print says of the archive: it reads all of it without a word on stderr."""
    def printed(*options):
        p = subprocess.run(['otf2-print', *options, path + '/traces.otf2'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert p.returncode == 0 and not p.stderr and 'ERROR' not in p.stdout, (p.stdout[:500], p.stderr[:500])
        return p.stdout
    groups, locations, regions = {}, {}, {}
    for line in printed('-G').splitlines():
        m = re.match(r'(LOCATION_GROUP|LOCATION|REGION) +(\d+)  Name: "(.*?)" <', line)
        if m and m[1] == 'REGION':
            regions[int(m[2])] = m[3], re.search(r'Role: (\w+)', line)[1]
        elif m and m[1] == 'LOCATION':
            locations[int(m[2])] = re.search(r'Type: (\w+)', line)[1], int(re.search(r'# Events: (\d+)', line)[1]), int(re.search(r'Group: .*<(\d+)>$', line)[1])
        elif m:
            groups[int(m[2])] = m[3], re.search(r'Type: (\w+)', line)[1], re.search(r'Creator: .*?(?:<(\d+)>|UNDEFINED)$', line)[1]
    for name, kind, creator in groups.values():
        assert (kind == 'PROCESS') == (creator is None) and (creator is None or groups[int(creator)][1] == 'PROCESS'), groups
    events = collections.Counter()
    stacks, got, last = collections.defaultdict(list), [], {}
    for m in re.finditer(r'^(ENTER|LEAVE) +(\d+) +(\d+)  Region: ".*" <(\d+)>$(?:\n +ADDITIONAL.*; (\d+)\))?', printed(), re.M):
        where, ns, region = int(m[2]), int(m[3]), int(m[4])
        events[where] += 1
        assert ns >= last.get(where, 0), ('time goes back', m[0])
        last[where] = ns
        if m[1] == 'ENTER':
            stacks[where].append((region, ns, m[5] and int(m[5])))
            continue
        inner, begin, correlation = stacks[where].pop()
        assert inner == region, m[0]
        kind, _, group = locations[where]
        name, role = regions[region]
        assert (kind == 'CPU_THREAD') == (groups[group][1] == 'PROCESS'), where
        kind = {'WRAPPER': 'api', 'FUNCTION': 'kernel', 'CODE': 'mark', 'ARTIFICIAL': 'graph'}.get(role) or ('memset' if name == 'memset' else 'copy')
        device = int(re.match(r'device (\d+)', groups[group][0])[1]) if groups[group][1] == 'ACCELERATOR' else None
        got.append(Span(kind, name, begin, ns, int(groups[group][0].split('process ')[1]), None, device, None, None, correlation))
    assert not any(stacks.values()) and {k: v[1] for k, v in locations.items()} == dict(events)
    same(got, [at_least_1(s)._replace(thread=None, context=None, stream=None) for s in want], 'otf2')


def check_tau(want, path):
    """Calls, child calls and times of each thread and stream, added up anew."""
    got, application = {}, 0
    for name in os.listdir(path):
        lines = open(os.path.join(path, name)).read().splitlines()
        notes = dict(re.findall('<name>(.*?)</name><value>(.*?)</value>', lines[1]))
        n = int(lines[0].split()[0])
        rank = re.match(r'profile\.(\d+)\.0\.(\d+)$', name)
        assert rank and lines[n + 2] == '0 aggregates', name
        place = int(notes['pid']), notes.get('CUDA Device'), notes.get('CUDA Context'), notes.get('CUDA Stream') or notes['Thread']
        for line in lines[2:n + 2]:
            m = re.match(r'"(.*)" (\d+) (\d+) (\S+) (\S+) 0 GROUP="(\w+)"$', line)
            if m[1] == '.TAU application':
                application += 1
                continue
            got[place + (m[1],)] = int(m[2]), int(m[3]), round(float(m[4]) * 1000), round(float(m[5]) * 1000)
        for line in lines[n + 5:]:
            m = re.match(r'"Bytes (\w+)" (\d+) (\S+) (\S+) (\S+) (\S+)$', line)
            got[place + ('Bytes', m[1])] = (int(m[2]),) + tuple(float(v) for v in m.groups()[2:])
    assert application == len(os.listdir(path))
    sums, sizes, places = collections.defaultdict(lambda: [0, 0, 0, 0]), collections.defaultdict(list), collections.defaultdict(list)
    for s in want:
        if s.kind == 'mark' and s.begin == s.end:
            continue
        p = (s.pid,) + ((str(s.device), str(s.context), str(s.stream)) if s.device is not None else (None, None, thread_name(s)))
        places[p].append(s)
        sizes[p + ('Bytes', s.name)] += BYTES.pop(s, [])
    for p, spans in places.items():
        stack = []
        for s in sorted(spans, key=lambda s: (s.begin, -s.end)):
            while stack and stack[-1].end <= s.begin:
                stack.pop()
            row, ns = sums[p + (s.name,)], s.end - s.begin
            row[0] += 1
            row[2] += ns
            if p[1] is None:                              # work of a stream stands side by side
                if stack:
                    sums[p + (stack[-1].name,)][1] += 1
                    sums[p + (stack[-1].name,)][2] -= ns
                row[3] += 0 if any(o.name == s.name for o in stack) else ns
                stack.append(s)
            else:
                row[3] += ns
    expected_ = {k: tuple(v) for k, v in sums.items()}
    for k, v in ((k, v) for k, v in sizes.items() if v):
        expected_[k] = len(v), float(max(v)), float(min(v)), sum(v) / len(v), float(sum(x * x for x in v))
    assert set(got) == set(expected_), set(got) ^ set(expected_)
    for k, v in got.items():
        assert all(abs(a - b) <= 1e-9 * abs(b) for a, b in zip(v, expected_[k])), (k, v, expected_[k])


def check_sqlite(want, path, records):
    """Every span, what only the database has of each record, and the view of launches joined here by hand."""
    import sqlite3
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    rows = db.execute('SELECT * FROM spans ORDER BY id').fetchall()
    work = lambda r, c: r[c] if r['device'] is not None else None
    same([Span(r['kind'], r['name'], r['begin_ns'], r['end_ns'], r['process'], r['thread'], r['device'], work(r, 'context'),
               work(r, 'stream'), r['correlation']) for r in rows], want, 'sqlite')
    assert [r['begin_ns'] for r in rows] == sorted(r['begin_ns'] for r in rows), 'order'
    zero = lambda v: v or None
    raw, calls, kernels = [], {}, []
    for r in map(json.loads, open(records)):
        f = r['fields']
        if r['kind'] == 'call':
            calls[r['pid'], f['correlation']] = r
            raw.append((f['begin'], f['correlation'], f['context'], f['stream'], zero(f['outer']), f['class'], f['result'], f['layer']))
        elif r['kind'] == 'work':
            raw.append((f['begin'], zero(f['correlation']), f['context'], f['stream'], f['launch'], f['replay'], zero(f['mark']), f['source']))
            if f['work'] == 'kernel':
                kernels.append(r)
        elif r['kind'] == 'mark':
            raw.append((f['begin'], f['correlation'], zero(f['outer']), f['layer']))
    columns = {'call': 'context stream outer class result layer', 'work': 'context stream launch replay range source', 'mark': 'outer layer'}
    of = lambda r: columns['call' if r['kind'] in ('api', 'mpi') else 'mark' if r['kind'] == 'mark' else 'work']
    same([(r['begin_ns'], r['correlation']) + tuple(r[c] for c in of(r).split()) for r in rows], raw, 'columns')
    launches = []
    for k in kernels:
        f = k['fields']
        c = calls.get((k['pid'], f['correlation']))
        timed = f['source'] != 'none'
        launches.append((f['launch'], f['replay'], f['name'], k['pid'], f['stream'], f['end'] - f['begin'] if timed else None,
                         f['begin'] if timed else None, c and c['tid'], c and c['fields']['name'], c and c['fields']['begin']))
    same([tuple(r) for r in db.execute('SELECT launch, replay, name, process, stream, time_ns, begin_ns, thread, call, call_begin_ns '
                                       'FROM launches')], launches, 'launches')
    assert launches, 'no kernel'


if __name__ == '__main__':
    want = expected(sys.argv[1])
    assert want, 'no spans'
    {'csv': check_csv, 'chrome': check_chrome, 'perfetto': check_perfetto, 'stages': check_stages, 'otf2': check_otf2, 'tau': check_tau, 'sqlite': check_sqlite}[sys.argv[2]](want, *sys.argv[3:])
