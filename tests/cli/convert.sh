#!/usr/bin/env bash
# margay trace convert: each format is read by a reader of its own here and holds the accesses that `trace print` has; the
# formats of the thesis and of cuda-memtrace are read back; what is damaged is refused by byte.
set -euo pipefail
fail() { echo "FAIL $*"; exit 1; }
export XDG_CACHE_HOME=$PWD/cache
for program in saxpy histogram; do
    args=3000
    [ $program = histogram ] && args=
    "$MARGAY" run -q --device emu -t trace -o $program -- "$EX/$program" $args > /dev/null
    for format in csv thesis cudamemtrace accelsim-memory; do
        "$MARGAY" trace convert $program --to $format -o $program.$format 2> said || { cat said; fail $program $format; }
    done
    "$MARGAY" trace print $program --json > $program.json
    for format in thesis cudamemtrace; do
        file=$(echo $program.$format/*.trace)
        "$MARGAY" trace convert "$file" --from $format --to csv -o $program.$format.csv 2> said || { cat said; fail $format back; }
        size=$(stat -c %s "$file")
        rc=0
        head -c $((size - 7)) "$file" > torn
        "$MARGAY" trace convert torn --from $format --to csv -o torn.csv 2> said || rc=$?
        [ $rc = 3 ] && grep -q 'byte [0-9]*: ' said || { cat said; fail torn $format; }
        [ "$(wc -l < torn.csv)" -ge $(($(wc -l < $program.$format.csv) - 40)) ] || fail what stands in front of damage
    done
    python3 - $program <<'P'
import csv, glob, json, re, struct, sys
name = sys.argv[1]
rows = [json.loads(l) for l in open(name + '.json')]
launches = sorted((r['fields'] for r in rows if r['kind'] == 'trace.step' and r['fields']['kind'] == 'launch'), key=lambda s: s['order'])
grid = {l['launch']: (l['grid_x'], l['grid_y'], l['grid_z']) for l in launches}
accesses = [r['fields'] for r in rows if r['kind'] == 'trace.access' and r['fields']['bytes']]
assert len(accesses) > 100
def cta(a): x, y, z = grid[a['launch']]; return (a['cta'] % x, a['cta'] // x % y, a['cta'] // x // y)
def lanes(a): return [i for i in range(32) if a['mask'] >> i & 1]
flat = [(a, i, p) for a in accesses for i, p in zip(lanes(a), a['addresses'])]
# CSV: every lane
have = sorted((int(r['launch']), int(r['cta_x']), int(r['warp']), int(r['lane']), int(r['number']), r['access'], r['op'], int(r['bytes']), int(r['address'], 16))
              for r in csv.DictReader(open(name + '.csv')))
assert have == sorted((a['launch'], cta(a)[0], a['warp'], i, a['number'], a['access'], a['op'], a['bytes'], p) for a, i, p in flat)
# thesis: 24 bytes a lane, bit by bit
ops = ['add', 'sub', 'exch', 'min', 'max', 'inc', 'dec', 'cas', 'and', 'or', 'xor']
def kind(a): return {'load': 1, 'store': 2}.get(a['access']) or 3 + ops.index([w for w in a['op'].split('.') if w in ops][0])
def word(a, p, k): x, y, z = cta(a); return struct.pack('<QQQ', a['sm'] << 32 | k << 28 | a['bytes'], p, x << 32 | y << 16 | z)
f, = glob.glob(name + '.thesis/*')
data = open(f, 'rb').read()
assert data[:2] == b'\x18\n'
at, n, got = 2, 0, {}
while at < len(data):
    end = data.index(b'\n', at)
    assert data[at:end].decode() == launches[n]['name']
    at = end + 1
    while (r := data[at:at + 24]) != bytes(24): got.setdefault(launches[n]['launch'], []).append(r); at += 24
    at, n = at + 24, n + 1
assert n == len(launches)
for l in launches: assert sorted(got.get(l['launch'], [])) == sorted(word(a, p, kind(a)) for a, i, p in flat if a['launch'] == l['launch'])
# cuda-memtrace, version 3: runs of 27 bytes
f, = glob.glob(name + '.cudamemtrace/*')
data = open(f, 'rb').read()
assert data[:10] == b'\x1aCUDATRACE'
at, n, got, entries = 10, -1, {}, 0
while at < len(data):
    what = data[at]
    if what == 0:
        size, = struct.unpack_from('<H', data, at + 1)
        n += 1
        assert data[at + 3:at + 3 + size].decode() == launches[n]['name']
        at += 3 + size
        continue
    a, b, c = struct.unpack_from('<QQQ', data, at + 1)
    count = struct.unpack_from('<H', data, at + 25)[0] if what == 0xfe else 1
    assert what in (0xfe, 0xff) and count >= 1 and (what == 0xff) == (count == 1)
    got.setdefault(launches[n]['launch'], []).extend(struct.pack('<QQQ', a, b + i * (a & 0xfffffff), c) for i in range(count))
    at += 27 if what == 0xfe else 25
    entries += 1
assert at == len(data) and entries < len(flat)
for l in launches: assert sorted(got.get(l['launch'], [])) == sorted(word(a, p, min(kind(a) - 1, 2)) for a, i, p in flat if a['launch'] == l['launch'])
# read back by margay: the same lanes
for format in ('thesis', 'cudamemtrace'):
    back = sorted((int(r['launch']), int(r['sm']), int(r['bytes']), int(r['address'], 16), int(r['cta_x'])) for r in csv.DictReader(open(f'{name}.{format}.csv')))
    order = {l['launch']: k for k, l in enumerate(launches)}
    assert back == sorted((order[a['launch']], a['sm'], a['bytes'], p, cta(a)[0]) for a, i, p in flat)
# Accel-Sim: its parser's rules: header to a line with '#', CTAs in order, all warps, an instruction count, modes 0 and 1
listed = open(name + '.accelsim-memory/kernelslist.g').read().split('\n')
copies = [r['fields'] for r in rows if r['kind'] == 'trace.step' and r['fields']['kind'] == 'copy' and r['fields']['flags'] & 16]
assert sorted(l for l in listed if l.startswith('Memcpy')) == sorted('MemcpyHtoD,0x%016x,%d' % (int(c['dst'], 16), c['bytes']) for c in copies)
kernels = [l for l in listed if l.startswith('kernel')]
assert kernels == ['kernel-%d.traceg' % (k + 1) for k in range(len(launches))]
for k, l in zip(kernels, launches):
    text = open(f'{name}.accelsim-memory/{k}').read()
    head, body = text[:text.index('#')], text[text.index('#') + 1:]
    assert '-kernel name = ' + l['name'] in head and '-grid dim = (%d,%d,%d)' % grid[l['launch']] in head and '-accelsim tracer version = 4' in head
    got, seen, exits = [], [], 0
    for line in body.split('\n')[1:]:
        w = line.split()
        if not w or w[0] in ('#BEGIN_TB', '#END_TB'): continue
        if w[0] == 'thread': at = tuple(map(int, w[3].split(','))); seen.append(at); continue
        if w[0] == 'warp': warp = int(w[2]); continue
        if w[0] == 'insts': left = int(w[2]); continue
        left -= 1
        mask, dst = int(w[1], 16), int(w[2])
        op, rest = w[3 + dst], w[4 + dst:]
        assert rest[0] == '0' and left >= 0
        if op == 'EXIT': exits += 1; assert left == 0 and rest[1] == '0'; continue
        on = [i for i in range(32) if mask >> i & 1]
        width = next((int(t.strip('U')) // 8 for t in op.split('.') if t.strip('U').isdigit()), 4)
        if rest[2] == '1': addresses = [int(rest[3], 16) + i * int(rest[4]) for i in range(len(on))]; assert on == list(range(on[0], on[0] + len(on)))
        else: addresses = [int(t, 16) for t in rest[3:]]
        got.append((at, warp, op.split('.')[0], mask, width, tuple(addresses)))
    name_of = lambda a: {'load': 'LDG', 'store': 'STG'}.get(a['access']) or ('RED' if a['op'].startswith('red') else 'ATOMG')
    assert sorted(got) == sorted((cta(a), a['warp'], name_of(a), a['mask'], a['bytes'], tuple(a['addresses'])) for a in accesses if a['launch'] == l['launch'])
    ctas = grid[l['launch']][0] * grid[l['launch']][1] * grid[l['launch']][2]
    assert len(seen) == len(set(seen)) == ctas and exits == ctas * ((l['block_x'] * l['block_y'] * l['block_z'] + 31) // 32)
P
done
"$MARGAY" trace convert histogram --to csv --launch 7-9 -o none.csv 2> said
[ "$(wc -l < none.csv)" = 1 ] && grep -q '^margay: 0 launches' said || fail no launch
for bad in '--to ramulator3 -o x' '--to csv' '-o x'; do
    rc=0
    "$MARGAY" trace convert saxpy $bad 2> said || rc=$?
    [ $rc = 2 ] || fail "$bad is taken: $rc"
done
grep -q 'accelsim-memory' said || fail the list of formats
# Misses for simulators of DRAM: an L2 that holds all of it reads each sector that is loaded first once and writes nothing; one
# of a line writes what is stored: saxpy loads x and y and stores y, 3000 floats each.
"$MARGAY" trace convert saxpy --to ramulator2 -o all.ram 2> said || { cat said; fail ramulator2; }
"$MARGAY" trace convert saxpy --to dramsim3 -o all.sim 2> said || { cat said; fail dramsim3; }
"$MARGAY" trace convert saxpy --to dramsim3 --l2 128 -o line.sim 2> said || { cat said; fail a line; }
grep -q 'what it holds' said || fail 'what the model is'
python3 - <<'P'
import json
rows = [json.loads(l)['fields'] for l in open('saxpy.json')]
of = lambda kind: {p // 32 * 32 for a in rows if a.get('access') == kind for p in a['addresses']}
ram = [l.split() for l in open('all.ram')]
assert sorted(int(a, 16) for k, a in ram) == sorted(of('load')) and {k for k, a in ram} == {'LD'}
sim = [l.split() for l in open('all.sim')]
assert [(k, int(a, 16)) for a, k, n in sim] == [('READ', int(a, 16)) for k, a in ram]
assert [int(n) for a, k, n in sim] == list(range(len(sim))) and len(sim) == 2 * 375
line = [l.split() for l in open('line.sim')]
written = [int(a, 16) for a, k, n in line if k == 'WRITE']
assert len(of('store')) == 375 and set(written) <= of('store') and len(set(written)) >= 371, len(set(written)) # the last line stays
P
[ $? = 0 ] || fail misses
rc=0
"$MARGAY" trace convert saxpy --to dramsim3 -o nowhere/x 2> said || rc=$?
[ $rc = 3 ] || fail "dramsim3 into nowhere: $rc"
# A folder with files of an earlier trace would be taken for one with this: refused; an empty one is fine.
for format in thesis accelsim-memory; do
    rc=0
    "$MARGAY" trace convert histogram --to $format -o saxpy.$format 2> said || rc=$?
    [ $rc = 3 ] && grep -q 'holds files already' said || { cat said; fail "$format into a folder in use: $rc"; }
done
mkdir empty
"$MARGAY" trace convert saxpy --to accelsim-memory -o empty 2> said && cmp empty/kernel-1.traceg saxpy.accelsim-memory/kernel-1.traceg || fail an empty folder
# The content twice: no reader of accesses counts it twice.
cp -r saxpy twice
cat saxpy/trace/*.mgt >> "$(echo twice/trace/*.mgt)"
for command in 'trace convert --to csv -o twice.csv' 'study communication' 'study cache' 'trace verify'; do
    rc=0
    # shellcheck disable=SC2086
    "$MARGAY" $command twice > out 2> said || rc=$?
    [ $rc = 3 ] || { cat said; fail "$command of doubled content: $rc"; }
done
rc=0
"$MARGAY" trace convert saxpy --from thesis --to csv -o x 2> said || rc=$?
[ $rc = 3 ] || fail a folder as a file: $rc
