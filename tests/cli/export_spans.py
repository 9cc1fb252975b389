"""Decodes what `margay export` wrote of a time line and compares every span with the records of the trace.
usage: export_spans.py RECORDS FORMAT FILE...   RECORDS: of `margay trace print --json --by-time`"""
import collections, csv, json, sys

Span = collections.namedtuple('Span', 'kind name begin end pid thread device context stream correlation')


def expected(path):
    """The spans of the trace, and the thread of each call."""
    spans = []
    for r in map(json.loads, open(path)):
        f = r['fields']
        if r['kind'] == 'call':
            kind = 'mpi' if f['layer'] == 'mpi' else 'api'
            spans.append(Span(kind, f['name'], f['begin'], f['end'], r['pid'], r['tid'], None, None, None, f['correlation']))
        elif r['kind'] == 'mark':
            spans.append(Span('mark', f['name'], f['begin'], f['end'], r['pid'], r['tid'], None, None, None, f['correlation']))
        elif r['kind'] == 'work':
            name = f['name'] or (f['direction'] if f['work'] == 'copy' else f['work'])
            spans.append(Span(f['work'], name, f['begin'], f['end'], r['pid'], None, f['device'], f['context'], f['stream'], f['correlation'] or None))
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


if __name__ == '__main__':
    want = expected(sys.argv[1])
    assert want, 'no spans'
    {'csv': check_csv, 'chrome': check_chrome}[sys.argv[2]](want, *sys.argv[3:])
