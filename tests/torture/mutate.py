"""mutate.py SEED N DIR FILE...: N mutants of the files in DIR; the size in a fatbin's own head stays, since the driver believes it."""
import os, random, re, sys

seed, n, where, names = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sorted(sys.argv[4:])
r = random.Random(seed)
data = [(os.path.basename(f), open(f, 'rb').read()) for f in names]
words = sorted({w for name, d in data if name.endswith('.ptx') for w in re.findall(rb'[.%A-Za-z_0-9]+', d)})


def bits(d, head):
    d = bytearray(d)
    for _ in range(r.choice((1, 1, 2, 5, 20))):
        at = r.randrange(head, len(d))
        d[at] ^= 1 << r.randrange(8)
    return bytes(d)


def cut(d, head):
    a = r.randrange(head, len(d))
    return d[:a] if r.random() < .5 else d[:a] + d[min(len(d), a + r.randrange(1, 60)):]


def line(d, head):
    lines = d.split(b'\n')
    a, b = r.randrange(len(lines)), r.randrange(len(lines))
    lines[a], lines[b] = (lines[b], lines[a]) if r.random() < .5 else (lines[a], lines[a])
    return b'\n'.join(lines)


def word(d, head):
    at = list(re.finditer(rb'[.%A-Za-z_0-9]+', d))
    for m in sorted(r.sample(at, min(len(at), r.choice((1, 2, 4)))), key=lambda m: -m.start()):
        new = r.choice((r.choice(words), b'%d' % r.choice((0, 1, -1, 255, 2**31, 2**32, 2**63, 2**64, 10**30)), b''))
        d = d[:m.start()] + new + d[m.end():]
    return d


os.makedirs(where, exist_ok=True)
for k in range(n):
    name, d = r.choice(data)
    text = name.endswith('.ptx')
    if len(d) < 40:
        continue
    m = r.choice((bits, cut, line, word, word) if text else (bits,))(d, 0 if text else 16)
    if text:
        m = m.replace(b'\0', b'~')
    open(os.path.join(where, f'{k:05}-{name}'), 'wb').write(m)
