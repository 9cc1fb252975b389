#!/usr/bin/env python3
"""Loops of thousands of launches whose kernels Triton or XLA compiles, with random weights: loops.py decode|infer|train|jax [STEPS]

  decode  an LLM's decode loop: 8 layers of norm, attention over a cache that grows by a row a token, and two products; the same
          names again and again, with times that grow
  infer   a small network, forward, compiled by torch.compile: kernels of inductor, beside those of closed libraries, which carry
          no PTX and take no part
  train   the same, forward, backward and its step
  jax     a step of integers and floats that XLA compiles, again and again

Needs torch and triton, or jax; status 77 where they are not."""
import os, sys

what, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
try:
    if what == 'jax':
        os.environ.setdefault('XLA_PYTHON_CLIENT_PREALLOCATE', 'false')
        import jax, jax.numpy as jnp
        if jax.devices()[0].platform != 'gpu': raise ImportError('jax finds no GPU')
    else:
        import torch, triton
        import triton.language as tl
        if not torch.cuda.is_available(): raise ImportError('torch finds no GPU')
except (ImportError, RuntimeError) as e:
    print(f'skipped: {e}')
    sys.exit(77)


def jitted(steps):
    @jax.jit
    def step(p, q, i):
        r = jnp.where(p > q, p - q, q * 2) + jnp.roll(p, 1, axis=1) // 3
        s = jnp.cumsum(r, axis=1) % 10007
        return s, jnp.transpose(jnp.sort(q, axis=0)) % 9973 + r.T.sum(axis=1, keepdims=True) % (i + 7)

    keys = jax.random.split(jax.random.PRNGKey(3))
    p, q = (jax.random.randint(k, (256, 256), -1000, 1000) for k in keys)
    for i in range(steps): p, q = step(p, q, i)
    print(f'jax: {steps} steps, {int(p.sum())} {int(q.sum())}')


if what == 'jax':
    jitted(steps or 200)
    sys.exit(0)

WIDTH, HEADS = 512, 8


@triton.jit
def norm(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + at, v / tl.sqrt(tl.sum(v * v) / n + 1e-6), mask=at < n)


@triton.jit
def product(w, x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(w + row * n + at, mask=at < n, other=0.0) * tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + row, tl.sum(v))


@triton.jit
def attend(q, keys, values, out, rows, WIDTH: tl.constexpr, HEAD: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(0)
    lane = head * HEAD + tl.arange(0, HEAD)
    mine = tl.load(q + lane)
    most, sums, acc = tl.full([1], -1e30, tl.float32), tl.zeros([1], tl.float32), tl.zeros([HEAD], tl.float32)
    for first in range(0, rows, BLOCK):
        row = first + tl.arange(0, BLOCK)
        there = row < rows
        k = tl.load(keys + row[:, None] * WIDTH + lane[None, :], mask=there[:, None], other=0.0)
        score = tl.where(there, tl.sum(k * mine[None, :], 1) * 0.125, -1e30)
        peak = tl.maximum(most, tl.max(score))
        part = tl.exp(score - peak)
        v = tl.load(values + row[:, None] * WIDTH + lane[None, :], mask=there[:, None], other=0.0)
        keep = tl.exp(most - peak)
        acc = acc * keep + tl.sum(part[:, None] * v, 0)
        sums = sums * keep + tl.sum(part)
        most = peak
    tl.store(out + lane, acc / sums)


def decode(steps):
    layers, new = 8, lambda *shape: torch.randn(*shape, device='cuda') / WIDTH ** 0.5
    weights = [[new(WIDTH, WIDTH) for _ in range(2)] for _ in range(layers)]
    caches = [[torch.zeros(steps + 1, WIDTH, device='cuda') for _ in range(2)] for _ in range(layers)]
    x, y, z = torch.randn(WIDTH, device='cuda'), torch.empty(WIDTH, device='cuda'), torch.empty(WIDTH, device='cuda')
    for token in range(steps):
        for (a, b), (keys, values) in zip(weights, caches):
            norm[(1,)](x, y, WIDTH, BLOCK=WIDTH)
            product[(WIDTH,)](a, y, keys[token], WIDTH, BLOCK=WIDTH)
            product[(WIDTH,)](b, y, values[token], WIDTH, BLOCK=WIDTH)
            attend[(HEADS,)](y, keys, values, z, token + 1, WIDTH=WIDTH, HEAD=WIDTH // HEADS, BLOCK=64)
            product[(WIDTH,)](a, z, x, WIDTH, BLOCK=WIDTH)
    torch.cuda.synchronize()
    assert torch.isfinite(x).all()
    print(f'decode: {steps * layers * 5} launches of its own')


def network():
    return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 256), torch.nn.Softmax(-1)).cuda()


def infer(steps):
    run = torch.compile(network())
    x = torch.randn(64, 256, device='cuda')
    with torch.no_grad():
        for _ in range(steps): x = run(x) + x
    torch.cuda.synchronize()
    assert torch.isfinite(x).all()
    print(f'infer: {steps} steps')


def train(steps):
    net = network()
    best = torch.optim.SGD(net.parameters(), 1e-2)
    run = torch.compile(net)
    data = torch.randn(64, 256, device='cuda')
    for _ in range(steps):
        best.zero_grad(set_to_none=True)
        loss = ((run(data) - data) ** 2).mean()
        loss.backward()
        best.step()
    torch.cuda.synchronize()
    assert torch.isfinite(loss)
    print(f'train: {steps} steps')


torch.manual_seed(1)
{'decode': lambda: decode(steps or 60), 'infer': lambda: infer(steps or 400), 'train': lambda: train(steps or 150)}[what]()
