"""A small convolutional network in plain NumPy, on scikit-learn's bundled 8x8 digits.

`train_digits.py` made the weights; `digits_data.py` holds 360 images out from it.
"""

from pathlib import Path

import numpy as np
from digits_data import HELD_OUT, load

import topos_core as tp

WEIGHTS = dict(np.load(Path(__file__).with_name("digits_weights.npz")))


def example(seed):
    """Gives the held-out images; the seed changes nothing, since the metric knows the labels in this order."""
    return (load()[1][0],)


def accuracy(logits):
    return float((np.argmax(logits, axis=1) == load()[1][1]).mean())


def convolve(x, weight):
    """A 3x3 convolution with one pixel of padding: f32[b, i, h, w], f32[o, i, 3, 3] -> f32[b, o, h, w]"""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("bihwkl,oikl->bohw", windows, weight)


def pool(x):
    """A 2x2 max-pool."""
    b, c, h, w = x.shape
    return x.reshape(b, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def column(vector):
    return vector[:, None, None]


@tp.model(images=tp.f32[HELD_OUT, 1, 8, 8], example=example, metric=accuracy)
def classify(images):
    w = WEIGHTS
    hidden = np.maximum(convolve(images, w["first"]) + column(w["first_bias"]), 0)
    hidden = convolve(hidden, w["second"])
    hidden = (hidden - column(w["norm_mean"])) / np.sqrt(column(w["norm_variance"]) + np.float32(1e-5))
    hidden = np.maximum(hidden * column(w["norm_scale"]) + column(w["norm_shift"]), 0)
    return pool(hidden).reshape(HELD_OUT, 512) @ w["linear"] + w["linear_bias"]
