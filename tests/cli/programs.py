"""What the programs of examples/ do, computed here: for tests that compare counts and maps with it."""


def pick(state, limit):
    state = (state * 1664525 + 1013904223) & 0xffffffff
    return state, ((state >> 4) * limit) >> 28


def collatz(v):
    n = 0
    while v != 1:
        v = 3 * v + 1 if v & 1 else v // 2
        n += 1
    return n


STEPS = [collatz(i + 1) for i in range(1000)]


def hist(values):
    out = {}
    for v in values:
        lo = 0 if v == 0 else 1 << (v.bit_length() - 1)
        out[lo] = out.get(lo, 0) + 1
    return [{'lo': lo, 'hi': max(1, 2 * lo), 'count': n} for lo, n in sorted(out.items())]


def stencil_states(n, steps):
    """What each launch of stencil stores: exact in single precision."""
    state, p = 5, []
    for _ in range(n * n):
        state, v = pick(state, 4096)
        p.append(float(v))
    for _ in range(steps):
        q = list(p)
        for y in range(1, n - 1):
            for x in range(1, n - 1):
                i = y * n + x
                q[i] = 0.5 * p[i] + 0.125 * (p[i - 1] + p[i + 1] + p[i - n] + p[i + n])
        p = q
        yield p
