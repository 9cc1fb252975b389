#!/bin/sh
# What a reader of the terminal needs: the finding's mark at its block and its line, one line per block in every table, rows that read
# alike as one, no column without a value, findings alone and as CSV, whose time is shown, and a diff of programs with nothing in common.
set -eu
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cp "$ROOT"/tests/tool/faults/*.cu "$ROOT/tests/tool/faults/common.h" .
for p in matvec transpose species filter; do
    "$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o $p $p.cu
    "$MARGAY" run -q --device cpu -t advise -o $p.d -- ./$p fault > out
    "$MARGAY" report $p.d > $p.txt
    "$MARGAY" report $p.d --json > $p.json
    "$MARGAY" report $p.d --csv --tool advise > $p.csv
    "$MARGAY" report $p.d --csv --table findings | cmp - $p.csv
    "$MARGAY" report $p.d --tool advise > $p.advise
    "$MARGAY" annotate $p.d > $p.notes
    for t in lanes memory; do "$MARGAY" report $p.d --tool $t > $p.$t; done
    "$MARGAY" report $p.d --csv --table bytes > $p.bytes
done
cat > look.py <<'END'
import csv, json, re, sys
p, rule = sys.argv[1], sys.argv[2]
read = lambda what: open(f'{p}.{what}').read()
r, text, source = json.loads(read('json')), read('txt'), open(p + '.cu').read().split('\n')
line = next(i for i, l in enumerate(source, 1) if 'FAULT */' in l)
f = r['findings'][0]
assert r['findings_in'] == "the kernels' work as counted"
assert (f['rule'], f['line']) == (rule, line), f
# of the blocks that hold the line, at least one has the mark, and no other line has it
blocks = re.findall(r'^ +(\d+) +[\d.]+ % .*? % +' + p + r'\.cu:(\d+)(?: \((\d+)-(\d+)\))? +(.*)$', text, re.M)
marked = [b for b in blocks if f'<- :{line} {rule}' in b[4]]
assert marked and all(int(b[2] or b[1]) <= line <= int(b[3] or b[1]) for b in marked), (blocks, line)
# one line per block: tool lanes has the block list's
lanes = dict(re.findall(r'^  ' + p + r'\.cu:(\d+) .* (\d+)(?:  \S+)?$', read('lanes').split('lane use by block')[1], re.M)) and {
    b: l for l, b in re.findall(r'^  ' + p + r'\.cu:(\d+) .*? (\d+)$', read('lanes').split('lane use by block')[1], re.M)}
