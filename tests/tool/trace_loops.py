"""Kernels with loops of many shapes, drawn by a seed, and what their lanes access, by running the same program here.

trace_loops.py make SEED N: loops.ptx, args (for ptxrun), want.json     trace_loops.py check PRINT.json [OTHER.json]:
every lane's accesses in its order are those of want.json; OTHER, of another run: the same records, warp by warp, of kernels
whose lanes go together (where they part, or one waits for the host alone, when they meet again is the device's matter)."""
import json, random, sys

BUFFER = 1 << 20


class Kernel:
    def __init__(self, r, name):
        self.r, self.name, self.code, self.n_regs, self.labels = r, name, [], 0, 0
        self.block = r.choice([(32, 1), (64, 1), (16, 4), (8, 8), (48, 1), (4, 10), (96, 1)])
        self.grid, self.n = r.randint(1, 3), r.randint(0, 9)
        self.threads = self.block[0] * self.block[1]
        self.want = [[[] for _ in range(self.threads)] for _ in range(self.grid)]
        self.calm = r.random() < 0.65  # all lanes go the same way: barriers may stand anywhere
        self.body = self.draw(0, [])
        if not self.calm and r.random() < 0.6: self.body.insert(0, ('leave', r.randint(1, self.threads)))

    # ---- drawing: statements are tuples

    def draw_access(self, loops):
        r = self.r
        width = r.choice([1, 4, 4, 4, 8, 16])
        how = r.choice(['index', 'index', 'pointer', 'short', 'odd', 'unsigned'] if loops else ['index'])
        scale = {l: r.choice([0, 0, 1, 1, 2, 3, 32, -1, 65, 100]) for l in loops}
        lane = r.choice([0, 1, 1, 1, 2, 5, -1])
        return ('access', r.choice(['ld', 'ld', 'st', 'red'] if width == 4 else ['ld', 'st']), width, how, r.randint(3000, 6000), lane, r.choice([0, 7, 64]), scale,
                r.choice([0, 16, 48]), r.random() < 0.1 and not self.calm,
                [0] + [r.choice([16, 32, -16, 64]) for _ in range(r.choice([0, 0, 1, 3]) if how == 'pointer' else 0)])

    def draw(self, depth, loops):
        r, out = self.r, []
        for _ in range(r.randint(1, 4)):
            what = r.random()
            if depth < 3 and what < (0.75 if depth == 0 else 0.2):
                self.labels += 1
                l = self.labels
                rounds = r.choice([('const', r.randint(0, 9)), ('const', r.randint(0, 40)), ('n',), ('const', 1) if self.calm else ('lane', r.randint(1, 7))])
                form = r.choice(['until', 'until', 'while'])
                out.append(('loop', l, form, rounds, self.draw(depth + 1, loops + [l])))
            elif what < 0.84:
                out.append(self.draw_access(loops))
            elif what < 0.88 and self.calm:
                out.append(('barrier',))
            elif what < 0.93 and loops:
                out.append(('if', ('lane', r.randint(0, 40)) if not self.calm and r.random() < 0.5 else ('round', loops[-1], r.randint(0, 3)), [self.draw_access(loops)]))
            elif what < 0.97 and loops:
                out.append(('break', loops[-1], r.randint(0, 6)))
            else:
                out.append(self.draw_access(loops))
        return out

    # ---- running: a lane

    def rounds_of(self, rounds, tid):
        return {'const': lambda: rounds[1], 'n': lambda: self.n, 'lane': lambda: tid % rounds[1]}[rounds[0]]()

    def index(self, a, tid, cta, i):
        how, base, lane, per_cta, scale = a[3:8]
        v = base + lane * tid + per_cta * cta + sum(k * i[l] for l, k in scale.items())
        if how == 'short': return (60000 + lane * tid + sum(k * i[l] * 57 for l, k in scale.items())) & 0xffff
        if how == 'odd': return base + tid + sum(i[l] * i[l] * 13 % 97 for l in scale)
        return v

    def run(self, body, tid, cta, i):
        for s in body:
            if s[0] == 'access':
                if s[9] and tid % 3 == 0: continue  # guarded
                for more in s[10]:  # unrolled: beside it
                    self.want[cta][tid].append([{'ld': 'load', 'st': 'store', 'red': 'atomic'}[s[1]], s[2], self.index(s, tid, cta, i) * s[2] + (0 if s[3] == 'short' else s[8]) + more])
            elif s[0] == 'loop':
                total, k = self.rounds_of(s[3], tid), 0
                while k < total or (k == 0 and s[2] == 'until'):
                    i[s[1]] = k
                    if self.run(s[4], tid, cta, i) == s[1]: break
                    k += 1
            elif s[0] == 'if':
                if (tid < s[1][1] if s[1][0] == 'lane' else i[s[1][1]] & 3 == s[1][2]): self.run(s[2], tid, cta, i)
            elif s[0] == 'break':
                if i[s[1]] == s[2]: return s[1]
            elif s[0] == 'leave':
                if tid >= s[1]: return -1
        return 0

    # ---- PTX

    def reg(self, kind='r'):
        self.n_regs += 1
        return f'%{kind}{self.n_regs}'

    def put(self, *lines):
        self.code += lines

    def address(self, a, i, pointers, more=0):
        how, base, lane, per_cta, scale, off = a[3:9]
        unit = a[2]
        if how == 'pointer': return f'[{pointers[id(a)]}+{off + more}]'
        v, w, d, at = self.reg(), self.reg(), self.reg('d'), self.reg('d')
        if how == 'short':
            h = self.reg('h')
            self.put(f'mad.lo.s32 {v}, %own, {lane}, 60000;')
            for l, k in scale.items(): self.put(f'mad.lo.s32 {v}, {i[l]}, {k * 57}, {v};')
            self.put(f'cvt.u16.u32 {h}, {v};', f'mul.wide.u16 {w}, {h}, {unit};', f'cvt.u64.u32 {d}, {w};')
        elif how == 'odd':
            t = self.reg()
            self.put(f'add.s32 {v}, %own, {base};')
            for l in scale: self.put(f'mul.lo.s32 {t}, {i[l]}, {i[l]};', f'mul.lo.s32 {t}, {t}, 13;', f'rem.u32 {t}, {t}, 97;', f'add.s32 {v}, {v}, {t};')
            self.put(f'mul.wide.u32 {d}, {v}, {unit};')
        else:
            self.put(f'mad.lo.s32 {v}, %own, {lane}, {base};', f'mad.lo.s32 {v}, %cta, {per_cta}, {v};')
            for l, k in scale.items(): self.put(f'mad.lo.s32 {v}, {i[l]}, {k}, {v};')
            self.put(f'mul.wide.{"u32" if how == "unsigned" else "s32"} {d}, {v}, {unit};')
        self.put(f'add.s64 {at}, %buf, {d};')
        return f'[{at}+{0 if how == "short" else off}]'

    def emit(self, body, i, pointers):
        for s in body:
            if s[0] == 'access':
                guard = '@%odd ' if s[9] else ''
                op = {1: ('u8', '%h1'), 4: ('u32', '%z'), 8: ('u64', '%zd'), 16: ('v2.u64', '{%zd, %ze}')}[s[2]]
                for more in s[10]:
                    at = self.address(s, i, pointers, more)
                    self.put(guard + {'ld': f'ld.global.{op[0]} {op[1]}, {at};', 'st': f'st.global.{op[0]} {at}, {op[1]};', 'red': f'red.global.add.u32 {at}, %z;'}[s[1]])
            elif s[0] == 'loop':
                self.emit_loop(s, i, pointers)
            elif s[0] == 'barrier':
                self.put('bar.sync 0;')
            elif s[0] == 'if':
                p, out = self.reg('p'), f'$if{id(s)}'
                if s[1][0] == 'lane':
                    self.put(f'setp.ge.u32 {p}, %own, {s[1][1]};')
                else:
                    t = self.reg()
                    self.put(f'and.b32 {t}, {i[s[1][1]]}, 3;', f'setp.ne.u32 {p}, {t}, {s[1][2]};')
                self.put(f'@{p} bra {out};')
                self.emit(s[2], i, pointers)
                self.put(f'{out}:')
            elif s[0] == 'break':
                p = self.reg('p')
                self.put(f'setp.eq.u32 {p}, {i[s[1]]}, {s[2]};', f'@{p} bra $out{s[1]};')
            elif s[0] == 'leave':
                p = self.reg('p')
                self.put(f'setp.ge.u32 {p}, %own, {s[1]};', f'@{p} exit;')

    def pointers_of(self, body):
        for s in body:
            if s[0] == 'access' and s[3] == 'pointer': yield s
            if s[0] == 'if': yield from self.pointers_of(s[2])

    def emit_loop(self, s, i, pointers):
        _, l, form, rounds, body = s
        k, total, p = self.reg(), self.reg(), self.reg('p')
        if rounds[0] == 'const': self.put(f'mov.u32 {total}, {rounds[1]};')
        elif rounds[0] == 'n': self.put(f'mov.u32 {total}, %n;')
        else: self.put(f'rem.u32 {total}, %own, {rounds[1]};')
        self.put(f'mov.u32 {k}, 0;')
        inner, mine = {**i, l: k}, list(self.pointers_of(body))
        for a in mine: # of round 0, then stepped
            at = self.reg('d')
            begin = ('access', a[1], a[2], 'index', *a[4:8], 0, False, [0])
            text = self.address(begin, inner, pointers)
            self.put(f'mov.u64 {at}, {text[1:].split("+")[0]};')
            pointers[id(a)] = at
        if form == 'while': self.put(f'bra $test{l};')
        self.put(f'$head{l}:')
        self.emit(body, inner, pointers)
        for a in mine: self.put(f'add.s64 {pointers[id(a)]}, {pointers[id(a)]}, {a[7].get(l, 0) * a[2]};')
        self.put(f'add.u32 {k}, {k}, 1;')
        if form == 'while': self.put(f'$test{l}:')
        self.put(f'setp.lt.u32 {p}, {k}, {total};', f'@{p} bra $head{l};', f'$out{l}:')

    def text(self):
        self.emit(self.body, {}, {})
        kinds = {'r': 'b32', 'd': 'b64', 'p': 'pred', 'h': 'b16'}
        regs = '\n'.join(f'.reg .{t} %{k}<{self.n_regs + 2}>;' for k, t in kinds.items())
        x, y = self.block
        return f'''.visible .entry {self.name}(.param .u64 buf, .param .u32 n)
{{
{regs}
.reg .b32 %own, %cta, %n, %z, %tx, %ty;
.reg .b64 %buf, %zd, %ze;
.reg .pred %odd;
ld.param.u64 %buf, [buf];
ld.param.u32 %n, [n];
cvta.to.global.u64 %buf, %buf;
mov.u32 %tx, %tid.x;
mov.u32 %ty, %tid.y;
mad.lo.u32 %own, %ty, {x}, %tx;
mov.u32 %cta, %ctaid.x;
mov.u32 %z, 0;
mov.u16 %h1, 0;
mov.u64 %zd, 0;
mov.u64 %ze, 0;
rem.u32 %tx, %own, 3;
setp.ne.u32 %odd, %tx, 0;
''' + '\n'.join(self.code) + '\nret;\n}\n'


