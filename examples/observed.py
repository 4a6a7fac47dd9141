"""Observing an inner value: one observation blocks a convolution, the other keeps a batch norm's statistics."""

import numpy as np

import topos_core as tp


@tp.model(image=tp.f32[8, 16, 32, 32], weight=tp.f32[32, 16, 3, 3], bias=tp.f32[32])
def hidden_observed(image, weight, bias):
    """A hand-written convolution whose windows matrix is read: the convolution is blocked."""
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(8 * 32 * 32, 16 * 9)
    tp.observe(columns, "columns")
    hidden = columns @ weight.reshape(32, 16 * 9).T + bias
    return np.maximum(hidden, 0).reshape(8, 32, 32, 32).transpose(0, 3, 1, 2)


@tp.model(x=tp.f32[64, 32, 28, 28], scale=tp.f32[32], shift=tp.f32[32])
def statistics_observed(x, scale, shift):
    """A training batch norm whose mean and variance are read: both are named results, so it is taken all the same."""
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis=(0, 2, 3), keepdims=True)
    tp.observe(mean, "mean")
    tp.observe(variance, "variance")
    normal = centred / np.sqrt(variance + 1e-5)
    return normal * scale.reshape(1, 32, 1, 1) + shift.reshape(1, 32, 1, 1)
