"""Drives the pages that page.sh made and compares what they show with the JSON reports. Prints what it timed."""
import json, os, random, re, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reader, unpack
from browser import Browser

b = Browser(1400, 1000)
names = 'Array.from(document.querySelectorAll("#main table tbody tr a.kernel")).map((e) => e.title)'
rows = 'document.querySelectorAll("#main table tbody tr").length'
title = 'document.querySelector("h1").textContent'
overflow = 'document.documentElement.scrollWidth > innerWidth + 1'


def check(holds, *what):
    assert holds and not b.errors, (what, b.errors, b.eval('location.href'), b.eval('document.body.innerText.slice(0, 1500)'))


def shown(k):  # the name as the page writes it without what is dim
    return k['demangled'].split('(')[0].split('<')[0].split('::')[-1].split(' ')[-1]


def share(kernels, k): return 100 * k['thread_instructions'] / sum(x['thread_instructions'] for x in kernels)


def overview(n, report):
    kernels = report['kernels']
    check(len(kernels) == n and os.path.getsize(f'm{n}/page.html') < 5 << 20, n, os.path.getsize(f'm{n}/page.html'))
    hottest = sorted(kernels, key=lambda k: (-k['thread_instructions'], k['id']))
    check(b.eval(names) == [k['demangled'] for k in hottest[:60]], b.eval(names)[:4])
    if n > 60:
        b.click('#main .more button')
        check(b.eval(rows) == n, b.eval(rows))
    # the first row's numbers, exact
    cells = b.eval('Array.from(document.querySelectorAll("#main tbody tr:first-child td .num")).map((e) => e.title)')
    check(f'{hottest[0]["thread_instructions"]:,}' in cells and f'{hottest[0]["warp_instructions"]:,}' in cells, cells)
    # the total, the coverage, the command
    text = b.eval('document.body.innerText')
    launches = report['coverage']['launches']
    check('many.ptx' in text and ('Its one launch was instrumented.' if launches == 1 else f'All {launches:,} launches were instrumented.') in text, text[-400:])
    # of one kernel nothing is told as a share of all, and nothing filters it; a host's time is none of a kernel
    check((b.eval('document.getElementById("filter") !== null'), 'share' in b.eval('document.querySelector("thead").innerText')) == (n > 1,) * 2, 'noise of one kernel')
    check(b.eval('[...document.querySelectorAll("#main thead th")].pop().innerText.replace(/\\s+/g, " ").trim()') == 'host time no GPU', b.eval('document.querySelector("thead").innerText'))
    check((b.eval('[...document.querySelectorAll("#top nav a")].map((a) => a.textContent)').count('Flame graph') == 1) == (n > 1) and b.eval('document.querySelector("#top").innerText').startswith('Margay'), 'one flame graph; who made the page')
    wide = b.eval('(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector("#main .scroll"))')
    check(wide <= 0, 'at 1400 the table of kernels fits', wide)
    # sort by lanes, then the other way
    at = b.eval('Array.from(document.querySelectorAll("thead th")).findIndex((e) => e.textContent.trim() === "lanes") + 1')
    for direction, sign in (('descending', -1), ('ascending', 1)):
        b.click(f'thead th:nth-child({at}) button')
        check(b.eval(f'document.querySelector("thead th:nth-child({at})").getAttribute("aria-sort")') == direction, direction)
        lanes = {k['demangled']: k['lane_use'] for k in kernels}
        got = [lanes[x] for x in b.eval(names)]
        check(len(got) == n and got == sorted(got, key=lambda x: sign * x), got[:5])


def filters(n, report):
    b.key('/')
    check(b.eval('document.activeElement.id') == 'filter', 'the key / reaches the filter')
    b.type('walk 1')
    want = {k['demangled'] for k in report['kernels'] if 'walk' in k['demangled'] and '1' in k['demangled']}
    check(set(b.eval(names)) == want, b.eval(names))
    check(b.eval('document.getElementById("status").textContent').startswith(str(len(want))), 'the count is said')
    b.eval('(() => { const f = document.getElementById("filter"); f.value = "no such kernel"; f.dispatchEvent(new Event("input")); })()')
    check(b.eval(rows) == 0 and 'no row matches' in b.eval('document.body.innerText'), 'nothing matches')
    b.eval('(() => { const f = document.getElementById("filter"); f.value = ""; f.dispatchEvent(new Event("input")); f.blur(); })()')
    check(b.eval(rows) == n, b.eval(rows))


