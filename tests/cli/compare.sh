#!/bin/sh
# margay diff over modules that differ: verdict, metric and line of a fix and of its regression, the gate of docs/howto-before-and-after.md,
# one-liners, pairs of lines that a comment has moved. Numbers come from the programs' closed forms.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cp "$ROOT/tests/tool/faults/transpose.cu" "$ROOT/tests/tool/faults/species.cu" "$ROOT/tests/tool/faults/filter.cu" \
    "$ROOT/tests/tool/faults/common.h" .
mkdir moved && { printf '// moved\n// by\n// three lines\n'; sed 's,/\* FAULT,/* mended: FAULT,' transpose.cu; } > moved/transpose.cu && cp common.h moved
compile() { "$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o "$1" "$2"; }
compile transpose transpose.cu & compile species species.cu & wait
compile other moved/transpose.cu & compile filter filter.cu & wait
run() { "$MARGAY" run -q --device emu -t blocks -t memory -t lanes -t ctas -o "$@" > out; }
run before -- ./transpose fault
run after -- ./other sound
run mixed -- ./species fault
run sorted -- ./species sound
run few -- ./filter fault
run padded -- ./filter sound

"$MARGAY" diff before after > text
head -1 text | grep -q '^verdict: better: the kernels. work as counted -' || { head -3 text; exit 1; }
grep -q '^changed most: memory.bank_conflicts -100.0 %' text
[ "$(grep -c '^the programs were given other arguments: before "fault", after "sound"$' text)" = 1 ] || { cat text; exit 1; }
"$MARGAY" diff before after --json > fix.json
"$MARGAY" diff after before --json > worse.json
"$MARGAY" diff before before --json > same.json
"$MARGAY" diff mixed sorted --json > lanes.json
"$MARGAY" diff few padded --json > small.json
"$MARGAY" diff few padded --html small.html > small
"$MARGAY" diff --fail-on work+0% padded few > out # what turns with the model is no finding
"$MARGAY" diff --fail-on work+0% few padded > out
rc=0; "$MARGAY" diff --fail-on work+5% after before > out 2> err || rc=$?
[ $rc = 1 ] && grep -q 'work: it grew by' err || { echo "a gate of work gives $rc"; cat err; exit 1; }
python3 - <<'P'
import json
fix, worse, same, lanes, small = (json.load(open(f + '.json')) for f in ('fix', 'worse', 'same', 'lanes', 'small'))
metric = lambda d, name: next(m for m in d['metrics'] if m['name'] == name)
# 16 x 16 tiles, 8 warps a CTA, 4 reads of a column by each: 31 passes too many
conflicts = 16 * 16 * 8 * 4 * 31
m = metric(fix, 'memory.bank_conflicts')
assert (m['before'], m['after'], m['change_pct'], m['is']) == (conflicts, 0, -100, 'better'), m
assert metric(worse, 'memory.bank_conflicts')['is'] == 'worse' and metric(worse, 'memory.bank_conflicts')['change_pct'] is None
assert metric(fix, 'memory.sectors')['before'] == 2 * 512 * 512 * 4 // 32 and metric(fix, 'memory.sectors')['is'] is None
assert fix['other_arguments'] == ['fault', 'sound'] and worse['other_arguments'] == ['sound', 'fault'] and same['other_arguments'] == [], fix['other_arguments']
assert fix['verdict']['is'] == 'better' and worse['verdict']['is'] == 'worse' and same['verdict']['is'] == 'no difference'
assert fix['verdict']['by'] == 'work' and fix['verdict']['reason'] == worse['verdict']['reason'] == 'memory.bank_conflicts' and same['verdict']['reason'] is None
for d in (fix, worse, lanes):
    low, high = d['verdict']['interval_pct']
    assert low <= d['verdict']['change_pct'] <= high and low * high > 0 and d['verdict']['full_device_pct'] * low > 0, d['verdict']
assert same['verdict']['hinge'] is None and same['verdict']['interval_pct'] == [0, 0] and same['verdict']['full_device_pct'] == 0, same['verdict']
# padding by more instructions: a few CTAs that wait can be slower by it
v = small['verdict']
assert v['is'] == 'unclear' and v['interval_pct'][0] < 0 < v['interval_pct'][1] and v['full_device_pct'] < -50, v
assert {v['reason'], v['against']} == {'memory.bank_conflicts', 'warp_instructions'}, v
text, page = open('small').read().split('\n'), open('small.html').read()
assert text[0].startswith('verdict: unclear: ') and f"{v['full_device_pct']:+.2f} %" in text[1] and v['hinge'] in text[1] and ', the other way ' in text[2], text[:3]
assert '<strong>unclear</strong>' in page and f"{v['full_device_pct']:+.2f} %" in page
# the line of the fault, three lines further down in the other module; turn<32> and turn<33> are one function
line = next(i for i, l in enumerate(open('transpose.cu'), 1) if 'FAULT' in l)
l = next(l for l in fix['lines'] if l['metric'] == 'memory.bank_conflicts')
assert (l['function'], l['file'], l['line_before'], l['line_after'], l['before'], l['after']) == ('turn', 'transpose.cu', line, line + 3, conflicts, 0), l
assert not same['lines'], same['lines']
assert lanes['verdict']['is'] == 'better' and lanes['verdict']['reason'] == 'warp_instructions', lanes['verdict']
assert metric(lanes, 'lanes.idle_slots')['is'] == 'better' and metric(lanes, 'lanes.lane_use')['is'] == 'better'
P

# the page: the same numbers as the JSON, the source of both sides, names that are no markup
"$MARGAY" diff before after --html page.html > beside && cmp text beside
cat > page.py <<'P'
import html.parser, json, re, sys
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.table, self.rows, self.verdict, self.open, self.tags = None, {}, '', [], set()
    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in ('meta', 'link'): self.open.append((tag, dict(attrs)))
        if tag == 'table': self.table = dict(attrs)['id']; self.rows[self.table] = []
        if tag == 'tr': self.rows[self.table].append([dict(attrs).get('class', '')])
        if tag in ('td', 'th'): self.rows[self.table][-1].append('')
    def handle_endtag(self, tag): assert self.open.pop()[0] == tag, tag
    def handle_data(self, text):
        if any(t in ('td', 'th') for t, _ in self.open): self.rows[self.table][-1][-1] += text
        if any(a.get('id') == 'verdict' for _, a in self.open): self.verdict += text
p = Page(); p.feed(open(sys.argv[1]).read())
d = json.load(open(sys.argv[2]))
assert not p.open and not p.tags & {'script', 'img', 'iframe', 'object'}, (p.open, p.tags)
assert p.verdict.startswith(d['verdict']['is'] + ': ') and d['verdict']['reason'] in p.verdict, p.verdict
text = lambda v: '–' if v is None else f'{v:,}' if isinstance(v, int) else f'{v:,.0f}' if v >= 1000 else f'{v:.4g}'
want = {m['name']: m for m in d['metrics'] if (m['before'], m['after']) != (None, None)}
rows = p.rows['metrics'][1:] + p.rows['others'][1:]
assert {r[1] for r in rows} == set(want), rows
for r in rows: assert r[2:4] == [text(want[r[1]]['before']), text(want[r[1]]['after'])] and r[0] == (want[r[1]]['is'] or ''), (r, want[r[1]])
line = next(r for r in p.rows['lines'] if 'memory.bank_conflicts' in r)
l = next(l for l in d['lines'] if l['metric'] == 'memory.bank_conflicts')
assert line[2:4] == [text(l['before']), text(l['after'])] and line[-1] == 'turn' and line[0] == 'better', line
source = [open(f).read().split('\n')[n - 1].strip() for f, n in (('transpose.cu', l['line_before']), ('moved/transpose.cu', l['line_after']))]
assert line[1] == f"transpose.cu:{l['line_before']} → {l['line_after']}before{source[0]}after{source[1]}", (line[1], source)
# what a line says stands there once where it is the same before and after
files = [[''] + [x.strip() for x in open(f).read().split('\n')] for f in ('transpose.cu', 'moved/transpose.cu')]
kinds = set()
for r in p.rows['lines'][1:]:
    place, before, after = re.match(r'transpose.cu:(\d+)(?: → (\d+))?(?=\D|$)', r[1]).group(0, 1, 2)
    says = [files[0][int(before)], files[1][int(after or before)]]
    assert r[1][len(place):] == (says[0] if says[0] == says[1] else f'before{says[0]}after{says[1]}'), r[1]
    kinds.add(says[0] == says[1])
assert kinds == {True, False}, kinds
assert {r[1] for r in p.rows['kernels'][1:]} == {k['demangled'] for k in d['kernels']} and any('<32>' in r[1] for r in p.rows['kernels'])
P
python3 page.py page.html fix.json
# and in the first of its rows alone
"$MARGAY" diff mixed sorted --html lanes.html > out
python3 - <<'P'
import re
rows = re.findall(r'<tr class="\w*"><td class="l">([^<]+)(.*?)</td>', open('lanes.html').read().split('id="lines"')[1])
places = [place for place, _ in rows]
assert len(set(places)) < len(places) and [bool(source) for _, source in rows] == [p not in places[:i] for i, p in enumerate(places)], rows
P
[ "$(grep -o 'on the emulator as an NVIDIA H200' page.html | wc -l)" = 2 ] || { echo 'the page takes the emulator for a GPU'; exit 1; }
# two programs without a kernel in common, one with a name of 600 characters that looks like markup; what only one has says which
cp -r before odd
python3 - <<'P'
import glob, random, sqlite3
name = 'void a<"b", \'c\', 1 < 2>(</code></td><script>alert(1)</script>&amp;' + ''.join(random.choice('xyz<>&') for _ in range(540)) + ')'
open('name', 'w').write(name)
for path in glob.glob('odd/*.db'):
    with sqlite3.connect(path) as db: db.execute('update kernel set name = "odd", demangled = ?', (name,)), db.execute('update block set function = "odd"')
P
"$MARGAY" diff odd mixed --html odd.html > out && "$MARGAY" diff odd mixed --json > odd.json
cat > odd.py <<'P'
import json, sys
sys.argv = ['page.py', 'odd.html', 'odd.json']
exec(open('page.py').read().split("assert p.verdict")[0])
name, text = open('name').read(), open('odd.html').read()
assert name in {r[1] for r in p.rows['kernels']} and 'No kernel is in both' in text, [r[1][:80] for r in p.rows['kernels']]
many = 0
for r in p.rows['metrics'][1:] + p.rows['others'][1:]:
    m = next(m for m in d['metrics'] if m['name'] == r[1])
    if None in (m['before'], m['after']): assert r[4] == ('only before' if m['after'] is None else 'only after'), r
    elif m['before'] and m['after'] / m['before'] >= 10.01:
        many += 1
        assert r[4].replace('\xa0', ' ') == f"{m['after'] / m['before']:,.0f} times as much", r
assert any('only' in r[4] for r in p.rows['metrics']) and not {'nan', 'inf'} & set(text.lower().split()), p.rows['metrics']
print(many)
P
python3 odd.py
rc=0; "$MARGAY" diff before after --html /nowhere/page.html > out 2> err || rc=$?
[ $rc = 3 ] || { echo "a page that cannot be written gives $rc"; exit 1; }

# a part of the launches: counts of two of 40 say what those of all do
cat > steps.cu <<'P'
__global__ void step(int *out, int pitch)
{
    __shared__ int tile[32 * 33];
    for (int k = 0; k < 32; k++) tile[threadIdx.x * pitch + k] = k * pitch;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x * pitch + blockIdx.x % 32];
}
int main(int argc, char **)
{
    int *out;
    cudaMalloc(&out, 320 * 32 * 4);
    for (int i = 0; i < 40; i++) step<<<320, 32>>>(out, argc > 1 ? 32 : 33);
    return cudaDeviceSynchronize() != cudaSuccess;
}
P
compile steps steps.cu
run all_padded -- ./steps
run all_conflicts -- ./steps fault
run two_padded --launches 7-8 -- ./steps
run two_conflicts --launches 7-8 -- ./steps fault
for n in all two; do "$MARGAY" diff ${n}_padded ${n}_conflicts --json > $n.json; done
python3 -c "
import json
every, two = (json.load(open(n + '.json'))['verdict'] for n in ('all', 'two'))
assert every['is'] == two['is'] == 'worse' and every['reason'] == two['reason'] == 'memory.bank_conflicts', (every, two)
assert abs(every['change_pct'] - two['change_pct']) < 1e-6 * every['change_pct'], (every, two)"

