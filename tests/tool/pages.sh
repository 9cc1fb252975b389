#!/bin/sh
# Pages and pictures: every tool's tables and charts on one page that fetches nothing, all of it well-formed.
set -e
tools='opcodes lanes memory clock latency functions values hot'
for t in $tools; do set -- "$@" -t "$t"; done
"$MARGAY" run -q --device emu "$@" -o d -- "$EX/reduce-rt" 65536 '<script>&"</script>' > out
"$MARGAY" report d --html page.html --charts pictures > said
[ ! -s said ] || { echo 'files were asked for, but something was printed'; exit 1; }
python3 - $tools <<'P'
import glob, html.parser, os, sys, xml.dom.minidom
for f in glob.glob('pictures/*.svg'):
    xml.dom.minidom.parse(f)
dot = open('pictures/hot-0.dot').read()
assert dot.startswith('digraph "') and dot.count('{') == dot.count('}') and 'penwidth=3' in dot and 'kernel.cu:' in dot, dot
assert [f for f in os.listdir('pictures') if f.endswith('.dot')] == ['hot-0.dot'], os.listdir('pictures')
names = sorted(os.path.basename(f)[:-4] for f in glob.glob('pictures/*.svg'))
want = ['clock-0', 'hot-0', 'lanes-0', 'latency-0', 'memory-patterns', 'opcodes-gtpin', 'opcodes-widths']
assert all(w in names for w in want), names

class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.svgs, self.rows = [], [], [], 0, 0
    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        assert tag not in ('script', 'link', 'img', 'iframe'), tag
        assert not any((v or '').startswith('http') for k, v in attrs if k != 'xmlns'), attrs
        if tag != 'meta': self.open.append(tag)
        if tag == 'section': self.ids.append(a['id'])
        if tag == 'a': self.links.append(a['href'][1:])
        self.svgs += tag == 'svg'
        self.rows += tag == 'tr'
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

p = Page()
p.feed(open('page.html').read())
assert not p.open, p.open
assert p.ids == ['kernels'] + ['tool-' + t for t in sys.argv[1:]] + ['coverage'] and p.links == p.ids, (p.ids, p.links)
assert p.svgs == len(names), (p.svgs, names)
assert p.rows > 50, p.rows
assert '&lt;script&gt;&amp;&quot;&lt;/script&gt;' in open('page.html').read()
P
"$MARGAY" report d --html page2.html
cmp page.html page2.html
"$MARGAY" report d --html one.html --tool lanes
grep -q 'id="tool-lanes"' one.html && ! grep -q 'id="tool-memory"' one.html
rc=0; "$MARGAY" report d --html x.html --json 2> err || rc=$?
[ $rc = 2 ] || { echo "--html with --json gives $rc"; exit 1; }
rc=0; "$MARGAY" report d --html /nowhere/x.html 2> err || rc=$?
[ $rc = 3 ] && grep -q nowhere err || { echo "a page that cannot be written gives $rc"; cat err; exit 1; }
