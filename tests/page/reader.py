"""What readers stumbled over on the page, each with a check. Graphs and rows that the test's programs do not have are put into their pages."""
import json, random
import unpack

rows = 'document.querySelectorAll("#main table tbody tr").length'


def changed(path, to, **parts):
    """The page with parts that functions changed."""
    now = unpack.parts(path)
    for name, change in parts.items():
        change(now[name])
        unpack.replace(path, to, name, now[name])
        path = to


# How often points of an edge lie inside a box; ends that are not at their boxes' lower and upper side; edges that share most of their way.
EDGES = '''(() => {
  const boxes = [...document.querySelectorAll('#blocks svg .node')].map((n) => { const r = n.querySelector('rect'); return {id: n.dataset.block, x: +r.getAttribute('x'), y: +r.getAttribute('y'), w: +r.getAttribute('width'), h: +r.getAttribute('height')}; });
  const edges = [...document.querySelectorAll('#blocks svg .edge')], out = [], ways = [];
  const size = document.querySelector('#blocks svg').viewBox.baseVal;
  for (const e of edges) {
    const [from, to] = (e.dataset.edge || '').split('>').map((id) => boxes.find((b) => b.id === id)), n = e.getTotalLength(), way = [];
    for (let i = 0; i <= n; i += 5) way.push(e.getPointAtLength(i));
    const inside = way.find((p) => boxes.some((b) => p.x > b.x + 1 && p.x < b.x + b.w - 1 && p.y > b.y + 1 && p.y < b.y + b.h - 1));
    if (inside) out.push(['behind a box', e.dataset.edge, inside.x, inside.y]);
    if (way.some((p) => p.x < 0 || p.y < 0 || p.x > size.width || p.y > size.height)) out.push(['outside', e.dataset.edge]);
    const first = way[0], last = e.getPointAtLength(n);
    if (!from || !to || Math.abs(first.y - from.y - from.h) > 1 || Math.abs(last.y - to.y) > 1 || first.x < from.x || first.x > from.x + from.w || last.x < to.x || last.x > to.x + to.w) out.push(['ends', e.dataset.edge]);
    const cells = new Set(way.map((p) => `${Math.round(p.x / 4)} ${Math.round(p.y / 4)}`));
    for (const other of ways) if ([...cells].filter((c) => other.cells.has(c)).length > 0.6 * cells.size) out.push(['along', e.dataset.edge, other.edge]);
    ways.push({edge: e.dataset.edge, cells});
  }
  for (const a of boxes) for (const b of boxes) if (a !== b && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h) out.push(['boxes', a.id, b.id]);
  return out; })()'''


def flow(b, check):
    """Edges can be followed: none behind a box, none along another one. The shapes that a reader misread, and random ones."""
    shapes = [[[1, 2], [2], []], [[1, 7], [2, 4], [3], [3, 4], [5, 7], [6], [6, 7], []],
              [[1, 8], [2, 5], [3], [4, 7], [3], [6], [6, 7], [8], []]]
    for seed in range(7):
        r = random.Random(seed)
        n = 4 + 2 * seed
        shapes.append([sorted({min(i + 1, n - 1), r.randrange(n)} - {i} | ({i} if r.random() < .2 else set())) if i < n - 1 else [] for i in range(n)])
    for at, shape in enumerate(shapes):
        def put(core):
            k = core['report']['kernels'][0]
            k['blocks'] = [dict(k['blocks'][0], id=i, succ=to, thread_entries=32 * (i + 1), warp_entries=i + 1) for i, to in enumerate(shape)]
            core['report']['findings'] = []
        changed('advised.html', 'flow.html', core=put, source=lambda s: s.update(kernels=[]))
        k = unpack.parts('flow.html')['core']['report']['kernels'][0]['id']
        b.open('flow.html', f'#/kernel/{k}')
        edges = b.eval('document.querySelectorAll("#blocks svg .edge").length')
        check(edges == sum(map(len, shape)), at, edges)
        faults = b.eval(EDGES)
        check(not faults, at, shape, faults[:8])
    # a high picture says that it is cut, and shows the rest
    cut = 'document.querySelector(".graphbox").scrollHeight > document.querySelector(".graphbox").clientHeight + 2'
    check(b.eval(cut), 'a high picture is cut')
    b.click('.graphside > button')
    check(not b.eval(cut) and b.eval('document.querySelector(".graphside > button") === null'), 'and shown in whole')
    # links that were visited have their own colour, and do not inherit that of the picture
    check(b.eval('''[...document.querySelectorAll('#blocks .node text')].every((t) => [...document.styleSheets[0].cssRules].some((r) => r.style && r.style.fill && r.selectorText && t.matches(r.selectorText)))'''), 'text of blocks')


