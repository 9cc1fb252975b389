"""Checks the stacks of a profile of tests/inject/stacks.c. usage: stacks.py MODE N SOURCE PROGRAM, with out.json (report),
records (trace print --json --by-time), s.db, s.csv, s.json, s.pf (exports) and launches, wait, device (folded --host)."""
import collections, csv, json, os, sqlite3, subprocess, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../cli'))
from export_spans import fields
mode, n, source, program = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
t = json.load(open('out.json'))['tools']['timeline']
records = [json.loads(l) for l in open('records')]
lines = open(source).read().split('\n')
line_of = lambda mark: next(i for i, l in enumerate(lines, 1) if '/* line %s */' % mark in l)
sites = {(s['function'], s['line']): s for s in t['sites']}
folded = {name: dict((l.rsplit(' ', 1)[0], int(l.rsplit(' ', 1)[1])) for l in open(name)) for name in ('launches', 'wait', 'device')}

# every stack that a call names is told before it; its calls are launches or waits
told, taken = set(), 0
for r in records:
    f = r['fields']
    if r['kind'] == 'stack':
        told.add((r['pid'], f['id']))
    elif r['kind'] == 'call' and f['stack']:
        assert (r['pid'], f['stack']) in told and f['name'] in ('cuLaunchKernel', 'cuCtxSynchronize'), r
        taken += 1
    elif r['kind'] == 'call':
        assert f['name'] not in ('cuLaunchKernel', 'cuCtxSynchronize') or mode == 'sampled', r
work_ns = sum(r['fields']['end'] - r['fields']['begin'] for r in records if r['kind'] == 'work' and r['fields']['work'] == 'kernel')
s = t['stacks']
assert taken == s['launches'] + s['waits'] and s['all_launches'] == t['totals']['launches'] and s['all_waits'] == t['totals']['waits'], s
total = lambda key: sum(x[key] for x in t['sites'])
if mode == 'sampled':
    assert 0 < s['launches'] < s['all_launches'], s
else:
    assert s['launches'] == s['all_launches'] and s['waits'] == s['all_waits'], s
    assert total('wait_ns') == t['totals']['wait_ns'] and total('device_ns') == work_ns, (total('wait_ns'), t['totals'], work_ns)
assert total('launches') == s['launches'] and total('waits') == s['waits'] and s['changed_files'] == s['missing_files'] == 0, s
assert sum(folded['launches'].values()) == s['launches'] and sum(folded['wait'].values()) == total('wait_ns') and sum(folded['device'].values()) == total('device_ns')
if mode in ('plain', 'sampled'):
    want = {('first', line_of('first')): n, ('second', line_of('second')): n, ('second', line_of('third')): n}
    got = {k: x['launches'] for k, x in sites.items() if x['launches']}
    assert set(got) == set(want) and (mode == 'sampled' or got == want), (got, want)
if mode == 'plain':
    assert {k[0]: x['waits'] for k, x in sites.items() if x['waits']} == {'finish': 2, 'main': 1}, sites
    ends = {k.split(';main;', 1)[1]: v for k, v in folded['launches'].items()}
    assert ends == {'first;cuLaunchKernel': n, 'second;cuLaunchKernel': 2 * n}, ends
    assert {k.split(';main;', 1)[1] for k in folded['wait']} == {'cuCtxSynchronize', 'first;finish;cuCtxSynchronize', 'second;finish;cuCtxSynchronize'}, folded
    assert {k.split(';main;', 1)[1] for k in folded['device']} == {'first;fill', 'second;fill'}, folded
if mode == 'threads':
    assert {(x['function'], x['launches'], x['waits']) for x in t['sites'] if x['function'] == 'run'} == {('run', 3 * n, 0), ('run', 0, 3 * n)}, t['sites']
    assert all(';main;' not in k and k.endswith(';run;cuLaunchKernel') for k in folded['launches']), folded['launches']

# the exports tell the same stacks
db = sqlite3.connect('s.db')
stacks = collections.defaultdict(list)
for stack, depth, function, file, line, module, address in db.execute('SELECT * FROM frames ORDER BY stack, depth DESC'):
    assert depth < 128
    stacks[stack].append((function, file, line, module, address))
calls = {c: stacks[k] for c, k in db.execute('SELECT correlation, stack FROM spans WHERE stack IS NOT NULL')}
assert len(calls) == taken
name = lambda f: f[0] or ('%s+0x%x' % (os.path.basename(f[3]), f[4]) if f[3] else 'code of no file')
text = {c: ';'.join(map(name, k)) for c, k in calls.items()}
plain = lambda v: v[4:] if v.startswith('...;') else v
rows = {int(r['correlation']): plain(r['stack']) for r in csv.DictReader(open('s.csv', newline='')) if r['stack']}
assert rows == text, 'csv'
c = json.load(open('s.json'))
def up(i):
    return (up(c['stackFrames'][i]['parent']) + ';' if 'parent' in c['stackFrames'][i] else '') + c['stackFrames'][i]['name']
assert {e['args']['correlation']: up(str(e['sf'])) for e in c['traceEvents'] if 'sf' in e} == text, 'chrome'
got = {}
for _, packet in fields(open('s.pf', 'rb').read()):
    for field, event in fields(packet):
        if field != 11:
            continue
        e = collections.defaultdict(list)
        for k, v in fields(event):
            e[k].append(v)
        if 55 in e: # annotation 1 is the correlation
            number = next(dict(fields(a))[3] for a in e[4] if dict(fields(a))[1] == 1)
            got[number] = ';'.join(dict(fields(f))[1].decode() for _, f in fields(e[55][0]))
assert got == text, ('perfetto', list(got.items())[:2], list(text.items())[:2])

# binutils says the same of our program's addresses, its functions and lines
ours = sorted({f for k in stacks.values() for f in k if f[3] == program})
p = subprocess.run(['addr2line', '-f', '-e', program] + ['0x%x' % f[4] for f in ours], capture_output=True, text=True)
if p.returncode == 0 and ours:
    told = p.stdout.split('\n')
    for i, f in enumerate(ours):
        function, place = told[2 * i], told[2 * i + 1].split(' ')[0]
        assert f[0] == function or function == '??', (f, function)
        assert place.startswith('??') or place == '%s:%d' % (f[1], f[2]), (f, place)
