"""Exact counts of the examples against closed forms: closed_forms.py REPORT.json NAME SIZE [STEPS]"""
import json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
sys.dont_write_bytecode = True
from programs import collatz


def main():
    report, name, n = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
    steps = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    assert report['margay_json'] == 1
    cov = report['coverage']
    assert cov['instrumented'] == cov['launches'] > 0 and not cov['failed'] and not cov['unknown'], cov
    k, = report['kernels']
    ops = k['opcodes']
    bad = []

    def want(what, got, expected):
        if got != expected:
            bad.append(f'{what}: {got}, closed form {expected}')

    def total(*stems, of='thread'):
        """Sum over the opcodes that start with a stem (up to a dot)."""
        return sum(v[of] for op, v in ops.items() if any(op == s or op.startswith(s + '.') for s in stems))

    entry = k['blocks'][0]
    ctas = {'saxpy': -(-n // 256), 'reduce': -(-n // 256), 'divergent': -(-n // 128), 'matmul': (n // 16) ** 2,
            'histogram': 16, 'stencil': (-(-n // 16)) ** 2}[name]
    threads = ctas * (128 if name == 'divergent' else 256)
    want('launches', k['launches'], steps)
    want('threads', k['threads'], threads * steps)
    want('entries of the first block', entry['thread_entries'], threads * steps)
    want('warp entries of the first block', entry['warp_entries'], threads // 32 * steps)
    want('thread instructions', k['thread_instructions'], sum(b['thread_entries'] * b['instructions'] for b in k['blocks']))
    want('warp instructions', k['warp_instructions'], sum(b['warp_entries'] * b['instructions'] for b in k['blocks']))
    want('sum over opcodes', sum(v['thread'] for v in ops.values()), k['thread_instructions'])
    if name == 'saxpy':
        want('loads', total('ld.global'), 2 * n)
        want('stores', total('st.global'), n)
        want('warps that store', total('st.global', of='warp'), -(-n // 32))
    elif name == 'reduce':
        want('barriers', total('bar.sync', 'barrier.sync'), 9 * 256 * ctas)
        want('shared stores', total('st.shared'), 511 * ctas)
        want('results', total('st.global'), ctas)
        want('warps that add', total('st.shared', of='warp'), (8 + 4 + 2 + 1 + 1 + 1 + 1 + 1 + 1) * ctas)
    elif name == 'divergent':
        s = [collatz(i + 1) for i in range(n)]
        loop = [b for b in k['blocks'] if b['thread_entries'] == sum(s)]
        want('loop body found', bool(loop), True)
        want('warp entries of the loop body', loop[0]['warp_entries'] if loop else None,
             sum(max(s[w:w + 32]) for w in range(0, n, 32)))
    elif name == 'matmul':
        want('multiply-adds', total('fma.rn.f32'), n ** 3)
        want('barriers', total('bar.sync', 'barrier.sync'), 2 * (n // 16) * n * n)
    elif name == 'histogram':
        want('atomics', total('atom', 'red'), n + 64 * 16)
    elif name == 'stencil':
        want('loads', total('ld.global'), steps * (5 * (n - 2) ** 2 + 4 * (n - 1)))
    for line in bad:
        print(f'{name}: {line}')
    return 1 if bad else 0


sys.exit(main())
