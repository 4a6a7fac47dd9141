"""A pre-norm transformer block as people write it in NumPy: attention by hand, a gelu by hand, two residuals."""

import math

import numpy as np

import topos_core as tp

BATCH, LENGTH, WIDTH, HEADS = 2, 128, 256, 4
HEAD = WIDTH // HEADS


def layer_norm(x, scale, shift):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


def softmax(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def heads(x):
    """f32[batch, length, width] -> f32[batch, heads, length, width / heads]"""
    return x.reshape(BATCH, LENGTH, HEADS, HEAD).transpose(0, 2, 1, 3)


def attention(x, project, back):
    query, key, value = (heads(part) for part in np.split(x @ project, 3, axis=-1))
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(HEAD)
    causal = np.tril(np.ones((LENGTH, LENGTH), bool))
    weights = softmax(np.where(causal, scores, -1e9))
    return (weights @ value).transpose(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH) @ back


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def example(seed):
    """Gives a normal input and weights of the size that keeps activations normal."""
    generator = np.random.default_rng(seed)

    def normal(*shape, size=1.0):
        return (size * generator.standard_normal(shape)).astype(np.float32)

    x = normal(BATCH, LENGTH, WIDTH)
    norms = np.stack([1 + normal(WIDTH, size=0.1), normal(WIDTH, size=0.1)] * 2)
    size = 1 / math.sqrt(WIDTH)
    return (
        x, norms, normal(WIDTH, 3 * WIDTH, size=size), normal(WIDTH, WIDTH, size=size),
        normal(WIDTH, 4 * WIDTH, size=size), normal(4 * WIDTH, WIDTH, size=size / 2),
    )  # fmt: skip


@tp.model(
    x=tp.f32[BATCH, LENGTH, WIDTH],
    norms=tp.f32[4, WIDTH],
    project=tp.f32[WIDTH, 3 * WIDTH],
    back=tp.f32[WIDTH, WIDTH],
    up=tp.f32[WIDTH, 4 * WIDTH],
    down=tp.f32[4 * WIDTH, WIDTH],
    example=example,
)
def block(x, norms, project, back, up, down):
    x = x + attention(layer_norm(x, norms[0], norms[1]), project, back)
    return x + gelu(layer_norm(x, norms[2], norms[3]) @ up) @ down
