"""Functions of JAX as people write them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

TABLE = np.arange(40, dtype=np.float32).reshape(8, 5) / 7


def layer(x, w):
    return jax.nn.relu(x @ w) * 2


def mlp(x, w, v):
    h = layer(x, w)
    return jax.nn.softmax(h @ v, axis=-1)


def block(x, w, g, b, mean, var):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME")
    y = (y - mean[:, None, None]) / jnp.sqrt(var + 1e-5)[:, None, None] * g[:, None, None] + b[:, None, None]
    y = jax.nn.relu(y)
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def channels_last(x, w):
    y = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.silu(y).mean(axis=(1, 2))


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(jnp.float32(q.shape[-1]))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)


def updated(cache, row, at, ids):
    cache = lax.dynamic_update_slice(cache, row, (at, 1))
    part = lax.dynamic_slice(cache, (at + 1, 0), (2, 3))
    return part, cache[ids, ids + 1], jnp.cbrt(cache), lax.rem(ids, ids - 2)


def norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * scale + shift


def standardised(x, scale, shift):
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + shift


def spread(x):
    return jnp.std(x, axis=0, ddof=1)


def without_divisor(x):
    return jnp.var(x, axis=0, ddof=4)


def lookups(ids):
    table = jnp.asarray(TABLE)
    return {
        "rows": table[ids],
        "taken": jnp.take(table, ids, axis=0, mode="clip"),
        "filled": jnp.take(table, ids, axis=0),
    }


def activations(x):
    return [
        jax.nn.gelu(x),
        jax.nn.gelu(x, approximate=False),
        jax.nn.elu(x),
        jax.nn.softplus(x),
        jnp.clip(x, -1, 1),
        jnp.round(x, 1),
    ]


@jax.jit
def jitted(x):
    return jnp.cumsum(jnp.flip(x, 1), axis=1) + jnp.tril(jnp.ones((3, 4), jnp.float32))


def transposed(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NCHW", "IOHW", "NCHW"))


def looped(x):
    return lax.fori_loop(0, 3, lambda i, y: jnp.sin(y), x) + 1


def branching(x):
    if jnp.sum(x) > 0:
        return x
    return -x


def structured(parts, scale):
    return {"sum": parts["a"] + parts["b"] * scale, "pair": (parts["a"], jnp.exp(parts["b"]))}


def plain(x):
    return np.maximum(x, 0)