def by_hand(path, lines):
    """Line number in many.cu of each text, in the body of the kernel that a line names."""
    text = open(path).read().split('\n')
    start = next(i for i, t in enumerate(text) if lines[0] in t)
    return [next(i + 1 for i in range(start, len(text)) if x in text[i]) for x in lines[1:]]


def one_kernel(n, report):
    k = next(k for k in report['kernels'] if shown(k) == 'walk_2')
    loop, inside = by_hand(f'm{n}/many.cu', [' walk_2(', 'for (int j', 'sum += in'])
    b.go('#/')
    b.eval(f'Array.from(document.querySelectorAll("a.kernel")).find((e) => e.title === {json.dumps(k["demangled"])}).click()')
    b.settle()
    check(b.eval('location.hash') == f'#/kernel/{k["id"]}' and b.eval(title).startswith('walk_2'), b.eval(title))
    # blocks: as many as ran, shares in order, and one node of the graph each
    ran = [x for x in k['blocks'] if x['thread_entries']]
    hottest = max(ran, key=lambda x: x['thread_entries'] * x['instructions'])
    check(b.eval('Array.from(document.querySelectorAll("#blocks tbody tr")).map((e) => Number(e.dataset.block))')[0] == hottest['id'], hottest)
    check(b.eval('document.querySelectorAll("#blocks tbody tr").length') == len(ran), ran)
    check(b.eval('document.querySelectorAll("#blocks svg .node").length') == len(k['blocks']), 'nodes')
    edges = sum(len(x['succ']) for x in k['blocks'])
    check(b.eval('document.querySelectorAll("#blocks svg .edge").length') == edges, edges)
    # source: shares of the lines and of what belongs to none make up the whole; the divergent lines are marked
    parts = b.eval('Array.from(document.querySelectorAll("#source tr.used")).map((e) => [Number(e.querySelector("button.ln").textContent), parseFloat(e.querySelector(".share")?.title ?? 0)])')
    none = b.eval('parseFloat((document.querySelector("#source .note")?.textContent.match(/^([0-9.]+) %/) ?? [0, 0])[1])')
    check(abs(sum(s for _, s in parts) + none - 100) < 0.2, parts, none)
    lanes = b.eval(f'Array.from(document.querySelectorAll("#source tr.used")).find((e) => e.querySelector("button.ln").textContent === "{inside}").children[2].className')
    check(lanes in ('poor', 'bad', 'fair'), lanes)
    # a line opens: its blocks and its PTX; a block's link leads to the block and back to the line
    b.eval(f'Array.from(document.querySelectorAll("#source button.ln")).find((e) => e.textContent === "{inside}").click()')
    b.settle()
    detail = b.eval('document.querySelector("#source tr.open").innerText')
    check('ld.global' in detail and 'block ' in detail, detail)
    block = b.eval('document.querySelector("#source tr.open a.chip").getAttribute("href").split("/").pop()')
    b.click('#source tr.open a.chip')
    check(b.eval('location.hash').endswith(f'/block/{block}') and b.eval('document.querySelector("#blocks tr.here").dataset.block') == block, block)
    check(b.eval('document.querySelector("#blocks .node.here").dataset.block') == block and 'leads to' in b.eval('document.querySelector("#blocks .blockdetail").innerText'), block)
    b.click('#blocks tr.here td.left a')
    check('/line/' in b.eval('location.hash') and b.eval('document.querySelector("#source tr.here") !== null'), b.eval('location.hash'))
    return k


