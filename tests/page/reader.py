"""What readers stumbled over on the page, each with a check. Graphs and rows that the test's programs do not have are put into their pages."""
import json, os, random
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
    for (let i = 0; i <= n; i += 8) way.push(e.getPointAtLength(i));
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
    for seed in range(1, 5):
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
    # rows of a long table of a tool are filtered, too
    b.go('#/tool/2')
    b.eval('[...document.querySelectorAll("#main section.tooltable .more button")].forEach((e) => e.click())')
    all_rows = b.eval(rows)
    b.click('.tooltable input[type=search]')
    b.type('transpose_11( ld.')
    some = b.eval('[...document.querySelectorAll("#main section.tooltable tbody tr")].map((e) => e.innerText)')
    check(0 < len(some) < all_rows and all('transpose_11(' in t and 'ld.' in t for t in some), len(some), all_rows, some[:3])
    b.key('Escape')
    check(b.eval(rows) == all_rows and b.eval('Math.max(...[...document.querySelectorAll("#main td:has(> a.kernel)")].map((e) => e.clientWidth))') <= 320, 'names do not push numbers out of sight')
    b.go('#/')
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
    places = b.eval('[...document.querySelectorAll("#blocks tbody td.left a")].map((e) => e.textContent)')
    check(all(p.startswith('PTX ') for p in places) and len(set(places)) == len(places), places)
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


def long_lines(source):
    """A source whose lines are longer than any window."""
    for f in source['files']:
        f['parts'] = [[first, '\n'.join(line + ' /* ' + 'as long as lines become ' * 9 + '*/' if i % 2 else line for i, line in enumerate(text.split('\n')))] for first, text in f['parts']]


def fits(b, check):
    """Lines of the source, callouts, pictures: whole and large enough to read, at any width. Evidence stays where there is little room."""
    changed('inlined.html', 'long.html', source=long_lines)
    b.open('long.html', '#/kernel/0')
    for width in (1920, 1400, 1000, 400):
        b.size(width, 900)
        b.settle()
        wide = b.eval('(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector("#source .codebox"))')
        cut = b.eval('[...document.querySelectorAll("#source td.code")].filter((e) => e.scrollWidth > e.clientWidth + 1).length')
        check(wide <= 1 and cut == 0, 'a line is cut', width, wide, cut)
        text = b.eval('Math.min(...[...document.querySelectorAll("#flame .frame text")].map((e) => e.getBoundingClientRect().height))')
        check(text >= 10, 'text of the flame graph', width, text)
    # a line of generated code does not push all others out of sight
    changed('inlined.html', 'endless.html', source=lambda x: [f.update(parts=[[first, text.replace('\n', ' ' + 'x = y; ' * 20000 + '\n', 1)] for first, text in f['parts']]) for f in x['files']])
    b.open('endless.html', '#/kernel/0')
    check(b.eval('Math.max(...[...document.querySelectorAll("#source tbody tr")].map((e) => e.clientHeight))') < 400, 'an endless line')
    # 1920: no empty margins while something could be wider
    b.size(1920, 900)
    check(b.eval('document.querySelector("#source .codebox").clientWidth') > 1800, 'the width is used')
    b.size(400, 900)
    b.open('m120/page.html', '#/kernel/1')
    code = b.eval('Math.min(...[...document.querySelectorAll("#source tr.used > td.code")].map((e) => e.clientWidth))')
    check(code > 300, 'room for the source', code)
    told = b.eval('[...document.querySelectorAll("#source tr.used > td")].filter((e) => e.offsetParent && e.textContent).map((e) => e.dataset.label ? e.dataset.label + " " + e.textContent : "")')
    check(any(t.startswith('wasted ') for t in told) and any(t.startswith('lanes ') for t in told), told)
    small = b.eval('Math.min(...[...document.querySelectorAll("figure.chart svg text")].map((e) => e.getBoundingClientRect().height))')
    check(small >= 10, 'text of pictures', small)
    # what scrolls aside says so; badges are seen
    b.go('#/')
    check('local' in b.eval('getComputedStyle(document.querySelector("#main .scroll")).backgroundAttachment'), 'a shadow where there is more')
    b.open('advised.html')
    cut = b.eval('[...document.querySelectorAll("#main td .badge")].filter((e) => { const r = e.getBoundingClientRect(), t = e.closest("td").getBoundingClientRect(); return r.right > t.right + 1 || r.bottom > t.bottom + 1; }).length')
    check(cut == 0 and b.eval('document.querySelectorAll("#main td .badge").length') > 0, 'badges are cut', cut)
    b.open('m120/page.html', '#/kernel/1')
    b.eval('document.querySelectorAll("#source tr.used button.ln").forEach((e) => e.click())')
    b.settle()
    gap = b.eval('Math.max(...[...document.querySelectorAll("#source .blockno")].map((e) => e.getBoundingClientRect().height))')
    check(0 < gap < 40, 'an empty gap above the PTX', gap)
    b.size(1400, 1000)
    # scrolled aside, line numbers stay
    check(b.eval('getComputedStyle(document.querySelector("#source tr.used > td")).position') == 'sticky', 'line numbers')