def reacts(b, check):
    """What looks as if it did something does."""
    b.open('m120/page.html')
    all_rows = b.eval(rows)
    b.key('/')
    b.type('no such kernel')
    check(b.eval(rows) == 0, 'nothing matches')
    b.key('Escape')
    check(b.eval('document.getElementById("filter").value') == '' and b.eval(rows) == all_rows, 'Escape empties the filter and shows all', b.eval(rows))
    # a row opens its kernel, wherever it is hit
    href = b.eval('document.querySelectorAll("#main tbody tr a.kernel")[2].getAttribute("href")')
    b.click('#main tbody tr:nth-child(3) td:last-child')
    check(b.eval('location.hash') == href, b.eval('location.hash'))
    # of a tool's table, too: to the line
    b.go('#/tool/2')
    href = b.eval('document.querySelector("#main section.tooltable tbody tr a").getAttribute("href")')
    b.click('#main section.tooltable tbody tr td:last-child')
    check(b.eval('location.hash') == href, b.eval('location.hash'))
    # badges count what the kernel's view shows, and lead there; a finding opens its place
    b.open('advised.html')
    badge, href = b.eval('(({textContent, href}) => [textContent, href])(document.querySelector("#main td .badge"))')
    b.click('.card p')
    place = b.eval('location.hash')
    check('/line/' in place or '/block/' in place, place)
    cards = b.eval('document.querySelectorAll(".card").length')
    check(badge == f'{cards} finding{"s" if cards != 1 else ""}' and href and '#/kernel/' in href, badge, cards)
    # the same link again brings its line into sight again
    b.eval('scrollTo(0, 0)')
    b.click('.card p')
    b.settle()
    top = b.eval('document.querySelector("tr.here, .here").getBoundingClientRect().top')
    check(0 < top < 1000, top)
    # a place without a line leads to its block
    def no_line(core):
        for x in core['report']['kernels'][0]['blocks']: x.update(file='/somewhere/kernel.cu', line=None)
    changed('m1/page.html', 'noline.html', core=no_line, source=lambda s: s.update(kernels=[]))
    b.open('noline.html', '#/kernel/0')
    b.click('#blocks tbody tr td.left a')
    check('/block/' in b.eval('location.hash') and b.eval('document.querySelector("#blocks .here") !== null'), b.eval('location.hash'))


def inlined_lines(b, check, line, to, share):
    """A line that only calls what was inlined says what that was, with its share, and leads there."""
    b.open('inlined.html', f'#/kernel/0/line/0/{line}')
    links = b.eval('Array.from(document.querySelectorAll("#source tr.open p .chip")).map((e) => e.innerText)')
    check(any(f'inlined.cu:{to}' in t and f'{share:.1f} %' in t for t in links), links, to, share)
    b.eval(f'Array.from(document.querySelectorAll("#source tr.open p .chip a")).find((e) => e.textContent.endsWith(":{to}")).click()')
    b.settle()
    check(b.eval('location.hash').endswith(f'/{to}') and b.eval('document.querySelector("#source tr.here button.ln").textContent') == str(to), b.eval('location.hash'))


CUT = '''[...document.querySelectorAll('figure.chart svg')].flatMap((svg) => [...svg.querySelectorAll('text')].filter((t) => { const r = t.getBBox(), v = svg.viewBox.baseVal; return r.x < 0 || r.x + r.width > v.width + 1; }).map((t) => t.textContent))'''


def charts(b, check, report):
    """Pictures show all their text; that of access patterns has a row a place, says what it leaves out, and has what is good in green."""
    places = {}
    for s in report['tools']['memory']['sites']:
        if s['requests']: places.setdefault((s['kernel'], s['file'], s['line'], s['op']), []).append(s['requests'])
    b.open('m120/page.html', '#/tool/2')
    texts = b.eval('[...document.querySelectorAll("figure.chart svg text")].map((t) => t.textContent)')
    check(f'Requests by the pattern of their addresses: the 24 of {len(places)} places with the most' in texts, len(places), texts[:3])
    most = sorted(map(sum, places.values()), reverse=True)[:24]
    check([int(t.split()[0].replace(',', '')) for t in texts if t.endswith(' requests')] == most, texts, most)
    colors = b.eval('[...document.querySelectorAll("figure.chart svg rect")].slice(0, 7).map((r) => r.getAttribute("fill"))')
    red = lambda c: int(c[1:3], 16) > int(c[3:5], 16) * 1.4
    check([red(c) for c in colors] == [False] * 3 + [False] + [True] * 3, colors)
    for page, hash in (('m120/page.html', '#/tool/2'), ('m120/page.html', '#/tool/1'), ('advised.html', '#/kernel/0'), ('inlined.html', '#/kernel/0'), ('m1/page.html', '#/kernel/0')):
        b.open(page, hash)
        check(not b.eval(CUT), page, hash, b.eval(CUT))