assert len(lanes) >= 1 and all(lanes.get(b[0], b[1]) == b[1] for b in blocks), (lanes, blocks)
# annotate: the mark stands behind its line, once
notes = read('notes').split('\n')
at = [i for i, l in enumerate(notes) if f'^ {rule}: fixing it could gain' in l]
assert len(at) == 1 and f'| {line:5}  ' in notes[at[0] - 1], (at, notes)
assert notes[1].startswith('share, instr.: of thread instructions, not of time; lanes: ') and all(w in notes[3] for w in ('lanes', 'idle', 'sectors')), notes[:3]
# rows that read alike are one: every row once, and N of all lines add up to the rows of the CSV
table = read('memory').split('\nbytes that instructions ask for')[1].split('\n')
rows = [l for l in table[2:] if l.startswith('  ' + p + '.cu')]
plain = [re.sub(r'  x \d+$', '', l) for l in rows]
assert len(set(plain)) == len(plain), rows
times = sum(int(m.group(1)) if (m := re.search(r'  x (\d+)$', l)) else 1 for l in rows)
assert times == len(list(csv.reader(open(p + '.bytes')))) - 1, (times, rows)
# no column without a value, none that names the only kernel; the buffer is not cut
assert not re.search(r'^  line .*  kernel( |$)', text, re.M), text
memory = text.split('\nmemory instructions by what')
assert ('  conflicts  ' in text) == (rule == 'bank_conflict') and (len(memory) == 1 or p == 'filter' or '..' not in memory[1].split('\n\n')[0]), text
assert '\ntables not shown: ' in text and '\nvalues' not in text and '(no GPU' not in text
assert re.search(r'^of instr  launches ', text, re.M) and '  block   share of the instructions ' in text, text
# whose times: the device is named as what it is
assert re.search(r'^on the CPU as an NVIDIA H200 of 132 SMs: counts are its, times are the host.s; exit status 0$', text, re.M) and 'host time' in text, text
# names without types; the heading of the kernel has all
name = r['kernels'][0]['demangled']
short = re.sub(r'^void ', '', name.split('(')[0])
assert f'{p}.cu:{line}  {short}' in text and f'\n{name}\n' in text, text
# findings alone, in words and as CSV
assert '\nfindings: ' in read('advise') and f'{p}.cu:{line}' in read('advise') and '  block   share' not in read('advise')
rows = list(csv.DictReader(open(p + '.csv', newline='')))
assert [x['rank'] for x in rows] == [str(i) for i in range(1, len(r['findings']) + 1)]
for x, y in zip(rows, r['findings']):
    assert all(x[k] == ('' if y[k] is None else str(y[k])) for k in ('rule', 'function', 'file', 'line', 'ptx_line', 'buffer', 'sure', 'unit', 'text')), (x, y)
    assert float(x['gain_pct']) == y['gain_pct'] and float(x['measure']) == y['measure'], (x, y)
if p in ('transpose', 'filter'):  # where the array stands; of an extern one the launch gives the size
    at, = [i for i, l in enumerate(source, 1) if '__shared__' in l]
    assert re.search(r' (\w+) \(' + p + f'.cu:{at}\\) by ', f['text']), (f['text'], at)
    assert ('The launch gives its size' in f['text']) == ('extern' in source[at - 1]), f
if p == 'matvec': assert 'are more than 16 elements of 8 bytes apart' in f['text'], f
# 2,048 threads of a multiprocessor are 64 warps, whole CTAs of them
warps = -(-int(re.search(r'CTAs of (\d+)x', text).group(1)) * int(re.search(r'CTAs of \d+x(\d+)x', text).group(1)) // 32)
assert f', {64 // warps * warps} of 64 warps fit a multiprocessor' in text, (warps, text)
if rule == 'divergence':  # each warp of each CTA comes to the branch once
    l, = r['launches'] if isinstance(r['launches'], list) else [None]
    m = re.search(r'\(in ([\d,]+) of ([\d,]+) warp executions\)', f['text'])
    k, = r['tools']['lanes']['kernels']
    b = next(x for x in k['branches'] if x['line'] == line)
    block = next(x for x in k['blocks'] if x['id'] == b['block'])
    assert [int(x.replace(',', '')) for x in m.groups()] == [b['divergent'], sum(block['lanes'])], (m.groups(), b)
END
python3 look.py matvec uncoalesced
python3 look.py transpose bank_conflict
python3 look.py species divergence
python3 look.py filter bank_conflict
rc=0; "$MARGAY" report matvec.d --tool nothing > out 2>&1 || rc=$?
[ $rc = 3 ] || { echo "an unknown tool: $rc"; exit 1; }
"$MARGAY" run -q --device cpu -t hot -o plain.d -- ./matvec fault > out
"$MARGAY" report plain.d --tool advise | grep -q '^findings: none, but not all tools ran' || { "$MARGAY" report plain.d --tool advise; exit 1; }
"$MARGAY" diff species.d transpose.d > apart.txt || true
grep -q '^no kernel is in both profiles' apart.txt && ! grep -q 'by line$' apart.txt || { cat apart.txt; exit 1; }
"$MARGAY" diff species.d transpose.d --json | grep -q '"common_kernels": false' && "$MARGAY" diff species.d species.d --json | grep -q '"common_kernels": true'
! "$MARGAY" diff species.d species.d | grep 'no kernel is in both' || exit 1