OPEN = '''(() => { for (const e of document.querySelectorAll('#source tr.used button.ln')) e.click();
  for (const d of document.querySelectorAll('#source details')) d.open = true; })()'''
# The widest that the source is, beyond its box; the least room for a line; numbers without their names.
ROOM = '''(() => { const table = document.querySelector('#source table.code'), stacked = table.classList.contains('stacked'), lines = [...table.querySelectorAll(':scope > tbody > tr.used > td.code')];
  const cells = stacked ? [...table.querySelectorAll(':scope > tbody > tr.used > td')].slice(1).filter((e) => e.clientHeight && !e.matches('.num, .code')) : [];
  return [Math.max(document.documentElement.scrollWidth, table.getBoundingClientRect().right) - innerWidth, Math.min(...lines.map((e) => e.clientWidth)), stacked,
    cells.filter((e) => !getComputedStyle(e, '::before').content.includes(e.dataset.label)).length, cells.filter((e) => e.dataset.unit && !getComputedStyle(e, '::after').content.includes(e.dataset.unit)).length]; })()'''


def opened(b, check):
    """With every line open, at any width, nothing is wider than the window and lines of the source have room; beneath a line its numbers have names and units."""
    seen = set()
    for page, hash in (('m120/page.html', '#/kernel/1'), ('m120/page.html', '#/kernel/3'), ('advised.html', '#/kernel/0')):
        b.open(page, hash)
        b.eval(OPEN)
        for width in (360, 600, 800, 1000, 1400):
            b.size(width, 900)
            b.settle()
            over, room, stacked, unnamed, unitless = b.eval(ROOM)
            check(over <= 1 and room >= min(336, width - 72) and not unnamed and not unitless, page, hash, width, over, room, unnamed, unitless)
            seen.add((width, stacked))
    check((360, True) in seen and (1400, False) in seen, seen)
    b.size(1400, 1000)


def uncounted(b, check):
    """What was not counted is not 0 and not 'never': it has no column, and a word says what counts it. Findings say what they lack."""
    def without(n):
        def put(core):
            for k in core['report']['kernels']:
                k.update(thread_instructions=None, warp_instructions=None, lane_use=None, opcodes={'add.s32': {'thread': None, 'warp': None, 'lanes': None}})
                k['blocks'] = [dict(k['blocks'][0], id=i, ptx_line=30 + i, succ=[i + 1] if i < n - 1 else [], thread_entries=None, warp_entries=None) for i in range(n)]
            core['report']['findings'] = []
        return put
    for n in (5, 60, 130):  # also more than a picture of blocks that never ran has
        changed('m120/page.html', 'uncounted.html', core=without(n), source=lambda s: s.update(kernels=[]))
        b.open('uncounted.html')
        text = b.eval('document.getElementById("main").innerText')
        check('-t blocks' in text and '–' not in text and 'thread instructions' not in text and 'time of the host' in text, n, text[:400])
        b.eval('document.querySelector("a.kernel").click()')
        b.settle()
        text = b.eval('document.getElementById("blocks").innerText')
        check('-t blocks' in text and 'never' not in text and '%' not in text and '–' not in text, n, text[:400])
        nodes = b.eval('document.querySelectorAll("#blocks svg .node").length')
        check(nodes == (n if n <= 120 else 0) and ('too many' in text) == (n > 120), n, nodes)
        heads = b.eval('[...document.querySelectorAll("#source thead th")].map((e) => e.innerText)')
        check('instructions' not in heads and 'lanes' not in heads and b.eval('document.getElementById("instructions") === null'), heads)
    note = 'document.querySelector("section[aria-labelledby=findings-title]").innerText'
    for complete, found, said in ((True, False, 'No rule found'), (False, False, 'margay run -t advise'), (False, True, 'gains come out too large'), (True, True, None)):
        def put(core):
            core['report']['findings_complete'] = complete
            core['page']['tools'] = [t for t in core['page']['tools'] if t['name'] != 'memory']
            if not found: core['report']['findings'] = []
        changed('advised.html', 'told.html', core=put)
        b.open('told.html')
        text = b.eval(note)
        check(said in text if said else not any(x in text for x in ('No rule', 'too large', 'advise')), complete, found, text)
    # why there is no verdict stands in the kernel's view, too; launches by kernels beside those by the program
    def put(core):
        core['report'].update(findings=[], no_verdict=[{'kernel': core['report']['kernels'][0]['id'], 'why': 'planted why'}])
        core['report']['coverage']['device_launches'] = 1234
    changed('advised.html', 'why.html', core=put)
    b.open('why.html')
    check('and 1,234 by kernels' in b.eval('document.querySelector(".facts-row").innerText'), 'launches by kernels')
    b.go(f'#/kernel/{unpack.parts("why.html")["core"]["report"]["kernels"][0]["id"]}')
    check('planted why' in b.eval('document.getElementById("findings")?.innerText ?? ""'), 'no verdict')


