"""flow.py FLOW.json STAT.json CFG.txt: reads and writes against reaching definitions, set by set until nothing changes."""
import collections, json, re, sys

flow, stat = (json.load(open(f)) for f in sys.argv[1:3])
text = open(sys.argv[3]).read()
blocks_in_text = len(re.findall(r'^  block ', text, re.M))
assert blocks_in_text == sum(len(f['blocks']) for m in flow['modules'] for f in m['functions'])


def check(func, counted):
    blocks = func['blocks']
    insts = [dict(i, block=b['id']) for b in blocks for i in b['instructions']]
    first = {}
    for n, i in enumerate(insts): first.setdefault(i['block'], n)
    last = {i['block']: n for n, i in enumerate(insts)}
    after = [[n + 1] if n != last[i['block']] else [first[s] for s in blocks[i['block']]['succ']] for n, i in enumerate(insts)]
    # what reaches the head of each instruction: register -> lines and 'entry'
    reach = [collections.defaultdict(set) for _ in insts]
    seen, work = set(), [0]
    for r in {x['register'] for i in insts for x in i['reads']}: reach[0][r].add('entry')
    while work:
        n = work.pop()
        i = insts[n]
        out = dict(reach[n])
        for w in i['writes']:
            guarded = i['text'].startswith('@')
            out[w['register']] = (out.get(w['register'], set()) if guarded else set()) | {i['ptx_line']}
        for s in after[n]:
            before = sum(len(v) for v in reach[s].values())
            for r, lines in out.items(): reach[s][r] |= lines
            if s not in seen or sum(len(v) for v in reach[s].values()) != before:
                seen.add(s)
                work.append(s)
    users = collections.defaultdict(set)
    for n, i in enumerate(insts):
        if not blocks[i['block']]['reachable']: continue
        for x in i['reads']:
            want = reach[n][x['register']]
            assert set(x['from']) == want - {'entry'} and x['entry'] == ('entry' in want), (func['name'], i, want)
            assert x['from'] == sorted(set(x['from']))
            for l in want - {'entry'}: users[x['register'], l].add(i['ptx_line'])
    for i in insts:
        if not blocks[i['block']]['reachable']: continue
        for w in i['writes']: assert set(w['used_by']) == users[w['register'], i['ptx_line']], (func['name'], i, users[w['register'], i['ptx_line']])
        assert (i['uniform'] is None) == (not func['kernel'])
    for b, c in zip(blocks, counted['blocks']):
        ops = collections.Counter(re.sub(r'^@!?\S+ ', '', i['text']).split()[0].rstrip(';') for i in b['instructions'])
        assert ops == c['opcodes'] and sum(ops.values()) == c['instructions'], (ops, c)
    return len(insts)


n = sum(check(f, c) for m, s in zip(flow['modules'], stat['modules']) for f, c in zip(m['functions'], s['functions']))
assert n
