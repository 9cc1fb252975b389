#!/bin/sh
# Pages and pictures: one page that fetches nothing and holds what the JSON report holds and the tables of every tool;
# pictures that are well-formed. How the page behaves in a browser: tests/page.
set -e
tools='opcodes lanes memory clock latency functions values hot'
for t in $tools; do set -- "$@" -t "$t"; done
"$MARGAY" run -q --device emu "$@" -o d -- "$EX/reduce-rt" 65536 '<script>&"</script>' > out
"$MARGAY" report d --html page.html --charts pictures > said
[ ! -s said ] || { echo 'files were asked for, but something was printed'; exit 1; }
"$MARGAY" report d --json > report.json
for t in $tools; do "$MARGAY" report d --csv --tool "$t" > "$t.csv"; done
PYTHONPATH=$ROOT/tests/page python3 - $tools <<'P'
import csv, glob, html.parser, json, os, re, sys, xml.dom.minidom
import unpack
tools = sys.argv[1:]
for f in glob.glob('pictures/*.svg'):
    xml.dom.minidom.parse(f)
dot = open('pictures/hot-0.dot').read()
assert dot.startswith('digraph "') and dot.count('{') == dot.count('}') and 'penwidth=3' in dot and 'kernel.cu:' in dot, dot
assert [f for f in os.listdir('pictures') if f.endswith('.dot')] == ['hot-0.dot'], os.listdir('pictures')
names = sorted(os.path.basename(f)[:-4] for f in glob.glob('pictures/*.svg'))
want = ['hot-0', 'lanes-0', 'latency-0', 'memory-patterns', 'opcodes-gtpin', 'opcodes-widths']
assert all(w in names for w in want), names

class Page(html.parser.HTMLParser): # every element is closed, nothing comes from elsewhere
    open, seen = [], []
    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        self.seen.append(tag)
        assert tag not in ('img', 'iframe', 'object', 'form') and 'src' not in a, (tag, attrs)
        assert tag != 'link' or a['href'] == 'data:,', attrs
        assert not any('http:' in (v or '') or 'https:' in (v or '') for k, v in attrs), attrs
        if tag not in ('meta', 'link'): self.open.append(tag)
    def handle_startendtag(self, tag, attrs): pass
    def handle_endtag(self, tag): assert self.open.pop() == tag, tag
text = open('page.html').read()
p = Page()
p.feed(text)
assert not p.open, p.open
assert "default-src 'none'" in text and '<noscript>' in text
assert '&lt;script&gt;&amp;&quot;&lt;/script&gt;' in text and '<script>&"' not in text

parts = unpack.parts('page.html')
assert len(parts) == 4 + len(tools) and p.seen.count('script') == len(parts) + 1, sorted(parts)
page, report = parts['core'], json.load(open('report.json'), parse_int=lambda t: int(t) if int(t) <= 2 ** 53 else t) # wide numbers are text
for key in report:
    if key not in ('launches', 'tools'): assert page['report'][key] == report[key], key
assert [t['name'] for t in page['page']['tools']] == tools, page['page']['tools']
groups = parts['launches']['groups']
assert sum(g['launches'] for g in groups) == len(report['launches']) and sum(g['time_ns'] for g in groups) == sum(l['time_ns'] for l in report['launches']), groups
pictures = []
for t in page['page']['tools']:
    made = parts[f"tool-{t['id']}"]
    first = made['tables'][0]
    rows = list(csv.reader(open(t['name'] + '.csv')))[1:]
    assert made['tool'] == t['name'] and len(first['rows']) == len(rows) > 0, (t, len(first['rows']), len(rows))
    # the same numbers as CSV, rows of one line beside each other, and each row leads to the kernel
    for row in first['rows']:
        counts = [v for v, (_, kind, *_) in zip(row, first['columns']) if kind in ('count', 'bytes', 'cycles', 'ns') and v is not None]
        names_of = {x for x in row if isinstance(x, str)}
        same = [l for l in rows if names_of <= set(l) and all(v in [int(x) for x in l if re.fullmatch(r'\d+', x)] for v in counts)]
        assert same, (row, rows)
        rows.remove(same[0])
    assert not rows, rows
    kernel = [c[1] for c in first['columns']].index('kernel')
    assert all(row[kernel] == 0 for row in first['rows']), first['rows'][0]
    pictures += [c['name'] for table in made['tables'] for c in table['charts']]
assert sorted(pictures) == names, (pictures, names)

# lines: the instructions of every block, counted by line, are those of the block
blocks, rows = report['kernels'][0]['blocks'], parts['source']['kernels'][0]['rows']
by_block = {}
for i in range(0, len(rows), 6): by_block[rows[i]] = by_block.get(rows[i], 0) + rows[i + 4]
assert by_block == {b['id']: b['instructions'] for b in blocks}, by_block
starts = {}
for i in range(0, len(rows), 6): starts.setdefault(rows[i], rows[i + 3])
assert starts == {b['id']: b['ptx_line'] for b in blocks}
files = {f['path']: f for f in parts['source']['files']}
source = next(p for p in files if p.endswith('reduce/kernel.cu'))
assert files[source]['parts'] == [[1, open(source).read().removesuffix('\n')]], files[source]['parts']
assert all(t.strip() for _, t in parts['ptx']['modules'][0]['parts']) and 'bar.sync' in parts['ptx']['modules'][0]['parts'][0][1]
P
"$MARGAY" report d --html page2.html
cmp page.html page2.html
"$MARGAY" report d --html one.html --tool lanes
PYTHONPATH=$ROOT/tests/page python3 -c "
import unpack
p = unpack.parts('one.html')
assert [t['name'] for t in p['core']['page']['tools']] == ['lanes'] and [n for n in p if n.startswith('tool')] == ['tool-1'], sorted(p)"
rc=0; "$MARGAY" report d --html x.html --json 2> err || rc=$?
[ $rc = 2 ] || { echo "--html with --json gives $rc"; exit 1; }
rc=0; "$MARGAY" report d --html /nowhere/x.html 2> err || rc=$?
[ $rc = 3 ] && grep -q nowhere err || { echo "a page that cannot be written gives $rc"; cat err; exit 1; }