def names(b, check):
    """Long C++ names: what tells kernels apart stays in sight, in lists, cards, pictures; the whole name is where it is asked for."""
    common = 'a::deep::name::of::a_library::detail::'
    inner = ', '.join(f'{common}policy<{i}, unsigned long long>' for i in range(6))
    first, second = (f'void {common}sort_all<{inner}, {common}{x}<float>, 4>(unsigned int*, int)' for x in ('Fill', 'Filter'))
    alone = f'void {common}reduce<{inner}>({", ".join(["unsigned long long const*"] * 20)})'
    core = unpack.parts('m120/page.html')['core']
    card = dict(unpack.parts('advised.html')['core']['report']['findings'][0], file=None, line=None, ptx_line=0)

    def put(core):
        hot = sorted(core['report']['kernels'], key=lambda k: -k['thread_instructions'])[:3]
        for k, name in zip(hot, (first, second, alone)): k['demangled'] = name
        core['page']['kernel_names'] = {}
        core['report']['findings'] = [dict(card, kernel=hot[2]['id'])]
        k = hot[2]
        core['report']['coverage']['unwritten_registers'] = [{'kernel': k['name'], 'function': k['name'], 'register': f'%r{i}', 'ptx_line': 9 + i, 'file': '/nowhere/a.cuh', 'line': 7} for i in range(30)]
    changed('m120/page.html', 'names.html', core=put)
    b.size(1400, 1000)
    b.open('names.html')
    links = dict(b.eval('[...document.querySelectorAll("#main tbody a.kernel")].map((e) => [e.title, e.innerText])'))
    check(all(len(links[x]) < 110 for x in (first, second, alone)) and 'Fill<' in links[first] and 'Filter<' in links[second] and 'reduce' in links[alone][:30], [links[x] for x in (first, second, alone)])
    seen = b.eval('[...document.querySelectorAll("#main tbody tr a.kernel")].filter((e) => [...e.children].some((c) => c.className === "name" && c.getBoundingClientRect().right > e.getBoundingClientRect().right + 1)).map((e) => e.title)')
    check(not seen, 'the name itself is cut', seen)
    heights = b.eval('[...document.querySelectorAll(".cardhead")].map((e) => e.clientHeight)')
    check(heights and max(heights) < 30, 'a name fills a finding', heights)
    b.go('#/run')
    table = b.eval('[...document.querySelectorAll("#main tbody tr")].map((e) => e.innerText)')
    check(len(table) == 1 and '%r0' in table[0] and '24 more' in table[0] and 'a.cuh:7' in table[0], table)
    b.go('#/')
    b.click('.cardhead a.kernel')
    check(alone[5:] in b.eval('document.querySelector(".kernelhead").textContent'), 'the whole name')
    frame = b.eval('document.querySelector("#flame .frame text").textContent')
    check(frame == 'detail::reduce', frame)
    # what is left of a name where there is little room
    functions = {'void ns::B<int, 3>::Copy<0>(int*, a<b>)': 'B::Copy', 'decltype (((::c::f<int&>)({parm#1}))+(2)) c::plus<void>::operator()<int&, int&>(int&) const': 'plus::operator()',
                 'void (anonymous namespace)::fill<f(int)>(int)': '(anonymous namespace)::fill', 'A<b>::operator<(int)': 'A::operator<', 'std::pair<int, a::b<c> > ns::get<int>(x)': 'ns::get', 'x::{lambda(int)#1}::operator()(int) const': '{…}::operator()'}
    def calls(source):
        k = source['kernels'][0]
        k.update(inlined=[[name, 0, 9, 0] for name in functions], rows=[v for i in range(len(functions)) for v in (0, 0, 20 + i, 100 + i, 1, i + 1)])
        source.update(kernels=[k], files=[{'path': '/nowhere/b.cu', 'lines': None, 'doubt': None, 'parts': []}])
    def one_block(core):
        k = core['report']['kernels'][0]
        k.update(blocks=[dict(k['blocks'][0], id=0, succ=[], instructions=len(functions), thread_entries=320, warp_entries=10)], thread_instructions=320 * len(functions))
        core['report']['findings'] = []
    changed('advised.html', 'frames.html', core=one_block, source=calls)
    b.open('frames.html', f'#/kernel/{unpack.parts("frames.html")["core"]["report"]["kernels"][0]["id"]}')
    drawn = dict(b.eval('[...document.querySelectorAll("#flame .frame")].map((e) => [e.dataset.name, e.querySelector("text")?.textContent])'))
    check(all(drawn[name] in (name, short) and (len(name) < 34 or drawn[name] == short) for name, short in functions.items()), drawn)


def boxes(b, check):
    """In a block of the graph place and count stand apart, however long the file's name is."""
    def long_name(core):
        for x in core['report']['kernels'][0]['blocks']: x.update(file='/nowhere/' + 'a_long_name_of_a_file' * 2 + '.cuh', line=1234, thread_entries=1023, warp_entries=40)
    changed('advised.html', 'boxes.html', core=long_name, source=lambda s: s.update(kernels=[], files=[]))
    b.open('boxes.html', '#/kernel/0')
    close = b.eval('''[...document.querySelectorAll('#blocks svg .node')].map((n) => { const [, , place, count] = n.querySelectorAll('text'); return [count.getBBox().x - place.getBBox().x - place.getBBox().width, place.textContent]; })''')
    check(close and all(gap >= 3 and text.endswith(':1234') and '…' in text for gap, text in close), close)


