"""formulas.py STAT.json REPORT.json: every formula that `margay ptx stat --json` gives for a kernel of the
report, evaluated for every launch, is that launch's count of the block. Prints how many were compared."""
import json, sys

stat, report = (json.load(open(f)) for f in sys.argv[1:3])


class Dim(int):
    """A number with components."""
    def __new__(cls, xyz):
        self = int.__new__(cls, xyz[0] * xyz[1] * xyz[2])
        self.x, self.y, self.z = xyz
        return self


def matching(text, at):
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == '(') - (text[i] == ')')
        if not depth:
            return i
    raise ValueError(text)


def evaluate(text, launch):
    grid, block = launch['grid'], launch['block']
    names = {'min': min, 'max': max, 'ceil': lambda a, b: -(-a // b), 'bits': lambda a: max(a, 0).bit_length(),
             'gridDim': Dim(grid), 'blockDim': Dim(block), 'threads': Dim([g * b for g, b in zip(grid, block)])}
    for i, a in enumerate(launch['arguments']):
        value, bits = int(a.get('value') or '0', 16), 8 * a['bytes']
        names[f'arg{i}'] = value - (value >> (bits - 1) << bits)
    while 'S(' in text:
        at = text.index('S(')
        end = matching(text, at + 1)
        code = compile(text[at + 2:end], 'sum', 'eval')
        total = 0
        for cz in range(grid[2]):
            for cy in range(grid[1]):
                for cx in range(grid[0]):
                    names['blockIdx'] = Dim([cx, cy, cz])
                    for tz in range(block[2]):
                        for ty in range(block[1]):
                            for tx in range(block[0]):
                                names['threadIdx'] = Dim([tx, ty, tz])
                                total += eval(code, {'__builtins__': {}}, names)
        text = text[:at] + str(total) + text[end + 1:]
    return eval(text, {'__builtins__': {}}, names)


kernels = {f['name']: f['blocks'] for m in stat['modules'] for f in m['functions'] if f['kernel']}
names = {k['id']: k['name'] for k in report['kernels']}
compared = wrong = 0
seen = set()
for launch in report['launches']:
    key = (launch['kernel'], str(launch['grid']), str(launch['block']), json.dumps(launch['arguments']))
    if launch['thread_entries'] is None or key in seen:
        continue
    seen.add(key)
    for b in kernels.get(names[launch['kernel']], []):
        if b['thread_entries'] is None:
            continue
        want, got = launch['thread_entries'][b['id']], evaluate(b['thread_entries'], launch)
        compared += 1
        if want != got:
            wrong += 1
            print(f"{names[launch['kernel']]} block {b['id']}: {b['thread_entries']} = {got}, counted {want}")
print(compared, 'counts compared,', wrong, 'differ')
sys.exit(1 if wrong or not compared else 0)
