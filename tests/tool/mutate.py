#!/usr/bin/env python3
"""mutate.py FILE SEED: the program with other names, other sizes and lines that have moved; the marked line keeps its mark.

Every identifier that the program itself declares gets a name of its own, comments and empty lines are put between lines, and sizes are drawn
from what keeps the fault a fault. Equal seeds give equal programs."""
import random, re, sys

KEPT = set('''alignas auto bool break case char class const constexpr continue default do double else enum extern false float for if inline int
long namespace new return short signed sizeof static struct switch template this true typedef typename union unsigned using void volatile while
__global__ __device__ __shared__ __host__ __syncthreads __noinline__ __forceinline__ blockIdx blockDim threadIdx gridDim x y z dim3 main argc argv
include define pragma unroll algorithm common h std vector size begin end sort swap size_t printf cudaDeviceSynchronize CHECK to_device from_device
mix is_fault print_sum f u FAULT strcmp fprintf stderr'''.split())
SIZES = {  # what is drawn: (pattern, choices)
    'particles.cu': [(r'n = 50000', [f'n = {n}' for n in (30011, 48000, 77777)])],
    'matvec.cu': [(r'rows = 2048, columns = 90', [f'rows = {128 * r}, columns = {c}' for r, c in ((12, 75), (18, 110), (24, 64))])],
    'transpose.cu': [(r'SIDE = 512', [f'SIDE = {s}' for s in (256, 384, 640)])],
    'filter.cu': [(r'n = 128 \* 60', [f'n = 128 * {k}' for k in (33, 50, 90)])],
    'species.cu': [(r'n = 30000', [f'n = {n}' for n in (16000, 41000, 64032)])],
    'hashing.cu': [(r'n = 64 \* 150', [f'n = 64 * {k}' for k in (90, 128, 202)]), (r'% 60', ['% 45', '% 70', '% 90'])],
    'triangle.cu': [(r'ROWS = 1000', [f'ROWS = {r}' for r in (640, 850, 1200)])],
    'buckets.cu': [(r'BUCKETS = 300,', [f'BUCKETS = {b},' for b in (250, 340, 400)])],
}


def pieces(text):
    """(is it code, text): code apart from comments and strings."""
    at = 0
    for m in re.finditer(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\]|\\.)*"', text, re.S):
        yield True, text[at:m.start()]
        yield False, m.group()
        at = m.end()
    yield True, text[at:]


def rename(text, draw):
    words = {w for code, t in pieces(text) if code for line in t.split('\n') if not line.startswith('#include') for w in re.findall(r'\b[A-Za-z_]\w*\b', line)}
    new = {}
    for w in sorted(words - KEPT):
        while True:
            name = ''.join(draw.choice('bcdfghklmnprstvw') + draw.choice('aeiou') for _ in range(draw.randint(2, 4)))
            if name not in KEPT and name not in words and name not in new.values() and name not in ('do',): break
        new[w] = name.upper() if w.isupper() else name
    swap = lambda m: new.get(m.group(), m.group())
    line = lambda l: l if l.startswith('#') else re.sub(r'\b[A-Za-z_]\w*\b', swap, l)
    return ''.join('\n'.join(map(line, t.split('\n'))) if code else t for code, t in pieces(text))


def shift(text, draw):
    out = []
    for line in text.split('\n'):
        out.append(line)
        if line.endswith((';', '{', '}')) or not line:
            out += [draw.choice(['', '    /* moved */', '// moved']) for _ in range(draw.choice([0, 0, 0, 1, 2, 5]))]
    return '\n'.join(out)


def main(path, seed):
    draw = random.Random(f'{seed} {path.rsplit("/", 1)[-1]}')
    text = open(path).read()
    for pattern, choices in SIZES[path.rsplit('/', 1)[-1]]:
        changed = re.sub(pattern, draw.choice(choices), text)
        assert changed != text, (path, pattern)
        text = changed
    text = shift(rename(text, draw), draw)
    assert len(re.findall(r'FAULT \*/', text)) == 1, path
    sys.stdout.write(text)


if __name__ == '__main__': main(sys.argv[1], sys.argv[2])