def elsewhere(b, check):
    """What is not there is said; tools, rules and roles of lines say what they are; the key / reaches the field that is shown."""
    b.open('m1/page.html', '#/kernel/7')
    check('nothing at #/kernel/7' in b.eval('document.getElementById("main").innerText'), b.eval('document.getElementById("main").innerText'))
    b.click('#main p a')
    check(b.eval('document.querySelector("#main table.kernels") !== null'), 'and the way back')
    b.key('/')
    check(b.eval('document.getElementById("status").textContent') == 'nothing to filter here', 'one kernel has no filter')
    b.go('#/tools')
    tools = b.eval('[...document.querySelectorAll("#main li")].map((e) => e.innerText.split(": "))')
    check(tools and all(len(t) == 2 and len(t[1]) > 10 for t in tools), tools)
    # times of the host say so in every column, and of how many CTAs they are in the kernel's view
    core = unpack.parts('m1/page.html')['core']
    id = next(t['id'] for t in core['page']['tools'] if t['name'] == 'clock')
    k = core['report']['kernels'][0]
    note = f'1 of 2 CTAs sampled: {k["demangled"]}'
    changed('m1/page.html', 'clock.html', **{f'tool-{id}': lambda tool: tool['tables'][0].update(notes=['1 of 2 CTAs sampled: another(int)', note])})
    b.open('clock.html', f'#/tool/{id}')
    heads = b.eval('[...document.querySelectorAll("#main thead th")].map((e) => [e.innerText.split("\\n")[0].trim(), e.innerText.includes("of the host")])')
    check({name for name, host in heads if host} == {'span', 'min', 'median', 'max'}, heads)
    b.go(f'#/kernel/{k["id"]}')
    b.eval('document.querySelectorAll("details").forEach((d) => { d.open = true; })')
    b.settle()
    text = b.eval(f'document.getElementById("tool-{id}").innerText')
    check('times of the host' in text and '1 of 2 CTAs' in text, text)
    b.open('m120/page.html', '#/tool/2')
    b.key('/')
    check(b.eval('document.activeElement.closest(".tooltable") !== null && location.hash === "#/tool/2"'), 'the rows\' own filter')
    b.open('advised.html')
    titles = b.eval('[...document.querySelectorAll(".cardhead strong, .verdict strong[title]")].map((e) => [e.innerText, e.title])')
    check(titles and all(len(t) > 15 for _, t in titles), titles)
    b.key('?')
    terms = b.eval('[...document.querySelectorAll("dl.words > div")].map((e) => e.innerText)')
    rules = unpack.parts('advised.html')['core']['page']['rules']
    check(len(rules) > 10 and all(any(t.startswith(r.replace('_', ' ')) and what in t for t in terms) for r, what in rules.items()), terms[:4])
    b.key('Escape')


def shades(b, check):
    """Shades stand for parts of the whole: what is nothing of the kernel has none. Lines with a finding differ from hot ones."""
    core = unpack.parts('advised.html')['core']
    id = next(t['id'] for t in core['page']['tools'] if t['name'] == 'lanes')

    def little(tool):
        t = next(t for t in tool['tables'] if t['name'] == 'branches')
        at = [c[0] for c in t['columns']].index('idle slots')
        for row in t['rows']: row[at] = 3
    changed('advised.html', 'little.html', **{f'tool-{id}': little})
    shaded = '[...document.querySelectorAll("#source td.shaded")].filter((e) => e.dataset.label === "idle slots" || !e.dataset.label).length'
    k = core['report']['kernels'][0]['id']
    b.open('advised.html', f'#/kernel/{k}')
    check(b.eval(shaded) > 0, 'idle slots are shaded')
    color = lambda e: b.eval(f'getComputedStyle({e}).backgroundColor').strip('rgba()').split(', ')
    found, hot = color('document.querySelector("#source tr.found > td.code")'), color('document.querySelector("#source tr.used:not(.found) > td.code")')
    check(int(found[0]) > int(found[2]) and int(hot[0]) < int(hot[2]), 'findings are red, instructions blue', found, hot)
    b.open('little.html', f'#/kernel/{k}')
    check(b.eval(shaded) == 0, 'three slots are nothing')
    # the flame graph's colours are those of its legend
    if not os.path.exists('inlined.html'): return
    b.open('inlined.html', '#/kernel/0')
    hues = b.eval('[...document.querySelectorAll("#flame .frame")].map((e) => [e.dataset.name, parseInt(e.querySelector("rect").getAttribute("fill").slice(4))])')
    kind = lambda name: 'line' if '.cu:' in name else 'inlined' if name.split('(')[0] in ('both', 'twist') else 'call'
    ranges = {'line': (200, 240), 'inlined': (45, 60), 'call': (350, 367)}
    check(all(ranges[kind(n)][0] <= hue <= ranges[kind(n)][1] for n, hue in hues) and {kind(n) for n, _ in hues} == set(ranges), hues)
    check(b.eval('document.querySelectorAll("#flame .legend .swatch").length') == 3, 'a legend')