def rows_of_tools(n, report):
    """Rows of a tool lead to kernel, line and block; rows of zero are folded."""
    b.go('#/tool/2')
    check(b.eval(title) == 'memory', b.eval(title))
    sites = report['tools']['memory']['sites']
    text = b.eval('document.querySelector("#main section.tooltable").innerText')
    check('without wasted or extra passes: show' in text, text[-300:])
    before = b.eval('document.querySelectorAll("#main section.tooltable tbody tr").length')
    b.eval('Array.from(document.querySelectorAll("#main section.tooltable .more button")).forEach((e) => e.click())')
    b.settle()
    b.eval('Array.from(document.querySelectorAll("#main section.tooltable .more button")).forEach((e) => e.click())')
    b.settle()
    # rows of one place that differ in numbers alone stand behind one
    stand_for = b.eval('[...document.querySelectorAll("#main section.tooltable tbody tr")].map((e) => Number((e.querySelector("button")?.textContent ?? "1").replace("× ", "")))')
    check(sum(stand_for) == len(sites) and len(stand_for) > before, len(sites), stand_for)
    lines = open(f'm{n}/memory.txt').read().split('\n\n')[1].split('\n')[2:]  # as the text has them
    told = [int(m.group(1)) if (m := re.search(r'  x (\d+)$', l)) else 1 for l in lines if not l.startswith('  x N')]
    check(sorted(told) == sorted(stand_for), told, stand_for)
    gather = next(s for s in sites if s['op'].startswith('ld.global') and shown(report['kernels'][s['kernel']]) == 'gather_1')
    row = f'Array.from(document.querySelectorAll("#main section.tooltable tbody tr")).find((e) => e.querySelector("a.kernel").textContent.startsWith("gather_1(") && e.textContent.includes("ld.global"))'
    check(f'{gather["sectors"] / gather["requests"]:.3g}' in b.eval(row + '.innerText'), b.eval(row + '.innerText'))
    b.eval(row + '.querySelector("td a").click()')
    b.settle()
    line, = by_hand(f'm{n}/many.cu', [' gather_1(', 'out[i] = in[at]'])
    check(b.eval('location.hash').endswith(f'/{line}') and b.eval('document.querySelector("#source tr.here button.ln").textContent') == str(line), line)
    check('ld.global' in b.eval('document.querySelector("#source tr.open").innerText'), 'the row of the tool is at its line')


def keyboard(n, report):
    order = [k['id'] for k in sorted(report['kernels'], key=lambda k: (-k['thread_instructions'], k['id']))]
    b.go(f'#/kernel/{order[3]}')
    b.key(']')
    check(b.eval('location.hash') == f'#/kernel/{order[4]}', 'the next kernel')
    b.key('['), b.key('[')
    check(b.eval('location.hash') == f'#/kernel/{order[2]}', 'the kernel before')
    b.key('o')
    check(b.eval('location.hash') == '#/', 'the overview')
    b.key('j'), b.key('j'), b.key('k'), b.key('j')
    second = b.eval('document.activeElement.getAttribute("href")')
    check(second == b.eval('document.querySelectorAll("#main tbody tr a.kernel")[1].getAttribute("href")'), second)
    b.key('Enter')
    check(b.eval('location.hash') == second, second)
    b.key('?')
    check(b.eval('document.querySelector("dialog").open'), 'the keys are shown')
    b.key('Escape')
    check(b.eval('document.querySelector("dialog") === null'), 'the keys are gone')


def sane(where):
    """For screen readers and keyboards: names, headings, one h1, tables with heads, no double ids."""
    faults = b.eval('''(() => {
      const out = [], name = (e) => (e.getAttribute('aria-label') || e.textContent || e.title || '').trim();
      for (const e of document.querySelectorAll('a, button, input, select')) if (!name(e) && !e.closest('label')) out.push(e.outerHTML.slice(0, 120));
      for (const t of document.querySelectorAll('table')) if (!t.querySelector('caption') || [...t.querySelectorAll('thead th')].some((e) => e.scope !== 'col')) out.push('table ' + t.outerHTML.slice(0, 120));
      const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
      if (new Set(ids).size !== ids.length) out.push('ids ' + ids.filter((x, i) => ids.indexOf(x) !== i));
      if (document.querySelectorAll('h1').length !== 1) out.push('h1');
      for (const e of document.querySelectorAll('[aria-labelledby]')) if (!document.getElementById(e.getAttribute('aria-labelledby'))) out.push('labelledby ' + e.outerHTML.slice(0, 80));
      return out; })()''')
    check(not faults, where, faults)


