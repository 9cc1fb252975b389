"""What margay study overview says of planted times and of two real programs, computed here on its own."""
import csv, io, json, os, shutil, sqlite3, statistics, subprocess, sys

margay = sys.argv[1]


def run(*args, status=0):
    p = subprocess.run([margay, 'study', 'overview', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.returncode == status, (args, p.returncode, p.stdout, p.stderr)
    return p.stderr if status else p.stdout


def tables(*args):
    d = json.loads(run(*args, '--json'))
    assert d['margay_json'] == 1
    return d['tables']


# ---- planted times: native and instrumented runs of their own, three shapes
def write(name, rows, tool=None, stats=None):
    """rows: (grid, time_ns, ran)"""
    shutil.rmtree(name, ignore_errors=True)
    shutil.copytree('base', name)
    db = sqlite3.connect(name + '/profile.db')
    names = [c[1] for c in db.execute('PRAGMA table_info(launch)')]
    model = db.execute('SELECT * FROM launch WHERE id=0').fetchone()
    for table in 'launch', 'use', 'tool', 'unknown': db.execute(f'DELETE FROM {table}')
    for i, (grid, time, ran, *reason) in enumerate(rows):
        r = dict(zip(names, model), id=i, time_ns=time, grid_x=grid, ran=ran, complete=1, reason=reason[0] if reason else None)
        if ran: r.update(threads=None, warps=None)
        db.execute(f'INSERT INTO launch VALUES ({",".join("?" * len(r))})', list(r.values()))
    if tool: db.execute('INSERT INTO use(id,name,args,path) VALUES (0,?,?,NULL)', tool)
    if stats: db.execute("INSERT INTO tool(tool,key,json) VALUES ('margay','stats',?)", (json.dumps(stats),))
    db.commit()
    db.close()


INSTRUMENTED, NATIVE = 0, 1
native = {4: [100, 110, 120, 130, 140, 150, 900], 8: [1000, 1010, 990, 1005, 995, 1001, 1002]}
blocks = {4: [200, 210, 205, 220, 190, 204, 206], 8: [1100] * 7}
write('p/native', [(g, t, NATIVE, 'no tool') for g in native for t in native[g]])
write('p/blocks', [(g, t, INSTRUMENTED) for g in blocks for t in blocks[g]] + [(16, 77, INSTRUMENTED)], ('blocks', 'warps=on'))
write('p/clock', [(8, 3000, INSTRUMENTED)], ('clock', ''))
c = {r['mode']: r for r in tables('p', '--table', 'overhead')['overhead']}
middle = statistics.median
want = (7 * middle(blocks[4]) + 7 * middle(blocks[8])) / (7 * middle(native[4]) + 7 * middle(native[8]))
b = c['blocks,warps=on']
assert abs(b['ratio'] - want) < 1e-12 and (b['compared'], b['launches'], b['native_ns']) == (14, 15, 7 * (130 + 1001)), b
# seven times: the 95 % interval of a median is from the least to the most
assert abs(b['from'] - (190 + 1100) / (900 + 1010)) < 1e-12 and abs(b['to'] - (220 + 1100) / (100 + 990)) < 1e-12, b
assert abs(c['clock']['ratio'] - 3000 / 1001) < 1e-12 and c['clock']['from'] is None and c['clock']['launches'] == 1

# turns of one profile: the first run of a turn is left out, single launches are not taken
turns = [(4, t, ran, 'repeat, for its time') for n, i in zip((100, 102, 98), (150, 151, 149)) for t, ran in [(9999, NATIVE)] + [(n, NATIVE)] * 3 + [(8888, INSTRUMENTED)] + [(i, INSTRUMENTED)] * 3]
write('turns', turns + [(4, 123456, INSTRUMENTED)], ('blocks', ''))
t = tables('one=turns,p/native', '--table', 'overhead')['overhead']
assert len(t) == 1 and t[0]['ratio'] == 1.5 and t[0]['program'] == 'one', t
# nine times: the interval is from the second to the last but one
assert abs(t[0]['from'] - 149 / 102) < 1e-12 and abs(t[0]['to'] - 151 / 98) < 1e-12, t

# several programs: minimum, means, maximum
write('q/native', [(4, 100, NATIVE, 'no tool')])
write('q/blocks', [(4, 400, INSTRUMENTED)], ('blocks', ''))
s = {r['mode']: r for r in tables('turns', 'q', '--table', 'slowdown')['slowdown']}['blocks']
assert (s['programs'], s['min'], s['mean'], s['max']) == (2, 1.5, 2.75, 4) and abs(s['geometric_mean'] - 6 ** .5) < 1e-12, s

# steps
steps = dict(parse_ns=10, analyse_ns=20, instrument_ns=30, print_ns=5, jit_ns=25, load_ns=10, execute_ns=100)
write('s', [(4, 100, INSTRUMENTED)], ('blocks', ''), steps)
write('s2', [(4, 100, INSTRUMENTED)], ('blocks', ''), dict(steps, execute_ns=0))
r = tables('s', 's2', '--table', 'steps')['steps']
assert r[0] == dict(program='s', parse=5, analyse=10, instrument=15, print=2.5, jit=12.5, load=5, execute=50), r[0]
assert r[2]['program'] == '(mean)' and r[2]['instrument'] == (15 + 30) / 2 and r[2]['execute'] == 25

# ---- real programs, against the report
with open('domains.tsv', 'w') as f: f.write('# ours\nhist*\timage\ndiv*\tnumbers\n')
programs = ['divergent', 'histogram']
t = tables(*[f'run/{p}' for p in programs], '--domains', 'domains.tsv')
reports = {p: json.loads(subprocess.run([margay, 'report', f'run/{p}/counts', '--json'], stdout=subprocess.PIPE).stdout) for p in programs}
for row, metrics, moved, load, calls, classes in zip(t['programs'], t['metrics'], t['bytes'], t['load'], t['calls'], t['classes']):
    d = reports[row['program']]
    ks = d['kernels']
    assert row['domain'] == {'divergent': 'numbers', 'histogram': 'image'}[row['program']] and row['device'] == 'emu'
    assert row['kernels'] == len(ks) and row['blocks'] == sum(len(k['blocks']) for k in ks)
    assert row['launches'] == row['counted'] == d['coverage']['launches']
    for key, field in ('thread_entries', 'thread_entries'), ('warp_entries', 'warp_entries'):
        assert row[key] == sum(b[field] for k in ks for b in k['blocks'])
    assert row['thread_instructions'] == sum(k['thread_instructions'] for k in ks) > 0
    assert row['warp_instructions'] == sum(k['warp_instructions'] for k in ks)
    # the eight: all instructions once; those that their text decides
    ops = [(op, v['thread']) for k in ks for op, v in k['opcodes'].items()]
    of = lambda f: sum(n for op, n in ops if f(op.split('.')))
    assert sum(v for k, v in metrics.items() if k != 'program') == row['thread_instructions']
    assert metrics['memory'] == of(lambda w: w[0] in ('ld', 'st', 'atom', 'red') and w[1] != 'param')
    assert metrics['control'] == of(lambda w: w[0] in ('bra', 'ret', 'exit', 'call', 'trap', 'brx'))
    assert metrics['bit_convert'] == of(lambda w: w[0] == 'cvt') and metrics['inter_thread'] == of(lambda w: w[0] in ('shfl', 'vote', 'match', 'redux'))
    sites = [s for s in d['tools']['memory']['sites'] if s['space'] != 'shared']
    assert moved['read'] == sum(s['bytes_read'] for s in sites) and moved['written'] == sum(s['bytes_written'] for s in sites)
    ctas = {k['kernel']: k for k in d['tools']['ctas']['kernels']}
    assert load['cta_imbalance'] in [k['imbalance'] for k in ctas.values()] and load['sm_imbalance'] is None and load['sms'] is None
    assert abs(calls['kernel'] - d['tools']['timeline']['call_percent']['kernel']) < 1e-9
    assert calls['calls'] == sum(c['count'] for c in d['tools']['timeline']['calls'] if c['layer'] == 'driver')
    assert abs(sum(v for k, v in classes.items() if k != 'program') - 100) < 1e-9
rows = {(r['quantity'], r['domain']): r for r in t['totals']}
both = [r['thread_instructions'] for r in t['programs']], [r['warp_instructions'] for r in t['programs']]
r = rows['instructions', 'all']
assert (r['programs'], r['min'], r['max'], r['mean']) == (2, min(both[1]), max(both[1]), sum(both[1]) / 2) and r['paper_mean'] == 227e9
assert rows['unique kernels', 'image']['programs'] == 1 and rows['unique kernels', 'video'] == dict(rows['unique kernels', 'video'], programs=0, min=None, paper_programs=7)
assert sum(r['paper_programs'] for (q, d), r in rows.items() if q == 'unique kernels' and d != 'all') == 25
assert rows['launches', 'other']['programs'] == 1 and ('launches', 'video') not in rows
assert len(t['overhead']) == 1 and t['overhead'][0]['program'] == 'histogram' and t['overhead'][0]['ratio'] > .5

# ---- forms
text = run('run/divergent', 'run/histogram')
assert '1 of 2 programs is missing, divergent: no profile of it has this' in text and 'SM imbalance' in text, text
assert 'no profile here has it: margay run --stats' in run('p')
r = list(csv.DictReader(io.StringIO(run('run/divergent', '--csv', '--table', 'load'))))
assert r[0]['program'] == 'divergent' and float(r[0]['cta_imbalance']) > 1 and r[0]['sms'] == ''
assert list(csv.DictReader(io.StringIO(run('run/divergent', '--csv'))))[0]['kernels'] == '1'
run('run/divergent', 'run/histogram', '--svg', 'svg')
names = set(os.listdir('svg'))
assert names >= {f'overview-{n}.svg' for n in 'kernels blocks launches entries instructions calls overhead metrics classes widths steps'.split()}, names
for n in names: assert open('svg/' + n).read().startswith('<svg')
for args, message in (((), 'needs'), (('p', '--table', 'x'), 'no table x'), (('p', '--json', '--csv'), 'exclude')): assert message in run(*args, status=2)
os.mkdir('empty')
assert 'neither a profile nor a folder of profiles' in run('empty', status=3)
assert 'absent' in run('absent', status=3) and 'absent.tsv' in run('p', '--domains', 'absent.tsv', status=3)
assert 'empty name' in run('=p', status=3)
print('overview: planted times, two programs, forms')