def groups(b, check):
    """Instructions of one line that differ in their numbers alone are one row, with sums, which opens."""
    core = unpack.parts('m1/page.html')['core']
    ids = {t['name']: t['id'] for t in core['page']['tools']}
    made = {}

    def unrolled(tool):
        t = next(t for t in tool['tables'] if t['name'] == 'memory')
        names = [c[0] for c in t['columns']]
        place, wasted, conflicts, requests = (names.index(x) for x in ('line', 'wasted', 'conflicts', 'requests'))
        row = next(r for r in t['rows'] if r[place][1])
        t['rows'], t['together'] = [[*row] for _ in range(32)], [[0, 32]]
        for i, r in enumerate(t['rows']):
            r[place], r[conflicts], r[requests] = [*row[place][:2], 100 + i, row[place][3]], 40000 + 10000 * (i % 3), 7
            r[wasted] = 1000 + i + 128 * 7 * r[conflicts]  # sectors and passes in one, as the text has them
        made['sum'], made['passes'] = sum(1000 + i for i in range(32)), sum(7 * r[conflicts] for r in t['rows'])
        # counts of any name are summed; bytes need no other unit
        t = next(t for t in tool['tables'] if t['name'] == 'bytes')
        names = [c[0] for c in t['columns']]
        place, lanes = names.index('line'), names.index('accesses')
        t['columns'][lanes], t['columns'][names.index('read')][2] = ['lanes', 'count', '', 'sum'], 'bytes'
        row = next(r for r in t['rows'] if r[place][1])
        t['rows'], t['together'] = [[*row] for _ in range(3)], [[0, 3]]
        for i, r in enumerate(t['rows']): r[place], r[lanes] = [*row[place][:2], 200 + i, row[place][3]], 1000 + i

    def ranges(tool):
        t = tool['tables'][0]
        at, values = ([c[0] for c in t['columns']].index(x) for x in ('range', 'values'))
        t['rows'] = [[*t['rows'][0]] for _ in range(2)]
        for row, text in zip(t['rows'], ('200124423 .. 4290430017', '0 .. 10.512468534848638')): row[at], row[values] = text, 7
    def large(launches):
        for g in launches['groups']: g['grid'] = [1200, 3, 1]
    changed('m1/page.html', 'grouped.html', launches=large, **{f'tool-{ids["memory"]}': unrolled, f'tool-{ids["values"]}': ranges})
    b.open('grouped.html', f'#/tool/{ids["memory"]}')
    row = b.eval('document.querySelector("#main section.tooltable tbody tr").innerText')
    check(b.eval('document.querySelectorAll("#main section.tooltable tbody tr").length') == 1 and '× 32' in row and '40.0 k – 60.0 k' in row and '224' in row and f'{made["sum"] / 1024:.1f}' in row and f'{made["passes"] / 1e6:.1f}M' in row, row, made)  # means are written as counts are
    b.eval('document.querySelectorAll("details.tooltable").forEach((d) => { d.open = true; })')
    b.wait('document.querySelectorAll("details.tooltable table").length > 0')
    cells = b.eval('[[...document.querySelectorAll("details.tooltable th")].map((e) => e.innerText.trim()), [...document.querySelectorAll("details.tooltable tbody td")].map((e) => e.innerText.trim())]')
    check(dict(zip(*cells))['lanes'] == '3,003' and 'read' in cells[0], cells)
    b.click('#main section.tooltable tbody tr button')
    lines = b.eval('[...document.querySelectorAll("#main section.tooltable tbody tr")].map((e) => e.innerText)')
    check(len(lines) == 32 and all(sum(f'PTX {100 + i}' in t for t in lines) == 1 for i in range(32)), lines[:3])
    b.go('#/kernel/0')
    check('1,200 × 3\t' in b.eval('document.querySelector("#launches").innerText'), b.eval('document.querySelector("#launches").innerText'))
    b.go(f'#/tool/{ids["values"]}')
    text = b.eval('document.getElementById("main").innerText')
    check('200,124,423 .. 4,290,430,017' in text and '0 .. 10.512468534848638' in text, text)


def printed(b, check):
    """On paper: what a button would show is told as what is missing, nothing hangs in the air, no word invites a click."""
    b.open('m120/page.html', '#/kernel/2')
    b.media('print')
    shown = '''(e) => e.offsetParent && getComputedStyle(e).display !== 'none' && (getComputedStyle(e).fontSize !== '0px' ? e.textContent : getComputedStyle(e, '::after').content)'''
    words = b.eval(f'[...document.querySelectorAll("#main button")].map({shown}).filter(Boolean)')
    check(not [w for w in words if 'show' in w] and any('without' in w or 'further' in w for w in words), words)
    feet = b.eval('[...document.querySelectorAll("#main .more")].filter((e) => e.offsetParent).map((e) => [...e.childNodes].some((n) => n.nodeType === 1 && n.offsetParent))')
    check(all(feet), 'a foot without words', feet)
    check(b.eval('getComputedStyle(document.querySelector("h4")).breakAfter') == 'avoid' and b.eval('getComputedStyle(document.querySelector("thead")).breakInside') == 'avoid', 'heads stay with what they head')
    # paper is narrow: numbers stand below the lines
    stacked = 'document.querySelector("#source table.code").classList.contains("stacked")'
    check(not b.eval(stacked), 'a wide window')
    for event, is_so in (('beforeprint', True), ('afterprint', False)):
        b.eval(f'dispatchEvent(new Event("{event}"))')
        check(b.eval(stacked) == is_so, event)
    b.media()
    b.settle()
    width = 'document.querySelector("#flame svg").viewBox.baseVal.width'
    wide = b.eval(width)
    for event, fits_there in (('beforeprint', lambda w: w < 800 < wide), ('afterprint', lambda w: w == wide)):
        b.eval(f'dispatchEvent(new Event("{event}"))')
        b.settle()
        check(fits_there(b.eval(width)), 'the flame graph is drawn for paper, and for the window again', event, b.eval(width), wide)