gate='memory.bank_conflicts+0%,memory.sectors+5%,instructions+2%'
"$MARGAY" diff --fail-on "$gate" after after > out
"$MARGAY" diff --fail-on "$gate" before after > out
rc=0; "$MARGAY" diff --fail-on "$gate" after before > out 2> err || rc=$?
[ $rc = 1 ] && grep -q 'memory.bank_conflicts: it was 0 and is 253952' err || { echo "the gate gives $rc"; cat err; exit 1; }
rc=0; "$MARGAY" diff --fail-on time+5% before after > out 2> err || rc=$?
[ $rc = 3 ] && grep -q 'time: neither profile has it' err || { echo "a time nobody measured gives $rc"; cat err; exit 1; }
for bad in memory.sectors '' +5% memory.sectors+x 'a+1%,,b+2%'; do
    rc=0; "$MARGAY" diff --fail-on "$bad" before after > out 2> err || rc=$?
    [ $rc = 2 ] || { echo "--fail-on '$bad' gives $rc"; exit 1; }
done

# one-liners; the two newest profiles without names
"$MARGAY" run -q --device emu -e 'ld.shared { @loads = count() }' -o few -- ./transpose sound > out
"$MARGAY" run -q --device emu -e 'ld.shared { @loads = count() }' -e 'st.global { @stores = count() }' -o more -- ./transpose fault > out
"$MARGAY" diff --json > newest.json 2> err
grep -q 'profile more' err && grep -q 'profile few' err
python3 -c "
import json
m = {x['name']: x for x in json.load(open('newest.json'))['metrics']}
assert m['expr.@loads']['before'] == m['expr.@loads']['after'] == 512 * 512, m['expr.@loads']
assert m['expr.@stores']['before'] is None and m['expr.@stores']['after'] == 512 * 512, m['expr.@stores']"