MOST = 30000  # accesses of lanes of a kernel: tests take seconds


def drawn(r, name):
    while True:
        k = Kernel(r, name)
        for cta in range(k.grid):
            for tid in range(k.threads):
                if sum(map(len, k.want[cta])) <= MOST: k.run(k.body, tid, cta, {})
        if sum(sum(map(len, w)) for w in k.want) <= MOST: return k


def make(seed, n):
    r = random.Random(seed)
    kernels = [drawn(r, f'k{i}') for i in range(n)]
    with open('loops.ptx', 'w') as f:
        f.write('.version 7.8\n.target sm_80\n.address_size 64\n')
        for k in kernels: f.write(k.text())
    with open('args', 'w') as f: f.write('\n'.join(f'{k.name}:{k.grid},1,1:{k.block[0]},{k.block[1]},1:{k.n}' for k in kernels))
    json.dump([[k.calm, k.want] for k in kernels], open('want.json', 'w'))


def rows(path):
    return [r['fields'] for r in map(json.loads, open(path)) if r['kind'] in ('trace.access', 'trace.step')]


def buffer(of):
    return next(int(s['dst'], 16) for s in of if s.get('kind') == 'alloc' and s['bytes'] == BUFFER)


def by_warp(of):
    base, out = buffer(of), {}
    for a in of:
        if 'access' in a:
            out.setdefault((a['launch'], a['cta'], a['warp']), []).append((a['number'], a['instruction'], a['access'], a['mask'], [p - base for p in a['addresses']]))
    return out


def check(path, other):
    want, of = json.load(open('want.json')), rows(path)
    base, got = buffer(of), {}
    for a in of:
        if not a.get('bytes') or 'access' not in a: continue
        lanes = [l for l in range(32) if a['mask'] >> l & 1]
        for l, p in zip(lanes, a['addresses']): got.setdefault((a['launch'], a['cta'], 32 * a['warp'] + l), []).append([a['access'], a['bytes'], p - base])
    for k, (_, of_kernel) in enumerate(want):
        for cta, threads in enumerate(of_kernel):
            for tid, accesses in enumerate(threads):
                assert got.get((k, cta, tid), []) == accesses, (k, cta, tid, got.get((k, cta, tid), [])[:20], accesses[:20])
    if other:
        a, b = by_warp(of), by_warp(rows(other))
        assert a.keys() == b.keys()
        for w in a: assert not want[w[0]][0] or a[w] == b[w], (w, next((x, y) for x, y in zip(a[w], b[w]) if x != y) if len(a[w]) == len(b[w]) else (len(a[w]), len(b[w])))
    print(sum(map(len, got.values())), 'accesses of lanes')


if sys.argv[1] == 'make':
    make(int(sys.argv[2]), int(sys.argv[3]))
else:
    check(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