def words(b, check):
    """Every head of a known tool's table says what its word means; the list behind ? has them, too; units are where numbers are."""
    core = unpack.parts('m1/page.html')['core']
    heads = 0
    for tool in core['page']['tools']:
        b.open('m1/page.html', f'#/tool/{tool["id"]}')
        b.eval('document.querySelectorAll("details").forEach((e) => { e.open = true; })')
        b.settle()
        without = b.eval('[...document.querySelectorAll("#main .tooltable th")].filter((e) => !e.title).map((e) => e.textContent)')
        heads += b.eval('document.querySelectorAll("#main .tooltable th").length')
        check(not without, tool, without)
        if tool['name'] == 'clock':
            units = b.eval('[...document.querySelectorAll("#main .tooltable th")].filter((e) => /^(min|median|max)/.test(e.textContent)).map((e) => e.textContent)')
            check(len(units) == 3 and all('cycles' in u for u in units), units)
            title = b.eval('document.querySelector("#main .tooltable h4").textContent')
            check('multiprocessors' not in title and 'min to max' in title, title)  # no GPU, no such column
    check(heads > 30, heads)
    b.key('?')
    text = b.eval('document.querySelector("dialog").innerText')
    check(all(f'\n{w}\n' in text for w in ('idle slots', 'affine', 'uniform', 'guard true', 'mostly', 'equal CTAs save', 'redundant', 'lanes')), text[:600])
    check(b.eval('document.querySelector("dialog").scrollTop') == 0, 'the list begins at its begin')
    # in the order of what is shown, and the filter finds a word or what it means
    shown = 'Array.from(document.querySelectorAll("dl.words dt")).filter((e) => e.getClientRects().length).map((e) => e.firstChild.textContent)'
    terms = b.eval(shown)
    check(terms == sorted(terms, key=str.lower) and {'pass', 'work', 'lane slot', 'warp executions', 'instrumented', 'with inlined', 'exact', 'by a model', 'gain', 'verdict'} <= set(terms), terms)
    b.click('dialog input')
    b.type('LANE SLOT')
    few = b.eval(shown)
    check('lane slot' in few and 'of kernel' in few and len(few) < 12, few)
    b.key('Enter')
    check(b.eval('document.querySelector("dialog") !== null'), 'Enter does not close what is filtered')
    b.key('Escape')
    check(b.eval('document.querySelector("dialog") !== null') and len(b.eval(shown)) == len(terms), 'Escape empties the filter first')
    b.key('Escape')
    check(b.eval('document.querySelector("dialog") === null'), 'and then closes')
    # what ran it is no GPU, and its time no headline
    b.open('m1/page.html')
    head, facts = b.eval('document.querySelector("#top").innerText'), b.eval('document.querySelector(".facts-row").innerText')
    check('on the emulator as an NVIDIA H200, without a GPU' in head and 'time' not in facts, head, facts)
    b.go('#/kernel/0')
    check('time' not in b.eval('document.querySelector(".facts-row").innerText') and 'host time' in b.eval('document.querySelector("#launches").innerText'), 'time of the host')
    # what only tells has no look of a link; headings are none; the pattern's names are told below the picture
    b.open('advised.html', '#/kernel/0')
    check(b.eval('document.querySelectorAll("h2 > a:only-child, h2 > .quiet").length') == 0 and 'dotted' not in b.eval('getComputedStyle(document.querySelector(".card .sure")).borderBottomStyle'), 'no hidden links')
    # tools whose counts have nothing to look at are folded, and open
    folded = b.eval('[...document.querySelectorAll("section > details.silent")].map((e) => e.parentElement.querySelector("h2").firstChild.textContent)')
    check('memory' in folded and 'lanes' not in folded, folded)
    b.eval('[...document.querySelectorAll(".jump button")].find((e) => e.textContent === "memory").click()')
    b.settle()
    check('aligned: from a multiple' in b.eval('document.querySelector("figure.chart figcaption").innerText'), 'patterns')
    # few repeated values are nothing good
    goods = b.eval('[...document.querySelectorAll("#source td[data-label=redundant].good")].length')
    check(goods == 0, goods)


