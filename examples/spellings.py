"""One convolution (stride 2 by 1, dilation 1 by 2, asymmetric padding) in seven spellings: one match, seven times."""

import numpy as np

import topos_core as tp
from topos_core import nn

BATCH, INNER, OUTER, HEIGHT, WIDTH = 2, 3, 5, 9, 10
STRIDE, DILATION = (2, 1), (1, 2)
PADDING = ((1, 2), (0, 3))
ROWS = (HEIGHT + 3 - 3) // 2 + 1
COLUMNS = WIDTH + 3 - 4

spelled = tp.model(image=tp.f32[BATCH, INNER, HEIGHT, WIDTH], weight=tp.f32[OUTER, INNER, 3, 3])


def padded(image):
    return np.pad(image, ((0, 0), (0, 0), *PADDING))


def windows(image):
    """[batch, inner, rows, columns, 3, 3]"""
    view = np.lib.stride_tricks.sliding_window_view(padded(image), (3, 5), axis=(2, 3))
    return view[:, :, ::2, :, :, ::2]


def tap(image, i, j):
    """The image as the kernel's element (i, j) sees it: [batch, inner, rows, columns]"""
    return padded(image)[:, :, i : i + 2 * ROWS - 1 : 2, 2 * j : 2 * j + COLUMNS]


@spelled
def library(image, weight):
    return nn.conv2d(image, weight, stride=STRIDE, padding=PADDING, dilation=DILATION)


@spelled
def windows_einsum(image, weight):
    return np.einsum("bihwkl,oikl->bohw", windows(image), weight)


@spelled
def windows_tensordot(image, weight):
    return np.moveaxis(np.tensordot(windows(image), weight, axes=((1, 4, 5), (1, 2, 3))), -1, 1)


@spelled
def slices_stacked(image, weight):
    taps = np.stack([tap(image, i, j) for i in range(3) for j in range(3)], axis=2)
    columns = taps.reshape(BATCH, INNER * 9, ROWS * COLUMNS)
    return (weight.reshape(OUTER, INNER * 9) @ columns).reshape(BATCH, OUTER, ROWS, COLUMNS)


@spelled
def shifted_sum(image, weight):
    return sum(np.einsum("bihw,oi->bohw", tap(image, i, j), weight[:, :, i, j]) for i in range(3) for j in range(3))


@spelled
def strided(image, weight):
    whole = padded(image)
    height, width = whole.shape[2:]
    view = tp.as_strided(
        whole,
        (BATCH, INNER, ROWS, COLUMNS, 3, 3),
        (INNER * height * width, height * width, 2 * width, 1, width, 2),
    )
    return np.einsum("bihwkl,oikl->bohw", view, weight)


@spelled
def tables(image, weight):
    rows = 2 * np.arange(ROWS)[:, None] + np.arange(3)
    columns = np.arange(COLUMNS)[:, None] + 2 * np.arange(3)
    view = np.take(np.take(padded(image), rows, axis=2), columns, axis=4)
    return np.einsum("bihkwl,oikl->bohw", view, weight)
