"""Makes `digits_weights.npz`, the weights of `digits_cnn.py`: run `python examples/train_digits.py` with jax installed."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from digits_data import load

EPOCHS, BATCH, RATE = 120, 64, 2e-3


def convolve(x, weight):
    return jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME")


def pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def normalise(x, p, statistics):
    mean, variance = statistics
    column = (1, -1, 1, 1)
    scale = p["norm_scale"] / jnp.sqrt(variance + 1e-5)
    return (x - mean.reshape(column)) * scale.reshape(column) + p["norm_shift"].reshape(column)


def forward(p, images, running=None):
    hidden = jax.nn.relu(convolve(images, p["first"]) + p["first_bias"].reshape(1, -1, 1, 1))
    hidden = convolve(hidden, p["second"])
    statistics = (hidden.mean((0, 2, 3)), hidden.var((0, 2, 3))) if running is None else running
    hidden = pool(jax.nn.relu(normalise(hidden, p, statistics)))
    return hidden.reshape(hidden.shape[0], -1) @ p["linear"] + p["linear_bias"], statistics


def loss(p, images, labels):
    logits, statistics = forward(p, images)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -picked.mean() + 1e-4 * sum((w**2).sum() for w in p.values()), statistics


@jax.jit
def step(p, moments, count, images, labels):
    (_, statistics), gradient = jax.value_and_grad(loss, has_aux=True)(p, images, labels)
    first = {k: 0.9 * moments[0][k] + 0.1 * g for k, g in gradient.items()}
    second = {k: 0.999 * moments[1][k] + 0.001 * g * g for k, g in gradient.items()}
    new = {
        k: p[k] - RATE * (first[k] / (1 - 0.9**count)) / (jnp.sqrt(second[k] / (1 - 0.999**count)) + 1e-8) for k in p
    }
    return new, (first, second), statistics


def main():
    (train, train_labels), (images, labels) = load()
    generator = np.random.default_rng(0)

    def normal(*shape, fan):
        return jnp.asarray(generator.normal(0, np.sqrt(2 / fan), shape), jnp.float32)

    p = {
        "first": normal(16, 1, 3, 3, fan=9),
        "first_bias": jnp.zeros(16),
        "second": normal(32, 16, 3, 3, fan=144),
        "norm_scale": jnp.ones(32),
        "norm_shift": jnp.zeros(32),
        "linear": normal(512, 10, fan=512),
        "linear_bias": jnp.zeros(10),
    }
    moments = ({k: jnp.zeros_like(v) for k, v in p.items()},) * 2
    mean, variance, count = jnp.zeros(32), jnp.ones(32), 0
    for _ in range(EPOCHS):
        order = generator.permutation(len(train))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            shifted = np.roll(train[rows], generator.integers(-1, 2, 2), (2, 3))
            count += 1
            p, moments, statistics = step(p, moments, count, shifted, train_labels[rows])
            mean, variance = 0.95 * mean + 0.05 * statistics[0], 0.95 * variance + 0.05 * statistics[1]
    weights = {k: np.asarray(v, np.float32) for k, v in p.items()}
    weights |= {"norm_mean": np.asarray(mean, np.float32), "norm_variance": np.asarray(variance, np.float32)}
    logits, _ = forward(p, images, (mean, variance))
    print(f"held out: {(np.asarray(logits).argmax(1) == labels).mean():.4f}")
    np.savez(Path(__file__).with_name("digits_weights.npz"), **weights)


if __name__ == "__main__":
    main()