def sides(b, check):
    """A branch says where its lanes go: what jumps and what does not, by the lines of both sides."""
    core = unpack.parts('m120/page.html')['core']
    k = next(k for k in core['report']['kernels'] if 'walk_2(' in k['demangled'])
    id = next(t['id'] for t in core['page']['tools'] if t['name'] == 'lanes')
    (branches,) = [t for t in unpack.parts('m120/page.html')[f'tool-{id}']['tables'] if t['name'] == 'branches']
    names = [c[0] for c in branches['columns']]
    b.open('m120/page.html', f'#/kernel/{k["id"]}')
    b.eval('document.querySelectorAll(".more button").forEach((e) => e.click())')
    b.settle()
    got = b.eval(f'[...document.querySelectorAll("#tool-{id} section.tooltable tbody tr")].map((tr) => [...tr.children].map((td) => td.innerText))')
    check(got and all('→' in cell for row in got for cell in row[-2:]), got)
    places = [row[0] for row in got]
    check(len(set(places)) == len(places) and any('PTX' in p for p in places), places)  # two branches of one line
    # by the counts: of a branch's sides that one entry alone leads to, as many threads enter as go there
    into = {}
    for x in k['blocks']:
        for to in x['succ']: into.setdefault(to, set()).add(x['id'])
    tested = 0
    for row in branches['rows']:
        if row[names.index('kernel')] != k['id']: continue
        at = k['blocks'][row[0][3]]
        if len(at['succ']) != 2: continue
        for to, way in zip(at['succ'], ('not taken', 'taken')):
            if into[to] != {at['id']}: continue
            check(k['blocks'][to]['thread_entries'] == row[names.index(way)], at, row)
            tested += 1
    check(tested > 0, k['blocks'], branches['rows'])


def sources(b, check, seed):
    """What is around a kernel's lines: its launch, definitions, the rest on demand; a note behind its statement; heads that stay; idle lanes at their branch."""
    r = random.Random(seed)
    name = ''.join(r.choice('bdfgklmnprstvz') + r.choice('aeiou') for _ in range(3))
    pad = [f'// {r.random()}' for _ in range(r.randrange(70, 90))]
    head = ['struct pair {', '    float first, other;', '};', f'#define UNUSED_{name} 3', f'constexpr int {name} = {r.randrange(2, 9)};', f'enum {{ ROWS_{name} = 4, ELSE_{name} = 5 }};']
    body = ['__global__ void walk(pair *p)', '{', f'    float v = p[threadIdx.x % {name}].first *', f'              (threadIdx.x + ROWS_{name}', '              + 3);', '    p[0].other = v;', '}']
    host = ['int main()', '{', f'    walk<<<1, {name}>>>(p); // not wa1k<<<', '    walk_too<<<1, 1>>>(p);', '}']
    text = head + pad + body + pad + host
    at = {t: i + 1 for i, t in enumerate(text) if t not in pad}
    first = at[body[2]]

    def put(core):
        k = core['report']['kernels'][0]
        k.update(demangled='walk(pair*)', blocks=[dict(k['blocks'][0], id=0, succ=[], thread_entries=320, warp_entries=10, instructions=4)], thread_instructions=1280)
        core['report']['findings'] = [dict(core['report']['findings'][0], gain_pct=20, kernel=k['id'], file='/nowhere/walk.cu', line=first, text='planted: here')]

    def lines(source):
        k = source['kernels'][0]
        k.update(rows=[v for i in (1, 2, 4) for v in (0, 0, at[body[i]] if i != 1 else first, 10 + i, 1, 0)], inlined=[])
        source.update(kernels=[k], files=[{'path': '/nowhere/walk.cu', 'lines': len(text), 'doubt': None, 'parts': [[1, '\n'.join(text)]]}])
    changed('advised.html', 'sources.html', core=put, source=lines)
    id = unpack.parts('sources.html')['core']['report']['kernels'][0]['id']
    b.open('sources.html', f'#/kernel/{id}')
    numbers = '[...document.querySelectorAll("#source tbody > tr:not(.gap):not(.open)")].map((e) => Number(e.querySelector(".ln").textContent))'
    roles = dict(b.eval('[...document.querySelectorAll("#source .role")].map((e) => [Number(e.closest("tr").querySelector(".ln").textContent), e.textContent])'))
    want = {at[t]: 'definition' for t in (head[0], head[4], head[5])} | {at[host[2]]: 'launch'}
    check(set(want.items()) <= set(roles.items()) and not {at[head[3]], at[host[3]]} & set(roles), roles, want)
    # the note stands behind the last line of its statement, which is marked as a whole; details do not part it
    marked = '[...document.querySelectorAll("#source tr.found")].map((e) => [Number(e.querySelector(".ln").textContent), e.querySelector(".atline") !== null])'
    check(b.eval(marked) == [[first, False], [first + 1, False], [first + 2, True]], b.eval(marked), first)
    b.go(f'#/kernel/{id}/line/0/{first}')
    check(b.eval('document.querySelector("#source tr.open").previousElementSibling.querySelector(".atline") !== null'), 'details stand behind the statement')
    # which of its lines they are of stands there, and only that one is red
    check(b.eval('document.querySelector("#source tr.open h5").textContent') == f'line {first}' and f'at line {first}' in b.eval('document.querySelector("#source .atline").innerText'), first)
    red = b.eval('[...document.querySelectorAll("#source tr.found > td.code")].map((e) => getComputedStyle(e).backgroundColor.match(/[0-9.]+/g).map(Number)).map(([r, , b, a]) => r > b && a > 0)')
    check(red == [True, False, False], red)
    b.eval(f'[...document.querySelectorAll("#source button.ln")].find((e) => e.textContent === "{first}").click()')
    check(b.eval('document.querySelector("#source tr.open") === null'), 'and close again')
    # what is cut is shown: some lines at a time, in order
    total = len(text)
    for _ in range(20):
        cut = b.eval('document.querySelectorAll("#source tr.gap button").length')
        if not cut: break
        seen = b.eval(numbers)
        check(seen == sorted(set(seen)), seen)
        b.click('#source tr.gap button')
    check(b.eval(numbers) == list(range(1, total + 1)), b.eval(numbers)[-5:], total)
    # heads stay in sight
    b.eval('document.querySelector("#source tbody > tr:nth-child(120)").scrollIntoView({block: "center"})')
    b.settle()
    head_at, jump = b.eval('[document.querySelector("#source thead th").getBoundingClientRect().top, document.querySelector(".jump").getBoundingClientRect().bottom]')
    check(abs(head_at - jump) < 3, 'the heads stand below the links', head_at, jump)
    check(b.eval('document.elementFromPoint(document.querySelector("#source thead th").getBoundingClientRect().x + 5, document.querySelector("#source thead th").getBoundingClientRect().y + 5).closest("thead") !== null'), 'nothing lies over them')