def looks(k):
    """Dark, narrow, printed."""
    light = b.eval('getComputedStyle(document.body).backgroundColor')
    b.media(scheme='dark')
    dark = b.eval('getComputedStyle(document.body).backgroundColor')
    check(light != dark, light, dark)
    b.key('d')
    check(b.eval('getComputedStyle(document.body).backgroundColor') == light, 'the key d turns it light')
    b.key('d')
    check(b.eval('getComputedStyle(document.body).backgroundColor') == dark, 'and dark')
    b.media()
    for width in (1400, 700, 360):
        b.size(width, 800)
        for hash in ('#/', f'#/kernel/{k["id"]}', '#/tools', '#/flame', '#/run'):
            b.go(hash)
            check(not b.eval(overflow), 'wider than the window', width, hash, b.eval('document.documentElement.scrollWidth'))
            sane((width, hash))
    b.size(1400, 1000)
    b.go(f'#/kernel/{k["id"]}')
    b.media('print')
    check(b.eval('getComputedStyle(document.querySelector(".jump")).display') == 'none', 'print')
    b.media()
    check(b.pdf().startswith(b'%PDF'), 'a PDF')


def checked():
    report = json.load(open('checked.json'))
    found = report['tools']['check']['findings']
    check(any(f['kind'] == 'race' and {f['line'], f['other']['line']} == {9, 10} for f in found), found)
    b.open('checked.html', '#/checks')
    check(b.eval(rows) == len(found) and f'{len(found)} finding' in b.eval('document.querySelector(".lead").textContent'), found)
    sane('checks')
    b.click('#main tbody td:nth-child(3) a')
    check('/line/' in b.eval('location.hash') and b.eval('document.querySelectorAll("#source .atline.error").length') == 2, 'both sides are marked')
    b.open('checked.html', '#/tools')
    check('counts are those of' in b.eval('document.getElementById("main").innerText'), 'blocks says where its counts are')


