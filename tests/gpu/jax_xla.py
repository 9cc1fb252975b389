"""What jax.sh runs, natively and under Margay: programs of XLA, checksums of integers."""
import jax
import jax.numpy as jnp

assert jax.devices()[0].platform == 'gpu'
key = jax.random.PRNGKey(3)
a = jax.random.randint(key, (512, 1024), -1000, 1000)
b = jax.random.randint(jax.random.split(key)[0], (512, 1024), -1000, 1000)


@jax.jit
def fused(p, q):
    r = jnp.where(p > q, p - q, q * 2) + p // 3
    return r, r.sum(axis=1), (r * p).max(axis=0)


@jax.jit
def scanned(p):
    return jax.lax.fori_loop(0, 10, lambda i, x: (x * 3 + jnp.roll(x, 1, axis=1)) % 10007, p)


@jax.jit
def shaped(p, q):
    return jnp.transpose(p)[::2, ::-1] + jnp.concatenate([q[:256], p[256:]]).T[::2], jnp.cumsum(q, axis=1), jnp.sort(p, axis=1)


@jax.jit
def product(p):
    x = (p % 16).astype(jnp.float32)
    return jnp.round(x @ x.T).astype(jnp.int32)


def show(name, t):
    flat = jnp.ravel(t)
    print(name, int(jnp.sum((flat * (jnp.arange(flat.size) % 97 + 1)) % 1009)), flush=True)


for _ in range(10):
    outs = fused(a, b) + (scanned(a),) + shaped(a, b) + (product(a),)
for k, t in enumerate(outs):
    show(f'out {k}', t)