def charges(b, check):
    """Lanes that idle inside a branch are counted at the branch: the lines inside say where that is. Without inlined calls there is one share a line."""
    core = unpack.parts('m120/page.html')['core']
    k = next(k for k in core['report']['kernels'] if 'walk_2(' in k['demangled'])
    id = next(t['id'] for t in core['page']['tools'] if t['name'] == 'lanes')
    (branches,) = [t for t in unpack.parts('m120/page.html')[f'tool-{id}']['tables'] if t['name'] == 'branches']
    names = [c[0] for c in branches['columns']]
    idling = {row[names.index('line')][1] for row in branches['rows'] if row[names.index('kernel')] == k['id'] and row[names.index('idle slots')]}
    b.open('m120/page.html', f'#/kernel/{k["id"]}')
    heads = b.eval('[...document.querySelectorAll("#source thead th")].map((e) => e.textContent)')
    check('with inlined' not in heads and len(set(heads)) == len(heads), heads)
    cells = b.eval('[...document.querySelectorAll("#source tr.used")].map((e) => [Number(e.querySelector(".ln").textContent), e.querySelector("[data-label=lanes]").innerText, e.querySelector("[data-label=\\"idle slots\\"]").innerText])')
    led = {line: text for line, _, text in cells if text.startswith('at ')}
    check(led and all(int(text.removeprefix('at line ')) in idling for text in led.values()) and not set(led) & idling, cells, idling)
    check(all(float(lanes.split('%')[0]) < 90 for line, lanes, text in cells if text.startswith('at ')), cells)


def branch_lines(b, check, seed):
    """A branch leads to lines of its own function: of what was inlined on either side, to the calls."""
    r = random.Random(seed)
    core = unpack.parts('advised.html')['core']
    id = next(t['id'] for t in core['page']['tools'] if t['name'] == 'lanes')
    branch = r.randrange(40, 60)
    sides = [branch + 1, branch + 3]  # calls of what lies on lines 9 and 19

    def put(core):
        k = core['report']['kernels'][0]
        k['blocks'] = [dict(k['blocks'][0], id=i, succ=to, thread_entries=640, warp_entries=40, instructions=n) for i, (to, n) in enumerate([([1, 2], 2), ([3], 5), ([3], 5), ([], 1)])]
        core['report']['findings'] = []

    def lines(source):
        k = source['kernels'][0]
        k.update(inlined=[['first(int)', 0, sides[0], 0], ['second(int)', 0, sides[1], 0], ['deep(int)', 0, 8, 1]],
                 rows=[0, 0, branch, 100, 2, 0, 1, 0, 9, 110, 1, 1, 1, 0, 4, 111, 4, 3, 2, 0, 19, 120, 5, 2, 3, 0, branch + 5, 130, 1, 0])
        source.update(kernels=[k], files=[{'path': '/nowhere/b.cu', 'lines': None, 'doubt': None, 'parts': []}])

    def row(tool):
        t = next(t for t in tool['tables'] if t['name'] == 'branches')
        names = [c[0] for c in t['columns']]
        one = next(x for x in t['rows'] if x[names.index('kernel')] is not None)
        one[names.index('line')], one[names.index('idle slots')] = ['/nowhere/b.cu', branch, 100, 0], 4000
        t['rows'] = [one]
    changed('advised.html', 'branch.html', core=put, source=lines, **{f'tool-{id}': row})
    b.open('branch.html', f'#/kernel/{unpack.parts("branch.html")["core"]["report"]["kernels"][0]["id"]}')
    cells = b.eval(f'[...document.querySelector("#tool-{id} section.tooltable tbody tr").children].map((e) => e.innerText)')
    check([c.split(':')[-1] for c in cells[-2:]] == [str(sides[1]), str(sides[0])], cells, sides)
    # what idles in the inlined bodies is charged to the branch; what comes behind is not
    led = b.eval('[...document.querySelectorAll("#source tr.used")].map((e) => [Number(e.querySelector(".ln").textContent), e.querySelector("[data-label=\\"idle slots\\"]").innerText])')
    check({line for line, text in led if text == f'at line {branch}'} == {4, 9, 19}, led)