def advised():
    """Findings stand first, best first, again at their lines, and lead there."""
    report = json.load(open('advised.json'))
    found, unjudged = report['findings'], report['no_verdict']
    gains = [f for f in found if f['gain_pct'] > 0]
    check(gains and gains[0]['rule'] == 'divergence', found)
    b.open('advised.html')
    cards = b.eval('Array.from(document.querySelectorAll(".card, .verdict")).map((e) => e.innerText)')
    check(len(cards) == len(found) + len(unjudged) and all(f['text'] in c and f['rule'].replace('_', ' ') in c for f, c in zip(found, cards)), cards)
    check(f'estimated to gain {gains[0]["gain_pct"]:.1f} % of the kernels\' work as counted' in cards[0], cards[0])
    ranks = b.eval('Array.from(document.querySelectorAll(".card")).map((e) => [e.querySelector(".rank").innerText, e.querySelector(".cardhead").innerText])')
    check([r for r, _ in ranks] == [str(i + 1) for i in range(len(gains))] and all(' at ' in text for _, text in ranks), ranks)
    # verdicts are of another kind: no card, no rank, no place
    verdicts = b.eval('[...document.querySelectorAll(".verdict")].map((e) => [e.querySelector(".rank") === null, e.innerText, getComputedStyle(e).borderLeftWidth])')
    check(len(verdicts) == len(found) - len(gains) + len(unjudged) and all(plain and 'verdict' in text[:12] and width == '0px' for plain, text, width in verdicts), verdicts)
    # how sure stands with the measure, apart from the gain, and its word is explained
    sure = b.eval('[...document.querySelectorAll(".card .sure")].map((e) => [e.innerText, e.title, e.closest(".gain") === null])')
    ends = {'exact': 'exact', 'model': 'by a model'}
    check(all(s.startswith(f'{f["measure"]:.3g}') and s.endswith(f'{f["unit"]}, {ends[f["sure"]]}') for (s, _, _), f in zip(sure, gains)) and all('estimate' in title and apart for _, title, apart in sure), sure)
    b.click('.card a')
    check(b.eval('location.hash').endswith(f'/{gains[0]["line"]}') and b.eval('document.querySelector("#source tr.here .atline").innerText').startswith('divergence'), b.eval('location.hash'))
    sane('findings')
    # verdicts that say the same of several kernels are one line, with a link to each
    core = unpack.parts('m120/page.html')['core']
    few = core['report']['kernels'][3:7]
    core['report']['findings'], core['report']['no_verdict'] = [dict(gains[0], kernel=x['id'], rule='few_ctas', gain_pct=0, text='planted: few') for x in few], []
    unpack.replace('m120/page.html', 'few.html', 'core', core)
    b.open('few.html')
    (line,) = b.eval('[...document.querySelectorAll(".verdict")].map((e) => [e.innerText, [...e.querySelectorAll("a")].map((a) => a.getAttribute("href"))])')
    check(line[1] == [f'#/kernel/{x["id"]}' for x in few] and line[0].count('planted') == 1, line)
    check(b.eval('document.querySelectorAll(".card, td .badge.warn").length') == 0, 'verdicts are no findings')
    # one percentage for what equal CTAs would save
    core = unpack.parts('advised.html')['core']
    id = next(t['id'] for t in core['page']['tools'] if t['name'] == 'ctas')
    (table,) = [t for t in unpack.parts('advised.html')[f'tool-{id}']['tables'] if t['name'] == 'ctas']
    saves = table['rows'][0][[c[0] for c in table['columns']].index('equal CTAs save')]
    row = json.load(open('advised.json'))['tools']['ctas']['kernels'][0]
    check(abs(saves - 100 * max(0, 1 - row['even_share'] / row['grid_share'])) < 1e-6, saves, row)
    b.open('advised.html', f'#/tool/{id}')
    cells = b.eval('[[...document.querySelectorAll("#main thead th")].map((e) => e.textContent), [...document.querySelector("#main tbody tr").children].map((e) => e.innerText)]')
    check(cells[1][cells[0].index('equal CTAs save')].split('%')[0].strip() == f'{saves:.1f}', cells, saves)
    # without lines of the source: places of the PTX, and those that say the same once
    core = unpack.parts('advised.html')['core']
    (k,) = [k for k in core['report']['kernels'] if k['id'] == gains[0]['kernel']]
    places = [b['ptx_line'] for b in k['blocks']][:3]
    core['report']['no_verdict'] = [{'kernel': k['id'], 'why': 'caches decide, as planted'}]
    core['report']['findings'] = [dict(gains[0], file=None, line=None, ptx_line=at, text=f'planted here. Gain: by the model {at} cycles.', limit=f'Gain: by the model {at} cycles.') for at in places] + [f for f in found if f['gain_pct'] <= 0]
    unpack.replace('advised.html', 'alike.html', 'core', core)
    b.open('alike.html')
    cards = b.eval('Array.from(document.querySelectorAll(".card, .verdict:not(:last-child)")).map((e) => e.innerText)')
    check(b.eval('[...document.querySelectorAll(".card p .dim")].map((e) => e.textContent)') == [f'Gain: by the model {places[0]} cycles.'], 'what limits a gain stands apart')
    check(b.eval('document.querySelector(".verdict:last-child").innerText') == f'no verdict on {k["demangled"]}: caches decide, as planted', 'why there is no verdict')
    check(len(cards) == 1 + len(found) - len(gains) and 'The same at' in cards[0] and all(f'PTX {at}' in cards[0] for at in places), cards)
    b.click('.card .same a')
    check(b.eval('location.hash').endswith(f"/block/{k['blocks'][1]['id']}"), b.eval('location.hash'))
    sane('findings alike')


