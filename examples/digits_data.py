"""Scikit-learn's bundled 8x8 digits, split once and for all into a training part and 360 held-out images."""

import numpy as np

HELD_OUT = 360


def load():
    """Gives (images, labels) of the training part and of the held-out part: f32[n, 1, 8, 8] in 0..1 and i64[n]."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(0).permutation(len(images))
    held, kept = order[:HELD_OUT], order[HELD_OUT:]
    return (images[kept], labels[kept]), (images[held], labels[held])
