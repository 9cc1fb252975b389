"""What torch_triton.sh runs, natively and under Margay.  usage: torch_triton.py eager|triton|compile|uncompiled
Prints checksums of integers, which no order of summation and no choice of block size changes."""
import sys

import torch

dev = torch.device('cuda')
gen = torch.Generator(device='cpu').manual_seed(7)
a = torch.randint(-1000, 1000, (512, 1024), generator=gen, dtype=torch.int32).to(dev)
b = torch.randint(-1000, 1000, (512, 1024), generator=gen, dtype=torch.int32).to(dev)


def show(name, t):
    print(name, int((t.to(torch.int64).flatten() * torch.arange(1, t.numel() + 1, device=dev) % 1000003).sum()), flush=True)


def eager():
    show('sort', torch.sort(a, dim=1).values)
    show('cumsum', torch.cumsum(b, dim=1))
    show('where', torch.where(a > b, a * 3 - b, b))
    x = a.float() % 16
    show('matmul', (x @ x.T).round())                       # small integers: exact in any order
    c = torch.nn.functional.conv2d(x.view(1, 1, 512, 1024), torch.ones(1, 1, 3, 3, device=dev))
    show('conv', c.round())
    show('unique', torch.unique(a))


def use_triton():
    import triton
    import triton.language as tl

    @triton.jit
    def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        keep = i < n
        tl.store(out + i, tl.load(x + i, mask=keep) + tl.load(y + i, mask=keep), mask=keep)

    @triton.jit
    def row_kernel(x, out, cols, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        i = tl.arange(0, BLOCK)
        v = tl.load(x + row * cols + i, mask=i < cols, other=-2000)
        tl.store(out + row, tl.max(v, axis=0) * 4096 + tl.sum(tl.where(v > 0, 1, 0), axis=0))

    @triton.jit
    def dot_kernel(x, y, out, K, BLOCK: tl.constexpr):
        r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, K, BLOCK):
            kk = k + tl.arange(0, BLOCK)
            acc += tl.dot(tl.load(x + r[:, None] * K + kk[None, :]), tl.load(y + kk[:, None] * 512 + c[None, :]))
        tl.store(out + r[:, None] * 512 + c[None, :], acc)

    out, rows = torch.empty_like(a), torch.empty(512, dtype=torch.int32, device=dev)
    x, y = (a % 8).half(), (b % 8).half().reshape(1024, 512).contiguous()
    product = torch.empty(512, 512, device=dev)
    for _ in range(20):
        add_kernel[(a.numel() // 1024,)](a, b, out, a.numel(), BLOCK=1024)
        row_kernel[(512,)](a, rows, 1024, BLOCK=1024)
        dot_kernel[(8, 8)](x, y, product, 1024, BLOCK=64)
    show('add', out), show('row', rows), show('dot', product.round())
    torch.cuda.synchronize()


def use_compile(compiler=torch.compile):
    @compiler
    def f(p, q):
        r = torch.where(p > q, p - q, q * 2) + p // 3
        return r, r.sum(dim=1), (r * p).amax(dim=0), torch.cumsum(q, dim=1)

    for _ in range(10):
        outs = f(a, b)
    for k, t in enumerate(outs):
        show(f'compiled {k}', t)


{'eager': eager, 'triton': use_triton, 'compile': use_compile, 'uncompiled': lambda: use_compile(lambda f: f)}[sys.argv[1]]()
torch.cuda.synchronize()