def inlined():
    """Calls that the compiler inlined: at their lines, and as frames of the flame graph, which agrees with the folded stacks."""
    source = open('inlined.cu').read().split('\n')
    at = lambda text: next(i for i, l in enumerate(source, 1) if text in l)
    stacks = {s: int(n) for s, n in (l.rsplit(' ', 1) for l in open('inlined.folded').read().splitlines())}
    total = json.load(open('inlined.json'))['kernels'][0]['thread_instructions']
    check(sum(stacks.values()) == total, stacks)
    # twist is inlined at three places: two in what is inlined itself, one in a function that stays a call
    want = {f'walk;both(int);twist(int);inlined.cu:{at("int twist")}', f'walk;apart(int, int);twist(int);inlined.cu:{at("int twist")}'}
    check(want <= set(stacks), stacks)
    b.open('inlined.html', f'#/kernel/0/line/0/{at("int twist")}')
    text = b.eval('document.querySelector("#source tr.open").innerText')
    check(all(f'twist(int) inlined at inlined.cu:{at(x)}' in text for x in ('y = twist(x)', 'twist(y ^ 5)', 'v = twist(v)')), text)
    check(f'both(int) inlined at inlined.cu:{at("out[at] =")}' in text, text)
    # with inlined: a line's own instructions and those inlined through calls on it, counted by hand from the stacks
    row = lambda line: f'Array.from(document.querySelectorAll("#source tr.used")).find((e) => e.querySelector("button.ln").textContent === "{line}")'
    through = sum(n for s, n in stacks.items() if 'both' in s or s.endswith(f':{at("out[at] =")}'))
    shown = b.eval(row(at('out[at] =')) + '.children[1].innerText')
    check(shown.replace('\n', '') == f'{100 * through / total:.1f}%', shown, through, total)
    reader.inlined_lines(b, check, at('out[at] ='), at('int twist'), 100 * sum(n for s, n in stacks.items() if 'both' in s and s.endswith(f'twist(int);inlined.cu:{at("int twist")}')) / total)
    b.open('inlined.html', '#/kernel/0')
    sane('inlined')
    frames = {name: float(share) for name, share in b.eval('Array.from(document.querySelectorAll("#flame .frame")).map((e) => [e.dataset.name, e.dataset.share])')}
    share = lambda part: 100 * sum(n for s, n in stacks.items() if part in s.split(';')) / total
    check({'walk', 'both(int)', 'apart(int, int)', 'twist(int)'} <= set(frames), frames)
    for name in ('both(int)', 'apart(int, int)'): check(abs(frames[name] - share(name)) < 0.001, name, frames[name], share(name))
    # a click widens a frame; the root brings all back
    widths = 'Array.from(document.querySelectorAll("#flame .frame")).map((e) => [e.dataset.name, Number(e.querySelector("rect").getAttribute("width"))])'
    pick = lambda name: b.eval(f'Array.from(document.querySelectorAll("#flame .frame")).find((e) => e.dataset.name === "{name}").dispatchEvent(new MouseEvent("click", {{bubbles: true}}))')
    before = dict(b.eval(widths))
    pick('apart(int, int)')
    after = dict(b.eval(widths))
    check(after['apart(int, int)'] == before['walk'] and 'both(int)' not in after and 'walk' in after, after)
    pick('walk')
    check(dict(b.eval(widths)) == before, b.eval(widths))
    # by keys: one stop for Tab, arrows to a child and its neighbour and back up, Enter widens and stays there
    check(b.eval('document.querySelectorAll("#flame .frame[tabindex=\\"0\\"]").length') == 1, 'one stop')
    name = 'document.activeElement.dataset.name'
    b.eval('document.querySelector("#flame .frame[tabindex=\\"0\\"]").focus()')
    way = []
    for key in ('ArrowDown', 'ArrowRight', 'ArrowLeft', 'ArrowUp', 'ArrowDown', 'ArrowRight'):
        b.key(key)
        way.append(b.eval(name))
    first, second = [f for f, _ in b.eval('Array.from(document.querySelectorAll("#flame .frame")).filter((e) => e.querySelector("rect").getAttribute("y") === "19").map((e) => [e.dataset.name, Number(e.querySelector("rect").getAttribute("x"))]).sort((a, b) => a[1] - b[1])')][:2]
    check(way == [first, second, first, 'walk', first, second], way, first, second)
    b.key('Enter')
    check(b.eval(name) == second and dict(b.eval(widths))[second] == before['walk'] and b.eval('document.querySelectorAll("#flame .frame[tabindex=\\"0\\"]").length') == 1, b.eval(name))
    pick('walk')
    # a source that was written anew since the run is told, and only then
    doubt = lambda: 'inlined.cu was changed since the run' in b.eval('document.querySelector("#source").innerText')
    b.go('#/kernel/0')
    check(not doubt(), 'a source as it was')
    b.open('changed.html', '#/kernel/0')
    check(doubt(), b.eval('document.querySelector("#source").innerText')[:300])
    b.open('inlined.html')
    b.go('#/flame')
    check(b.eval(title) == 'Flame graph' and not b.eval(overflow), b.eval(title))
    sane('flame graph')


def time_line():
    """Every launch is a span of its stream's row; keys zoom and move; a click tells what a span is. Many spans are drawn fast."""
    launches = json.load(open('timed.json'))['launches']
    spans = unpack.parts('timed.html')['spans']
    work = [r for r in spans['rows'] if r['work']]
    name = spans['names'].index('bfs_step')
    check(len(work) == 1 and sum(work[0]['spans'][i + 2] == name for i in range(0, len(work[0]['spans']), 4)) == len(launches) > 1, work)
    check(sum(n for r in spans['rows'] for n in r['spans'][3::4]) == spans['spans'] and spans['resolution_ns'] == 0, spans['spans'])
    b.open('timed.html', '#/time')
    check(b.eval(title) == 'Time line', b.eval(title))
    sane('time line')
    said = 'document.getElementById("status").textContent'
    b.eval('document.querySelector("canvas.time").focus()')
    b.key('+')
    first = b.eval(said)
    b.key('ArrowRight')
    check(first.startswith('from ') and b.eval(said) != first, first, b.eval(said))
    b.key('0')
    check(b.eval(said).startswith('from 0 ns'), b.eval(said))
    # spans are picked by keys, too: each of the row of work by turns, and again back; a kernel by its short name, with its link
    for _ in range(len(spans['rows'])): b.key('ArrowDown')
    told = [b.eval(said)]
    for _ in range(len(work[0]['spans']) // 4 + 2):
        b.key('n')
        if b.eval(said) != told[-1]: told.append(b.eval(said))
    check(len(told) == len(work[0]['spans']) // 4 and all('stream' in t for t in told), told[:3], len(told))
    b.key('p')
    check(b.eval(said) == told[-2], b.eval(said), told[-2:])
    while 'bfs_step' not in b.eval(said): b.key('p')
    check(b.eval('document.querySelector(".timebox ~ .note a.kernel").textContent').startswith('bfs_step'), b.eval(said))
    b.key('0')
    # the middle of the longest span of work
    at = most = 0
    for i in range(0, len(work[0]['spans']), 4):
        at += work[0]['spans'][i]
        if work[0]['spans'][i + 1] > most: most, middle, which = work[0]['spans'][i + 1], at + work[0]['spans'][i + 1] / 2, work[0]['spans'][i + 2]
    box = b.eval('(({x, y, width}) => [x, y, width])(document.querySelector("canvas.time").getBoundingClientRect())')
    x = box[0] + 190 + middle / spans['length_ns'] * (box[2] - 190)
    # launches are far shorter than the time before them: the wheel brings them apart
    b.eval(f'for (let i = 0; i < 24; i++) document.querySelector("canvas.time").dispatchEvent(new WheelEvent("wheel", {{clientX: {x}, clientY: {box[1] + 40}, deltaY: -1, bubbles: true, cancelable: true}}))')
    for kind in ('mousePressed', 'mouseReleased'):
        b.call('Input.dispatchMouseEvent', type=kind, x=x, y=box[1] + 26 + 26 * spans['rows'].index(work[0]) + 11, button='left', clickCount=1)
    b.settle()
    check(spans['names'][which] in b.eval(said), b.eval(said), spans['names'][which])
    # kernels have their short names there
    core = unpack.parts('timed.html')['core']
    core['report']['kernels'][0].update(name='_Z8bfs_stepi', demangled='void deep::bfs_step(int)')
    unpack.replace('timed.html', 'mangled.html', 'core', core)
    unpack.replace('mangled.html', 'mangled.html', 'spans', dict(spans, names=['_Z8bfs_stepi'] * len(spans['names'])))
    b.open('mangled.html')
    b.eval('window.drawn = []; const f = CanvasRenderingContext2D.prototype.fillText; CanvasRenderingContext2D.prototype.fillText = function (t, ...at) { drawn.push(t); f.call(this, t, ...at); }; 0')
    b.go('#/time')
    drawn = b.eval('drawn')
    check('bfs_step' in drawn and not any('_Z8' in t for t in drawn), drawn)
    # the table of work leads to its kernels
    b.open('timed.html', '#/tool/0')
    b.eval('document.querySelectorAll("details.tooltable").forEach((d) => { d.open = true; })')
    b.wait('document.querySelectorAll("details.tooltable table").length > 1')
    links = b.eval('[...document.querySelectorAll("details.tooltable a.kernel")].map((a) => a.textContent)')
    check(links == ['bfs_step'], links)
    # as many spans as a page ever holds
    row = dict(work[0], spans=[v for i in range(200000) for v in (1000, 700, 1 + i % 2, 1)])
    many = dict(spans, rows=[row], spans=200000, length_ns=200000 * 1000, names=['', 'a', 'b'])
    unpack.replace('timed.html', 'many.html', 'spans', many)
    ready = b.open('many.html', '#/time')
    b.eval('document.querySelector("canvas.time").focus()')
    steps = []
    for key in '+++---':
        before = b.eval('performance.now()')
        b.eval(f'document.querySelector("canvas.time").dispatchEvent(new KeyboardEvent("keydown", {{key: "{key}", bubbles: true}}))')
        steps.append(b.eval('new Promise((done) => requestAnimationFrame(() => done(performance.now())))') - before)
    print(f'200,000 spans: ready after {ready:.0f} ms, a zoom step {max(steps):.0f} ms at most')


for n in (1, 120, 500):
    report = json.load(open(f'm{n}/report.json'))
    ready = b.open(f'm{n}/page.html')
    print(f'{n} kernels: {os.path.getsize(f"m{n}/page.html") // 1024} KiB, ready after {ready:.0f} ms')
    overview(n, report)
    if n > 1:
        filters(n, report)
        k = one_kernel(n, report)
        rows_of_tools(n, report)
        keyboard(n, report)
    else:
        k = report['kernels'][0]
    looks(k)
checked()
advised()
reader.flow(b, check)
reader.reacts(b, check)
reader.fits(b, check)
reader.opened(b, check)
reader.uncounted(b, check)
reader.names(b, check)
reader.boxes(b, check)
reader.elsewhere(b, check)
reader.shades(b, check)
reader.groups(b, check)
reader.printed(b, check)
reader.words(b, check)
reader.sides(b, check)
seed = int(os.environ.get('SEED', random.SystemRandom().randrange(1 << 30)))
print('seed', seed)
reader.sources(b, check, seed)
reader.charges(b, check)
reader.branch_lines(b, check, seed)
reader.charts(b, check, json.load(open('m120/report.json')))
if os.path.exists('inlined.html'): inlined()
time_line()
outside = [r for r in b.requests if not r.startswith(('file:', 'about:', 'data:'))]
check(not outside, outside)
b.close()
